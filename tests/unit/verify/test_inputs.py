from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.modelmaker import make_single_op_model
from tests.unit.verify.conftest import make_relu_model
from tflm_forge.errors import ModelError, UsageError
from tflm_forge.model import Model, read_model
from tflm_forge.verify.inputs import load_cases, make_cases


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("INT8", -128, 127),
        ("UINT8", 0, 255),
        ("INT16", -32768, 32767),
        ("INT32", -(2**31), 2**31 - 1),
        ("BOOL", 0, 1),
        ("FLOAT32", -1000, 1000),
    ],
)
def test_made_cases(kind: str, low: int, high: int) -> None:
    model = make_relu_model(shape=(1, 5000), kind=kind)
    cases = make_cases(model, seed=7, random_count=2)
    assert [c.name for c in cases] == ["random 7.0", "random 7.1", "zeros", "minimum", "maximum"]
    for case in cases:
        [array] = case.inputs
        assert array.shape == (1, 5000)
        assert array.dtype == np.dtype(kind.lower())
    [first], [second], [zeros], [lowest], [highest] = (c.inputs for c in cases)
    assert not zeros.any()
    assert (lowest == low).all()
    assert (highest == high).all()
    assert not np.array_equal(first, second)
    # 5000 draws reach into the lowest and the highest tenth of the range.
    span = 4 if kind == "FLOAT32" else None
    bottom, top = (-span, span) if span else (low, high)
    assert bottom <= float(first.min()) <= bottom + (top - bottom) / 10
    assert top >= float(first.max()) >= top - (top - bottom) / 10


def test_a_seed_gives_the_same_inputs_again() -> None:
    model = make_relu_model()
    for one, two in zip(
        make_cases(model, seed=3, random_count=2), make_cases(model, seed=3, random_count=2), strict=True
    ):
        assert np.array_equal(one.inputs[0], two.inputs[0])
    other = make_cases(make_relu_model(shape=(1, 64)), seed=4, random_count=1)[0].inputs[0]
    assert not np.array_equal(
        other, make_cases(make_relu_model(shape=(1, 64)), seed=3, random_count=1)[0].inputs[0]
    )


def test_types_without_arrays_are_refused() -> None:
    model = read_model(make_single_op_model("RELU", [((1, 4), "STRING")]), name="s.tflite")
    with pytest.raises(ModelError, match="'input_0' has type STRING"):
        make_cases(model, seed=1, random_count=0)


@pytest.mark.parametrize(
    ("key", "array", "count"),
    [
        ("serving_x:0", np.zeros((1, 4), np.int8), 1),
        ("input_0", np.zeros((7, 4), np.int8), 7),
        ("input_0", np.zeros((7, 1, 4), np.int8), 7),
        ("input_0", np.full((3, 4), 127, np.int64), 3),
        ("input_0", np.full((3, 4), 127, np.uint8), 3),
    ],
)
def test_users_inputs(relu: Model, npz: Path, key: str, array: Any, count: int) -> None:
    cases = load_cases(save(npz, **{key: array}), relu)
    assert [c.name for c in cases] == [f"data.npz[{i}]" for i in range(count)]
    assert all(c.label is None for c in cases)
    for case in cases:
        assert case.inputs[0].shape == (1, 4)
        assert case.inputs[0].dtype == np.int8
        assert np.array_equal(case.inputs[0].ravel(), array.reshape(-1, 4)[0])


def test_several_inputs_and_labels(two_inputs: Model, npz: Path) -> None:
    a = np.arange(12, dtype=np.int16).reshape(2, 2, 3)
    cases = load_cases(
        save(npz, a=a, input_1=np.array([[True], [False]]), labels=np.array([4, 5])), two_inputs
    )
    assert [c.label for c in cases] == [4, 5]
    assert np.array_equal(cases[1].inputs[0], a[1])
    assert cases[1].inputs[1].tolist() == [False]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"other": np.zeros((1, 4), np.int8)}, "no array for the model's input 'serving_x:0'"),
        ({"input_0": np.zeros((1, 4), np.int8), "label": np.array([1])}, "unknown array 'label'"),
        ({"input_0": np.zeros((1, 5), np.int8)}, r"array 'input_0' has shape \[1, 5\]"),
        ({"input_0": np.zeros((0, 4), np.int8)}, "there is no sample"),
        ({"input_0": np.zeros((), np.int8)}, r"array 'input_0' has shape \[\]"),
        ({"input_0": np.full((1, 4), 128)}, "array 'input_0' has values from 128 to 128.*-128 to 127"),
        ({"input_0": np.zeros((1, 4), np.float32)}, "array 'input_0' has type float32"),
        ({"input_0": np.array([["a"] * 4])}, "array 'input_0' has type <U1"),
        ({"input_0": np.zeros((3, 4), np.int8), "labels": np.array([1, 2])}, "3 class numbers are needed"),
        (
            {"input_0": np.zeros((1, 4), np.int8), "labels": np.array([1.5])},
            "array 'labels' has type float64",
        ),
    ],
)
def test_inputs_that_do_not_fit_name_file_and_key(
    relu: Model, npz: Path, arrays: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=f"data.npz: .*{words}"):
        load_cases(save(npz, **arrays), relu)


def test_a_float_array_for_a_quantized_input_gets_the_formula(relu: Model, npz: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_cases(save(npz, input_0=np.zeros((1, 4))), relu)
    assert "round(x / 0.5) + -1" in caught.value.hint


def test_different_numbers_of_samples(two_inputs: Model, npz: Path) -> None:
    save(npz, a=np.zeros((2, 2, 3), np.int16), b=np.zeros((3, 1), bool))
    with pytest.raises(UsageError, match="'a' has 2, 'b' has 3"):
        load_cases(npz, two_inputs)


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 broken", b"PK", b"\x93NUMPY"])
def test_files_that_are_no_npz(relu: Model, npz: Path, content: bytes) -> None:
    npz.write_bytes(content)
    with pytest.raises(UsageError, match=r"data\.npz: is not an .npz file"):
        load_cases(npz, relu)


def test_a_single_array_file_is_no_npz(relu: Model, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.int8))
    with pytest.raises(UsageError, match=r"x\.npy: is not an \.npz file"):
        load_cases(tmp_path / "x.npy", relu)


def test_pickled_objects_are_refused(relu: Model, npz: Path) -> None:
    save(npz, input_0=np.array([{}], dtype=object))
    with pytest.raises(UsageError, match="plain arrays"):
        load_cases(npz, relu)


def test_a_missing_file(relu: Model, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.npz: can not read: No such file"):
        load_cases(tmp_path / "absent.npz", relu)
