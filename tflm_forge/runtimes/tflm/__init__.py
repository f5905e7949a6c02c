"""The real TFLM: installed from upstream at a pinned commit, its catalogue read from its sources."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflm_forge.board import Core
    from tflm_forge.config import BuildSettings
    from tflm_forge.model import OpUse
    from tflm_forge.ops.catalogue import Catalogue
    from tflm_forge.runtimes import BuildPlan, OpPlan


def is_available() -> bool:
    """Return whether a tree is installed."""
    from tflm_forge.runtimes.tflm.install import find_installed

    return find_installed() is not None


def catalogue(kernel_set: str | None = None) -> "Catalogue":
    """Return the op catalogue of the tree in use; of the pinned commit when none is installed."""
    from tflm_forge.runtimes.tflm.op_table import read_catalogue

    return read_catalogue(kernel_set)


def register(ops: "Sequence[OpUse]", core: "Core", settings: "BuildSettings") -> "OpPlan":
    """Say how an op set that the catalogue has passed is registered, installed or not."""
    from tflm_forge.runtimes.tflm.planning import plan_ops

    return plan_ops(ops, core, settings)


def plan(ops: "Sequence[OpUse]", core: "Core", settings: "BuildSettings") -> "BuildPlan":
    """Plan the build of an op set that the catalogue has passed."""
    from tflm_forge.runtimes.tflm.planning import plan_build

    return plan_build(ops, core, settings)
