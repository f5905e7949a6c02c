"""Every board, on its emulator: UART, ticks, faults, resets and the way out, by a program of the test's own."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
import serial
from elftools.elf.elffile import ELFFile

from tflm_forge.board import Board, list_boards, load_board
from tflm_forge.link.status import STATUSES
from tflm_forge.resources import data_dir
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
    templates = data_dir("templates")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    names = ("board.h", "board_config.h.j2", "cortex_m.h", "cortex_m.cc", "startup.cc", "linker.ld.j2", "forge_status.h.j2")
    for name in (*names, f"boards/{board.driver}.cc"):
        out = folder / Path(name).name.removesuffix(".j2")
        text = environment.get_template(f"firmware/{name}").render(board=board, statuses=STATUSES)
        out.write_text(text, encoding="utf-8")
    return sorted(folder.glob("*.cc"))


def _build(board: Board, folder: Path, *more: str) -> Path:
    elf = folder / "firmware.elf"
    sources = [*_render(board, folder), FIRMWARE / "main.cc"]
    command = ["arm-none-eabi-g++", *board.core.cpu_flags, *FLAGS, *more, "-I", folder, *sources]
    command += ["-T", folder / "linker.ld", "-o", elf]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return elf


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
    with open_target(load_board(name), elf) as target:
        with serial.serial_for_url(target.url, timeout=READ_TIMEOUT_S) as port:
            assert port.read_until(b"\n") == b"hello\n"
            yield port, target


def _ask(port: serial.SerialBase, letter: bytes) -> list[int]:
    port.write(letter)
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
    with _talk(name, built[name]) as (port, target):
        rate, kind, _cause, stack, high, canary, constructed, initialised, cleared, arena = _ask(port, b"s")
        assert rate in (board.clock_hz, 1_000_000_000)
        assert kind == 2
        assert stack == board.stack_bytes
        assert 0 < high < 1024
        assert canary == 1
        assert (constructed, initialised, cleared) == (0x1234, 0xCAFE, 0)
        assert arena % 16 == 0
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
            long = _ask(port, b"T")
            times = [tick for pair in (*short, long) for tick in pair]
            assert times == sorted(times)
            spans += [(end - start) * 1e9 / rate for start, end in short]
            # A loop of 8 nops is 10 or 11 instructions; the long one is 20 million loops and passes the end of 24 bits.
            instructions = (long[1] - long[0]) * 1e9 / rate
            assert instructions / 20e6 == pytest.approx(spans[0] / 10e3, rel=0.01)
            assert 9.5 < instructions / 20e6 < 12
    one_tick = 1e9 / rate
    assert max(spans) - min(spans) <= 20 + one_tick


FAULTS = [(b"l", "BadLoad"), (b"u", "BadInstruction")]


@pytest.mark.parametrize("name", BOARDS)
@pytest.mark.parametrize(("letter", "function"), FAULTS, ids=[f for _, f in FAULTS])
def test_fault_names_its_place(name: str, letter: bytes, function: str, built: dict[str, Path]) -> None:
    symbols = _symbols(built[name])
    with _talk(name, built[name]) as (port, target):
        kind, pc, lr, cfsr, hfsr, bfar, _mmfar, sp, high = _ask(port, letter)
        assert kind == 0x60
        assert _within(pc, symbols[function])
        assert _within(lr & ~1, symbols["main"])
        assert symbols["__stack_bottom"][0] < sp <= symbols["__stack_top"][0]
        assert sp % 8 == 0
        assert 0 < high < 1024
        if load_board(name).core.name != "cortex-m0":
            assert hfsr == 1 << 30  # forced: an escalated fault
            if function == "BadLoad":
                assert (cfsr, bfar) == (0x8200, 0xA0000000)
            else:
                assert cfsr == 1 << 16
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
        kind, pc, lr, _cfsr, _hfsr, _bfar, _mmfar, sp, high = _ask(port, b"o")
        assert kind == 0x57
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
