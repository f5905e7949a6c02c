"""Models that TFLM's kernels refuse: said by the command before anything is built, each with its remedy."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Forge
from tests.modelmaker import ModelMaker
from tests.tflm.feature_models import make_channel_scales

MODEL_EXIT_CODE = 3
CHECK_EXIT_CODE = 7
BOARD = "mps2-an386"


def _dense(activation: str, weights: str, maker: ModelMaker | None = None, prefix: str = "") -> ModelMaker:
    maker = maker or ModelMaker()
    scale = None if activation == "FLOAT32" else 0.5
    x = maker.tensor(f"{prefix}x", [1, 4], activation, scale=scale)
    w = maker.tensor(f"{prefix}w", [2, 4], weights, scale=0.1, data=np.ones((2, 4)))
    y = maker.tensor(f"{prefix}dense", [1, 2], activation, scale=scale)
    maker.operator("FULLY_CONNECTED", [x, w, -1], [y], options=("FullyConnectedOptions", {}), version=4)
    return maker


def _hybrid() -> bytes:
    maker = _dense("FLOAT32", "INT8")
    maker.subgraph(inputs=[0], outputs=[2])
    return maker.finish()


def _mixed() -> bytes:
    maker = _dense("INT8", "INT8")
    _dense("FLOAT32", "INT8", maker, "float_")
    x, y = maker.tensor("a", [1, 4], "INT8", scale=0.5), maker.tensor("negative", [1, 4], "INT8", scale=0.5)
    maker.operator("NEG", [x], [y])
    maker.subgraph(inputs=[0, 3, x], outputs=[2, 5, y])
    return maker.finish()


def _compressed() -> bytes:
    maker = _dense("INT8", "INT8")
    maker.add_metadata("COMPRESSION_METADATA", bytes(16))
    maker.subgraph(inputs=[0], outputs=[2])
    return maker.finish()


REFUSED = {
    "hybrid": (_hybrid, ("FULLY_CONNECTED", "'dense'", "hybrid quantization", "representative dataset")),
    "mixed": (_mixed, ("'float_dense'", "INT8 weights", "NEG", "'negative'", "takes FLOAT32")),
    "compressed": (_compressed, ("COMPRESSION_METADATA", "before compression")),
}


@pytest.mark.parametrize("verb", ["inspect", "build"])
@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_with_cause_and_remedy_though_tflm_is_not_installed(
    forge: Forge, tmp_path: Path, name: str, verb: str
) -> None:
    make, words = REFUSED[name]
    (tmp_path / "m.tflite").write_bytes(make())
    board = ("--board", BOARD) if verb == "build" else ()
    done = forge(verb, "m.tflite", *board, "--runtime", "tflm", FORGE_HOME=str(tmp_path / "home"))
    assert done.returncode == MODEL_EXIT_CODE, done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert all(word in said for word in words), said
    assert "Traceback" not in said
    assert not (tmp_path / "build").exists()


@pytest.mark.tflm
@pytest.mark.tools
def test_an_arena_one_step_too_small_is_named(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(make_channel_scales())
    common = ("m.tflite", "--board", BOARD, "--runtime", "tflm", "--kernel-set", "reference")
    built = forge("build", *common, "--json", timeout_s=900)
    assert built.returncode == 0, built.stderr
    size = json.loads(built.stdout)["arena"]["bytes"]
    done = forge("flash-and-test", *common, "--no-reference", "--arena", size - 16, timeout_s=900)
    assert done.returncode == CHECK_EXIT_CODE, done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert "the tensor arena is too small" in said
    assert "--arena" in said
    assert f"of {size - 16} bytes" in said
