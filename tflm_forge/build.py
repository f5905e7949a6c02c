"""Orders the steps of one build: plan, render, compile, measure the arena, render and link again, prove."""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import filelock

from tflm_forge.arena import ESTIMATED, read_record, settle_arena, write_record
from tflm_forge.board import Board
from tflm_forge.config import BuildSettings
from tflm_forge.errors import UsageError
from tflm_forge.generate import Arena, Project, fingerprint_project, generate_project
from tflm_forge.link.answers import RegisteredOp
from tflm_forge.manifest.measured import write_flash
from tflm_forge.model import Model
from tflm_forge.runtimes import plan_build
from tflm_forge.size import GROUPS, Attribution, attribute
from tflm_forge.toolchains import Firmware, load_toolchain, publish
from tflm_forge.verify.selfcheck import ExpectedFirmware

LOCK_TIMEOUT_S = 900.0
STRUCT_BYTES = (32, 12)
"""TfLiteTensor and TfLiteEvalTensor on a 32-bit core with TF_LITE_STATIC_MEMORY; a build without it has 64 and more."""

_LOCK_NAME = ".forge.lock"


@dataclass(frozen=True, kw_only=True)
class Build:
    """A finished build: the project and its files."""

    project: Project
    firmware: Firmware

    @functools.cached_property
    def size(self) -> Attribution:
        """Whose each byte of the firmware is."""
        return attribute(self.firmware.elf, own_sources=self.project.plan.own_sources)

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
    measure_on: str | None = None,
) -> Build:
    """Build firmware of a model, or of several that share one arena, for a board into a folder.

    Args:
        folder: the project's folder; a second build at the same time waits for the first.
        model: the model.
        board: the board.
        settings: runtime, profile, optimization, arena.
        report: gets one line for each step that takes time.
        others: the models besides the first.
        measure_on: a port of the board itself, which then measures the arena instead of an emulator.

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
        arena = None if measure_on else _known_arena(folder, fingerprint, settings)
        if arena is None:
            arena = settle_arena(folder, (model, *others), board, plan, settings, report, measure_on)
            if arena.how != ESTIMATED:
                write_record(folder, fingerprint, arena)
        project = generate_project(folder, model, board, plan, settings, arena, others)
        firmware = publish(folder, load_toolchain(settings.toolchain).build(project))
        built = Build(project=project, firmware=firmware)
        write_flash(folder, project.build_id.hex(), firmware.elf, lambda: _flash_groups(built.size))
        return built


def _flash_groups(size: Attribution) -> dict[str, int]:
    """Return the bytes of flash by kind of owner, in the order of a size report."""
    sizes = {row.name: row.flash_bytes for row in size.sum_by("group")}
    return {str(name): sizes[name] for name in GROUPS if sizes.get(name)}


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
