from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.modelmaker import make_single_op_model
from tests.unit.verify.conftest import make_relu_model
from tflm_forge.errors import ModelError, UsageError
from tflm_forge.model import Model, read_model
from tflm_forge.verify.inputs import Case, make_boundary_cases, make_random_cases, soak_inputs
from tflm_forge.verify.samples import load_cases


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def xorshift_bytes(seed: int, count: int) -> bytes:
    """Marsaglia's xorshift32 with 13, 17, 5: one byte a number, as docs/link.md says."""
    state, out = seed, bytearray()
    for _ in range(count):
        state = (state ^ (state << 13)) % 2**32
        state ^= state >> 17
        state = (state ^ (state << 5)) % 2**32
        out.append(state % 256)
    return bytes(out)


TYPES = [
    ("INT8", -128, 127),
    ("UINT8", 0, 255),
    ("INT16", -32768, 32767),
    ("INT32", -(2**31), 2**31 - 1),
    ("BOOL", 0, 1),
    ("FLOAT32", -1000, 1000),
]


@pytest.mark.parametrize(("kind", "low", "high"), TYPES)
def test_boundary_cases(kind: str, low: int, high: int) -> None:
    cases = {case.name: case for case in make_boundary_cases(make_relu_model(shape=(1, 50), kind=kind))}
    more = {"INT8": ["-127"], "FLOAT32": ["NaN", "+infinity", "-infinity"]}.get(kind, [])
    assert list(cases) == ["zeros", "minimum", "maximum", *more]
    for case in cases.values():
        [array], [fill] = case.inputs, case.fills
        assert (array.shape, array.dtype, case.part) == ((1, 50), np.dtype(kind.lower()), "boundaries")
        assert fill is not None
        assert fill.pattern is not None
        made = (fill.pattern.to_bytes(4, "little") * array.nbytes)[: array.nbytes]
        assert made == array.tobytes()
    assert not cases["zeros"].inputs[0].any()
    assert (cases["minimum"].inputs[0] == low).all()
    assert (cases["maximum"].inputs[0] == high).all()
    if kind == "INT8":
        assert (cases["-127"].inputs[0] == -127).all()
    assert [c.name for c in cases.values() if not c.is_comparable] == (more if kind == "FLOAT32" else [])
    if kind == "FLOAT32":
        assert np.isnan(cases["NaN"].inputs[0]).all()


def test_wide_elements_are_sent() -> None:
    assert make_boundary_cases(make_relu_model(kind="INT64"))[0].fills == (None,)


@pytest.mark.parametrize(("kind", "low", "high"), TYPES)
@pytest.mark.parametrize("elements", [500, 5000])
def test_random_cases_reach_over_the_range(kind: str, low: int, high: int, elements: int) -> None:
    first, second = make_random_cases(make_relu_model(shape=(1, elements), kind=kind), seed=7, count=2)
    assert (first.name, second.name, first.source, first.part) == ("random 7.0", "random 7.1", "random", "numbers")
    [array], [fill] = first.inputs, first.fills
    assert (array.shape, array.dtype) == ((1, elements), np.dtype(kind.lower()))
    assert not np.array_equal(array, second.inputs[0])
    is_float = kind == "FLOAT32"
    # A device makes all but short float inputs itself.
    assert (fill is None) == (is_float and elements == 500)
    span = (4 if fill is None else 1) if is_float else None
    bottom, top = (-span, span) if span else (low, high)
    assert bottom <= float(array.min()) <= bottom + (top - bottom) / 10
    assert top >= float(array.max()) >= top - (top - bottom) / 10
    if kind == "INT8":
        assert fill is not None
        assert array.tobytes() == xorshift_bytes(fill.seed, elements)


def test_a_seed_gives_the_same_inputs_again() -> None:
    model = make_relu_model(shape=(1, 64))

    def arrays(seed: int) -> list[Case]:
        return list(make_random_cases(model, seed=seed, count=2))

    for one, two in zip(arrays(3), arrays(3), strict=True):
        assert np.array_equal(one.inputs[0], two.inputs[0])
    assert not np.array_equal(arrays(4)[0].inputs[0], arrays(3)[0].inputs[0])


def test_inputs_of_one_case_differ_and_soak_goes_on_from_one_to_the_next(two_inputs: Model) -> None:
    [case] = make_random_cases(two_inputs, seed=1, count=1)
    seeds = [fill.seed for fill in case.fills if fill is not None]
    assert len(set(seeds)) == 2
    a, b = soak_inputs(two_inputs, 99)
    stream = xorshift_bytes(99, 13)
    assert a.tobytes() == stream[:12]
    assert b.tobytes() == bytes([stream[12] & 1])


def test_types_without_arrays_are_refused() -> None:
    model = read_model(make_single_op_model("RELU", [((1, 4), "STRING")]), name="s.tflite")
    for make in (make_boundary_cases, lambda m: make_random_cases(m, seed=1, count=1)):
        with pytest.raises(ModelError, match="'input_0' has type STRING"):
            make(model)


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
    cases = load_cases(save(npz, a=a, input_1=np.array([[True], [False]]), labels=np.array([4, 5])), two_inputs)
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
def test_inputs_that_do_not_fit_name_file_and_key(relu: Model, npz: Path, arrays: dict[str, Any], words: str) -> None:
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


def test_an_array_file_holds_the_only_input(relu: Model, two_inputs: Model, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(8, dtype=np.int8).reshape(2, 4))
    assert [(c.name, c.inputs[0].tolist()) for c in load_cases(path, relu)] == [
        ("x.npy[0]", [[0, 1, 2, 3]]),
        ("x.npy[1]", [[4, 5, 6, 7]]),
    ]
    with pytest.raises(UsageError, match=r"x\.npy: two\.tflite has 2 inputs, and such a file holds one"):
        load_cases(path, two_inputs)
    path.write_bytes(b"nonsense")
    with pytest.raises(UsageError, match=r"x\.npy: is not an \.npy file"):
        load_cases(path, relu)
    with pytest.raises(UsageError, match=r"x\.txt: can not read: No such file"):
        load_cases(tmp_path / "x.txt", relu)
    (tmp_path / "x.txt").touch()
    with pytest.raises(UsageError, match=r"x\.txt: unknown kind of file"):
        load_cases(tmp_path / "x.txt", relu)


def test_a_folder_with_classes(relu: Model, tmp_path: Path) -> None:
    for name, value in (("7/b.npy", 2), ("3/a.npy", 1), ("plain.npy", 9), ("other/c.npy", 5)):
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / "set" / name, np.full((1, 4), value, np.int8))
    cases = load_cases(tmp_path / "set", relu)
    assert [(c.name, c.label, int(c.inputs[0][0, 0]), c.source) for c in cases] == [
        ("3/a.npy", 3, 1, "set"),
        ("7/b.npy", 7, 2, "set"),
        ("other/c.npy", None, 5, "set"),
        ("plain.npy", None, 9, "set"),
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="empty: there is no input in it"):
        load_cases(tmp_path / "empty", relu)


def test_pickled_objects_are_refused(relu: Model, npz: Path) -> None:
    save(npz, input_0=np.array([{}], dtype=object))
    with pytest.raises(UsageError, match="plain arrays"):
        load_cases(npz, relu)


def test_a_missing_file(relu: Model, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.npz: can not read: No such file"):
        load_cases(tmp_path / "absent.npz", relu)
