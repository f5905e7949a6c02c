"""`forge size`: where flash and RAM of a firmware went."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tflm_forge.commands._options import JsonOption


def run(
    target: Annotated[Path, typer.Argument(metavar="DIR|ELF", help="Folder of a build, or an ELF file.")],
    top: Annotated[
        int, typer.Option("--top", min=0, metavar="N", help="How many of the largest symbols to show.")
    ] = 15,
    versus: Annotated[
        Literal["all-ops"] | None,
        typer.Option("--versus", help="Build the same firmware with every op registered, and compare."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show flash and RAM of a firmware: model, code, constants, arena, and the largest symbols.

    With --versus all-ops, what exact registration saves; the next build puts the figure into the manifest.

    Example: forge size build/digits-stm32f4
    """
    from tflm_forge.console import show_json, show_table
    from tflm_forge.elf import read_elf
    from tflm_forge.size import measure_size

    if versus is not None:
        _show_versus(target, as_json=as_json)
        return
    path = target / "firmware.elf" if target.is_dir() else target
    report = measure_size(read_elf(path), top=top)
    if as_json:
        show_json(
            {
                "tflm_forge_size": 1,
                "elf": path.as_posix(),
                "flash_bytes": report.flash_bytes,
                "model_bytes": report.model_bytes,
                "code_bytes": report.code_bytes,
                "constant_bytes": report.constant_bytes,
                "without_model_bytes": report.without_model_bytes,
                "ram_bytes": report.ram_bytes,
                "arena_bytes": report.arena_bytes,
                "stack_bytes": report.stack_bytes,
                "sections": [
                    {"name": s.name, "address": f"0x{s.address:08X}", "bytes": s.size_bytes} for s in report.sections
                ],
                "largest": [
                    {"name": s.name, "address": f"0x{s.address:08X}", "bytes": s.size_bytes} for s in report.largest
                ],
            }
        )
        return
    other_ram = report.ram_bytes - report.arena_bytes - report.stack_bytes
    rows = [
        ("flash", "model", f"{report.model_bytes:,}"),
        ("", "code", f"{report.code_bytes:,}"),
        ("", "constants", f"{report.constant_bytes:,}"),
        ("", "without the model", f"{report.without_model_bytes:,}"),
        ("", "total", f"{report.flash_bytes:,}"),
        ("RAM", "tensor arena", f"{report.arena_bytes:,}"),
        ("", "stack", f"{report.stack_bytes:,}"),
        ("", "statics", f"{other_ram:,}"),
        ("", "total", f"{report.ram_bytes:,}"),
    ]
    show_table(f"Size of {path}", ("region", "what", "bytes"), rows, right=(2,))
    if report.largest:
        largest = [(f"{s.size_bytes:,}", f"0x{s.address:08X}", s.name) for s in report.largest]
        show_table("Largest symbols in flash, without the model", ("bytes", "address", "symbol"), largest, right=(0,))


def _show_versus(folder: Path, *, as_json: bool) -> None:
    from tflm_forge.console import show_json, show_note, show_table
    from tflm_forge.versus import compare_with_all_ops

    result = compare_with_all_ops(folder, show_note)
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
