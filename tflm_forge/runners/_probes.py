"""Debug probes and boards on USB, as Linux lists them: which there are, and whether this user may open them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SYSFS = Path("/sys/bus/usb/devices")
_DEVICE_NODES = Path("/dev/bus/usb")
_RULE_FILE = "/etc/udev/rules.d/70-forge.rules"

# USB ids: contrib/60-openocd.rules of OpenOCD 0.12; RP2040 and RP2350 boot loaders: raspberrypi/usb-pid.
ST_LINKS = (
    *("0483:3744", "0483:3748", "0483:374B", "0483:3752", "0483:374D", "0483:374E", "0483:374F", "0483:3753"),
    "0483:3754",
)
J_LINKS = tuple(f"1366:{product}" for product in ("0101", "0102", "0103", "0104", "0105", "0107", "0108")) + tuple(
    f"1366:{product}" for product in ("1010", "1011", "1012", "1013", "1014", "1015", "1016", "1017", "1018", "1020")
)
J_LINKS += ("1366:1051", "1366:1055", "1366:1061")
CMSIS_DAPS = ("0D28:0204", "2E8A:000C")
PICO_BOOT_LOADERS = ("2E8A:0003", "2E8A:000F")
PROBES = frozenset((*ST_LINKS, *J_LINKS, *CMSIS_DAPS))


@dataclass(frozen=True, kw_only=True)
class UsbDevice:
    """A device on USB; `usb_id` is "VID:PID" in capital hexadecimal, `node` the file that programs open it by."""

    usb_id: str
    serial_number: str
    product: str
    node: Path

    @property
    def is_permitted(self) -> bool:
        """Whether this user may open it."""
        return not self.node.exists() or os.access(self.node, os.R_OK | os.W_OK)


def list_devices(usb_ids: Sequence[str], *, sysfs: Path | None = None) -> tuple[UsbDevice, ...]:
    """Return the connected devices with these USB ids; empty where there is no sysfs (Windows, macOS).

    Args:
        usb_ids: "VID:PID" in capital hexadecimal.
        sysfs: the folder of USB devices; the system's by default.
    """
    found = []
    for entry in sorted((sysfs or SYSFS).glob("*")):
        usb_id = f"{_read(entry / 'idVendor')}:{_read(entry / 'idProduct')}".upper()
        if usb_id not in usb_ids:
            continue
        bus, number = _read(entry / "busnum"), _read(entry / "devnum")
        found.append(
            UsbDevice(
                usb_id=usb_id,
                serial_number=_read(entry / "serial"),
                product=_read(entry / "product"),
                node=_DEVICE_NODES / bus.zfill(3) / number.zfill(3),
            )
        )
    return tuple(found)


def describe_devices(devices: Sequence[UsbDevice]) -> list[str]:
    """Return one line for each device."""
    return [
        f"serial number {device.serial_number or 'unknown'}: {device.product or 'USB device'} ({device.usb_id})"
        for device in devices
    ]


def udev_rule(devices: Sequence[UsbDevice]) -> str:
    """Return how to permit the devices to whoever sits at the computer, and to members of plugdev elsewhere."""
    ids = sorted({device.usb_id.lower() for device in devices})
    if not ids:
        return (
            "Install the udev rules of the tool (Debian: part of the packages openocd and stlink-tools), "
            "then unplug the device and plug it in again."
        )
    rules = [
        f'SUBSYSTEM=="usb", ATTRS{{idVendor}}=="{vendor}", ATTRS{{idProduct}}=="{product}", '
        'MODE="0660", GROUP="plugdev", TAG+="uaccess"'
        for vendor, product in (usb_id.split(":") for usb_id in ids)
    ]
    return "\n".join(
        [
            f"Put this into {_RULE_FILE}:",
            *(f"  {rule}" for rule in rules),
            "then: sudo udevadm control --reload && sudo udevadm trigger, and plug the device in again.",
        ]
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        # An entry that is no device, a device without such a text, or one that has just been unplugged.
        return ""
