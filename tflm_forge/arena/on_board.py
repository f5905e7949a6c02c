"""Measures the arena on a real board, by resets over the link: for boards that no emulated core stands for."""

from tflm_forge.arena.estimate import STEP_BYTES
from tflm_forge.arena.search import StuckError, Trial, boot_trial, find_smallest
from tflm_forge.board import Board
from tflm_forge.errors import DeviceError
from tflm_forge.generate import Arena
from tflm_forge.link.failures import RefusedError
from tflm_forge.link.session import Session


def measure_on_board(session: Session, board: Board, *, limit_bytes: int, models: int) -> Arena | None:
    """Find the smallest arena with which a board boots and runs one inference of each model.

    Args:
        session: a session with firmware that was built to measure its arena.
        board: the board, for its name.
        limit_bytes: the size of the firmware's arena.
        models: how many models the firmware has.

    Returns:
        The arena, or None when the firmware does not get ready even with limit_bytes.

    Raises:
        DeviceError: the board does not run with limit_bytes, or hangs with less and can not be reset from here.
    """

    def run(size: int) -> Trial:
        try:
            session.restart_with_arena(size)
            trial = boot_trial(session)
            for index in range(models if trial.ready else 0):
                if index:
                    session.select(index)
                session.invoke()
        except RefusedError:
            raise
        except DeviceError as error:
            raise StuckError(
                f"{board.name} does not answer with an arena of {size} bytes: {error.message}",
                hint="Reset it by hand; it then has its whole arena again. Too small an arena can hang a board: build "
                f"with --arena {size + STEP_BYTES} or a little more, and `forge flash-and-test` says whether it runs.",
            ) from error
        return trial

    first = run(limit_bytes)
    size = find_smallest(run, first, limit_bytes)
    if size is None:
        return None
    return Arena(bytes=size, how=f"measured on the {board.name} itself: {size - STEP_BYTES} bytes fail")
