"""Flashes over USB into the boot loader of the chip itself (ST's DfuSe) with dfu-util; no probe is needed."""

from tflm_forge.runners import Capabilities, Command, FlashJob, Plan, Runner
from tflm_forge.runners._failures import Failure

_FLASH_TIMEOUT_S = 240.0


def plan(job: FlashJob) -> Plan:
    """Return the commands: write, then read back and leave the boot loader, which starts the firmware."""
    where = ["dfu-util", "--device", job.text("usb_id"), "--alt", job.text("alt", "0")]
    if job.serial_number is not None:
        where += ["--serial", job.serial_number]
    image = job.image
    start = f"0x{image.address:08X}"
    back = job.folder / "readback.bin"
    write_to = f"{start}:mass-erase:force" if job.erase else start
    return Plan(
        steps=(
            Command(
                argv=(*where, "--dfuse-address", write_to, "--download", str(job.bin)),
                timeout_s=_FLASH_TIMEOUT_S,
                must_say="File downloaded successfully",
            ),
            Command(
                argv=(*where, "--dfuse-address", f"{start}:{len(image.data)}:leave", "--upload", str(back)),
                timeout_s=_FLASH_TIMEOUT_S,
                reads_back=back,
            ),
        ),
        files={job.bin: image.data},
    )


RUNNER = Runner(
    name="dfu",
    title="dfu-util",
    tools=("dfu-util",),
    install="sudo apt-get install dfu-util",
    can=Capabilities(erase=True, verify=True, serial_number=True),
    plan=plan,
    keys=("usb_id", "alt"),
    required=("usb_id",),
    unlock="With dfu-util: --dfuse-address :unprotect:force.",
    failures=(
        Failure(kind="several probes", pattern=r"More than one DFU capable USB device", source="dfu-util 0.11 main.c"),
        Failure(
            kind="permission",
            pattern=r"Cannot open (?:DFU )?device.*LIBUSB_ERROR_ACCESS",
            source="dfu-util 0.11 main.c, dfu_util.c",
        ),
        Failure(kind="no probe", pattern=r"No DFU capable USB device available", source="dfu-util 0.11 main.c"),
        Failure(kind="locked", pattern=r"errVENDOR|READ_UNPROTECT", source="USB DFU 1.1, 6.1.2; ST AN3156"),
        Failure(
            kind="verify", pattern=r"Device is unable to write memory|errVERIFY|errCHECK_ERASED", source="dfu-util 0.11"
        ),
    ),
)
