"""Flashes with PlatformIO: its platform for the board builds the project's sources once more, and uploads them."""

from tflm_forge.errors import UsageError
from tflm_forge.runners import Capabilities, Command, FlashJob, Plan, Runner
from tflm_forge.runners._failures import Failure

_FLASH_TIMEOUT_S = 1800.0  # the first upload fetches a toolchain and the upload tool


def plan(job: FlashJob) -> Plan:
    """Return the command that builds and uploads in the board's own environment of platformio.ini.

    What it uploads is PlatformIO's build of the very same sources, which answers INFO with the very same build id.

    Raises:
        UsageError: the board is none of PlatformIO's.
    """
    folder = job.image.elf.parent
    if not job.board.platformio:
        raise UsageError(f"{job.board.path}: has no table [platformio]", hint="Choose another --runner.")
    where = ["--upload-port", job.port] if job.port else []
    environment = job.board.platformio["board"]
    argv = ("pio", "run", "--project-dir", str(folder), "-e", environment, "-t", "upload", *where)
    return Plan(steps=(Command(argv=argv, timeout_s=_FLASH_TIMEOUT_S, must_say="SUCCESS"),))


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
