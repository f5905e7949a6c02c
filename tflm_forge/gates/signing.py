"""Ed25519 keys and signatures of model packages, by PyPI's `cryptography`; keys are PEM files."""

import contextlib
import hashlib
import importlib.util
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tflm_forge.errors import ToolError, UsageError
from tflm_forge.files import write_if_changed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_ID_BYTES = 8
SIGNATURE_BYTES = 64
PUBLIC_SUFFIX = ".pub"

_MAX_KEY_FILE_BYTES = 64 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PRIVATE_MARK = b"PRIVATE KEY"


@dataclass(frozen=True, kw_only=True)
class Signature:
    """A signature of a package, and which key it is said to be of."""

    key_id: bytes
    value: bytes


def make_key(path: Path) -> Path:
    """Make a key pair: the private key into a file that only its owner may read, the public one beside it.

    Args:
        path: file of the private key; the public key's file has `.pub` behind it.

    Returns:
        The file of the public key.

    Raises:
        UsageError: one of the files exists, or can not be written.
        ToolError: `cryptography` is not installed.
    """
    _require_library()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public_path = path.with_name(path.name + PUBLIC_SUFFIX)
    for each in (path, public_path):
        if each.exists() or each.is_symlink():
            raise UsageError(f"{each}: exists, and a key is never overwritten", hint="Choose another name.")
    private = Ed25519PrivateKey.generate()
    secret = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    try:
        _write_secret(path, secret)
        write_if_changed(public_path, public)
    except OSError as error:
        raise UsageError(f"{path}: can not write the key: {error.strerror or error}") from error
    return public_path


def load_private_key(path: Path) -> "Ed25519PrivateKey":
    """Read a private key that nobody but its owner may read.

    Raises:
        UsageError: no such file, others may read it, or it holds no unencrypted Ed25519 private key.
        ToolError: `cryptography` is not installed.
    """
    _require_library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = _read_key_file(path)
    if _PRIVATE_MARK not in data:
        raise UsageError(f"{path}: not a private key", hint="`forge ota keygen FILE` makes one.")
    if os.name == "posix" and path.stat().st_mode & _OTHERS:
        raise UsageError(f"{path}: a private key that others than its owner may read", hint=f"chmod 600 {path}")
    try:
        key = load_pem_private_key(data, password=None)
    except TypeError as error:
        raise UsageError(
            f"{path}: the key is encrypted, and forge reads keys without a passphrase",
            hint=f"openssl pkey -in {path} -out FILE takes it off; keep FILE where only the release job reads it.",
        ) from error
    except Exception as error:  # cryptography raises errors of its own and of OpenSSL
        raise UsageError(f"{path}: damaged, or not a private key in PEM form") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{path}: a private key of another kind than Ed25519", hint="`forge ota keygen FILE`.")
    return key


def load_public_key(path: Path) -> "Ed25519PublicKey":
    """Read a public key.

    Raises:
        UsageError: no such file, or it holds no Ed25519 public key.
        ToolError: `cryptography` is not installed.
    """
    _require_library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    data = _read_key_file(path)
    if _PRIVATE_MARK in data:
        raise UsageError(
            f"{path}: a private key, and packages are checked with the public one",
            hint=f"`forge ota keygen` wrote it to a file ending in {PUBLIC_SUFFIX}.",
        )
    try:
        key = load_pem_public_key(data)
    except Exception as error:  # cryptography raises errors of its own and of OpenSSL
        raise UsageError(f"{path}: damaged, or not a public key in PEM form") from error
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(f"{path}: a public key of another kind than Ed25519", hint="`forge ota keygen FILE`.")
    return key


def key_id(key: "Ed25519PublicKey") -> bytes:
    """Return the first bytes of the SHA-256 of a public key's 32 raw bytes."""
    return hashlib.sha256(key.public_bytes_raw()).digest()[:KEY_ID_BYTES]


def make_signer(key: "Ed25519PrivateKey") -> Callable[[bytes], Signature]:
    """Return a function that signs a message with a private key."""
    own_id = key_id(key.public_key())
    return lambda message: Signature(key_id=own_id, value=key.sign(message))


def is_signed_by(signature: Signature, message: bytes, key: "Ed25519PublicKey") -> bool:
    """Return whether a signature of a message was made with the private half of a key."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature.value, message)
    except InvalidSignature:
        return False
    return True


def _require_library() -> None:
    if importlib.util.find_spec("cryptography") is None:
        raise ToolError(
            "signatures need PyPI's `cryptography`, which is not installed", hint="pip install 'tflm-forge[sign]'"
        )


def _read_key_file(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise UsageError(f"{path}: no such key file", hint="`forge ota keygen FILE` makes one.")
        with path.open("rb") as file:
            return file.read(_MAX_KEY_FILE_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: can not read the key: {error.strerror or error}") from error


def _write_secret(path: Path, secret: bytes) -> None:
    """Write a file whole, readable by its owner alone from its first moment on, and never over another."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secret)
        os.link(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
