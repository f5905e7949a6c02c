"""Whose each byte of a firmware is, on ELFs made byte by byte."""

import json
import struct
from collections import Counter
from pathlib import Path

import pytest
import tflite

from tests.conftest import EXAMPLES
from tests.elfmaker import (
    ABSOLUTE,
    ALLOC,
    EXEC,
    FILE,
    FIRMWARE,
    FUNC,
    NOTYPE,
    OBJECT,
    RISCV,
    WRITE,
    Name,
    Part,
    make_elf,
)
from tests.linemaker import make_unit
from tflm_forge.size import Attribution, Group, Piece, attribute

SINE = (EXAMPLES / "sine" / "sine.tflite").read_bytes()
KERNELS = "/tree/tensorflow/lite/micro/kernels"
CODE = 0x08000000


def _attribute(data: bytes, folder: Path, **options: object) -> Attribution:
    path = folder / "firmware.elf"
    path.write_bytes(data)
    return attribute(path, **options)  # type: ignore[arg-type]


def _text(
    folder: Path, names: list[Name], *, lines: bytes = b"", data: bytes = b"", size: int = 0x100, machine: int = 40
) -> Attribution:
    """Attribute an ELF with nothing but code."""
    parts = [
        Part(name=".text", address=CODE, data=data.ljust(size, b"\x11"), flags=ALLOC | EXEC),
        Part(name=".debug_line", address=0, data=lines, flags=0),
    ]
    return _attribute(make_elf(parts, names, machine=machine), folder)


def _function(name: str, start: int, size: int, *, part: int = 0, is_local: bool = False) -> Name:
    return Name(name=name, value=(CODE + start) | 1, size=size, kind=FUNC, part=part, is_local=is_local)


def _groups(found: Attribution) -> dict[str, int]:
    return {row.name: row.flash_bytes for row in found.sum_by("group") if row.flash_bytes}


def _piece_at(found: Attribution, address: int) -> Piece:
    return next(p for p in found.pieces if p.address <= address < p.address + p.size_bytes)


def test_every_byte_has_one_owner(tmp_path: Path) -> None:
    found = _attribute(FIRMWARE, tmp_path)
    at = iter(found.pieces)
    for section in found.sections:
        address = section.address
        while address < section.address + section.size_bytes:
            piece = next(at)
            assert (piece.address, piece.section) == (address, section.name)
            assert (piece.in_flash, piece.in_ram) == (section.in_flash, section.in_ram)
            address += piece.size_bytes
        assert address == section.address + section.size_bytes
    assert next(at, None) is None
    for key in ("group", "op", "layer", "file", "symbol", "section"):
        rows = found.sum_by(key)  # type: ignore[arg-type]
        assert sum(row.flash_bytes for row in rows) == 64 + 48 + 16 + 8
        assert sum(row.ram_bytes for row in rows) == 256 + 8 + 24 + 1024


def test_flash_and_ram_of_a_firmware(tmp_path: Path) -> None:
    found = _attribute(FIRMWARE, tmp_path)
    assert found.flash_bytes == 64 + 48 + 16 + 8
    assert found.ram_bytes == 256 + 8 + 24 + 1024
    assert (found.model_bytes, found.without_model_bytes) == (48, 64 + 16 + 8)
    rows = {row.name: row.ram_bytes for row in found.sum_by("group")}
    assert (rows[Group.STACK], rows[Group.ARENA]) == (256, 1024)


def test_initial_values_count_in_flash_and_in_ram(tmp_path: Path) -> None:
    (row,) = [row for row in _attribute(FIRMWARE, tmp_path).sum_by("section") if row.name == ".data"]
    assert (row.flash_bytes, row.ram_bytes) == (8, 8)


def test_weights_by_layer_as_the_schema_says(tmp_path: Path) -> None:
    parts = [Part(name=".rodata", address=CODE, data=SINE + b"tail", flags=ALLOC)]
    names = [Name(name="g_model_data", value=CODE, size=len(SINE), kind=OBJECT, part=0)]
    found = _attribute(make_elf(parts, names), tmp_path)
    weights: Counter[str] = Counter()
    for piece in found.pieces:
        if piece.group == Group.WEIGHTS:
            weights[piece.layer] += piece.size_bytes
    assert weights == _weights_by_schema()
    assert found.model_bytes == len(SINE)
    assert {piece.symbol for piece in found.pieces if piece.layer} == {"g_model_data"}


def _weights_by_schema() -> dict[str, int]:
    """Return the bytes of constant inputs by the name of an operator's first output, as PyPI's schema reads them."""
    graph = tflite.Model.GetRootAs(SINE).Subgraphs(0)
    model = tflite.Model.GetRootAs(SINE)
    found: dict[str, int] = {}
    for index in range(graph.OperatorsLength()):
        operator = graph.Operators(index)
        label = graph.Tensors(operator.Outputs(0)).Name().decode()
        sizes = [model.Buffers(graph.Tensors(i).Buffer()).DataLength() for i in operator.InputsAsNumpy() if i >= 0]
        if sum(sizes):
            found[label] = sum(sizes)
    return found


def test_metadata_by_what_it_is(tmp_path: Path) -> None:
    found = _attribute(make_elf([Part(name=".rodata", address=CODE, data=SINE, flags=ALLOC)], []), tmp_path)
    kinds: Counter[str] = Counter()
    for piece in found.pieces:
        if piece.group == Group.METADATA:
            kinds[piece.detail] += piece.size_bytes
    graph = tflite.Model.GetRootAs(SINE).Subgraphs(0)
    tensors = [graph.Tensors(index) for index in range(graph.TensorsLength())]
    scales = {id(q): q for t in tensors if (q := t.Quantization()) is not None and q.ScaleLength()}.values()
    length = 4
    assert kinds["scales"] == sum(length + 4 * q.ScaleLength() for q in scales)
    assert kinds["zero points"] == sum(length + 8 * q.ZeroPointLength() for q in scales)
    assert kinds["names of tensors"] == sum(length + len(t.Name()) for t in tensors)


@pytest.mark.parametrize("name", ["converter_output", "model_tflite"])
def test_a_model_is_found_whatever_its_name(tmp_path: Path, name: str) -> None:
    parts = [Part(name=".rodata", address=CODE, data=bytes(16) + SINE, flags=ALLOC)]
    names = [Name(name=name, value=CODE + 16, size=len(SINE), kind=OBJECT, part=0)]
    assert _attribute(make_elf(parts, names), tmp_path).model_bytes == len(SINE)


def test_a_model_is_found_without_a_name(tmp_path: Path) -> None:
    parts = [Part(name=".rodata", address=CODE, data=SINE, flags=ALLOC)]
    assert _attribute(make_elf(parts, []), tmp_path).model_bytes == len(SINE)


def test_the_identifier_in_a_text_is_no_model(tmp_path: Path) -> None:
    parts = [Part(name=".rodata", address=CODE, data=b"not TFL3: the model is damaged\0" + bytes(1), flags=ALLOC)]
    found = _attribute(make_elf(parts, []), tmp_path)
    assert found.model_bytes == 0
    assert found.notes == ("The file is stripped: it has no symbols, so only sections and texts can be told.",)


def test_a_damaged_model_counts_and_is_said(tmp_path: Path) -> None:
    damaged = bytearray(SINE)
    damaged[0:4] = b"\xff\xff\xff\x7f"
    parts = [Part(name=".rodata", address=CODE, data=bytes(damaged), flags=ALLOC)]
    names = [Name(name="g_model_data", value=CODE, size=len(SINE), kind=OBJECT, part=0)]
    found = _attribute(make_elf(parts, names), tmp_path)
    assert found.model_bytes == len(SINE)
    assert "g_model_data can not be read" in found.notes[0]


def test_models_count_together_and_their_lengths_do_not(tmp_path: Path) -> None:
    places = {"g_model_data": (0, 60), "g_model_data_len": (60, 4), "g_model_data_1": (64, 32)}
    places["g_model_data_1_len"] = (96, 4)
    data = make_elf(
        [Part(name=".forge_model", address=0, data=bytes(100), flags=ALLOC)],
        [Name(name=name, value=at, size=size, kind=OBJECT, part=0) for name, (at, size) in places.items()],
    )
    found = _attribute(data, tmp_path)
    assert (found.model_bytes, found.without_model_bytes) == (92, 8)


@pytest.mark.parametrize(
    ("symbol", "group", "op"),
    [
        ("_ZN6tflite16MicroInterpreter6InvokeEv", Group.INTERPRETER, ""),
        ("_ZN6tflite19GreedyMemoryPlanner9AddBufferEiii", Group.PLANNER, ""),
        ("_ZN6tflite26SingleArenaBufferAllocator12ResetTempAllocationsEv", Group.PLANNER, ""),
        ("_ZN6tflite16Register_CONV_2DEv", Group.OPERATORS, "CONV_2D"),
        ("_ZN6tflite21Register_CONV_2D_INT8Ev", Group.OPERATORS, "CONV_2D"),
        ("_ZN6tflite11ParseConv2DEPKNS_8OperatorEPNS_13ErrorReporterE", Group.OPERATORS, "CONV_2D"),
        ("_ZN6tflite12_GLOBAL__N_14EvalEP13TfLiteContextP10TfLiteNode.lto_priv.2", Group.OPERATORS, ""),
        ("_ZN6tflite22reference_integer_ops14ConvPerChannelERKNS_10ConvParamsE.constprop.0", Group.OPERATORS, ""),
        ("arm_softmax_s8", Group.OPERATORS, "SOFTMAX"),
        ("_ZN11flatbuffers6VerifyEv", Group.FLATBUFFER, ""),
        ("__aeabi_dmul", Group.FLOAT, ""),
        ("__udivmoddi4", Group.INTEGER, ""),
        ("_vfprintf_r", Group.PRINTF, ""),
        ("_printf_float", Group.PRINTF, ""),
        ("_malloc_r", Group.MALLOC, ""),
        ("_Znwj", Group.MALLOC, ""),
        ("memcpy", Group.MEMORY, ""),
        ("strlen", Group.MEMORY, ""),
        ("expf", Group.MATH, ""),
        ("__kernel_rem_pio2", Group.MATH, ""),
        ("__cxa_throw", Group.EXCEPTIONS, ""),
        ("_Unwind_RaiseException", Group.EXCEPTIONS, ""),
        ("__cxa_atexit", Group.STARTUP, ""),
        ("_ZNSt12__basic_fileIcE4openEv", Group.CPP, ""),
        ("UART0_IRQHandler", Group.BOARD, ""),
        ("HAL_GPIO_Init", Group.BOARD, ""),
        ("read_sensor", Group.APPLICATION, ""),
        ("main", Group.APPLICATION, ""),
        ("_ZN3app9ClassifierC1Ev", Group.APPLICATION, ""),
    ],
)
def test_a_function_of_any_elf_by_its_name(tmp_path: Path, symbol: str, group: Group, op: str) -> None:
    found = _text(tmp_path, [_function(symbol, 0, 0x100)])
    assert [(p.group, p.op, p.symbol, p.size_bytes) for p in found.pieces] == [(group, op, symbol, 0x100)]
    assert "no line table" in found.notes[0]


def test_the_same_on_riscv(tmp_path: Path) -> None:
    names = [Name(name="_ZN6tflite16Register_CONV_2DEv", value=CODE, size=0x100, kind=FUNC, part=0)]
    (piece,) = _text(tmp_path, names, machine=RISCV).pieces
    assert (piece.group, piece.op) == (Group.OPERATORS, "CONV_2D")


@pytest.mark.parametrize(
    ("path", "group", "op"),
    [
        (f"{KERNELS}/depthwise_conv.cc", Group.OPERATORS, "DEPTHWISE_CONV_2D"),
        (f"{KERNELS}/cmsis_nn/fully_connected.cc", Group.OPERATORS, "FULLY_CONNECTED"),
        (f"{KERNELS}/softmax_common.cc", Group.OPERATORS, "SOFTMAX"),
        ("/tree/tensorflow/lite/kernels/internal/reference/integer_ops/softmax.h", Group.OPERATORS, "SOFTMAX"),
        ("/tree/signal/src/filter_bank_log.cc", Group.OPERATORS, "SignalFilterBankLog"),
        ("/tree/CMSIS-NN/Source/SVDFunctions/arm_svdf_s8.c", Group.OPERATORS, "SVDF"),
        ("/tree/tensorflow/lite/micro/micro_interpreter.cc", Group.INTERPRETER, ""),
        ("/tree/tensorflow/lite/core/c/common.cc", Group.INTERPRETER, ""),
        ("/tree/tensorflow/lite/micro/memory_planner/greedy_memory_planner.cc", Group.PLANNER, ""),
        ("/tree/tensorflow/lite/micro/micro_allocator.cc", Group.PLANNER, ""),
        ("/tree/tensorflow/lite/schema/schema_generated.h", Group.FLATBUFFER, ""),
        ("/tree/flatbuffers/include/flatbuffers/vector.h", Group.FLATBUFFER, ""),
        ("/sdk/STM32F4xx_HAL_Driver/Src/stm32f4xx_hal_uart.c", Group.BOARD, ""),
        ("/project/startup_stm32f407xx.s", Group.BOARD, ""),
        ("/build/newlib/newlib/libc/string/memcpy.c", Group.MEMORY, ""),
        ("../../newlib/libc/tinystdio/dtoa_engine.c", Group.PRINTF, ""),
        ("../../../newlib/libm/math/kf_rem_pio2.c", Group.MATH, ""),
        ("/build/gcc/libgcc/config/arm/unwind-arm.c", Group.EXCEPTIONS, ""),
        ("/project/src/main.cc", Group.APPLICATION, ""),
    ],
)
def test_code_by_the_source_that_the_line_table_names(tmp_path: Path, path: str, group: Group, op: str) -> None:
    lines = make_unit([(CODE, path), (CODE + 0x100, "")])
    (piece,) = _text(tmp_path, [_function("anything", 0, 0x100)], lines=lines).pieces
    assert (piece.group, piece.op) == (group, op)
    assert piece.file == "" or path.endswith(piece.file)


def test_code_of_headers_belongs_to_the_function_around_it(tmp_path: Path) -> None:
    lines = make_unit(
        [
            (CODE, f"{KERNELS}/conv.cc"),
            (CODE + 0x20, f"{KERNELS}/kernel_util.h"),
            (CODE + 0x40, "/usr/include/c++/12.2.1/bits/stl_algobase.h"),
            (CODE + 0x60, f"{KERNELS}/softmax.cc"),
            (CODE + 0x80, f"{KERNELS}/kernel_util.h"),
            (CODE + 0xA0, "/tree/flatbuffers/include/flatbuffers/table.h"),
            (CODE + 0x100, ""),
        ]
    )
    found = _text(tmp_path, [_function("_ZN6tflite4EvalEv.lto_priv.0", 0, 0x100)], lines=lines)
    rows = {row.name: row.flash_bytes for row in found.sum_by("op")}
    assert rows == {"": 0x60, "CONV_2D": 0x60, "SOFTMAX": 0x40}
    assert _groups(found) == {Group.OPERATORS: 0xA0, Group.FLATBUFFER: 0x60}


def _calls(*targets: tuple[int, int]) -> bytes:
    """Return 0x100 bytes of code with a BL at each place: the encoding T1 of the Armv7-M manual."""
    code = bytearray(b"\x00\xbf" * 0x80)
    for place, target in targets:
        offset = target - place - 4
        high, low = 0xF000 | (offset >> 12 & 0x7FF), 0xF800 | (offset >> 1 & 0x7FF)
        if offset < 0:
            high |= 0x400
        code[place : place + 4] = struct.pack("<HH", high, low)
    return bytes(code)


@pytest.mark.parametrize(
    ("calls", "op"),
    [
        ([(0x10, 0x80)], "CONV_2D"),
        ([(0x10, 0x80), (0x50, 0x80)], "CONV_2D, SOFTMAX"),
        ([(0x50, 0x80), (0x60, 0x80)], "SOFTMAX"),
        ([(0x50, 0xC0), (0xD0, 0x80)], "SOFTMAX"),  # through another helper
    ],
)
def test_a_shared_helper_belongs_to_the_ops_that_call_it(tmp_path: Path, calls: list[tuple[int, int]], op: str) -> None:
    lines = make_unit(
        [
            (CODE, f"{KERNELS}/conv.cc"),
            (CODE + 0x40, f"{KERNELS}/softmax.cc"),
            (CODE + 0x80, "/tree/cmsis_nn/Source/NNSupportFunctions/arm_nn_new_helper.c"),
            (CODE + 0xC0, f"{KERNELS}/kernel_util.cc"),
            (CODE + 0x100, ""),
        ]
    )
    names = [_function(name, at, 0x40) for at, name in ((0, "ConvEval"), (0x40, "SoftmaxEval"))]
    names += [_function(name, at, 0x40) for at, name in ((0x80, "arm_nn_new_helper"), (0xC0, "GetInput"))]
    found = _text(tmp_path, names, lines=lines, data=_calls(*calls))
    assert _piece_at(found, CODE + 0x80).op == op
    assert _piece_at(found, CODE + 0x80).group == Group.OPERATORS


@pytest.mark.parametrize(
    ("path", "op"),
    [("../src/op_trace.cc", "CONV_2D"), ("/tree/tensorflow/lite/micro/micro_interpreter.cc", "")],
)
def test_a_helper_that_others_than_ops_call(tmp_path: Path, path: str, op: str) -> None:
    """forge's link reaches kernels as registered; what the interpreter calls is needed without any op."""
    helper = "/tree/cmsis_nn/Source/NNSupportFunctions/arm_nn_new_helper.c"
    lines = make_unit([(CODE, f"{KERNELS}/conv.cc"), (CODE + 0x40, path), (CODE + 0x80, helper), (CODE + 0x100, "")])
    names = [_function("ConvEval", 0, 0x40), _function("_ZN5forge5TraceEv", 0x40, 0x40)]
    names.append(_function("arm_nn_new_helper", 0x80, 0x80))
    found = _text(tmp_path, names, lines=lines, data=_calls((0x10, 0x80), (0x50, 0x80)))
    assert _piece_at(found, CODE + 0x80).group == Group.OPERATORS
    assert _piece_at(found, CODE + 0x80).op == op


def test_a_source_of_several_ops_is_told_apart_by_function_and_by_model(tmp_path: Path) -> None:
    lines = make_unit([(CODE, f"{KERNELS}/pooling.cc"), (CODE + 0x100, "")])
    names = [_function("_ZN6tflite11AverageEvalEv", 0, 0x40), _function("_ZN6tflite7MaxEvalEv", 0x40, 0x40)]
    names.append(_function("_ZN6tflite4InitEv", 0x80, 0x80))
    found = _text(tmp_path, names, lines=lines)
    assert {p.symbol: p.op for p in found.pieces} == {
        "_ZN6tflite11AverageEvalEv": "AVERAGE_POOL_2D",
        "_ZN6tflite7MaxEvalEv": "MAX_POOL_2D",
        "_ZN6tflite4InitEv": "AVERAGE_POOL_2D, MAX_POOL_2D",
    }


def test_a_source_of_the_users_own_kernel(tmp_path: Path) -> None:
    lines = make_unit([(CODE, "/home/me/ops/gelu.cc"), (CODE + 0x40, "")])
    parts = [
        Part(name=".text", address=CODE, data=bytes(0x40), flags=ALLOC | EXEC),
        Part(name=".debug_line", address=0, data=lines, flags=0),
    ]
    data = make_elf(parts, [_function("Eval", 0, 0x40)])
    (piece,) = _attribute(data, tmp_path, own_sources={"ops/gelu.cc": "GELU"}).pieces
    assert (piece.group, piece.op) == (Group.OPERATORS, "GELU")


def test_a_source_of_the_runtime_with_the_name_of_a_users_one(tmp_path: Path) -> None:
    lines = make_unit([(CODE, f"{KERNELS}/conv.cc"), (CODE + 0x80, "../ops/conv.cc"), (CODE + 0x100, "")])
    parts = [
        Part(name=".text", address=CODE, data=bytes(0x100), flags=ALLOC | EXEC),
        Part(name=".debug_line", address=0, data=lines, flags=0),
    ]
    data = make_elf(parts, [_function("a", 0, 0x80), _function("b", 0x80, 0x80)])
    found = _attribute(data, tmp_path, own_sources={"ops/conv.cc": "MY_CONV"})
    assert [piece.op for piece in found.pieces] == ["CONV_2D", "MY_CONV"]


def test_strings_say_their_text_and_whose_they_are(tmp_path: Path) -> None:
    rodata = b"Failed to allocate\0Type %s not supported.\0ready\0"
    places = [CODE + 0x100, CODE + 0x100 + 19, CODE + 0x100 + 42]
    code = bytearray(b"\x00\xbf" * 0x80)
    for function, place in zip((0, 0x40, 0x80), places, strict=True):
        code[function : function + 2] = b"\x00\x48"  # LDR R0, [PC, #0]: the word at function + 4
        code[function + 4 : function + 8] = struct.pack("<I", place)
    lines = make_unit(
        [
            (CODE, "/tree/tensorflow/lite/micro/micro_allocator.cc"),
            (CODE + 0x40, f"{KERNELS}/conv.cc"),
            (CODE + 0x80, "/project/app.cc"),
            (CODE + 0x100, ""),
        ]
    )
    parts = [
        Part(name=".text", address=CODE, data=bytes(code), flags=ALLOC | EXEC),
        Part(name=".rodata", address=CODE + 0x100, data=rodata, flags=ALLOC),
        Part(name=".debug_line", address=0, data=lines, flags=0),
    ]
    names = [_function(name, at, 0x40) for at, name in ((0, "a"), (0x40, "b"), (0x80, "c"))]
    found = _attribute(make_elf(parts, names), tmp_path)
    texts = [(p.detail, p.group, p.op, p.size_bytes) for p in found.pieces if p.section == ".rodata"]
    assert texts == [
        ("Failed to allocate", Group.STRINGS, "", 19),
        ("Type %s not supported.", Group.STRINGS, "CONV_2D", 23),
        ("ready", Group.APPLICATION, "", 6),
    ]


def test_parts_of_the_arena_as_the_build_measured_them(tmp_path: Path) -> None:
    parts = {"head_bytes": 600, "tail_bytes": 400, "temporary_bytes": 24, "resource_variable_bytes": 0}
    (tmp_path / "arena.json").write_text(json.dumps({"bytes": 1024, "how": "measured", "parts": parts}))
    arena = [p for p in _attribute(FIRMWARE, tmp_path).pieces if p.group == Group.ARENA]
    found = [(p.size_bytes, p.detail.partition(":")[0]) for p in arena]
    assert found == [(600, "head"), (24, "between"), (400, "tail")]


@pytest.mark.parametrize(
    "record",
    [
        "",
        "{",
        '{"bytes": 1}',
        '{"bytes": 9, "parts": null}',
        '{"bytes": 64, "parts": {"head_bytes": 1, "tail_bytes": 1}}',
        '{"bytes": 1024, "parts": {"head_bytes": 1000, "tail_bytes": 1000}}',
    ],
)
def test_an_arena_record_of_something_else_is_no_matter(tmp_path: Path, record: str) -> None:
    (tmp_path / "arena.json").write_text(record)
    (arena,) = [p for p in _attribute(FIRMWARE, tmp_path).pieces if p.group == Group.ARENA]
    assert (arena.size_bytes, arena.detail) == (1024, "")


def test_alignment_is_padding_and_code_without_a_name_is_not(tmp_path: Path) -> None:
    names = [_function("_ZN6tflite4EvalEv", 0, 0x3E), _function("_ZN6tflite7PrepareEv", 0x40, 0x40)]
    code = bytes(0x3E) + b"\x00\xbf" + bytes(0x40) + b"\x2d\xe9" * 0x40
    assert _groups(_text(tmp_path, names, data=code)) == {Group.OTHER: 0x80, Group.OPERATORS: 0x7E, Group.PADDING: 2}


def test_what_the_symbol_table_says_of_files(tmp_path: Path) -> None:
    names = [
        Name(name="nano-vfprintf.c", value=0, size=0, kind=FILE, part=ABSOLUTE, is_local=True),
        Name(name="$t", value=CODE, size=0, kind=NOTYPE, part=0, is_local=True),
        Name(name="_arm_muldf3.o", value=0, size=0, kind=FILE, part=ABSOLUTE, is_local=True),
        Name(name="$t", value=CODE + 0x80, size=0, kind=NOTYPE, part=0, is_local=True),
        _function("out", 0, 0x80),
    ]
    assert _groups(_text(tmp_path, names)) == {Group.PRINTF: 0x80, Group.FLOAT: 0x80}


def test_aliases_of_one_function_count_once(tmp_path: Path) -> None:
    names = [_function(name, 0, 0x100) for name in ("abort", "stop")]
    assert len(_text(tmp_path, names).pieces) == 1


@pytest.mark.parametrize(
    ("section", "group"),
    [
        (".isr_vector", Group.VECTORS),
        (".vectors", Group.VECTORS),
        (".ARM.exidx", Group.EXCEPTIONS),
        (".eh_frame", Group.EXCEPTIONS),
        (".init_array", Group.STARTUP),
    ],
)
def test_sections_that_are_for_one_thing(tmp_path: Path, section: str, group: Group) -> None:
    data = make_elf([Part(name=section, address=CODE, data=b"\x12\x34\x56\x78" * 8, flags=ALLOC)], [])
    assert _groups(_attribute(data, tmp_path)) == {group: 32}


def test_stripped_says_so_and_still_tells_model_and_texts(tmp_path: Path) -> None:
    parts = [
        Part(name=".text", address=CODE, data=b"\x2d\xe9\xf0\x41" * 64, flags=ALLOC | EXEC),
        Part(name=".rodata", address=CODE + 0x100, data=SINE + b"out of memory\0", flags=ALLOC),
        Part(name=".data", address=0x20000000, data=b"\1\2\3\4" * 4, flags=ALLOC | WRITE),
    ]
    found = _attribute(make_elf(parts, []), tmp_path)
    assert found.model_bytes >= len(SINE)
    assert "stripped" in found.notes[0]
    assert {p.detail for p in found.pieces if p.group == Group.STRINGS} <= {"out of memory"}


LINK_MAP = """
Archive member included to satisfy reference by file (symbol)

Linker script and memory map

.text           0x08000000      0x100
 *(.text .text.*)
 .text.main     0x08000000       0x20 CMakeFiles/firmware.dir/src/main.c.obj
 .text._ZN6tflite8NameThatIsSoLongThatItHasALineOfItsOwnEv
                0x08000020       0x20 build/tensorflow/lite/micro/kernels/conv.cc.obj
                0x08000020                tflite::NameThatIsSoLong
 .text          0x08000040       0x3e /opt/arm/lib/thumb/libc_nano.a(libc_a-nano-vfprintf.o)
 *fill*         0x0800007e        0x2 
 .text          0x08000080       0x40 /opt/arm/lib/gcc/libgcc.a(_arm_muldf3.o)
 .text          0x080000c0       0x40 lib/libtensorflow-microlite.a(softmax.o)

.debug_line     0x00000000       0x40
 .debug_line    0x08000010       0x10 CMakeFiles/firmware.dir/src/other.c.obj
"""  # noqa: W291


def test_objects_of_a_linker_map(tmp_path: Path) -> None:
    (tmp_path / "firmware.map").write_text(LINK_MAP)
    found = _text(tmp_path, [_function("anything", 0, 0x20)])
    assert [(p.group, p.op, p.size_bytes) for p in found.pieces] == [
        (Group.APPLICATION, "", 0x20),
        (Group.OPERATORS, "CONV_2D", 0x20),
        (Group.PRINTF, "", 0x3E),
        (Group.PADDING, "", 2),
        (Group.FLOAT, "", 0x40),
        (Group.OPERATORS, "SOFTMAX", 0x40),
    ]
    assert found.pieces[2].file == "libc_nano.a:libc_a-nano-vfprintf.o"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LINK_MAP.replace("0x08000000      0x100", "0x08000000      0x104"), "of another link"),
        ("VMA LMA Size Align Out In Symbol\n", "no map of the GNU linker"),
    ],
)
def test_a_map_that_does_not_fit_is_said(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "firmware.map").write_text(text)
    found = _text(tmp_path, [_function("main", 0, 0x100)])
    assert words in found.notes[0]
    assert _groups(found) == {Group.APPLICATION: 0x100}
