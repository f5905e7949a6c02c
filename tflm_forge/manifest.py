"""The operator manifest ops.manifest.yaml: what a firmware can run, in a form made for version control."""

import io
from typing import Any

from ruamel.yaml import YAML

from tflm_forge import __version__
from tflm_forge.board import Board
from tflm_forge.model import Model
from tflm_forge.ops.hash import format_op_hash, op_hash
from tflm_forge.runtimes import BuildPlan


def render_manifest(model: Model, board: Board, plan: BuildPlan, *, arena_bytes: int, arena_how: str) -> bytes:
    """Return the manifest as YAML, with a stable order of keys and ops.

    Args:
        model: the model that is built in.
        board: the board the firmware is for.
        plan: what the firmware registers.
        arena_bytes: size of the tensor arena.
        arena_how: how that size is known.
    """
    uses = [registration.use for registration in plan.registrations]
    body: dict[str, Any] = {
        "tflm_operator_manifest": {
            "format": 1,
            "forge": __version__,
            "model": {"file": model.name, "sha256": model.sha256, "bytes": len(model.data)},
            "board": board.name,
            "runtime": {"name": plan.runtime, "version": plan.version, "kernels": plan.kernel_set},
            "op_hash": format_op_hash(op_hash(uses)),
            "arena": {"bytes": arena_bytes, "how": arena_how},
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
