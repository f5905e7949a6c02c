import wave
from pathlib import Path

import numpy as np
import pytest

from tests.unit.verify.conftest import make_relu_model
from tflm_forge.errors import UsageError
from tflm_forge.verify.samples import load_cases

Image = pytest.importorskip("PIL.Image")

PIXELS = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("INT8", PIXELS.astype(np.int16) - 128), ("UINT8", PIXELS), ("FLOAT32", PIXELS / np.float32(255))],
)
def test_a_grey_picture(tmp_path: Path, kind: str, expected: np.ndarray) -> None:
    Image.fromarray(PIXELS).save(tmp_path / "p.png")
    [case] = load_cases(tmp_path / "p.png", make_relu_model(shape=(1, 3, 4, 1), kind=kind))
    assert case.name == "p.png"
    assert case.inputs[0].shape == (1, 3, 4, 1)
    np.testing.assert_array_equal(case.inputs[0].reshape(3, 4), expected.astype(case.inputs[0].dtype))


def test_a_colour_picture_keeps_the_order_of_its_colours(tmp_path: Path) -> None:
    pixels = np.stack([PIXELS, PIXELS + 1, PIXELS + 2], axis=-1)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    [case] = load_cases(tmp_path / "p.png", make_relu_model(shape=(3, 4, 3), kind="UINT8"))
    np.testing.assert_array_equal(case.inputs[0], pixels)


@pytest.mark.parametrize(
    ("shape", "kind", "words"),
    [
        ((1, 3, 5, 1), "INT8", r"p\.png: the picture has 4 x 3 pixels, the model takes 5 x 3"),
        ((1, 12), "INT8", r"\[1, 12\] is not a picture"),
        ((1, 3, 4, 1), "INT16", "input is INT16, and pictures fit INT8, UINT8, FLOAT32"),
    ],
)
def test_pictures_that_do_not_fit(tmp_path: Path, shape: tuple[int, ...], kind: str, words: str) -> None:
    Image.fromarray(PIXELS).save(tmp_path / "p.png")
    with pytest.raises(UsageError, match=words):
        load_cases(tmp_path / "p.png", make_relu_model(shape=shape, kind=kind))


def test_files_that_are_no_pictures(tmp_path: Path) -> None:
    model = make_relu_model(shape=(1, 3, 4, 1))
    (tmp_path / "p.png").write_bytes(b"nonsense")
    with pytest.raises(UsageError, match=r"p\.png: is not a picture"):
        load_cases(tmp_path / "p.png", model)
    Image.fromarray(PIXELS).save(tmp_path / "cut.png")
    whole = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) - 30])
    with pytest.raises(UsageError, match=r"cut\.png"):
        load_cases(tmp_path / "cut.png", model)
    with pytest.raises(UsageError, match="No such file"):
        load_cases(tmp_path / "absent.png", model)


def write_wav(path: Path, samples: np.ndarray, *, channels: int = 1, width: int = 2) -> Path:
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(channels)
        sound.setsampwidth(width)
        sound.setframerate(16000)
        sound.writeframes(samples.tobytes())
    return path


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("INT16", [256, -256, 32767, -32768]), ("INT8", [1, -1, 127, -128]), ("FLOAT32", [2**-7, -(2**-7), 0.99997, -1])],
)
def test_sound_is_cut_into_windows(tmp_path: Path, kind: str, expected: list[float]) -> None:
    samples = np.array([256, -256, 32767, -32768, 5, 5, 5, 5, 1], "<i2")
    cases = load_cases(write_wav(tmp_path / "s.wav", samples), make_relu_model(kind=kind))
    assert [c.name for c in cases] == ["s.wav[0]", "s.wav[1]"]
    np.testing.assert_allclose(cases[0].inputs[0].ravel(), expected, rtol=1e-4)


def test_sound_that_does_not_fit(tmp_path: Path) -> None:
    samples = np.zeros(4, "<i2")
    model = make_relu_model(kind="INT16")
    with pytest.raises(UsageError, match="has 2 channels of 16 bits"):
        load_cases(write_wav(tmp_path / "s.wav", samples, channels=2), model)
    with pytest.raises(UsageError, match="has 1 channels of 8 bits"):
        load_cases(write_wav(tmp_path / "s.wav", samples, width=1), model)
    with pytest.raises(UsageError, match="has 3 samples, and the model takes 4"):
        load_cases(write_wav(tmp_path / "s.wav", samples[:3]), model)
    with pytest.raises(UsageError, match="not a row of samples but features"):
        load_cases(tmp_path / "s.wav", make_relu_model(shape=(2, 2)))
    (tmp_path / "s.wav").write_bytes(b"RIFF")
    with pytest.raises(UsageError, match="is not a WAV file"):
        load_cases(tmp_path / "s.wav", model)
