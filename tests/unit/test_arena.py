"""The arena's size: estimated from the model, searched on the emulator, remembered."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.modelmaker import ModelMaker
from tflm_forge.arena.emulated import find_head_and_tail
from tflm_forge.arena.estimate import STEP_BYTES, estimate_arena, refuse_arena
from tflm_forge.arena.record import read_record, write_record
from tflm_forge.arena.search import StuckError, Trial, find_smallest
from tflm_forge.board import load_board
from tflm_forge.errors import DeviceError, FitError
from tflm_forge.generate import Arena, ArenaParts
from tflm_forge.model import Model, read_model

MEASURED = Arena(
    bytes=3328,
    how="measured on a board: 3312 bytes fail",
    parts=ArenaParts(head_bytes=2000, tail_bytes=1300, temporary_bytes=28, resource_variable_bytes=16),
)


def _chain(*sizes: int, weights: int = 0) -> Model:
    """Return a model that hands one buffer on to the next."""
    maker = ModelMaker()
    tensors = [maker.tensor(f"t{i}", [1, size], "INT8", scale=0.5) for i, size in enumerate(sizes)]
    for before, after in itertools.pairwise(tensors):
        inputs = [before]
        if weights:
            inputs.append(maker.tensor("w", [weights], "INT8", scale=0.5, data=bytes(weights)))
        maker.operator("RELU", inputs, [after])
    maker.subgraph(inputs=tensors[:1], outputs=tensors[-1:])
    return read_model(maker.finish(), name="chain.tflite")


def test_estimate_holds_the_buffers_that_live_at_once() -> None:
    assert estimate_arena(_chain(16000, 16000)) >= 32000


def test_estimate_lets_buffers_that_do_not_meet_share_memory() -> None:
    one_pair = estimate_arena(_chain(16000, 16000))
    assert estimate_arena(_chain(*[16000] * 9)) < one_pair + 16000


def test_estimate_of_several_models_shares_buffers_and_adds_up_what_stays() -> None:
    large, small = _chain(16000, 16000), _chain(8000, 8000)
    assert estimate_arena(large) < estimate_arena(large, small) < estimate_arena(large) + 4000
    assert estimate_arena(large, small) == estimate_arena(small, large)


def test_estimate_counts_no_constants() -> None:
    assert estimate_arena(_chain(64, 64, weights=50000)) < 8000


def test_estimate_is_aligned() -> None:
    assert all(estimate_arena(_chain(size, 3)) % STEP_BYTES == 0 for size in range(1, 40))


def _search(needed: int, used: int, limit: int) -> tuple[int | None, set[int]]:
    """Run the search on a device that becomes ready from `needed` bytes on; return the sizes that were tried."""
    tried = set()

    def boot(size: int) -> Trial:
        tried.add(size)
        if size < needed // 2:
            raise DeviceError("hangs")
        return Trial(ready=size >= needed, used_bytes=used if size >= needed else 0)

    return find_smallest(boot, boot(limit), limit), tried


@example(needed=16, used=16, limit=16)
@example(needed=4096, used=100000, limit=65536)
@example(needed=65536, used=0, limit=65536)
@given(
    needed=st.integers(1, 4096).map(lambda n: n * STEP_BYTES),
    used=st.integers(0, 70000),
    limit=st.integers(4096, 5000).map(lambda n: n * STEP_BYTES),
)
def test_search_finds_the_smallest_size_whatever_the_device_says(needed: int, used: int, limit: int) -> None:
    found, tried = _search(needed, used, max(limit, needed))
    assert found == needed
    assert max(tried) <= max(limit, needed)
    if needed > STEP_BYTES:
        assert needed - STEP_BYTES in tried


def test_search_ends_soon_when_the_device_says_what_it_uses() -> None:
    _, tried = _search(3328, 3328, 60000)
    assert tried == {60000, 3328, 3312}


def test_search_gives_up_when_the_largest_does_not_fit() -> None:
    found, tried = _search(4096, 0, 2048)
    assert found is None
    assert tried == {2048}


def test_a_device_that_never_answers_is_not_called_too_small() -> None:
    def boot(size: int) -> Trial:
        raise DeviceError(f"silent with {size}")

    with pytest.raises(DeviceError, match="silent with 4096"):
        find_smallest(boot, Trial(ready=True, used_bytes=4096), 4096)


def test_firmware_whose_inference_always_fails_is_not_called_too_small() -> None:
    def run(size: int) -> Trial:
        raise DeviceError(f"CONV_2D failed with {size}")

    with pytest.raises(DeviceError, match="CONV_2D failed with 4096"):
        find_smallest(run, Trial(ready=True, used_bytes=1000), 4096)


def test_a_board_that_hangs_ends_the_search() -> None:
    def run(size: int) -> Trial:
        raise StuckError(f"hangs with {size}")

    with pytest.raises(StuckError, match="hangs with 1008"):
        find_smallest(run, Trial(ready=True, used_bytes=1000), 4096)


def test_a_problem_of_another_kind_is_named() -> None:
    dead = Trial(ready=False, used_bytes=0, problem="board: the clock is dead")
    with pytest.raises(DeviceError, match="board: the clock is dead"):
        find_smallest(lambda _: Trial(ready=True, used_bytes=0), dead, 64)


def _words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


def test_head_and_tail_are_read_from_the_allocator() -> None:
    start, end = 0x2000_1000, 0x2000_2000
    stale = _words(start, end, start, end)  # as an allocator on the stack was before the first allocation
    memory = _words(7, 7) + stale + bytes(64) + _words(start, end, start + 0x100, end - 0x240, 9)
    assert find_head_and_tail(memory, start, end) == (0x100, 0x240)


@pytest.mark.parametrize(
    "row",
    [(0x2000_1000, 0x2000_2000), (0x2000_1000, 0x2000_2000, 0x2000_0FFF, 0x2000_1800),
     (0x2000_1000, 0x2000_2000, 0x2000_1800, 0x2000_17FC), (0x2000_1000, 0x2000_1FFC, 0x2000_1100, 0x2000_1200)],
)  # fmt: skip
def test_what_is_no_allocator_is_not_read(row: tuple[int, ...]) -> None:
    assert find_head_and_tail(_words(1, 2, 3, *row), 0x2000_1000, 0x2000_2000) is None


def test_record_is_for_the_same_project_only(tmp_path: Path) -> None:
    write_record(tmp_path, "aa", MEASURED)
    assert read_record(tmp_path, "aa") == MEASURED
    assert read_record(tmp_path, "ab") is None
    assert read_record(tmp_path / "elsewhere", "aa") is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"fingerprint": "aa"}', '{"fingerprint": "aa", "bytes": "x", "how": ""}']
)
def test_damaged_record_is_measured_again(tmp_path: Path, text: str) -> None:
    write_record(tmp_path, "aa", MEASURED)
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_text())["bytes"] == 3328
    path.write_text(text)
    assert read_record(tmp_path, "aa") is None


def test_refusal_says_what_there_is_and_what_is_needed() -> None:
    error = refuse_arena([_chain(64, 64), _chain(10000, 10000)], load_board("microbit"), 12960)
    assert isinstance(error, FitError)
    words = " ".join(error.reasons)
    assert "16384 bytes" in words
    assert "12960 are left" in words
    assert "20000 bytes" in words
