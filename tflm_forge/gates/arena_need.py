"""Finds how large a tensor arena a model needs on a firmware's kernels: measured where they run, else estimated."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tflm_forge.arena import STEP_BYTES, estimate_arena, read_record, write_record
from tflm_forge.board import Board, load_board
from tflm_forge.build import build_firmware
from tflm_forge.config import BuildSettings, OpTable
from tflm_forge.errors import DeviceError, FitError, ModelError, ToolError, UsageError
from tflm_forge.gates.facts import FirmwareFacts
from tflm_forge.gates.needs import ArenaNeed, ModelNeeds
from tflm_forge.gates.package import Package
from tflm_forge.generate import fingerprint_project
from tflm_forge.model import Model
from tflm_forge.resources import cache_dir
from tflm_forge.runtimes import plan_build

_ESTIMATED = "estimated"
_MEASURED = "measured"
_LEAST_DIGITS = 12
_CACHE_NAME = "ota"

Report = Callable[[str], None]


def estimate_need(models: Sequence[Model], why: str) -> ArenaNeed:
    """Return an estimate from the models alone, and why there is nothing better."""
    return ArenaNeed(bytes=estimate_arena(*models), how=f"{_ESTIMATED}: {why}", is_measured=False)


def measure_need(
    model: Model,
    facts: FirmwareFacts,
    report: Report,
    *,
    others: Sequence[Model] = (),
    own_ops: tuple[OpTable, ...] = (),
    silence: Mapping[str, str] | None = None,
    board_file: str | None = None,
) -> ArenaNeed:
    """Build firmware of a model as another firmware was built, and measure the arena it needs in the emulator.

    What was measured is kept in forge's cache, for the next time.

    Args:
        model: the model that is to come onto the device.
        facts: the firmware on the device.
        report: gets one line for each step that takes time.
        others: the models that stay beside it and share the arena.
        own_ops: the user's own kernels.
        silence: the doctor's rules that do not stand, with the reasons.
        board_file: what forge.toml has as board: the firmware's may be one of the user's own.

    Returns:
        The measured need; or an estimate with the reason, where tools, runtime or facts do not suffice.
    """
    models = (model, *others)
    if facts.runtime is None or facts.board is None:
        return estimate_need(models, "the runtime or the board of the firmware is not known")
    try:
        settings = replace(_settings_of(facts, facts.runtime), own_ops=own_ops, silence=silence or {})
        return _measure(models, facts, _load_board(facts.board, board_file), settings, report)
    except FitError as error:
        if error.bytes_over or facts.arena_bytes is None:
            return estimate_need(models, error.message)
        most = max(estimate_arena(*models), facts.arena_bytes + STEP_BYTES)
        return ArenaNeed(bytes=most, how=f"or more, for {error.message}", is_measured=True)
    except ModelError as error:
        return replace(estimate_need(models, error.message), is_moot=True)
    except (ToolError, UsageError, DeviceError) as error:
        return estimate_need(models, error.message)
    except OSError as error:
        return estimate_need(models, f"{cache_dir()}: {error.strerror or error}")


def known_need(needs: ModelNeeds, facts: FirmwareFacts) -> ArenaNeed | None:
    """Return what a firmware's arena was measured to need, when the model is its only one; else None."""
    own, how = facts.models, facts.arena_how or ""
    if facts.arena_bytes is None or [model.sha256 for model in own] != [needs.sha256] or not how.startswith(_MEASURED):
        return None
    return ArenaNeed(bytes=facts.arena_bytes, how=how, is_measured=True)


def is_packed_for(package: Package, facts: FirmwareFacts) -> bool:
    """Return whether a package's arena need was measured on the very kernels of a firmware."""
    target = package.target
    same = (target.runtime, target.kernel_set, target.board) == (facts.runtime, facts.kernel_set, facts.board)
    return package.arena.is_measured and same and is_same_version(target.version, facts.version or "")


def is_same_version(version: str, other: str) -> bool:
    """Return whether two versions are the same, one of which may be a commit's first digits."""
    shorter, longer = sorted((version, other), key=len)
    return version == other or (len(shorter) >= _LEAST_DIGITS and longer.startswith(shorter))


def _settings_of(facts: FirmwareFacts, runtime: str) -> BuildSettings:
    """Return the firmware's settings; the arena does not depend on those that a device does not tell."""
    settings = facts.settings or BuildSettings(runtime=runtime, kernel_set=facts.kernel_set)
    return replace(settings, arena_bytes=None, keep_tensors=False)


def _load_board(name: str, board_file: str | None) -> Board:
    if board_file is not None and board_file != name:
        own = load_board(board_file)
        if own.name == name:
            return own
    return load_board(name)


def _measure(
    models: tuple[Model, ...], facts: FirmwareFacts, board: Board, settings: BuildSettings, report: Report
) -> ArenaNeed:
    model, *others = models
    plan = plan_build(model, board.core, settings, others)
    if not is_same_version(plan.version, facts.version or "") or plan.kernel_set != facts.kernel_set:
        theirs = f"{facts.runtime} {facts.version} with {facts.kernel_set} kernels"
        ours = f"{plan.runtime} {plan.version} with {plan.kernel_set} kernels"
        return estimate_need(models, f"the firmware has {theirs}, here is {ours}")
    fingerprint = fingerprint_project(model, board, plan, settings, others)
    cache = cache_dir() / _CACHE_NAME
    arena = read_record(cache / fingerprint, fingerprint)
    if arena is None:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="build-") as folder:
            built = build_firmware(Path(folder), model, board, settings, report, others)
        arena = built.project.arena
        if arena.how.startswith(_ESTIMATED):
            return estimate_need(models, f"{board.name} has no emulator here")
        write_record(cache / fingerprint, fingerprint, arena)
    return ArenaNeed(bytes=arena.bytes, how=arena.how, is_measured=True)
