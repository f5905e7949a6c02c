"""Model packages: one file with a model, what it needs and for what it was made, and perhaps a signature.

docs/ota.md has the layout byte by byte.
"""

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tflm_forge import __version__
from tflm_forge.errors import ModelError, UsageError
from tflm_forge.gates.facts import FirmwareFacts
from tflm_forge.gates.needs import ArenaNeed, ModelNeeds, find_needs
from tflm_forge.gates.package_layout import (
    ALIGNMENT_BYTES,
    CRC,
    FIXED,
    FORMAT,
    MAGIC,
    MAX_HEADER_BYTES,
    MAX_STRING_BYTES,
    SIGNED_TEXT,
    Flag,
)
from tflm_forge.gates.signing import Signature, is_signed_by, key_id
from tflm_forge.model import Model
from tflm_forge.ops.hash import format_op_hash, pack_ops

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

Signer = Callable[[bytes], Signature]


class PackageError(ModelError):
    """A package that must not be used; `reason` is a word for each kind of fault, the same from release to release."""

    def __init__(self, message: str, *, reason: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class PackageTarget:
    """The firmware that a package was made for; empty where that was not known."""

    runtime: str
    version: str
    kernel_set: str
    board: str


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package that is whole; whether its signature is right only `check_signature` knows.

    Attributes:
        model: the model.
        needs: what the model needs.
        arena: the arena need, as the packer knew it.
        target: the firmware it was made for.
        forge_version: the forge that made it.
        digest: SHA-256 of header and model.
        signature: None for a package that is not signed.
        size_bytes: bytes of the file.
    """

    model: Model
    needs: ModelNeeds
    arena: ArenaNeed
    target: PackageTarget
    forge_version: str
    digest: bytes
    signature: Signature | None
    size_bytes: int


def pack_model(model: Model, arena: ArenaNeed, facts: FirmwareFacts, signer: Signer | None = None) -> bytes:
    """Return a package.

    Args:
        model: the model.
        arena: how large an arena it needs on the firmware.
        facts: the firmware it is for.
        signer: signs a message; None leaves the package without a signature.
    """
    needs = find_needs(model)
    flags = Flag.SIGNED if signer else Flag(0)
    flags |= Flag.ARENA_MEASURED if arena.is_measured else Flag(0)
    flags |= Flag.COMPRESSED if needs.is_compressed else Flag(0)
    table = pack_ops(needs.ops)
    target = (facts.runtime, facts.version, facts.kernel_set, facts.board)
    strings = b"".join(_pack_string(text or "") for text in (model.name, *target, arena.how, __version__))
    length = FIXED.size + len(table) + len(strings) + CRC.size
    header_bytes = -(-length // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    if header_bytes > MAX_HEADER_BYTES:
        raise UsageError(f"{model.name}: the names of its {len(needs.ops)} ops do not fit a package's header")
    head = FIXED.pack(
        MAGIC,
        FORMAT,
        flags,
        header_bytes,
        len(model.data),
        needs.schema_version,
        needs.op_hash,
        len(needs.ops),
        needs.resource_variables,
        arena.bytes,
        len(table),
        bytes.fromhex(needs.sha256),
    )
    head = (head + table + strings).ljust(header_bytes - CRC.size, b"\0")
    body = head + CRC.pack(zlib.crc32(head)) + model.data
    digest = hashlib.sha256(body).digest()
    signature = signer(SIGNED_TEXT + digest) if signer else None
    return body + digest + (signature.key_id + signature.value if signature else b"")


def _pack_string(text: str) -> bytes:
    data = text.encode(errors="replace")[:MAX_STRING_BYTES]
    data = data.decode(errors="ignore").encode()  # not in the middle of a character
    return bytes([len(data)]) + data


def check_signature(package: Package, key: "Ed25519PublicKey", shown: str) -> None:
    """Check that a package was signed with the private half of a key.

    Args:
        package: the package.
        key: the public key.
        shown: what errors call the package.

    Raises:
        PackageError: it is not signed, signed with another key, or its signature is wrong.
    """
    signature = package.signature
    if signature is None:
        hint = "`forge ota pack --sign KEY` signs; a package without a signature may be from anybody."
        raise PackageError(f"{shown}: not signed", reason="unsigned", hint=hint)
    wanted = key_id(key)
    if signature.key_id != wanted:
        words = f"signed with the key {signature.key_id.hex()}, and the given one is {wanted.hex()}"
        raise PackageError(f"{shown}: {words}", reason="another-key", hint="Give the signer's public key.")
    if not is_signed_by(signature, SIGNED_TEXT + package.digest, key):
        hint = "Do not use it: it was changed after signing, or never signed by the owner of the key."
        raise PackageError(f"{shown}: its signature is wrong", reason="wrong-signature", hint=hint)


def describe_package(package: Package) -> dict[str, Any]:
    """Return all of a package but the model's bytes as plain values, for JSON."""
    needs, arena, target = package.needs, package.arena, package.target
    return {
        "bytes": package.size_bytes,
        "forge": package.forge_version,
        "model": {"file": needs.file, "sha256": needs.sha256, "bytes": needs.size_bytes},
        "schema_version": needs.schema_version,
        "op_hash": format_op_hash(needs.op_hash),
        "ops": [
            {"name": u.name, "builtin_code": u.builtin_code, "custom_name": u.custom_name, "version": u.version}
            for u in needs.ops
        ],
        "resource_variables": needs.resource_variables,
        "compressed": needs.is_compressed,
        "arena": {"bytes": arena.bytes, "how": arena.how, "measured": arena.is_measured},
        "target": {
            "runtime": target.runtime,
            "version": target.version,
            "kernels": target.kernel_set,
            "board": target.board,
        },
        "sha256": package.digest.hex(),
        "signature": {"key": package.signature.key_id.hex()} if package.signature else None,
    }
