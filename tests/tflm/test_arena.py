"""What the arena of firmware with TFLM is for, against the interpreter's own record of its allocations."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import MODELS, Forge
from tests.tflm.feature_models import FEATURES

pytestmark = [pytest.mark.tflm, pytest.mark.tools, pytest.mark.reference]

_RECORD = """
import sys
from tflite_micro import runtime
runtime.Interpreter.from_file(sys.argv[1], intrepreter_config=runtime.InterpreterConfig.kAllocationRecording
    ).print_allocations()
"""


def _recorded_head(model: Path) -> int:
    """Return the bytes that tensors and scratch buffers share, which do not depend on the width of pointers."""
    done = subprocess.run(
        [sys.executable, "-c", _RECORD, str(model)], capture_output=True, text=True, timeout=60, check=True
    )
    found = re.search(r"Arena allocation head (\d+) bytes", done.stdout + done.stderr)
    assert found, done.stdout + done.stderr
    return int(found[1])


def _parts(forge: Forge, model: Path) -> dict[str, int]:
    done = forge(
        "build", model, "--board", "mps2-an386", "--runtime", "tflm", "--kernel-set", "reference", "--json",
        timeout_s=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    arena = json.loads(done.stdout)["arena"]
    parts: dict[str, int] = arena["parts"]
    assert parts["head_bytes"] + parts["tail_bytes"] + parts["temporary_bytes"] == arena["bytes"]
    return parts


@pytest.mark.models
@pytest.mark.parametrize("name", ["hello_world_int8", "kws_ref_model", "micro_speech_quantized", "trained_lstm_int8"])
def test_head_is_what_the_interpreter_records(forge: Forge, name: str) -> None:
    model = MODELS / f"{name}.tflite"
    assert _parts(forge, model)["head_bytes"] == _recorded_head(model)


def test_resource_variables_are_told(forge: Forge, tmp_path: Path) -> None:
    model = tmp_path / "variables.tflite"
    model.write_bytes(FEATURES["call_once"]())
    parts = _parts(forge, model)
    assert parts["resource_variable_bytes"] == 4  # one variable of four INT8
    assert parts["tail_bytes"] > parts["resource_variable_bytes"]
