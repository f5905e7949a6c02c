"""`forge ota` against real firmware: its ELF, its manifest and a device in QEMU say the same, op by op."""

import json
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import tflite

from tests.conftest import EXAMPLES
from tests.firmware_builds import ROOT, TIMEOUT_S, Builds
from tests.modelmaker import make_single_op_model
from tflm_forge.board import load_board
from tflm_forge.commands._ota import read_source
from tflm_forge.config import ModelCompatibilityTable
from tflm_forge.gates.needs import ArenaNeed, find_needs
from tflm_forge.gates.reasons import Judgement
from tflm_forge.gates.verdict import Judge, load_catalogues
from tflm_forge.manifest import Manifest, read_manifest, render_embedded, render_manifest
from tflm_forge.model import Model, load_model, read_model
from tflm_forge.runners.qemu import open_target

pytestmark = pytest.mark.tools

DIGITS = EXAMPLES / "digits" / "digits.tflite"
SINE = EXAMPLES / "sine" / "sine.tflite"
BOARD = "mps2-an386"
UPGRADE = "firmware upgrade first"
OPS = ("AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MAX_POOL_2D", "RESHAPE", "SOFTMAX")
ENTRY = struct.Struct("<iIII")  # OpEntry of forge_config.h: code, highest version, two pointers
NO_SUCH_OP = 4711


@dataclass(frozen=True)
class Copy:
    """A copy of firmware whose ELF, manifest and flash are changed alike."""

    folder: Path

    @property
    def sources(self) -> tuple[str, ...]:
        elf = self.folder / "firmware.elf"
        return str(elf), str(self.folder / "ops.manifest.yaml"), f"qemu:{elf}"

    def change_op(self, name: str, *, lower: bool) -> None:
        """Lower the version of a kernel by one below what the model needs, or take the op away."""
        path = self.folder / "ops.manifest.yaml"
        manifest = read_manifest(path)
        op = next(op for op in manifest.ops if op.name == name)
        if lower:
            # A manifest must not contradict itself: its own model needs less, too.
            ops = [replace(o, version=o.version - 1, max_version=o.version - 1) if o == op else o for o in manifest.ops]
            entry = op.builtin_code, op.version - 1
        else:
            ops = [o for o in manifest.ops if o != op]
            entry = NO_SUCH_OP, op.max_version
        changed = replace(manifest, ops=tuple(ops))
        changed = replace(changed, op_hash=changed.computed_op_hash)
        path.write_bytes(render_manifest(changed))
        self._change_elf(manifest, changed, (op.builtin_code, op.max_version), entry)

    def _change_elf(self, old: Manifest, new: Manifest, before: tuple[int, int], after: tuple[int, int]) -> None:
        elf = self.folder / "firmware.elf"
        facts = self.folder / "facts.yaml"
        facts.write_bytes(render_embedded(new))
        subprocess.run(
            ["arm-none-eabi-objcopy", "--update-section", f".forge_facts={facts}", elf], check=True, timeout=60
        )
        data = elf.read_bytes()
        rows = [struct.pack("<iI", op.builtin_code, op.max_version) for op in old.ops]
        pattern = b"........".join(re.escape(row) for row in rows)
        (table,) = re.finditer(pattern, data, re.DOTALL)
        at = table.start() + ENTRY.size * rows.index(struct.pack("<iI", *before))
        elf.write_bytes(data[:at] + struct.pack("<iI", *after) + data[at + 8 :])


@pytest.fixture(scope="module")
def digits() -> Model:
    return load_model(DIGITS)


@pytest.fixture
def copy(builds: Builds, tmp_path: Path) -> Copy:
    built = builds.build(DIGITS, BOARD)
    for name in ("firmware.elf", "ops.manifest.yaml"):
        shutil.copy(built / name, tmp_path / name)
    return Copy(tmp_path)


def judge_all(model: Model, copy: Copy) -> Iterator[Judgement]:
    """Yield the verdict from the ELF, the manifest and the device."""
    judge = Judge(needs=find_needs(model), catalogues=load_catalogues(), policy=ModelCompatibilityTable())
    for source in copy.sources:
        fielded = read_source(source)
        types = fielded.interface.types if fielded.interface else frozenset()
        need = ArenaNeed(bytes=16, how="", is_measured=True)
        yield judge.judge(fielded.facts, need, seen_types=types)


def test_the_ops_of_digits_are_these() -> None:
    model = tflite.Model.GetRootAs(DIGITS.read_bytes(), 0)
    names = {number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}
    codes = [model.OperatorCodes(i) for i in range(model.OperatorCodesLength())]
    assert sorted(names[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())] for code in codes) == list(OPS)


def test_its_own_firmware_runs_a_model(digits: Model, copy: Copy) -> None:
    for found in judge_all(digits, copy):
        assert (found.verdict, found.reasons) == ("compatible", ())


def test_the_ends_of_the_model_are_the_same_from_the_elf_and_the_device(copy: Copy) -> None:
    elf, _, device = (read_source(source) for source in copy.sources)
    assert elf.interface is not None
    assert elf.interface == device.interface
    assert [model.data for model in elf.models] == [DIGITS.read_bytes()]


@pytest.mark.parametrize("op", OPS)
def test_each_op_taken_away(digits: Model, copy: Copy, op: str) -> None:
    copy.change_op(op, lower=False)
    for found in judge_all(digits, copy):
        assert found.verdict == UPGRADE
        assert [(reason.id, reason.subject) for reason in found.reasons] == [("op-missing", op)]


@pytest.mark.parametrize("op", [op for op in OPS if op != "RESHAPE"])
def test_each_version_lowered(digits: Model, copy: Copy, op: str) -> None:
    """RESHAPE needs version 1, below which there is none."""
    copy.change_op(op, lower=True)
    for found in judge_all(digits, copy):
        assert found.verdict == UPGRADE
        assert [(reason.id, reason.subject) for reason in found.reasons] == [("op-version", op)]


def test_each_version_raised_in_the_model(digits: Model, copy: Copy) -> None:
    fielded = [read_source(source) for source in copy.sources]
    for op in OPS:
        limit = next(o.max_version for o in read_manifest(copy.folder / "ops.manifest.yaml").ops if o.name == op)
        graph = digits.subgraphs[0]
        operators = tuple(replace(o, version=limit + 1) if o.name == op else o for o in graph.operators)
        needs = find_needs(replace(digits, subgraphs=(replace(graph, operators=operators),)))
        judge = Judge(needs=needs, catalogues=load_catalogues(), policy=ModelCompatibilityTable())
        for each in fielded:
            types = each.interface.types if each.interface else frozenset()
            found = judge.judge(each.facts, ArenaNeed(bytes=16, how="", is_measured=True), seen_types=types)
            assert (found.verdict, [(r.id, r.subject) for r in found.reasons]) == (UPGRADE, [("op-version", op)])


def test_a_kernel_for_int8_runs_no_float(copy: Copy) -> None:
    data = make_single_op_model("SOFTMAX", (((1, 10), "FLOAT32"),), ((1, 10), "FLOAT32"))
    for found in judge_all(read_model(data, name="x.tflite"), copy):
        assert (found.verdict, [(r.id, r.subject) for r in found.reasons]) == (UPGRADE, [("op-type", "SOFTMAX")])


def check(builds: Builds, model: Path, source: object, *options: object) -> tuple[int, dict[str, object]]:
    done = builds.run("ota", "check", model, "--against", source, "--json", *options)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_the_arena_is_measured_on_the_kernels_of_the_firmware(builds: Builds) -> None:
    """What firmware of the new model is built with, digits' firmware is found to need; asked over a port."""
    arena = read_manifest(builds.build(SINE, BOARD) / "ops.manifest.yaml").arena
    assert arena is not None
    elf = builds.build(DIGITS, BOARD) / "firmware.elf"
    with open_target(load_board(BOARD), elf) as target:
        code, found = check(builds, SINE, target.url)
    model = found["model"]
    assert isinstance(model, dict)
    assert (code, found["verdict"]) == (0, "compatible")
    assert model["arena"] == {"bytes": arena.size_bytes, "how": arena.how, "measured": True}
    # The other way round it does not fit: digits on the firmware of sine.
    code, found = check(builds, DIGITS, builds.build(SINE, BOARD))
    assert code == 7
    digits = read_manifest(builds.build(DIGITS, BOARD) / "ops.manifest.yaml").arena
    reasons = found["reasons"]
    assert digits is not None
    assert isinstance(reasons, list)
    assert f"a tensor arena of {digits.size_bytes:,} bytes ({digits.how})" in reasons[-1]["words"]


def test_models_that_share_the_arena_are_measured_along(builds: Builds, tmp_path: Path) -> None:
    folder = tmp_path / "both"
    builds.build_into(folder, DIGITS, BOARD, "--with", SINE)
    arena = read_manifest(folder / "ops.manifest.yaml").arena
    code, found = check(builds, SINE, folder)
    model = found["model"]
    assert arena is not None
    assert isinstance(model, dict)
    assert (code, model["arena"]["bytes"]) == (0, arena.size_bytes)


def test_the_example_shows_what_it_promises(builds: Builds, tmp_path: Path) -> None:
    environment = builds.environment(FORGE=f"{sys.executable} -m tflm_forge")
    done = subprocess.run(
        [EXAMPLES / "ota" / "run.sh", tmp_path / "ota"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = re.findall(r"^(\w+)\.tflite: (.*?) *$", done.stdout, re.MULTILINE)
    three = [("retrained", "compatible"), ("deeper", UPGRADE), ("erf", "reject")]
    assert verdicts == [*three * 3, ("retrained", "compatible")]
    assert "All verdicts are as they should be." in done.stdout
