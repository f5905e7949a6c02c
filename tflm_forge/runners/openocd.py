"""Flashes with OpenOCD: any probe and chip it has a configuration for. Needs OpenOCD 0.12."""

from tflm_forge.runners import Capabilities, Command, FlashJob, Plan, Runner
from tflm_forge.runners._failures import Failure

_IDENTIFY_TIMEOUT_S = 30.0
_FLASH_TIMEOUT_S = 240.0


def plan(job: FlashJob) -> Plan:
    """Return the commands: erase, program, verify and reset in one run of OpenOCD.

    `program` without `verify` ends with status 0 even when nothing was written.
    """
    base = ["openocd", *(word for config in job.text("config").split() for word in ("-f", config))]
    if job.serial_number is not None:
        base += ["-c", f"adapter serial {job.serial_number}"]
    flash = job.board.flash
    erase = [
        "-c",
        "init",
        "-c",
        "reset init",
        "-c",
        f"flash erase_address 0x{flash.origin:08X} 0x{flash.length_bytes:X}",
    ]
    program = ["-c", f"program {{{job.image.elf}}} verify reset exit"]
    chip = job.board.chip_id
    identify = None
    if chip is not None:
        words = ["-c", "init", "-c", f"mdw 0x{chip.address:08X}", "-c", "shutdown"]
        identify = Command(argv=(*base, *words), timeout_s=_IDENTIFY_TIMEOUT_S)
    return Plan(
        steps=(
            Command(
                argv=(*base, *(erase if job.erase else ()), *program),
                timeout_s=_FLASH_TIMEOUT_S,
                must_say="** Verified OK **",
            ),
        ),
        identify=identify,
        chip_id=r"^0x[0-9a-f]{8}: ([0-9a-f]{8})",
    )


RUNNER = Runner(
    name="openocd",
    title="OpenOCD",
    tools=("openocd",),
    install="sudo apt-get install openocd",
    can=Capabilities(erase=True, verify=True, serial_number=True),
    plan=plan,
    keys=("config",),
    required=("config",),
    unlock="In OpenOCD: `stm32f2x unlock 0` (STM32F2, F4, F7), `stm32l4x unlock 0` (STM32L4, U5), `nrf52_recover`.",
    failures=(
        Failure(kind="outdated", pattern=r'invalid subcommand "serial', source="OpenOCD 0.11: has no `adapter serial`"),
        Failure(kind="several probes", pattern=r"Multiple devices found", source="0.12 src/jtag/drivers/jlink.c"),
        Failure(kind="permission", pattern=r"LIBUSB_ERROR_ACCESS", source="0.12 src/jtag/drivers/libusb_helper.c"),
        Failure(kind="busy", pattern=r"LIBUSB_ERROR_BUSY", source="0.12 src/jtag/drivers/libusb_helper.c"),
        Failure(
            kind="no probe",
            pattern=r"unable to find a matching CMSIS-DAP device",
            source="0.12 src/jtag/drivers/cmsis_dap.c",
        ),
        Failure(kind="no probe", pattern=r"No J-Link device found", source="0.12 src/jtag/drivers/jlink.c"),
        Failure(
            kind="no target",
            pattern=r"init mode failed \(unable to connect to the target\)",
            source="0.12 src/jtag/drivers/stlink_usb.c",
        ),
        Failure(kind="no probe", pattern=r"Error: open failed", source="0.12 src/jtag/drivers/stlink_usb.c"),
        Failure(kind="locked", pattern=r"device has AP lock engaged", source="0.12 tcl/target/nrf52.cfg"),
        Failure(kind="locked", pattern=r"stm32x device protected", source="0.12 src/flash/nor/stm32f2x.c, stm32l4x.c"),
        Failure(kind="wrong chip", pattern=r"UNEXPECTED.*", source="0.12 src/jtag/core.c, hla/hla_interface.c"),
        Failure(
            kind="wrong chip", pattern=r"Cannot identify target as a STM32", source="0.12 src/flash/nor/stm32f2x.c"
        ),
        Failure(kind="verify", pattern=r"\*\* Verify Failed \*\*", source="0.12 src/flash/startup.tcl"),
        Failure(
            kind="no target",
            pattern=r"cannot read IDR|all ones|all zeroes|xamination failed",
            source="0.12 src/target/adi_v5_swd.c, src/jtag/core.c, src/target/target.c",
        ),
    ),
)
