"""Why a symbol is in a program: small programs, so that their sources say what refers to what."""

import contextlib
import struct
import subprocess
from pathlib import Path
from random import Random

import pytest

from tflm_forge.errors import UsageError
from tflm_forge.size.why import Reason, find_reasons

pytestmark = pytest.mark.tools

PROGRAM = r"""
typedef void (*Handler)(void);
extern char __stack_top;
int sink;
__attribute__((noinline)) void leaf(void) { sink++; }
__attribute__((noinline)) void middle(void) { leaf(); leaf(); sink += 2; }
static __attribute__((noinline)) void ping(int n);
static __attribute__((noinline)) void pong(int n) { if (n) ping(n - 1); sink += 3; }
static __attribute__((noinline)) void ping(int n) { if (n) pong(n - 1); sink += 4; }
extern const Handler table[];
__attribute__((used, section(".kept"))) void only_kept(void) { leaf(); }
__attribute__((noinline)) void called_by_kept(void) { sink += 6; }
__attribute__((used, section(".kept"))) void also_kept(void) { called_by_kept(); }
int main(void) {
  middle();
  ping(sink);
  for (const Handler* h = table; *h; ++h) (*h)();
  leaf();
  for (;;) sink++;
}
__attribute__((constructor)) void at_start(void) { sink = 7; }
extern Handler __init_array_start[], __init_array_end[];
extern int __bss_start, __bss_end;
void Reset_Handler(void) {
  for (int* p = &__bss_start; p < &__bss_end; ++p) *p = 0;
  for (Handler* h = __init_array_start; h < __init_array_end; ++h) (*h)();
  main();
}
void Unused_Handler(void) { for (;;) {} }
__attribute__((used, section(".isr_vector"))) const Handler g_vectors[] = {
  (Handler)&__stack_top, Reset_Handler, Unused_Handler};
int first_of_bss[4];
int uses_first(int i) { return first_of_bss[i]; }
"""
TABLE = r"""
extern int sink;
void by_table(void) { sink += 5; }
void (*const table[])(void) = {by_table, 0};
"""
ASSEMBLY = r"""
  .syntax unified
  .thumb
  .section .text.pair, "ax", %progbits
  .global wanted
  .type wanted, %function
wanted:
  bx lr
  .size wanted, . - wanted
  .global beside
  .type beside, %function
beside:
  nop
  bx lr
  .size beside, . - beside
  .section .text.caller, "ax", %progbits
  .global leaf2
  .type leaf2, %function
leaf2:
  b.w wanted
  .size leaf2, . - leaf2
"""
SCRIPT = r"""
ENTRY(Reset_Handler)
SECTIONS {
  .isr_vector 0x08000000 : { KEEP(*(.isr_vector)) }
  .text : { *(.text .text.*) KEEP(*(.kept)) }
  .rodata : { *(.rodata .rodata.*) . = ALIGN(4);
    __init_array_start = .; KEEP(*(.init_array .init_array.*)) __init_array_end = .; }
  .bss 0x20000000 (NOLOAD) : { __bss_start = .; *(.bss .bss.*) *(COMMON) . = ALIGN(4); __bss_end = .; }
  __stack_top = 0x20004000;
  /DISCARD/ : { *(.ARM.exidx*) }
}
"""
CORE = ("-mcpu=cortex-m4", "-mthumb")


def _link(folder: Path, *options: str, program: str = PROGRAM) -> Path:
    (folder / "a.c").write_text(program)
    (folder / "table.c").write_text(TABLE)
    (folder / "b.s").write_text(ASSEMBLY)
    (folder / "a.ld").write_text(SCRIPT)
    command = [
        "arm-none-eabi-gcc", *CORE, "-O1", "-ffreestanding", "-fno-tree-loop-distribute-patterns",
        "-ffunction-sections", "-fdata-sections", "-nostdlib", "-Ta.ld", "-Wl,--gc-sections", "-Wl,-Map=a.map",
        "-Wl,--no-warn-rwx-segments", *options, "a.c", "table.c", "b.s", "-o", "a.elf",
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "a.elf"


@pytest.fixture(scope="module", params=["relocations", "instructions"])
def elf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = ("-Wl,--emit-relocs",) if request.param == "relocations" else ()
    return _link(tmp_path_factory.mktemp(request.param), *options)


def _why(elf: Path, symbol: str) -> Reason:
    (reason,) = find_reasons(elf, symbol)
    return reason


def _chain(elf: Path, symbol: str) -> list[str]:
    return [step.name for step in _why(elf, symbol).chain]


def test_how_references_are_known(elf: Path) -> None:
    assert _why(elf, "leaf").source == elf.parent.name.rstrip("0")


@pytest.mark.parametrize(
    ("symbol", "behind_main"),
    [("main", []), ("leaf", ["leaf"]), ("middle", ["middle"]), ("by_table", ["table", "by_table"])],
)
def test_the_shortest_chain_from_the_reset_vector(elf: Path, symbol: str, behind_main: list[str]) -> None:
    assert _chain(elf, symbol) == ["g_vectors", "Reset_Handler", "main", *behind_main]


def test_functions_that_call_each_other(elf: Path) -> None:
    assert _chain(elf, "ping") == ["g_vectors", "Reset_Handler", "main", "ping"]
    assert _chain(elf, "pong") == ["g_vectors", "Reset_Handler", "main", "ping", "pong"]


def test_a_handler_is_reached_from_the_vectors(elf: Path) -> None:
    assert _chain(elf, "Unused_Handler") == ["g_vectors", "Unused_Handler"]


def test_constructors_are_reached_through_their_list(elf: Path) -> None:
    chain = _chain(elf, "at_start")
    assert (chain[:2], chain[-1]) == (["g_vectors", "Reset_Handler"], "at_start")


def test_all_referrers_are_named(elf: Path) -> None:
    assert [step.name for step in _why(elf, "leaf").referrers] == ["main", "middle", "only_kept"]


def test_what_only_the_linker_script_keeps(elf: Path) -> None:
    reason = _why(elf, "called_by_kept")
    assert reason.is_only_kept
    assert [step.name for step in reason.referrers] == ["also_kept"]


def test_what_shares_a_section_is_kept_along(tmp_path: Path) -> None:
    called = PROGRAM.replace("  middle();", "  extern void leaf2(void); leaf2(); middle();")
    elf = _link(tmp_path, "-Wl,--emit-relocs", program=called)
    chain = _why(elf, "beside").chain
    assert [(step.name, step.link) for step in chain[-3:]] == [
        ("leaf2", "reference"),
        ("wanted", "reference"),
        ("beside", "same section"),
    ]


def test_a_name_without_what_marks_copies_and_with_namespaces(tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text(
        "namespace outer { namespace { __attribute__((noinline, used)) int Twice(int x) { return x * 2; } } }\n"
        'extern "C" int Reset_Handler() { return outer::Twice(4); }\n'
    )
    command = ["arm-none-eabi-g++", *CORE, "-O0", "-nostdlib", "-Wl,-eReset_Handler", "a.cc", "-o", "a.elf"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    for name in ("outer::Twice", "Twice", "_ZN5outer12_GLOBAL__N_15TwiceEi"):
        assert _chain(tmp_path / "a.elf", name) == ["Reset_Handler", "outer::Twice"]


def test_an_unknown_symbol_is_answered_with_near_ones(elf: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find_reasons(elf, "midle")
    assert "no symbol 'midle'" in caught.value.message
    assert "middle" in caught.value.hint


def test_a_damaged_file_is_refused_in_words_or_answered(tmp_path: Path) -> None:
    elf = _link(tmp_path, "-Wl,--emit-relocs")
    whole, damaged = elf.read_bytes(), tmp_path / "damaged.elf"
    (sections_at,) = struct.unpack_from("<I", whole, 32)
    random = Random(1)
    for turn in range(150):
        data = bytearray(whole)
        for _ in range(1 + turn % 8):
            data[random.randrange(sections_at if turn % 2 else 0, len(data))] = random.randrange(256)
        damaged.write_bytes(data if turn % 5 else data[: random.randrange(len(data))])
        with contextlib.suppress(UsageError):
            find_reasons(damaged, "leaf")


def test_bounds_of_sections_are_no_references(tmp_path: Path) -> None:
    elf = _link(tmp_path, "-Wl,--emit-relocs", "-Wl,-uuses_first", "-Wl,--undefined=first_of_bss")
    assert "Reset_Handler" not in [step.name for step in _why(elf, "first_of_bss").referrers]
