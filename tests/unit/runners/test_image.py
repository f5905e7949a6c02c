"""What is flashed: the loaded bytes of an ELF, and UF2 made of them."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from tflm_forge.board import load_board
from tflm_forge.elf.segments import Segment
from tflm_forge.errors import FitError, UsageError
from tflm_forge.runners._image import Image, make_uf2, read_image

BOARD = load_board("stm32f4")
PT_LOAD, PT_NOTE = 1, 4


def write_elf(path: Path, loaded: list[tuple[int, int, bytes]], *, kind: int = PT_LOAD) -> Path:
    """Write an ELF that has only segments: (address it runs at, address it is stored at, bytes)."""
    header = b"\x7fELF\x01\x01\x01" + bytes(9)
    header += struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, 0x08000001, 52, 0, 0x05000000, 52, 32, len(loaded), 40, 0, 0)
    table, body = b"", b""
    at = 52 + 32 * len(loaded)
    for virtual, physical, data in loaded:
        table += struct.pack("<8I", kind, at + len(body), virtual, physical, len(data), len(data) + 64, 5, 4)
        body += data
    path.write_bytes(header + table + body)
    return path


def test_data_is_at_its_place_in_flash_and_gaps_are_zero(tmp_path: Path) -> None:
    elf = write_elf(
        tmp_path / "x.elf",
        [
            (0x2000_0000, 0x0800_0010, b"data"),
            (0x0800_0000, 0x0800_0000, b"code code"),
            (0x2000_0100, 0x2000_0100, b""),
        ],
    )
    image = read_image(elf, BOARD)
    assert (image.address, image.end) == (0x0800_0000, 0x0800_0014)
    assert image.data == b"code code" + bytes(7) + b"data"
    assert image.build_id is None


def test_larger_than_flash_is_refused_with_the_bytes(tmp_path: Path) -> None:
    elf = write_elf(tmp_path / "x.elf", [(0, BOARD.flash.origin, bytes(BOARD.flash.length_bytes + 12))])
    with pytest.raises(FitError, match="larger than the flash of stm32f4") as caught:
        read_image(elf, BOARD)
    assert caught.value.bytes_over == {"FLASH": 12}
    assert "12 bytes over its 1048576 bytes" in caught.value.reasons[0]


def test_linked_for_another_board_is_refused(tmp_path: Path) -> None:
    elf = write_elf(tmp_path / "x.elf", [(0, 0x1000_0000, bytes(16))])
    with pytest.raises(UsageError, match="linked to 0x10000000, which is no flash of stm32f4"):
        read_image(elf, BOARD)


@pytest.mark.parametrize("cut", [51, 60, 90])
def test_cut_short_is_refused(tmp_path: Path, cut: int) -> None:
    elf = write_elf(tmp_path / "x.elf", [(0, BOARD.flash.origin, bytes(64))])
    elf.write_bytes(elf.read_bytes()[:cut])
    with pytest.raises(UsageError, match=r"x\.elf: .*cut short"):
        read_image(elf, BOARD)


def test_nothing_to_load_is_refused(tmp_path: Path) -> None:
    elf = write_elf(tmp_path / "x.elf", [(0, BOARD.flash.origin, bytes(64))], kind=PT_NOTE)
    with pytest.raises(UsageError, match="nothing that is loaded"):
        read_image(elf, BOARD)


def _read_uf2(data: bytes) -> tuple[dict[int, bytes], set[int]]:
    """Decode UF2 after the format's document: payload by address, and the families."""
    assert len(data) % 512 == 0
    blocks, families = {}, set()
    for number in range(len(data) // 512):
        block = data[number * 512 : number * 512 + 512]
        assert block[:8] == b"UF2\n" + bytes.fromhex("57515d9e")
        assert block[508:] == bytes.fromhex("306fb10a")
        flags, address, size, index, count, family = struct.unpack_from("<6I", block, 8)
        assert (flags, size, index, count) == (0x2000, 256, number, len(data) // 512)
        assert block[32 + 256 : 508] == bytes(220)
        blocks[address] = block[32 : 32 + 256]
        families.add(family)
    return blocks, families


def test_uf2_holds_the_image_in_whole_blocks() -> None:
    segments = (
        Segment(address=0x1000_0000, data=bytes(range(256)) * 2 + b"tail"),
        Segment(address=0x1000_0280, data=b"next" * 64),
    )
    image = Image(elf=Path("x.elf"), segments=segments, build_id=None)
    blocks, families = _read_uf2(make_uf2(image, 0xE48BFF56))
    assert families == {0xE48BFF56}
    assert sorted(blocks) == [0x1000_0000, 0x1000_0100, 0x1000_0200, 0x1000_0300]
    memory = b"".join(blocks[address] for address in sorted(blocks))
    assert memory == replace(image).data + bytes(len(memory) - len(image.data))
