"""Asks the interpreter what becomes of a model: one process for many models, started again when it dies."""

import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a model: whether it was prepared and ran, its outputs, and what TFLM printed."""

    ran: bool
    outputs: Sequence[np.ndarray]
    log: str


class Interpreter:
    """The reference interpreter as a program of its own."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Interpreter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait(timeout=60)
            self._process = None

    def judge(self, model: bytes, inputs: Sequence[np.ndarray] | None = None) -> Verdict:
        """Run a model once, with inputs of ones when none are given."""
        process = self._process or self._start()
        try:
            process.stdin.write(pickle.dumps((model, inputs)))
            process.stdin.flush()
            ran, outputs, log = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError):
            self.__exit__()
            return Verdict(ran=False, outputs=(), log="the interpreter died")
        return Verdict(ran=ran, outputs=outputs, log=log)

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tests.tflm.verdict_worker"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process
