"""Flashes with pyOCD: CMSIS-DAP, ST-LINK and J-Link probes. It reads no flash back by itself: a second run compares."""

from tflm_forge.runners import Capabilities, Command, FlashJob, Plan, Runner
from tflm_forge.runners._failures import Failure

_IDENTIFY_TIMEOUT_S = 60.0
_FLASH_TIMEOUT_S = 240.0


def plan(job: FlashJob) -> Plan:
    """Return the commands: load, then compare the flash with the image and start it.

    Without `--no-wait` pyOCD waits for a probe for ever; with `auto_unlock`, its default, it would wipe a locked chip.
    """
    where = ["--no-wait", "--target", job.text("target"), "-O", "auto_unlock=false"]
    if job.serial_number is not None:
        where += ["--uid", job.serial_number]
    erase = "chip" if job.erase else "sector"
    image = job.image
    compare = f'compare 0x{image.address:08X} "{job.bin}"'
    chip = job.board.chip_id
    identify = None
    if chip is not None:
        argv = ("pyocd", "commander", *where, "--command", f"read32 0x{chip.address:08X}")
        identify = Command(argv=argv, timeout_s=_IDENTIFY_TIMEOUT_S)
    return Plan(
        steps=(
            Command(
                argv=("pyocd", "load", *where, "--erase", erase, "--format", "elf", str(image.elf)),
                timeout_s=_FLASH_TIMEOUT_S,
            ),
            Command(
                argv=("pyocd", "commander", *where, "--command", compare, "--command", "reset"),
                timeout_s=_FLASH_TIMEOUT_S,
                must_say=f"All {len(image.data)} bytes match",
            ),
        ),
        files={job.bin: image.data},
        identify=identify,
        chip_id=r"^[0-9a-f]{8}:\s+([0-9a-f]{8})",
    )


RUNNER = Runner(
    name="pyocd",
    title="pyOCD",
    tools=("pyocd",),
    install="pip install pyocd",
    can=Capabilities(erase=True, verify=True, serial_number=True),
    plan=plan,
    keys=("target",),
    required=("target",),
    unlock="With pyOCD: pyocd erase --chip --target TARGET, with the option auto_unlock as it is by default.",
    failures=(
        Failure(kind="several probes", pattern=r"Enter the number of the debug probe", source="0.46 core/helpers.py"),
        Failure(kind="several probes", pattern=r"More than one debug probe matches", source="0.46 core/helpers.py"),
        Failure(kind="no probe", pattern=r"No connected debug probe", source="0.46 core/helpers.py"),
        Failure(
            kind="permission",
            pattern=r"Access denied|insufficient permissions|\[Errno 13\]",
            source="pyusb 1.2 usb/backend/libusb1.py: texts of LIBUSB_ERROR_ACCESS",
        ),
        Failure(kind="busy", pattern=r"Resource busy|\[Errno 16\]", source="pyusb 1.2 usb/backend/libusb1.py"),
        Failure(kind="unknown chip", pattern=r"Target type \S+ not recognized", source="0.46 board/board.py"),
        Failure(
            kind="locked",
            pattern=r"APPROTECT enabled: not automatically unlocking|in secure state: not automatically unlocking",
            source="0.46 target/family/target_nRF52.py, target_kinetis.py",
        ),
        Failure(kind="verify", pattern=r"Mismatched byte at", source="0.46 commands/commands.py: CompareCommand"),
        Failure(
            kind="no target",
            pattern=r"No ACK received|No cores were discovered|Memory transfer fault|Unable to (?:connect|power up)",
            source="0.46 probe/pydapaccess/dap_access_cmsis_dap.py, coresight/",
        ),
    ),
)
