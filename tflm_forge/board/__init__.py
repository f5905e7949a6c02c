"""Boards: `boards/<name>.toml` -> Board, read strictly."""

from tflm_forge.board.cores import CORES, Core
from tflm_forge.board.drivers import driver_files
from tflm_forge.board.finding import board_folders, boards_with_probe, list_boards, load_board, refuse_shared_usb_ids
from tflm_forge.board.reading import read_board
from tflm_forge.board.records import Board, ChipId, Emulator, Region

__all__ = [
    "CORES",
    "Board",
    "ChipId",
    "Core",
    "Emulator",
    "Region",
    "board_folders",
    "boards_with_probe",
    "driver_files",
    "list_boards",
    "load_board",
    "read_board",
    "refuse_shared_usb_ids",
]
