"""The installed tree against the shipped catalogue, and both against the compiler."""

import subprocess
from pathlib import Path

import pytest

from tflm_forge.runtimes.tflm.install import find_installed
from tflm_forge.runtimes.tflm.make_catalogue import make_catalogue
from tflm_forge.runtimes.tflm.op_table import SHIPPED, load_kernel_sets
from tflm_forge.runtimes.tflm.pins import TFLM_COMMIT

pytestmark = pytest.mark.tflm

INCLUDE_DIRS = (
    "tflite-micro", "flatbuffers/include", "gemmlowp", "ruy", "kissfft", "cmsis_nn", "cmsis_nn/Include",
    "cmsis/CMSIS/Core/Include",
)  # fmt: skip


def test_the_shipped_catalogue_is_what_the_tree_gives() -> None:
    installed = find_installed()
    assert installed is not None
    if installed.version != TFLM_COMMIT:
        pytest.skip(f"the tree in use is {installed.version}, not the pinned commit")
    assert make_catalogue() == SHIPPED.read_text(encoding="utf-8")


@pytest.mark.tools
@pytest.mark.parametrize("kernel_set", ["reference", "cmsis_nn"])
def test_the_compiler_knows_every_method_registration_and_header(kernel_set: str, tmp_path: Path) -> None:
    installed = find_installed()
    assert installed is not None
    ops = load_kernel_sets()[kernel_set].ops.values()
    headers = {s.header for op in ops for s in op.specialised.values()}
    calls = [f"{op.add_method}()" for op in ops]
    calls += [f"{op.add_method}({s.function}())" for op in ops for s in op.specialised.values()]
    codes = [
        f"static_assert(tflite::BuiltinOperator_{op.name} == {op.builtin_code});" for op in ops if not op.custom_name
    ]
    source = tmp_path / "all.cc"
    source.write_text(
        '#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"\n'
        + "".join(f'#include "{header}"\n' for header in sorted(headers))
        + "\n".join(codes)
        + f"\nvoid All(tflite::MicroMutableOpResolver<{len(calls)}>& r) {{\n"
        + "".join(f"  r.{call};\n" for call in calls)
        + "}\n"
    )
    command = ["arm-none-eabi-g++", "-mcpu=cortex-m4", "-mthumb", "-std=c++17", "-fno-rtti", "-fno-exceptions"]
    command += ["-fsyntax-only", "-DTF_LITE_STATIC_MEMORY", *(["-DCMSIS_NN"] if kernel_set == "cmsis_nn" else [])]
    command += [f"-I{installed.folder / folder}" for folder in INCLUDE_DIRS]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
