"""The error tree: one exit code each, as the README and the command's help say."""

import re
from pathlib import Path

import pytest

from tflm_forge import errors
from tflm_forge.cli import INTERRUPTED_EXIT_CODE, make_app
from tflm_forge.errors import FitError, ForgeError, UsageError

ROOT = Path(__file__).resolve().parents[2]
KINDS = {
    "UsageError": 2,
    "ModelError": 3,
    "ToolError": 4,
    "FitError": 5,
    "DeviceError": 6,
    "CheckError": 7,
}


def test_every_kind_has_its_own_exit_code() -> None:
    found = {
        kind.__name__: kind.exit_code for kind in ForgeError.__subclasses__() if kind.__module__ == errors.__name__
    }
    assert found == KINDS


@pytest.mark.parametrize("code", [0, *KINDS.values(), INTERRUPTED_EXIT_CODE])
def test_exit_codes_are_documented(code: int) -> None:
    assert re.search(rf"^\| {code} \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert re.search(rf"\b{code} ", str(make_app().info.help))


def test_carries_message_reasons_and_hint() -> None:
    error = UsageError("what", hint="do this", reasons=["one", "two"])
    assert str(error) == "what"
    assert (error.message, error.hint, error.reasons) == ("what", "do this", ("one", "two"))


def test_fit_error_says_how_much_by_region() -> None:
    assert FitError("too large", bytes_over={"FLASH": 12}).bytes_over == {"FLASH": 12}
    assert FitError("too large").bytes_over == {}
