"""`forge ota` as a user runs it, with nothing but manifests and files: verdicts, exit codes, JSON, errors."""

import csv
import json
import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.modelmaker import make_single_op_model
from tests.unit.gates.firmwares import DIGITS, SINE, manifest_of, raise_version
from tflm_forge.cli import make_app
from tflm_forge.errors import ForgeError
from tflm_forge.manifest import render_manifest
from tflm_forge.model import load_model

Run = Callable[..., tuple[int, str]]
QUICK = "--no-measure"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs `forge ota` in this process: exit code, and what it printed or the error's words."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")

    def call(*args: object) -> tuple[int, str]:
        done = CliRunner().invoke(make_app(), ["ota", *map(str, args)])
        if isinstance(done.exception, ForgeError):
            return done.exception.exit_code, "\n".join((done.exception.message, *done.exception.reasons))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output

    return call


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """Return the manifest of firmware of digits, with an arena that any estimate fits."""
    path = tmp_path / "ops.manifest.yaml"
    made = manifest_of(load_model(DIGITS))
    assert made.arena is not None
    path.write_bytes(render_manifest(replace(made, arena=replace(made.arena, size_bytes=100_000))))
    return path


@pytest.fixture
def flex(tmp_path: Path) -> Path:
    path = tmp_path / "flex.tflite"
    path.write_bytes(make_single_op_model("CUSTOM", (((1, 4), "FLOAT32"),), ((1, 4), "FLOAT32"), custom_name="FlexErf"))
    return path


@pytest.fixture
def raised(tmp_path: Path) -> Path:
    path = tmp_path / "raised.tflite"
    path.write_bytes(raise_version(DIGITS, "CONV_2D", 7))
    return path


def test_exit_codes_of_the_three_verdicts(run: Run, manifest: Path, raised: Path, flex: Path) -> None:
    for model, code, words in (
        (SINE, 0, "sine.tflite: compatible"),
        (raised, 7, "raised.tflite: firmware upgrade first"),
        (flex, 3, "flex.tflite: reject"),
    ):
        found, output = run("check", model, "--against", manifest, QUICK)
        assert (found, output.splitlines()[0].strip()) == (code, words)
    assert "CONV_2D" in run("check", raised, "--against", manifest, QUICK)[1]


def test_the_verdict_as_json(run: Run, manifest: Path, raised: Path) -> None:
    code, output = run("check", raised, "--against", manifest, QUICK, "--json")
    found: dict[str, Any] = json.loads(output[output.index("{") :])
    assert (code, found["tflm_forge_ota"], found["verdict"]) == (7, 1, "firmware upgrade first")
    assert [(reason["id"], reason["subject"]) for reason in found["reasons"]] == [("op-version", "CONV_2D")]
    assert found["model"]["arena"]["measured"] is False
    assert found["firmware"]["board"] == "mps2-an386"
    assert found["not_checked"] == ["whether inputs and outputs are as the firmware's application expects them"]


def test_what_changed_at_the_ends_is_noted_when_the_model_lies_beside_the_manifest(run: Run, manifest: Path) -> None:
    (manifest.parent / "model.tflite").write_bytes(DIGITS.read_bytes())
    code, output = run("check", SINE, "--against", manifest, QUICK)
    assert code == 0
    assert "note: The input 0 is INT8 [1, 1]" in output
    # Another file of that name is not taken for it.
    (manifest.parent / "model.tflite").write_bytes(SINE.read_bytes())
    assert "not checked: whether inputs and outputs" in run("check", SINE, "--against", manifest, QUICK)[1]


def test_the_policy_of_forge_toml(run: Run, manifest: Path, raised: Path) -> None:
    Path("forge.toml").write_text("[ota_model_compatibility]\nrequire_firmware_upgrade_first = false\n")
    code, output = run("check", raised, "--against", manifest, QUICK)
    assert (code, output.splitlines()[0].strip()) == (0, "raised.tflite: firmware upgrade first")
    Path("forge.toml").write_text("[ota_model_compatibility]\nblock_model_if_resolver_hash_mismatch = true\n")
    assert run("check", SINE, "--against", manifest, QUICK)[0] == 7
    Path("forge.toml").write_text("[ota_model_compatibility]\nblock_model = true\n")
    assert run("check", SINE, "--against", manifest, QUICK)[0] == 2


def test_a_damaged_model_is_rejected(run: Run, manifest: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.tflite"
    cut.write_bytes(DIGITS.read_bytes()[:3000])
    code, output = run("check", cut, "--against", manifest, "--json")
    assert code == 3
    assert json.loads(output)["verdict"] == "reject"
    assert [reason["id"] for reason in json.loads(output)["reasons"]] == ["model-damaged"]


def test_a_package_from_end_to_end(run: Run, manifest: Path, tmp_path: Path) -> None:
    assert run("keygen", "release.pem")[0] == 0
    code, output = run("pack", DIGITS, "--against", manifest, "-o", "new.tflmpkg", "--sign", "release.pem")
    assert (code, output.count("not checked: --key PUB")) == (0, 1)
    assert run("show", "new.tflmpkg")[0] == 0
    shown = json.loads(run("show", "new.tflmpkg", "--json")[1])
    assert shown["model"]["bytes"] == len(DIGITS.read_bytes())
    assert shown["arena"] == {"bytes": 100_000, "how": "measured", "measured": True}
    assert {op["name"]: op["version"] for op in shown["ops"]}["CONV_2D"] == 3
    assert run("check", "new.tflmpkg", "--key", "release.pem.pub")[0] == 0
    code, output = run("check", "new.tflmpkg", "--key", "release.pem.pub", "--against", manifest)
    assert code == 0
    assert "and the signature is right" in output
    run("keygen", "other.pem")
    code, output = run("check", "new.tflmpkg", "--key", "other.pem.pub", "--json")
    assert (code, json.loads(output)["reasons"][0]["id"]) == (3, "another-key")
    Path("cut.tflmpkg").write_bytes(Path("new.tflmpkg").read_bytes()[:-1])
    code, output = run("check", "cut.tflmpkg", "--against", manifest, "--json")
    assert (code, json.loads(output)["reasons"][0]["id"]) == (3, "truncated")
    assert run("show", "cut.tflmpkg")[0] == 3


def test_what_may_not_be_sent_is_not_packed(run: Run, manifest: Path, raised: Path, flex: Path) -> None:
    for model, code in ((raised, 7), (flex, 3)):
        found, words = run("pack", model, "--against", manifest, QUICK, "-o", "new.tflmpkg")
        assert found == code
        assert "nothing was packed" in words
        assert not Path("new.tflmpkg").exists()
    Path("forge.toml").write_text("[ota_model_compatibility]\nrequire_firmware_upgrade_first = false\n")
    assert run("pack", raised, "--against", manifest, QUICK, "-o", "new.tflmpkg")[0] == 0
    assert Path("new.tflmpkg").exists()


def test_a_fleet(run: Run, manifest: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    for name in ("a", "b"):
        (fleet / f"{name}.yaml").write_bytes(manifest.read_bytes())
    (fleet / "c.yaml").write_text("=2+3\n")
    code, output = run("check", SINE, "--fleet", fleet, QUICK, "--csv", "fleet.csv", "--json")
    found = json.loads(output[output.index("{") :])
    assert (code, found["firmwares"], found["verdicts"]) == (7, 3, {"unreadable": 1, "compatible": 2})
    assert [Path(row["manifest"]).name for row in found["unreadable"]] == ["c.yaml"]
    assert [row["verdict"] for row in csv.DictReader(Path("fleet.csv").read_text().splitlines())] == [
        "compatible", "compatible", "unreadable"
    ]  # fmt: skip
    code, output = run("check", SINE, "--fleet", fleet, QUICK)
    assert code == 7
    assert "sine.tflite on 3 firmwares" in output
    assert "unreadable: " in output


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["check", DIGITS], "no firmware given"),
        (["check", DIGITS, "--against", "nowhere.elf"], "nowhere.elf"),
        (["check", DIGITS, "--against", "qemu:nowhere"], "nowhere"),
        (["check", DIGITS, "--against", "ops.manifest.yaml", "--key", "x.pub"], "only a package has a signature"),
        (["check", DIGITS, "--against", "ops.manifest.yaml", "--csv", "x"], "--csv is for --fleet"),
        (["check", DIGITS, "--against", "x", "--fleet", "y"], "give one of them"),
        (["check", "nowhere.tflite", "--against", "ops.manifest.yaml"], "nowhere.tflite"),
        (["check", DIGITS, "--fleet", "nowhere"], "no such folder"),
        (["check", DIGITS, "--against", str(DIGITS)], "digits.tflite"),
        (["pack", DIGITS], "no firmware given"),
        (["pack", DIGITS, "--against", "ops.manifest.yaml", "--sign", "nowhere.pem"], "no such key file"),
        (["show", "nowhere.tflmpkg"], "no such package"),
    ],
    ids=lambda value: " ".join(str(v).rsplit("/", 1)[-1] for v in value) if isinstance(value, list) else "",
)
def test_mistakes_are_named(run: Run, manifest: Path, args: list[object], words: str) -> None:
    code, output = run(*args)
    assert code == 2
    assert words in output


def test_a_pipe_is_not_waited_for(run: Run, manifest: Path) -> None:
    os.mkfifo("pipe")
    assert run("check", DIGITS, "--against", "pipe")[0] == 2
    assert run("check", "pipe", "--against", manifest)[0] == 3
    assert run("show", "pipe")[0] == 2


def test_a_file_that_is_no_package_is_refused_by_show(run: Run) -> None:
    assert run("show", DIGITS)[0] == 3


def test_nothing_of_a_secret_is_shown(run: Run, manifest: Path) -> None:
    said = run("keygen", "release.pem")[1]
    said += run("pack", DIGITS, "--against", manifest, "--sign", "release.pem", "--json")[1]
    secret = Path("release.pem").read_text().splitlines()[1]
    assert len(secret) > 40
    assert secret not in said
    # 32 bytes of the seed end a PKCS 8 key of this kind (RFC 8410).
    import base64

    seed = base64.b64decode(secret)[-32:]
    data = Path("digits.tflmpkg").read_bytes()
    assert seed not in data
    assert struct.unpack_from("<H", data, 10)[0] & 1
