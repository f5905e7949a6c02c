"""Operators of one's own in QEMU: the tutorial word by word, the example, a kernel in place of the runtime's."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES, ROOT
from tests.firmware_builds import Builds, symbols_of

pytestmark = pytest.mark.tools

TUTORIAL = ROOT / "docs" / "custom-ops.md"
EXAMPLE = EXAMPLES / "custom_op"
CHECK_EXIT_CODE = 7


def read_blocks(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield kind and text of each block of a page, and the file in which the next block replaces it, if it does."""
    blocks = list(re.finditer(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    file = ""
    for block in blocks:
        before = page[: block.start()]
        named = re.search(r"In\s+`(\S+)`,\s+replace\s*$", before)
        again = re.search(r"in the same file,\s+replace\s*$", before)
        file = named[1] if named else file
        yield block[1], block[2], file if named or again else ""


def follow(page: str, folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """Do what a page says: run its commands, make its replacements; return the output of each command."""
    outputs, waiting = {}, ("", "")
    for kind, text, file in read_blocks(page):
        if kind == "sh":
            for line in text.splitlines():
                done = subprocess.run(
                    line, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=400,
                    check=False,
                )  # fmt: skip
                assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
                outputs[line] = done.stdout
        elif file:
            waiting = file, text
        else:
            path, old = folder / waiting[0], waiting[1]
            assert path.read_text().count(old) == 1, f"{waiting[0]} has not exactly one\n{old}"
            path.write_text(path.read_text().replace(old, text))
    return outputs


@pytest.mark.reference
def test_the_tutorial_works_word_by_word_and_ends_with_the_example(builds: Builds, tmp_path: Path) -> None:
    programs, folder = tmp_path / "bin", tmp_path / "empty"
    programs.mkdir()
    folder.mkdir()
    forge = programs / "forge"
    forge.write_text(f'#!/bin/sh\nexec {sys.executable} -m tflm_forge "$@"\n')
    forge.chmod(forge.stat().st_mode | stat.S_IXUSR)
    environment = builds.environment(PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    outputs = follow(TUTORIAL.read_text(encoding="utf-8"), folder, environment)
    for name in ("soft_shrink.cc", "soft_shrink.h", "soft_shrink.py", "soft_shrink_test.py"):
        assert (folder / "ops" / name).read_text() == (EXAMPLE / "ops" / name).read_text()
    entry = (folder / "forge.toml").read_text()
    assert entry in (EXAMPLE / "forge.toml").read_text()
    listed = next(
        text for text in re.findall(r"(?:^    .*\n)+", TUTORIAL.read_text(), re.MULTILINE) if "[[op]]" in text
    )
    assert re.sub(r"^    ", "", listed, flags=re.MULTILINE) == entry
    assert "PASSED    8 cases" in outputs["forge op test SoftShrink"]
    assert "PASSED" in next(text for line, text in outputs.items() if "flash-and-test" in line)
    assert re.search(
        r"^ *SoftShrink +\d+", next(t for line, t in outputs.items() if "forge size" in line), re.MULTILINE
    )


@pytest.mark.reference
def test_the_example_passes_every_layer(builds: Builds, tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    done = builds.run("flash-and-test", "--board", "mps2-an386", "--soak", 50, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert all(comparison["max_error"] == 0 for comparison in report["comparisons"])
    (layers,) = (part for part in report["parts"] if part["name"] == "layers")
    assert "4 of 4 operators" in layers["checks"][0]["detail"]


def test_the_kernel_is_right_by_the_operators_own_definition(builds: Builds, tmp_path: Path) -> None:
    """For scales of 1/16 and lambda 0.75, which is 12 steps, the operator can be computed in whole numbers."""
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    (folder / "ops" / "soft_shrink.py").write_text(
        "import numpy as np\n"
        "def reference(inputs, outputs, options):\n"
        "    x = inputs[0].values.astype(int)\n"
        "    return [np.where(x > 12, x - 12, np.where(x < -12, x + 12, 0)).astype(np.int8)]\n"
    )
    (folder / "ops" / "soft_shrink_test.py").write_text(
        "import numpy as np\nfrom tflm_forge.ops.cases import OpCase, OpTensor\n"
        "def cases():\n"
        "    x = np.arange(-128, 128, dtype=np.int8).reshape(1, 256)\n"
        "    y = OpTensor(type='INT8', shape=(1, 256), scale=1 / 16)\n"
        "    return [OpCase(name='all', inputs=[OpTensor.of(x, scale=1 / 16)], outputs=[y],\n"
        "                   options={'lambda': 0.75})]\n"
    )
    done = builds.run("op", "test", "--on", "host", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [case["detail"] for case in json.loads(done.stdout)["cases"]] == ["identical"]


def test_a_kernel_that_is_wrong_fails_in_both_places(builds: Builds, tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    kernel = folder / "ops" / "soft_shrink.cc"
    kernel.write_text(kernel.read_text().replace("return x + data.lambda;", "return x - data.lambda;"))
    done = builds.run("op", "test", "--board", "mps2-an386", "--json", cwd=folder)
    assert done.returncode == CHECK_EXIT_CODE
    rows = json.loads(done.stdout)["cases"]
    wrong = {(row["place"], row["case"]) for row in rows if not row["passed"]}
    assert {place.split(",")[0] for place, _ in wrong} == {"host", "mps2-an386"}
    assert all("refused" not in case for _, case in wrong)
    assert all("the reference" in row["detail"] for row in rows if not row["passed"])


def test_a_step_outside_the_tensor_is_found_on_the_host(builds: Builds, tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    kernel = folder / "ops" / "soft_shrink.cc"
    kernel.write_text(kernel.read_text().replace("data.table[from[i] + 128]", "data.table[from[i] - (1 << 24)]"))
    done = builds.run("op", "test", "--on", "host", cwd=folder)
    assert done.returncode == CHECK_EXIT_CODE
    assert "soft_shrink.cc" in done.stdout


def test_temporary_tensors_that_are_not_given_back_are_found(builds: Builds, tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    kernel = folder / "ops" / "soft_shrink.cc"
    leak = "  if (input != nullptr) micro_context->DeallocateTempTfLiteTensor(input);\n"
    assert leak in kernel.read_text()
    kernel.write_text(kernel.read_text().replace(leak, ""))
    done = builds.run("op", "test", "--on", "host", cwd=folder)
    assert done.returncode == CHECK_EXIT_CODE
    assert "temp buffers" in done.stdout


@pytest.mark.reference
def test_a_kernel_of_ones_own_replaces_the_runtimes(builds: Builds, tmp_path: Path) -> None:
    assert builds.run("op", "new", "Mine", "--like", "RESHAPE", cwd=tmp_path).returncode == 0
    kernel = tmp_path / "ops" / "mine.cc"
    # The builtin op may have the shape as a second input, and options that are no flexbuffer.
    kernel.write_text(
        kernel.read_text()
        .replace("TF_LITE_ENSURE_EQ(context, NumInputs(node), 1);", "TF_LITE_ENSURE(context, NumInputs(node) >= 1);")
        .replace("if (buffer == nullptr || length == 0)", "if (true)")
    )
    (tmp_path / "forge.toml").write_text(
        '[[op]]\nreplaces = "RESHAPE"\nsources = ["ops/mine.cc"]\nregister = "tflite::Register_MINE"\n'
    )
    model = EXAMPLES / "digits" / "digits.tflite"
    options = ("--board", "mps2-an386", "--only", "self-check,numbers", "--profile", "debug", "-o", "out")
    done = builds.run("flash-and-test", model, *options, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(comparison["max_error"] == 0 for comparison in json.loads(done.stdout)["comparisons"])
    names = " ".join(symbols_of(tmp_path / "out" / "firmware.elf"))
    assert "Register_MINE" in names
    assert "Register_RESHAPE" not in names
    sizes = json.loads(builds.run("size", "out", "--json", cwd=tmp_path).stdout)
    assert "RESHAPE" in json.dumps(sizes)
