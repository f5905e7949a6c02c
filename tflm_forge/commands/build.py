"""`forge build`: a model in, firmware out."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._options import Job, JsonOption, takes_job

if TYPE_CHECKING:
    from tflm_forge.build import Build
    from tflm_forge.generate import ArenaParts
    from tflm_forge.size import Attribution


MeasureOption = Annotated[
    str | None,
    typer.Option(
        "--measure-on", metavar="PORT", help="Measure the arena on the board at this port, not in an emulator."
    ),
]


@takes_job
def run(job: Job, measure_on: MeasureOption = None, as_json: JsonOption = False) -> None:
    """Build firmware of a model for a board: firmware.elf, .bin, .hex and ops.manifest.yaml.

    Example: forge build model.tflite --board stm32f4
    """
    from tflm_forge.build import build_firmware
    from tflm_forge.console import show_json, show_note, show_table

    built = build_firmware(job.folder, job.model, job.board, job.settings, show_note, job.others, measure_on)
    size = built.size
    if as_json:
        show_json(_as_json(built, size))
    else:
        names = ", ".join(model.name for model in built.project.models)
        show_table(f"Built {names} for {job.board.name}", ("", ""), _as_rows(built, size))


def _as_json(built: "Build", size: "Attribution") -> dict[str, object]:
    project = built.project
    return {
        "tflm_forge_build": 1,
        "elf": built.firmware.elf.as_posix(),
        "board": project.board.name,
        "runtime": {"name": project.plan.runtime, "version": project.plan.version},
        "ops": [registration.use.name for registration in project.plan.registrations],
        "arena": asdict(project.arena),
        "build_id": project.build_id.hex(),
        "flash_bytes": size.flash_bytes,
        "model_bytes": size.model_bytes,
        "ram_bytes": size.ram_bytes,
    }


def _as_rows(built: "Build", size: "Attribution") -> list[tuple[str, object]]:
    project = built.project
    plan, flash, ram = project.plan, project.board.flash, project.board.ram
    return [
        ("firmware", built.firmware.elf),
        ("runtime", f"{plan.runtime} {plan.version}, {plan.kernel_set} kernels"),
        ("ops", ", ".join(registration.use.name for registration in plan.registrations)),
        (
            "flash",
            f"{size.flash_bytes:,} of {flash.length_bytes:,} bytes, "
            f"{size.model_bytes:,} of them the {'models' if project.others else 'model'}",
        ),
        ("RAM", f"{size.ram_bytes:,} of {ram.length_bytes:,} bytes"),
        ("arena", f"{project.arena.bytes:,} bytes, {project.arena.how}"),
        *([("", _describe_parts(project.arena.parts))] if project.arena.parts else []),
        ("manifest", project.folder / "ops.manifest.yaml"),
    ]


def _describe_parts(parts: "ArenaParts") -> str:
    variables = parts.resource_variable_bytes
    return (
        f"head {parts.head_bytes:,} (tensors, scratch), tail {parts.tail_bytes:,} (kept"
        f"{f', {variables:,} of it resource variables' if variables else ''}), "
        f"temporary {parts.temporary_bytes:,}"
    )
