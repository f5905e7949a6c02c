"""Compiles the firmware's C++ for the host, with sanitizers, and talks to it over pipes."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import jinja2
import pytest

from tests.unit.firmware.host_device import HostDevice, canonical_hash
from tests.unit.firmware.models import make_fitting_model
from tflm_forge.link.status import STATUSES

ROOT = Path(__file__).resolve().parents[3]
FIRMWARE = ROOT / "templates" / "firmware"
HOST = ROOT / "tests" / "firmware_host"

# small_library.cc stays out: on the host it would stand in for the C library.
APPLICATION = (
    "crc32", "frame", "inference", "interpreter", "link", "main", "message", "model_walk", "op_trace", "self_check",
    "text",
)  # fmt: skip
FLAGS = (
    "-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti",
    "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
)  # fmt: skip
LARGE_MTU = 512
SMALL_MTU = 100
"""Firmware with this MTU is also built without extras: no LAYER, no state."""

Compile = Callable[..., Path]
StartDevice = Callable[..., HostDevice]


def render(name: str, **context: object) -> str:
    """Return a template of the firmware as the generator would render it."""
    template = jinja2.Template((FIRMWARE / f"{name}.j2").read_text(), trim_blocks=True, lstrip_blocks=True)
    return template.render(**context)


@pytest.fixture(scope="session")
def compile_host(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return a function that compiles a program of firmware and test sources; each only once."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ (for the host) is not installed")
    launcher = [ccache] if (ccache := shutil.which("ccache")) else []
    rendered = tmp_path_factory.mktemp("rendered")
    (rendered / "forge_status.h").write_text(render("forge_status.h", statuses=STATUSES))
    includes = [HOST / "config", HOST / "fake", HOST, rendered, FIRMWARE]
    programs: dict[tuple[object, ...], Path] = {}

    def build(name: str, application: tuple[str, ...], host: tuple[str, ...], **defines: int) -> Path:
        key = (name, *sorted(defines.items()))
        if key in programs:
            return programs[key]
        folder = tmp_path_factory.mktemp(name)
        flags = [*FLAGS, *(f"-I{i}" for i in includes), *(f"-D{k}={v}u" for k, v in defines.items())]
        objects = []
        (folder / "interpreter.cc").write_text(
            render("interpreter.cc", resource_variables=2 if defines.get("FAKE_EXTRAS") else 0)
        )
        sources = [(folder if n == "interpreter" else FIRMWARE) / f"{n}.cc" for n in application]
        for source in [*sources, *(HOST / f"{n}.cc" for n in host)]:
            target = folder / f"{source.stem}.o"
            extra = ["-Dmain=FirmwareMain"] if source == FIRMWARE / "main.cc" else []
            subprocess.run([*launcher, compiler, *flags, *extra, "-c", source, "-o", target], check=True, timeout=120)
            objects.append(target)
        programs[key] = folder / name
        subprocess.run([compiler, *FLAGS, *objects, "-o", programs[key]], check=True, timeout=120)
        return programs[key]

    return build


@pytest.fixture
def start_device(compile_host: Compile, tmp_path: Path) -> "StartDevice":
    """Return a function that starts the firmware with a model and settings of the fake board."""
    devices: list[HostDevice] = []

    def start(model: bytes | None = None, *, mtu: int = LARGE_MTU, boot: bool = True, **settings: int) -> HostDevice:
        op_hash = canonical_hash(make_fitting_model())
        program = compile_host(
            "host_device",
            APPLICATION,
            ("host_device", "host_model"),
            FAKE_MTU=mtu,
            FAKE_OP_HASH=op_hash,
            FAKE_EXTRAS=int(mtu == LARGE_MTU),
        )
        path = tmp_path / f"model{len(devices)}.tflite"
        path.write_bytes(make_fitting_model() if model is None else model)
        device = HostDevice([str(program), str(path), *(f"{k}={v}" for k, v in settings.items())])
        devices.append(device)
        if boot:
            device.read_until_text("ready", "blocked", "fault: ")
        return device

    yield start
    for device in devices:
        device.close()


@pytest.fixture(scope="session")
def walk_models(compile_host: Compile) -> Callable[..., list[str]]:
    """Return a function that opens models with the device's walk and returns its line for each."""
    program = compile_host("host_walk", ("crc32", "model_walk"), ("host_walk",))

    def walk(*models: bytes, offset: int = 0) -> list[str]:
        data = b"".join(len(m).to_bytes(4, "little") + offset.to_bytes(4, "little") + m for m in models)
        done = subprocess.run([program], input=data, capture_output=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().splitlines()

    return walk
