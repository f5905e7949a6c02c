"""The whole suite in QEMU: every part, `forge bisect`, and faults that are provoked for real."""

import itertools
import json
import os
import pty
import shutil
import subprocess
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds, Done, symbols_of
from tests.modelmaker import ModelMaker
from tests.unit.link.simulated_device import SimulatedDevice
from tflm_forge.board import load_board
from tflm_forge.errors import DeviceError
from tflm_forge.link.messages import Space
from tflm_forge.link.session import open_session
from tflm_forge.runners.qemu import open_target
from tflm_forge.verify.parts import PARTS

pytestmark = pytest.mark.tools

DIGITS = EXAMPLES / "digits" / "digits.tflite"
DIGITS_DATA = EXAMPLES / "digits" / "digits_test.npz"
BOARD = "mps2-an386"
OPERATORS = 10
DEVICE_EXIT_CODE, CHECK_EXIT_CODE = 6, 7
UNDEFINED_INSTRUCTION = b"\xff\xde"  # UDF #255 in Thumb


def flash(builds: Builds, folder: Path, *options: object, board: object = BOARD, model: Path = DIGITS) -> Done:
    return builds.run("flash-and-test", model, "--board", board, "-o", folder, *options)


def report_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


@pytest.fixture
def own_build(builds: Builds, tmp_path: Path) -> Path:
    """Return the folder of a build of digits that a test may damage."""
    folder = tmp_path / "out"
    builds.build_into(folder, DIGITS, BOARD)
    return folder


@pytest.mark.reference
def test_every_part_of_the_suite(builds: Builds, tmp_path: Path) -> None:
    folder = builds.build(DIGITS, BOARD)
    page, junit = tmp_path / "report.html", tmp_path / "report.xml"
    done = flash(builds, folder, "--inputs", DIGITS_DATA, "--soak", 5000, "--html", page, "--junit", junit)
    assert done.returncode == 0, done.stderr
    report = report_of(folder)
    assert [(part["name"], part["passed"], part["skipped"]) for part in report["parts"]] == [
        (name, True, None) for name in PARTS
    ]
    assert [row["source"] for row in report["comparisons"]].count("digits_test.npz") == 100
    assert report["soak"]["loops"] == 5000
    latency = report["latency"]
    assert (latency["unit"], len(latency["operators"])) == ("instructions", OPERATORS)
    spent = sum(operator["count"] for operator in latency["operators"])
    assert 0.8 * latency["median"] < spent < 1.05 * latency["median"]
    assert latency["clock_s"] == pytest.approx(latency["median"] / load_board(BOARD).clock_hz)
    layers = report["layers"]["operators"]
    assert [row["metrics"]["max_error"] for row in layers] == [0.0] * OPERATORS
    model = tflite.Model.GetRootAs(DIGITS.read_bytes(), 0)
    graph = model.Subgraphs(0)
    sizes = [graph.Tensors(graph.Operators(i).Outputs(0)).ShapeAsNumpy().prod() for i in range(OPERATORS)]
    assert [row["metrics"]["elements"] for row in layers] == sizes
    assert "digits_test.npz, 100 samples" in done.stdout
    assert page.read_text(encoding="utf-8").count("<svg") == 3
    suites = ET.parse(junit).getroot()
    assert [suite.get("name") for suite in suites] == list(PARTS)
    assert suites.get("failures") == "0"


def test_chosen_parts_alone(builds: Builds) -> None:
    folder = builds.build(DIGITS, BOARD)
    done = flash(builds, folder, "--only", "soak,self-check", "--soak", 50, "--no-reference")
    assert done.returncode == 0, done.stderr
    report = report_of(folder)
    assert [part["name"] for part in report["parts"]] == ["self-check", "soak"]
    assert report["soak"]["loops"] == 50
    assert "without inputs, numbers, boundaries, latency, layers" in done.stdout


@pytest.mark.reference
def test_state_that_is_kept(builds: Builds) -> None:
    folder = builds.build(DIGITS, BOARD)
    done = flash(builds, folder, "--only", "numbers,soak", "--stateful", "--soak", 40)
    assert done.returncode == 0, done.stderr
    assert report_of(folder)["soak"]["stateful"]


def damage_weights(elf: Path, operator: int) -> None:
    """Change some weights of one operator of the model inside an ELF."""
    model = DIGITS.read_bytes()
    graph = tflite.Model.GetRootAs(model, 0).Subgraphs(0)
    buffer = graph.Tensors(graph.Operators(operator).Inputs(1)).Buffer()
    vector = tflite.Model.GetRootAs(model, 0).Buffers(buffer)
    start = vector._tab.Vector(vector._tab.Offset(4))
    image = bytearray(elf.read_bytes())
    at = bytes(image).index(model)
    for offset in range(start, start + vector.DataLength(), 7):
        image[at + offset] ^= 0x10
    elf.write_bytes(image)


@pytest.mark.reference
def test_the_first_layer_that_differs_is_named(builds: Builds, own_build: Path) -> None:
    done = builds.run("bisect", DIGITS, "--board", BOARD, "-o", own_build)
    assert done.returncode == 0, done.stderr
    assert "10 of 10 operators compared, all identical" in done.stdout
    damage_weights(own_build / "layers" / "firmware.elf", 5)
    done = builds.run(
        "bisect", DIGITS, "--board", BOARD, "-o", own_build, "--inputs", DIGITS_DATA, "--sample", 3, "--json"
    )
    assert done.returncode == CHECK_EXIT_CODE
    layers = json.loads(done.stdout)
    assert (layers["case"], layers["first_wrong"]) == ("digits_test.npz[3]", 5)
    assert [row["passed"] for row in layers["operators"][:6]] == [True] * 5 + [False]
    assert "operator 5, CONV_2D (digits_1/pointwise_2" in done.stderr
    done = flash(builds, own_build, "--only", "numbers,layers")
    assert done.returncode == CHECK_EXIT_CODE
    assert [part["passed"] for part in report_of(own_build)["parts"]] == [True, False]


@pytest.mark.reference
def test_layers_that_do_not_fit_are_left_out(builds: Builds, tmp_path: Path) -> None:
    """All tensors of a wide model at once need more RAM than the planner's arena."""
    maker = ModelMaker()
    tensors = [maker.tensor(f"t{i}", [1, 1200], "INT8", scale=0.5) for i in range(9)]
    for source, target in itertools.pairwise(tensors):
        maker.operator("RELU", [source], [target])
    maker.subgraph(inputs=tensors[:1], outputs=tensors[-1:])
    model = tmp_path / "wide.tflite"
    model.write_bytes(maker.finish())
    done = flash(builds, tmp_path / "out", "--soak", 10, board="stm32vldiscovery", model=model)
    assert done.returncode == 0, done.stderr
    layers = report_of(tmp_path / "out")["parts"][-1]
    assert layers["name"] == "layers"
    assert "does not fit" in layers["skipped"]


def test_a_fault_is_traced_to_its_source_line(builds: Builds, own_build: Path) -> None:
    elf = own_build / "firmware.elf"
    name, (address, _) = next((n, s) for n, s in symbols_of(elf).items() if "ExpOfDifference" in n)
    assert name.startswith("_ZN6tflite")
    headers = subprocess.run(["arm-none-eabi-readelf", "-lW", elf], capture_output=True, text=True, check=True).stdout
    loads = [line.split() for line in headers.splitlines() if line.split()[:1] == ["LOAD"]]
    offset = next(
        int(row[1], 16) + (address & ~1) - int(row[2], 16)
        for row in loads
        if int(row[2], 16) <= address < int(row[2], 16) + int(row[4], 16)
    )
    image = bytearray(elf.read_bytes())
    image[offset : offset + 2] = UNDEFINED_INSTRUCTION
    elf.write_bytes(image)
    line = subprocess.run(
        ["arm-none-eabi-addr2line", "-e", elf, hex(address & ~1)], capture_output=True, text=True, check=True
    ).stdout.strip()
    done = flash(builds, own_build, "--no-reference")
    assert done.returncode == DEVICE_EXIT_CODE
    assert "undefined instruction" in done.stderr
    assert f"PC 0x{address & ~1:08X} is in tflite::ExpOfDifference+0x0 ({Path(line).name.split()[0]})" in done.stderr
    assert "LR 0x" in done.stderr
    assert not (own_build / "report.json").exists()


@pytest.mark.parametrize(
    ("stack_bytes", "exit_code", "words"),
    [
        (512, CHECK_EXIT_CODE, ("boot: allocation: the stack has run over its end", "is in tflite::")),
        (
            640,
            DEVICE_EXIT_CODE,
            ("refused INVOKE: the stack has run over its end", "a larger stack"),
        ),
    ],
    ids=["at boot", "in an inference"],
)
def test_a_stack_that_runs_over(
    builds: Builds, tmp_path: Path, stack_bytes: int, exit_code: int, words: tuple[str, ...]
) -> None:
    text = load_board("stm32f4").path.read_text(encoding="utf-8")
    board = tmp_path / "small.toml"
    board.write_text(text.replace("stack_bytes = 8192", f"stack_bytes = {stack_bytes}"), encoding="utf-8")
    options = ("--arena", 3328, "--no-reference", "--skip", "layers")
    done = flash(builds, tmp_path / "out", *options, board=board)
    assert done.returncode == exit_code, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


needs_gdb = pytest.mark.skipif(shutil.which("gdb-multiarch") is None, reason="gdb-multiarch is not installed")


def gdb(elf: Path, socket: Path, *commands: str) -> str:
    """Run gdb commands on a running emulator and let it go on."""
    words = [word for command in (f"target remote {socket}", *commands, "detach") for word in ("-ex", command)]
    done = subprocess.run(
        ["gdb-multiarch", "-batch", "-nx", *words, elf], capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + done.stderr


@needs_gdb
def test_a_device_that_restarts_in_the_middle(builds: Builds, tmp_path: Path) -> None:
    elf, socket = builds.build(DIGITS, BOARD) / "firmware.elf", tmp_path / "gdb"
    with (
        open_target(load_board(BOARD), elf, gdb_socket=socket) as target,
        open_session(target.url, target=target) as session,
    ):
        assert session.connect().ready
        gdb(elf, socket, "monitor system_reset")
        with pytest.raises(DeviceError, match="restarted by itself while forge waited for SOAK"):
            session.soak(100_000, 1)


@needs_gdb
@pytest.mark.reference
def test_flash_that_changes_while_it_runs(builds: Builds, tmp_path: Path) -> None:
    """A bit of the model's weights in flash flips: the outputs are no longer those of before."""
    elf, socket = builds.build(DIGITS, BOARD) / "firmware.elf", tmp_path / "gdb"
    model = DIGITS.read_bytes()
    buffers = [
        tflite.Model.GetRootAs(model, 0).Buffers(i) for i in range(tflite.Model.GetRootAs(model, 0).BuffersLength())
    ]
    largest = max(buffers, key=lambda buffer: buffer.DataLength())
    start = largest._tab.Vector(largest._tab.Offset(4))
    with np.load(DIGITS_DATA) as data:
        sample = data["input_0"][0].tobytes()
    with (
        open_target(load_board(BOARD), elf, gdb_socket=socket) as target,
        open_session(target.url, target=target) as session,
    ):
        session.connect()
        crcs = []
        for _ in range(2):
            session.write_tensor(Space.INPUT, 0, sample)
            session.invoke()
            crcs.append(session.crc(Space.OUTPUT, 0))
            address, _ = symbols_of(elf)["g_model_data"]
            gdb(elf, socket, *(f"set {{unsigned char}}{address + start + i} = 0x7f" for i in range(0, 200, 2)))
        assert crcs[0] != crcs[1]


class Terminal:
    """A serial line with something on its other end: a function from what came to what is answered."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._master, self._slave = pty.openpty()
        self._answer = answer
        self.name = os.ttyname(self._slave)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            while True:
                os.write(self._master, self._answer(os.read(self._master, 4096)))
        except OSError:
            return

    def close(self) -> None:
        os.close(self._slave)
        self._thread.join(5)
        os.close(self._master)


@pytest.fixture
def terminal() -> Iterator[Callable[[Callable[[bytes], bytes]], str]]:
    opened: list[Terminal] = []

    def start(answer: Callable[[bytes], bytes]) -> str:
        opened.append(Terminal(answer))
        return opened[-1].name

    yield start
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda data: b"\xfe\x81\x93\xf0\xc3" * len(data), ("only garbage came from", "baud rate")),
        (
            lambda data: b"MicroPython v1.22\r\n>>> ",
            ("prints text but does not speak the link", "Another firmware runs on it", "MicroPython v1.22"),
        ),
        (SimulatedDevice(protocol=0).take, ("speaks version 0 of the link protocol", "older than forge")),
        (SimulatedDevice(protocol=2).take, ("speaks version 2 of the link protocol", "newer than forge")),
        (lambda data: b"", ("nothing came from", "right port")),
    ],
    ids=["wrong baud rate", "another firmware", "old protocol", "new protocol", "nothing"],
)
def test_what_may_be_at_a_port(
    builds: Builds,
    terminal: Callable[[Callable[[bytes], bytes]], str],
    answer: Callable[[bytes], bytes],
    words: tuple[str, ...],
) -> None:
    name = terminal(answer)
    done = flash(builds, builds.build(DIGITS, BOARD), "--no-reference", "--port", name)
    assert done.returncode == DEVICE_EXIT_CODE, done.stderr
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr
