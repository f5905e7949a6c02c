"""`forge inspect`: what a model is made of, and whether a runtime, or which of several, can run it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._options import BoardOption, JsonOption, RuntimeOption, collect_silence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tflm_forge.config import Config
    from tflm_forge.costs.of_model import ModelCosts
    from tflm_forge.doctor import Finding
    from tflm_forge.model import Model, OpUse, Tensor
    from tflm_forge.ops.catalogue import Catalogue

    Verdict = tuple[str, Catalogue, Sequence[Finding]]

_LABEL_COLUMNS = 60
_SHOWN_AS_FACT = "min-runtime-version"


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The .tflite file.")],
    runtime: RuntimeOption = None,
    runtimes: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Compare runtimes: bundled, tflm, or trees as `forge runtime list` names them.",
        ),
    ] = None,
    board: BoardOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a model's op set, inputs and outputs, and what stands against running it; exit 3 when something does.

    What each op costs in flash is shown for the core of the board, or a Cortex-M4F, where a table says it.

    With --runtimes: which of them can run it, and why the others can not; exit 3 when none can.

    Example: forge inspect model.tflite
    """
    from tflm_forge.commands._model_costs import costs_json, find_costs
    from tflm_forge.config import load_config
    from tflm_forge.console import show_json
    from tflm_forge.errors import ModelError, UsageError
    from tflm_forge.model import load_model, op_set
    from tflm_forge.runtimes import default_runtime

    if runtime and runtimes:
        raise UsageError("--runtime and --runtimes exclude each other", hint="Name all of them in --runtimes.")
    config = load_config(Path.cwd())
    loaded = load_model(model)
    if runtimes is not None:
        verdicts = [_judge(loaded, name, config) for name in _split_names(runtimes)]
        if as_json:
            show_json(_verdicts_json(loaded, verdicts))
        else:
            _show_verdicts(loaded, verdicts)
        if not any(_runs(findings) for *_, findings in verdicts):
            raise ModelError(f"{loaded.name}: none of these runtimes can run this model")
        return
    ops = op_set(loaded)
    name, catalogue, findings = _judge(loaded, runtime or default_runtime(), config)
    costs = find_costs(loaded, name, board, config)
    reasons = [finding.text for finding in findings if finding.stands]
    if as_json:
        show_json({**_as_json(loaded, ops, findings, catalogue, reasons), "costs": costs_json(costs)})
    else:
        _show(loaded, ops, findings, catalogue, costs)
    if reasons:
        name = f"{catalogue.runtime} {catalogue.version}"
        raise ModelError(f"{loaded.name}: runtime {name} can not run this model", reasons=reasons)


def _split_names(text: str) -> list[str]:
    from tflm_forge.errors import UsageError

    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError("--runtimes names none", hint="For example --runtimes bundled,tflm.")
    return list(dict.fromkeys(names))


def _judge(model: "Model", name: str, config: "Config") -> "Verdict":
    """Return what the doctor finds about a model and a runtime; a tree of TFLM is named as `runtime list` names it."""
    from tflm_forge.doctor import Subject, diagnose
    from tflm_forge.ops.catalogue import parse_allow_versions
    from tflm_forge.ops.own import add_own_ops

    catalogue = add_own_ops(_find_catalogue(name), config.op)
    allowed = parse_allow_versions(config.build.allow_version)
    subject = Subject(model=model, catalogue=catalogue, allow_versions=allowed)
    return name, catalogue, diagnose(subject, collect_silence(config))


def _find_catalogue(name: str) -> "Catalogue":
    import tflm_forge.runtimes as package
    from tflm_forge.registry import list_names, unknown_name
    from tflm_forge.runtimes import load_runtime
    from tflm_forge.runtimes.tflm.install import find_installed, list_installed
    from tflm_forge.runtimes.tflm.op_table import read_catalogue

    runtimes, trees = list_names(package), list_installed()
    if name in runtimes:
        return load_runtime(name).catalogue()
    if not any(name == tree.name or tree.version.startswith(name) for tree in trees):
        raise unknown_name("runtime", name, (*runtimes, *(tree.name for tree in trees)))
    return read_catalogue(installed=find_installed(name))


def _runs(findings: "Sequence[Finding]") -> bool:
    return not any(finding.stands for finding in findings)


def _show_verdicts(model: "Model", verdicts: "Sequence[Verdict]") -> None:
    from tflm_forge.console import show_table, show_text
    from tflm_forge.model.metadata import min_runtime_version

    rows = [
        (name, f"{catalogue.runtime} {catalogue.version}", len(catalogue.ops), _verdict_words(findings))
        for name, catalogue, findings in verdicts
    ]
    asked = min_runtime_version(model)
    if asked:
        show_text(f"{model.name}; the converter asks for TensorFlow Lite {asked}, which is not a version of TFLM")
    show_table(f"Which runtime runs {model.name}", ("name", "runtime", "ops", "runs it"), rows, right=(2,))
    for name, _, findings in verdicts:
        for finding in findings:
            if finding.stands:
                show_text(f"{name}: {finding.id}: {finding.text}")


def _verdict_words(findings: "Sequence[Finding]") -> str:
    ids = dict.fromkeys(finding.id for finding in findings if finding.stands)
    return f"no: {', '.join(ids)}" if ids else "yes"


def _verdicts_json(model: "Model", verdicts: "Sequence[Verdict]") -> dict[str, object]:
    from tflm_forge.commands.doctor import finding_json
    from tflm_forge.model.metadata import min_runtime_version

    return {
        "tflm_forge_runtimes": 1,
        "model": model.name,
        "sha256": model.sha256,
        "min_runtime_version": min_runtime_version(model) or None,
        "runtimes": [
            {
                "name": name,
                "runtime": catalogue.runtime,
                "version": catalogue.version,
                "ops": len(catalogue.ops),
                "runs": _runs(findings),
                "findings": [finding_json(finding) for finding in findings],
            }
            for name, catalogue, findings in verdicts
        ],
    }


def _show(
    model: "Model",
    ops: "Sequence[OpUse]",
    findings: "Sequence[Finding]",
    catalogue: "Catalogue",
    costs: "ModelCosts | None",
) -> None:
    from tflm_forge.commands._model_costs import words_of_dearest
    from tflm_forge.console import show_note, show_table, show_warning
    from tflm_forge.model.metadata import min_runtime_version
    from tflm_forge.ops.hash import format_op_hash, op_hash

    layers = sum(len(graph.operators) for graph in model.subgraphs)
    facts = [
        ("file", f"{model.name}, {len(model.data):,} bytes"),
        ("made by", model.description or "-"),
        ("for TFLite", min_runtime_version(model) or "-"),
        ("subgraphs", len(model.subgraphs)),
        ("layers", layers),
        (
            "op set",
            f"{len(ops)} ops, hash {format_op_hash(op_hash(ops))}; {len(model.opcodes)} opcodes in the file",
        ),
    ]
    show_table("Model", ("", ""), facts)
    _show_ops(ops, catalogue, costs)
    tensors = [("in", *_tensor_cells(t)) for t in model.inputs] + [("out", *_tensor_cells(t)) for t in model.outputs]
    show_table("Inputs and outputs", ("", "name", "type", "shape", "scale", "zero point"), tensors, right=(4, 5))
    for finding in findings:
        if finding.silenced:
            show_note(f"silenced: {finding.id}: {finding.words} In forge.toml: {finding.silenced}")
        elif finding.severity == "warning":
            show_warning(f"{finding.id}: {finding.text}")
        elif finding.severity == "note" and finding.id != _SHOWN_AS_FACT:
            show_note(f"note: {finding.text}")
    for text in words_of_dearest(costs):
        show_note(f"note: {text}")


def _show_ops(ops: "Sequence[OpUse]", catalogue: "Catalogue", costs: "ModelCosts | None") -> None:
    from tflm_forge.commands._model_costs import cost_cell, cost_column
    from tflm_forge.console import show_table

    limits = {use.name: row.max_version if (row := catalogue.find(use)) else "-" for use in ops}
    rows = [
        (use.name, use.version, limits[use.name], use.count, *cost_cell(costs, use), _short(use.first_layer))
        for use in ops
    ]
    columns = ("op", "version", f"{catalogue.runtime} up to", "layers", *cost_column(costs), "first used by")
    show_table("Op set", columns, rows, right=tuple(range(1, len(columns) - 1)))


def _short(label: str) -> str:
    """Return the first name of a fused layer, cut to what a table takes; --json has it whole."""
    name, *others = label.split(";")
    return f"{name[:_LABEL_COLUMNS]}..." if others or len(name) > _LABEL_COLUMNS else name


def _tensor_cells(tensor: "Tensor") -> tuple[object, ...]:
    quantization = tensor.quantization
    scale = f"{quantization.scales[0]:.6g}" if quantization and quantization.scales else "-"
    zero = quantization.zero_points[0] if quantization and quantization.zero_points else "-"
    return tensor.name, tensor.type, list(tensor.shape), scale, zero


def _as_json(
    model: "Model",
    ops: "Sequence[OpUse]",
    findings: "Sequence[Finding]",
    catalogue: "Catalogue",
    reasons: "Sequence[str]",
) -> dict[str, object]:
    from tflm_forge.commands.doctor import finding_json
    from tflm_forge.model.metadata import min_runtime_version
    from tflm_forge.ops.hash import format_op_hash, op_hash

    return {
        "tflm_forge_inspect": 1,
        "model": model.name,
        "bytes": len(model.data),
        "sha256": model.sha256,
        "description": model.description,
        "subgraphs": len(model.subgraphs),
        "opcodes": len(model.opcodes),
        "op_hash": format_op_hash(op_hash(ops)),
        "ops": [
            {
                "name": use.name,
                "builtin_code": use.builtin_code,
                "custom_name": use.custom_name,
                "version": use.version,
                "count": use.count,
                "first_layer": use.first_layer,
                "types": [{"inputs": list(inputs), "outputs": list(outputs)} for inputs, outputs in use.types],
            }
            for use in ops
        ],
        "inputs": [_tensor_json(tensor) for tensor in model.inputs],
        "outputs": [_tensor_json(tensor) for tensor in model.outputs],
        "min_runtime_version": min_runtime_version(model) or None,
        "findings": [finding_json(finding) for finding in findings],
        "runtime": {"name": catalogue.runtime, "version": catalogue.version},
        "reasons": list(reasons),
    }


def _tensor_json(tensor: "Tensor") -> dict[str, object]:
    quantization = tensor.quantization
    return {
        "name": tensor.name,
        "type": tensor.type,
        "shape": list(tensor.shape),
        "bytes": tensor.size_bytes,
        "scales": list(quantization.scales) if quantization else [],
        "zero_points": list(quantization.zero_points) if quantization else [],
    }
