"""`forge size`: where flash and RAM of a firmware went, what changed, and why a symbol is there."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tflm_forge.commands._options import JsonOption
from tflm_forge.errors import UsageError

if TYPE_CHECKING:
    from tflm_forge.config import Config
    from tflm_forge.reports.size_view import SizeView
    from tflm_forge.size.items import Sizes

_ELF_NAME = "firmware.elf"
_MAGIC = b"\x7fELF"
_TOP = 10

By = Literal["group", "op", "layer", "file", "symbol", "section"]


def run(
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR|ELF|MODEL",
            help="Folder of a build, an ELF file, or a .tflite that was built; default: the build of forge.toml.",
        ),
    ] = None,
    by: Annotated[By | None, typer.Option("--by", help="Add everything up by this, instead of the overview.")] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=0, metavar="N", help=f"How many rows of a table to show; default {_TOP}.")
    ] = None,
    board: Annotated[
        str | None,
        typer.Option("--board", "-b", metavar="BOARD", help="Board with the limits; default: the build's own."),
    ] = None,
    diff: Annotated[
        Path | None,
        typer.Option("--diff", metavar="OLD", help="Compare with an older ELF, folder, or file of `size --json`."),
    ] = None,
    why: Annotated[
        str | None,
        typer.Option("--why", metavar="SYMBOL", help="Show who refers to a symbol, from the reset vector on."),
    ] = None,
    versus: Annotated[
        Literal["all-ops"] | None,
        typer.Option("--versus", help="Build the same firmware with every op registered, and compare."),
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="One line only, for a log.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown, for a pull request.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write one page with a map to click into.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say for every byte of flash and RAM whose it is: model, operators, interpreter, libraries, board.

    Exit 7 when firmware is over the budget of [size] in forge.toml.

    Example: forge size build/digits-stm32f4 --by op
    """
    from tflm_forge.config import load_config

    _refuse_both(short=short, markdown=markdown, json=as_json)
    for alone, wanted in (("--why", why), ("--versus", versus)):
        if wanted is not None and (by or diff or html or short or markdown):
            raise UsageError(f"{alone} is a question of its own: besides it there is only --json")
    config = load_config(Path.cwd())
    elf = _find_elf(target, board, config)
    if why is not None:
        _show_why(elf, why, as_json=as_json)
        return
    if versus is not None:
        _show_versus(elf.parent, as_json=as_json)
        return
    view = _make_view(elf, board, diff, config)
    if html is not None:
        _write_html(html, view)
    _show(view, by, top, short=short, markdown=markdown, as_json=as_json)
    if view.verdict is not None:
        if view.verdict.not_checked:
            from tflm_forge.console import show_note

            show_note("growth_max is not checked: it needs --diff OLD")
        view.verdict.raise_if_over()


def _refuse_both(**forms: bool) -> None:
    chosen = [f"--{name}" for name, wanted in forms.items() if wanted]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} can not be given together")


def _find_elf(target: Path | None, board: str | None, config: "Config") -> Path:
    """Return the ELF of a folder, of a model's build, or of the build of forge.toml.

    Raises:
        UsageError: nothing is named, or a model has no board.
    """
    build = config.build
    if target is None:
        target = build.output or build.model
        if target is None:
            raise UsageError("no firmware given", hint="Name the folder of a build, an ELF file, or a model.")
    if target.suffix == ".tflite":
        name = board or build.board
        if name is None:
            raise UsageError(f"{target}: which board is it built for?", hint="Add --board NAME, or name the folder.")
        stems = [target.stem, *(path.stem for path in build.with_ if target == build.model)]
        folder = build.output if build.output and target == build.model else None
        target = folder or Path("build") / f"{'-'.join(stems)}-{Path(name).stem}"
    return target if target.is_file() or (target.suffix and not target.is_dir()) else target / _ELF_NAME


def _make_view(elf: Path, board: str | None, old: Path | None, config: "Config") -> "SizeView":
    from tflm_forge.reports.size_view import SizeView
    from tflm_forge.size.budget import check_budget
    from tflm_forge.size.diff import compare_sizes

    sizes, notes = _read_elf_sizes(elf)
    flash_limit, ram_limit, board_name = _limits(elf, board)
    compared = None if old is None else compare_sizes(_read_old(old), sizes)
    return SizeView(
        title=sizes.name,
        elf=elf.as_posix(),
        sizes=sizes,
        board=board_name,
        flash_limit_bytes=flash_limit,
        ram_limit_bytes=ram_limit,
        diff=compared,
        verdict=check_budget(config.size, sizes, compared),
        notes=notes,
    )


def _read_elf_sizes(elf: Path) -> "tuple[Sizes, tuple[str, ...]]":
    from tflm_forge.config import load_config
    from tflm_forge.ops.own import name_own_sources
    from tflm_forge.size import attribute
    from tflm_forge.size.items import collect_items

    attribution = attribute(elf, own_sources=name_own_sources(load_config(Path.cwd()).op))
    return collect_items(attribution, _title(elf)), attribution.notes


def _read_old(old: Path) -> "Sizes":
    """Read the older build: a folder, an ELF, or JSON; its content says which."""
    from tflm_forge.reports.size_json import read_sizes

    path = old / _ELF_NAME if old.is_dir() else old
    try:
        with path.open("rb") as file:
            is_elf = file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror}", hint="--diff takes an older build.") from error
    return _read_elf_sizes(path)[0] if is_elf else read_sizes(path)


def _title(elf: Path) -> str:
    """Return the firmware in words: from the manifest beside the ELF, or else its path."""
    from tflm_forge.manifest import read_build

    try:
        facts = read_build(elf.parent)
    except UsageError:
        return elf.as_posix()
    return f"{', '.join(facts.model_names)} on {facts.board}, runtime {facts.settings.runtime}"


def _limits(elf: Path, board: str | None) -> tuple[int | None, int | None, str]:
    """Return flash and RAM of the board, and its name; a board named by the manifest alone may be unknown here.

    Raises:
        UsageError: the board that the user named is not known.
    """
    from tflm_forge.board import load_board
    from tflm_forge.manifest import read_build

    try:
        found = load_board(board or read_build(elf.parent).board)
    except UsageError:
        if board is not None:
            raise
        return None, None, ""
    return found.flash.length_bytes, found.ram.length_bytes, found.name


def _show(view: "SizeView", by: By | None, top: int | None, *, short: bool, markdown: bool, as_json: bool) -> None:
    from tflm_forge.console import show_json, show_text

    if as_json:
        from tflm_forge.reports.size_json import size_to_json

        show_json(size_to_json(view, by, top))
    elif markdown:
        from tflm_forge.reports.size_markdown import size_to_markdown

        show_text(size_to_markdown(view, by or "symbol", _TOP if top is None else top).rstrip("\n"))
    elif short:
        show_text(view.line)
    else:
        _show_text(view, by, _TOP if top is None else top)


def _show_text(view: "SizeView", by: By | None, top: int) -> None:
    import sys

    from tflm_forge.console import show_note, show_table
    from tflm_forge.reports import size_text

    block = size_text.BLOCK if (sys.stdout.encoding or "").lower().startswith("utf") else size_text.PLAIN_BLOCK
    tables = [size_text.region_table(view, block)]
    if by is not None:
        tables.append(size_text.key_table(view, by, top, block))
    else:
        tables.append(size_text.group_table(view, block))
        if view.diff is None and top:
            tables.append(size_text.symbol_table(view, top))
    if (changes := size_text.diff_table(view, by, top)) is not None:
        tables.append(changes)
    for index, table in enumerate(tables):
        if table.rows:
            show_table(
                f"\n{table.title}" if index and table.title else table.title,
                table.columns,
                table.rows,
                right=table.right,
            )
    for note in view.notes:
        show_note(note)


def _write_html(path: Path, view: "SizeView") -> None:
    from tflm_forge.console import show_note
    from tflm_forge.files import write_if_changed
    from tflm_forge.reports.size_html import size_to_html

    try:
        write_if_changed(path, size_to_html(view))
    except OSError as error:
        raise UsageError(f"{path}: can not write: {error.strerror}", hint="Choose another file.") from error
    show_note(f"wrote {path}")


def _show_why(elf: Path, symbol: str, *, as_json: bool) -> None:
    from tflm_forge.console import show_json, show_text
    from tflm_forge.reports.size_why import reasons_to_json, reasons_to_lines
    from tflm_forge.size.why import find_reasons

    reasons = find_reasons(elf, symbol)
    if as_json:
        show_json(reasons_to_json(reasons))
        return
    for line in reasons_to_lines(reasons):
        show_text(line)


def _show_versus(folder: Path, *, as_json: bool) -> None:
    from tflm_forge.config import load_config
    from tflm_forge.console import show_json, show_note, show_table
    from tflm_forge.versus import compare_with_all_ops

    result = compare_with_all_ops(folder, show_note, load_config(Path.cwd()).op)
    small, large = result.minimal, result.all_ops
    if as_json:
        show_json(
            {
                "tflm_forge_versus": 1,
                "ops": result.minimal_ops,
                "without_model_bytes": small.without_model_bytes,
                "all_ops": result.all_ops_count,
                "all_ops_without_model_bytes": large.without_model_bytes,
                "saving_bytes": result.saving_bytes,
            }
        )
        return
    rows = [
        ("exact", result.minimal_ops, f"{small.without_model_bytes:,}", f"{small.ram_bytes:,}"),
        ("all ops", result.all_ops_count, f"{large.without_model_bytes:,}", f"{large.ram_bytes:,}"),
        ("saving", "", f"{result.saving_bytes:,}", f"{large.ram_bytes - small.ram_bytes:,}"),
    ]
    columns = ("registered", "ops", "flash without the model", "RAM")
    show_table(f"Exact registration against all ops: {folder}", columns, rows, right=(1, 2, 3))
