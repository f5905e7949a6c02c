"""The bundled runtime's reader of flexbuffers: what Google's Python writer wrote, and damage of it."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from tests.bundled_host import BUNDLED

PROGRAM = r"""
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "flatbuffers/flexbuffers.h"
#include "tensorflow/lite/micro/flatbuffer_utils.h"

namespace {

void Print(const flexbuffers::Reference& value) {
  if (value.IsNull()) printf("null");
  else if (value.IsBool()) printf(value.AsBool() ? "true" : "false");
  else if (value.IsInt()) printf("%" PRId64, value.AsInt64());
  else if (value.IsUInt()) printf("%" PRIu64, value.AsUInt64());
  else if (value.IsFloat()) printf("[%.17g, %.9g, %" PRId64 ", %d]", value.AsDouble(), value.AsFloat(), value.AsInt64(),
                                   value.AsInt32());
  else if (value.IsString()) printf("\"%s\"", value.AsString().c_str());
  else if (value.IsBlob()) printf("%zu", value.AsBlob().size());
  else if (value.IsMap()) {
    const flexbuffers::Map map = value.AsMap();
    printf("{");
    for (size_t i = 0; i < map.size(); ++i) {
      const char* key = map.Keys()[i].AsKey();
      printf("%s\"%s\": ", i == 0 ? "" : ", ", key);
      Print(map[key]);
    }
    printf("}");
  } else if (value.IsTypedVector()) {
    const flexbuffers::TypedVector vector = value.AsTypedVector();
    printf("[");
    for (size_t i = 0; i < vector.size(); ++i) { if (i != 0) printf(", "); Print(vector[i]); }
    printf("]");
  } else {
    const flexbuffers::Vector vector = value.AsVector();
    printf("[");
    for (size_t i = 0; i < vector.size(); ++i) { if (i != 0) printf(", "); Print(vector[i]); }
    printf("]");
  }
}

// Reads whatever there is, by every accessor, to a depth.
uint64_t Touch(const flexbuffers::Reference& value, int depth) {
  uint64_t sum = value.AsInt64() + value.AsBool() + value.AsUInt8() + (value.AsFloat() > 0) + (value.AsDouble() > 0) +
                 strlen(value.AsString().c_str()) + strlen(value.AsKey()) + value.AsBlob().size();
  if (depth == 0) return sum;
  const flexbuffers::Map map = value.AsMap();
  for (size_t i = 0; i < map.size() && i < 4; ++i) sum += Touch(map[map.Keys()[i].AsKey()], depth - 1);
  for (size_t i = 0; i < value.AsVector().size() && i < 4; ++i) sum += Touch(value.AsVector()[i], depth - 1);
  for (size_t i = 0; i < value.AsTypedVector().size() && i < 4; ++i) sum += Touch(value.AsTypedVector()[i], depth - 1);
  return sum;
}

}  // namespace

// Each record of the input is u32 mode, u32 length, bytes.
int main() {
  uint32_t head[2];
  while (fread(head, 4, 2, stdin) == 2) {
    // Exactly as long as the buffer, so that the sanitizer sees any step outside.
    auto* bytes = static_cast<uint8_t*>(malloc(head[1]));
    if (fread(bytes, 1, head[1], stdin) != head[1]) return 2;
    const flexbuffers::Reference root = flexbuffers::GetRoot(bytes, head[1]);
    if (head[0] == 0) Print(root);
    if (head[0] == 1) printf("%d", Touch(root, 3) == 0);
    if (head[0] == 2) {
      const tflite::FlexbufferWrapper options(bytes, head[1]);
      printf("[%d, %.9g, %d]", options.ElementAsInt32(1), options.ElementAsFloat(0), options.ElementAsBool(2));
    }
    if (head[0] == 3) printf("%" PRId64, root.AsInt64());
    printf("\n");
    free(bytes);
  }
  return 0;
}
"""
READ, TOUCH, BY_NUMBER, AS_INTEGER = range(4)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flexbuffers")
    (folder / "main.cc").write_text(PROGRAM)
    flags = [
        "-std=c++17",
        "-O1",
        "-g",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-parentheses",
        "-Wno-misleading-indentation",
    ]
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = ["g++", *flags, *checks, f"-I{BUNDLED}", folder / "main.cc", "-o", folder / "main"]
    subprocess.run(command, check=True, timeout=300)
    return folder / "main"


def _ask(program: Path, mode: int, buffers: Sequence[bytes]) -> list[Any]:
    """Return what the program says of each buffer; a step outside one of them fails here."""
    data = b"".join(np.array([mode, len(b)], "<u4").tobytes() + b for b in buffers)
    done = subprocess.run([program], input=data, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


@pytest.mark.parametrize(
    "value",
    [
        {"axis": 1, "keep": True, "name": "abc", "none": None},
        {"small": -1, "word": -300, "long": 1 << 20, "huge": -(1 << 40), "last": (1 << 63) - 1},
        {"list": [1, 2, 3], "mixed": [1, "two", False], "deep": {"er": {"est": 7}}, "empty": []},
        {f"key{i:03}": i for i in range(300)},
        {"text": "x" * 300, "": 5},
        [1, -70000, 5],
        "alone",
        -5,
        True,
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_the_python_writer_wrote_is_read(program: Path, value: Any) -> None:
    assert _ask(program, READ, [bytes(flexbuffers.Dumps(value))]) == [value]


@pytest.mark.parametrize("value", [0.5, -1.0, 0.1, 1e-30, 3.99, -2.5, 123456789.75, 1e9, 2.0**62, -(2.0**53)])
def test_floats_are_read_as_floats_doubles_and_integers(program: Path, value: float) -> None:
    ((double, single, long, word),) = _ask(program, READ, [bytes(flexbuffers.Dumps(value))])
    assert double == value
    assert np.float32(single) == np.float32(value)
    assert long == int(value)
    assert word == np.int64(int(value)).astype(np.int32)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e300, -(2.0**64)])
def test_a_float_that_no_integer_holds_reads_as_0(program: Path, value: float) -> None:
    builder = flexbuffers.Builder()
    builder.Float(value, 8)
    assert _ask(program, AS_INTEGER, [bytes(builder.Finish())]) == [0]


def test_values_by_number_are_in_the_order_of_their_keys(program: Path) -> None:
    data = bytes(flexbuffers.Dumps({"count": 12, "alpha": 0.25, "flag": True}))
    assert _ask(program, BY_NUMBER, [data]) == [[12, 0.25, 1]]


def test_an_absent_key_is_null_and_no_options_are_empty(program: Path) -> None:
    assert _ask(program, READ, [b"", b"\0", b"\0\0", bytes(flexbuffers.Dumps(None))]) == [None] * 4


def test_no_damage_leads_outside_the_buffer(program: Path) -> None:
    """Every byte of a buffer changed, every prefix, and 4,000 buffers of noise."""
    random = np.random.default_rng(1)
    whole = bytes(flexbuffers.Dumps({"a": [1, 2, 300], "b": "text", "c": {"d": 0.1, "e": True}, "f": [1, "x", None]}))
    damaged = [whole[:end] for end in range(len(whole))]
    for place in range(len(whole)):
        for value in (0, 1, 2, 4, 8, 0x7F, 0x80, 0xFF, *random.integers(0, 256, 6)):
            damaged.append(whole[:place] + bytes([int(value)]) + whole[place + 1 :])
    damaged += [random.integers(0, 256, random.integers(0, 40), np.uint8).tobytes() for _ in range(4000)]
    assert len(_ask(program, TOUCH, damaged)) == len(damaged)
