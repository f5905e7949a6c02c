"""Reads a package's file and trusts nothing in it.

The file's length has to be what the header says, a CRC-32 covers the header, a SHA-256 all of it, and what the header
says of the model has to be what the model is.
"""

import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.errors import ModelError, UsageError
from tflm_forge.gates.needs import ArenaNeed, find_needs
from tflm_forge.gates.package import Package, PackageError, PackageTarget
from tflm_forge.gates.package_layout import (
    ALIGNMENT_BYTES,
    CRC,
    DIGEST_BYTES,
    FIXED,
    FORMAT,
    MAGIC,
    MAX_HEADER_BYTES,
    OP_FIXED,
    STRINGS,
    Flag,
)
from tflm_forge.gates.signing import KEY_ID_BYTES, SIGNATURE_BYTES, Signature
from tflm_forge.model import MAX_FILE_BYTES, Model, read_model
from tflm_forge.ops.hash import pack_ops

_ALL_FLAGS = sum(Flag)


def is_package(path: Path) -> bool:
    """Return whether a file begins as a package does, even when the rest is damaged."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def load_package(path: Path) -> Package:
    """Read the file of a package.

    Raises:
        PackageError: it is damaged, of a newer format, or no package.
        UsageError: it can not be read.
    """
    try:
        if not path.is_file():
            raise UsageError(f"{path}: no such package", hint="`forge ota pack` makes one.")
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + MAX_HEADER_BYTES + DIGEST_BYTES + (KEY_ID_BYTES + SIGNATURE_BYTES) + 1)
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror or error}") from error
    return read_package(data, shown=str(path))


def read_package(data: bytes, *, shown: str) -> Package:
    """Read the bytes of a package.

    Args:
        data: the bytes.
        shown: what errors call the package.

    Raises:
        PackageError: it is damaged, of a newer format, or no package.
    """
    reader = _Reader(data, shown)
    header = reader.header()
    reader.check_length(header)
    end = header.header_bytes + header.model_bytes
    digest = data[end : end + DIGEST_BYTES]
    if hashlib.sha256(data[:end]).digest() != digest:
        raise reader.fault("damaged", "its bytes do not give the SHA-256 at its end: the model was damaged on the way")
    model = reader.model(header)
    needs = find_needs(model)
    if (needs.op_hash, needs.resource_variables, needs.schema_version, needs.is_compressed) != (
        header.op_hash,
        header.resource_variables,
        header.schema_version,
        bool(header.flags & Flag.COMPRESSED),
    ) or pack_ops(needs.ops) != header.op_table:
        raise reader.fault("header-differs", "its header says other things of the model than the model itself")
    trailer = data[end + DIGEST_BYTES :]
    _, runtime, version, kernel_set, board, how, forge_version = header.strings
    return Package(
        model=model,
        needs=needs,
        arena=ArenaNeed(bytes=header.arena_bytes, how=how, is_measured=bool(header.flags & Flag.ARENA_MEASURED)),
        target=PackageTarget(runtime=runtime, version=version, kernel_set=kernel_set, board=board),
        forge_version=forge_version,
        digest=digest,
        signature=Signature(key_id=trailer[:KEY_ID_BYTES], value=trailer[KEY_ID_BYTES:]) if trailer else None,
        size_bytes=len(data),
    )


@dataclass(frozen=True, kw_only=True)
class _Header:
    """The header, as it stands there."""

    flags: int
    header_bytes: int
    model_bytes: int
    schema_version: int
    op_hash: int
    resource_variables: int
    arena_bytes: int
    model_sha256: bytes
    op_table: bytes
    strings: tuple[str, ...]

    @property
    def total_bytes(self) -> int:
        """Bytes that the whole file has to have."""
        signature = (KEY_ID_BYTES + SIGNATURE_BYTES) if self.flags & Flag.SIGNED else 0
        return self.header_bytes + self.model_bytes + DIGEST_BYTES + signature


class _Reader:
    """Takes a package apart, and says what is wrong with it."""

    def __init__(self, data: bytes, shown: str) -> None:
        self.data = data
        self.shown = shown

    def fault(self, reason: str, words: str, hint: str = "Copy it again, or pack it again.") -> PackageError:
        return PackageError(f"{self.shown}: {words}", reason=reason, hint=hint)

    def header(self) -> _Header:
        """Read the header; its CRC is looked at before anything but its own length is believed."""
        data = self.data
        if data[: len(MAGIC)] != MAGIC:
            raise self.fault("not-a-package", "not a model package", "`forge ota pack` makes one.")
        if len(data) < FIXED.size:
            raise self.fault("truncated", f"cut off within the header, after {len(data)} bytes")
        _, version, flags, header_bytes, *rest = FIXED.unpack_from(data)
        if header_bytes % ALIGNMENT_BYTES or not FIXED.size + CRC.size <= header_bytes <= MAX_HEADER_BYTES:
            raise self.fault("header-damaged", f"its header says that it has {header_bytes} bytes, which no header has")
        if len(data) < header_bytes:
            raise self.fault("truncated", f"cut off within the header, after {len(data)} of {header_bytes} bytes")
        end = header_bytes - CRC.size
        if CRC.unpack_from(data, end)[0] != zlib.crc32(data[:end]):
            raise self.fault("header-damaged", "its header does not give the CRC-32 at its end")
        if version != FORMAT:
            words = f"its format is version {version}, and this forge reads version {FORMAT}"
            raise self.fault("newer-format", words, "Update forge.")
        model_bytes, schema, op_hash, op_count, variables, arena_bytes, table_bytes, sha256 = rest
        table_end = min(FIXED.size + table_bytes, end)
        table = data[FIXED.size : table_end]
        strings, at = self._strings(table_end, end)
        whole = len(table) == table_bytes and _count_ops(table) == op_count and zlib.crc32(table) == op_hash
        if not whole or any(data[at:end]) or flags & ~_ALL_FLAGS:
            raise self.fault("header-damaged", "its header holds what no header of this format has")
        return _Header(
            flags=flags,
            header_bytes=header_bytes,
            model_bytes=model_bytes,
            schema_version=schema,
            op_hash=op_hash,
            resource_variables=variables,
            arena_bytes=arena_bytes,
            model_sha256=sha256,
            op_table=table,
            strings=strings,
        )

    def check_length(self, header: _Header) -> None:
        """Refuse a file that is shorter or longer than its header says."""
        found, wanted = len(self.data), header.total_bytes
        if found < wanted:
            raise self.fault("truncated", f"cut off: {found} of {wanted} bytes")
        if found > wanted:
            raise self.fault("trailing-bytes", f"{found - wanted} bytes stand behind its end, at {wanted} bytes")

    def model(self, header: _Header) -> Model:
        """Read the model, which has to be the one that the header names."""
        data = self.data[header.header_bytes : header.header_bytes + header.model_bytes]
        if hashlib.sha256(data).digest() != header.model_sha256:
            raise self.fault("header-differs", "its header has the SHA-256 of another model")
        try:
            return read_model(data, name=header.strings[0] or "model.tflite", shown=f"{self.shown}: the model in it")
        except ModelError as error:
            raise PackageError(error.message, reason="model-damaged", hint=error.hint) from error

    def _strings(self, at: int, end: int) -> tuple[tuple[str, ...], int]:
        strings = []
        for _ in range(STRINGS):
            if at >= end or at + 1 + self.data[at] > end:
                raise self.fault("header-damaged", "a name in its header ends behind the header")
            try:
                strings.append(self.data[at + 1 : at + 1 + self.data[at]].decode())
            except UnicodeDecodeError as error:
                raise self.fault("header-damaged", "a name in its header is not UTF-8") from error
            at += 1 + self.data[at]
        return tuple(strings), at


def _count_ops(table: bytes) -> int | None:
    """Return how many ops a table has; None when its last one does not end where the table does."""
    at = count = 0
    while at + OP_FIXED.size <= len(table):
        at += OP_FIXED.size + table[at + OP_FIXED.size - 1]
        count += 1
    return count if at == len(table) else None
