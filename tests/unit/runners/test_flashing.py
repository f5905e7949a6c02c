"""Carrying out a plan with stand-ins for the tools: what must be true before a board counts as flashed."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.runners.jobs import make_job
from tflm_forge.board import ChipId, load_board
from tflm_forge.errors import DeviceError, ForgeError, ToolError
from tflm_forge.runners import FlashJob, load_runner
from tflm_forge.runners import _probes as probes
from tflm_forge.runners._flashing import flash

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")

BOARD = replace(
    load_board("stm32f4"),
    chip_id=ChipId(address=0xE0042000, value=0x413, mask=0xFFF, source="a test"),
    usb_ids=("0483:374B",),
    runners={
        "openocd": {"config": "x.cfg"},
        "stflash": {},
        "dfu": {"usb_id": "0483:DF11"},
        "pyocd": {"target": "x"},
    },
)

Put = Callable[[str, str], None]
Connect = Callable[..., None]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Return a function that puts a shell script on PATH in a tool's place."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def write(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o755)

    return write


@pytest.fixture
def connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Return a function that puts USB devices where Linux lists them; none is there at first."""
    sysfs = tmp_path / "usb"
    sysfs.mkdir()
    monkeypatch.setattr(probes, "SYSFS", sysfs)
    monkeypatch.setattr(probes, "_DEVICE_NODES", tmp_path / "dev")

    def add(usb_id: str, serial: str) -> None:
        number = str(len(list(sysfs.iterdir())) + 1)
        (sysfs / number).mkdir()
        vendor, product = usb_id.lower().split(":")
        values = {"idVendor": vendor, "idProduct": product, "serial": serial, "product": "Probe"}
        for key, value in (values | {"busnum": "1", "devnum": number}).items():
            (sysfs / number / key).write_text(f"{value}\n", encoding="utf-8")
        node = tmp_path / "dev" / "001" / number.zfill(3)
        node.parent.mkdir(parents=True, exist_ok=True)
        node.touch()

    return add


@pytest.fixture(autouse=True)
def _no_devices(connect: Connect) -> None:
    """Whatever is plugged into this computer is none of a test's business."""


def _job(tmp_path: Path, runner: str, **more: object) -> FlashJob:
    return make_job(runner, BOARD, folder=tmp_path / "flash", elf=tmp_path / "firmware.elf", **more)


def _fail(tmp_path: Path, runner: str, **more: object) -> ForgeError:
    with pytest.raises(ForgeError) as caught:
        flash(load_runner(runner), _job(tmp_path, runner, **more))
    return caught.value


GOOD_ID = "echo '0xe0042000: 10076413 '"


def test_flashed_and_read_back(tmp_path: Path, put: Put) -> None:
    put("openocd", f"{GOOD_ID}; echo '** Verified OK **' >&2")
    flashed = flash(load_runner("openocd"), _job(tmp_path, "openocd"))
    assert flashed.read_back
    assert flashed.chip_id == 0x10076413
    assert len(flashed.commands) == 2
    assert flashed.log.read_text(encoding="utf-8").count("** Verified OK **") == 2


def test_status_0_alone_is_not_enough(tmp_path: Path, put: Put) -> None:
    put("openocd", f"{GOOD_ID}; echo '** Programming Finished **'")
    error = _fail(tmp_path, "openocd")
    assert isinstance(error, ToolError)
    assert "the board is not flashed" in error.message
    assert "** Programming Finished **" in error.hint
    assert "flash.log" in error.hint


def test_wrong_chip_is_refused_before_anything_is_written(tmp_path: Path, put: Put) -> None:
    put("st-info", "echo 0x0421")
    put("st-flash", f"touch {tmp_path}/written; echo 'Flash written and verified! jolly good!'")
    error = _fail(tmp_path, "stflash")
    assert isinstance(error, DeviceError)
    assert "not that of stm32f4" in error.message
    assert "0x421" in error.reasons[0]
    assert "0x413" in error.reasons[0]
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize("answer", ["0x0413", "0x0000", "no idea"])
def test_right_chip_and_one_that_does_not_say(tmp_path: Path, put: Put, answer: str) -> None:
    put("st-info", f"echo {answer}")
    put("st-flash", f"cp $3 {tmp_path}/written; echo 'Flash written and verified! jolly good!'")
    job = _job(tmp_path, "stflash")
    assert flash(load_runner("stflash"), job).chip_id == (0x413 if answer == "0x0413" else None)
    assert (tmp_path / "written").read_bytes() == job.image.data


def test_dfu_reads_back_into_a_file(tmp_path: Path, put: Put) -> None:
    stand_in = """
        for word; do
            case $before in --download) cp $word {0}/chip;; --upload) cp {0}/chip $word;; esac
            before=$word
        done
        {1}; echo 'File downloaded successfully'"""
    put("dfu-util", stand_in.format(tmp_path, "true"))
    job = _job(tmp_path, "dfu")
    assert flash(load_runner("dfu"), job).read_back
    assert (tmp_path / "chip").read_bytes() == job.image.data
    damage = f"printf 'X' | dd of={tmp_path}/chip bs=1 seek=7 conv=notrunc status=none"
    put("dfu-util", stand_in.format(tmp_path, damage))
    error = _fail(tmp_path, "dfu")
    assert "reads back" in error.message
    assert "0x08000007" in error.reasons[0]


def test_missing_tool_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = _fail(tmp_path, "pyocd")
    assert isinstance(error, ToolError)
    assert "pip install pyocd" in error.hint


def test_tool_that_hangs_is_ended(tmp_path: Path, put: Put) -> None:
    put("openocd", "sleep 60")
    runner = load_runner("openocd")

    def hasty(job: FlashJob) -> object:
        plan = runner.plan(job)
        return replace(plan, identify=None, steps=tuple(replace(step, timeout_s=0.3) for step in plan.steps))

    with pytest.raises(ToolError, match=r"openocd did not finish within 0\.3 s") as caught:
        flash(replace(runner, plan=hasty), _job(tmp_path, "openocd"))  # type: ignore[arg-type]
    assert "flash.log" in caught.value.hint


@pytest.mark.parametrize("runner", ["openocd", "pyocd", "stflash"])
def test_two_probes_are_refused_until_one_is_named(tmp_path: Path, put: Put, connect: Connect, runner: str) -> None:
    for tool in ("openocd", "pyocd", "st-flash", "st-info"):
        put(tool, f"{GOOD_ID}; echo '** Verified OK **'; echo 'All 300 bytes match'; echo 'Flash written and verified'")
    connect("0483:374B", "066DFF")
    connect("0483:374B", "066E00")
    connect("1366:1015", "683")
    error = _fail(tmp_path, runner)
    assert "several probes" in error.message
    assert [reason.split(":")[0] for reason in error.reasons] == ["serial number 066DFF", "serial number 066E00"]
    assert "--serial-number" in error.hint
    flash(load_runner(runner), _job(tmp_path, runner, serial_number="066e00"))


def test_no_permission_prints_the_rule(
    tmp_path: Path, put: Put, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("openocd", "exit 1")
    connect("0483:374B", "066DFF")
    monkeypatch.setattr(probes.UsbDevice, "is_permitted", property(lambda device: False))
    error = _fail(tmp_path, "openocd")
    assert "no permission" in error.message
    assert 'ATTRS{idVendor}=="0483", ATTRS{idProduct}=="374b"' in error.hint


def _pico(tmp_path: Path) -> FlashJob:
    return make_job("uf2", "pico", folder=tmp_path / "flash", elf=tmp_path / "firmware.elf")


def _mount(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    from tflm_forge.runners import uf2

    monkeypatch.setattr(uf2, "has_tool", lambda name: False)
    find = uf2.find_drive
    monkeypatch.setattr(uf2, "find_drive", lambda label: find(label, (folder,)))


def test_uf2_goes_onto_the_drive_of_the_boot_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drives = tmp_path / "media"
    for name, board in (("RPI-RP2", "RPI-RP2"), ("BACKUP", None), ("OTHER", "XIAO")):
        (drives / name).mkdir(parents=True)
        if board:
            (drives / name / "INFO_UF2.TXT").write_text(f"UF2 Bootloader v3.0\nBoard-ID: {board}\n", encoding="utf-8")
    _mount(monkeypatch, drives)
    flashed = flash(load_runner("uf2"), _pico(tmp_path))
    assert not flashed.read_back
    written = (drives / "RPI-RP2" / "firmware.uf2").read_bytes()
    assert written[:4] == b"UF2\n"
    assert [path.name for path in drives.rglob("*.uf2")] == ["firmware.uf2"]


def test_uf2_without_a_drive_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _mount(monkeypatch, tmp_path / "media")
    with pytest.raises(DeviceError, match="finds no probe or board for pico") as caught:
        flash(load_runner("uf2"), _pico(tmp_path))
    assert "RPI-RP2" in caught.value.reasons[0]
    assert "BOOTSEL" in caught.value.reasons[0]
