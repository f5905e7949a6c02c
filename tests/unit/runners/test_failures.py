"""What messages of flashing tools mean, and which probes are there."""

from pathlib import Path

import pytest

from tflm_forge.errors import DeviceError, ForgeError, ToolError
from tflm_forge.runners import list_runners, load_runner
from tflm_forge.runners._failures import explain
from tflm_forge.runners._probes import ST_LINKS, UsbDevice, list_devices, udev_rule

# Output of the real tools, as far as it can be had without a probe; else the text of the source that is named.
MESSAGES: dict[str, tuple[str, str, type[ForgeError], str]] = {
    "openocd 0.12, no ST-LINK": (
        "openocd",
        "Info : clock speed 2000 kHz\nError: open failed\nin procedure 'program'\n** OpenOCD init failed **\n",
        DeviceError,
        "finds no probe",
    ),
    "openocd 0.12, no CMSIS-DAP": (
        "openocd",
        "Error: unable to find a matching CMSIS-DAP device\n",
        DeviceError,
        "finds no probe",
    ),
    "openocd 0.12, no permission: libusb_helper.c, then stlink_usb.c": (
        "openocd",
        "Error: libusb_open() failed with LIBUSB_ERROR_ACCESS\nError: open failed\n",
        DeviceError,
        "no permission",
    ),
    "openocd 0.12, two J-Links: jlink.c": (
        "openocd",
        "Error: Multiple devices found, specify the desired device\n",
        DeviceError,
        "several probes",
    ),
    "openocd 0.12, simulated STM32L4 at RDP level 1": (
        "openocd",
        "Info : RDP level 1 (0xBB)\nError: stm32x device protected\nError: failed erasing sectors 0 to 0\n",
        DeviceError,
        "is locked",
    ),
    "openocd 0.12, simulated chip without power": (
        "openocd",
        "Error: JTAG scan chain interrogation failed: all zeroes\nError: Invalid ACK (0) in DAP response\n",
        DeviceError,
        "does not answer",
    ),
    "openocd 0.12, ST-LINK without a chip: stlink_usb.c": (
        "openocd",
        "Info : Target voltage: 3.2\nError: init mode failed (unable to connect to the target)\n",
        DeviceError,
        "does not answer",
    ),
    "openocd 0.12, simulated worn flash": (
        "openocd",
        "Error: checksum mismatch - attempting binary compare\n** Verify Failed **\n",
        DeviceError,
        "reads back",
    ),
    "pyocd 0.46, no probe": (
        "pyocd",
        "No connected debug probes\n0000520 E No target device available [load_cmd]\n",
        DeviceError,
        "finds no probe",
    ),
    "pyocd 0.46, two probes: core/helpers.py": (
        "pyocd",
        " 0 ST-Link 066D\n 1 ST-Link 066E\n\nEnter the number of the debug probe or 'q' to quit> ",
        DeviceError,
        "several probes",
    ),
    "pyocd 0.46, no pack: board/board.py": (
        "pyocd",
        "C Target type stm32f407vg not recognized. Use 'pyocd list --targets' to see [__main__]",
        ToolError,
        "does not know the chip",
    ),
    "pyocd 0.46, locked nRF52: target_nRF52.py": (
        "pyocd",
        "W NRF52840 APPROTECT enabled: not automatically unlocking [target_nRF52]",
        DeviceError,
        "is locked",
    ),
    "stlink 1.7.0, no probe": (
        "stflash",
        "st-flash 1.7.0\n2026-11-30T16:22:34 WARN usb.c: Couldn't find any ST-Link devices\n",
        DeviceError,
        "finds no probe",
    ),
    "stlink 1.7.0, no permission: usb.c": (
        "stflash",
        "WARN usb.c: Error -3 (LIBUSB_ERROR_ACCESS) opening ST-Link v2 device 001:004\n",
        DeviceError,
        "no permission",
    ),
    "dfu-util 0.11, no board": (
        "dfu",
        "dfu-util: A valid DFU suffix will be required in a future dfu-util release\n"
        "dfu-util: No DFU capable USB device available\n",
        DeviceError,
        "finds no probe",
    ),
    "dfu-util 0.11, two boards: main.c": (
        "dfu",
        "dfu-util: More than one DFU capable USB device found! Try `--list' and specify the serial number\n",
        DeviceError,
        "several probes",
    ),
    "dfu-util 0.11, locked: DFU 1.1": (
        "dfu",
        "DFU state(10) = dfuERROR, status(11) = Device's firmware is corrupt. errVENDOR\n",
        DeviceError,
        "is locked",
    ),
    "gdb 13, no server": (
        "gdb",
        "localhost:1: Connection refused.\nThe program has no registers now.\n",
        DeviceError,
        "no gdb server",
    ),
    "gdb 13, a section differs: remote.c": (
        "gdb",
        "Section .text, range 0x8000040 -- 0x8004ad8: MIS-MATCHED!\n",
        DeviceError,
        "reads back",
    ),
    "picotool 2.1, no board: main.cpp": (
        "uf2",
        "No accessible RP-series devices in BOOTSEL mode were found.\n",
        DeviceError,
        "finds no probe",
    ),
    "picotool 2.1, no permission: main.cpp": (
        "uf2",
        "No accessible RP-series devices in BOOTSEL mode were found.\n\nbut:\n\n"
        "RP2040 device at bus 1, address 4 appears to be in BOOTSEL mode, but picotool was unable to connect. "
        "Maybe try 'sudo' or check your permissions.\n",
        DeviceError,
        "no permission",
    ),
    "picotool 2.1, two boards: main.cpp": (
        "uf2",
        "ERROR: Command requires a single RP-series device to be targeted.\n",
        DeviceError,
        "several probes",
    ),
    "J-Link Commander, no probe": (
        "jlink",
        "Connecting to J-Link via USB...FAILED: Cannot connect to J-Link.\n",
        DeviceError,
        "finds no probe",
    ),
    "J-Link Commander, no chip": ("jlink", "Cannot connect to target.\n", DeviceError, "does not answer"),
}


@pytest.mark.parametrize(("runner", "output", "error", "words"), MESSAGES.values(), ids=MESSAGES)
def test_message(runner: str, output: str, error: type[ForgeError], words: str) -> None:
    known = load_runner(runner)
    log = Path("/x/flash.log")
    found = explain(known.failures, output, title=known.title, board="stm32f4", log=log, unlock=known.unlock)
    assert type(found) is error
    assert words in found.message
    assert found.reasons
    assert found.reasons[0] in " ".join(output.split())
    assert str(log) in found.hint


@pytest.mark.parametrize("runner", list_runners())
def test_what_is_not_known_is_not_explained(runner: str) -> None:
    known = load_runner(runner)
    assert explain(known.failures, "all went well\n", title="x", board="y", log=None) is None
    assert all(failure.source for failure in known.failures)


def test_several_probes_are_listed_with_their_serial_numbers() -> None:
    devices = [
        UsbDevice(usb_id="0483:374B", serial_number=number, product="STM32 STLink", node=Path("/nothing"))
        for number in ("066DFF", "066E00")
    ]
    known = load_runner("pyocd")
    output = "Enter the number of the debug probe or 'q' to quit> "
    found = explain(known.failures, output, title="pyOCD", board="stm32f4", log=None, devices=devices)
    assert found is not None
    assert found.reasons[1:] == (
        "serial number 066DFF: STM32 STLink (0483:374B)",
        "serial number 066E00: STM32 STLink (0483:374B)",
    )
    assert "--serial-number" in found.hint


def test_udev_rule_is_for_the_probe_that_is_there() -> None:
    device = UsbDevice(usb_id="0483:374B", serial_number="", product="", node=Path("/nothing"))
    lines = udev_rule([device, device]).splitlines()
    assert [line for line in lines if "idVendor" in line] == [
        '  SUBSYSTEM=="usb", ATTRS{idVendor}=="0483", ATTRS{idProduct}=="374b", '
        'MODE="0660", GROUP="plugdev", TAG+="uaccess"'
    ]
    assert "udevadm" in lines[-1]
    assert "/etc/udev/rules.d/" in lines[0]
    assert "openocd" in udev_rule([])


def test_devices_are_read_from_sysfs(tmp_path: Path) -> None:
    texts = {"idVendor": "0483", "idProduct": "374b", "serial": "066DFF", "product": "STM32 STLink"}
    texts |= {"busnum": "1", "devnum": "12"}
    for name, values in (("1-1", texts), ("1-2", {"idVendor": "046d", "idProduct": "c52b"}), ("1-1:1.0", {})):
        (tmp_path / name).mkdir()
        for key, value in values.items():
            (tmp_path / name / key).write_text(f"{value}\n", encoding="utf-8")
    (device,) = list_devices(ST_LINKS, sysfs=tmp_path)
    assert (device.usb_id, device.serial_number, device.product) == ("0483:374B", "066DFF", "STM32 STLink")
    assert device.node == Path("/dev/bus/usb/001/012")
    assert list_devices(ST_LINKS, sysfs=tmp_path / "nothing") == ()
