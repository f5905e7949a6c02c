"""What of an ELF file goes into memory, at the addresses a loader stores it at."""

import struct
from dataclasses import dataclass

from tflm_forge.elf.records import Elf
from tflm_forge.errors import UsageError

# ELF32 header and program header: TIS ELF specification 1.2, figures 1-3 and 2-1.
_SEGMENT_TABLE = struct.Struct("<28xI10xHH")
_SEGMENT = struct.Struct("<IIIII12x")
_PT_LOAD = 1


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Bytes that a loader stores, and where: .data at its place in flash, not at the one in RAM it is copied to."""

    address: int
    data: bytes

    @property
    def end(self) -> int:
        """Return the first address behind the bytes."""
        return self.address + len(self.data)


def read_segments(elf: Elf) -> tuple[Segment, ...]:
    """Return the loaded bytes of an ELF file, in address order.

    Raises:
        UsageError: the file is damaged, or nothing in it is loaded.
    """
    table, entry_bytes, count = _SEGMENT_TABLE.unpack_from(elf.data)
    segments = []
    for number in range(count if entry_bytes == _SEGMENT.size else 0):
        kind, offset, _, address, size = _SEGMENT.unpack_from(elf.data, table + number * entry_bytes)
        if kind != _PT_LOAD or not size:
            continue
        data = elf.data[offset : offset + size]
        if len(data) != size:
            raise UsageError(f"{elf.path}: cut short: a segment ends at {offset + size} of {len(elf.data)} bytes")
        segments.append(Segment(address=address, data=data))
    if not segments:
        raise UsageError(f"{elf.path}: holds nothing that is loaded into memory", hint="Name a finished firmware.elf.")
    return tuple(sorted(segments, key=lambda segment: segment.address))
