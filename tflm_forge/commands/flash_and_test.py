"""`forge flash-and-test`: puts firmware on its target, checks everything, and says one verdict."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._options import (
    AllowVersionOption,
    ArenaOption,
    BoardOption,
    Job,
    JsonOption,
    KernelSetOption,
    LtoOption,
    ModelArgument,
    OptimizeOption,
    OutputOption,
    ProfileOption,
    RuntimeOption,
    StripOption,
    collect_job,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tflm_forge.build import Build
    from tflm_forge.link.session import Session
    from tflm_forge.verify.records import TestReport
    from tflm_forge.verify.suite import SuiteOptions

REPORT_NAME = "report.json"
_MOST_REASONS = 20


def run(
    model: ModelArgument = None,
    board: BoardOption = None,
    output: OutputOption = None,
    runtime: RuntimeOption = None,
    profile: ProfileOption = None,
    optimize: OptimizeOption = None,
    kernel_set: KernelSetOption = None,
    lto: LtoOption = None,
    strip_error_strings: StripOption = None,
    arena: ArenaOption = None,
    allow_version: AllowVersionOption = None,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", metavar="NPZ", help="Your own inputs; `labels` in it gives the accuracy."),
    ] = None,
    golden: Annotated[
        Path | None, typer.Option("--golden", metavar="NPZ", help="Compare with this recorded file.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record-golden", metavar="NPZ", help="Record inputs and reference outputs."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the random inputs; default 1.")] = None,
    port: Annotated[
        str | None,
        typer.Option("--port", metavar="URL", help="A board that runs this firmware, instead of the emulator."),
    ] = None,
    no_reference: Annotated[
        bool, typer.Option("--no-reference", help="Pass without comparing numbers with a reference.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Build when needed, run on the target, check everything; exit 0 only when all of it passed.

    The self-check, then inputs (your own, random, zeros, lowest, highest) compared with a reference. The report is
    kept in the project's folder as report.json.

    Example: forge flash-and-test model.tflite --board stm32f4 --inputs test_data.npz
    """
    from tflm_forge.build import build_firmware
    from tflm_forge.console import show_json, show_note
    from tflm_forge.errors import CheckError
    from tflm_forge.reports.json import report_to_json
    from tflm_forge.verify.suite import SuiteOptions

    job = collect_job(
        model=model,
        board=board,
        output=output,
        runtime=runtime,
        profile=profile,
        optimize=optimize,
        kernel_set=kernel_set,
        lto=lto,
        strip_error_strings=strip_error_strings,
        arena=arena,
        allow_version=allow_version,
    )
    test = job.config.test
    options = SuiteOptions(
        seed=next((value for value in (seed, test.seed) if value is not None), SuiteOptions.seed),
        inputs=inputs or test.inputs,
        golden=golden or test.golden,
        no_reference=no_reference,
    )
    built = build_firmware(job.folder, job.model, job.board, job.settings, show_note)
    report = _run_suite(job, built, options, port or test.port, record)
    _keep(job.folder, report)
    if as_json:
        show_json(report_to_json(report))
    else:
        _show(report)
    if not report.passed:
        failed = [f"{part.name}: {check.name}: {check.detail}" for part in report.parts for check in part.failures]
        raise CheckError(f"{job.model.name} on {job.board.name} did not pass", reasons=failed[:_MOST_REASONS])


def _run_suite(
    job: Job, built: "Build", options: "SuiteOptions", port: str | None, record: Path | None
) -> "TestReport":
    from tflm_forge.console import show_note, show_progress
    from tflm_forge.errors import UsageError
    from tflm_forge.verify.golden import choose_reference, record_golden
    from tflm_forge.verify.suite import plan_suite, run_suite

    with show_progress("computing the reference"):
        plan = plan_suite(job.model, job.model_path, options)
    if record is not None:
        reference = choose_reference(job.model, job.model_path, options.golden)
        if reference is None:
            raise UsageError("--record-golden needs a reference", hint="pip install 'tflm-forge[reference]'")
        record_golden(record, job.model, plan.cases, reference)
        show_note(f"recorded {record}")
    with (
        _open(job, built, port) as session,
        show_progress(f"testing {len(plan.cases)} inputs on {session.url}"),
    ):
        return run_suite(session, job.model, plan, built.expected)


@contextlib.contextmanager
def _open(job: Job, built: "Build", port: str | None) -> "Iterator[Session]":
    """Open a session with the board on the port, or with the board's emulator."""
    from tflm_forge.link.session import open_session
    from tflm_forge.runners.qemu import open_target

    if port is not None:
        with open_session(port, baud=job.board.baud) as session:
            yield session
        return
    with (
        open_target(job.board, built.firmware.elf) as target,
        open_session(target.url, target=target) as session,
    ):
        yield session


def _keep(folder: Path, report: "TestReport") -> None:
    import json

    from tflm_forge.files import write_if_changed
    from tflm_forge.reports.json import report_to_json

    write_if_changed(folder / REPORT_NAME, (json.dumps(report_to_json(report), indent=2) + "\n").encode())


def _show(report: "TestReport") -> None:
    from tflm_forge.console import show_table, show_text
    from tflm_forge.reports.text import check_table, comparison_table, summary_lines

    for table in (check_table(report), comparison_table(report)):
        if table.rows:
            show_table(table.title, table.columns, table.rows, right=table.right)
    for line in summary_lines(report):
        show_text(line)
