"""The bundled runtime's memory planner against lifetimes checked one operator at a time."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import bundled_host as host

ALIGNMENT = 16
MAX_PLANNED_BYTES = 0x40000000
Buffers = list[tuple[int, int, int]]


@st.composite
def buffer_lists(draw: st.DrawFn, max_size: int = 24) -> Buffers:
    ops = draw(st.integers(1, 12))
    spans = st.tuples(st.integers(0, ops - 1), st.integers(0, ops - 1)).map(sorted)
    sizes = st.sampled_from([0, 16, 32, 48, 1024, 16000]) | st.integers(0, 500).map(lambda n: n * ALIGNMENT)
    pairs = draw(st.lists(st.tuples(sizes, spans), max_size=max_size))
    return [(size, first, last) for size, (first, last) in pairs]


def live_bytes(buffers: Buffers) -> int:
    """The most bytes that are in use at one operator: no plan can be shorter."""
    last_op = max((last for _, _, last in buffers), default=0)
    return max(sum(size for size, first, last in buffers if first <= op <= last) for op in range(last_op + 1))


def shortest_plan(buffers: Buffers) -> int:
    """Length of the best plan over all orders of placing each buffer as low as it goes."""
    best = sum(size for size, _, _ in buffers)
    for order in itertools.permutations(buffers):
        placed: list[tuple[int, tuple[int, int, int]]] = []
        for size, first, last in order:
            rivals = [(at, b) for at, b in placed if b[1] <= last and first <= b[2]]
            starts = [0, *(at + b[0] for at, b in rivals)]
            offset = min(s for s in starts if all(s >= at + b[0] or at >= s + size for at, b in rivals))
            placed.append((offset, (size, first, last)))
        best = min(best, max((at + b[0] for at, b in placed), default=0))
    return best


def check(buffers: Buffers, head: int, offsets: list[int]) -> None:
    assert len(offsets) == len(buffers)
    placed = list(zip(offsets, buffers, strict=True))
    assert head == max((at + size for at, (size, _, _) in placed), default=0)
    assert all(at % ALIGNMENT == 0 for at in offsets)
    for (a, (size_a, first_a, last_a)), (b, (size_b, first_b, last_b)) in itertools.combinations(placed, 2):
        if size_a and size_b and first_a <= last_b and first_b <= last_a:
            assert a + size_a <= b or b + size_b <= a, "two buffers in use at once overlap"


@settings(max_examples=300, deadline=None)
@given(buffers=buffer_lists())
def test_plan_is_sound_and_not_wasteful(buffers: Buffers) -> None:
    head, offsets = host.plan(buffers)
    check(buffers, head, offsets)
    assert live_bytes(buffers) <= head <= sum(size for size, _, _ in buffers)


@settings(max_examples=60, deadline=None)
@given(buffers=buffer_lists(max_size=5))
def test_plan_of_few_buffers_is_near_the_shortest(buffers: Buffers) -> None:
    head, _ = host.plan(buffers)
    assert head <= 1.5 * shortest_plan(buffers)


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(1, 300).map(lambda n: n * ALIGNMENT), min_size=2, max_size=30))
def test_plan_of_a_chain_is_the_shortest(sizes: list[int]) -> None:
    """Each op of a chain reads one buffer and writes the next: the two largest neighbours are enough."""
    last = len(sizes) - 2
    buffers = [(size, max(i - 1, 0), min(i, last)) for i, size in enumerate(sizes)]
    head, offsets = host.plan(buffers)
    check(buffers, head, offsets)
    neighbours = max(a + b for a, b in itertools.pairwise(sizes))
    assert head <= 1.5 * neighbours


def test_plan_larger_than_any_arena_says_so() -> None:
    huge = MAX_PLANNED_BYTES - ALIGNMENT
    head, _ = host.plan([(huge, 0, 1)] * 5)
    assert head == MAX_PLANNED_BYTES


def test_no_buffers() -> None:
    assert host.plan([]) == (0, [])
