"""Gets firmware onto what a command talks to, and opens sessions with it."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tflm_forge.commands._flashing import Way, find_flashed_port, flash_board, open_empty_machine
from tflm_forge.commands._options import Job

if TYPE_CHECKING:
    from tflm_forge.board import Board
    from tflm_forge.link.session import Session
    from tflm_forge.verify.inputs import Case
    from tflm_forge.verify.layers import LayerValues
    from tflm_forge.verify.records import Layers

LAYERS_FOLDER = "layers"


@contextlib.contextmanager
def open_job(board: "Board", elf: Path, way: Way) -> "Iterator[Session]":
    """Open a session with firmware on a board or in its emulator; faults are explained with the ELF.

    Args:
        board: the board.
        elf: the firmware.
        way: how it gets there.

    Raises:
        UsageError, ToolError, FitError, DeviceError: as flashing, the emulator and the port raise them.
    """
    from tflm_forge.link.failures import RefusedError
    from tflm_forge.link.session import open_session
    from tflm_forge.runners.qemu import open_target
    from tflm_forge.verify.faults import explain_refusal

    port, flashing = way.port, way.flashing
    with contextlib.ExitStack() as stack:
        if flashing is not None and flashing.is_emulated:
            _, session = stack.enter_context(open_empty_machine(board, elf, flashing))
        elif flashing is not None:
            flash_board(flashing, flashing.job(board, elf, port))
            url = port or find_flashed_port(board, flashing)
            session = stack.enter_context(open_session(url, baud=board.baud))
        elif port is None:
            target = stack.enter_context(open_target(board, elf))
            session = stack.enter_context(open_session(target.url, target=target))
        else:
            session = stack.enter_context(open_session(port, baud=board.baud))
        try:
            yield session
        except RefusedError as error:
            raise explain_refusal(error, elf) from error.__cause__


def ask_layers(job: Job, case: "Case") -> "LayerValues":
    """Let the interpreter compute what every operator gives for a case.

    Raises:
        CheckError: there is no interpreter, or it can not run the model.
    """
    from tflm_forge.errors import CheckError
    from tflm_forge.verify.layers import LayerValues
    from tflm_forge.verify.reference import InterpreterReference, find_references, has_interpreter

    if not has_interpreter():
        raise CheckError(
            "the values of layers come from the TFLM interpreter, which is not installed",
            hint="pip install 'tflm-forge[reference]'",
        )
    references = find_references(job.model, job.settings.own_ops)
    reference = InterpreterReference(job.model, references=references)
    wanted = sorted({o.outputs[0] for o in job.model.subgraphs[0].operators if o.outputs})
    return LayerValues(case=case, reference=reference.title, tensors=reference.tensors(case, wanted))


def compare_job_layers(
    job: Job,
    values: "LayerValues",
    way: Way,
    report: Callable[[str], None],
) -> "Layers":
    """Build firmware that keeps all tensors, run a case on it, and compare every operator with the interpreter.

    Raises:
        CheckError: the firmware does not run.
        FitError: the firmware with all tensors does not fit the board.
        DeviceError: the device stopped answering, or other firmware runs on it.
    """
    from tflm_forge.build import build_firmware
    from tflm_forge.console import show_steps
    from tflm_forge.verify.layers import compare_layers

    settings = replace(job.settings, keep_tensors=True, arena_bytes=None)
    built = build_firmware(job.folder / LAYERS_FOLDER, job.model, job.board, settings, report)
    with (
        open_job(job.board, built.firmware.elf, way) as session,
        show_steps(f"comparing {len(values.tensors)} layers on {session.url}") as on_step,
    ):
        return compare_layers(session, job.model, values, lambda done, total: on_step("layers", done, total))
