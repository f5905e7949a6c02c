"""Keys: made so that only their owner can read them, and refused in every other form, without a word of the secret."""

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tflm_forge.errors import ToolError, UsageError
from tflm_forge.gates import signing
from tflm_forge.gates.signing import is_signed_by, load_private_key, load_public_key, make_key, make_signer

PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
PLAIN = serialization.NoEncryption()


@pytest.fixture
def private(tmp_path: Path) -> Path:
    path = tmp_path / "release.pem"
    make_key(path)
    return path


def write_secret(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_the_private_key_is_its_owners_alone(private: Path) -> None:
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(private.with_name("release.pem.pub").stat().st_mode) == 0o644
    assert sorted(path.name for path in private.parent.iterdir()) == ["release.pem", "release.pem.pub"]


def test_a_key_pair_signs_and_checks(private: Path) -> None:
    signature = make_signer(load_private_key(private))(b"message")
    public = load_public_key(private.with_name("release.pem.pub"))
    assert is_signed_by(signature, b"message", public)
    assert not is_signed_by(signature, b"massage", public)
    # By the library alone.
    key = serialization.load_pem_private_key(private.read_bytes(), password=None)
    assert isinstance(key, Ed25519PrivateKey)
    assert key.sign(b"message") == signature.value


def test_no_key_is_overwritten(private: Path) -> None:
    before = private.read_bytes()
    with pytest.raises(UsageError, match="never overwritten"):
        make_key(private)
    other = private.with_name("other.pem")
    other.with_name("other.pem.pub").write_text("mine")
    with pytest.raises(UsageError, match=r"other\.pem\.pub"):
        make_key(other)
    assert private.read_bytes() == before
    assert not other.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666])
def test_a_key_that_others_may_read_is_refused(private: Path, mode: int) -> None:
    private.chmod(mode)
    with pytest.raises(UsageError, match="others") as error:
        load_private_key(private)
    assert "chmod 600" in error.value.hint


def refusals(tmp_path: Path) -> dict[str, tuple[Path, str]]:
    own = Ed25519PrivateKey.generate()
    curve = ec.generate_private_key(ec.SECP256R1())
    locked = own.private_bytes(PEM, PKCS8, serialization.BestAvailableEncryption(b"secret"))
    whole = own.private_bytes(PEM, PKCS8, PLAIN)
    return {
        "locked": (write_secret(tmp_path / "locked", locked), "encrypted"),
        "another kind": (write_secret(tmp_path / "curve", curve.private_bytes(PEM, PKCS8, PLAIN)), "another kind"),
        "damaged": (write_secret(tmp_path / "damaged", whole.replace(b"M", b"N", 1)), "damaged"),
        "cut off": (write_secret(tmp_path / "cut", whole[:60]), "damaged"),
        "text": (write_secret(tmp_path / "text", b"hello"), "not a private key"),
        "empty": (write_secret(tmp_path / "empty", b""), "not a private key"),
        "absent": (tmp_path / "nowhere", "no such key file"),
        "a folder": (tmp_path, "no such key file"),
    }


@pytest.mark.parametrize(
    "kind", ["locked", "another kind", "damaged", "cut off", "text", "empty", "absent", "a folder"]
)
def test_what_is_no_private_key(tmp_path: Path, kind: str) -> None:
    path, words = refusals(tmp_path)[kind]
    with pytest.raises(UsageError, match=words) as error:
        load_private_key(path)
    assert str(path) in error.value.message
    said = error.value.message + error.value.hint
    secret = path.read_text().splitlines()[1:-1] if path.is_file() else []
    assert not any(line in said for line in secret if line)


def test_what_is_no_public_key(private: Path) -> None:
    with pytest.raises(UsageError, match="private key") as error:
        load_public_key(private)
    assert ".pub" in error.value.hint
    curve = ec.generate_private_key(ec.SECP256R1()).public_key()
    other = private.with_name("curve.pub")
    other.write_bytes(curve.public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(UsageError, match="another kind"):
        load_public_key(other)
    other.write_bytes(b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    with pytest.raises(UsageError, match="damaged"):
        load_public_key(other)


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolError) as error:
        make_key(tmp_path / "release.pem")
    assert "tflm-forge[sign]" in error.value.hint
