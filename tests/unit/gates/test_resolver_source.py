"""What is read of C++ that registers ops: as people write it, with comments, conditions, macros and mistakes."""

from pathlib import Path

import pytest

from tflm_forge.errors import UsageError
from tflm_forge.gates.resolver_source import ResolverSource, read_resolver


def _read(tmp_path: Path, text: str) -> ResolverSource:
    path = tmp_path / "main.cc"
    path.write_text(text, encoding="utf-8")
    return read_resolver(path)


def _calls(tmp_path: Path, text: str) -> list[str]:
    return [call.text for call in _read(tmp_path, text).calls]


WRITTEN_BY_HAND = """\
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
namespace { constexpr int kOps = 4; }
static tflite::MicroMutableOpResolver<kOps> resolver;  // AddSoftmax() is not here
/* resolver.AddRelu(); */
TfLiteStatus Setup(tflite::MicroMutableOpResolver<kOps>* other) {
  TF_LITE_ENSURE_STATUS(resolver.AddConv2D(
      tflite::Register_CONV_2D_INT8()));  // comment with ) and "
  if (other->AddFullyConnected() != kTfLiteOk) return kTfLiteError;
  const char* text = "resolver.AddLogistic();";
  resolver . AddCustom( "My\\"Op" , tflite::Register_MY_OP() );
  resolver.AddBuiltin(tflite::BuiltinOperator_SOFTMAX, tflite::Register_SOFTMAX(), ParseSoftmax);
  return kTfLiteOk;
}
"""


def test_calls_are_found_with_their_lines(tmp_path: Path) -> None:
    source = _read(tmp_path, WRITTEN_BY_HAND)
    assert [(call.line, call.receiver, call.method) for call in source.calls] == [
        (6, "resolver", "AddConv2D"),
        (8, "other", "AddFullyConnected"),
        (10, "resolver", "AddCustom"),
        (11, "resolver", "AddBuiltin"),
    ]
    conv, _, custom, builtin = source.calls
    assert conv.text == "AddConv2D(tflite::Register_CONV_2D_INT8())"
    assert custom.custom_name == 'My"Op'
    assert builtin.enumerator == "SOFTMAX"
    assert {capacity.value for capacity in source.capacities} == {4}


def test_a_resolver_of_its_own_class(tmp_path: Path) -> None:
    text = """
    class Ops : public tflite::MicroMutableOpResolver<2> {
     public:
      Ops() { AddConv2D(); this->AddSoftmax(); }
      TfLiteStatus AddRelu(int x);
    };
    TfLiteStatus Ops::AddTanh() { return AddLogistic(); }
    """
    assert _calls(tmp_path, text) == ["AddConv2D()", "AddSoftmax()", "AddLogistic()"]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["#if 0", "r.AddConv2D();", "#endif", "r.AddRelu();"], {"AddRelu()": True}),
        (["#if 0", "#else", "r.AddConv2D();", "#endif"], {"AddConv2D()": True}),
        (["#if 1", "r.AddRelu();", "#else", "r.AddConv2D();", "#endif"], {"AddRelu()": True}),
        (["#ifdef A", "r.AddRelu();", "#else", "r.AddConv2D();", "#endif"], {"AddRelu()": False, "AddConv2D()": False}),
        (["#if A", "#if 0", "r.AddRelu();", "#endif", "#endif", "r.AddTanh();"], {"AddTanh()": True}),
        (["#if 0", "#elif 1", "r.AddRelu();", "#elif 1", "r.AddTanh();", "#endif"], {"AddRelu()": True}),
        (["#endif", "r.AddRelu();", "#if 0"], {"AddRelu()": True}),
        (["r.AddRelu(  // first", "  );"], {"AddRelu()": True}),
        (["r.AddRelu(", "r.AddTanh();"], {"AddTanh()": True}),
        (["// \\", "r.AddRelu();", "r.AddTanh();"], {"AddTanh()": True}),
        (['auto t = R"x( r.AddRelu(); )x"; r.AddTanh();'], {"AddTanh()": True}),
        (["auto c = '\"'; r.AddTanh(); auto d = '\"';"], {"AddTanh()": True}),
        (["int n = 1'000'000; r.AddTanh();"], {"AddTanh()": True}),
    ],
)
def test_what_is_not_compiled_does_not_count(tmp_path: Path, lines: list[str], found: dict[str, bool]) -> None:
    source = _read(tmp_path, "\n".join(lines) + "\n")
    assert {call.text: call.is_certain for call in source.calls} == found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tflite::MicroMutableOpResolver<7> r;", 7),
        ("tflite::MicroMutableOpResolver< 7u > r;", 7),
        ("#define N 9\ntflite::MicroMutableOpResolver<N> r;", 9),
        ("inline constexpr int kCount{3};\ntflite::MicroMutableOpResolver<app::kCount> r;", 3),
        ("enum { kCount = 5 };\nusing R = tflite::MicroMutableOpResolver<kCount>;", 5),
        ("tflite::MicroMutableOpResolver<sizeof(x) / 4> r;", None),
        ("const int n = 1;\nvoid f() { int n = 2; }\ntflite::MicroMutableOpResolver<n> r;", None),
    ],
)
def test_number_of_ops_that_there_is_room_for(tmp_path: Path, text: str, value: int | None) -> None:
    assert [capacity.value for capacity in _read(tmp_path, text).capacities] == [value]


def test_number_may_stand_in_headers_beside_the_source(tmp_path: Path) -> None:
    (tmp_path / "ops.h").write_text('#include "count.h"\nusing Ops = tflite::MicroMutableOpResolver<kCount>;\n')
    (tmp_path / "count.h").write_text('#include "ops.h"\nconstexpr int kCount = 12;\n')
    (capacity,) = _read(tmp_path, '#include "ops.h"\n#include "nowhere.h"\nvoid f(Ops& r) { r.AddTanh(); }').capacities
    assert (capacity.path, capacity.line, capacity.value) == (tmp_path / "ops.h", 2, 12)


def test_what_can_not_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.cc: can not read"):
        read_resolver(tmp_path / "nowhere.cc")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 200_000,
        '"' * 200_001,
        "/*" * 100_000,
        "r.AddConv2D(" * 20_000,
        "#if 1\n" * 50_000,
        "a" * 500_000,
        "\0\xff",
    ],
    ids=["parentheses", "quotes", "comments", "calls", "conditions", "word", "bytes"],
)
def test_odd_sources_end_soon(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.cc"
    path.write_bytes(text.encode("latin-1"))
    read_resolver(path)
