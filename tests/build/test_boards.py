"""Every board: its firmware links, and boots where it can run here: in QEMU, or on a simulated chip."""

from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds, open_firmware
from tests.simulated_chips import CHIPS, Simulation
from tflm_forge.board import list_boards, load_board
from tflm_forge.config import BuildSettings
from tflm_forge.errors import FitError
from tflm_forge.generate import Arena, generate_project
from tflm_forge.model import load_model
from tflm_forge.runtimes import plan_build
from tflm_forge.toolchains import cmake

pytestmark = pytest.mark.tools

SINE = EXAMPLES / "sine" / "sine.tflite"
BOARDS = [board.name for board in list_boards()]
ARENA_BYTES = {"bundled": 1024, "tflm": 3072}
READY = b"ready\r\n"
CHECKED = b"self-check: ok\r\n"


def _link(name: str, runtime: str, builds: Builds, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Render and link firmware of a small model; boards of one core share compiled objects."""
    monkeypatch.setenv("FORGE_CACHE_DIR", builds.environment()["FORGE_CACHE_DIR"])
    board, model = load_board(name), load_model(SINE)
    settings = BuildSettings(runtime=runtime)
    plan = plan_build(model, board.core, settings)
    arena = Arena(bytes=ARENA_BYTES[runtime], how="given")
    project = generate_project(builds.folder / f"link-{runtime}-{name}", model, board, plan, settings, arena)
    return cmake.build(project).elf


def _words(elf: Path, section: str) -> tuple[int, list[int]]:
    """Return address and words of a section."""
    with elf.open("rb") as file:
        found = ELFFile(file).get_section_by_name(section)
        data = found.data()
        return found["sh_addr"], [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]


def _check_places(name: str, elf: Path) -> None:
    """Everything lies in the board's memory, vectors where the core looks for them."""
    board = load_board(name)
    with elf.open("rb") as file:
        for segment in ELFFile(file).iter_segments("PT_LOAD"):
            assert board.flash.origin <= segment["p_paddr"]
            assert segment["p_paddr"] + segment["p_filesz"] <= board.flash.end
    address, vectors = _words(elf, ".isr_vector")
    assert address == board.flash.origin + board.boot_bytes
    assert vectors[0] == board.ram.origin + board.stack_bytes
    assert all(vector & 1 and board.flash.origin <= vector < board.flash.end for vector in vectors[1:16])


def _check_run(name: str, runtime: str, elf: Path) -> None:
    with open_firmware(elf, name) as session:
        info = session.info()
        assert (info.board, info.runtime, info.ready) == (name, runtime, True)


def _boot(name: str, elf: Path, *, stuck: bool = False) -> Simulation:
    """Start firmware on its simulated chip in the way the chip's boot ROM does, and let it come to its link."""
    board = load_board(name)
    simulation = Simulation(board, elf, stuck=stuck, more_ram=ROM_RAM.get(name, ()))
    # Unicorn 2.1's Cortex-M7 has no arithmetic in double precision, which allocation may use.
    until = CHECKED if board.core.name == "cortex-m7f" else READY
    if name == "pico":
        # RP2040 data sheet, section 2.8.1: 256 bytes are copied to the end of RAM, checked, and called.
        simulation.core.mem_write(0x20041F00, bytes(simulation.core.mem_read(board.flash.origin, 256)))
        text = simulation.start(0x20041F00, until)
    elif name == "teensy-4-1":
        # i.MX RT1060 reference manual, chapter 9: the image vector table at 0x1000 names the vectors.
        text = simulation.start_from_vectors(simulation.word(board.flash.origin + 0x1004), until)
    else:
        text = simulation.start_from_vectors(board.flash.origin, until)
    assert text.endswith(until), text
    assert f"board {name} runtime ".encode() in text
    return simulation


ROM_RAM = {"pico": ((0x20040000, 0x2000),)}


def _check_clock(name: str, elf: Path) -> None:
    """The registers make the clock of the board file, and its baud rate within what a UART takes."""
    board = load_board(name)
    chip = _boot(name, elf).chip
    assert chip.core_hz() == pytest.approx(board.clock_hz, abs=1)
    assert chip.baud() == pytest.approx(board.baud, rel=0.01)


def _check_dead_clock(name: str, elf: Path) -> None:
    """With an oscillator that never comes up the firmware still talks, at the right rate of the clock it has."""
    board = load_board(name)
    chip = _boot(name, elf, stuck=True).chip
    assert chip.baud() == pytest.approx(board.baud, rel=0.02)


@pytest.mark.parametrize("name", BOARDS)
def test_links_and_boots(name: str, builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    elf = _link(name, "bundled", builds, monkeypatch)
    _check_places(name, elf)
    board = load_board(name)
    if board.driver in CHIPS:
        _check_clock(name, elf)
        _check_dead_clock(name, elf)
    if board.emulator is not None:
        _check_run(name, "bundled", elf)


@pytest.mark.tflm
@pytest.mark.parametrize("name", BOARDS)
def test_links_and_boots_with_tflm(name: str, builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        elf = _link(name, "tflm", builds, monkeypatch)
    except FitError:
        assert load_board(name).ram.length_bytes <= 16 * 1024
        return
    _check_places(name, elf)
    if load_board(name).emulator is None:
        _boot(name, elf)
    else:
        _check_run(name, "tflm", elf)


def _boot_crc(data: bytes) -> int:
    """CRC-32/MPEG-2 by its definition in the catalogue of parametrised CRC algorithms: division of polynomials."""
    value = int.from_bytes(data, "big") << 32
    value ^= 0xFFFFFFFF << (8 * len(data))
    divisor = 0x104C11DB7
    for bit in range(8 * len(data) + 31, 31, -1):
        if value >> bit & 1:
            value ^= divisor << (bit - 32)
    return value


def test_the_crc_of_this_file_is_the_catalogues() -> None:
    assert _boot_crc(b"123456789") == 0x0376E6E7  # its check value


def test_rp2040_boot_stage_has_its_crc_and_lets_flash_be_read(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    elf = _link("pico", "bundled", builds, monkeypatch)
    address, words = _words(elf, ".boot")
    assert (address, len(words)) == (0x10000000, 64)
    assert words[63] == _boot_crc(b"".join(word.to_bytes(4, "little") for word in words[:63]))
    ssi = _boot("pico", elf).chip.registers
    base = 0x18000000
    assert (ssi[base + 0x08], ssi[base + 0x14] % 2) == (1, 0)  # on; an even divider
    control, spi = ssi[base + 0x00], ssi[base + 0xF4]
    assert control >> 16 & 31 == 31  # DFS_32: 32 bits a frame
    assert control >> 8 & 3 == 3  # TMOD: EEPROM read
    assert control >> 21 & 3 == 0  # SPI_FRF: one line
    assert (spi >> 24, spi >> 8 & 3, spi >> 2 & 15, spi & 3) == (0x03, 2, 6, 0)  # XIP_CMD, INST_L, ADDR_L, TRANS_TYPE
    assert ssi[base + 0x04] == 0  # CTRLR1: one frame


def test_nrf52_keeps_its_debug_port_open(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    elf = _link("nrf52840-dk", "bundled", builds, monkeypatch)
    assert _boot("nrf52840-dk", elf).chip[0x40000558] == 0x5A  # APPROTECT.DISABLE: SwDisable


def test_rp2350_image_says_what_it_is(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    elf = _link("pico2", "bundled", builds, monkeypatch)
    address, words = _words(elf, ".isr_vector")
    start = words.index(0xFFFFDED3)
    assert address + 4 * start < 0x10000000 + 4096
    # RP2350 data sheet, section 5.1.4: the smallest image definition of an Arm image.
    assert words[start : start + 5] == [0xFFFFDED3, 0x10210142, 0x000001FF, 0x00000000, 0xAB123579]


def test_imxrt_image_has_what_its_boot_rom_reads(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    elf = _link("teensy-4-1", "bundled", builds, monkeypatch)
    address, words = _words(elf, ".boot")
    config, table, data = words[:128], words[0x400:0x408], words[0x408:0x40B]
    assert address == 0x60000000
    assert (config[0], config[1] >> 24) == (0x42464346, 0x56)
    assert config[0x50 // 4] == 8 * 1024 * 1024
    assert config[0x80 // 4 : 0x8C // 4] == [0x0A1804EB, 0x32041EFF, 0x00002604]
    assert table[:4] == [0x402000D1, 0x60002000, 0, 0]
    assert table[4:6] == [0x60001020, 0x60001000]
    image = elf.with_suffix(".bin").stat().st_size
    assert data == [0x60000000, image, 0]
