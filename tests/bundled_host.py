"""Builds the bundled runtime for the host and runs models in it.

    result = run(model_bytes, [np.zeros((1, 4), np.int8)], arena_bytes=4096)

The runtime runs in a process of its own, built with the address and undefined-behaviour sanitizers
(`variant="asan"`) or for speed (`variant="plain"`). A crash of it raises HostCrash with what the
sanitizer said; an error that the runtime reports is a result.
"""

import atexit
import concurrent.futures
import contextlib
import hashlib
import os
import select
import struct
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock

ROOT = Path(__file__).resolve().parent.parent
BUNDLED = ROOT / "tflm_forge" / "bundled"
HARNESS = Path(__file__).resolve().parent / "host_runtime"
BUILD = ROOT / "build" / "host_runtime"
ANSWER_TIMEOUT_S = 120.0

COMMON_FLAGS = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-DTF_LITE_STATIC_MEMORY", f"-I{BUNDLED}")
VARIANT_FLAGS = {
    "asan": (
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ),
    "plain": ("-O2",),
}
# The int8 kernels as a core with the DSP extension runs them.
VARIANT_FLAGS["dsp"] = (*VARIANT_FLAGS["asan"], "-DFORGE_EMULATE_DSP")
STAGES = ("construct", "allocate", "input", "invoke", "done")
INT8_REGISTRATIONS, PRESERVE, PROFILE, RESET, SHARED_ALLOCATOR, TWO_INTERPRETERS, MISALIGNED = (
    1 << i for i in range(7)
)
# By TfLiteType.
DTYPES = {1: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 6: np.bool_, 7: np.int16, 9: np.int8}


class HostCrash(AssertionError):
    """The runtime crashed or hung: what no model may make it do."""


@dataclass(frozen=True, kw_only=True)
class HostResult:
    """What came of a run.

    Attributes:
        stage: the step that failed (one of STAGES), or "done".
        outputs: the output tensors; empty unless the stage is "done".
        arena_used: `arena_used_bytes()` at the end.
        model_version: what `Model::version()` says.
        log: what the runtime printed.
    """

    stage: str
    outputs: list[np.ndarray]
    arena_used: int
    model_version: int
    log: str

    @property
    def ok(self) -> bool:
        return self.stage == "done"


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def u32(self) -> int:
        return int(self.numbers("I", 1)[0])

    def numbers(self, kind: str, count: int) -> tuple[int, ...]:
        values = struct.unpack_from(f"<{count}{kind}", self.data, self.at)
        self.at += struct.calcsize(f"<{count}{kind}")
        return values

    def blob(self) -> bytes:
        length = self.u32()
        self.at += length
        return self.data[self.at - length : self.at]


def run(
    model: bytes,
    inputs: Sequence[np.ndarray],
    arena_bytes: int,
    *,
    variant: str = "asan",
    flags: int = 0,
    invocations: int = 1,
) -> HostResult:
    """Loads the model, and invokes it with the inputs."""
    parts = [
        struct.pack("<4I", 1, flags, arena_bytes, invocations),
        _blob(model),
        struct.pack("<I", len(inputs)),
    ]
    parts += [_blob(np.ascontiguousarray(array).tobytes()) for array in inputs]
    answer = _Reader(_process(variant).ask(b"".join(parts)))
    stage, used, version = STAGES[answer.u32()], answer.u32(), answer.u32()
    log = answer.blob().decode(errors="replace").replace("\r\n", "\n")
    outputs = [_tensor(answer) for _ in range(answer.u32())]
    return HostResult(stage=stage, outputs=outputs, arena_used=used, model_version=version, log=log)


def use_resolver(*, variant: str = "asan") -> tuple[tuple[int, ...], str]:
    """The resolver test's answers (see runner.cc) and its log."""
    answer = _Reader(_process(variant).ask(struct.pack("<I", 2)))
    return answer.numbers("I", 12), answer.blob().decode().replace("\r\n", "\n")


def plan(buffers: Sequence[tuple[int, int, int]], *, variant: str = "asan") -> tuple[int, list[int]]:
    """Head size and offsets for buffers of (bytes, first op, last op)."""
    body = b"".join(struct.pack("<3I", *buffer) for buffer in buffers)
    answer = _Reader(_process(variant).ask(struct.pack("<2I", 3, len(buffers)) + body))
    return answer.u32(), list(answer.numbers("I", len(buffers)))


def multiplier_ratios(scales: np.ndarray, *, variant: str = "asan") -> np.ndarray:
    """ScaleFactorOf rows of three float32: rows of (multiplier, shift)."""
    data = np.ascontiguousarray(scales, np.float32)
    return _pairs(variant, 4, len(data), data.tobytes())


def multipliers(values: np.ndarray, *, variant: str = "asan") -> np.ndarray:
    """QuantizeMultiplier of each double: rows of (multiplier, shift)."""
    data = np.ascontiguousarray(values, np.float64)
    return _pairs(variant, 5, len(data), data.tobytes())


def padding(kind: int, image: int, window: int, stride: int, dilation: int) -> tuple[int, int, int]:
    """Output size, padding before and the offset of one dimension."""
    request = struct.pack("<2I4i", 6, kind, image, window, stride, dilation)
    size, before, offset = _Reader(_process("asan").ask(request)).numbers("i", 3)
    return size, before, offset


@dataclass(frozen=True, kw_only=True)
class ConvolutionParams:
    """What kernel_util.h says to a convolution kernel.

    Attributes:
        ok: whether the status was kTfLiteOk.
        activation: lowest and highest output.
        single: multiplier and shift of a uint8 convolution.
        joined: GetQuantizedConvolutionMultipler().
        channels: rows of (multiplier, shift).
    """

    ok: bool
    activation: tuple[int, int]
    single: tuple[int, int]
    joined: float
    channels: list[tuple[int, int]]


def convolution_params(
    *,
    activation: int,
    type_: int,
    channels: int,
    input_scale: float,
    output_scale: float,
    output_zero_point: int,
    filter_scales: Sequence[float],
) -> ConvolutionParams:
    """Ask kernel_util.h what a convolution kernel in TFLM's form asks it."""
    request = struct.pack(
        "<4I2fi", 7, activation, type_, channels, input_scale, output_scale, output_zero_point
    ) + _blob(struct.pack(f"<{len(filter_scales)}f", *filter_scales))
    answer = _Reader(_process("asan").ask(request))
    status, low, high, multiplier, shift = answer.numbers("i", 5)
    (joined,) = answer.numbers("d", 1)
    values, shifts = answer.numbers("i", channels), answer.numbers("i", channels)
    return ConvolutionParams(
        ok=status == 0,
        activation=(low, high),
        single=(multiplier, shift),
        joined=joined,
        channels=list(zip(values, shifts, strict=True)),
    )


def _pairs(variant: str, command: int, count: int, data: bytes) -> np.ndarray:
    answer = _process(variant).ask(struct.pack("<2I", command, count) + data)
    return np.frombuffer(answer, np.int32).reshape(count, 2)


def _blob(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def _tensor(answer: _Reader) -> np.ndarray:
    dtype = DTYPES[answer.u32()]
    shape = np.frombuffer(answer.blob(), np.int32)
    return np.frombuffer(answer.blob(), dtype).reshape(shape)


class _Process:
    """The runner, started when it is first needed and again after a crash."""

    def __init__(self, executable: Path) -> None:
        self.executable = executable
        self.errors = executable.with_name(f"errors-{os.getpid()}.txt")
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, request: bytes) -> bytes:
        process = self.process or self.start()
        assert process.stdin is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
            length = struct.unpack("<I", self.read(process, 4))[0]
            return self.read(process, length)
        except (OSError, EOFError, TimeoutError) as error:
            self.stop()
            raise HostCrash(f"{type(error).__name__} {error}\n{self.errors.read_text(errors='replace')}") from error

    def start(self) -> subprocess.Popen[bytes]:
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [self.executable], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        return self.process

    def read(self, process: subprocess.Popen[bytes], count: int) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        data = b""
        while len(data) < count:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
                raise TimeoutError(f"no answer in {ANSWER_TIMEOUT_S} s")
            piece = os.read(process.stdout.fileno(), count - len(data))
            if not piece:
                raise EOFError(f"exit status {process.wait()}")
            data += piece
        return data

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self.process = None

    def close(self) -> None:
        self.stop()
        self.errors.unlink(missing_ok=True)


_processes: dict[str, _Process | RuntimeError] = {}


def _process(variant: str) -> _Process:
    if variant not in _processes:
        try:
            process = _Process(build(variant))
            atexit.register(process.close)
            _processes[variant] = process
        except RuntimeError as error:  # remembered: hundreds of tests would compile the same again
            _processes[variant] = error
    known = _processes[variant]
    if isinstance(known, RuntimeError):
        raise known
    return known


def build(variant: str) -> Path:
    """Return the runner of a variant; compiles what has changed."""
    folder = BUILD / variant
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        objects = _objects(variant)
        executable = folder / f"runner-{_digest(*(path.name.encode() for path in objects.values()))}"
        if executable.exists():
            return executable
        flags = COMMON_FLAGS + VARIANT_FLAGS[variant]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda pair: _compile(flags, *pair), objects.items()))
        _call(["g++", *flags, *objects.values(), "-o", executable])
        keep = {executable, *objects.values()}
        for old in (*folder.glob("*.o"), *folder.glob("runner-*")):
            if old not in keep:
                old.unlink()
        return executable


def object_of(variant: str, source: Path) -> Path:
    """Return the compiled object of one source."""
    build(variant)
    return _objects(variant)[source]


def _objects(variant: str) -> dict[Path, Path]:
    """Map each source to its object, whose name says from what it is made."""
    headers = sorted(BUNDLED.rglob("*.h")) + sorted(HARNESS.glob("*.h"))
    flags = " ".join(COMMON_FLAGS + VARIANT_FLAGS[variant])
    seed = _digest(flags.encode(), *(path.read_bytes() for path in headers)).encode()
    sources = sorted(BUNDLED.rglob("*.cc")) + sorted(HARNESS.glob("*.cc"))
    return {source: BUILD / variant / f"{_digest(seed, source.read_bytes())}.o" for source in sources}


def _compile(flags: tuple[str, ...], source: Path, target: Path) -> None:
    if not target.exists():
        _call(["g++", *flags, "-c", source, "-o", target.with_suffix(".part")])
        target.with_suffix(".part").replace(target)


def _call(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr}")


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(struct.pack("<Q", len(part)))
        digest.update(part)
    return digest.hexdigest()[:24]
