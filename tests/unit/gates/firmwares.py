"""Facts of firmware for tests: as the manifest of a build says them, and then changed one by one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import tflite

from tests.conftest import EXAMPLES
from tests.modelmaker import make_single_op_model
from tflm_forge.board import load_board
from tflm_forge.config import BuildSettings, ModelCompatibilityTable
from tflm_forge.gates.facts import FirmwareFacts, FirmwareOp, facts_of_manifest
from tflm_forge.gates.needs import ArenaNeed, find_needs
from tflm_forge.gates.reasons import Judgement
from tflm_forge.gates.verdict import Judge, load_catalogues
from tflm_forge.manifest import Manifest, ManifestArena, ManifestFlash, make_manifest
from tflm_forge.model import Model, read_model
from tflm_forge.runtimes import plan_ops

DIGITS = EXAMPLES / "digits" / "digits.tflite"
SINE = EXAMPLES / "sine" / "sine.tflite"
ARENA_BYTES = 4096
BOARD = "mps2-an386"
KERNELS = {"bundled": "dsp", "tflm": "cmsis_nn"}
ENOUGH = ArenaNeed(bytes=ARENA_BYTES, how="measured", is_measured=True)


def manifest_of(*models: Model, runtime: str = "bundled", board: str = BOARD) -> Manifest:
    """Return the manifest of firmware that was linked: with its arena and its flash."""
    target = load_board(board)
    settings = BuildSettings(runtime=runtime, kernel_set=KERNELS[runtime])
    plan = plan_ops(models[0], target.core, settings, models[1:])
    made = make_manifest(models, target, plan, settings, arena=ManifestArena(size_bytes=ARENA_BYTES, how="measured"))
    flash = ManifestFlash(size_bytes=40_000, limit_bytes=64 * 1024)
    return replace(made, flash=flash)


def facts_of(*models: Model, runtime: str = "bundled") -> FirmwareFacts:
    """Return the facts of firmware of some models."""
    return facts_of_manifest(manifest_of(*models, runtime=runtime), "ops.manifest.yaml")


def change_op(facts: FirmwareFacts, name: str, **changes: Any) -> FirmwareFacts:
    """Return facts in which one op is changed."""
    return replace(facts, ops=tuple(replace(op, **changes) if op.name == name else op for op in facts.ops))


def without_op(facts: FirmwareFacts, name: str) -> FirmwareFacts:
    """Return facts in which one op is not registered."""
    return replace(facts, ops=tuple(op for op in facts.ops if op.name != name))


def judge(model: Model, facts: FirmwareFacts, arena: ArenaNeed = ENOUGH, **policy: bool) -> Judgement:
    """Return the verdict on a model."""
    own = Judge(needs=find_needs(model), catalogues=load_catalogues(), policy=ModelCompatibilityTable(**policy))
    return own.judge(facts, arena)


def single(op: str, *args: Any, **options: Any) -> Model:
    """Return a model of one operator."""
    return read_model(make_single_op_model(op, *args, **options), name=f"{op.lower()}.tflite")


def registered(name: str, max_version: int = 1, **more: Any) -> FirmwareOp:
    """Return one registered op."""
    return FirmwareOp(
        builtin_code=getattr(tflite.BuiltinOperator, name), custom_name="", name=name, max_version=max_version, **more
    )


def raise_version(path: Path, op: str, version: int) -> bytes:
    """Return a model whose file says another version of a builtin op, by the PyPI package `tflite`."""
    data = bytearray(path.read_bytes())
    model = tflite.Model.GetRootAs(bytes(data), 0)
    wanted = getattr(tflite.BuiltinOperator, op)
    for index in range(model.OperatorCodesLength()):
        code = model.OperatorCodes(index)
        if max(code.BuiltinCode(), code.DeprecatedBuiltinCode()) == wanted:
            slot = code._tab.Offset(8)  # version, the third field of OperatorCode; version 1 is left out of the file
            at = code._tab.Pos + slot
            data[at : at + 4] = version.to_bytes(4, "little")
    return bytes(data)


def with_version(model: Model, op: str, version: int) -> Model:
    """Return a model whose operators of one op have another version."""
    graphs = tuple(
        replace(graph, operators=tuple(replace(o, version=version) if o.name == op else o for o in graph.operators))
        for graph in model.subgraphs
    )
    return replace(model, subgraphs=graphs)
