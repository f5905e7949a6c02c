"""The op hash: one number for an op set, which the device computes too, from the model in its flash."""

import struct
import zlib
from collections.abc import Iterable
from typing import Protocol


class VersionedOp(Protocol):
    """What of an op goes into the hash."""

    @property
    def builtin_code(self) -> int:
        """Number in BuiltinOperator."""

    @property
    def custom_name(self) -> str:
        """Exact name of a custom op, else empty."""

    @property
    def version(self) -> int:
        """Highest version in use."""


def pack_ops(ops: Iterable[VersionedOp]) -> bytes:
    """Return the canonical form of an op set, whatever order it comes in.

    Ops sorted by (builtin code, custom name); for each, little-endian u32 builtin code, u32 version,
    u8 length of the name, the name's UTF-8 bytes.
    """
    keyed = sorted((op.builtin_code, op.custom_name.encode(), op.version) for op in ops)
    return b"".join(struct.pack("<IIB", code, version, len(name)) + name for code, name, version in keyed)


def op_hash(ops: Iterable[VersionedOp]) -> int:
    """Return the CRC-32 (zlib's) of an op set's canonical form."""
    return zlib.crc32(pack_ops(ops))


def format_op_hash(value: int) -> str:
    """Return an op hash the way forge and the device print it."""
    return f"0x{value:08X}"
