"""`forge inspect`: what a model is made of, and whether a runtime can run it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._options import JsonOption, RuntimeOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tflm_forge.model import Finding, Model, OpUse, Tensor
    from tflm_forge.ops.catalogue import Catalogue

_LABEL_COLUMNS = 60


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The .tflite file.")],
    runtime: RuntimeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a model's op set, inputs and outputs, and what stands against running it; exit 3 when something does.

    Example: forge inspect model.tflite
    """
    from tflm_forge.console import show_json
    from tflm_forge.errors import ModelError
    from tflm_forge.model import find_findings, load_model, op_set
    from tflm_forge.runtimes import default_runtime, find_reasons, load_runtime

    loaded = load_model(model)
    ops = op_set(loaded)
    findings = find_findings(loaded)
    catalogue = load_runtime(runtime or default_runtime()).catalogue()
    reasons = find_reasons(loaded, catalogue)
    if as_json:
        show_json(_as_json(loaded, ops, findings, catalogue, reasons))
    else:
        _show(loaded, ops, findings, catalogue)
    if reasons:
        name = f"{catalogue.runtime} {catalogue.version}"
        raise ModelError(f"{loaded.name}: runtime {name} can not run this model", reasons=reasons)


def _show(model: "Model", ops: "Sequence[OpUse]", findings: "Sequence[Finding]", catalogue: "Catalogue") -> None:
    from tflm_forge.console import show_note, show_table
    from tflm_forge.ops.hash import format_op_hash, op_hash

    layers = sum(len(graph.operators) for graph in model.subgraphs)
    facts = [
        ("file", f"{model.name}, {len(model.data):,} bytes"),
        ("made by", model.description or "-"),
        ("subgraphs", len(model.subgraphs)),
        ("layers", layers),
        (
            "op set",
            f"{len(ops)} ops, hash {format_op_hash(op_hash(ops))}; {len(model.opcodes)} opcodes in the file",
        ),
    ]
    show_table("Model", ("", ""), facts)
    limits = {use.name: row.max_version if (row := catalogue.find(use)) else "-" for use in ops}
    rows = [(use.name, use.version, limits[use.name], use.count, _short(use.first_layer)) for use in ops]
    columns = ("op", "version", f"{catalogue.runtime} up to", "layers", "first used by")
    show_table("Op set", columns, rows, right=(1, 2, 3))
    tensors = [("in", *_tensor_cells(t)) for t in model.inputs] + [("out", *_tensor_cells(t)) for t in model.outputs]
    show_table("Inputs and outputs", ("", "name", "type", "shape", "scale", "zero point"), tensors, right=(4, 5))
    for finding in findings:
        if finding.severity == "note":
            show_note(f"note: {finding.words} {finding.remedy}".strip())


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
        "findings": [
            {"id": f.id, "severity": f.severity, "layer": f.layer, "words": f.words, "remedy": f.remedy}
            for f in findings
        ],
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
