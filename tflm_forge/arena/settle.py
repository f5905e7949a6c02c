"""Decides the arena of a build: measured in an emulator, on a twin's or on the board itself, else estimated."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tflm_forge.arena.emulated import measure_arena
from tflm_forge.arena.estimate import STEP_BYTES, estimate_arena, refuse_arena
from tflm_forge.arena.on_board import measure_on_board
from tflm_forge.board import Board, load_board
from tflm_forge.config import BuildSettings
from tflm_forge.errors import DeviceError, FitError
from tflm_forge.generate import Arena, Project, generate_project
from tflm_forge.link.session import open_session
from tflm_forge.model import Model
from tflm_forge.proc import has_tool
from tflm_forge.runners.qemu import PROGRAM as QEMU
from tflm_forge.runtimes import BuildPlan
from tflm_forge.toolchains import Firmware, load_toolchain, publish

ESTIMATED = "estimated"

_TWIN_FOLDER = "twin"
_MEASURE_FOLDER = "measure"


def settle_arena(
    folder: Path,
    models: Sequence[Model],
    board: Board,
    plan: BuildPlan,
    settings: BuildSettings,
    report: Callable[[str], None],
    measure_on: str | None,
) -> Arena:
    """Find the arena that models need on a board: measured on the board or in an emulator, else estimated.

    Args:
        folder: the project's folder.
        models: all models of the firmware.
        board: the board.
        plan: what is built in.
        settings: how.
        report: gets one line for each step that takes time.
        measure_on: a port of the board itself; None: its emulator, or that of its twin.

    Raises:
        FitError: the models do not fit the board.
        DeviceError: the firmware does not run, or the board on the port has other firmware.
        ToolError: the build failed.
    """
    if measure_on is not None:
        return _measure_on_port(folder / _MEASURE_FOLDER, models, board, plan, settings, report, measure_on)
    bench = _find_bench(board)
    if bench is not None and has_tool(QEMU):
        own = bench.name == board.name
        arena = _measure(folder if own else folder / _TWIN_FOLDER, models, bench, plan, settings, report)
        return arena if own else replace(arena, how=f"{arena.how}; it is the twin of {board.name}")
    *_, limit = _build_with_largest(folder, models, board, plan, settings, _guess(models), report)
    why = f"{QEMU} is not installed" if bench else f"{board.name} has neither an emulator nor a twin that has one"
    report(f"the arena of {limit} bytes is estimated: {why}; --measure-on PORT measures it on the board")
    return Arena(bytes=limit, how=ESTIMATED)


def _measure_on_port(
    folder: Path,
    models: Sequence[Model],
    board: Board,
    plan: BuildPlan,
    settings: BuildSettings,
    report: Callable[[str], None],
    port: str,
) -> Arena:
    measuring = replace(settings, measures_arena=True)
    project, firmware, limit = _build_with_largest(folder, models, board, plan, measuring, _guess(models), report)
    publish(project.folder, firmware)
    report(f"measuring the tensor arena on {port}")
    with open_session(port, baud=board.baud) as session:
        if session.connect().build_id != project.build_id:
            raise DeviceError(
                f"the board on {port} does not run the firmware that measures the arena",
                hint=f"Flash {folder}/firmware.elf, for example with `forge flash {folder}`, and run this again.",
            )
        arena = measure_on_board(session, board, limit_bytes=limit, models=len(models))
    if arena is None:
        raise refuse_arena(models, board, limit)
    return arena


def _find_bench(board: Board) -> Board | None:
    """Return the emulated board on which the arena is measured, for the board's own instructions; None: there is none.

    The arena depends on kernels, ABI and the compiler's flags alone, and a twin runs the very same objects.
    """
    if board.emulator is not None:
        return board
    return replace(load_board(board.twin), core=board.core) if board.twin else None


def _measure(
    folder: Path,
    models: Sequence[Model],
    board: Board,
    plan: BuildPlan,
    settings: BuildSettings,
    report: Callable[[str], None],
) -> Arena:
    guess = _guess(models)
    _, firmware, limit = _build_with_largest(folder, models, board, plan, settings, guess, report)
    machine = board.emulator.machine if board.emulator else ""
    report(f"measuring the tensor arena on QEMU {machine}")
    arena = measure_arena(firmware.elf, board, limit_bytes=limit, models=models)
    if arena is None and limit == guess.bytes:
        larger = Arena(bytes=guess.bytes * 4, how=ESTIMATED)
        _, firmware, limit = _build_with_largest(folder, models, board, plan, settings, larger, report)
        arena = measure_arena(firmware.elf, board, limit_bytes=limit, models=models)
    if arena is None:
        raise refuse_arena(models, board, limit)
    return arena


def _guess(models: Sequence[Model]) -> Arena:
    return Arena(bytes=estimate_arena(*models), how=ESTIMATED)


def _build_with_largest(
    folder: Path,
    models: Sequence[Model],
    board: Board,
    plan: BuildPlan,
    settings: BuildSettings,
    arena: Arena,
    report: Callable[[str], None],
) -> tuple[Project, Firmware, int]:
    """Build with this arena, or with what the board's RAM leaves when it is too large for it."""
    model, *others = models
    names = ", ".join(each.name for each in models)
    report(f"building {names} for {board.name} with runtime {plan.runtime} {plan.version}")
    build = load_toolchain(settings.toolchain).build
    project = generate_project(folder, model, board, plan, settings, arena, others)
    try:
        return project, build(project), arena.bytes
    except FitError as error:
        over = error.bytes_over.get(board.ram.name, 0)
        left = (arena.bytes - over) // STEP_BYTES * STEP_BYTES
        if board.flash.name in error.bytes_over or left <= 0:
            raise
        smaller = Arena(bytes=left, how=ESTIMATED)
        project = generate_project(folder, model, board, plan, settings, smaller, others)
        return project, build(project), left
