"""Finds the size of the tensor arena by running the firmware's own code on an emulated core, and proves it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.board import Board
from tflm_forge.elf import read_elf
from tflm_forge.errors import DeviceError, FitError
from tflm_forge.files import write_if_changed
from tflm_forge.generate import Arena
from tflm_forge.link.answers import SelfTest
from tflm_forge.link.exchange import Timeouts
from tflm_forge.link.session import open_session
from tflm_forge.link.status import BOOT_STEPS
from tflm_forge.model import Model, Subgraph
from tflm_forge.runners.qemu import open_target

STEP_BYTES = 16
"""The arena's alignment; TFLM's own buffers are aligned to it (MicroArenaBufferAlignment)."""

_RECORD_NAME = "arena.json"
_TRIAL_NAME = ".arena-trial.elf"
_TIMEOUTS = Timeouts(boot_s=5.0, silence_s=2.0, work_s=120.0)
_SIZE_BYTES = 4
_ALLOCATION_STEP = BOOT_STEPS[-1]
_STACK_STATUS = 0x57
_SIZE_SYMBOL = "g_forge_arena_bytes"
_TENSOR_BYTES = 96
_OPERATOR_BYTES = 256
_CHANNEL_BYTES = 24


def estimate_arena(*models: Model) -> int:
    """Return a size in bytes that is likely enough, from the models alone; never used without saying so.

    The buffers as a greedy planner lays them out, and a generous allowance for what the runtime keeps of each
    tensor, operator and channel. Kernels' scratch buffers can not be seen in the model: a quarter is added for them.
    """
    graphs = [graph for model in models for graph in model.subgraphs]
    head = max(map(_planned_bytes, graphs), default=0)
    tail = 0
    for graph in graphs:
        channels = sum(len(t.quantization.scales) for t in graph.tensors if t.quantization)
        tail += len(graph.tensors) * _TENSOR_BYTES + len(graph.operators) * _OPERATOR_BYTES + channels * _CHANNEL_BYTES
    return _round_up(int((head + tail) * 1.25) + 1024)


def _planned_bytes(graph: Subgraph) -> int:
    """Return the height of a greedy layout of a subgraph's buffers: largest first, lowest free place."""
    first: dict[int, int] = dict.fromkeys(graph.inputs, 0)
    last: dict[int, int] = dict.fromkeys(graph.outputs, len(graph.operators))
    for step, operator in enumerate(graph.operators):
        for index in operator.outputs:
            first.setdefault(index, step)
            last.setdefault(index, step)
        for index in operator.inputs:
            last[index] = max(last.get(index, 0), step)
    placed: list[tuple[int, int, int, int]] = []
    sizes = {i: _round_up(graph.tensors[i].size_bytes) for i in first if not graph.tensors[i].data_bytes}
    for index in sorted(sizes, key=lambda i: (-sizes[i], i)):
        begin, end = first[index], last.get(index, first[index])
        offset = 0
        for low, high, start, stop in sorted(placed):
            if start <= end and begin <= stop and offset + sizes[index] > low:
                offset = max(offset, high)
        placed.append((offset, offset + sizes[index], begin, end))
    return max((high for _, high, _, _ in placed), default=0)


def _round_up(size: int) -> int:
    return -(-size // STEP_BYTES) * STEP_BYTES


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What firmware with one arena size did: whether it became ready, what it uses, or why no arena can help."""

    ready: bool
    used_bytes: int
    problem: str = ""


def measure_arena(elf: Path, board: Board, *, limit_bytes: int, models: int = 1) -> Arena | None:
    """Find the smallest arena with which the firmware boots and runs one inference of each of its models.

    The firmware stays as it is: only the constant that holds the arena's size is changed in a copy of the ELF, and
    each size is tried in the board's emulator. One step less than the result has failed.

    Args:
        elf: firmware whose arena array has limit_bytes.
        board: a board with an emulator.
        limit_bytes: the largest size that can be tried.
        models: how many models the firmware has.

    Returns:
        The arena, or None when the firmware does not get ready even with limit_bytes.

    Raises:
        DeviceError: firmware with limit_bytes does not answer or does not run.
    """
    size = find_smallest(_make_probe(elf, board, models).boot, limit_bytes)
    if size is None:
        return None
    machine = board.emulator.machine if board.emulator else ""
    return Arena(bytes=size, how=f"measured on {machine}: {size - STEP_BYTES} bytes fail")


def find_smallest(boot: Callable[[int], Trial], limit_bytes: int) -> int | None:
    """Return the smallest size with which firmware runs, having tried the one below it; None when none does.

    Args:
        boot: runs the firmware with an arena of so many bytes; raises DeviceError when it does not answer.
        limit_bytes: the largest size that can be tried.

    Raises:
        DeviceError: with limit_bytes it does not answer.
    """

    def works(size: int) -> bool:
        try:
            return boot(size).ready
        except DeviceError:  # Too small an arena may also hang or fault.
            return False

    first = boot(limit_bytes)
    if first.problem:
        raise DeviceError(
            f"the firmware does not boot in the emulator: {first.problem}",
            hint="Build with --arena BYTES, and see what `forge flash-and-test` says of it.",
        )
    if not first.ready:
        return None
    size = min(_round_up(max(first.used_bytes, STEP_BYTES)), limit_bytes)
    step = STEP_BYTES
    low = 0
    while size < limit_bytes and not works(size):
        low, size, step = size, min(size + step, limit_bytes), step * 2
    size = _bisect(works, low, size)
    while size > STEP_BYTES and works(size - STEP_BYTES):
        size -= STEP_BYTES
    return size


def _bisect(works: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest working multiple of STEP_BYTES in (low, high], where low fails and high works."""
    while high - low > STEP_BYTES and low:
        middle = _round_up((low + high) // 2)
        if middle == high:
            break
        if works(middle):
            high = middle
        else:
            low = middle
    return high


@dataclass(frozen=True, kw_only=True)
class _Probe:
    """Firmware whose arena size is a constant at a known place of its ELF."""

    path: Path
    data: bytes
    offset: int
    board: Board
    models: int

    def boot(self, size: int) -> Trial:
        """Boot with this arena size and, when the firmware is ready, run one inference of each model.

        Raises:
            DeviceError: it did not answer, or the inference failed.
        """
        end = self.offset + _SIZE_BYTES
        self.path.write_bytes(self.data[: self.offset] + size.to_bytes(_SIZE_BYTES, "little") + self.data[end:])
        try:
            with (
                open_target(self.board, self.path) as target,
                open_session(target.url, target=target, timeouts=_TIMEOUTS) as session,
            ):
                info = session.connect()
                if not info.ready:
                    return Trial(ready=False, used_bytes=0, problem=_problem_of(session.selftest()))
                for index in range(self.models):
                    if index:
                        session.select(index)
                    session.invoke()
                return Trial(ready=True, used_bytes=info.arena_used_bytes)
        finally:
            self.path.unlink(missing_ok=True)


def _problem_of(selftest: SelfTest) -> str:
    """Return why a boot failed when it was not for want of arena; empty when a larger one may help."""
    for step, status in zip(BOOT_STEPS, selftest.steps, strict=True):
        if status.code:
            return "" if step == _ALLOCATION_STEP and status.code != _STACK_STATUS else f"{step}: {status.words}"
    return ""


def _make_probe(path: Path, board: Board, models: int) -> _Probe:
    elf = read_elf(path)
    symbol = elf.find_symbol(_SIZE_SYMBOL)
    offset = elf.file_offset(symbol.address) if symbol else None
    if offset is None:
        raise DeviceError(f"{path}: has no {_SIZE_SYMBOL}; it is not firmware that forge built")
    return _Probe(path=path.with_name(_TRIAL_NAME), data=path.read_bytes(), offset=offset, board=board, models=models)


def read_record(folder: Path, fingerprint: str) -> Arena | None:
    """Return the arena that an earlier build of the very same project measured, or None."""
    try:
        record = json.loads((folder / _RECORD_NAME).read_text(encoding="utf-8"))
        if record["fingerprint"] == fingerprint:
            return Arena(bytes=int(record["bytes"]), how=str(record["how"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None


def write_record(folder: Path, fingerprint: str, arena: Arena) -> None:
    """Keep a measured arena for the next build of the same project."""
    record = {"fingerprint": fingerprint, "bytes": arena.bytes, "how": arena.how}
    write_if_changed(folder / _RECORD_NAME, (json.dumps(record, indent=2) + "\n").encode())


def refuse_arena(models: Sequence[Model], board: Board, limit_bytes: int) -> FitError:
    """Build the error for models whose arena does not fit the board's RAM."""
    buffers = max(_planned_bytes(graph) for model in models for graph in model.subgraphs)
    return FitError(
        f"{', '.join(model.name for model in models)}: the tensor arena does not fit the RAM of {board.name}",
        reasons=(
            f"{board.ram.name}: {board.ram.length_bytes} bytes, of which {limit_bytes} are left for the arena",
            f"the model's buffers alone take {buffers} bytes; what the runtime keeps of each layer comes on top",
        ),
        hint="Choose a board with more RAM (`forge boards`), or a model with smaller activations.",
    )
