"""Runs the cases of an operator of one's own, on this computer and in an emulator, against its Python reference."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tflm_forge.board import Board
from tflm_forge.build import Report, build_firmware
from tflm_forge.config import BuildSettings, OpTable
from tflm_forge.errors import CheckError
from tflm_forge.link.failures import RefusedError
from tflm_forge.link.session import Session, open_session
from tflm_forge.model import Model
from tflm_forge.runners.qemu import open_target
from tflm_forge.verify.arrays import Array
from tflm_forge.verify.faults import explain_refusal
from tflm_forge.verify.host_op import HostRun, build_host_test, run_on_host
from tflm_forge.verify.inputs import Case
from tflm_forge.verify.numbers import compare_output, run_case
from tflm_forge.verify.op_cases import ModelCase

_MOST_MODELS = 8
"""Models of one firmware: they share its arena, and one build serves them all."""


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """What came of one case in one place.

    Attributes:
        op: the op.
        case: the case.
        place: "host", or the board with the runtime.
        passed: whether it is as the reference says.
        detail: how near, or what is wrong.
        log: what the runtime or a sanitizer printed; only of a case that did not pass.
    """

    op: str
    case: str
    place: str
    passed: bool
    detail: str
    log: tuple[str, ...] = ()


def run_on_this_computer(
    op: str, table: OpTable, cases: Sequence[ModelCase], folder: Path, board: Board
) -> list[CaseResult]:
    """Compile the kernel for this computer and run all cases.

    Raises:
        ToolError: a tool is missing, or the kernel does not compile.
        UsageError: the table is wrong for the bundled runtime.
    """
    program = build_host_test(folder, table, cases[0].model, board.core)
    return [_judge_host(op, case, run_on_host(program, folder, case)) for case in cases]


def _judge_host(op: str, case: ModelCase, run: HostRun) -> CaseResult:
    if case.refused:
        detail = "refused in Prepare, as it must be" if run.refused else "not refused: the kernel took these tensors"
        if run.problem and not run.refused:
            detail = run.problem
        passed = run.refused
    elif run.problem:
        passed, detail = False, run.problem
    else:
        passed, detail = compare_arrays(case, run.outputs)
    return CaseResult(op=op, case=case.name, place="host", passed=passed, detail=detail, log=() if passed else run.log)


def run_in_emulator(
    op: str, cases: Sequence[ModelCase], folder: Path, board: Board, settings: BuildSettings, report: Report
) -> list[CaseResult]:
    """Build firmware of the cases' models and run them in a board's emulator; those to be refused are left out.

    Raises:
        ModelError, ToolError, FitError: the firmware can not be built.
        CheckError: it does not boot.
        DeviceError: the emulator does not answer.
    """
    runnable = [case for case in cases if not case.refused]
    place = f"{board.name}, {settings.runtime}"
    results = []
    for start in range(0, len(runnable), _MOST_MODELS):
        chunk = runnable[start : start + _MOST_MODELS]
        models: dict[bytes, Model] = {case.model.data: case.model for case in chunk}
        first, *others = models.values()
        built = build_firmware(folder / str(start), first, board, settings, report, others)
        order = list(models)
        elf = built.firmware.elf
        with open_target(board, elf) as target, open_session(target.url, target=target) as session:
            if not session.connect().ready:
                raise CheckError(
                    f"{op} on {board.name}: the firmware does not get ready; does the kernel refuse a case's tensors?",
                    reasons=session.log_lines[-6:],
                )
            for case in chunk:
                if len(models) > 1:
                    session.select(order.index(case.model.data))
                results.append(_run_case(op, case, place, session, elf))
    return results


def _run_case(op: str, case: ModelCase, place: str, session: Session, elf: Path) -> CaseResult:
    try:
        run = run_case(session, case.model, Case(name=case.name, inputs=case.inputs))
        passed, detail = compare_arrays(case, run.outputs)
    except RefusedError as error:
        if error.status.name != "InvokeFailed":
            raise explain_refusal(error, elf) from error.__cause__
        passed, detail = False, error.message
    log = () if passed else tuple(session.log_lines[-6:])
    return CaseResult(op=op, case=case.name, place=place, passed=passed, detail=detail, log=log)


def compare_arrays(case: ModelCase, actual: Sequence[Array]) -> tuple[bool, str]:
    """Return whether outputs are as expected, and how near they are in words."""
    worst = ""
    for number, (tensor, want, have) in enumerate(zip(case.model.outputs, case.expected, actual, strict=True)):
        found = compare_output(case.name, tensor, want, have, tolerance_lsb=case.tolerance_lsb)
        if not found.passed:
            return False, _describe_difference(number, want, have, found.metrics.mismatches)
        if found.metrics.max_error:
            unit = f" {found.unit}" if found.unit else ""
            worst = f"within the tolerance, largest error {found.metrics.max_error:.6g}{unit}"
    return True, worst or "identical"


def _describe_difference(output: int, want: Array, have: Array, mismatches: int) -> str:
    error = np.abs(have.astype(np.float64) - want.astype(np.float64))
    place = np.unravel_index(int(np.argmax(np.nan_to_num(error, nan=np.inf))), want.shape)
    index = [int(i) for i in place]
    return (
        f"output {output}: {mismatches:,} of {want.size:,} numbers differ, most at {index}: the kernel gives "
        f"{have[place]}, the reference {want[place]}"
    )
