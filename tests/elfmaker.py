"""Makes small 32-bit ARM ELF files for tests, byte by byte and with nothing of forge."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

PROGBITS, SYMTAB, STRTAB, NOBITS = 1, 2, 3, 8
WRITE, ALLOC, EXEC = 1, 2, 4
NOTYPE, OBJECT, FUNC, FILE = 0, 1, 2, 4
ARM, RISCV = 40, 243
ABSOLUTE = 0xFFF1 - 1
"""The part of a FILE symbol."""

_HEADER_BYTES = 52
_SEGMENT_BYTES = 32
_SECTION_BYTES = 40


@dataclass(frozen=True, kw_only=True)
class Part:
    """A section as it will be written; `data` is its bytes, or its size when the file holds none."""

    name: str
    address: int
    data: bytes | int
    flags: int


@dataclass(frozen=True, kw_only=True)
class Name:
    """A symbol as it will be written; `part` is the number of its section. In a file, local ones come first."""

    name: str
    value: int
    size: int
    kind: int
    part: int
    is_local: bool = False


def make_elf(
    parts: Sequence[Part], names: Sequence[Name], *, read_only: Sequence[tuple[int, int]] = (), machine: int = ARM
) -> bytes:
    """Return an ELF with these sections and symbols; read_only are segments (address, size) without write access."""
    body = bytearray(_HEADER_BYTES + _SEGMENT_BYTES * len(read_only))
    headers = [bytes(_SECTION_BYTES)]
    labels = bytearray(b"\0")

    def add(name: str, kind: int, flags: int, address: int, data: bytes | int, link: int = 0, entry: int = 0) -> None:
        at, label = len(body), len(labels)
        labels.extend(name.encode() + b"\0")
        size = data if isinstance(data, int) else len(data)
        headers.append(struct.pack("<10I", label, kind, flags, address, at, size, link, 0, 4, entry))
        if not isinstance(data, int):
            body.extend(data)

    for part in parts:
        add(part.name, NOBITS if isinstance(part.data, int) else PROGBITS, part.flags, part.address, part.data)
    strings = bytearray(b"\0")
    table = bytearray(16)
    for name in names:
        table += struct.pack(
            "<3IBBH", len(strings), name.value, name.size, (0 if name.is_local else 0x10) | name.kind, 0, name.part + 1
        )
        strings += name.name.encode() + b"\0"
    add(".symtab", SYMTAB, 0, 0, bytes(table), link=len(parts) + 2, entry=16)
    add(".strtab", STRTAB, 0, 0, bytes(strings))
    add(".shstrtab", STRTAB, 0, 0, bytes(labels) + b".shstrtab\0")
    identity = b"\x7fELF\x01\x01\x01" + bytes(9)
    places = (_HEADER_BYTES if read_only else 0, len(body))
    counts = (_SEGMENT_BYTES, len(read_only), _SECTION_BYTES, len(headers), len(headers) - 1)
    body[:_HEADER_BYTES] = identity + struct.pack(
        "<HHIIIIIHHHHHH", 2, machine, 1, 0, *places, 0, _HEADER_BYTES, *counts
    )
    for i, (address, size) in enumerate(read_only):
        at = _HEADER_BYTES + _SEGMENT_BYTES * i
        body[at : at + _SEGMENT_BYTES] = struct.pack("<8I", 1, 0, address, address, size, size, 5, 4)
    return bytes(body) + b"".join(headers)


FIRMWARE = make_elf(
    [
        Part(name=".text", address=0x08000000, data=bytes(range(64)), flags=ALLOC | EXEC),
        Part(name=".forge_model", address=0x08000040, data=bytes(48), flags=ALLOC),
        Part(name=".rodata", address=0x08000070, data=bytes(16), flags=ALLOC | WRITE),
        Part(name=".stack", address=0x20000000, data=256, flags=ALLOC | WRITE),
        Part(name=".data", address=0x20000100, data=b"\x10\x20\x30\x40" * 2, flags=ALLOC | WRITE),
        Part(name=".bss", address=0x20000108, data=24, flags=ALLOC | WRITE),
        Part(name=".forge_arena", address=0x20000120, data=1024, flags=ALLOC | WRITE),
        Part(name=".comment", address=0, data=b"made for a test", flags=0),
    ],
    [
        Name(name="$t", value=0x08000000, size=0, kind=0, part=0),
        Name(name="main", value=0x08000001, size=40, kind=FUNC, part=0),
        Name(name="helper", value=0x08000029, size=24, kind=FUNC, part=0),
        Name(name="g_model_data", value=0x08000040, size=48, kind=OBJECT, part=1),
        Name(name="table", value=0x08000070, size=12, kind=OBJECT, part=2),
        Name(name="counter", value=0x20000104, size=4, kind=OBJECT, part=4),
        Name(name="g_tensor_arena", value=0x20000120, size=1024, kind=OBJECT, part=6),
    ],
    read_only=[(0x08000000, 0x80)],
)
"""What firmware looks like: constants that only a section flag calls writable, an empty arena, a model."""
