"""The operator manifest ops.manifest.yaml: what a firmware can run, in a form made for version control."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from tflm_forge import __version__
from tflm_forge.board import Board
from tflm_forge.config import BuildSettings
from tflm_forge.errors import UsageError
from tflm_forge.model import Model, op_set
from tflm_forge.ops.hash import format_op_hash, op_hash
from tflm_forge.runtimes import BuildPlan

MANIFEST_NAME = "ops.manifest.yaml"
_TOP_KEY = "tflm_operator_manifest"
_KILOBYTE = 1000


def render_manifest(
    model: Model,
    board: Board,
    plan: BuildPlan,
    settings: BuildSettings,
    *,
    arena_bytes: int,
    arena_how: str,
    saving_bytes: int | None = None,
    others: Sequence[Model] = (),
) -> bytes:
    """Return the manifest as YAML, with a stable order of keys and ops.

    Args:
        model: the model that is built in.
        board: the board the firmware is for.
        plan: what the firmware registers.
        settings: how it is built.
        arena_bytes: size of the tensor arena.
        arena_how: how that size is known.
        saving_bytes: flash that registering all ops would have cost more, as measured; None when it was not.
        others: the models that are built in besides; the manifest then lists all, each with its own ops.
    """
    uses = [registration.use for registration in plan.registrations]
    body: dict[str, Any] = {
        _TOP_KEY: {
            "format": 1,
            "forge": __version__,
            "model": _file_facts(model),
            "board": board.name,
            "runtime": {"name": plan.runtime, "version": plan.version, "kernels": plan.kernel_set},
            "build": {
                "profile": settings.profile,
                "optimize": settings.optimize,
                "lto": settings.uses_lto,
                "strip_error_strings": settings.strips_error_strings,
            },
            "op_hash": format_op_hash(op_hash(uses)),
            "arena": {"bytes": arena_bytes, "how": arena_how},
            **({} if saving_bytes is None else {"total_flash_saving_kb": round(saving_bytes / _KILOBYTE, 1)}),
            "ops": [
                {
                    "name": r.use.name,
                    "builtin_code": r.use.builtin_code,
                    **({"custom_name": r.use.custom_name} if r.use.custom_name else {}),
                    "version": r.use.version,
                    "max_version": r.max_version,
                    "count": r.use.count,
                    "first_layer": r.use.first_layer,
                    "registration": r.call,
                }
                for r in plan.registrations
            ],
            **({"models": [_model_facts(each) for each in (model, *others)]} if others else {}),
        }
    }
    stream = io.BytesIO()
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 200
    yaml.dump(body, stream)
    return stream.getvalue()


def _file_facts(model: Model) -> dict[str, Any]:
    return {"file": model.name, "sha256": model.sha256, "bytes": len(model.data)}


def _model_facts(model: Model) -> dict[str, Any]:
    uses = op_set(model)
    ops = [{"name": use.name, "version": use.version, "count": use.count} for use in uses]
    return {**_file_facts(model), "op_hash": format_op_hash(op_hash(uses)), "ops": ops}


@dataclass(frozen=True, kw_only=True)
class BuildFacts:
    """What of a build its manifest tells: the models' own file names, the board, the settings."""

    model_names: tuple[str, ...]
    board: str
    settings: BuildSettings


def read_build(folder: Path) -> BuildFacts:
    """Return the facts of the build whose manifest stands in a folder.

    Raises:
        UsageError: there is no manifest, or it is not one that this forge wrote.
    """
    path = folder / MANIFEST_NAME
    try:
        body = YAML(typ="safe").load(path.read_text(encoding="utf-8"))[_TOP_KEY]
        build = body["build"]
        settings = BuildSettings(
            runtime=str(body["runtime"]["name"]),
            kernel_set=str(body["runtime"]["kernels"]),
            profile="debug" if build["profile"] == "debug" else "release",
            optimize=build["optimize"],
            lto=bool(build["lto"]),
            strip_error_strings=bool(build["strip_error_strings"]),
            arena_bytes=int(body["arena"]["bytes"]),
        )
        names = tuple(str(each["file"]) for each in body.get("models", [body["model"]]))
        return BuildFacts(model_names=names, board=str(body["board"]), settings=settings)
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror}", hint="Build with `forge build` first.") from error
    except (YAMLError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: not a manifest of this forge ({error})", hint="Build again.") from error
