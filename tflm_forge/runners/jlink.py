"""Flashes with SEGGER's J-Link Commander, which takes its commands from a file."""

import sys
from pathlib import Path

from tflm_forge.proc import has_tool
from tflm_forge.runners import Capabilities, Command, FlashJob, Plan, Runner
from tflm_forge.runners._failures import Failure
from tflm_forge.runners._probes import J_LINKS

TOOLS = ("JLinkExe", "JLink") if sys.platform != "win32" else ("JLink",)

_IDENTIFY_TIMEOUT_S = 30.0
_FLASH_TIMEOUT_S = 240.0


def plan(job: FlashJob) -> Plan:
    """Return the commands: erase, load, verify, reset and go, from a file of J-Link Commander's own commands."""
    image = job.image
    script = job.folder / "flash.jlink"
    lines = [
        "r",
        "h",
        *(["erase"] if job.erase else []),
        f'loadfile "{job.bin}" 0x{image.address:08X}',
        f'verifybin "{job.bin}" 0x{image.address:08X}',
        "r",
        "g",
        "qc",
    ]
    files = {job.bin: image.data, script: _text(lines)}
    chip = job.board.chip_id
    identify = None
    if chip is not None:
        question = job.folder / "identify.jlink"
        files[question] = _text([f"mem32 0x{chip.address:08X} 1", "qc"])
        identify = Command(argv=_command(job, question), timeout_s=_IDENTIFY_TIMEOUT_S)
    return Plan(
        steps=(Command(argv=_command(job, script), timeout_s=_FLASH_TIMEOUT_S, must_say="Verify successful"),),
        files=files,
        identify=identify,
        chip_id=r"^[0-9A-F]{8} = ([0-9A-F]{8})",
    )


def _command(job: FlashJob, script: Path) -> tuple[str, ...]:
    program = next((tool for tool in TOOLS if has_tool(tool)), TOOLS[0])
    where = ["-SelectEmuBySN", job.serial_number] if job.serial_number is not None else []
    speed = job.text("speed_khz", "4000")
    return (
        *(program, "-NoGui", "1", "-ExitOnError", "1", "-AutoConnect", "1", *where),
        *("-Device", job.text("device"), "-If", "SWD", "-Speed", speed, "-CommandFile", str(script)),
    )


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


RUNNER = Runner(
    name="jlink",
    title="J-Link Commander",
    tools=TOOLS,
    install="https://www.segger.com/downloads/jlink",
    can=Capabilities(erase=True, verify=True, serial_number=True),
    plan=plan,
    keys=("device", "speed_khz"),
    required=("device",),
    probes=J_LINKS,
    unlock="J-Link Commander does it while it connects, when it is asked to in a terminal.",
    failures=(
        Failure(
            kind="no probe",
            pattern=r"Connecting to J-Link via USB\.\.\.\s*FAILED|Cannot connect to J-Link|No emulators? connected",
            source="SEGGER, J-Link Commander (kb.segger.com/J-Link_Commander)",
        ),
        Failure(
            kind="unknown chip",
            pattern=r"Unknown device|is unknown to this software version",
            source="SEGGER, J-Link Commander",
        ),
        Failure(
            kind="locked",
            pattern=r"[Rr]ead(?:out)? ?protect|[Dd]evice is (?:locked|secured)|protection is (?:active|enabled)",
            source="SEGGER, J-Link device support (kb.segger.com: STM32, nRF52)",
        ),
        Failure(
            kind="verify",
            pattern=r"Verif(?:y|ication) failed|Error while verifying|mismatch",
            source="SEGGER, J-Link Commander",
        ),
        Failure(
            kind="no target",
            pattern=r"Cannot connect to target|Could not connect to the target|No device found on SWD|VTref=0\.000V",
            source="SEGGER, J-Link Commander",
        ),
    ),
)
