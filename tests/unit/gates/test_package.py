"""Model packages: read by the table of docs/ota.md alone, and damaged in every way."""

import contextlib
import hashlib
import random
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tflite
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tests.modelmaker import make_single_op_model
from tests.unit.gates.firmwares import DIGITS, facts_of, raise_version
from tflm_forge.gates.facts import FirmwareFacts
from tflm_forge.gates.needs import ArenaNeed
from tflm_forge.gates.package import PackageError, check_signature, pack_model
from tflm_forge.gates.package_reading import load_package, read_package
from tflm_forge.gates.signing import make_signer
from tflm_forge.model import Model, load_model, read_model

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "ota.md"
MUTATIONS = 1000
ARENA = ArenaNeed(bytes=3328, how="measured on mps2-an386: 3312 bytes fail", is_measured=True)


@pytest.fixture(scope="module")
def digits() -> Model:
    return load_model(DIGITS)


@pytest.fixture(scope="module")
def facts(digits: Model) -> FirmwareFacts:
    return facts_of(digits)


@pytest.fixture(scope="module")
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


@pytest.fixture(scope="module")
def plain(digits: Model, facts: FirmwareFacts) -> bytes:
    return pack_model(digits, ARENA, facts)


@pytest.fixture(scope="module")
def signed(digits: Model, facts: FirmwareFacts, key: Ed25519PrivateKey) -> bytes:
    return pack_model(digits, ARENA, facts, make_signer(key))


def read_by_the_document(data: bytes) -> dict[str, Any]:
    """Return the fields of a package as the table of docs/ota.md has them, by offset; knows nothing of forge's code."""
    sizes = {"H": 0, "M": 0, "T": 0}
    fields: dict[str, Any] = {}
    for offset, kind, words in re.findall(r"^\| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", DOCUMENT.read_text(), re.MULTILINE):
        if not re.fullmatch(r"[HMT\d +-]+|then", offset):
            continue
        at = eval(offset, {}, sizes) if offset != "then" else fields["end"]
        if kind in ("u16", "u32"):
            (value,) = struct.unpack_from("<H" if kind == "u16" else "<I", data, at)
            if re.match(r"[HMT],", words):
                sizes[words[0]] = value
        elif kind.startswith("bytes "):
            count = eval(kind.removeprefix("bytes "), {}, sizes)
            value = data[at : at + count]
        elif kind.startswith("strings "):
            value = []
            for _ in range(int(kind.split()[1])):
                value.append(data[at + 1 : at + 1 + data[at]].decode())
                at += 1 + data[at]
            fields["end"] = at
        else:
            assert kind == "zeros"
            value = data[at : sizes["H"] - 4]
        fields[offset] = value
    return fields


def test_the_documented_table_is_enough_to_read_it(signed: bytes, key: Ed25519PrivateKey) -> None:
    model = DIGITS.read_bytes()
    found = read_by_the_document(signed)
    assert found["0"] == b"\x89TFLMP\r\n"
    assert (found["8"], found["10"]) == (1, 1 | 2)
    header, length = found["12"], found["16"]
    assert (header % 16, length, found["20"]) == (0, len(model), 3)
    assert (found["36"], found["32"]) == (3328, 0)
    assert found["44"] == hashlib.sha256(model).digest()
    assert found["H"] == model
    table, ops = found["76"], []
    while table:
        code, version, size = struct.unpack_from("<IIB", table)
        ops.append((code, version, table[9 : 9 + size]))
        table = table[9 + size :]
    schema = tflite.Model.GetRootAs(model, 0)
    codes = [schema.OperatorCodes(i) for i in range(schema.OperatorCodesLength())]
    assert ops == sorted((max(c.BuiltinCode(), c.DeprecatedBuiltinCode()), c.Version(), b"") for c in codes)
    assert found["28"] == len(ops)
    # The device prints this hash for digits, see examples/digits.
    assert found["24"] == zlib.crc32(found["76"]) == 0xB188CBCE
    assert found["76 + T"][:6] == ["digits.tflite", "bundled", "0.1.0", "dsp", "mps2-an386", ARENA.how]
    assert found["then"] == bytes(header - 4 - found["end"])
    assert found["H - 4"] == zlib.crc32(signed[: header - 4])
    digest = hashlib.sha256(signed[: header + length]).digest()
    assert found["H + M"] == digest
    public = key.public_key()
    assert found["H + M + 32"] == hashlib.sha256(public.public_bytes_raw()).digest()[:8]
    public.verify(found["H + M + 40"], b"tflm-forge model package 1\0" + digest)
    assert len(signed) == header + length + 32 + 8 + 64


def test_what_went_in_comes_out(plain: bytes, signed: bytes, key: Ed25519PrivateKey, digits: Model) -> None:
    for data in (plain, signed):
        package = read_package(data, shown="x")
        assert package.model.data == digits.data
        assert package.model.name == "digits.tflite"
        assert package.arena == ARENA
        assert (package.target.runtime, package.target.kernel_set) == ("bundled", "dsp")
        assert package.size_bytes == len(data)
    check_signature(read_package(signed, shown="x"), key.public_key(), "x")
    assert len(signed) == len(plain) + 72


def test_the_model_lies_where_a_device_can_run_it(facts: FirmwareFacts) -> None:
    """Whatever the names' lengths."""
    for length in range(1, 40):
        model = read_model(make_single_op_model("RELU"), name="m" * length)
        data = pack_model(model, ARENA, facts)
        assert data.index(model.data) % 16 == 0
        assert read_package(data, shown="x").model.name == "m" * length


def test_a_name_longer_than_its_field_is_cut_at_a_character(facts: FirmwareFacts) -> None:
    model = read_model(make_single_op_model("RELU"), name="x" + "\N{GREEK SMALL LETTER ALPHA}" * 300)
    name = read_package(pack_model(model, ARENA, facts), shown="x").model.name
    assert name == "x" + "\N{GREEK SMALL LETTER ALPHA}" * 127


def test_custom_names_are_kept_byte_by_byte(facts: FirmwareFacts) -> None:
    model = read_model(make_single_op_model("CUSTOM", custom_name="My_Op-\N{SNOWMAN}"), name="x.tflite")
    data = pack_model(model, ARENA, facts)
    assert read_package(data, shown="x").needs.ops[0].custom_name == "My_Op-\N{SNOWMAN}"


def take(data: bytes, public: Ed25519PublicKey | None) -> None:
    """Do what a receiver does."""
    package = read_package(data, shown="new.tflmpkg")
    if public is not None:
        check_signature(package, public, "new.tflmpkg")


def reason_of(data: bytes, public: Ed25519PublicKey | None = None) -> str:
    with pytest.raises(PackageError) as error:
        take(data, public)
    assert "new.tflmpkg" in error.value.message
    assert error.value.hint
    assert f"| `{error.value.reason}` |" in DOCUMENT.read_text()
    return error.value.reason


def patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def sealed(data: bytes) -> bytes:
    """Return a package without a signature whose CRC-32 and SHA-256 fit, whatever its header says."""
    header, model = struct.unpack_from("<II", data, 12)
    head = data[: header - 4]
    body = head + struct.pack("<I", zlib.crc32(head)) + data[header : header + model]
    return body + hashlib.sha256(body).digest()


def longer_table(data: bytes) -> bytes:
    """Return a package whose op table claims to be 64 KiB long."""
    return sealed(patched(data, 40, struct.pack("<I", 65536)))


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "another file": ("not-a-package", lambda data: b"PK\x03\x04" + data),
    "as text": ("not-a-package", lambda data: data.replace(b"\r\n", b"\n")),
    "empty": ("not-a-package", lambda data: b""),
    "magic alone": ("truncated", lambda data: data[:8]),
    "half a header": ("truncated", lambda data: data[:100]),
    "half a model": ("truncated", lambda data: data[:5000]),
    "a byte short": ("truncated", lambda data: data[:-1]),
    "a byte long": ("trailing-bytes", lambda data: data + b"\0"),
    "twice": ("trailing-bytes", lambda data: data + data),
    "header's length": ("header-damaged", lambda data: patched(data, 12, b"\xff\xff\xff\xff")),
    "header's length 0": ("header-damaged", lambda data: patched(data, 12, bytes(4))),
    "format without its CRC": ("header-damaged", lambda data: patched(data, 8, b"\2\0")),
    "format": ("newer-format", lambda data: sealed(patched(data, 8, b"\2\0"))),
    "flags": ("header-damaged", lambda data: sealed(patched(data, 10, b"\xf2\xff"))),
    "op count": ("header-damaged", lambda data: sealed(patched(data, 28, b"\xff\xff\xff\xff"))),
    "op table's length": ("header-damaged", longer_table),
    "op hash": ("header-damaged", lambda data: sealed(patched(data, 24, bytes(4)))),
    "schema": ("header-differs", lambda data: sealed(patched(data, 20, b"\4"))),
    "resource variables": ("header-differs", lambda data: sealed(patched(data, 32, b"\1"))),
    "SHA-256": ("header-differs", lambda data: sealed(patched(data, 44, bytes(32)))),
    "model": ("damaged", lambda data: patched(data, len(data) // 2, b"\xaa\x55\xaa\x55")),
    "digest": ("damaged", lambda data: data[:-32] + bytes(32)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_kind_of_damage_has_its_reason(plain: bytes, damage: str) -> None:
    reason, make = DAMAGES[damage]
    data = make(plain)
    assert data != plain
    assert reason_of(data) == reason


def test_a_package_of_other_ops_than_the_models(plain: bytes, facts: FirmwareFacts) -> None:
    """A forger who computes every sum anew can not let a model pass for one of lower versions."""
    other = pack_model(read_model(raise_version(DIGITS, "CONV_2D", 6), name="digits.tflite"), ARENA, facts)
    header, _ = struct.unpack_from("<II", plain, 12)
    mixed = patched(other[:header], 44, hashlib.sha256(DIGITS.read_bytes()).digest()) + plain[header:]
    assert reason_of(sealed(mixed)) == "header-differs"


def test_a_model_that_is_damaged_although_all_sums_fit(plain: bytes) -> None:
    header, _ = struct.unpack_from("<II", plain, 12)
    broken = bytearray(DIGITS.read_bytes())
    broken[0:4] = b"\xff\xff\xff\x7f"
    data = patched(patched(plain, header, bytes(broken)), 44, hashlib.sha256(broken).digest())
    assert reason_of(sealed(data)) == "model-damaged"


def test_signatures(plain: bytes, signed: bytes, key: Ed25519PrivateKey) -> None:
    public = key.public_key()
    assert reason_of(plain, public) == "unsigned"
    assert reason_of(signed, Ed25519PrivateKey.generate().public_key()) == "another-key"
    for at in (1, 32, 64):
        wrong = patched(signed, len(signed) - at, bytes([signed[-at] ^ 1]))
        assert reason_of(wrong, public) == "wrong-signature"
    # The signature of another package does not fit, nor does taking it away.
    assert reason_of(signed[:-72], public) == "truncated"
    unsigned = sealed(patched(signed, 10, b"\2\0"))
    assert reason_of(unsigned, public) == "unsigned"
    assert reason_of(patched(unsigned + signed[-72:], 10, b"\3\0"), public) == "header-damaged"


def test_a_signature_can_not_be_carried_over(
    signed: bytes, digits: Model, facts: FirmwareFacts, key: Ed25519PrivateKey
) -> None:
    other = pack_model(digits, ArenaNeed(bytes=16, how="", is_measured=False), facts, make_signer(key))
    assert reason_of(other[:-64] + signed[-64:], key.public_key()) == "wrong-signature"


def test_mutated_packages_are_refused_each_with_a_reason(signed: bytes, key: Ed25519PrivateKey) -> None:
    """Nothing that was damaged is accepted, nothing hangs, and every refusal is a PackageError."""
    draw = random.Random(6)
    public = key.public_key()
    reasons = set()
    for _ in range(MUTATIONS):
        data = mutate(signed, draw)
        if data == signed:
            continue
        with pytest.raises(PackageError) as error:
            take(data, public)
        reasons.add(error.value.reason)
    assert {"truncated", "trailing-bytes", "header-damaged", "damaged", "wrong-signature", "not-a-package"} <= reasons


def test_mutated_packages_with_all_sums_computed_anew(plain: bytes) -> None:
    """What a forger without the key can do: whatever is accepted holds a sound model that its header describes."""
    draw = random.Random(7)
    header, _ = struct.unpack_from("<II", plain, 12)
    for _ in range(MUTATIONS):
        at = draw.choice([draw.randrange(8, header - 4), draw.randrange(header, len(plain) - 32)])
        data = patched(plain, at, draw.randbytes(draw.choice([1, 2, 4])))
        try:
            data = sealed(data)
        except struct.error:
            continue
        with contextlib.suppress(PackageError):
            package = read_package(data, shown="x")
            assert package.model.sha256 == hashlib.sha256(package.model.data).hexdigest()
            found = read_by_the_document(data)
            assert (found["24"], found["H"]) == (package.needs.op_hash, package.model.data)


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Return a copy that is damaged somewhere: bits, bytes, blocks, lengths."""
    kind, at = draw.randrange(6), draw.randrange(len(data))
    if draw.random() < 0.4:
        at = draw.choice([draw.randrange(300), len(data) - 1 - draw.randrange(110)])
    if kind == 0:
        return patched(data, at, bytes([data[at] ^ (1 << draw.randrange(8))]))
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data + draw.randbytes(draw.randrange(1, 100))
    if kind == 3:
        return patched(data, at, draw.randbytes(draw.randrange(1, 40)))[: len(data)]
    if kind == 4:
        return data[:at] + data[at + draw.randrange(1, 40) :]
    return patched(data, draw.randrange(8, 76) & ~3, draw.choice([b"\xff\xff\xff\xff", bytes(4), b"\1\0\0\0"]))


def test_a_file_that_is_no_file(tmp_path: Path) -> None:
    from tflm_forge.errors import UsageError

    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError, match=str(path)):
            load_package(path)
