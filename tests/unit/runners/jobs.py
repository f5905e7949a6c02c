"""Jobs for the tests of runners: real boards, firmware of a few bytes."""

from pathlib import Path

from tflm_forge.board import Board, load_board
from tflm_forge.elf.segments import Segment
from tflm_forge.runners import FlashJob, load_runner, settings_of
from tflm_forge.runners._image import Image

ELF = Path("/x/firmware.elf")


def make_job(
    runner: str, board: str | Board, *, folder: Path = Path("/x/flash"), elf: Path = ELF, **more: object
) -> FlashJob:
    """Return the job of flashing 300 bytes at the start of the board's flash."""
    target = load_board(board) if isinstance(board, str) else board
    segments = (Segment(address=target.flash.origin, data=bytes(range(200)) + b"\x55" * 100),)
    return FlashJob(
        board=target,
        image=Image(elf=elf, segments=segments, build_id=None),
        folder=folder,
        settings=settings_of(load_runner(runner), target),
        **more,  # type: ignore[arg-type]
    )
