"""Opens sessions for the commands that talk to a device, and runs the layers' firmware."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tflm_forge.commands._options import Job

if TYPE_CHECKING:
    from tflm_forge.board import Board
    from tflm_forge.link.session import Session
    from tflm_forge.verify.inputs import Case
    from tflm_forge.verify.layers import LayerValues
    from tflm_forge.verify.records import Layers

AUTO_PORT = "auto"
LAYERS_FOLDER = "layers"


def choose_port(board: "Board", port: str | None) -> str | None:
    """Return the port's URL; None: the board's emulator.

    Without `--port` the emulator is used; a board that has none, or `--port auto`, is found by its USB ids.

    Raises:
        DeviceError: no board of the kind is connected, or several are.
    """
    if port is not None and port != AUTO_PORT:
        return port
    if port is None and board.emulator is not None:
        return None
    from tflm_forge.link.ports import find_port

    return find_port(board.name, board.usb_ids)


@contextlib.contextmanager
def open_job(board: "Board", elf: Path, port: str | None) -> "Iterator[Session]":
    """Open a session with the board on the port, or with the board's emulator; faults are explained with the ELF."""
    from tflm_forge.link.failures import RefusedError
    from tflm_forge.link.session import open_session
    from tflm_forge.runners.qemu import open_target
    from tflm_forge.verify.faults import explain_refusal

    with contextlib.ExitStack() as stack:
        if port is None:
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
    from tflm_forge.verify.reference import InterpreterReference, has_interpreter

    if not has_interpreter():
        raise CheckError(
            "the values of layers come from the TFLM interpreter, which is not installed",
            hint="pip install 'tflm-forge[reference]'",
        )
    reference = InterpreterReference(job.model)
    wanted = sorted({o.outputs[0] for o in job.model.subgraphs[0].operators if o.outputs})
    return LayerValues(case=case, reference=reference.title, tensors=reference.tensors(case, wanted))


def compare_job_layers(job: Job, values: "LayerValues", port: str | None, report: Callable[[str], None]) -> "Layers":
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
        open_job(job.board, built.firmware.elf, port) as session,
        show_steps(f"comparing {len(values.tensors)} layers on {session.url}") as on_step,
    ):
        return compare_layers(session, job.model, values, lambda done, total: on_step("layers", done, total))
