"""The op hash against bytes written by hand."""

import zlib
from dataclasses import dataclass

from tflm_forge.ops.hash import format_op_hash, op_hash, pack_ops


@dataclass(frozen=True, kw_only=True)
class Op:
    builtin_code: int
    version: int
    custom_name: str = ""


CONV = Op(builtin_code=3, version=3)
FULLY_CONNECTED = Op(builtin_code=9, version=4)
CUSTOM_A = Op(builtin_code=32, version=1, custom_name="A")
CUSTOM_LONGER = Op(builtin_code=32, version=1, custom_name="AB")
CUSTOM_UMLAUT = Op(builtin_code=32, version=1, custom_name="Ä")
GREAT_CODE = Op(builtin_code=209, version=1)

BYTES = (
    b"\x03\x00\x00\x00\x03\x00\x00\x00\x00"
    b"\x09\x00\x00\x00\x04\x00\x00\x00\x00"
    b"\x20\x00\x00\x00\x01\x00\x00\x00\x01A"
    b"\x20\x00\x00\x00\x01\x00\x00\x00\x02AB"
    b"\x20\x00\x00\x00\x01\x00\x00\x00\x02\xc3\x84"
    b"\xd1\x00\x00\x00\x01\x00\x00\x00\x00"
)


def test_canonical_form_is_the_designed_bytes_in_any_order() -> None:
    ops = [GREAT_CODE, CUSTOM_UMLAUT, CUSTOM_LONGER, CONV, CUSTOM_A, FULLY_CONNECTED]
    assert pack_ops(ops) == BYTES
    assert pack_ops(reversed(ops)) == BYTES


def test_hash_is_the_crc_of_those_bytes() -> None:
    ops = [CONV, FULLY_CONNECTED, CUSTOM_A, CUSTOM_LONGER, CUSTOM_UMLAUT, GREAT_CODE]
    assert op_hash(ops) == zlib.crc32(BYTES)


def test_hash_of_one_op_is_a_known_number() -> None:
    # The CRC-32 in the trailer that gzip writes for 09 00 00 00 04 00 00 00 00.
    assert op_hash([FULLY_CONNECTED]) == 0xBF2A0435
    assert op_hash([]) == 0


def test_version_code_and_name_change_the_hash() -> None:
    hashes = {op_hash([op]) for op in (CONV, FULLY_CONNECTED, Op(builtin_code=3, version=2), CUSTOM_A, CUSTOM_LONGER)}
    assert len(hashes) == 5


def test_hash_is_printed_with_eight_digits() -> None:
    assert format_op_hash(0x1A2B) == "0x00001A2B"
