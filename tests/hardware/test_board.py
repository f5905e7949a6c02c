"""A real board: flashed, checked, tested, reset, and brought to fault and back. See docs/flashing.md."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.firmware_builds import symbols_of
from tests.hardware.conftest import MODEL, Lab
from tflm_forge.link.failures import RefusedError
from tflm_forge.link.messages import Space

UNDEFINED_INSTRUCTION = bytes.fromhex("00de")  # udf #0: Armv6-M and Armv7-M ARM, A6.7 and A7.7
SOFTMAX = "ExpOfDifference"
INPUT_BYTES = 64


def test_flashed_means_that_the_board_runs_this_very_build(lab: Lab) -> None:
    done = lab.flash(lab.folder)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["build_id"]["device"] == answer["build_id"]["elf"]
    assert answer["build_id"]["port"] == lab.port


def test_the_suite_passes(lab: Lab) -> None:
    inputs = EXAMPLES / "digits" / "digits_test.npz"
    done = lab.builds.run(
        *("flash-and-test", MODEL, "--board", lab.name, "-o", lab.folder, "--port", lab.port),
        *("--inputs", inputs, "--soak", 1000),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((lab.folder / "report.json").read_text(encoding="utf-8"))
    assert report["passed"]
    assert report["accuracy"]["correct"] == report["accuracy"]["reference_correct"]


def test_a_second_session_finds_the_device_as_it_was(lab: Lab) -> None:
    pattern = bytes(range(INPUT_BYTES))
    with lab.open() as session:
        first = session.connect()
        session.write_tensor(Space.INPUT, 0, pattern)
        assert session.read_tensor(Space.INPUT, 0, INPUT_BYTES) == pattern
    with lab.open() as session:
        assert session.connect().build_id == first.build_id


def test_reset_starts_it_anew(lab: Lab) -> None:
    with lab.open() as session:
        before = session.connect()
        session.invoke()
        after = session.reset()
        assert after.build_id == before.build_id
        assert after.ready
        assert any(line.startswith("forge ") for line in session.log_lines), session.log_lines
        assert session.selftest().fault is None


def test_it_stands_garbage_on_the_line(lab: Lab) -> None:
    with lab.open() as session:
        session.connect()
        for noise in (bytes(range(256)), b"\0" * 40, b"\x00\xff\x00" * 20):
            session._exchange.port.write(noise)
            assert session.info().ready


@pytest.fixture
def faulty(lab: Lab, tmp_path: Path) -> Iterator[Path]:
    """Yield firmware whose softmax has an instruction that is none; afterwards the good one is flashed again."""
    elf = tmp_path / "firmware.elf"
    image = bytearray((lab.folder / "firmware.elf").read_bytes())
    address = next(address for name, (address, _) in symbols_of(lab.folder / "firmware.elf").items() if SOFTMAX in name)
    start, count = struct.unpack_from("<I", image, 28)[0], struct.unpack_from("<H", image, 44)[0]
    for row in (struct.unpack_from("<8I", image, start + 32 * i) for i in range(count)):
        kind, offset, virtual, size = row[0], row[1], row[2], row[4]
        if kind == 1 and virtual <= address < virtual + size:
            at = offset + (address & ~1) - virtual
            image[at : at + 2] = UNDEFINED_INSTRUCTION
    elf.write_bytes(image)
    yield elf
    assert lab.flash(lab.folder).returncode == 0


def test_a_fault_is_reported_and_survived(lab: Lab, faulty: Path) -> None:
    done = lab.flash(faulty)
    assert done.returncode == 0, done.stderr
    with lab.open() as session:
        session.connect()
        with pytest.raises(RefusedError) as caught:
            session.invoke()
        assert caught.value.fault is not None
        pc = caught.value.fault.pc
        assert session.selftest().fault is not None
        assert session.reset().ready
        assert session.selftest().fault is None
    start, size = next(place for name, place in symbols_of(faulty).items() if SOFTMAX in name)
    assert start & ~1 <= pc < (start & ~1) + size
