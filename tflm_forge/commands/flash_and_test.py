"""`forge flash-and-test`: puts firmware on its target, checks everything, and says one verdict."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._flashing import EraseOption, GdbServerOption, RunnerOption, SerialNumberOption, Way
from tflm_forge.commands._options import Job, JsonOption, takes_job

if TYPE_CHECKING:
    from tflm_forge.build import Build
    from tflm_forge.verify.plan import SuiteOptions, SuitePlan
    from tflm_forge.verify.records import TestReport

REPORT_NAME = "report.json"
_MOST_REASONS = 20


@takes_job
def run(
    job: Job,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="PART,...",
            help="Parts to run: self-check, inputs, numbers, boundaries, latency, soak, layers.",
        ),
    ] = None,
    skip: Annotated[list[str] | None, typer.Option("--skip", metavar="PART,...", help="Parts to leave out.")] = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs",
            metavar="PATH",
            help="Your own inputs: .npz (`labels` in it gives the accuracy), .npy, picture, WAV, or a folder.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option("--reference", metavar="KIND", help="tflm, golden or tflite; default: the best there is."),
    ] = None,
    golden: Annotated[
        Path | None, typer.Option("--golden", metavar="NPZ", help="Compare with this recorded file.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record-golden", metavar="NPZ", help="Record inputs and reference outputs."),
    ] = None,
    float_reference: Annotated[
        Path | None,
        typer.Option("--float-reference", metavar="MODEL", help="Compare with the float model it was made from, too."),
    ] = None,
    float_limit: Annotated[
        float,
        typer.Option("--float-limit", metavar="PERCENT", min=0.0, help="Largest relative error against it."),
    ] = 1.0,
    no_reference: Annotated[
        bool, typer.Option("--no-reference", help="Pass without comparing numbers with a reference.")
    ] = False,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the random inputs; default 1.")] = None,
    soak: Annotated[
        int | None,
        typer.Option("--soak", metavar="LOOPS", min=1, help="Run all these loops; default: 5000, for 10 s at most."),
    ] = None,
    stateful: Annotated[
        bool, typer.Option("--stateful", help="Keep the model's state from one inference to the next.")
    ] = False,
    port: Annotated[
        str | None,
        typer.Option("--port", metavar="URL", help="A board that runs this firmware, or auto; else the emulator."),
    ] = None,
    runner: RunnerOption = None,
    erase: EraseOption = False,
    serial_number: SerialNumberOption = None,
    gdb_server: GdbServerOption = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML as well.")] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML page as well.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Build when needed, run on the target, check everything; exit 0 only when all of it passed.

    The target is the board's emulator; with --runner a board that is flashed first, with --port one that runs this
    firmware already. The parts, in this order: self-check, your inputs, random numbers and boundaries compared with a
    reference, latency, soak, and every layer. The report is kept in the project's folder as report.json.

    Example: forge flash-and-test model.tflite --board stm32f4 --inputs test_data.npz
    """
    from tflm_forge.build import build_firmware
    from tflm_forge.commands._flashing import choose_way
    from tflm_forge.console import show_json, show_note
    from tflm_forge.errors import CheckError
    from tflm_forge.reports.json import report_to_json
    from tflm_forge.verify.parts import choose_parts
    from tflm_forge.verify.plan import SuiteOptions
    from tflm_forge.verify.soak import SoakOptions

    parts = choose_parts(only or (), skip or ())
    test = job.config.test
    options = SuiteOptions(
        parts=parts,
        seed=next((value for value in (seed, test.seed) if value is not None), SuiteOptions.seed),
        inputs=inputs or test.inputs,
        reference=reference or "",
        golden=golden or test.golden,
        no_reference=no_reference,
        float_reference=float_reference,
        float_limit=float_limit / 100,
        soak=SoakOptions(stateful=stateful)
        if soak is None
        else SoakOptions(loops=soak, limit_s=None, stateful=stateful),
        clock_hz=job.board.clock_hz,
        own_ops=job.settings.own_ops,
    )
    way = choose_way(
        job.board,
        job.config,
        port=port or test.port,
        runner=runner,
        erase=erase,
        serial_number=serial_number,
        gdb_server=gdb_server,
    )
    built = build_firmware(job.folder, job.model, job.board, job.settings, show_note, job.others)
    report = _run_parts(job, built, options, way, record)
    _keep(job.folder, report, junit, html)
    if as_json:
        show_json(report_to_json(report))
    else:
        _show(report)
    if not report.passed:
        failed = [f"{part.name}: {check.name}: {check.detail}" for part in report.parts for check in part.failures]
        raise CheckError(f"{job.model.name} on {job.board.name} did not pass", reasons=failed[:_MOST_REASONS])


def _run_parts(job: Job, built: "Build", options: "SuiteOptions", way: Way, record: Path | None) -> "TestReport":
    from tflm_forge.commands._target import open_job
    from tflm_forge.console import show_progress, show_steps
    from tflm_forge.verify.parts import LAYERS
    from tflm_forge.verify.plan import options_of_further, plan_suite
    from tflm_forge.verify.suite import run_further, run_suite

    with show_progress("computing the reference"):
        plan = plan_suite(job.model, job.model_path, options)
        further = [
            (model, plan_suite(model, path, options_of_further(options)))
            for model, path in zip(job.others, job.other_paths, strict=True)
        ]
    if record is not None:
        _record(job, plan, options, record)
    elf = built.firmware.elf
    with (
        open_job(job.board, elf, way) as session,
        show_steps(f"testing {len(plan.cases)} inputs on {session.url}") as on_step,
    ):
        report = run_suite(session, job.model, plan, replace(built.expected, elf=elf), on_step=on_step)
        if further:
            report = run_further(session, report, further, on_step=on_step)
    return _with_layers(job, plan, report, way) if LAYERS in options.parts else report


def _record(job: Job, plan: "SuitePlan", options: "SuiteOptions", path: Path) -> None:
    from tflm_forge.console import show_note
    from tflm_forge.errors import UsageError
    from tflm_forge.verify.golden import choose_reference, record_golden

    reference = choose_reference(job.model, job.model_path, options.golden, options.reference, options.own_ops)
    if reference is None:
        raise UsageError("--record-golden needs a reference", hint="pip install 'tflm-forge[reference]'")
    record_golden(path, job.model, [case for case in plan.cases if case.is_comparable], reference)
    show_note(f"recorded {path}")


def _with_layers(job: Job, plan: "SuitePlan", report: "TestReport", way: Way) -> "TestReport":
    """Return the report with the part that compares every layer; skipped, with the reason, where that can not be."""
    from tflm_forge.commands._target import ask_layers, compare_job_layers
    from tflm_forge.console import show_note
    from tflm_forge.errors import CheckError, FitError
    from tflm_forge.verify.inputs import make_random_cases
    from tflm_forge.verify.layers import check_layers
    from tflm_forge.verify.parts import LAYERS
    from tflm_forge.verify.records import Check, Part

    def with_part(part: Part) -> "TestReport":
        return replace(report, parts=(*report.parts, part))

    reason = _why_no_layers(report, is_hardware=way.is_hardware, no_reference=plan.options.no_reference)
    if reason:
        return with_part(Part(name=LAYERS, checks=(), skipped=reason))
    case = next(iter(plan.cases), None) or make_random_cases(job.model, seed=plan.options.seed, count=1)[0]
    try:
        values = ask_layers(job, case)
    except CheckError as error:
        return with_part(Part(name=LAYERS, checks=(), skipped=f"{error.message}. {error.hint}"))
    try:
        layers = compare_job_layers(job, values, way, show_note)
    except FitError as error:
        reason = f"firmware that keeps all tensors does not fit: {error.message}"
        return with_part(Part(name=LAYERS, checks=(), skipped=reason))
    except CheckError as error:
        return with_part(Part(name=LAYERS, checks=(Check(name="firmware", passed=False, detail=error.message),)))
    return replace(with_part(check_layers(layers)), layers=layers)


def _why_no_layers(report: "TestReport", *, is_hardware: bool, no_reference: bool) -> str:
    """Return why the layers can not be compared, as far as that is known before it is tried."""
    from tflm_forge.verify.parts import SELF_CHECK

    if no_reference:
        return "no comparison: --no-reference"
    if is_hardware:
        return "only in an emulator; on hardware: forge bisect --runner, which flashes the layers' firmware"
    if any(not part.passed for part in report.parts if part.name == SELF_CHECK):
        return "the self-check did not pass"
    return ""


def _keep(folder: Path, report: "TestReport", junit: Path | None, html: Path | None) -> None:
    import json

    from tflm_forge.errors import UsageError
    from tflm_forge.files import write_if_changed
    from tflm_forge.reports.json import report_to_json

    contents = {folder / REPORT_NAME: (json.dumps(report_to_json(report), indent=2) + "\n").encode()}
    if junit is not None:
        from tflm_forge.reports.junit import report_to_junit

        contents[junit] = report_to_junit(report)
    if html is not None:
        from tflm_forge.reports.html import report_to_html

        contents[html] = report_to_html(report)
    for path, content in contents.items():
        try:
            write_if_changed(path, content)
        except OSError as error:
            raise UsageError(f"{path}: can not write: {error.strerror or error}") from error


def _show(report: "TestReport") -> None:
    from tflm_forge.console import show_table, show_text
    from tflm_forge.reports.text import check_table, comparison_table, latency_table, layer_table, summary_lines

    tables = [check_table(report), comparison_table(report), latency_table(report)]
    if report.layers is not None:
        tables.append(layer_table(report.layers))
    for table in tables:
        if table.rows:
            show_table(table.title, table.columns, table.rows, right=table.right)
    for line in summary_lines(report):
        show_text(line)
