"""`forge flash-and-test` in QEMU: what passes, what is refused or found out, and what ends it early."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

from tests.conftest import EXAMPLES, ROOT
from tests.firmware_builds import Builds, Done, open_firmware, processes_of, run_on_device
from tests.modelmaker import make_single_op_model
from tflm_forge.board import list_boards

pytestmark = pytest.mark.tools

DIGITS = EXAMPLES / "digits" / "digits.tflite"
SINE = EXAMPLES / "sine" / "sine.tflite"
DIGITS_DATA = EXAMPLES / "digits" / "digits_test.npz"
BOARD = "mps2-an386"
BOARDS = [board.name for board in list_boards() if board.emulator]
CONV_2D, MAX_POOL_2D, HARD_SWISH = (
    tflite.BuiltinOperator.CONV_2D,
    tflite.BuiltinOperator.MAX_POOL_2D,
    tflite.BuiltinOperator.HARD_SWISH,
)
DEVICE_EXIT_CODE, CHECK_EXIT_CODE, INTERRUPTED_EXIT_CODE = 6, 7, 130
WAIT_S = 90.0


def _flash(builds: Builds, model: Path, folder: Path, *options: object, board: str = BOARD, **env: str) -> Done:
    """Run the suite; without the parts that take long, unless the options choose."""
    chosen = options if "--soak" in options else (*options, "--skip", "soak,layers")
    return builds.run("flash-and-test", model, "--board", board, "-o", folder, *chosen, **env)


def _report(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def _failures(report: dict[str, Any]) -> dict[str, str]:
    return {
        check["name"]: check["detail"] for part in report["parts"] for check in part["checks"] if not check["passed"]
    }


def _reference(model: bytes, inputs: np.ndarray) -> np.ndarray:
    """Return the first output of TFLM's own interpreter for each sample."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(model, arena_size=1 << 20)
    outputs = []
    for sample in inputs:
        interpreter.set_input(sample.reshape(interpreter.get_input_details(0)["shape"]), 0)
        interpreter.invoke()
        outputs.append(interpreter.get_output(0))
    return np.array(outputs)


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/*_test.npz")))
@pytest.mark.reference
def test_every_example_passes_on_every_board(builds: Builds, board: str, name: str) -> None:
    model = EXAMPLES / name / f"{name}.tflite"
    folder = builds.place(model, board)
    inputs = EXAMPLES / name / f"{name}_test.npz"
    done = _flash(builds, model, folder, "--inputs", inputs, "--soak", 100, "--json", board=board)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    samples = len(np.load(EXAMPLES / name / f"{name}_test.npz")["input_0"])
    assert report["passed"]
    assert report["device"]["board"] == board
    assert len(report["comparisons"]) >= samples
    assert all(comparison["max_error"] == 0 for comparison in report["comparisons"])


@pytest.mark.reference
def test_accuracy_is_that_of_the_reference(builds: Builds, tmp_path: Path) -> None:
    data = np.load(DIGITS_DATA)
    right = int(np.sum(_reference(DIGITS.read_bytes(), data["input_0"])[:, 0].argmax(axis=-1) == data["labels"]))
    folder = tmp_path / "out"
    done = _flash(builds, DIGITS, folder, "--inputs", DIGITS_DATA, board="stm32f4")
    assert done.returncode == 0, done.stderr
    accuracy = _report(folder)["accuracy"]
    assert (accuracy["total"], accuracy["correct"], accuracy["reference_correct"]) == (
        len(data["labels"]),
        right,
        right,
    )
    assert right >= 95
    assert f"{right} of {len(data['labels'])} labelled inputs" in done.stdout
    assert "PASSED" in done.stdout


MATRIX = {
    "kws_ref_model": np.int8,
    "vww_96_int8": np.int8,
    "pretrainedResnet_quant": np.int8,
    "ad01_int8": np.int8,
    "hello_world_int8": np.int8,
    "hello_world_float": np.float32,
    "person_detect": np.int8,
}


@pytest.mark.models
@pytest.mark.reference
@pytest.mark.parametrize("board", [BOARD, "stm32f4"])
@pytest.mark.parametrize("name", MATRIX)
def test_real_model_gives_the_numbers_of_tflm(builds: Builds, shared_models: Path, name: str, board: str) -> None:
    path = shared_models / f"{name}.tflite"
    folder = builds.build(path, board)
    shape = tflite.Model.GetRootAs(path.read_bytes(), 0).Subgraphs(0)
    shape = tuple(shape.Tensors(shape.Inputs(0)).ShapeAsNumpy())
    generator = np.random.default_rng(20)
    if MATRIX[name] is np.int8:
        samples = [generator.integers(-128, 128, shape).astype(np.int8), np.full(shape, -128, np.int8)]
    else:
        samples = [generator.uniform(-4, 4, shape).astype(np.float32) for _ in range(8)]
    expected = _reference(path.read_bytes(), np.array(samples))
    with open_firmware(folder / "firmware.elf", board) as session:
        assert session.connect().ready
        found = np.array([run_on_device(session, path, [sample])[0] for sample in samples])
    assert found.dtype == expected.dtype == MATRIX[name]
    if MATRIX[name] is np.int8:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.models
@pytest.mark.parametrize("board", ["microbit", "stm32vldiscovery"])
def test_real_model_that_does_not_fit_says_so(builds: Builds, shared_models: Path, tmp_path: Path, board: str) -> None:
    done = builds.run("build", shared_models / "kws_ref_model.tflite", "--board", board, "-o", tmp_path / "out")
    assert done.returncode == 5, done.stderr
    assert "RAM" in done.stderr
    assert board in done.stderr


def test_arena_is_the_smallest_that_works(builds: Builds, tmp_path: Path) -> None:
    folder = builds.build(DIGITS, BOARD)
    size = json.loads(builds.run("build", DIGITS, "--board", BOARD, "-o", folder, "--json").stdout)["arena"]["bytes"]
    for arena, step in ((size, "Ok"), (size - 16, "ArenaTooSmall")):
        builds.build_into(tmp_path / "out", DIGITS, BOARD, "--arena", arena)
        with open_firmware(tmp_path / "out" / "firmware.elf", BOARD) as session:
            assert session.connect().ready == (arena == size)
            assert session.selftest().steps[-1].name == step
    done = _flash(builds, DIGITS, tmp_path / "out", "--arena", size - 16, "--no-reference")
    assert done.returncode == CHECK_EXIT_CODE
    assert "the tensor arena is too small" in done.stderr


def _patch_opcode(op: int, *, version: int | None = None, code: int | None = None) -> bytes:
    """Return digits.tflite with the version or the code of one op changed in place."""
    data = bytearray(DIGITS.read_bytes())
    model = tflite.Model.GetRootAs(bytes(data), 0)
    for i in range(model.OperatorCodesLength()):
        row = model.OperatorCodes(i)
        if row.BuiltinCode() == op:
            table = row._tab
            for offset, value, width in ((8, version, 4), (10, code, 4), (4, code, 1)):
                if value is not None:
                    at = table.Pos + table.Offset(offset)
                    data[at : at + width] = value.to_bytes(width, "little")
    assert bytes(data) != DIGITS.read_bytes()
    return bytes(data)


def _damage_weights() -> bytes:
    data = bytearray(DIGITS.read_bytes())
    model = tflite.Model.GetRootAs(bytes(data), 0)
    buffers = [model.Buffers(i) for i in range(model.BuffersLength())]
    largest = max(buffers, key=lambda buffer: buffer.DataLength())
    start = largest._tab.Vector(largest._tab.Offset(4))
    for at in range(start, start + largest.DataLength(), 50):
        data[at] ^= 0x40
    return bytes(data)


Force = Callable[[bytes], Path]


@pytest.fixture
def force(builds: Builds, tmp_path: Path) -> Force:
    """Return a function that puts another model into finished firmware of digits, and gives its folder."""

    def put(model: bytes) -> Path:
        folder = tmp_path / "out"
        builds.build_into(folder, DIGITS, BOARD)
        elf = folder / "firmware.elf"
        image = elf.read_bytes()
        assert image.count(DIGITS.read_bytes()) == 1
        elf.write_bytes(image.replace(DIGITS.read_bytes(), model))
        return folder

    return put


@pytest.mark.parametrize(
    ("patch", "host_words", "device_check", "device_words", "banner"),
    [
        (
            {"op": CONV_2D, "version": 9},
            ("CONV_2D", "needs version 9", "up to version 6"),
            "op CONV_2D",
            ("needs version 9", "up to 6"),
            "CONV_2D version 9, supported 6",
        ),
        (
            {"op": MAX_POOL_2D, "code": HARD_SWISH},
            ("HARD_SWISH", "no such op"),
            "op HARD_SWISH",
            ("not registered",),
            f"op {HARD_SWISH} ",
        ),
    ],
    ids=["version", "op"],
)
def test_what_the_firmware_lacks_is_refused_on_the_host_and_named_by_the_device(
    builds: Builds,
    force: Force,
    tmp_path: Path,
    patch: dict[str, int],
    host_words: tuple[str, ...],
    device_check: str,
    device_words: tuple[str, ...],
    banner: str,
) -> None:
    model = _patch_opcode(**patch)
    (tmp_path / "patched.tflite").write_bytes(model)
    done = builds.run("build", tmp_path / "patched.tflite", "--board", BOARD, "-o", tmp_path / "refused")
    assert done.returncode == 3
    assert all(word in done.stderr for word in ("patched.tflite", *host_words))
    assert not (tmp_path / "refused").exists()

    folder = force(model)
    done = _flash(builds, DIGITS, folder, "--no-reference")
    assert done.returncode == CHECK_EXIT_CODE, done.stderr
    report = _report(folder)
    failures = _failures(report)
    assert all(word in failures[device_check] for word in device_words)
    assert "inference" in failures
    assert any(banner in line for line in report["log"])
    assert "blocked" in report["log"]
    assert device_check in done.stderr


@pytest.mark.reference
def test_damaged_weights_are_found(builds: Builds, force: Force) -> None:
    folder = force(_damage_weights())
    done = _flash(builds, DIGITS, folder)
    assert done.returncode == CHECK_EXIT_CODE, done.stderr
    assert any("differ" in detail for detail in _failures(_report(folder)).values())


def test_firmware_of_another_model_is_found_even_without_a_reference(builds: Builds, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    builds.build_into(folder, SINE, BOARD)
    (folder / "firmware.elf").write_bytes((builds.build(DIGITS, BOARD) / "firmware.elf").read_bytes())
    done = _flash(builds, SINE, folder, "--no-reference")
    assert done.returncode == CHECK_EXIT_CODE, done.stderr
    failures = _failures(_report(folder))
    assert {"build", "model SHA-256", "op resolver"} <= set(failures)


def _hide_the_interpreter(folder: Path) -> dict[str, str]:
    """Return an environment in which tflite_micro can not be imported."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['tflite_micro'] = None\n", encoding="utf-8")
    return {"PYTHONPATH": f"{folder}:{ROOT}"}


@pytest.fixture
def lonely_digits(tmp_path: Path) -> Path:
    """Return a copy of the model with no golden file beside it."""
    path = tmp_path / "digits.tflite"
    path.write_bytes(DIGITS.read_bytes())
    return path


@pytest.mark.reference
def test_golden_file_stands_in_for_the_interpreter(builds: Builds, tmp_path: Path, lonely_digits: Path) -> None:
    folder = tmp_path / "out"  # Of its own: other tests write their report into a shared one.
    builds.build_into(folder, lonely_digits, BOARD)
    golden = tmp_path / "my.golden.npz"
    done = _flash(builds, lonely_digits, folder, "--record-golden", golden)
    assert done.returncode == 0, done.stderr
    with np.load(golden) as recorded:
        count = len(recorded["names"])
        inputs = np.array([recorded[f"inputs/{n}/0"] for n in range(count)])
        outputs = np.array([recorded[f"outputs/{n}/0"] for n in range(count)])
    np.testing.assert_array_equal(outputs, _reference(DIGITS.read_bytes(), inputs))

    alone = _hide_the_interpreter(tmp_path / "hidden")
    done = _flash(builds, lonely_digits, folder, "--golden", golden, **alone)
    assert done.returncode == 0, done.stderr
    report = _report(folder)
    assert "my.golden.npz" in report["reference"]
    assert len(report["comparisons"]) == count

    beside = tmp_path / "digits.golden.npz"
    beside.write_bytes(golden.read_bytes())
    assert _flash(builds, lonely_digits, folder, **alone).returncode == 0
    with np.load(golden) as recorded:
        changed = {key: recorded[key] for key in recorded.files}
    changed["outputs/0/0"] = changed["outputs/0/0"] ^ 1
    np.savez(beside, **changed)
    done = _flash(builds, lonely_digits, folder, **alone)
    assert done.returncode == CHECK_EXIT_CODE
    assert "differ" in done.stderr


def test_without_any_reference_only_on_request(builds: Builds, tmp_path: Path, lonely_digits: Path) -> None:
    folder = tmp_path / "out"  # Of its own: other tests write their report into a shared one.
    builds.build_into(folder, lonely_digits, BOARD)
    alone = _hide_the_interpreter(tmp_path / "hidden")
    done = _flash(builds, lonely_digits, folder, **alone)
    assert done.returncode == CHECK_EXIT_CODE
    assert "tflm-forge[reference]" in done.stderr
    assert "--no-reference" in done.stderr
    done = _flash(builds, lonely_digits, folder, "--no-reference", **alone)
    assert done.returncode == 0, done.stderr
    assert _report(folder)["reference"] is None


def test_golden_file_of_another_model_is_a_usage_mistake(builds: Builds) -> None:
    folder = builds.build(DIGITS, BOARD)
    done = _flash(builds, DIGITS, folder, "--golden", EXAMPLES / "sine" / "sine.golden.npz")
    assert done.returncode == 2
    assert "sine.golden.npz" in done.stderr
    assert "another model" in done.stderr


class Running:
    """A `forge flash-and-test` that has just begun to test, and its emulator."""

    def __init__(self, builds: Builds, folder: Path, *args: object) -> None:
        self.folder = folder
        self.process = builds.start(*args)
        self.errors = ""
        self._testing = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line
            if line.startswith("testing"):
                self._testing.set()

    def emulator(self) -> int:
        """Wait until inputs are being tested and return the emulator's process."""
        assert self._testing.wait(WAIT_S), self.errors
        time.sleep(0.5)
        (pid,) = (pid for pid, words in processes_of(self.folder).items() if " -kernel " in words)
        return pid

    def wait(self) -> int:
        """Wait for forge's own end and return its exit code."""
        code = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        return code

    def close(self) -> None:
        """End it, whatever has become of it."""
        self.process.kill()
        self.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def running(builds: Builds, tmp_path: Path) -> Iterator[Running]:
    """Yield a run with so many inputs that whatever is done to it comes in the middle."""
    shape = (1, 64, 64, 4)
    model, folder, inputs = tmp_path / "relu.tflite", tmp_path / "out", tmp_path / "many.npz"
    model.write_bytes(make_single_op_model("RELU", ((shape, "INT8"),), (shape, "INT8")))
    np.savez(inputs, input_0=np.zeros((400, *shape[1:]), np.int8))
    builds.build_into(folder, model, BOARD)
    options = ("--inputs", inputs, "--no-reference")
    run = Running(builds, folder, "flash-and-test", model, "--board", BOARD, "-o", folder, *options)
    yield run
    run.close()


def test_emulator_that_dies_is_named(running: Running) -> None:
    _signal(running.emulator(), signal.SIGKILL)
    assert running.wait() == DEVICE_EXIT_CODE
    assert "emulator" in running.errors
    assert "ended with signal 9" in running.errors
    assert "Traceback" not in running.errors
    assert not (running.folder / "report.json").exists()


def test_emulator_that_goes_silent_is_given_up(running: Running) -> None:
    pid = running.emulator()
    _signal(pid, signal.SIGSTOP)
    assert running.wait() == DEVICE_EXIT_CODE
    assert "went silent" in running.errors or "takes no bytes" in running.errors
    assert "Traceback" not in running.errors
    assert processes_of(running.folder) == {}


def test_ctrl_c_while_testing_leaves_nothing(running: Running, builds: Builds) -> None:
    running.emulator()
    running.process.send_signal(signal.SIGINT)
    assert running.wait() == INTERRUPTED_EXIT_CODE
    assert running.errors.endswith("interrupted\n")
    assert "Traceback" not in running.errors
    assert processes_of(running.folder) == {}
    assert not (running.folder / "report.json").exists()
    model = running.folder.parent / "relu.tflite"
    assert _flash(builds, model, running.folder, "--no-reference").returncode == 0


def _signal(pid: int, sign: signal.Signals) -> None:
    subprocess.run(["kill", f"-{sign.value}", str(pid)], check=True, timeout=WAIT_S)
