"""Carries out a plan: the probes, the chip, every command with its time-out and log, and what its failure means."""

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tflm_forge import proc
from tflm_forge.errors import ForgeError, ToolError, UsageError
from tflm_forge.files import write_if_changed
from tflm_forge.runners import Command, DriveCopy, FlashJob, Plan, Runner, refuse_lacking
from tflm_forge.runners._failures import Kind, describe, explain
from tflm_forge.runners._probes import PROBES, UsbDevice, list_devices

LOG_NAME = "flash.log"
_NO_ANSWER = (0, 0xFFFF_FFFF)
"""What reads as a chip's id where there is none: emulators, and chips whose debug unit sleeps."""

Report = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Flashed:
    """What was done.

    Attributes:
        runner: the runner's name.
        commands: the commands as a shell takes them.
        read_back: whether the tool has read the flash back and found it equal to the image.
        chip_id: what the chip said it is; None: it was not asked.
        log: the file with the tools' output.
    """

    runner: str
    commands: tuple[str, ...]
    read_back: bool
    chip_id: int | None
    log: Path


def show_plan(plan: Plan) -> tuple[str, ...]:
    """Return the commands of a plan in their order, as a shell takes them."""
    steps = (*((plan.identify,) if plan.identify else ()), *plan.steps)
    return tuple(_as_shell(step) for step in steps)


def write_files(plan: Plan) -> None:
    """Write the files that a plan's commands name.

    Raises:
        UsageError: one of them can not be written.
    """
    for path, content in plan.files.items():
        try:
            write_if_changed(path, content)
        except OSError as error:
            raise UsageError(f"{path}: can not write: {error.strerror or error}") from error


def flash(runner: Runner, job: FlashJob) -> Flashed:
    """Flash a board.

    Raises:
        UsageError: the runner lacks what the job asks for, or a file can not be written.
        ToolError: the tool is not installed, too old, took too long, or failed in a way forge does not know.
        DeviceError: probe, chip or flash did not do what was asked; says which and what to do.
    """
    refuse_lacking(runner, erase=job.erase, serial_number=job.serial_number, gdb_server=job.gdb_server)
    plan = runner.plan(job)
    _Run(runner, job).refuse_probes()
    write_files(plan)
    run = _Run(runner, job)
    run.log.parent.mkdir(parents=True, exist_ok=True)
    run.log.unlink(missing_ok=True)
    chip_id = run.check_chip(plan)
    for step in plan.steps:
        if isinstance(step, DriveCopy):
            run.copy(step)
        else:
            run.command(step)
    copied = any(isinstance(step, DriveCopy) for step in plan.steps)
    return Flashed(
        runner=runner.name,
        commands=show_plan(plan),
        read_back=runner.can.verify and not copied,
        chip_id=chip_id,
        log=run.log,
    )


class _Run:
    """One run of a runner's plan."""

    def __init__(self, runner: Runner, job: FlashJob) -> None:
        self.runner = runner
        self.job = job
        self.log = job.folder / LOG_NAME

    def devices(self) -> tuple[UsbDevice, ...]:
        """Return the connected probes or boards that the tool may take; empty when that is not known."""
        ids = self.runner.probes or tuple(usb_id for usb_id in self.job.board.usb_ids if usb_id in PROBES)
        if "usb_id" in self.runner.keys:
            ids = (self.job.text("usb_id").upper(),)
        if self.runner.name in ("gdb", "platformio"):
            return ()
        wanted = (self.job.serial_number or "").lower()
        starts = self.job.board.usb_serials if not self.runner.probes else ()
        return tuple(
            device
            for device in list_devices(ids)
            if wanted in device.serial_number.lower() and device.serial_number.startswith(starts or "")
        )

    def refuse_probes(self) -> None:
        """Refuse what can be seen before the tool runs: it would take the first of several."""
        devices = self.devices()
        if len(devices) > 1:
            raise self.error("several probes", "", with_log=False)
        if devices and not devices[0].is_permitted:
            raise self.error("permission", f"{devices[0].node} may not be opened", with_log=False)

    def check_chip(self, plan: Plan) -> int | None:
        """Return the chip's id, and refuse one that is not the board's."""
        chip = self.job.board.chip_id
        if plan.identify is None or chip is None:
            return None
        done = self._start(plan.identify)
        match = re.search(plan.chip_id, done.output, re.MULTILINE)
        word = int(match[1], 16) if match else 0
        if word in _NO_ANSWER:
            if done.returncode and (error := self._explain(done.output)):
                raise error
            return None
        if (word ^ chip.value) & chip.mask & plan.chip_id_mask:
            expected = f"0x{chip.value:X} (of the bits 0x{chip.mask & plan.chip_id_mask:X}; {chip.source})"
            raise self.error("wrong chip", f"its id at 0x{chip.address:08X} is 0x{word:X}, expected is {expected}")
        return word

    def command(self, step: Command) -> None:
        """Run a command and make sure that it did its work."""
        if step.reads_back is not None:
            step.reads_back.unlink(missing_ok=True)
        done = self._start(step)
        differs = any(f.kind == "verify" and re.search(f.pattern, done.output) for f in self.runner.failures)
        if done.returncode or step.must_say not in done.output or differs:
            raise self._explain(done.output) or self._unknown(step, done)
        if step.reads_back is not None:
            self._compare(step.reads_back)

    def copy(self, step: DriveCopy) -> None:
        """Copy a file onto the drive of a boot loader."""
        if step.drive is None:
            detail = (
                f"no drive {step.label!r} is mounted: hold BOOTSEL while plugging the board in, and mount the drive"
            )
            raise self.error("no probe", detail, with_log=False)
        try:
            with (step.drive / step.source.name).open("wb") as file:
                file.write(step.source.read_bytes())
                file.flush()
                with contextlib.suppress(OSError):
                    # The board restarts as soon as it has the last block, and its drive is gone.
                    os.fsync(file.fileno())
        except OSError as error:
            raise self.error("no probe", f"{step.drive}: can not write: {error.strerror}", with_log=False) from error
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {_as_shell(step)}\n")

    def error(self, kind: Kind, detail: str, *, with_log: bool = True) -> ForgeError:
        """Return the error of a kind for this job."""
        return describe(
            kind,
            detail,
            title=self.runner.title,
            board=self.job.board.name,
            log=self.log if with_log else None,
            devices=self.devices(),
            unlock=self.runner.unlock,
        )

    def _start(self, step: Command) -> proc.Completed:
        try:
            return proc.run(step.argv, timeout_s=step.timeout_s, cwd=step.cwd, env=step.env, log=self.log, check=False)
        except ToolError as error:
            raise (self._explain(error.hint) if self.log.exists() else None) or error from error.__cause__

    def _compare(self, path: Path) -> None:
        expected = self.job.image.data
        try:
            found = path.read_bytes()
        except OSError as error:
            raise self.error("verify", f"{path}: {error.strerror}") from error
        if found != expected:
            at = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), len(found))
            raise self.error("verify", f"first difference at 0x{self.job.image.address + at:08X}")

    def _explain(self, output: str) -> ForgeError | None:
        return explain(
            self.runner.failures,
            output,
            title=self.runner.title,
            board=self.job.board.name,
            log=self.log,
            devices=self.devices(),
            unlock=self.runner.unlock,
        )

    def _unknown(self, step: Command, done: proc.Completed) -> ToolError:
        name = Path(step.argv[0]).name
        what = (
            f"{name} failed with status {done.returncode}"
            if done.returncode
            else f"{name} ended without {step.must_say!r}: the board is not flashed"
        )
        lines = [
            f"command: {_as_shell(step)}",
            *done.output.rstrip().expandtabs().splitlines()[-20:],
            f"full log: {self.log}",
        ]
        return ToolError(what, hint="\n".join(lines))


def _as_shell(step: Command | DriveCopy) -> str:
    if isinstance(step, DriveCopy):
        return shlex.join(["cp", str(step.source), f"{step.drive or '/media/' + step.label}/"])
    return shlex.join([*(f"{name}={value}" for name, value in _sorted(step)), *step.argv])


def _sorted(step: Command) -> Iterator[tuple[str, str]]:
    yield from sorted(step.env.items())
