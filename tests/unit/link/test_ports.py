import pytest

from tflm_forge.errors import DeviceError
from tflm_forge.link.port import PortInfo
from tflm_forge.link.ports import find_port


def port(url: str, usb_id: str = "", serial_number: str = "", description: str = "") -> PortInfo:
    return PortInfo(url=url, description=description, usb_id=usb_id, serial_number=serial_number)


DAPLINK = "0D28:0204"


def test_the_only_board_of_its_kind() -> None:
    ports = [port("/dev/ttyACM0", "2341:0043"), port("/dev/ttyACM1", DAPLINK), port("/dev/ttyS0")]
    assert find_port("microbit", ["0483:374B", DAPLINK.lower()], ports) == "/dev/ttyACM1"


def test_none_is_connected() -> None:
    with pytest.raises(DeviceError, match="no microbit is connected: no port has the USB id 0D28:0204") as caught:
        find_port("microbit", [DAPLINK], [port("/dev/ttyACM0", "2341:0043"), port("/dev/ttyS0")])
    assert "/dev/ttyACM0 (2341:0043), /dev/ttyS0 (no USB id)" in caught.value.hint
    with pytest.raises(DeviceError) as caught:
        find_port("microbit", [DAPLINK], [])
    assert caught.value.hint == "This computer has no serial port now."


def test_several_are_listed_with_their_serial_numbers() -> None:
    ports = [port("/dev/ttyACM0", DAPLINK, "9900A", "micro:bit"), port("/dev/ttyACM1", DAPLINK)]
    with pytest.raises(DeviceError, match="2 boards that may be a microbit are connected") as caught:
        find_port("microbit", [DAPLINK], ports)
    assert caught.value.reasons == (
        "/dev/ttyACM0: 0D28:0204, serial number 9900A (micro:bit)",
        "/dev/ttyACM1: 0D28:0204, serial number unknown",
    )
    assert "--port" in caught.value.hint


def test_a_board_without_usb_ids() -> None:
    with pytest.raises(DeviceError, match="mps2-an385 has no usb_ids in its board file") as caught:
        find_port("mps2-an385", [], [port("/dev/ttyACM0", DAPLINK)])
    assert "--port" in caught.value.hint
