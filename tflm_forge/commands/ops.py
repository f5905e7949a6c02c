"""`forge ops`: what a runtime can run."""

from pathlib import Path
from typing import Annotated

import typer

from tflm_forge.commands._options import BoardOption, JsonOption, KernelSetOption, RuntimeOption
from tflm_forge.errors import UsageError


def run(
    name: Annotated[str | None, typer.Argument(metavar="OP", help="Show this op alone, with its sources.")] = None,
    runtime: RuntimeOption = None,
    cost: Annotated[bool, typer.Option("--cost", help="Show what flash each op costs on a core instead.")] = False,
    board: BoardOption = None,
    core: Annotated[
        str | None,
        typer.Option("--core", metavar="CORE", help="With --cost: the core; default the board's, else cortex-m4f."),
    ] = None,
    kernel_set: KernelSetOption = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="With --cost: link firmware with and without each op, and keep the table.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the ops of a runtime, and your own of forge.toml: Add method, highest version, tensor types.

    With --cost: the flash that each op costs, from a table that forge ships or that --measure made.

    Example: forge ops --runtime bundled --cost
    """
    from tflm_forge.runtimes import default_runtime

    if cost:
        from tflm_forge.commands._op_costs import show_costs

        show_costs(
            name,
            runtime=runtime or default_runtime(),
            board=board,
            core=core,
            kernel_set=kernel_set,
            measure=measure,
            as_json=as_json,
        )
        return
    if board or core or kernel_set or measure:
        raise UsageError("--board, --core, --kernel-set and --measure are for --cost", hint="Add --cost.")
    _list_ops(name, runtime or default_runtime(), as_json=as_json)


def _list_ops(name: str | None, runtime: str, *, as_json: bool) -> None:
    from tflm_forge.config import BuildSettings, load_config
    from tflm_forge.console import show_json, show_table, show_text
    from tflm_forge.ops.catalogue import find_by_name
    from tflm_forge.runtimes import load_catalogue

    own_ops = load_config(Path.cwd()).op
    catalogue = load_catalogue(BuildSettings(runtime=runtime, own_ops=own_ops))
    ops = [find_by_name(catalogue, name)] if name else list(catalogue.ops.values())
    if as_json:
        show_json(
            {
                "runtime": catalogue.runtime,
                "version": catalogue.version,
                "ops": [
                    {
                        "name": op.name,
                        "builtin_code": op.builtin_code,
                        "custom_name": op.custom_name,
                        "add_method": op.add_method,
                        "registrations": dict(op.registrations),
                        "max_version": op.max_version,
                        "version_source": op.version_source,
                        "types": list(op.types),
                        "sources": list(op.sources),
                    }
                    for op in ops
                ],
            }
        )
        return
    rows = [(op.name, op.builtin_code, op.add_method, op.max_version, " ".join(op.types)) for op in ops]
    title = f"Ops of {catalogue.runtime} {catalogue.version}"
    show_table(title, ("op", "code", "method", "up to version", "types"), rows, right=(1, 3))
    if name:
        show_text(f"version: {ops[0].version_source}")
        show_text(f"sources: {' '.join(ops[0].sources)}")
