"""The layout of a model package, as docs/ota.md has it; all numbers are little-endian."""

import struct
from enum import IntFlag

MAGIC = b"\x89TFLMP\r\n"
"""Not text, and with an end of line that a transfer as text changes."""

FORMAT = 1
SUFFIX = ".tflmpkg"
SIGNED_TEXT = b"tflm-forge model package 1\0"
"""What stands before the digest in the signed message, so that a signature of a package is one of nothing else."""

FIXED = struct.Struct("<8sHHIIIIIIII32s")
"""Magic, format, flags, bytes of header, model, schema, op hash, ops, resource variables, arena, op table, SHA-256."""

OP_FIXED = struct.Struct("<IIB")
"""Builtin code, version, length of the custom name that follows."""

CRC = struct.Struct("<I")
STRINGS = 7
"""Model's file, runtime, its version, kernel set, board, how the arena need is known, forge's version."""

ALIGNMENT_BYTES = 16
"""TFLM wants a model so; the header is padded, so that a package in flash is run in place."""

MAX_HEADER_BYTES = 64 * 1024
MAX_STRING_BYTES = 255
DIGEST_BYTES = 32


class Flag(IntFlag):
    """What of a package is not a number."""

    SIGNED = 1
    ARENA_MEASURED = 2
    COMPRESSED = 4
