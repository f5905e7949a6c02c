"""What is flashed: the bytes of an ELF at their addresses, whether they fit the board, and the build they are of."""

import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tflm_forge.board import Board
from tflm_forge.elf import read_elf, readable_name
from tflm_forge.elf.segments import Segment, read_segments
from tflm_forge.errors import FitError, UsageError

BUILD_ID_SYMBOL = "forge::kBuildId"
_BUILD_ID_BYTES = 16

# The UF2 format: https://github.com/microsoft/uf2, "File format" and "Family ID".
_UF2_BLOCK = struct.Struct("<8I476sI")
_UF2_MAGIC_START, _UF2_MAGIC_SECOND, _UF2_MAGIC_END = 0x0A324655, 0x9E5D5157, 0x0AB16F30
_UF2_HAS_FAMILY = 0x2000
_UF2_PAYLOAD_BYTES = 256


@dataclass(frozen=True, kw_only=True)
class Image:
    """Firmware to be flashed.

    Attributes:
        elf: the file.
        segments: its loaded bytes, in address order.
        build_id: what a device that runs it answers to INFO; None: the ELF does not say.
    """

    elf: Path
    segments: tuple[Segment, ...]
    build_id: bytes | None

    @property
    def address(self) -> int:
        """The lowest address."""
        return self.segments[0].address

    @property
    def end(self) -> int:
        """The first address behind it."""
        return max(segment.end for segment in self.segments)

    @cached_property
    def data(self) -> bytes:
        """All bytes from the lowest address on; gaps are zero, as `objcopy -O binary` fills them."""
        data = bytearray(self.end - self.address)
        for segment in self.segments:
            at = segment.address - self.address
            data[at : at + len(segment.data)] = segment.data
        return bytes(data)


def read_image(elf: Path, board: Board) -> Image:
    """Read firmware and check that a board's flash can hold it.

    Raises:
        UsageError: not an ELF, a damaged one, or one that is linked for other memory.
        FitError: it is larger than the board's flash.
    """
    file = read_elf(elf)
    segments = read_segments(file)
    symbol = next((s for s in file.symbols if readable_name(s.name) == BUILD_ID_SYMBOL), None)
    build_id = file.read(symbol.address, _BUILD_ID_BYTES) if symbol else b""
    _check_fit(elf, segments, board)
    return Image(elf=elf, segments=segments, build_id=build_id if len(build_id) == _BUILD_ID_BYTES else None)


def _check_fit(elf: Path, segments: tuple[Segment, ...], board: Board) -> None:
    regions = [region for region in board.regions if region.kind == "flash"]
    for segment in segments:
        region = next((r for r in regions if r.origin <= segment.address < r.end), None)
        if region is None:
            known = ", ".join(f"{r.name} 0x{r.origin:08X}..0x{r.end - 1:08X}" for r in regions)
            raise UsageError(
                f"{elf}: linked to 0x{segment.address:08X}, which is no flash of {board.name} ({known})",
                hint=f"It was built for another board: forge build --board {board.name}.",
            )
        over = segment.end - region.end
        if over > 0:
            raise FitError(
                f"{elf}: larger than the flash of {board.name}",
                reasons=[f"{region.name}: {over} bytes over its {region.length_bytes} bytes"],
                bytes_over={region.name: over},
            )


def make_uf2(image: Image, family_id: int) -> bytes:
    """Return the image as UF2, in blocks of 256 bytes at multiples of 256; what a block has besides is zero."""
    blocks: dict[int, bytearray] = {}
    for segment in image.segments:
        for at in range(segment.address - segment.address % _UF2_PAYLOAD_BYTES, segment.end, _UF2_PAYLOAD_BYTES):
            block = blocks.setdefault(at, bytearray(_UF2_PAYLOAD_BYTES))
            first, last = max(at, segment.address), min(at + _UF2_PAYLOAD_BYTES, segment.end)
            block[first - at : last - at] = segment.data[first - segment.address : last - segment.address]
    return b"".join(
        _UF2_BLOCK.pack(
            _UF2_MAGIC_START,
            _UF2_MAGIC_SECOND,
            _UF2_HAS_FAMILY,
            address,
            _UF2_PAYLOAD_BYTES,
            number,
            len(blocks),
            family_id,
            bytes(data),
            _UF2_MAGIC_END,
        )
        for number, (address, data) in enumerate(sorted(blocks.items()))
    )
