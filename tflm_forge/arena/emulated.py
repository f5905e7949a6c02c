"""Measures the arena in an emulator: the very firmware, with the constant of its arena's size changed in the ELF."""

import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.arena.estimate import STEP_BYTES
from tflm_forge.arena.search import Trial, boot_trial, find_smallest
from tflm_forge.board import Board
from tflm_forge.elf import Symbol, read_elf
from tflm_forge.errors import DeviceError
from tflm_forge.generate import Arena, ArenaParts
from tflm_forge.link.exchange import Timeouts
from tflm_forge.link.session import open_session
from tflm_forge.model import Model
from tflm_forge.model.resources import resource_variable_bytes
from tflm_forge.runners._qmp import save_memory
from tflm_forge.runners.qemu import open_target

_TRIAL_NAME = ".arena-trial.elf"
_TIMEOUTS = Timeouts(boot_s=5.0, silence_s=2.0, work_s=120.0)
_SIZE_BYTES = 4
_SIZE_SYMBOL = "g_forge_arena_bytes"
_ARENA_SYMBOL = "_ZN5forge14g_tensor_arenaE"


def measure_arena(elf: Path, board: Board, *, limit_bytes: int, models: Sequence[Model]) -> Arena | None:
    """Find the smallest arena with which the firmware boots and runs one inference of each of its models.

    The firmware stays as it is: only the constant that holds the arena's size is changed in a copy of the ELF, and
    each size is tried in the board's emulator. One step less than the result has failed.

    Args:
        elf: firmware whose arena array has limit_bytes.
        board: a board with an emulator.
        limit_bytes: the largest size that can be tried.
        models: the models that the firmware has.

    Returns:
        The arena, or None when the firmware does not get ready even with limit_bytes.

    Raises:
        DeviceError: firmware with limit_bytes does not answer or does not run.
    """
    probe = _make_probe(elf, board, len(models))
    first, found = probe.survey(limit_bytes)
    size = find_smallest(probe.run, first, limit_bytes)
    if size is None:
        return None
    machine = board.emulator.machine if board.emulator else ""
    return Arena(
        bytes=size,
        how=f"measured on {machine}: {size - STEP_BYTES} bytes fail",
        parts=_split(size, *found, models) if found else None,
    )


def _split(size: int, head_bytes: int, tail_bytes: int, models: Sequence[Model]) -> ArenaParts | None:
    if head_bytes + tail_bytes > size:
        return None
    return ArenaParts(
        head_bytes=head_bytes,
        tail_bytes=tail_bytes,
        temporary_bytes=size - head_bytes - tail_bytes,
        resource_variable_bytes=sum(map(resource_variable_bytes, models)),
    )


def find_head_and_tail(memory: bytes, start: int, end: int) -> tuple[int, int] | None:
    """Return the bytes of an arena's head and tail, as the runtime's allocator keeps them in RAM; None: not found.

    Both runtimes keep four addresses in a row: where the arena starts and ends, where its head ends, where its tail
    starts (TFLM's SingleArenaBufferAllocator: buffer_head_, buffer_tail_, head_, tail_).

    Args:
        memory: RAM from a word's address on.
        start: the arena's address.
        end: the first address behind it.
    """
    words = array("I", memory[: len(memory) // 4 * 4])
    for index in reversed(range(len(words) - 3)):  # what the stack may still hold of them lies lowest
        if words[index] == start and words[index + 1] == end:
            head_end, tail_start = words[index + 2], words[index + 3]
            if start <= head_end <= tail_start <= end:
                return head_end - start, end - tail_start
    return None


@dataclass(frozen=True, kw_only=True)
class _Probe:
    """Firmware whose arena size is a constant at a known place of its ELF."""

    path: Path
    data: bytes
    offset: int
    arena: Symbol | None
    board: Board
    models: int

    def run(self, size: int) -> Trial:
        """Boot with this arena size and, when the firmware is ready, run one inference of each model.

        Raises:
            DeviceError: it did not answer, or the inference failed.
        """
        with (
            self._elf(size),
            open_target(self.board, self.path) as target,
            open_session(target.url, target=target, timeouts=_TIMEOUTS) as session,
        ):
            trial = boot_trial(session)
            for index in range(self.models if trial.ready else 0):
                if index:
                    session.select(index)
                session.invoke()
            return trial

    def survey(self, size: int) -> tuple[Trial, tuple[int, int] | None]:
        """Boot with this arena size; return how it went, and the bytes of head and tail where they could be read.

        Raises:
            DeviceError: it did not answer.
        """
        with self._elf(size), tempfile.TemporaryDirectory(prefix="forge-") as folder:
            qmp, image = Path(folder) / "qmp", Path(folder) / "ram"
            with (
                open_target(self.board, self.path, qmp_socket=qmp) as target,
                open_session(target.url, target=target, timeouts=_TIMEOUTS) as session,
            ):
                trial = boot_trial(session)
                if not trial.ready or self.arena is None:
                    return trial, None
                ram, end = self.board.ram.origin, self.arena.address + size
                save_memory(qmp, ram, end - ram, image)
                return trial, find_head_and_tail(image.read_bytes(), self.arena.address, end)

    @contextmanager
    def _elf(self, size: int) -> Iterator[None]:
        end = self.offset + _SIZE_BYTES
        self.path.write_bytes(self.data[: self.offset] + size.to_bytes(_SIZE_BYTES, "little") + self.data[end:])
        try:
            yield
        finally:
            self.path.unlink(missing_ok=True)


def _make_probe(path: Path, board: Board, models: int) -> _Probe:
    elf = read_elf(path)
    symbol = elf.find_symbol(_SIZE_SYMBOL)
    offset = elf.file_offset(symbol.address) if symbol else None
    if offset is None:
        raise DeviceError(f"{path}: has no {_SIZE_SYMBOL}; it is not firmware that forge built")
    return _Probe(
        path=path.with_name(_TRIAL_NAME),
        data=path.read_bytes(),
        offset=offset,
        arena=elf.find_symbol(_ARENA_SYMBOL),
        board=board,
        models=models,
    )
