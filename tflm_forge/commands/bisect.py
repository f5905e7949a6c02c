"""`forge bisect`: compares every layer on the device with the interpreter, and names the first that differs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._flashing import GdbServerOption, RunnerOption, SerialNumberOption
from tflm_forge.commands._options import Job, JsonOption, takes_job

if TYPE_CHECKING:
    from tflm_forge.verify.inputs import Case


@takes_job
def run(
    job: Job,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", metavar="PATH", help="Your own inputs; default: random ones.")
    ] = None,
    sample: Annotated[int, typer.Option("--sample", metavar="N", min=0, help="Which of the inputs; default 0.")] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random input.")] = 1,
    port: Annotated[
        str | None,
        typer.Option(
            "--port", metavar="URL", help="A board that runs the layers' firmware, or auto; else the emulator."
        ),
    ] = None,
    runner: RunnerOption = None,
    serial_number: SerialNumberOption = None,
    gdb_server: GdbServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build firmware that keeps all tensors, compare each operator's output, name the first that differs.

    The firmware is built into the folder `layers` of the project's folder; with --runner a board is flashed with it,
    and keeps it. Exit 0 only when all operators agree.

    Example: forge bisect model.tflite --board stm32f4 --inputs test_data.npz --sample 3
    """
    from tflm_forge.commands._flashing import choose_way
    from tflm_forge.commands._target import ask_layers, compare_job_layers
    from tflm_forge.console import show_json, show_note, show_table, show_text
    from tflm_forge.errors import CheckError, UsageError
    from tflm_forge.reports.json import layers_to_json
    from tflm_forge.reports.text import all_layers_table
    from tflm_forge.verify.layers import check_layers

    if job.others:
        raise UsageError("forge bisect compares the layers of one model", hint="Name it alone, without --with.")
    case = _choose_case(job, inputs or job.config.test.inputs, sample, seed)
    way = choose_way(
        job.board,
        job.config,
        port=port or job.config.test.port,
        runner=runner,
        serial_number=serial_number,
        gdb_server=gdb_server,
    )
    layers = compare_job_layers(job, ask_layers(job, case), way, show_note)
    part = check_layers(layers)
    if as_json:
        show_json(layers_to_json(layers))
    else:
        table = all_layers_table(layers)
        show_table(table.title, table.columns, table.rows, right=table.right)
    if not part.passed:
        reasons = [f"{check.name}: {check.detail}" for check in part.failures[:1]]
        raise CheckError(f"{job.model.name} on {job.board.name}: layers differ for {case.name}", reasons=reasons)
    if not as_json:
        show_text(f"PASSED    {part.checks[0].detail}, for {case.name}")


def _choose_case(job: Job, inputs: Path | None, sample: int, seed: int) -> "Case":
    from tflm_forge.errors import UsageError
    from tflm_forge.verify.inputs import make_random_cases
    from tflm_forge.verify.samples import load_cases

    if inputs is None:
        return make_random_cases(job.model, seed=seed, count=sample + 1)[sample]
    cases = load_cases(inputs, job.model)
    if sample >= len(cases):
        raise UsageError(f"{inputs}: has {len(cases)} samples, and --sample is {sample}", hint="They count from 0.")
    return cases[sample]
