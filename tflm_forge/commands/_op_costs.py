"""What `forge ops --cost` shows: the flash that each operator costs."""

from pathlib import Path
from typing import TYPE_CHECKING

from tflm_forge.config import BuildSettings, load_config
from tflm_forge.errors import UsageError

if TYPE_CHECKING:
    from tflm_forge.board import Board
    from tflm_forge.costs import CostTable, OpCost

DEFAULT_CORE = "cortex-m4f"


def show_costs(
    name: str | None,
    *,
    runtime: str,
    board: str | None,
    core: str | None,
    kernel_set: str | None,
    measure: bool,
    as_json: bool,
) -> None:
    """Show the costs of a runtime's operators, or of one of them; measure them when asked to.

    Raises:
        UsageError: an option names what there is not, or no table has been measured.
        ToolError: a tool is missing or failed.
    """
    from tflm_forge.costs import find_table
    from tflm_forge.costs.measuring import choose_kernel_set, measuring_command

    target = _choose_target(board, core)
    settings = BuildSettings(runtime=runtime, kernel_set=kernel_set)
    settings = BuildSettings(runtime=runtime, kernel_set=choose_kernel_set(target, settings))
    if measure:
        table = _measure(target, settings)
    else:
        version = _version(settings)
        kernels = str(settings.kernel_set)
        found = find_table(runtime=runtime, version=version, core=target.core.name, kernel_set=kernels)
        if found is None:
            raise UsageError(
                f"no table of costs for {runtime} {version}, kernels {kernels}, on {target.core.name}",
                hint="Measure it, which takes some minutes: "
                + measuring_command(runtime=runtime, core=target.core.name, kernel_set=kernels),
            )
        table = found
    _show(table, _rows(table, name), as_json=as_json)


def _choose_target(board: str | None, core: str | None) -> "Board":
    from tflm_forge.commands._options import choose_board as find_board
    from tflm_forge.costs.measuring import choose_board

    if board and core:
        raise UsageError("--board and --core exclude each other", hint="A board has one core.")
    if core is None:
        board = board or load_config(Path.cwd()).build.board
    # Of all boards with a core always the same one is linked, so that tables can be compared.
    return choose_board(find_board(board).core.name if board else core or DEFAULT_CORE)


def _version(settings: BuildSettings) -> str:
    from tflm_forge.runtimes import load_catalogue

    return load_catalogue(settings).version


def _measure(board: "Board", settings: BuildSettings) -> "CostTable":
    from tflm_forge.console import show_note, show_steps
    from tflm_forge.costs import table_path
    from tflm_forge.costs.measuring import measure_costs

    with show_steps(f"linking firmware of {settings.runtime} with and without each op") as on_step:
        table = measure_costs(board, settings, show_note, on_step)
    show_note(f"wrote {table_path(table)}")
    return table


def _rows(table: "CostTable", name: str | None) -> "list[OpCost]":
    from tflm_forge.registry import unknown_name

    if name is not None and name not in {cost.name for cost in table.costs}:
        if name in table.not_measured:
            raise UsageError(f"{name} has not been measured: {table.not_measured[name]}")
        raise unknown_name(f"op of runtime {table.runtime}", name, {cost.name for cost in table.costs})
    rows = [cost for cost in table.costs if name in (None, cost.name)]
    return sorted(rows, key=lambda cost: (-cost.alone_bytes, cost.name, cost.types))


def _show(table: "CostTable", rows: "list[OpCost]", *, as_json: bool) -> None:
    from tflm_forge.console import show_json, show_note, show_table, show_text

    if as_json:
        show_json(_as_json(table, rows))
        return
    cells = [(c.name, c.types.lower() or "any type", f"{c.alone_bytes:,}", f"{c.added_bytes:,}") for c in rows]
    show_table(
        f"Flash of each op, bytes: {table.runtime} {table.version}, kernels {table.kernel_set}, on {table.core}",
        ("op", "registered for", "alone", "added"),
        cells,
        right=(2, 3),
    )
    show_text(f"alone: the first op of firmware that has none, {table.no_op_bytes:,} bytes")
    show_text(f"added: one more beside the {len(table.common_ops)} common ops. In a model it is between both, mostly:")
    show_text("       ops share code, and who comes first brings it in")
    for op, reason in table.not_measured.items():
        show_text(f"not measured: {op}: {reason}")
    for note in _notes(table):
        show_note(note)


def _notes(table: "CostTable") -> list[str]:
    from tflm_forge.costs.measuring import COMPILER, compiler_version
    from tflm_forge.proc import has_tool

    origin = "shipped with forge" if table.is_shipped else "measured on this machine"
    notes = [f"{origin}; GCC {table.compiler}, {table.flags}"]
    if has_tool(COMPILER) and (own := compiler_version()) != table.compiler:
        notes.append(f"your compiler is GCC {own}; measure with it: {table.command}")
    return notes


def _as_json(table: "CostTable", rows: "list[OpCost]") -> dict[str, object]:
    return {
        "tflm_forge_ops_cost": 1,
        "runtime": table.runtime,
        "version": table.version,
        "kernel_set": table.kernel_set,
        "core": table.core,
        "board": table.board,
        "compiler": table.compiler,
        "flags": table.flags,
        "command": table.command,
        "is_shipped": table.is_shipped,
        "no_op_bytes": table.no_op_bytes,
        "all_ops_bytes": table.all_ops_bytes,
        "common_ops": list(table.common_ops),
        "not_measured": dict(table.not_measured),
        "ops": [
            {
                "name": cost.name,
                "types": cost.types,
                "call": cost.call,
                "alone_bytes": cost.alone_bytes,
                "added_bytes": cost.added_bytes,
            }
            for cost in rows
        ],
    }
