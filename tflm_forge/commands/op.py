"""`forge op`: operators of one's own: the first files of a kernel, and its test."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tflm_forge.commands._options import BoardOption, JsonOption, RuntimeOption, choose_board

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tflm_forge.board import Board
    from tflm_forge.config import Config, OpTable
    from tflm_forge.verify.op_test import CaseResult

app = typer.Typer(
    name="op",
    help="Write and test operators of your own; docs/custom-ops.md leads through it.\n\nExample: forge op new MyOp",
    no_args_is_help=True,
)

TEST_FOLDER = Path("build") / "op-test"
_DEFAULT_BOARD = "mps2-an386"
_RUNTIMES = ("bundled", "tflm")


@app.command("new")
def write_op(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Exact name of the custom op in the model.")],
    like: Annotated[
        str,
        typer.Option(
            "--like",
            metavar="KIND",
            help="RELU or ADD (element by element), RESHAPE (the same elements), SOFTMAX (rows, with scratch memory).",
        ),
    ] = "RELU",
) -> None:
    """Write the first files of a kernel into ops/, and its [[op]] into forge.toml; nothing is overwritten.

    Example: forge op new MyOp --like SOFTMAX
    """
    import shlex

    from tflm_forge.config import CONFIG_NAME
    from tflm_forge.console import show_text
    from tflm_forge.runtimes import load_runtime
    from tflm_forge.scaffold import scaffold_op

    taken = {op.name: f"runtime {word}" for word in _RUNTIMES for op in load_runtime(word).catalogue().ops.values()}
    made = scaffold_op(Path.cwd(), name, like.upper(), taken)
    words = ("the header", "the kernel", "what it should give, in NumPy", "the cases of its test")
    for path, what in zip(made.files, words, strict=True):
        show_text(f"{path.as_posix():24} {what}")
    show_text(f"{CONFIG_NAME:24} its [[op]]")
    show_text(f"next: forge op test {shlex.quote(name)}")


@app.command("test")
def run_cases(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Ops to test; default: all with a test.")
    ] = None,
    on: Annotated[
        Literal["host", "qemu"] | None,
        typer.Option("--on", help="Only on this computer, or only in QEMU; default: both."),
    ] = None,
    board: BoardOption = None,
    runtime: RuntimeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare kernels with their Python references, case by case: on this computer with sanitizers, and in QEMU.

    The models of the cases are kept in build/op-test/, as case_0.tflite and so on.

    Example: forge op test MyOp --on host
    """
    from tflm_forge.config import load_config
    from tflm_forge.console import show_json, show_table, show_text
    from tflm_forge.errors import CheckError
    from tflm_forge.ops.own import own_name

    config = load_config(Path.cwd())
    tables = _choose_tables(config, names or [])
    target = _choose_board(config, board)
    results = [r for table in tables for r in _test_one(table, config, target, runtime, on)]
    failed = [r for r in results if not r.passed]
    if as_json:
        show_json(_as_json(results))
    else:
        rows = [(r.op, r.case, r.place, "passed" if r.passed else "FAILED", r.detail) for r in results]
        show_table("Cases", ("op", "case", "where", "", ""), rows)
        # Cases often fail of one cause: each log is shown once.
        for result in {r.detail: r for r in reversed(failed)}.values():
            if result.log:
                show_text(f"{result.case}, {result.place}, printed:")
            for line in result.log:
                show_text(f"    {line}")
    if failed:
        reasons = [f"{r.case} ({r.place}): {r.detail}" for r in failed]
        raise CheckError(f"{', '.join(own_name(t) for t in tables)}: a case did not pass", reasons=reasons)
    if not as_json:
        show_text(f"PASSED    {len(results)} cases")


def _choose_tables(config: "Config", names: "Sequence[str]") -> "list[OpTable]":
    from tflm_forge.config import CONFIG_NAME
    from tflm_forge.errors import UsageError
    from tflm_forge.ops.own import own_name
    from tflm_forge.registry import unknown_name

    known = {own_name(table): table for table in config.op}
    for name in names:
        if name not in known:
            raise unknown_name(f"[[op]] of {CONFIG_NAME}", name, known)
    tables = [known[name] for name in names] or [table for table in config.op if table.test is not None]
    if not tables:
        raise UsageError(
            f"{CONFIG_NAME} of this folder has no [[op]] with a test", hint="`forge op new NAME` writes one."
        )
    return tables


def _choose_board(config: "Config", name: str | None) -> "Board":
    from tflm_forge.board import load_board
    from tflm_forge.errors import UsageError

    if name is None:
        board = load_board(config.build.board or _DEFAULT_BOARD)
        return board if board.emulator is not None else load_board(_DEFAULT_BOARD)
    board = choose_board(name)
    if board.emulator is None:
        raise UsageError(f"--board {name}: has no emulator", hint="`forge boards` shows which have one.")
    return board


def _test_one(
    table: "OpTable", config: "Config", board: "Board", runtime: str | None, on: str | None
) -> "list[CaseResult]":
    from tflm_forge.config import BuildSettings
    from tflm_forge.console import show_note
    from tflm_forge.ops.own import own_name
    from tflm_forge.runtimes import default_runtime
    from tflm_forge.verify.op_cases import keep_models, read_cases
    from tflm_forge.verify.op_test import run_in_emulator, run_on_this_computer

    name = own_name(table)
    cases = read_cases(table)
    folder = TEST_FOLDER / table.sources[0].stem
    keep_models(cases, folder)
    results: list[CaseResult] = []
    if on is None and not _runs_on_host(table):
        show_note(f"{name}: not on this computer: that is with runtime bundled, which has no {table.replaces}")
    elif on != "qemu":
        show_note(f"{name}: compiling for this computer")
        results += run_on_this_computer(name, table, cases, folder / "host", board)
    if on != "host":
        word = runtime or config.build.runtime or default_runtime()
        settings = BuildSettings(runtime=word, profile="debug", own_ops=(table,))
        results += run_in_emulator(name, cases, folder / f"{board.name}-{word}", board, settings, show_note)
    return results


def _runs_on_host(table: "OpTable") -> bool:
    from tflm_forge.runtimes import load_runtime

    names = {op.name for op in load_runtime("bundled").catalogue().ops.values()}
    return table.replaces is None or table.replaces in names


def _as_json(results: "Sequence[CaseResult]") -> dict[str, object]:
    return {
        "tflm_forge_op_test": 1,
        "passed": all(r.passed for r in results),
        "cases": [
            {
                "op": r.op,
                "case": r.case,
                "place": r.place,
                "passed": r.passed,
                "detail": r.detail,
                "log": list(r.log),
            }
            for r in results
        ],
    }
