"""The host's end of the link for these tests, written from docs/link.md with PyPI's cobs and zlib: nothing of forge."""

import os
import selectors
import struct
import subprocess
import time
import zlib

import tflite
from cobs import cobs

TIMEOUT_S = 20.0

INFO, OPS, SELFTEST, TENSORS = 0x01, 0x02, 0x03, 0x04
WRITE, INVOKE, READ, CRC = 0x10, 0x11, 0x12, 0x13
FILL, FORGET, ARENA = 0x14, 0x15, 0x16
SOAK, PROFILE, LAYER, MODEL, RESET = 0x20, 0x21, 0x22, 0x30, 0x7E
PROGRESS, ERROR, ANSWER_BIT = 0xF0, 0xFF, 0x80

Frame = tuple[int, int, bytes]


def pack(type_: int, sequence: int, body: bytes = b"") -> bytes:
    """Return the bytes of a frame on the wire."""
    content = bytes((type_, sequence)) + body
    return b"\0" + cobs.encode(content + struct.pack("<I", zlib.crc32(content))) + b"\0"


def op_uses(model: bytes) -> list[tuple[int, str, int]]:
    """Return (builtin code, custom name, highest version) of the ops that operators use, in canonical order."""
    root = tflite.Model.GetRootAs(model, 0)
    versions: dict[tuple[int, str], int] = {}
    for s in range(root.SubgraphsLength()):
        subgraph = root.Subgraphs(s)
        for k in range(subgraph.OperatorsLength()):
            code = root.OperatorCodes(subgraph.Operators(k).OpcodeIndex())
            builtin = max(code.DeprecatedBuiltinCode(), code.BuiltinCode())
            name = (code.CustomCode() or b"").decode() if builtin == 32 else ""
            versions[builtin, name] = max(versions.get((builtin, name), 0), code.Version())
    return [(builtin, name, versions[builtin, name]) for builtin, name in sorted(versions)]


def hash_of(uses: list[tuple[int, str, int]]) -> int:
    """Return the op hash as the design says: CRC-32 of code, version, name length and name of each op."""
    parts = (struct.pack("<IIB", code, version, len(name)) + name.encode() for code, name, version in uses)
    return zlib.crc32(b"".join(parts))


def canonical_hash(model: bytes) -> int:
    """Return the op hash of a model."""
    return hash_of(op_uses(model))


class HostDevice:
    """The firmware as a process: its input and output are the serial line."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)
        self._pending = bytearray()
        self.text = ""
        self.sequence = 0
        self.last_chunk = b""

    def close(self) -> None:
        """End the process; it must not have stopped with a sanitizer's error."""
        self._input.close()
        self._process.wait(TIMEOUT_S)
        self._selector.close()
        self._output.close()
        assert self._process.returncode in (0, 70), self._process.returncode

    def wait(self) -> int:
        """Return the exit status of a device that ends by itself."""
        return self._process.wait(TIMEOUT_S)

    def send(self, data: bytes) -> None:
        """Put bytes on the line."""
        self._input.write(data)

    def read_until_text(self, *texts: str) -> str:
        """Read text until one of these has come; return all of it."""
        while not any(text in self.text + self._pending.decode(errors="replace") for text in texts):
            self._receive()
        if b"\0" not in self._pending:
            # The rest of the line may still be on its way, but no frame has begun.
            while self._pending and not self._pending.endswith(b"\n"):
                self._receive()
            self.text += self._pending.decode()
            self._pending.clear()
        return self.text

    def read_frame(self) -> Frame:
        """Return the next frame; what is no frame goes to `text`."""
        while True:
            while b"\0" in self._pending:
                chunk, _, rest = bytes(self._pending).partition(b"\0")
                self._pending = bytearray(rest)
                if chunk and (frame := self._decode(chunk)):
                    return frame
            self._receive()

    def read_answer(self) -> Frame:
        """Return the next frame that is no PROGRESS."""
        while (frame := self.read_frame())[0] == PROGRESS:
            pass
        return frame

    def exchange(self, type_: int, body: bytes = b"") -> bytes:
        """Send a request and return the body of its answer; PROGRESS on the way is dropped."""
        answer_type, body = self.ask(type_, body)
        assert answer_type == type_ | ANSWER_BIT, (hex(answer_type), body)
        return body

    def ask(self, type_: int, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request and return type and body of its answer, which may be an error."""
        self.sequence = self.sequence % 255 + 1
        self.send(pack(type_, self.sequence, body))
        answer_type, sequence, answer = self.read_answer()
        assert sequence == self.sequence
        return answer_type, answer

    def refused(self, type_: int, body: bytes = b"") -> tuple[int, int]:
        """Send a request that must end in an error answer; return its status and detail."""
        answer_type, answer = self.ask(type_, body)
        assert answer_type == ERROR, (hex(answer_type), answer)
        of_type, status, detail = struct.unpack("<BHI", answer)
        assert of_type == type_
        return status, detail

    def invocations(self) -> int:
        """Return how many inferences have run, by the lines that the fake interpreter prints."""
        self.exchange(INFO)
        return self.text.count("invoke ")

    def _decode(self, chunk: bytes) -> Frame | None:
        try:
            content = cobs.decode(chunk)
            self.last_chunk = chunk
            if len(content) >= 6 and zlib.crc32(content[:-4]) == int.from_bytes(content[-4:], "little"):
                return content[0], content[1], content[2:-4]
        except cobs.DecodeError:
            pass
        self.text += chunk.decode()
        return None

    def _receive(self) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        assert self._selector.select(max(0.0, deadline - time.monotonic())), f"silence after: {self.text}"
        data = os.read(self._output.fileno(), 65536)
        assert data, f"the device has ended ({self._process.wait(TIMEOUT_S)}) after: {self.text}"
        self._pending += data
