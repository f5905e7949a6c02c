"""Prints how much of a serial line's rate the link uses: a simulated device on a pty, paced like a UART.

    python tools/bench_link.py [--baud 921600] [--mtu 1024]

Both directions are paced: the device takes and gives bytes no faster than the baud rate with ten bits a byte.
"Line" counts every byte of every frame both ways; "payload" only the tensor's bytes.
"""

import argparse
import os
import select
import sys
import threading
import time
import tty
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.unit.link.simulated_device import INT8, SimTensor, SimulatedDevice
from tflm_forge.link.messages import Space
from tflm_forge.link.session import open_session

TENSOR_BYTES = 128 * 1024
BITS_PER_BYTE = 10
CHUNK_BYTES = 64


class PacedDevice(threading.Thread):
    """Serves a pty's master end at the rate of a serial line, and counts the bytes that pass."""

    def __init__(self, device: SimulatedDevice, descriptor: int, baud: int) -> None:
        super().__init__(daemon=True)
        self.device = device
        self.descriptor = descriptor
        self.bytes_per_second = baud / BITS_PER_BYTE
        self.passed = 0
        self.free_at = 0.0

    def run(self) -> None:
        """Answer until the other end is closed."""
        while True:
            waited = not select.select([self.descriptor], [], [], 0)[0]
            try:
                data = os.read(self.descriptor, CHUNK_BYTES)
            except OSError:
                return
            if waited:  # The line was idle: what it did not carry meanwhile is lost.
                self.free_at = max(self.free_at, time.perf_counter())
            self._pass(len(data))
            answer = self.device.take(data)
            for start in range(0, len(answer), CHUNK_BYTES):
                piece = answer[start : start + CHUNK_BYTES]
                self._pass(len(piece))
                os.write(self.descriptor, piece)

    def _pass(self, count: int) -> None:
        """Wait until the line has carried so many bytes more; a sleep that was too long is made up for."""
        self.passed += count
        self.free_at += count / self.bytes_per_second
        time.sleep(max(0.0, self.free_at - time.perf_counter()))


def main() -> None:
    """Print one row for reading and one for writing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baud", type=int, default=921_600)
    parser.add_argument("--mtu", type=int, default=1024)
    chosen = parser.parse_args()
    tensor = SimTensor(INT8, (1, TENSOR_BYTES), 0.5, 0, bytearray(os.urandom(TENSOR_BYTES)))
    device = SimulatedDevice(inputs=[tensor], outputs=[tensor], mtu=chosen.mtu)
    master, slave = os.openpty()
    tty.setraw(slave)
    line = PacedDevice(device, master, chosen.baud)
    line.start()
    print(f"| {chosen.baud:,} baud, frames of {chosen.mtu} bytes | line | payload |\n|---|---|---|")
    with open_session(os.ttyname(slave), baud=chosen.baud) as session:
        session.connect()
        for name, work in (
            ("reading", lambda: session.read_tensor(Space.OUTPUT, 0, TENSOR_BYTES)),
            ("writing", lambda: session.write_tensor(Space.INPUT, 0, bytes(tensor.data))),
        ):
            line.passed, began = 0, time.perf_counter()
            work()
            took = time.perf_counter() - began
            used, payload = (count / took / line.bytes_per_second for count in (line.passed, TENSOR_BYTES))
            print(f"| {name} | {used:.1%} | {payload:.1%} |", flush=True)


if __name__ == "__main__":
    main()
