"""The arena's size: estimated from the model, searched on the emulator, remembered."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.modelmaker import ModelMaker
from tflm_forge.arena import (
    STEP_BYTES,
    Trial,
    estimate_arena,
    find_smallest,
    read_record,
    refuse_arena,
    write_record,
)
from tflm_forge.board import load_board
from tflm_forge.errors import DeviceError, FitError
from tflm_forge.generate import Arena
from tflm_forge.model import Model, read_model

MEASURED = Arena(bytes=3328, how="measured on a board: 3312 bytes fail")


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

    return find_smallest(boot, limit), tried


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
        find_smallest(boot, 4096)


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
