"""What the doctor says of models is what the bundled runtime does with them."""

import numpy as np
import pytest

from tests import bundled_host as host
from tests.doctor_models import CASES, Case, clean_models
from tflm_forge.doctor import Subject, diagnose
from tflm_forge.model import Model, read_model
from tflm_forge.runtimes import bundled

ARENA_BYTES = 1 << 20
DTYPES = {
    "INT8": np.int8,
    "FLOAT32": np.float32,
    "INT16": np.int16,
    "UINT8": np.uint8,
    "INT32": np.int32,
    "BOOL": np.bool_,
}
MODELS = [*CASES, *(Case(rule="", name=n, make=lambda d=d: d, outcome="runs") for n, d in clean_models().items())]

# It runs these, and gives what TFLM gives: numbers that are not the model's, or none.
RUN_ALL_THE_SAME = {"no-operators", "op-version", "asymmetric-weights", "fused-activation", "dynamic-tensor"}


def errors_of(model: Model) -> set[str]:
    subject = Subject(model=model, catalogue=bundled.catalogue())
    return {finding.id for finding in diagnose(subject) if finding.stands}


@pytest.mark.parametrize("case", MODELS, ids=lambda case: f"{case.rule}.{case.name}")
def test_what_is_passed_runs_and_what_is_refused_does_not(case: Case) -> None:
    data = case.make()
    model = read_model(data, name="m")
    errors = errors_of(model)
    if any(tensor.type not in DTYPES for tensor in model.inputs):
        assert errors
        return
    result = host.run(data, [np.ones(t.shape, DTYPES[t.type]) for t in model.inputs], ARENA_BYTES)
    if not errors:
        assert result.ok, result.log
    elif result.ok:
        assert errors <= RUN_ALL_THE_SAME
