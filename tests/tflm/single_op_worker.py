"""Tries each model of a folder in a process of its own: an op that a kernel refuses may end the process.

Called as `python -m tests.tflm.single_op_worker FOLDER`; prints a line "NAME ok" or "NAME refused" for each.
"""

import os
import sys
from pathlib import Path

from tflite_micro import runtime

ARENA_BYTES = 65536


def runs(model: bytes) -> bool:
    """Return whether the interpreter allocates and runs a model."""
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            runtime.Interpreter.from_bytes(model, arena_size=ARENA_BYTES).invoke()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("*.tflite")):
        print(path.stem, "ok" if runs(path.read_bytes()) else "refused", flush=True)
