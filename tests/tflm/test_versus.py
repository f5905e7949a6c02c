"""What registering all of TFLM's operators would cost, measured by building it."""

import json
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES, Forge
from tflm_forge.board import CORES
from tflm_forge.config import BuildSettings
from tflm_forge.runtimes import load_runtime
from tflm_forge.versus import every_op

pytestmark = [pytest.mark.tflm, pytest.mark.tools]

OPS = 118


@pytest.mark.parametrize("kernel_set", ["reference", "cmsis_nn"])
def test_every_kernel_set_plans_all_operators(kernel_set: str) -> None:
    runtime = load_runtime("tflm")
    settings = BuildSettings(runtime="tflm", kernel_set=kernel_set)
    plan = runtime.plan(every_op(runtime.catalogue()), CORES["cortex-m4f"], settings)
    assert plan.kernel_set == kernel_set
    assert len(plan.registrations) == OPS


def test_the_saving_is_measured_and_in_the_manifest_from_then_on(forge: Forge, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    options = ("--board", "mps2-an386", "--runtime", "tflm", "--kernel-set", "reference", "-o", folder)
    built = forge("build", EXAMPLES / "digits/digits.tflite", *options, timeout_s=900)
    assert built.returncode == 0, built.stderr
    done = forge("size", folder, "--versus", "all-ops", "--json", timeout_s=1800)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["all_ops"] == OPS
    assert result["saving_bytes"] == result["all_ops_without_model_bytes"] - result["without_model_bytes"]
    assert result["saving_bytes"] > 100_000
    manifest = (folder / "ops.manifest.yaml").read_text()
    assert f"total_flash_saving_kb: {result['saving_bytes'] / 1000:.1f}\n" in manifest
    built = forge("build", EXAMPLES / "digits/digits.tflite", *options, timeout_s=900)
    assert built.returncode == 0, built.stderr
    assert (folder / "ops.manifest.yaml").read_text() == manifest
