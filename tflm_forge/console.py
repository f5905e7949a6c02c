"""What a person sees: results on stdout, progress and errors on stderr. The only user of rich."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tflm_forge.errors import ForgeError

_FILE_COLUMNS = 200
"""Width of tables where stdout is no terminal: a file or a pipe has no edge to fold at."""

_out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _FILE_COLUMNS)
_err = Console(stderr=True, highlight=False, soft_wrap=True)


def _visible(value: object) -> str:
    """Return text without control characters: names in a model or lines of a device may hold any."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in str(value))


def show_text(text: str) -> None:
    """Print a line of result, as it is."""
    _out.print(_visible(text), markup=False)


def show_json(value: Any) -> None:
    """Print a result as JSON with stable key order."""
    sys.stdout.write(json.dumps(value, indent=2, sort_keys=False) + "\n")


def show_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()
) -> None:
    """Print a table of results.

    Args:
        title: the line above the table.
        columns: the column heads.
        rows: one sequence of cells per row; cells are shown with str().
        right: indices of the columns that are aligned to the right (numbers).
    """
    _out.print(title, markup=False, style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(columns))
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(_visible(cell)) for cell in row))
    _out.print(table, soft_wrap=False)


def show_note(text: str) -> None:
    """Print a remark that is not part of the result, on stderr."""
    _err.print(_visible(text), markup=False, style="dim")


def show_warning(text: str) -> None:
    """Print a warning on stderr."""
    _err.print(f"[yellow]warning:[/] {escape(_visible(text))}")


def show_error(error: ForgeError) -> None:
    """Print an expected error on stderr: what, every reason, what to do."""
    _err.print(f"[bold red]error:[/] {escape(_visible(error.message))}")
    for reason in error.reasons:
        _err.print(f"  - {escape(_visible(reason))}")
    for line in error.hint.splitlines():
        _err.print(f"  {escape(_visible(line))}", style="dim" if error.reasons else None)


@contextlib.contextmanager
def show_progress(text: str) -> Iterator[None]:
    """Show on stderr that something long is under way; a spinner on a terminal, one line elsewhere."""
    if _err.is_terminal:
        with _err.status(escape(text)):
            yield
    else:
        show_note(text)
        yield


@contextlib.contextmanager
def show_steps(text: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show on stderr how far long work has come; a bar a step on a terminal, one line elsewhere.

    Yields a function that takes the name of a step, how much of it is done, and how much there is.
    """
    if not _err.is_terminal:
        show_note(text)
        yield lambda *_: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_err, transient=True) as progress:
        progress.console.print(escape(_visible(text)), style="dim")
        bars = {}

        def show(step: str, done: int, total: int) -> None:
            if step not in bars:
                bars[step] = progress.add_task(escape(step), total=total)
            progress.update(bars[step], completed=done, total=total)

        yield show
