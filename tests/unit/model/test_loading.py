"""Files that are missing, no files, too large, or something else than a .tflite model."""

import gzip
import io
import os
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.modelmaker import make_single_op_model
from tflm_forge.errors import ModelError
from tflm_forge.model import MAX_FILE_BYTES, load_model, read_model


def test_reads_a_file(tmp_path: Path) -> None:
    file = tmp_path / "relu.tflite"
    file.write_bytes(make_single_op_model("RELU"))
    model = load_model(file)
    assert model.name == "relu.tflite"
    assert model.data == file.read_bytes()


def test_missing_file_names_the_models_beside_it(tmp_path: Path) -> None:
    (tmp_path / "keyword.tflite").touch()
    with pytest.raises(ModelError, match="no such file") as caught:
        load_model(tmp_path / "keywrd.tflite")
    assert "keyword.tflite" in caught.value.hint
    assert caught.value.exit_code == 3


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file") as caught:
        load_model(tmp_path / "nowhere" / "m.tflite")
    assert caught.value.hint


def test_a_file_as_a_folder_of_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="can not be read"):
        load_model(tmp_path / "file" / "m.tflite")


def test_folder_names_the_models_in_it(tmp_path: Path) -> None:
    (tmp_path / "keyword.tflite").touch()
    with pytest.raises(ModelError, match="a folder") as caught:
        load_model(tmp_path)
    assert "keyword.tflite" in caught.value.hint


def test_savedmodel_folder_says_how_to_convert_it(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").touch()
    with pytest.raises(ModelError, match="SavedModel folder") as caught:
        load_model(tmp_path)
    assert "from_saved_model" in caught.value.hint


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="not a regular file"):
        load_model(tmp_path / "pipe")


@pytest.mark.parametrize("name", ["a\0b.tflite", "x" * 5000])
def test_a_name_that_no_system_takes(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match="can not be read"):
        load_model(tmp_path / name)


def test_a_file_larger_than_any_flash_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "huge.tflite"
    with file.open("wb") as stream:
        stream.truncate(MAX_FILE_BYTES + 1)  # sparse: takes no space
    with pytest.raises(ModelError, match="more than any microcontroller's flash") as caught:
        load_model(file)
    assert "256 MiB" in caught.value.hint


def zipped() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("metadata.json", "{}")
    return stream.getvalue()


def saved_array() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.zeros(2))
    return stream.getvalue()


# The start of what each tool writes; the producers of .onnx and .pb are field 2 of a protobuf.
OTHER_FILES: dict[str, tuple[bytes, str]] = {
    "zip": (zipped(), "zip archive"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(64), "Keras .h5"),
    "elf": (b"\x7fELF\x01\x01\x01" + bytes(64), "ELF"),
    "gzip": (gzip.compress(b"model"), "gzip"),
    "uf2": (b"UF2\nWQ]\x9e" + bytes(64), "UF2"),
    "numpy": (saved_array(), "NumPy"),
    "pickle": (pickle.dumps({"model": 1}), "pickle"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
    "savedmodel": (b"\x08\x01\x12\xf3\x01\x0a\x40" + bytes(64), "SavedModel"),
    "onnx": (b"\x08\x08\x12\x07pytorch\x1a\x052.1.0:" + bytes(64), "ONNX"),
    "graph": (b"\x0a\x2c\x0a\x01x\x12\x0bPlaceholder" + b"\xff" * 64, "frozen TensorFlow graph"),
    "executorch": (b"\x30\x00\x00\x00ET12" + bytes(64), "ExecuTorch"),
    "size-prefixed": (b"\x00\x02\x00\x00\x1c\x00\x00\x00TFL3" + bytes(64), "size-prefixed"),
    "zeros": (bytes(100_000), "nothing but zeros"),
    "page": (b"\n<!DOCTYPE html>\n<html><body>Sign in</body></html>", "web page"),
    "c": (b"alignas(16) const unsigned char g_model[] = {\n  0x1c, 0x00,\n", "C source"),
    "json": (b'{"modelTopology": {}}', "JSON"),
    "text": ("Fußnote\n".encode() * 600, "text file"),
    "noise": (bytes(range(200, 256)) * 4, "not a format that forge knows"),
    "short": (b"TFL", "text file"),
    "shorter": (b"\x1c", "not a format that forge knows"),
}


@pytest.mark.parametrize("kind", OTHER_FILES)
def test_says_what_another_file_looks_like(kind: str) -> None:
    data, words = OTHER_FILES[kind]
    with pytest.raises(ModelError, match=r"not a \.tflite model") as caught:
        read_model(data, name="m.tflite")
    assert words in caught.value.message
    assert caught.value.hint


def test_empty_file() -> None:
    with pytest.raises(ModelError, match="empty"):
        read_model(b"", name="m.tflite")
