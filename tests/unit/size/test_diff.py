"""What changed between two builds whose sizes are known."""

import pytest

from tests.unit.size.fakes import flash, ram, sizes
from tflm_forge.size.diff import Change, compare_sizes, plain_symbol
from tflm_forge.size.records import Group

CONV, POOL = "CONV_2D", "MAX_POOL_2D"


def _told(changes: tuple[Change, ...]) -> list[tuple[str, str, int]]:
    return [(change.kind, change.name, change.flash_growth_bytes) for change in changes]


@pytest.mark.parametrize(
    ("symbol", "plain"),
    [
        ("main", "main"),
        ("arm_convolve_s8.constprop.0.isra.0", "arm_convolve_s8"),
        ("arm_convolve_s8.constprop.12", "arm_convolve_s8"),
        ("Eval.part.0.cold", "Eval"),
        ("_ZN6tflite12_GLOBAL__N_17PrepareEv.lto_priv.3", "_ZN6tflite12_GLOBAL__N_17PrepareEv"),
        ("counter.1234", "counter"),
        ("CSWTCH.17", "CSWTCH"),
        ("_ZN39_GLOBAL__N__e5b2a1c3_7_main_cc_1234abcd3fooEv", "_ZN12_GLOBAL__N_13fooEv"),
        (".LC0", ".LC0"),
        ("v8.table", "v8.table"),
    ],
)
def test_a_symbol_has_one_name_in_every_build(symbol: str, plain: str) -> None:
    assert plain_symbol(symbol) == plain


def test_came_went_grew_shrank_by_effect() -> None:
    old = sizes(flash("gone", 40), flash("grown", 100), flash("shrunk", 90), flash("same", 500))
    new = sizes(flash("grown", 150), flash("shrunk", 80), flash("same", 500), flash("new", 300))
    diff = compare_sizes(old, new)
    assert _told(diff.symbols) == [
        ("came", "new", 300),
        ("grew", "grown", 50),
        ("went", "gone", -40),
        ("shrank", "shrunk", -10),
    ]
    assert diff.total.flash_growth_bytes == 300 + 50 - 40 - 10
    assert sum(change.flash_growth_bytes for change in diff.symbols) == diff.total.flash_growth_bytes


def test_copies_of_one_function_are_one() -> None:
    old = sizes(flash("Convolve.constprop.0", 100, op=CONV), flash("Convolve", 60, op=CONV))
    new = sizes(flash("Convolve.isra.0", 170, op=CONV))
    assert _told(compare_sizes(old, new).symbols) == [("grew", "Convolve (2 copies)", 10)]


def test_static_functions_of_one_name_are_told_apart_by_their_operator() -> None:
    old = sizes(flash("Prepare.lto_priv.0", 50, op=CONV), flash("Prepare.lto_priv.1", 70, op=POOL))
    new = sizes(flash("Prepare.lto_priv.1", 50, op=CONV), flash("Prepare.lto_priv.0", 90, op=POOL))
    (change,) = compare_sizes(old, new).symbols
    assert (change.op, change.flash_growth_bytes) == (POOL, 20)


def test_a_function_that_serves_other_operators_now_is_the_same() -> None:
    old, new = sizes(flash("MatMult", 100, op=CONV)), sizes(flash("MatMult", 120, op=f"{CONV}, {POOL}"))
    assert _told(compare_sizes(old, new).symbols) == [("grew", "MatMult", 20)]


def test_one_of_several_of_a_name_that_went_is_not_taken_for_another() -> None:
    old = sizes(flash("Eval", 100, op=CONV), flash("Eval", 30, op=POOL))
    new = sizes(flash("Eval", 44, op="SOFTMAX"))
    assert sorted(_told(compare_sizes(old, new).symbols)) == [
        ("came", "Eval", 44),
        ("went", "Eval", -100),
        ("went", "Eval", -30),
    ]


def test_inlining_from_another_file_is_no_other_symbol() -> None:
    old = sizes(flash("Eval", 80, file="a.cc"), flash("Eval", 30, file="a.h"))
    new = sizes(flash("Eval", 20, file="a.cc"), flash("Eval", 100, file="b.h"))
    assert _told(compare_sizes(old, new).symbols) == [("grew", "Eval", 10)]


def test_groups_and_operators() -> None:
    old = sizes(flash("a", 100, Group.OPERATORS, op=CONV), flash("b", 10), ram("arena", 400, Group.ARENA))
    new = sizes(flash("c", 80, Group.OPERATORS, op=POOL), flash("b", 10), ram("arena", 500, Group.ARENA))
    diff = compare_sizes(old, new)
    assert [(c.name, c.flash_growth_bytes, c.ram_growth_bytes) for c in diff.groups] == [
        (Group.ARENA, 0, 100),
        (Group.OPERATORS, -20, 0),
    ]
    assert _told(diff.ops) == [("went", CONV, -100), ("came", POOL, 80)]


def test_nothing_changed() -> None:
    diff = compare_sizes(sizes(flash("a", 1)), sizes(flash("a", 1)))
    assert (diff.groups, diff.ops, diff.symbols, diff.total.effect_bytes) == ((), (), (), 0)
