"""Flashes with PlatformIO's own upload of a project that PlatformIO has built; its board's upload protocol is used."""

from tflm_forge.runners import Capabilities, Command, FlashJob, Plan, Runner
from tflm_forge.runners._failures import Failure

_FLASH_TIMEOUT_S = 600.0  # the first upload may fetch the upload tool


def plan(job: FlashJob) -> Plan:
    """Return the command that uploads what is built, without building."""
    where = ["--upload-port", job.port] if job.port else []
    argv = ("pio", "run", "--project-dir", str(job.image.elf.parent), "-t", "nobuild", "-t", "upload", *where)
    return Plan(steps=(Command(argv=argv, timeout_s=_FLASH_TIMEOUT_S),))


RUNNER = Runner(
    name="platformio",
    title="PlatformIO",
    tools=("pio",),
    install="pip install platformio",
    can=Capabilities(),
    plan=plan,
    failures=(
        Failure(
            kind="no probe",
            pattern=r"Please specify `upload_port`|Error: open failed|No DFU capable",
            source="PlatformIO 6 builder/tools/pioupload.py, and the tools it runs",
        ),
    ),
)
