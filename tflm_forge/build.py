"""Orders the steps of one build: plan, render, compile, measure the arena, render and link again, prove."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import filelock

from tflm_forge.arena import estimate_arena, measure_arena, read_record, refuse_arena, write_record
from tflm_forge.board import Board
from tflm_forge.config import BuildSettings
from tflm_forge.errors import FitError, UsageError
from tflm_forge.generate import Arena, Project, fingerprint_project, generate_project
from tflm_forge.link.answers import RegisteredOp
from tflm_forge.model import Model
from tflm_forge.proc import has_tool
from tflm_forge.runtimes import BuildPlan, plan_build
from tflm_forge.toolchains import Firmware, cmake
from tflm_forge.verify.selfcheck import ExpectedFirmware

LOCK_TIMEOUT_S = 900.0
STRUCT_BYTES = (32, 12)
"""TfLiteTensor and TfLiteEvalTensor on a 32-bit core with TF_LITE_STATIC_MEMORY; a build without it has 64 and more."""

_LOCK_NAME = ".forge.lock"
_QEMU = "qemu-system-arm"
_ESTIMATED = "estimated"


@dataclass(frozen=True, kw_only=True)
class Build:
    """A finished build: the project and its files."""

    project: Project
    firmware: Firmware

    @property
    def expected(self) -> ExpectedFirmware:
        """What a device that runs this very build says of itself."""
        project = self.project
        return ExpectedFirmware(
            build_id=project.build_id,
            board=project.board.name,
            runtime=project.plan.runtime,
            ops=tuple(
                RegisteredOp(builtin_code=r.use.builtin_code, max_version=r.max_version, custom_name=r.use.custom_name)
                for r in project.plan.registrations
            ),
            arena_bytes=project.arena.bytes,
            struct_bytes=STRUCT_BYTES,
        )


Report = Callable[[str], None]


def build_firmware(
    folder: Path,
    model: Model,
    board: Board,
    settings: BuildSettings,
    report: Report,
    others: Sequence[Model] = (),
) -> Build:
    """Build firmware of a model, or of several that share one arena, for a board into a folder.

    Args:
        folder: the project's folder; a second build at the same time waits for the first.
        model: the model.
        board: the board.
        settings: runtime, profile, optimization, arena.
        report: gets one line for each step that takes time.
        others: the models besides the first.

    Raises:
        ModelError: the runtime can not run the model.
        ToolError: a tool is missing or failed.
        FitError: the firmware does not fit the board.
        UsageError: the folder can not be written.
    """
    plan = plan_build(model, board.core, settings, others)
    for note in plan.notes:
        report(note)
    with lock_folder(folder, report):
        fingerprint = fingerprint_project(model, board, plan, settings, others)
        arena = _known_arena(folder, fingerprint, settings)
        if arena is None:
            arena = _settle_arena(folder, (model, *others), board, plan, settings, report)
            if arena.how != _ESTIMATED:
                write_record(folder, fingerprint, arena)
        project = generate_project(folder, model, board, plan, settings, arena, others)
        return Build(project=project, firmware=cmake.publish(project, cmake.build(project)))


@contextmanager
def lock_folder(folder: Path, report: Report) -> Iterator[None]:
    """Hold a project's folder for one build.

    Raises:
        UsageError: the folder can not be made, or another build holds it too long.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / _LOCK_NAME)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            report(f"{folder}: another build is under way, waiting for it")
            lock.acquire(timeout=LOCK_TIMEOUT_S)
    except filelock.Timeout as error:
        raise UsageError(f"{folder}: another build did not finish within {LOCK_TIMEOUT_S:g} s") from error
    except OSError as error:
        raise UsageError(
            f"{folder}: can not write: {error.strerror or error}", hint="Choose another folder with -o."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _known_arena(folder: Path, fingerprint: str, settings: BuildSettings) -> Arena | None:
    if settings.arena_bytes is not None:
        return Arena(bytes=settings.arena_bytes, how="given with --arena")
    return read_record(folder, fingerprint)


def _settle_arena(
    folder: Path, models: Sequence[Model], board: Board, plan: BuildPlan, settings: BuildSettings, report: Report
) -> Arena:
    """Build with a generous arena, then measure on the board's emulator what is really needed."""
    guess = Arena(bytes=estimate_arena(*models), how=_ESTIMATED)
    firmware, limit = _build_with_largest(folder, models, board, plan, settings, guess, report)
    if board.emulator is None or not has_tool(_QEMU):
        report(f"the arena of {limit} bytes is estimated: {_why_not_measured(board)}")
        return Arena(bytes=limit, how=_ESTIMATED)
    report(f"measuring the tensor arena on QEMU {board.emulator.machine}")
    arena = measure_arena(firmware.elf, board, limit_bytes=limit, models=len(models))
    if arena is None and limit == guess.bytes:
        firmware, limit = _build_with_largest(
            folder, models, board, plan, settings, Arena(bytes=guess.bytes * 4, how=_ESTIMATED), report
        )
        arena = measure_arena(firmware.elf, board, limit_bytes=limit, models=len(models))
    if arena is None:
        raise refuse_arena(models, board, limit)
    return arena


def _build_with_largest(
    folder: Path,
    models: Sequence[Model],
    board: Board,
    plan: BuildPlan,
    settings: BuildSettings,
    arena: Arena,
    report: Report,
) -> tuple[Firmware, int]:
    """Build with this arena, or with what the board's RAM leaves when it is too large for it."""
    model, *others = models
    names = ", ".join(each.name for each in models)
    report(f"building {names} for {board.name} with runtime {plan.runtime} {plan.version}")
    try:
        return cmake.build(generate_project(folder, model, board, plan, settings, arena, others)), arena.bytes
    except FitError as error:
        over = error.bytes_over.get(board.ram.name, 0)
        left = (arena.bytes - over) // 16 * 16
        if board.flash.name in error.bytes_over or left <= 0:
            raise
        smaller = Arena(bytes=left, how=_ESTIMATED)
        return cmake.build(generate_project(folder, model, board, plan, settings, smaller, others)), left


def _why_not_measured(board: Board) -> str:
    if board.emulator is None:
        return f"{board.name} has no emulator"
    return f"{_QEMU} is not installed"
