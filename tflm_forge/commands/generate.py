"""`forge generate`: renders the project and builds nothing."""

from tflm_forge.commands._options import Job, takes_job


@takes_job
def run(job: Job) -> None:
    """Write the firmware project of a model: C++, linker script, CMakeLists.txt, manifest.

    Example: forge generate model.tflite --board stm32f4 -o firmware
    """
    from tflm_forge.arena import estimate_arena
    from tflm_forge.build import lock_folder
    from tflm_forge.console import show_note, show_text, show_warning
    from tflm_forge.generate import Arena, generate_project
    from tflm_forge.runtimes import plan_build

    plan = plan_build(job.model, job.board.core, job.settings, job.others)
    if job.settings.arena_bytes is None:
        size = Arena(bytes=estimate_arena(job.model, *job.others), how="estimated")
        show_warning(f"the arena of {size.bytes} bytes is estimated; `forge build` measures it")
    else:
        size = Arena(bytes=job.settings.arena_bytes, how="given with --arena")
    with lock_folder(job.folder, show_note):
        project = generate_project(job.folder, job.model, job.board, plan, job.settings, size, job.others)
    show_text(f"{project.folder}: {len(plan.registrations)} ops, runtime {plan.runtime} {plan.version}")
