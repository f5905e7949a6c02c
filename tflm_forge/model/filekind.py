"""Says what a file that is no .tflite model looks like, and how to come from there to one."""

_TO_TFLITE = "Convert it with tf.lite.TFLiteConverter and give the .tflite file."

# Magic bytes at the start -> what it is, what to do.
_MAGICS: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a zip archive (a .keras model, or a packed download)", f"Unpack it. {_TO_TFLITE}"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file (a Keras .h5 model)", _TO_TFLITE),
    (b"\x7fELF", "an ELF file (a program or firmware)", "Give the .tflite file that went into it."),
    (b"\x1f\x8b", "a gzip archive", "Unpack it first."),
    (b"UF2\n", "a UF2 firmware image", "Give the .tflite file that went into it."),
    (
        b"version https://git-lfs",
        "a Git LFS pointer, not the model itself",
        "Fetch the real file with `git lfs pull`.",
    ),
    (b"\x08\x01\x12", "a TensorFlow SavedModel (saved_model.pb)", _TO_TFLITE),
    (b"\x93NUMPY", "a NumPy array", "Give the .tflite file."),
    (b"\x80\x02", "a Python pickle (a PyTorch or scikit-learn model)", "Convert it to .tflite first."),
    (b"\x80\x04", "a Python pickle (a PyTorch or scikit-learn model)", "Convert it to .tflite first."),
)

_IDENTIFIERS: dict[bytes, tuple[str, str]] = {
    b"ET12": (
        "an ExecuTorch program",
        "ExecuTorch has its own runtime: export the model to .tflite.",
    ),
    b"TFL1": ("a model of an early TFLite schema", _TO_TFLITE),
    b"TFL2": ("a model of an early TFLite schema", _TO_TFLITE),
}

_HEAD_BYTES = 4096


def name_file_kind(data: bytes) -> tuple[str, str]:
    """Return what these bytes look like, and what the user can do about it.

    Args:
        data: a file's bytes that do not have the TFLite identifier.
    """
    for magic, kind, remedy in _MAGICS:
        if data.startswith(magic):
            return kind, remedy
    if data[4:8] in _IDENTIFIERS:
        return _IDENTIFIERS[data[4:8]]
    if data[8:12] == b"TFL3":
        return "a size-prefixed TFLite flatbuffer", "Cut off its first four bytes."
    if _is_onnx(data):
        return "an ONNX model", "Convert it to .tflite first, for example with onnx2tf."
    if data[:1] == b"\x0a" and b"Placeholder" in data[:_HEAD_BYTES]:
        return "a frozen TensorFlow graph (.pb)", _TO_TFLITE
    if not any(data[:_HEAD_BYTES]):
        return "nothing but zeros", "The file was damaged on its way: copy it again."
    return _name_text_kind(data[:_HEAD_BYTES]) or ("not a format that forge knows", "Give a .tflite file.")


def _is_onnx(data: bytes) -> bool:
    """Whether it starts like ONNX's ModelProto: field 1 (IR version), then 2 (producer) or 7 (graph)."""
    if len(data) < 5 or data[0] != 0x08 or not 3 <= data[1] < 32:
        return False
    return data[2] in (0x12, 0x3A) and (b"onnx" in data[:_HEAD_BYTES] or data[4:8].isalnum())


def _name_text_kind(head: bytes) -> tuple[str, str] | None:
    try:
        text = head.decode("utf-8", "strict")
    except UnicodeDecodeError as error:
        # A character cut in two at the end of the head is still text.
        if error.start < len(head) - 3:
            return None
        text = head[: error.start].decode("utf-8")
    if not text or any(ord(c) < 32 and c not in "\t\r\n\f" for c in text):
        return None
    lowered = text.lower()
    if "<html" in lowered or "<!doctype" in lowered:
        return "a web page", "The download saved the page around the model: use the raw download link."
    if "char " in text and "[" in text:
        return "C source with the model as an array", "Give the .tflite file it was made from."
    if text.lstrip().startswith("{"):
        return "a JSON file", "Give the .tflite file."
    return "a text file", "Give the .tflite file."
