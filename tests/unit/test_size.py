"""Where flash and RAM of a firmware went, on an ELF whose sizes are known."""

from pathlib import Path

import pytest

from tests.elfmaker import ALLOC, EXEC, FIRMWARE, FUNC, OBJECT, Name, Part, make_elf
from tflm_forge.elf import read_elf
from tflm_forge.size import SizeReport, measure_size


def _measure(data: bytes, folder: Path, *, top: int = 15) -> SizeReport:
    path = folder / "firmware.elf"
    path.write_bytes(data)
    return measure_size(read_elf(path), top=top)


def test_adds_up_sections(tmp_path: Path) -> None:
    size = _measure(FIRMWARE, tmp_path)
    assert size.flash_bytes == 64 + 48 + 16 + 8
    assert (size.model_bytes, size.code_bytes, size.constant_bytes) == (48, 64, 16 + 8)
    assert size.without_model_bytes == 64 + 16 + 8
    assert size.ram_bytes == 256 + 8 + 24 + 1024
    assert (size.arena_bytes, size.stack_bytes) == (1024, 256)


@pytest.mark.parametrize(
    ("top", "names"), [(0, []), (2, ["main", "helper"]), (9, ["main", "helper", "table", "counter"])]
)
def test_largest_symbols_in_flash_without_the_model(tmp_path: Path, top: int, names: list[str]) -> None:
    assert [symbol.name for symbol in _measure(FIRMWARE, tmp_path, top=top).largest] == names


def test_model_inside_the_code_is_not_code(tmp_path: Path) -> None:
    data = make_elf(
        [Part(name=".text", address=0, data=bytes(100), flags=ALLOC | EXEC)],
        [
            Name(name="main", value=1, size=30, kind=FUNC, part=0),
            Name(name="g_model_data", value=40, size=60, kind=OBJECT, part=0),
        ],
    )
    size = _measure(data, tmp_path)
    assert (size.flash_bytes, size.code_bytes, size.model_bytes, size.constant_bytes) == (100, 40, 60, 0)


def test_models_count_together_and_their_lengths_do_not(tmp_path: Path) -> None:
    places = {
        "g_model_data": (0, 60),
        "g_model_data_len": (60, 4),
        "g_model_data_1": (64, 32),
        "g_model_data_1_len": (96, 4),
    }
    data = make_elf(
        [Part(name=".forge_model", address=0, data=bytes(100), flags=ALLOC)],
        [Name(name=name, value=at, size=size, kind=OBJECT, part=0) for name, (at, size) in places.items()],
    )
    size = _measure(data, tmp_path)
    assert (size.model_bytes, size.constant_bytes) == (92, 8)


def test_aliases_of_one_function_count_once(tmp_path: Path) -> None:
    names = [Name(name=name, value=1, size=30, kind=FUNC, part=0) for name in ("abort", "stop")]
    data = make_elf([Part(name=".text", address=0, data=bytes(30), flags=ALLOC | EXEC)], names)
    assert len(_measure(data, tmp_path).largest) == 1


def test_any_elf_without_forges_symbols(tmp_path: Path) -> None:
    data = make_elf([Part(name=".text", address=0, data=bytes(30), flags=ALLOC | EXEC)], [])
    size = _measure(data, tmp_path)
    assert (size.model_bytes, size.arena_bytes, size.stack_bytes, size.ram_bytes, size.largest) == (0, 0, 0, 0, ())
