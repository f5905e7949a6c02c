"""Building with kernels of one's own: the project builds without forge; errors are in the words of [[op]]."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds, symbols_of

pytestmark = pytest.mark.tools

TOOL_EXIT_CODE = 4
BOARD = ("--board", "mps2-an386", "--arena", 4096, "-o", "out")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the example."""
    return shutil.copytree(EXAMPLES / "custom_op", tmp_path / "project")


def _change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_project_needs_neither_forge_nor_the_users_folder(builds: Builds, project: Path, tmp_path: Path) -> None:
    done = builds.run("generate", *BOARD, "--profile", "debug", cwd=project)
    assert done.returncode == 0, done.stderr
    moved = tmp_path / "elsewhere"
    (project / "out").rename(moved)
    shutil.rmtree(project)
    texts = [path.read_text(errors="replace") for path in moved.rglob("*") if path.is_file()]
    assert not any(str(project) in text for text in texts)
    configure = ["cmake", "-G", "Ninja", "-S", moved, "-B", moved / "build", "--toolchain", moved / "toolchain.cmake"]
    subprocess.run(configure, check=True, capture_output=True, timeout=120)
    objects = [f"CMakeFiles/firmware.dir/{name}.obj" for name in ("ops/soft_shrink.cc", "src/op_resolver.cc")]
    subprocess.run(["ninja", "-C", moved / "build", *objects], check=True, capture_output=True, timeout=300)
    names = symbols_of(moved / "build" / objects[0])
    assert any("Register_SOFT_SHRINK" in name for name in names)


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("ops/soft_shrink.cc", "Register_SOFT_SHRINK", "Register_OTHER", ("none of its sources", "ops/soft_shrink.cc")),
        ("ops/soft_shrink.h", "Register_SOFT_SHRINK", "Register_OTHER", ("ops/soft_shrink.h does not declare",)),
        ("forge.toml", "tflite::Register", "mine::Register", ("ops/soft_shrink.h does not declare",)),
        (
            "ops/soft_shrink.cc",
            "  return 0.0f;\n",
            "  float Elsewhere(float);\n  return Elsewhere(x);\n",
            ("nothing defines", "Elsewhere", "uses ="),
        ),
        ("ops/soft_shrink.cc", "  return 0.0f;", "  return 0.0f", ("do not compile", "ops/soft_shrink.cc:")),
    ],
)
def test_what_is_wrong_with_a_kernel_is_said(
    builds: Builds, project: Path, file: str, old: str, new: str, words: tuple[str, ...]
) -> None:
    _change(project / file, old, new)
    done = builds.run("build", *BOARD, cwd=project)
    assert done.returncode == TOOL_EXIT_CODE
    assert "[[op]] SoftShrink of forge.toml" in done.stderr
    assert all(word in " ".join(done.stderr.split()) for word in words)


def test_a_change_of_the_kernel_is_built_into_the_firmware(builds: Builds, project: Path) -> None:
    def build() -> tuple[bytes, str]:
        done = builds.run("build", *BOARD, cwd=project)
        assert done.returncode == 0, done.stderr
        config = (project / "out" / "src" / "forge_config.h").read_text()
        build_id = re.search(r"kBuildId\[16\] = \{(.*?)\}", config)
        assert build_id is not None
        return (project / "out" / "firmware.bin").read_bytes(), build_id[1]

    first, first_id = build()
    _change(project / "ops" / "soft_shrink.cc", "return x - data.lambda;", "return x - 2.0f * data.lambda;")
    second, second_id = build()
    assert first != second
    assert first_id != second_id
