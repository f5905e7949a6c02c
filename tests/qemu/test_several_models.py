"""Several models in one firmware: each gives its own numbers, in one arena smaller than theirs together."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

from tests.conftest import EXAMPLES, Forge
from tests.firmware_builds import Builds, open_firmware, run_on_device
from tests.tflm.feature_models import make_call_once
from tflm_forge.link.failures import RefusedError

pytestmark = pytest.mark.tools

DIGITS = EXAMPLES / "digits" / "digits.tflite"
SINE = EXAMPLES / "sine" / "sine.tflite"
BOARD = "mps2-an386"
ROUNDS = 3
CHECK_EXIT_CODE = 7


class Reference:
    """TFLM's own interpreter of a model."""

    def __init__(self, path: Path) -> None:
        from tflite_micro import runtime

        self._interpreter = runtime.Interpreter.from_bytes(path.read_bytes(), arena_size=1 << 20)
        self.shape = self._interpreter.get_input_details(0)["shape"]

    def run(self, sample: np.ndarray) -> np.ndarray:
        self._interpreter.set_input(sample, 0)
        self._interpreter.invoke()
        return self._interpreter.get_output(0)

    def reset(self) -> None:
        self._interpreter.reset()


def _manifest_arena(folder: Path) -> int:
    found = re.search(r"arena:\n +bytes: (\d+)", (folder / "ops.manifest.yaml").read_text())
    assert found is not None
    return int(found[1])


def _check_alternating(folder: Path) -> None:
    """Run both models in turn, and compare every output with the interpreter's."""
    models = (DIGITS, SINE)
    references = [Reference(path) for path in models]
    random = np.random.default_rng(7)
    with open_firmware(folder / "firmware.elf", BOARD) as session:
        assert session.connect().ready
        for _ in range(ROUNDS):
            for index, path in enumerate(models):
                selected = session.select(index)
                assert (selected.model_count, selected.name) == (2, path.name)
                sample = random.integers(-128, 128, references[index].shape).astype(np.int8)
                (output,) = run_on_device(session, path, [sample])
                np.testing.assert_array_equal(output, references[index].run(sample))
        with pytest.raises(RefusedError, match="SELECT"):
            session.select(2)
        # A refused request changes nothing.
        assert session.tensors()[0].shape == tuple(references[1].shape)


@pytest.fixture(scope="module")
def both(builds: Builds) -> Path:
    """Return the folder of firmware with two models and the bundled runtime."""
    folder = builds.folder / "digits-and-sine"
    builds.build_into(folder, DIGITS, BOARD, "--with", SINE, "--runtime", "bundled")
    return folder


@pytest.mark.reference
def test_each_model_gives_the_interpreters_bits_in_turn(both: Path) -> None:
    _check_alternating(both)


def test_arena_is_smaller_than_both_alone_and_no_smaller_than_either(builds: Builds, both: Path) -> None:
    alone = [_manifest_arena(builds.build(path, BOARD)) for path in (DIGITS, SINE)]
    assert max(alone) <= _manifest_arena(both) < sum(alone)


def test_info_is_of_the_first_model_whatever_is_selected(both: Path) -> None:
    with open_firmware(both / "firmware.elf", BOARD) as session:
        before = session.connect()
        session.select(1)
        after = session.info()
        assert (after.model_sha256, after.model_bytes, after.op_hash) == (
            before.model_sha256,
            before.model_bytes,
            before.op_hash,
        )
        assert before.model_bytes == len(DIGITS.read_bytes())
        assert session.selftest().op_hash == before.op_hash
        assert len(session.profile()) == _operators(SINE)


def _operators(path: Path) -> int:
    return tflite.Model.GetRootAs(path.read_bytes(), 0).Subgraphs(0).OperatorsLength()


def test_one_model_does_not_know_select(builds: Builds) -> None:
    with open_firmware(builds.build(SINE, BOARD) / "firmware.elf", BOARD) as session:
        session.connect()
        with pytest.raises(RefusedError) as caught:
            session.select(0)
        assert caught.value.status.name == "UnknownRequest"


def _newer(path: Path) -> bytes:
    """Return a model whose first op has version 99."""
    data = bytearray(path.read_bytes())
    table = tflite.Model.GetRootAs(bytes(data), 0).OperatorCodes(0)._tab
    at = table.Pos + table.Offset(8)
    data[at : at + 4] = (99).to_bytes(4, "little")
    return bytes(data)


@pytest.mark.parametrize("changed", [[DIGITS], [SINE], [DIGITS, SINE]], ids=["first", "second", "both"])
def test_self_check_reports_the_offenders_of_every_model(both: Path, tmp_path: Path, changed: list[Path]) -> None:
    image = (both / "firmware.elf").read_bytes()
    for path in changed:
        assert image.count(path.read_bytes()) == 1
        image = image.replace(path.read_bytes(), _newer(path))
    (tmp_path / "firmware.elf").write_bytes(image)
    with open_firmware(tmp_path / "firmware.elf", BOARD) as session:
        assert not session.connect().ready
        answer = session.selftest()
        codes = [tflite.Model.GetRootAs(path.read_bytes(), 0).OperatorCodes(0).BuiltinCode() for path in changed]
        assert [(o.builtin_code, o.needed_version) for o in answer.offenders] == [(code, 99) for code in codes]
        assert answer.steps[3].code != 0
        with pytest.raises(RefusedError):
            session.select(1)


def _test(run: Any, folder: Path, *options: object) -> dict[str, Any]:
    done = run("flash-and-test", DIGITS, "--with", SINE, "--board", BOARD, "-o", folder, "--json", *options)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.reference
def test_flash_and_test_has_parts_of_each_model(builds: Builds, both: Path) -> None:
    parts = "self-check,numbers,boundaries"
    report = _test(builds.run, both, "--runtime", "bundled", "--only", parts)
    names = [part["name"] for part in report["parts"]]
    own = parts.split(",")
    assert names == own + [f"{name} (sine.tflite)" for name in own]
    assert all(part["checks"] for part in report["parts"])
    assert {c["case"].startswith("sine.tflite: ") for c in report["comparisons"]} == {True, False}
    assert all(c["max_error"] == 0 for c in report["comparisons"])


@pytest.mark.reference
def test_wrong_weights_of_the_second_model_are_found(builds: Builds, both: Path, tmp_path: Path) -> None:
    data = bytearray(SINE.read_bytes())
    model = tflite.Model.GetRootAs(bytes(data), 0)
    largest = max((model.Buffers(i) for i in range(model.BuffersLength())), key=lambda buffer: buffer.DataLength())
    start = largest._tab.Vector(largest._tab.Offset(4))
    for at in range(start, start + largest.DataLength(), 3):
        data[at] ^= 0x40
    folder = tmp_path / "out"
    builds.build_into(folder, DIGITS, BOARD, "--with", SINE, "--runtime", "bundled")
    elf = folder / "firmware.elf"
    elf.write_bytes(elf.read_bytes().replace(SINE.read_bytes(), bytes(data)))
    done = builds.run(
        "flash-and-test",
        DIGITS,
        "--with",
        SINE,
        "--board",
        BOARD,
        "-o",
        folder,
        "--only",
        "numbers",
        "--runtime",
        "bundled",
    )
    assert done.returncode == CHECK_EXIT_CODE, done.stderr
    assert "numbers (sine.tflite)" in done.stderr
    assert "numbers: " not in done.stderr


@pytest.mark.tflm
@pytest.mark.reference
def test_the_same_with_tflm(forge: Forge, tmp_path: Path) -> None:
    arenas = []
    for name, options in {"both": (DIGITS, "--with", SINE), "digits": (DIGITS,), "sine": (SINE,)}.items():
        done = forge("build", *options, "--board", BOARD, "--runtime", "tflm", "-o", tmp_path / name, timeout_s=900)
        assert done.returncode == 0, done.stderr
        arenas.append(_manifest_arena(tmp_path / name))
    both, *alone = arenas
    assert max(alone) <= both < sum(alone)
    _check_alternating(tmp_path / "both")


@pytest.mark.tflm
@pytest.mark.reference
def test_each_model_keeps_its_own_state(forge: Forge, tmp_path: Path) -> None:
    summing = tmp_path / "summing.tflite"
    summing.write_bytes(make_call_once())
    folder = tmp_path / "out"
    done = forge(
        "build",
        summing,
        "--with",
        SINE,
        "--with",
        summing,
        "-b",
        BOARD,
        "--runtime",
        "tflm",
        "-o",
        folder,
        timeout_s=900,
    )
    assert done.returncode == 0, done.stderr
    references = {0: Reference(summing), 1: Reference(SINE), 2: Reference(summing)}
    with open_firmware(folder / "firmware.elf", BOARD) as session:
        session.connect()

        def check(index: int, value: int) -> None:
            path = SINE if index == 1 else summing
            sample = np.full(references[index].shape, value, np.int8)
            (output,) = run_on_device(session, path, [sample])
            np.testing.assert_array_equal(output, references[index].run(sample))

        for index, value in ((0, 1), (2, 5), (0, 2), (1, 9), (2, 7), (0, 3)):
            session.select(index)
            check(index, value)
        session.reset_state()
        references[0].reset()
        check(0, 4)
        session.select(2)
        check(2, 4)
