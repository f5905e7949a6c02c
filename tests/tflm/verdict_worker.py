"""Runs models in the interpreter for `verdicts.py`, each in a child of its own: what a kernel refuses may end it.

Reads pickled pairs of a model's bytes and its inputs (or None) from stdin; answers each with a pickled `Answer` tuple:
whether it ran, its outputs, and what TFLM printed.
"""

import contextlib
import os
import pickle
import signal
import sys
import tempfile
from collections.abc import Sequence

import numpy as np
from tflite_micro import runtime

ARENA_BYTES = 2 << 20
TIMEOUT_S = 10
MOST_ENDS = 8


def run_model(model: bytes, inputs: Sequence[np.ndarray] | None) -> list[np.ndarray]:
    """Return the outputs that can be read; inputs that are not given are ones."""
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=ARENA_BYTES)
    for place in range(MOST_ENDS):
        try:
            details = interpreter.get_input_details(place)
        except (IndexError, ValueError):
            break
        given = inputs[place] if inputs is not None else np.ones(details["shape"], details["dtype"])
        interpreter.set_input(given, place)
    interpreter.invoke()
    outputs = []
    for place in range(MOST_ENDS):
        try:
            outputs.append(np.array(interpreter.get_output(place)))
        except (IndexError, ValueError):
            break
    return outputs


def answer(model: bytes, inputs: Sequence[np.ndarray] | None) -> tuple[bool, list[np.ndarray], str]:
    """Run a model in a child and return what became of it."""
    with tempfile.TemporaryFile() as log, tempfile.TemporaryFile() as result:
        child = os.fork()
        if child == 0:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            signal.alarm(TIMEOUT_S)
            with contextlib.suppress(BaseException):
                outputs = run_model(model, inputs)
                result.write(pickle.dumps(outputs))
                result.flush()
                os._exit(0)
            os._exit(1)
        ran = os.waitpid(child, 0)[1] == 0
        log.seek(0)
        result.seek(0)
        outputs = pickle.loads(result.read()) if ran else []
        return ran, outputs, log.read().decode(errors="replace")


if __name__ == "__main__":
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            model, inputs = pickle.load(source)
        except EOFError:
            break
        target.write(pickle.dumps(answer(model, inputs)))
        target.flush()
