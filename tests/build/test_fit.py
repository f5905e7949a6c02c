"""Models that do not fit a board: exit code 5, how many bytes over, and what takes them; nothing half-written."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds
from tests.modelmaker import ModelMaker, make_single_op_model

pytestmark = pytest.mark.tools

FIT_EXIT_CODE = 5
MICROBIT_FLASH, MICROBIT_RAM = 256 * 1024, 16 * 1024


def _wide_model(outputs: int, inputs: int) -> bytes:
    maker = ModelMaker()
    weights = np.random.default_rng(1).integers(-127, 128, (outputs, inputs))
    x = maker.tensor("x", [1, inputs], "INT8", scale=0.5)
    w = maker.tensor("w", [outputs, inputs], "INT8", scale=0.1, data=weights)
    y = maker.tensor("y", [1, outputs], "INT8", scale=0.5)
    maker.operator("FULLY_CONNECTED", [x, w, -1], [y], options=("FullyConnectedOptions", {}), version=4)
    maker.subgraph(inputs=[x], outputs=[y])
    return maker.finish()


def _expect_no_firmware(folder: Path) -> None:
    assert [path.name for path in folder.glob("firmware.*")] == []
    assert [path for path in folder.rglob("*trial*")] == []
    assert [path for path in folder.rglob("*.o.tmp*")] == []


def test_model_larger_than_flash(builds: Builds, tmp_path: Path) -> None:
    data = _wide_model(500, 600)
    (tmp_path / "big.tflite").write_bytes(data)
    done = builds.run("build", "big.tflite", "--board", "microbit", "-o", "out", cwd=tmp_path)
    assert done.returncode == FIT_EXIT_CODE, done.stderr
    over = re.search(rf"FLASH: (\d+) bytes over its {MICROBIT_FLASH} bytes", done.stderr)
    assert over is not None, done.stderr
    # The code takes more than 8 and less than 48 KB beside the model.
    assert 8_000 < MICROBIT_FLASH + int(over[1]) - len(data) < 48_000
    assert f"the model alone is {len(data)} bytes" in done.stderr
    assert "model weights 300,000" in done.stderr
    assert re.search(r"operators [\d,]+", done.stderr), done.stderr
    assert "`forge boards`" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    _expect_no_firmware(tmp_path / "out")


@pytest.mark.parametrize("shape", [(1, 200, 200, 1), (1, 90, 90, 1)], ids=["far over", "a little over"])
def test_arena_larger_than_ram(builds: Builds, tmp_path: Path, shape: tuple[int, ...]) -> None:
    (tmp_path / "wide.tflite").write_bytes(make_single_op_model("RELU", ((shape, "INT8"),), (shape, "INT8")))
    done = builds.run("build", "wide.tflite", "--board", "microbit", "-o", "out", cwd=tmp_path)
    assert done.returncode == FIT_EXIT_CODE, done.stderr
    buffers = 2 * -(-int(np.prod(shape)) // 16) * 16
    assert f"RAM: {MICROBIT_RAM} bytes" in done.stderr
    assert f"{buffers} bytes" in done.stderr
    _expect_no_firmware(tmp_path / "out")


def test_given_arena_larger_than_ram_says_by_how_much(builds: Builds, tmp_path: Path) -> None:
    model = EXAMPLES / "sine" / "sine.tflite"
    done = builds.run("build", model, "--board", "microbit", "-o", tmp_path / "out", "--arena", 20000)
    assert done.returncode == FIT_EXIT_CODE, done.stderr
    over = re.search(rf"RAM: (\d+) bytes over its {MICROBIT_RAM} bytes", done.stderr)
    assert over is not None, done.stderr
    assert 20000 - MICROBIT_RAM < int(over[1]) < 20000
    assert "the tensor arena is 20000 bytes" in done.stderr
    assert "tensor arena 20,000; stack 2,048" in done.stderr
    _expect_no_firmware(tmp_path / "out")


def test_firmware_that_was_there_stays_when_the_next_does_not_fit(builds: Builds, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    builds.build_into(folder, EXAMPLES / "sine" / "sine.tflite", "microbit")
    before = (folder / "firmware.elf").read_bytes()
    (tmp_path / "big.tflite").write_bytes(_wide_model(500, 600))
    done = builds.run("build", tmp_path / "big.tflite", "--board", "microbit", "-o", folder)
    assert done.returncode == FIT_EXIT_CODE
    assert (folder / "firmware.elf").read_bytes() == before
    builds.build_into(folder, EXAMPLES / "sine" / "sine.tflite", "microbit")
    assert (folder / "firmware.elf").stat().st_size == len(before)
