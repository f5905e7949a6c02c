"""The firmware that a model is to come onto: its facts, and of its own models what the source has of them."""

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.elf import read_elf
from tflm_forge.errors import ForgeError
from tflm_forge.gates.facts import FirmwareFacts, facts_from_device, read_facts
from tflm_forge.gates.interface import Interface, interface_of, interface_of_device
from tflm_forge.generate import model_file
from tflm_forge.link.failures import RefusedError
from tflm_forge.link.session import Session
from tflm_forge.model import MAX_FILE_BYTES, Model, read_model

_MODEL_SYMBOL = "g_model_data"


@dataclass(frozen=True, kw_only=True)
class Fielded:
    """A firmware that is in the field.

    Attributes:
        facts: what it can run.
        models: its own models, in order, where the source has all of them; else empty.
        interface: inputs and outputs of its first model; None when the source does not know them.
    """

    facts: FirmwareFacts
    models: tuple[Model, ...] = ()
    interface: Interface | None = None


def read_fielded(path: Path) -> Fielded:
    """Read a firmware from an ELF file, a manifest, or the folder of a build.

    Raises:
        UsageError: as for `read_facts`.
    """
    facts = read_facts(path)
    models = tuple(_find_models(path, facts))
    if len(models) != len(facts.models):
        return Fielded(facts=facts)
    return Fielded(facts=facts, models=models, interface=interface_of(models[0]) if models else None)


def ask_fielded(session: Session, source: str) -> Fielded:
    """Ask a connected device for its facts.

    Args:
        session: a session that is not connected yet.
        source: what the user calls the device.

    Raises:
        DeviceError: it does not answer.
    """
    info = session.connect()
    ops = session.ops()
    selected = []
    with contextlib.suppress(RefusedError):  # firmware of one model does not know the request
        selected.append(session.select(0))
        selected += [session.select(index) for index in range(1, selected[0].model_count)]
        session.select(0)
    interface = interface_of_device(session.tensors()) if info.ready else None
    return Fielded(facts=facts_from_device(source, info, ops, selected), interface=interface)


def _find_models(path: Path, facts: FirmwareFacts) -> Iterator[Model]:
    """Yield the firmware's models, as far as the file or its folder has them; each is known by its SHA-256."""
    for index, wanted in enumerate(facts.models):
        name = Path(wanted.file).name if wanted.file else model_file(index)
        candidates = _symbol_bytes(path, index) if facts.kind == "elf" and path.is_file() else _file_bytes(path, index)
        if wanted.file and facts.kind != "elf":
            candidates = (*candidates, *_read(_folder_of(path) / wanted.file))
        for data in candidates:
            if hashlib.sha256(data).hexdigest() == wanted.sha256:
                with contextlib.suppress(ForgeError):
                    yield read_model(data, name=name)
                break


def _folder_of(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _file_bytes(path: Path, index: int) -> Sequence[bytes]:
    return _read(_folder_of(path) / model_file(index))


def _read(path: Path) -> Sequence[bytes]:
    try:
        if path.is_file() and path.stat().st_size <= MAX_FILE_BYTES:
            return (path.read_bytes(),)
    except OSError:
        pass
    return ()


def _symbol_bytes(path: Path, index: int) -> Sequence[bytes]:
    elf = read_elf(path)
    symbol = elf.find_symbol(f"{_MODEL_SYMBOL}_{index}" if index else _MODEL_SYMBOL)
    offset = elf.file_offset(symbol.address) if symbol else None
    if symbol is None or offset is None:
        return ()
    return (path.read_bytes()[offset : offset + symbol.size_bytes],)
