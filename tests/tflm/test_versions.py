"""Tensor types and versions of versions.toml against the interpreter, with models of one operator.

The interpreter is PyPI's, made from a commit near the pinned one; it has the reference kernels.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tflm.single_ops import BUILDERS, FEATURES, OUTPUT_BUILDERS
from tflm_forge.runtimes.tflm.op_table import TflmOp, load_kernel_sets

pytestmark = pytest.mark.reference

TYPES = ("FLOAT32", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT32", "BOOL")
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
ROOT = Path(__file__).resolve().parents[2]

# The kernel looks at no type and reads any bytes as bool: what runs computes nothing of use.
EXPECTED_EXCEPTIONS = {f"{op}.{type_}" for op in ("LOGICAL_AND", "LOGICAL_OR") for type_ in TYPES if type_ != "BOOL"}


def rows() -> dict[str, TflmOp]:
    return {op.name: op for op in load_kernel_sets()["reference"].ops.values()}


def result_type(name: str, type_: str) -> str:
    if name in COMPARISONS:
        return "BOOL"
    if name in ("ARG_MAX", "ARG_MIN"):
        return "INT32"
    if name in ("DEQUANTIZE", "CAST"):
        return "FLOAT32"
    return "INT8" if name == "QUANTIZE" else type_


def run_all(folder: Path) -> dict[str, str]:
    command = [sys.executable, "-m", "tests.tflm.single_op_worker", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True)
    return dict(line.split() for line in done.stdout.splitlines())


def test_the_kernels_take_the_types_of_the_table_and_no_others(tmp_path: Path) -> None:
    table = rows()
    expected = {}
    for name, build in {**BUILDERS, **OUTPUT_BUILDERS}.items():
        known = table[name]
        for type_ in TYPES:
            result = result_type(name, type_)
            (tmp_path / f"{name}.{type_}.tflite").write_bytes(build(name, type_, result))
            taken = known.outputs if name in OUTPUT_BUILDERS else known.inputs
            expected[f"{name}.{type_}"] = "ok" if type_ in taken else "refused"
    found = run_all(tmp_path)
    assert found.keys() == expected.keys()
    different = [
        f"{case}: interpreter {found[case]}, table {wanted}"
        for case, wanted in expected.items()
        if found[case] != wanted and case not in EXPECTED_EXCEPTIONS
    ]
    assert not different, "\n".join(different)


def test_the_highest_version_is_that_of_the_features_the_kernels_have(tmp_path: Path) -> None:
    table = rows()
    expected = {}
    for case, (version, model) in FEATURES.items():
        (tmp_path / f"{case}.tflite").write_bytes(model())
        limit = table[case.partition(".")[0]].max_version
        expected[case] = "ok" if version <= limit else "refused"
    assert run_all(tmp_path) == expected
