"""Finds the size of the tensor arena by running the firmware's own code, and proves it."""

from tflm_forge.arena.estimate import STEP_BYTES, estimate_arena
from tflm_forge.arena.record import read_record, write_record
from tflm_forge.arena.settle import ESTIMATED, settle_arena

__all__ = ["ESTIMATED", "STEP_BYTES", "estimate_arena", "read_record", "settle_arena", "write_record"]
