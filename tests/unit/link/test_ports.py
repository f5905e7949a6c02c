from dataclasses import replace
from pathlib import Path

import pytest

from tflm_forge.board import load_board
from tflm_forge.commands._flashing import choose_port
from tflm_forge.errors import DeviceError, UsageError
from tflm_forge.link.port import PortInfo
from tflm_forge.link.ports import find_port


def port(url: str, usb_id: str = "", serial_number: str = "", description: str = "") -> PortInfo:
    return PortInfo(url=url, description=description, usb_id=usb_id, serial_number=serial_number)


DAPLINK = "0D28:0204"


def test_the_only_board_of_its_kind() -> None:
    ports = [port("/dev/ttyACM0", "2341:0043"), port("/dev/ttyACM1", DAPLINK), port("/dev/ttyS0")]
    assert find_port(load_board("microbit"), ports) == "/dev/ttyACM1"


def test_none_is_connected() -> None:
    with pytest.raises(DeviceError, match="no microbit is connected: no port has the USB id 0D28:0204") as caught:
        find_port(load_board("microbit"), [port("/dev/ttyACM0", "2341:0043"), port("/dev/ttyS0")])
    assert "/dev/ttyACM0 (2341:0043), /dev/ttyS0 (no USB id)" in caught.value.hint
    with pytest.raises(DeviceError) as caught:
        find_port(load_board("microbit"), [])
    assert caught.value.hint == "This computer has no serial port now."


def test_several_are_listed_with_their_serial_numbers() -> None:
    ports = [port("/dev/ttyACM0", DAPLINK, "9900A", "micro:bit"), port("/dev/ttyACM1", DAPLINK)]
    with pytest.raises(DeviceError, match="2 boards that may be a microbit are connected") as caught:
        find_port(load_board("microbit"), ports)
    assert caught.value.reasons == (
        "/dev/ttyACM0: 0D28:0204, serial number 9900A (micro:bit)",
        "/dev/ttyACM1: 0D28:0204, serial number unknown",
    )
    assert "--port" in caught.value.hint
    assert "DAPLink" in caught.value.hint
    assert "microbit-v2" in caught.value.hint


def test_two_kinds_with_one_probe_are_told_apart_by_their_serial_numbers() -> None:
    ports = [port("/dev/ttyACM0", DAPLINK, "9904360265"), port("/dev/ttyACM1", DAPLINK, "9900000031")]
    assert find_port(load_board("microbit"), ports) == "/dev/ttyACM1"
    assert find_port(load_board("microbit-v2"), ports) == "/dev/ttyACM0"
    with pytest.raises(DeviceError, match=r"no microbit is connected.*9900 or 9901"):
        find_port(load_board("microbit"), ports[:1])


def test_several_boards_with_one_probe_are_named() -> None:
    ports = [port("/dev/ttyACM0", "0483:374B", "066B"), port("/dev/ttyACM1", "0483:374B", "066C")]
    assert find_port(load_board("nucleo-f401re"), ports[:1]) == "/dev/ttyACM0"
    with pytest.raises(DeviceError) as caught:
        find_port(load_board("nucleo-f401re"), ports)
    assert "ST-LINK/V2-1" in caught.value.hint
    assert "nucleo-f446re" in caught.value.hint
    assert "nucleo-f401re" not in caught.value.hint


def test_a_board_without_usb_ids() -> None:
    with pytest.raises(DeviceError, match="mps2-an385 has no usb_ids in its board file") as caught:
        find_port(load_board("mps2-an385"), [port("/dev/ttyACM0", DAPLINK)])
    assert "--port" in caught.value.hint


def test_the_port_a_command_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = load_board("microbit")
    bare = replace(emulated, emulator=None)
    monkeypatch.setattr("tflm_forge.link.port.list_ports", lambda: (port("/dev/ttyACM3", DAPLINK),))
    assert choose_port(emulated, None) is None
    assert choose_port(emulated, "/dev/ttyUSB9") == "/dev/ttyUSB9"
    assert choose_port(emulated, "auto") == "/dev/ttyACM3"
    assert choose_port(bare, None) == "/dev/ttyACM3"


@pytest.mark.parametrize("value", ['["0d28:0204"]', '["0D280204"]', '"0D28:0204"', "[7]"])
def test_usb_ids_of_a_board_file_are_checked(tmp_path: Path, value: str) -> None:
    text = load_board("microbit").path.read_text(encoding="utf-8")
    assert load_board("microbit").usb_ids == (DAPLINK,)
    path = tmp_path / "mine.toml"
    path.write_text(text.replace('usb_ids = ["0D28:0204"]', f"usb_ids = {value}"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"mine\.toml: usb_ids"):
        load_board(str(path))
