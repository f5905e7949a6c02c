"""The page about TFLM against the code it describes."""

from pathlib import Path

from tflm_forge.runtimes.tflm.op_table import load_kernel_sets
from tflm_forge.runtimes.tflm.pins import _TAG_COMMITS, TFLM_COMMIT

PAGE = " ".join((Path(__file__).resolve().parents[3] / "docs" / "tflm.md").read_text(encoding="utf-8").split())


def test_the_pinned_commits_are_those_of_the_code() -> None:
    assert f"| tensorflow/tflite-micro | {TFLM_COMMIT} |" in PAGE
    for (repository, tag), commit in _TAG_COMMITS.items():
        assert f"| {repository} | {tag}, {commit} |" in PAGE


def test_the_numbers_of_operators_are_those_of_the_catalogue() -> None:
    sets = load_kernel_sets()
    plain = sets["reference"].ops
    own = [row for key, row in sets["cmsis_nn"].ops.items() if row.sources != plain[key].sources]
    assert f"{len(plain)} operators at the pinned commit" in PAGE
    assert f"DSP or MVE instructions for {len(own)} operators" in PAGE
