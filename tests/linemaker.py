"""Makes line tables (.debug_line) for tests, byte by byte and with nothing of forge.

Format: DWARF version 5, section 6.2; versions 2 to 4 list their folders and files as texts.
"""

import struct
from collections.abc import Sequence

Row = tuple[int, str]
"""Where a stretch starts, and the path of its file; an empty path ends the sequence."""

_OPCODES = bytes((0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1))


def make_unit(rows: Sequence[Row], *, version: int = 5) -> bytes:
    """Return one unit's line table: rows in ascending order, the last of each sequence with an empty path."""
    paths = list(dict.fromkeys(path for _, path in rows if path))
    folders = ["/build", *dict.fromkeys(path.rpartition("/")[0] for path in paths)]
    body = bytes((2,)) + (b"\1" if version >= 4 else b"") + struct.pack("<BbBB", 1, -5, 14, 13) + _OPCODES
    files = [(path.rpartition("/")[2].encode() + b"\0", folders.index(path.rpartition("/")[0])) for path in paths]
    if version == 5:
        body += bytes((1, 1, 8)) + _leb(len(folders)) + b"".join(folder.encode() + b"\0" for folder in folders)
        body += bytes((2, 1, 8, 2, 11)) + _leb(len(files) + 1) + b"main.cc\0\0"
        body += b"".join(name + bytes((folder,)) for name, folder in files)
    else:
        body += b"".join(folder.encode() + b"\0" for folder in folders[1:]) + b"\0"
        body += b"".join(name + bytes((folder, 0, 0)) for name, folder in files) + b"\0"
    start = struct.pack("<H", version) + (b"\4\0" if version == 5 else b"") + struct.pack("<I", len(body))
    unit = start + body + _make_program(rows, paths)
    return struct.pack("<I", len(unit)) + unit


def _make_program(rows: Sequence[Row], paths: Sequence[str]) -> bytes:
    program, last = bytearray(), None
    for address, path in rows:
        if last is None:
            program += b"\0\5\2" + struct.pack("<I", address)
        else:
            program += b"\2" + _leb((address - last) // 2)  # DW_LNS_advance_pc, in steps of two
        last = address
        if path:
            program += b"\4" + _leb(paths.index(path) + 1) + b"\1"  # DW_LNS_set_file, DW_LNS_copy
        else:
            program += b"\0\1\1"  # DW_LNE_end_sequence
            last = None
    return bytes(program)


def _leb(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = value >> 7, value & 127
        out.append(low | (128 if value else 0))
        if not value:
            return bytes(out)
