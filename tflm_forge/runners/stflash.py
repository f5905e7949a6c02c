"""Flashes STM32 through an ST-LINK with st-flash of stlink-tools, which reads back what it has written."""

from tflm_forge.runners import Capabilities, Command, FlashJob, Plan, Runner
from tflm_forge.runners._failures import Failure
from tflm_forge.runners._probes import ST_LINKS

_IDENTIFY_TIMEOUT_S = 30.0
_FLASH_TIMEOUT_S = 240.0


def plan(job: FlashJob) -> Plan:
    """Return the commands. `st-info` can not choose a probe: with a serial number the chip is not asked for its id."""
    where = ["st-flash"]
    if job.serial_number is not None:
        where += ["--serial", job.serial_number]
    image = job.image
    write = Command(
        argv=(*where, "--reset", "write", str(job.bin), f"0x{image.address:08X}"),
        timeout_s=_FLASH_TIMEOUT_S,
        must_say="Flash written and verified",
    )
    erase = Command(argv=(*where, "erase"), timeout_s=_FLASH_TIMEOUT_S)
    asks = job.board.chip_id is not None and job.serial_number is None
    return Plan(
        steps=(erase, write) if job.erase else (write,),
        files={job.bin: image.data},
        identify=Command(argv=("st-info", "--chipid"), timeout_s=_IDENTIFY_TIMEOUT_S) if asks else None,
        chip_id=r"^0x([0-9a-f]{4,8})$",
        chip_id_mask=0xFFF,  # DEV_ID of DBGMCU_IDCODE; stlink 1.7.0 leaves the revision out
    )


RUNNER = Runner(
    name="stflash",
    title="st-flash",
    tools=("st-flash",),
    install="sudo apt-get install stlink-tools",
    can=Capabilities(erase=True, verify=True, serial_number=True),
    plan=plan,
    probes=ST_LINKS,
    unlock="With STM32CubeProgrammer, or with OpenOCD: `stm32f2x unlock 0` (STM32F2, F4, F7).",
    failures=(
        Failure(kind="permission", pattern=r"access error|LIBUSB_ERROR_ACCESS", source="stlink 1.7.0 stlink-lib/usb.c"),
        Failure(kind="no probe", pattern=r"Couldn't find \w+ ST-Link devices", source="stlink 1.7.0 stlink-lib/usb.c"),
        Failure(kind="busy", pattern=r"unable to claim", source="stlink 1.7.0 stlink-lib/usb.c"),
        Failure(kind="locked", pattern=r"Flash memory is write protected", source="stlink 1.7.0 common.c"),
        Failure(kind="locked", pattern=r"Failed to unlock flash", source="stlink 1.7.0 common.c"),
        Failure(kind="verify", pattern=r"Verification of flash failed", source="stlink 1.7.0 common.c"),
        Failure(
            kind="no target",
            pattern=r"Failed to connect to target|Failed to enter SWD mode|unknown chip id! 0\b",
            source="stlink 1.7.0 common.c, st-flash/flash.c",
        ),
        Failure(kind="unknown chip", pattern=r"unknown chip id!|unknown coreid", source="stlink 1.7.0 common.c"),
    ),
)
