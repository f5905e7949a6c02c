"""Manifests that people, newer forges and broken disks leave: read as far as they make sense, or refused by line."""

import random
import re
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from tests.unit.test_manifest import make_of
from tflm_forge.errors import UsageError
from tflm_forge.manifest import Manifest, parse_manifest, read_manifest, render_manifest, tree
from tflm_forge.model import load_model

DIGITS = EXAMPLES / "digits" / "digits.tflite"
MUTATIONS = 1000
HAND_WRITTEN = """\
# What the firmware in the field has.
tflm_operator_manifest:
  format: 1
  board: stm32f4
  ops:
  - name: CONV_2D
    version: 3
    max_version: 5
  - builtin_code: 9
    version: 4
  - custom_name: MyOp
    version: 1
"""


@pytest.fixture(scope="module")
def good() -> bytes:
    """Return the manifest of digits, as forge writes it."""
    return render_manifest(make_of(load_model(DIGITS)))


def _edited(good: bytes, old: str, new: str) -> bytes:
    """Return a manifest that was edited by hand as its error says: without the lines `checksum` and `forge`."""
    text = re.sub(r"  (checksum|forge): .*\n", "", good.decode())
    assert old in text
    return text.replace(old, new, 1).encode()


def _line_of(data: bytes, words: str) -> int:
    return next(i for i, line in enumerate(data.decode().splitlines(), 1) if words in line)


def test_written_by_hand_is_read_as_far_as_it_goes() -> None:
    manifest = parse_manifest(HAND_WRITTEN.encode(), "x")
    assert [(op.name, op.builtin_code, op.custom_name, op.version, op.max_version) for op in manifest.ops] == [
        ("CONV_2D", 3, "", 3, 5),
        ("FULLY_CONNECTED", 9, "", 4, 4),
        ("MyOp", 32, "MyOp", 1, 1),
    ]
    assert manifest.board == "stm32f4"
    assert (manifest.runtime, manifest.arena, manifest.models, manifest.op_hash) == (None, None, (), None)


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("board: stm32f4", "board: [stm32f4]", "board", "must be text"),
        ("board: stm32f4", "bord: stm32f4", "bord", "unknown key 'bord'"),
        ("version: 3\n    max", "version: three\n    max", "ops[0].version", "whole number, not 'three'"),
        ("version: 3\n    max", "version: -3\n    max", "ops[0].version", "whole number"),
        ("version: 3\n    max", "version: 0\n    max", "ops[0].version", "out of the range 1"),
        ("version: 3\n    max", "version: 99999999999\n    max", "ops[0].version", "whole number"),
        ("version: 3\n    max", "version: 4294967296\n    max", "ops[0].version", "out of the range"),
        ("version: 3\n    max", "version:\n    max", "ops[0].version", "has no value"),
        ("max_version: 5", "max_version: 2", "ops[0].max_version", "less than version 3"),
        ("max_version: 5", "max_versoin: 5", "ops[0].max_versoin", "unknown key"),
        ("builtin_code: 9", "builtin_code: 9\n    name: CONV_2D", "ops[1].name", "builtin code 9 is FULLY_CONNECTED"),
        ("builtin_code: 9", "builtin_code: 3", "ops", "CONV_2D, which stands at ops[0]"),
        ("custom_name: MyOp", "custom_name: MyOp\n    builtin_code: 9", "ops[2].custom_name", "builtin code 9"),
        ("name: CONV_2D", "name: CONV2D", "ops[0].name", "'CONV2D' is no builtin op"),
        ("    version: 4\n", "", "ops[1]", "key 'version' is missing"),
        ("format: 1", "format: one", "format", "whole number"),
        ("  format: 1\n", "", "", "key 'format' is missing"),
        ("board: stm32f4", "op_hash: '0x00000000'", "op_hash", "0x"),
        ("board: stm32f4", "op_hash: nonsense", "op_hash", "0x0123ABCD"),
        ("board: stm32f4", "arena: 4096", "arena", "keys with values"),
        ("board: stm32f4", "compression: maybe", "compression", "true or false"),
        (
            "board: stm32f4",
            "model:\n    file: a.tflite\n    sha256: abc\n    bytes: 1",
            "model.sha256",
            "64 hex digits",
        ),
        ("board: stm32f4", "flash:\n    bytes: 3\n    groups: {a: 1, b: 1}", "flash.groups", "add up to 2"),
        ("    version: 4\n", "    version: 4\n    types: [INT8]\n", "ops[1].types", "not of the form"),
        ("    version: 4\n", "    version: 4\n    types: [INT9 -> INT8]\n", "ops[1].types", "'INT9' is no tensor type"),
        ("    version: 4\n", "    version: 4\n    kernel_types: [int8]\n", "ops[1].kernel_types", "'int8'"),
    ],
)
def test_mistake_is_refused_with_line_and_key(tmp_path: Path, old: str, new: str, key: str, words: str) -> None:
    assert old in HAND_WRITTEN
    path = tmp_path / "hand.yaml"
    path.write_text(HAND_WRITTEN.replace(old, new, 1))
    with pytest.raises(UsageError) as error:
        read_manifest(path)
    found = re.fullmatch(rf"{re.escape(str(path))}:(\d+): (?:(\S+): )?(.*)", error.value.message)
    assert found, error.value.message
    assert (found[2] or "") == key
    assert words in found[3]
    line = path.read_text().splitlines()[int(found[1]) - 1].strip()
    name = key.rpartition(".")[2] or "tflm_operator_manifest"
    assert line.startswith("- " if name.endswith("]") else (f"{name}:", f"- {name}:", f"{name.partition('.')[0]}"))


def test_line_is_that_of_the_key() -> None:
    data = HAND_WRITTEN.replace("max_version: 5", "max_version: x").encode()
    with pytest.raises(UsageError, match=rf"^x:{_line_of(data, 'max_version')}: ops\[0\]\.max_version: "):
        parse_manifest(data, "x")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no operator manifest"),
        (b"- 1\n", "no operator manifest"),
        (b"tflm_operator_manifest: 3\n", "keys with values"),
        (b"tflm_operator_manifest: {format: 1}\n", "'ops' is missing"),
        (b"tflm_operator_manifest: {format: 1, ops: 3}\n", "must be a list"),
        (b"tflm_operator_manifest: {format: 1, ops: [], ops: []}\n", "a second time"),
        (b"tflm_operator_manifest: {format: 1, ops: []}\nmore: 1\n", "x:2: more"),
        (b"tflm_operator_manifest: [\n", "not YAML"),
        (b"tflm_operator_manifest: &a {format: 1, ops: *a}\n", "anchors"),
        (b"tflm_operator_manifest: {format: !!python/object/apply:os.getcwd [], ops: []}\n", "tag"),
        (b"tflm_operator_manifest: {format: 1, ops: []}\n---\na: 1\n", "second document"),
        (b"\xff\xfe\x00\n", "not UTF-8"),
        (b"a: \x00\n", "not YAML"),
        (b'a: "\\UFFFFFFFF"\n', "not YAML"),
        (b"[" * 100_000, "nest"),
        (b"- " * 100_000, "nest"),
        (b"a: " + b"[" * 20 + b"]" * 20, "nested deeper"),
        (b"? [a]\n: 1\n", "a key must be text"),
        (b"x" * (5 << 20), "more than any manifest"),
    ],
    ids=lambda value: value[:24] if isinstance(value, bytes) else "",
)
@pytest.mark.parametrize("loader", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
def test_what_is_no_manifest_is_refused(data: bytes, words: str, loader: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """With libyaml and, where a platform has none, without."""
    monkeypatch.setattr(tree, "_LOADER", loader)
    with pytest.raises(UsageError, match=words):
        parse_manifest(data, "x")


def test_newer_format_is_read_without_what_is_not_known(good: bytes) -> None:
    data = _edited(good, "format: 1", "format: 7\n  energy_per_inference: 3")
    data = data.replace(b"    count: 1\n", b"    count: 1\n    energy: 4\n", 1)
    manifest, known = parse_manifest(data, "x"), parse_manifest(good, "x")
    assert manifest.format == 7
    assert (manifest.ops, manifest.models, manifest.arena) == (known.ops, known.models, known.arena)


def test_newer_format_still_must_make_sense(good: bytes) -> None:
    data = _edited(good, "format: 1", "format: 7").replace(b"builtin_code: 3\n", b"builtin_code: x\n")
    with pytest.raises(UsageError, match=rf"x:{_line_of(data, 'builtin_code: x')}: ops\[1\]\.builtin_code"):
        parse_manifest(data, "x")


def test_hand_edit_is_told_from_damage(good: bytes) -> None:
    edited = good.replace(b"bytes: 4096", b"bytes: 8192")
    with pytest.raises(UsageError, match=r"x:3: checksum: says 0x.*edited by hand") as error:
        parse_manifest(edited, "x")
    assert "delete the lines `checksum` and `forge`" in error.value.hint
    with pytest.raises(UsageError, match=r"x:3: forge: what forge makes has a checksum"):
        parse_manifest(re.sub(rb"  checksum: .*\n", b"", edited), "x")
    meant = parse_manifest(_edited(good, "bytes: 4096", "bytes: 8192"), "x")
    assert meant.arena is not None
    assert meant.arena.size_bytes == 8192


def test_hand_edit_that_contradicts_itself_is_refused(good: bytes) -> None:
    data = _edited(good, "version: 3\n    max_version: 6", "version: 4\n    max_version: 6")
    with pytest.raises(UsageError, match=rf"x:{_line_of(data, 'op_hash')}: op_hash: is 0x"):
        parse_manifest(data, "x")


def test_layout_and_comments_do_not_matter(good: bytes) -> None:
    lines = good.decode().splitlines()
    commented = "\n".join(["# of the release", *(f"{line}   # {i}" for i, line in enumerate(lines))])
    assert parse_manifest(commented.encode(), "x") == parse_manifest(good, "x")
    assert parse_manifest(good.replace(b"\n", b"\r\n"), "x") == parse_manifest(good, "x")


def test_checksum_is_a_crc_32_of_what_is_said() -> None:
    data = "tflm_operator_manifest: {{format: 1, board: x, ops: [], checksum: '{}'}}"
    crc = zlib.crc32(b'{"board":"x","format":"1","ops":[]}')
    assert parse_manifest(data.format(f"0x{crc:08X}").encode(), "x").board == "x"
    with pytest.raises(UsageError, match="checksum"):
        parse_manifest(data.format(f"0x{crc ^ 1:08X}").encode(), "x")


def _mutate(data: bytes, pick: random.Random) -> bytes:
    """Return data with one to three accidents: bits, bytes, cuts, copies, lines lost, swapped or repeated."""
    for _ in range(pick.randint(1, 3)):
        at, length = pick.randrange(len(data) or 1), pick.randint(1, 40)
        kind = pick.randrange(7)
        lines = data.splitlines(keepends=True)
        if kind == 0:
            data = data[:at] + bytes([data[at] ^ 1 << pick.randrange(8)]) + data[at + 1 :] if data else data
        elif kind == 1:
            data = data[:at] + bytes([pick.randrange(256)]) + data[at + 1 :]
        elif kind == 2:
            data = data[:at]
        elif kind == 3:
            data = data[:at] + data[at + length :]
        elif kind == 4:
            data = data[:at] + data[pick.randrange(len(data) or 1) :][:length] + data[at:]
        elif kind == 5 and len(lines) > 1:
            del lines[pick.randrange(len(lines))]
            data = b"".join(lines)
        elif lines:
            i, j = pick.randrange(len(lines)), pick.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            data = b"".join(lines)
    return data


def test_damaged_manifests_are_refused_or_say_the_same(good: bytes) -> None:
    """Whatever an accident leaves: an error that names the file, or exactly the facts that stood there before."""
    pick = random.Random(20261130)
    truth: Manifest = parse_manifest(good, "x")
    refused = 0
    for _ in range(MUTATIONS):
        data = _mutate(good, pick)
        try:
            found = parse_manifest(data, "damaged.yaml")
        except UsageError as error:
            assert error.message.startswith("damaged.yaml")  # noqa: PT017
            refused += 1
        else:
            assert found == truth, data.decode()
    assert refused > MUTATIONS * 0.9


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60).filter(lambda text: text.strip() != ""))
def test_any_name_survives(layer: str, file: str) -> None:
    manifest = make_of(load_model(DIGITS))
    first = replace(manifest.ops[0], first_layer=layer)
    model = replace(manifest.models[0], file=file)
    odd = replace(manifest, ops=(first, *manifest.ops[1:]), models=(model,))
    assert parse_manifest(render_manifest(odd), "x") == odd
