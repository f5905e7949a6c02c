"""What compiler, linker and emulator really say is what `forge explain` knows."""

import subprocess
from pathlib import Path

import pytest

from tflm_forge.explain import explain_text

pytestmark = pytest.mark.tools

_SCRIPT = """
MEMORY { FLASH (rx) : ORIGIN = 0, LENGTH = 64 }
SECTIONS { .text : { *(.text*) *(.rodata*) } > FLASH .rest : { *(.data*) *(.bss*) *(.ARM.*) } > FLASH }
"""
_GCC = ["arm-none-eabi-g++", "-mcpu=cortex-m4", "-mthumb"]
_BARE = ["-nostartfiles", "-Wl,-e,main"]


def _say(folder: Path, *argv: str) -> str:
    """Return what a command says that is bound to fail."""
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    return done.stdout + done.stderr


LINKS = {
    "region-overflow": ("int table[64] = {1}; int main() { return table[0]; }", [*_BARE, "-Tsmall.ld"]),
    "missing-syscalls": ("#include <cstdio>\nint main() { std::printf(\"%d\", 1); return 0; }", ["--specs=nano.specs"]),
    "missing-debuglog": ("extern \"C\" void DebugLog(const char*); int main() { DebugLog(\"x\"); }", _BARE),
    "missing-kernel-source": (
        "namespace tflite { int Register_CONV_2D(); } int main() { return tflite::Register_CONV_2D(); }", _BARE
    ),
    "missing-exceptions": ("int main() { throw 1; }", [*_BARE, "-nostdlib", "-lgcc"]),
    "undefined-reference": ("int other(); int main() { return other(); }", _BARE),
    "header-missing": ("#include \"flatbuffers/flatbuffers.h\"\nint main() {}", _BARE),
}  # fmt: skip


@pytest.mark.parametrize(("expected", "source", "options"), [(k, *v) for k, v in LINKS.items()], ids=LINKS)
def test_compiler_and_linker(tmp_path: Path, expected: str, source: str, options: list[str]) -> None:
    (tmp_path / "main.cc").write_text(source)
    (tmp_path / "small.ld").write_text(_SCRIPT)
    text = _say(tmp_path, *_GCC, "main.cc", "-o", "x.elf", *options)
    assert expected in [cause.pattern.id for cause in explain_text(text).causes], text


def test_two_definitions(tmp_path: Path) -> None:
    for name in ("a.cc", "main.cc"):
        (tmp_path / name).write_text("int main() { return 0; }")
    text = _say(tmp_path, *_GCC, "a.cc", "main.cc", "-o", "x.elf", *_BARE)
    assert explain_text(text).causes[0].pattern.id == "multiple-definition", text


def test_two_float_conventions(tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text("float half(float x) { return x / 2; }")
    (tmp_path / "main.cc").write_text("float half(float); int main() { return (int)half(1); }")
    subprocess.run([*_GCC, "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-c", "a.cc"], cwd=tmp_path, check=True, timeout=60)
    text = _say(tmp_path, *_GCC, "a.o", "main.cc", "-o", "x.elf", *_BARE)
    assert explain_text(text).causes[0].pattern.id == "float-abi", text


@pytest.mark.parametrize(
    ("expected", "options"),
    [
        ("qemu-machine", ["-M", "no-such-machine"]),
        ("qemu-machine", ["-M", "mps2-an386", "-cpu", "no-such-core"]),
        ("qemu-kernel", ["-M", "mps2-an386", "-kernel", "absent.elf"]),
    ],
)
def test_emulator(tmp_path: Path, expected: str, options: list[str]) -> None:
    text = _say(tmp_path, "qemu-system-arm", "-display", "none", *options)
    assert [cause.pattern.id for cause in explain_text(text).causes] == [expected], text
