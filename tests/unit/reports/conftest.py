from dataclasses import replace

import pytest

from tests.unit.reports.test_reports import comparison, make_report
from tflm_forge.verify.records import (
    FloatAgreement,
    LayerResult,
    Layers,
    Soak,
    SoakStep,
    TestReport,
)


@pytest.fixture
def report() -> TestReport:
    return make_report()


@pytest.fixture
def full_report() -> TestReport:
    """A report in which no field is empty, and with names that want escaping."""
    wrong = comparison("x", wrong=3, error=7.0).metrics
    results = (
        LayerResult(index=0, op="CONV_2D", layer="<a>;b", type="INT8", unit="LSB", metrics=wrong, passed=False),
        LayerResult(index=1, op="SOFTMAX", layer="y", type="INT8", unit="LSB", metrics=None, passed=True, note="why"),
    )
    return replace(
        make_report(),
        model="<model>&.tflite",
        soak=Soak(
            loops=500,
            wanted=5000,
            stateful=False,
            steps=(
                SoakStep(loops=4, stack_high_water_bytes=700, seconds=0.1),
                SoakStep(loops=500, stack_high_water_bytes=720, seconds=1.1),
            ),
        ),
        layers=Layers(case="zeros", reference="TFLM interpreter", results=results),
        float_agreements=(
            FloatAgreement(
                output="y",
                model="float.tflite",
                cases=9,
                relative_error=0.004,
                limit=0.01,
                mae=0.1,
                cosine=0.999,
                argmax_agrees=9,
            ),
        ),
        left_out=("boundaries",),
        log_lines=("ready", "a <b> \x01 line"),
    )
