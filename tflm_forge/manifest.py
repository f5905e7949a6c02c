"""The operator manifest ops.manifest.yaml: what a firmware can run, in a form made for version control."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from tflm_forge import __version__
from tflm_forge.board import Board
from tflm_forge.config import BuildSettings
from tflm_forge.errors import UsageError
from tflm_forge.model import Model
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
    """
    uses = [registration.use for registration in plan.registrations]
    body: dict[str, Any] = {
        _TOP_KEY: {
            "format": 1,
            "forge": __version__,
            "model": {"file": model.name, "sha256": model.sha256, "bytes": len(model.data)},
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
        }
    }
    stream = io.BytesIO()
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 200
    yaml.dump(body, stream)
    return stream.getvalue()


@dataclass(frozen=True, kw_only=True)
class BuildFacts:
    """What of a build its manifest tells: the model's own file name, the board, the settings."""

    model_name: str
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
        return BuildFacts(model_name=str(body["model"]["file"]), board=str(body["board"]), settings=settings)
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror}", hint="Build with `forge build` first.") from error
    except (YAMLError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: not a manifest of this forge ({error})", hint="Build again.") from error
