"""Alternatives by name: listed from their package, loaded by the word the user types, the nearest one named."""

from pathlib import Path

import pytest

import tflm_forge.runners
import tflm_forge.runtimes
from tflm_forge.board import load_board
from tflm_forge.errors import UsageError
from tflm_forge.registry import list_names, load_alternative, unknown_name


def test_names_are_the_public_modules_of_the_package() -> None:
    folder = Path(tflm_forge.runtimes.__path__[0])
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert list_names(tflm_forge.runtimes) == tuple(sorted(name for name in modules if not name.startswith("_")))
    assert "bundled" in list_names(tflm_forge.runtimes)


def test_loads_the_module_with_the_name() -> None:
    assert load_alternative(tflm_forge.runners, "qemu", kind="runner").__name__ == "tflm_forge.runners.qemu"


@pytest.mark.parametrize("name", ["", "_private", "os", "../qemu", "qemu.command"])
def test_nothing_but_the_listed_names_is_loaded(name: str) -> None:
    with pytest.raises(UsageError, match="unknown runner") as caught:
        load_alternative(tflm_forge.runners, name, kind="runner")
    assert "Known: " in caught.value.hint
    assert "qemu" in caught.value.hint


def test_the_nearest_names_come_first() -> None:
    error = unknown_name("board", "stm32f5", ["microbit", "stm32vldiscovery", "stm32f4"])
    assert error.message == "unknown board 'stm32f5'"
    assert error.hint.startswith("Did you mean 'stm32f4'")
    assert "microbit" in error.hint


def test_a_far_name_gets_the_list_alone() -> None:
    assert unknown_name("board", "zzzz", ["microbit"]).hint == "Known: microbit."
    assert unknown_name("board", "zzzz", []).hint == "Known: none."


def test_unknown_board_names_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        load_board("mps2-an368")
    assert "'mps2-an386'" in caught.value.hint
