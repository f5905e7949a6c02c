"""The lean schema header: the tree's own sources compile to the same objects with it."""

import subprocess
from pathlib import Path

import pytest

from tflm_forge.board import CORES
from tflm_forge.config import BuildSettings
from tflm_forge.model import load_model, op_set
from tflm_forge.runtimes import load_runtime

pytestmark = [pytest.mark.tflm, pytest.mark.tools]

ROOT = Path(__file__).resolve().parents[2]


def _compile(plan, source: str, output: Path, *options: str) -> bytes:
    command = [
        "arm-none-eabi-g++",
        *CORES["cortex-m4f"].cpu_flags,
        "-Os",
        "-std=gnu++17",
        "-fno-exceptions",
        "-fno-rtti",
    ]
    command += [f"-D{define}" for define in plan.defines]
    command += [f"-I{plan.root / folder}" for folder in plan.include_dirs]
    command += [*options, "-c", str(plan.root / source), "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    stripped = output.with_suffix(".bin")
    subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", str(output), str(stripped)], check=True, timeout=60)
    return stripped.read_bytes() + subprocess.check_output(["arm-none-eabi-nm", "--size-sort", str(output)], timeout=60)


@pytest.mark.parametrize("name", ["micro_allocator.cc", "kernels/conv.cc", "micro_interpreter_graph.cc"])
def test_objects_are_the_same_without_the_object_api(tmp_path: Path, name: str) -> None:
    model = load_model(ROOT / "examples" / "digits" / "digits.tflite")
    settings = BuildSettings(runtime="tflm", kernel_set="reference")
    plan = load_runtime("tflm").plan(op_set(model), CORES["cortex-m4f"], settings)
    source = f"tflite-micro/tensorflow/lite/micro/{name}"
    assert source in plan.sources
    assert source not in plan.not_precompiled
    own = _compile(plan, source, tmp_path / "own.o")
    lean = _compile(plan, source, tmp_path / "lean.o", "-include", str(plan.root / plan.precompiled_headers[0]))
    assert lean == own
