"""Every board on its emulator, with a small program: UART, ticks, faults, resets and the way out."""

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import serial
from elftools.elf.elffile import ELFFile

from tflm_forge.board import Board, driver_files, list_boards, load_board
from tflm_forge.generate import template_environment
from tflm_forge.link.status import STATUSES
from tflm_forge.runners.qemu import QemuTarget, open_target

pytestmark = pytest.mark.tools

FIRMWARE = Path(__file__).parent / "boards_firmware"
BOARDS = [board.name for board in list_boards() if board.emulator]
READ_TIMEOUT_S = 20.0
FLAGS = [
    *("-Os", "-g", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti"),
    *("-fno-threadsafe-statics", "-fno-use-cxa-atexit", "-ffunction-sections", "-fdata-sections"),
    *("-nostartfiles", "--specs=nano.specs", "-Wl,--gc-sections", "-Wl,--fatal-warnings"),
]


def _render(board: Board, folder: Path) -> list[Path]:
    """Render what a board brings to a project; return the C++ files."""
    environment = template_environment()
    headers = ("board.h", "board_config.h.j2", "cortex_m.h", "forge_status.h.j2")
    templates = {
        name.removesuffix(".j2"): f"firmware/{name}" for name in (*headers, "cortex_m.cc", "startup.cc", "linker.ld.j2")
    }
    for name, template in {**templates, **driver_files(board.driver)}.items():
        text = environment.get_template(template).render(board=board, statuses=STATUSES)
        (folder / name).write_text(text, encoding="utf-8")
    return sorted(folder.glob("*.cc"))


def _compile_command(board: Board, folder: Path, *more: str) -> list[str | Path]:
    sources = [*_render(board, folder), FIRMWARE / "main.cc"]
    command = ["arm-none-eabi-g++", *board.core.cpu_flags, *FLAGS, *more, "-I", folder, *sources]
    return [*command, "-T", folder / "linker.ld", "-o", folder / "firmware.elf"]


def _build(board: Board, folder: Path) -> Path:
    command = _compile_command(board, folder)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "firmware.elf"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the firmware of the boards, built when first asked for."""

    class Cache(dict[str, Path]):
        def __missing__(self, name: str) -> Path:
            self[name] = _build(load_board(name), tmp_path_factory.mktemp(name))
            return self[name]

    return Cache()


@contextlib.contextmanager
def _talk(name: str, elf: Path) -> Iterator[tuple[serial.SerialBase, QemuTarget]]:
    with (
        open_target(load_board(name), elf) as target,
        serial.serial_for_url(target.url, timeout=READ_TIMEOUT_S) as port,
    ):
        assert port.read_until(b"\n") == b"hello\n"
        yield port, target


def _ask(port: serial.SerialBase, command: bytes) -> list[int]:
    port.write(command)
    line = port.read_until(b"\n")
    assert line.endswith(b"\n"), line
    return [int(word, 16) for word in line.split() if word != b"fault"]


def _symbols(elf: Path) -> dict[str, tuple[int, int]]:
    with elf.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        return {s.name: (s["st_value"] & ~1, s["st_size"]) for s in table.iter_symbols()}


def _within(address: int, symbol: tuple[int, int]) -> bool:
    return symbol[0] <= address < symbol[0] + symbol[1]


@pytest.mark.parametrize("name", BOARDS)
def test_boots_with_data_and_constructors_and_leaves_by_itself(name: str, built: dict[str, Path]) -> None:
    board = load_board(name)
    symbols = _symbols(built[name])
    assert symbols["__stack_bottom"][0] == board.ram.origin
    assert symbols["__arena_start"][0] + symbols["__arena_max"][0] == board.ram.end
    with _talk(name, built[name]) as (port, target):
        rate, kind, _cause, stack, high, canary, constructed, initialised, cleared, arena = _ask(port, b"s")
        assert rate in (board.clock_hz, 1_000_000_000)
        assert kind == 2
        assert stack == board.stack_bytes
        assert 0 < high < 1024
        assert canary == 1
        assert (constructed, initialised, cleared) == (0x1234, 0xCAFE, 0)
        assert arena % 16 == 0
        assert arena == symbols["__arena_start"][0]
        assert _ask(port, b"f") == [3142857]
        port.write(b"x")
        assert target.exit_status(READ_TIMEOUT_S) == 7


@pytest.mark.parametrize("name", BOARDS)
def test_uart_carries_all_bytes_both_ways(name: str, built: dict[str, Path]) -> None:
    every = bytes(range(256))
    with _talk(name, built[name]) as (port, _):
        for sent in (every, every[::-1]):
            port.write(b"e" + sent)
            assert port.read(256) == sent


@pytest.mark.parametrize("name", BOARDS)
def test_ticks_count_instructions(name: str, built: dict[str, Path]) -> None:
    spans: list[float] = []
    for _ in range(2):
        with _talk(name, built[name]) as (port, _):
            rate = _ask(port, b"s")[0]
            short = [_ask(port, b"t") for _ in range(3)]
            times = [tick for pair in short for tick in pair]
            assert times == sorted(times)
            spans += [(end - start) * 1e9 / rate for start, end in short]
    with _talk(name, built[name]) as (port, _):
        start, end = _ask(port, b"T")
    # A loop of 8 nops is 9 to 11 instructions; 20 million of them pass the end of a 24-bit counter.
    instructions = (end - start) * 1e9 / rate
    assert instructions / 20e6 == pytest.approx(spans[0] / 10e3, rel=0.01)
    assert 8.5 < instructions / 20e6 < 11.5
    one_tick = 1e9 / rate
    assert max(spans) - min(spans) <= 20 + one_tick


BELOW_RAM = 0x1FFFFF00  # nothing is there, or the guard of the stack
FAULTS = [(b"l" + BELOW_RAM.to_bytes(4, "big"), "BadLoad"), (b"u", "BadInstruction")]


@pytest.mark.parametrize("name", BOARDS)
@pytest.mark.parametrize(("command", "function"), FAULTS, ids=[f for _, f in FAULTS])
def test_fault_names_its_place(name: str, command: bytes, function: str, built: dict[str, Path]) -> None:
    symbols = _symbols(built[name])
    with _talk(name, built[name]) as (port, target):
        kind, pc, lr, cfsr, hfsr, bfar, mmfar, sp, high, twice = _ask(port, command)
        assert (kind, twice) == (0x60, 0xC0)
        assert _within(pc, symbols[function])
        assert _within(lr & ~1, symbols["main"])
        assert symbols["__stack_bottom"][0] < sp <= symbols["__stack_top"][0]
        assert sp % 8 == 0
        assert 0 < high < 1024
        if load_board(name).core.name != "cortex-m0":
            assert hfsr == 1 << 30  # forced: an escalated fault
            if function == "BadLoad":
                assert (cfsr, bfar, mmfar) in ((0x8200, BELOW_RAM, 0), (0x82, 0, BELOW_RAM))
            else:
                assert cfsr == 1 << 16
        # A fault while a fault is answered is one more fault, told apart from the first.
        kind, pc, lr, cfsr, *_ = _ask(port, b"u")
        assert kind == 0x60
        assert _within(pc, symbols["BadInstruction"])
        assert _within(lr & ~1, symbols["ForgeFault"])
        assert cfsr == (0 if load_board(name).core.name == "cortex-m0" else 1 << 16)
        port.write(b"x")
        assert target.exit_status(READ_TIMEOUT_S) == 8


@pytest.mark.parametrize("name", BOARDS)
def test_unexpected_exception_is_a_fault(name: str, built: dict[str, Path]) -> None:
    with _talk(name, built[name]) as (port, _):
        kind, pc, *_ = _ask(port, b"v")
        assert kind == 0x60
        assert _within(pc, _symbols(built[name])["main"])


@pytest.mark.parametrize("name", BOARDS)
def test_stack_overflow_is_named(name: str, built: dict[str, Path]) -> None:
    board = load_board(name)
    with _talk(name, built[name]) as (port, _):
        _ask(port, b"f")  # floating-point registers are in use from here on
        kind, pc, lr, _cfsr, _hfsr, _bfar, _mmfar, sp, high, twice = _ask(port, b"o")
        assert (kind, twice) == (0x57, 0xAE)
        assert _within(pc, _symbols(built[name])["Recurse"])
        assert lr == 0
        assert sp < board.ram.origin + 256
        assert high > board.stack_bytes - 256


@pytest.mark.parametrize("name", BOARDS)
def test_reset_starts_anew_and_says_so(name: str, built: dict[str, Path]) -> None:
    with _talk(name, built[name]) as (port, _):
        assert _ask(port, b"s")[2] != 4
        port.write(b"r")
        assert port.read_until(b"\n") == b"hello\n"
        state = _ask(port, b"s")
        assert state[2] == 4
        assert state[7:9] == [0xCAFE, 0]


@pytest.mark.parametrize(("define", "region"), [("-DROM_BYTES=200000", "FLASH"), ("-DRAM_BYTES=9000", "RAM")])
def test_too_large_is_said_by_the_linker(define: str, region: str, tmp_path: Path) -> None:
    board = load_board("stm32vldiscovery")
    done = subprocess.run(
        _compile_command(board, tmp_path, define), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode != 0
    assert re.search(rf"region `{region}' overflowed by \d+ bytes", done.stderr)
