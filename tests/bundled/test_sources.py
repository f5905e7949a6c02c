"""The bundled runtime's catalogue against its sources, and its sources against the cross compiler."""

import re
import subprocess
import tomllib
from functools import cache
from typing import Any

import pytest
import tflite

from tests import bundled_host as host

TABLE = tomllib.loads((host.BUNDLED / "ops.toml").read_text(encoding="utf-8"))
ROWS: list[dict[str, Any]] = TABLE["op"]
CORES = {
    "cortex-m0": "-mcpu=cortex-m0 -mthumb",
    "cortex-m4f": "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16",
    "cortex-m55f": "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard",
}
FLAGS = "-Os -std=c++17 -fno-exceptions -fno-rtti -fno-threadsafe-statics -Wall -Wextra -Werror -DTF_LITE_STATIC_MEMORY"
RELEASE = "-DNDEBUG -DTF_LITE_STRIP_ERROR_STRINGS"


def read(name: str) -> str:
    return (host.BUNDLED / "tensorflow/lite" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_row_agrees_with_the_schema_and_the_resolver(row: dict[str, Any]) -> None:
    assert row["builtin_code"] == getattr(tflite.BuiltinOperator, row["name"])
    assert re.search(rf"TfLiteStatus {row['add_method']}\(", read("micro/micro_mutable_op_resolver.h"))
    declared = set(re.findall(r"TFLMRegistration (Register_\w+)\(\);", read("micro/kernels/micro_ops.h")))
    assert set(row["registrations"].values()) <= declared
    assert "" in row["registrations"]
    assert all(hasattr(tflite.TensorType, name) for name in (*row["types"], *filter(None, row["registrations"])))
    assert row["max_version"] >= 1
    assert row["version_source"].startswith("tensorflow/lite/tools/versioning/op_version.cc: ")


def test_every_declared_registration_has_a_row() -> None:
    declared = set(re.findall(r"TFLMRegistration (Register_\w+)\(\);", read("micro/kernels/micro_ops.h")))
    assert declared == {function for row in ROWS for function in row["registrations"].values()}
    added = set(re.findall(r"TfLiteStatus (Add\w+)\(", read("micro/micro_mutable_op_resolver.h")))
    assert added - {"AddCustom", "AddBuiltin"} == {row["add_method"] for row in ROWS}


def test_every_source_is_listed() -> None:
    listed = {*TABLE["core"]["sources"], *(source for row in ROWS for source in row["sources"])}
    assert listed == {path.relative_to(host.BUNDLED).as_posix() for path in host.BUNDLED.rglob("*.cc")}


def test_builtin_operator_names_are_the_schemas() -> None:
    header = read("schema/schema_generated.h")
    names = dict(re.findall(r"  BuiltinOperator_(\w+) = (\d+),", header))
    for name, value in vars(tflite.BuiltinOperator).items():
        if isinstance(value, int):
            assert names.pop(name) == str(value)
    assert names == {"STABLEHLO_CASE": "209"}  # newer than the package
    table = "".join(re.findall(r'^    "(.*)"', read("schema/op_names.cc"), re.MULTILINE))
    in_order = re.findall(r"  BuiltinOperator_(\w+) = \d+,", header)
    assert table.split("\\0") == [*in_order, ""]


@cache
def symbols(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return what a source defines and what it needs."""
    text = subprocess.run(
        ["nm", "-P", str(host.object_of("plain", host.BUNDLED / source))], capture_output=True, text=True, check=True
    ).stdout
    kinds = [line.split()[:2] for line in text.splitlines()]
    defined = frozenset(name for name, kind in kinds if kind not in "Uw")
    return defined, frozenset(name for name, kind in kinds if kind == "U")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_row_lists_the_sources_that_its_kernel_needs(row: dict[str, Any]) -> None:
    sources = [*TABLE["core"]["sources"], *row["sources"]]
    defined = frozenset[str]().union(*(symbols(source)[0] for source in sources))
    needed = frozenset[str]().union(*(symbols(source)[1] for source in sources))
    missing = {name for name in needed - defined if "tflite" in name or "TfLite" in name}
    assert not missing
    for helper in row["sources"][1:]:
        others = [s for s in sources if s != helper]
        used = frozenset[str]().union(*(symbols(s)[1] for s in others)) & symbols(helper)[0]
        assert used, f"{helper} is not needed by {row['sources'][0]}"


@pytest.mark.tools
@pytest.mark.parametrize(
    ("core", "mode"), [("cortex-m0", RELEASE), ("cortex-m4f", ""), ("cortex-m4f", RELEASE), ("cortex-m55f", "")]
)
def test_sources_compile_without_warnings_for_a_core(core: str, mode: str) -> None:
    sources = [*sorted(host.BUNDLED.rglob("*.cc")), host.HARNESS / "custom_ops.cc"]
    options = f"{CORES[core]} {FLAGS} {mode}".split()
    command = ["arm-none-eabi-g++", *options, f"-I{host.BUNDLED}", "-S", "-o", "/dev/null"]
    for source in sources:
        done = subprocess.run([*command, source], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
