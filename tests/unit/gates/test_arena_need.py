"""When the arena need is not measured, it is estimated, and the reason is given; nothing is left behind."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.gates.firmwares import ARENA_BYTES, DIGITS, SINE, facts_of, single
from tflm_forge.arena import estimate_arena
from tflm_forge.gates.arena_need import is_packed_for, known_need, measure_need
from tflm_forge.gates.facts import FirmwareFacts
from tflm_forge.gates.needs import ArenaNeed, find_needs
from tflm_forge.gates.package import pack_model
from tflm_forge.gates.package_reading import read_package
from tflm_forge.model import Model, load_model


@pytest.fixture(scope="module")
def sine() -> Model:
    return load_model(SINE)


@pytest.fixture(scope="module")
def facts(sine: Model) -> FirmwareFacts:
    return facts_of(sine)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the cache of these tests apart, and let no tool be found."""
    monkeypatch.setenv("FORGE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("FORGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "cache"


REASONS: dict[str, tuple[str, Callable[[FirmwareFacts], FirmwareFacts]]] = {
    "no runtime": ("not known", lambda facts: replace(facts, runtime=None)),
    "no board": ("not known", lambda facts: replace(facts, board=None)),
    "another version": (
        "the firmware has bundled 9.9.9 with dsp kernels, here is bundled 0.1.0 with dsp kernels",
        lambda facts: replace(facts, version="9.9.9"),
    ),
    "no version": ("the firmware has bundled None", lambda facts: replace(facts, version=None)),
    "a board of the user's": ("'nowhere'", lambda facts: replace(facts, board="nowhere")),
    "no such runtime": ("'gone'", lambda facts: replace(facts, runtime="gone", settings=None)),
    "no compiler": ("arm-none-eabi-g++", lambda facts: facts),
}


@pytest.mark.parametrize("reason", REASONS)
def test_the_reason_is_given(sine: Model, facts: FirmwareFacts, cache: Path, reason: str) -> None:
    words, change = REASONS[reason]
    need = measure_need(sine, change(facts), lambda line: None)
    assert (need.bytes, need.is_measured, need.is_moot) == (estimate_arena(sine), False, False)
    assert need.how.startswith("estimated: ")
    assert words in need.how
    assert not cache.exists() or not [path for path in cache.rglob("*") if path.name.startswith("build-")]


def test_a_runtime_that_does_not_run_the_model_makes_it_moot(facts: FirmwareFacts) -> None:
    need = measure_need(single("COS", (((1, 4), "FLOAT32"),), ((1, 4), "FLOAT32")), facts, lambda line: None)
    assert need.is_moot


def test_the_firmwares_own_number_counts_for_its_own_model(sine: Model, facts: FirmwareFacts) -> None:
    own = find_needs(sine)
    assert known_need(own, facts) == ArenaNeed(bytes=ARENA_BYTES, how="measured", is_measured=True)
    assert known_need(own, replace(facts, arena_how="given with --arena")) is None
    assert known_need(own, replace(facts, arena_bytes=None)) is None
    assert known_need(find_needs(load_model(DIGITS)), facts) is None
    assert known_need(own, replace(facts, models=facts.models * 2)) is None


def test_a_packages_number_counts_on_the_same_kernels(sine: Model, facts: FirmwareFacts) -> None:
    def packed(*, measured: bool) -> bool:
        arena = ArenaNeed(bytes=464, how="measured on mps2-an386", is_measured=measured)
        return is_packed_for(read_package(pack_model(sine, arena, facts), shown="x"), facts)

    assert packed(measured=True)
    assert not packed(measured=False)
    package = read_package(pack_model(sine, ArenaNeed(bytes=464, how="measured", is_measured=True), facts), shown="x")
    for change in ({"version": "0.2.0"}, {"kernel_set": "portable"}, {"board": "stm32f4"}, {"runtime": "tflm"}):
        assert not is_packed_for(package, replace(facts, **change))  # type: ignore[arg-type]
