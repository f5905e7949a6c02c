"""`forge flash`: puts finished firmware onto a board, and makes sure that the board runs this very build."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._flashing import EraseOption, Flashing, GdbServerOption, SerialNumberOption
from tflm_forge.commands._options import BoardOption, JsonOption

if TYPE_CHECKING:
    from tflm_forge.board import Board
    from tflm_forge.config import Config
    from tflm_forge.link.session import Session
    from tflm_forge.runners import FlashJob
    from tflm_forge.runners._flashing import Flashed

_DRY_GDB_PORT, _DRY_UART_PORT = 3333, 5555


def run(
    target: Annotated[
        Path | None,
        typer.Argument(metavar="DIR|ELF", help="Folder of a build, or an ELF file; default: that of forge.toml."),
    ] = None,
    board: BoardOption = None,
    runner: Annotated[
        str | None,
        typer.Option("--runner", metavar="RUNNER", help="Default: the first of the board's that is installed."),
    ] = None,
    erase: EraseOption = False,
    serial_number: SerialNumberOption = None,
    gdb_server: GdbServerOption = None,
    port: Annotated[
        str | None,
        typer.Option("--port", metavar="URL", help="Where the board answers; default: found by its USB id."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the commands instead of running them; needs no tool.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Flash a board, read the flash back, and ask the board which build it runs.

    Runners: openocd, pyocd, stflash, dfu, gdb, uf2, jlink, platformio; `forge boards` shows those of a board. Exit 0
    means that the board runs this very build, or, with a warning, that there was no port to ask it.

    Example: forge flash build/digits-stm32f4 --runner openocd
    """
    from tflm_forge.commands._flashing import AUTO_PORT, choose_flashing
    from tflm_forge.config import load_config
    from tflm_forge.console import show_json, show_table, show_text

    config = load_config(Path.cwd())
    elf = _find_elf(target, config)
    wanted = _find_board(elf, board, config)
    named = port or config.test.port
    named = None if named == AUTO_PORT else named
    flashing = choose_flashing(
        wanted,
        config.flash,
        runner=runner,
        erase=erase,
        serial_number=serial_number,
        gdb_server=gdb_server,
        port=named,
        dry_run=dry_run,
    )
    job = flashing.job(wanted, elf, named)
    if dry_run:
        commands = _plan(flashing, job)
        if as_json:
            show_json({"tflm_forge_flash": 1, "dry_run": True, "runner": flashing.runner.name, "commands": commands})
        else:
            show_text("\n".join(commands))
        return
    flashed, answer = _flash_and_ask(flashing, job)
    if as_json:
        show_json(_as_json(job, flashed, answer))
    else:
        show_table(f"Flashed {elf} onto {wanted.name}", ("", ""), _as_rows(flashing, job, flashed, answer))


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """Which build the board runs, and where it said so; or why it was not asked."""

    build_id: bytes | None
    url: str
    why_not: str = ""


def _find_elf(target: Path | None, config: "Config") -> Path:
    from tflm_forge.errors import UsageError

    if target is not None:
        return target / "firmware.elf" if target.is_dir() else target
    table = config.build
    folder = table.output
    if folder is None and table.model is not None and table.board is not None:
        names = "-".join(path.stem for path in (table.model, *table.with_))
        folder = Path("build") / f"{names}-{Path(table.board).stem}"
    if folder is None:
        raise UsageError("no firmware given", hint="Name the folder of a build, or its firmware.elf.")
    return folder / "firmware.elf"


def _find_board(elf: Path, name: str | None, config: "Config") -> "Board":
    """Return the board the firmware is for: the one its manifest names, which an option can not change."""
    from tflm_forge.commands._options import choose_board
    from tflm_forge.errors import UsageError
    from tflm_forge.manifest import MANIFEST_NAME, read_build

    if (elf.parent / MANIFEST_NAME).is_file():
        built_for = read_build(elf.parent).board
        board = choose_board(name or _path_or_name(config, built_for))
        if board.name != built_for:
            raise UsageError(
                f"{elf}: built for {built_for}, not for {board.name}",
                hint=f"Build it: forge build --board {board.name}.",
            )
        return board
    chosen = name or config.build.board
    if chosen is None:
        raise UsageError(f"{elf}: no {MANIFEST_NAME} beside it says for which board it is", hint="Add --board NAME.")
    return choose_board(chosen)


def _path_or_name(config: "Config", built_for: str) -> str:
    """Return forge.toml's board file where it is the board's, else the name."""
    board = config.build.board or ""
    return board if board.endswith(".toml") and Path(board).stem == built_for else built_for


def _plan(flashing: Flashing, job: "FlashJob") -> list[str]:
    """Return the commands of a job as a shell takes them, and write the files that they name."""
    import shlex
    from dataclasses import replace

    from tflm_forge.runners._flashing import show_plan, write_files
    from tflm_forge.runners.qemu import empty_command

    first = []
    emulator = job.board.emulator
    if flashing.is_emulated and emulator is not None:
        job = replace(job, gdb_server=f"localhost:{_DRY_GDB_PORT}")
        first = [shlex.join(empty_command(emulator, gdb_port=_DRY_GDB_PORT, uart_port=_DRY_UART_PORT)) + " &"]
    plan = flashing.runner.plan(job)
    write_files(plan)
    return [*first, *show_plan(plan)]


def _flash_and_ask(flashing: Flashing, job: "FlashJob") -> "tuple[Flashed, _Answer]":
    from tflm_forge.commands._flashing import PORT_BACK_S, find_board_port, flash_board, open_empty_machine
    from tflm_forge.console import show_warning
    from tflm_forge.errors import DeviceError
    from tflm_forge.link.session import open_session

    if flashing.is_emulated:
        with open_empty_machine(job.board, job.image.elf, flashing) as (flashed, session):
            return flashed, _ask(session, job)
    flashed = flash_board(flashing, job)
    url = job.port
    if url is None:
        try:
            url = find_board_port(job.board, serial_number=job.serial_number, wait_s=PORT_BACK_S)
        except DeviceError as error:
            show_warning(f"the build id was not checked: {error.message}. Name the board's port with --port")
            return flashed, _Answer(build_id=None, url="", why_not=error.message)
    with open_session(url, baud=job.board.baud) as session:
        return flashed, _ask(session, job)


def _ask(session: "Session", job: "FlashJob") -> _Answer:
    """Ask the board which build it runs.

    Raises:
        CheckError: another one.
        DeviceError: it does not answer.
    """
    from tflm_forge.errors import CheckError, DeviceError

    try:
        found = session.connect().build_id
    except DeviceError as error:
        raise DeviceError(
            f"{job.board.name} is flashed, but does not answer: {error.message}", hint=error.hint, reasons=error.reasons
        ) from error
    expected = job.image.build_id
    if expected is None:
        return _Answer(build_id=found, url=session.url, why_not="the ELF does not say which build it is")
    if found != expected:
        raise CheckError(
            f"the board on {session.url} runs another build than the one that was flashed",
            reasons=[f"it answers build id {found.hex()}, {job.image.elf} has {expected.hex()}"],
            hint="Is it the port of another board, or did the board not restart?",
        )
    return _Answer(build_id=found, url=session.url)


def _as_json(job: "FlashJob", flashed: "Flashed", answer: _Answer) -> dict[str, object]:
    expected = job.image.build_id
    return {
        "tflm_forge_flash": 1,
        "dry_run": False,
        "elf": job.image.elf.as_posix(),
        "board": job.board.name,
        "runner": flashed.runner,
        "commands": list(flashed.commands),
        "address": f"0x{job.image.address:08X}",
        "bytes": len(job.image.data),
        "read_back": flashed.read_back,
        "chip_id": None if flashed.chip_id is None else f"0x{flashed.chip_id:08X}",
        "build_id": {
            "elf": expected.hex() if expected else None,
            "device": answer.build_id.hex() if answer.build_id else None,
            "port": answer.url or None,
            "not_checked": answer.why_not or None,
        },
        "log": flashed.log.as_posix(),
    }


def _as_rows(flashing: Flashing, job: "FlashJob", flashed: "Flashed", answer: _Answer) -> list[tuple[str, object]]:
    title = flashing.runner.title
    build = f"{answer.build_id.hex()}, as {answer.url} answers" if answer.build_id else ""
    if answer.why_not:
        build = f"not checked: {answer.why_not}"
    return [
        ("runner", f"{flashed.runner} ({title})" if flashed.runner != title else title),
        *([("chip id", f"0x{flashed.chip_id:08X}, as the board file has it")] if flashed.chip_id is not None else []),
        ("image", f"{len(job.image.data):,} bytes from 0x{job.image.address:08X}"),
        ("read back", "equal to the image" if flashed.read_back else f"not possible with {title}"),
        ("build id", build),
        ("log", flashed.log),
    ]
