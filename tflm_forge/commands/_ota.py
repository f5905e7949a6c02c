"""What the commands of `forge ota` share: reading models, packages and firmwares, and judging."""

import contextlib
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tflm_forge.commands._options import collect_silence
from tflm_forge.config import Config
from tflm_forge.errors import UsageError

if TYPE_CHECKING:
    from tflm_forge.gates.facts import FirmwareFacts
    from tflm_forge.gates.fielded import Fielded
    from tflm_forge.gates.needs import ArenaNeed
    from tflm_forge.gates.package import Package
    from tflm_forge.gates.reasons import Judgement
    from tflm_forge.gates.verdict import Judge
    from tflm_forge.link.session import Session
    from tflm_forge.model import Model

EMULATED = "qemu:"
_PORT = re.compile(r"COM\d+|[a-z0-9]+://.*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """The model that is to come onto devices, the package it came in, if it did, and whether its signature is right."""

    model: "Model"
    package: "Package | None" = None
    is_checked: bool = False

    @property
    def signature_words(self) -> str:
        """What is to be said of the signature; empty for a model without a package."""
        if self.package is None:
            return ""
        if self.package.signature is None:
            return "The package is not signed."
        words = f"The package is signed with the key {self.package.signature.key_id.hex()}"
        return f"{words}, and the signature is right." if self.is_checked else f"{words}, not checked: give --key PUB."


def load_candidate(path: Path, key: Path | None) -> Candidate:
    """Read a model, or a package and with a key its signature.

    Raises:
        ModelError: the model or the package is damaged, or the signature is not the key's; a PackageError has a reason.
        UsageError: there is no such file, the key is none, or it is given for a model, which has no signature.
    """
    from tflm_forge.gates.package import check_signature
    from tflm_forge.gates.package_reading import is_package, load_package
    from tflm_forge.gates.signing import load_public_key
    from tflm_forge.model import load_model

    if not path.exists():
        raise UsageError(f"{path}: no such file", hint="Name a .tflite file, or a package of `forge ota pack`.")
    if not is_package(path):
        if key is not None:
            raise UsageError(
                f"{path}: not a package, and only a package has a signature to check with --key",
                hint="`forge ota pack MODEL --against FIRMWARE --sign KEY` makes a signed one.",
            )
        return Candidate(model=load_model(path))
    public = load_public_key(key) if key is not None else None
    package = load_package(path)
    if public is not None:
        check_signature(package, public, str(path))
    return Candidate(model=package.model, package=package, is_checked=public is not None)


def load_build(folder: Path) -> Candidate:
    """Read the model of a build, with the name that its manifest has.

    Raises:
        ModelError: it is missing or damaged.
        UsageError: the folder is no build.
    """
    from dataclasses import replace

    from tflm_forge.gates.facts import read_facts
    from tflm_forge.generate import model_file
    from tflm_forge.model import load_model

    models = read_facts(folder).models
    if len(models) != 1:
        raise UsageError(f"{folder}: a build of {len(models)} models", hint="Name the model's file, and --against.")
    return Candidate(model=replace(load_model(folder / model_file(0)), name=models[0].file or model_file(0)))


def read_source(source: str) -> "Fielded":
    """Read or ask the firmware that `--against` names: a file, a folder, a port, or `qemu:` and a file or folder.

    Raises:
        UsageError: it names neither, or a file that is no firmware.
        DeviceError: the device does not answer.
    """
    from tflm_forge.gates.fielded import ask_fielded, read_fielded

    if source.startswith(EMULATED):
        with _open_emulated(Path(source.removeprefix(EMULATED))) as session:
            return ask_fielded(session, source)
    path = Path(source)
    if path.is_file() or path.is_dir():
        return read_fielded(path)
    if _is_device(path) or _PORT.fullmatch(source) or source.startswith("/dev/"):
        from tflm_forge.link.session import open_session

        with open_session(source) as session:
            return ask_fielded(session, source)
    raise UsageError(
        f"--against {source}: no such file or folder",
        hint="Name a firmware.elf, an ops.manifest.yaml, the folder of a build, or a port (/dev/ttyACM0, COM5, "
        "socket://host:port).",
    )


def _is_device(path: Path) -> bool:
    try:
        return stat.S_ISCHR(path.stat().st_mode)
    except OSError:
        return False


@contextlib.contextmanager
def _open_emulated(path: Path) -> "Iterator[Session]":
    """Run the firmware of an ELF, or of a build's folder, in its board's emulator."""
    from tflm_forge.board import load_board
    from tflm_forge.gates.facts import ELF_NAME, read_facts
    from tflm_forge.link.session import open_session
    from tflm_forge.runners.qemu import open_target

    elf = path / ELF_NAME if path.is_dir() else path
    facts = read_facts(elf)
    if facts.kind != "elf" or facts.board is None:
        raise UsageError(f"{EMULATED}{path}: not an ELF file, which is what the emulator runs")
    board = load_board(facts.board)
    with open_target(board, elf) as target, open_session(target.url, target=target) as session:
        yield session


def make_judge(model: "Model", config: Config) -> "Judge":
    """Return the judge of a model, with the policy and the kernels of forge.toml."""
    from tflm_forge.gates.needs import find_needs
    from tflm_forge.gates.verdict import Judge, load_catalogues

    needs = find_needs(model, collect_silence(config))
    return Judge(needs=needs, catalogues=load_catalogues(config.op), policy=config.ota_model_compatibility)


def find_arena(
    candidate: Candidate,
    facts: "FirmwareFacts",
    config: Config,
    *,
    measure: bool,
    others: "Sequence[Model]" = (),
    enough_bytes: int = 0,
) -> "ArenaNeed":
    """Return how large an arena the model needs on a firmware.

    A package's own number counts when it was measured on the same kernels; else it is measured, or estimated.

    Args:
        candidate: the model.
        facts: the firmware.
        config: for the user's own kernels.
        measure: whether building and running may be tried.
        others: the firmware's models that stay.
        enough_bytes: an estimate of at most this is good enough.
    """
    from tflm_forge.console import show_note
    from tflm_forge.gates.arena_need import estimate_need, is_packed_for, measure_need

    package = candidate.package
    if package is not None and not others and is_packed_for(package, facts):
        return package.arena
    if measure:
        estimate = estimate_need((candidate.model, *others), "it fits with room to spare")
        if estimate.bytes <= enough_bytes:
            return estimate
        return measure_need(
            candidate.model,
            facts,
            show_note,
            others=others,
            own_ops=config.op,
            silence=collect_silence(config),
            board_file=config.build.board,
        )
    return estimate_need((candidate.model, *others), "not measured")


def judge_fielded(
    judge: "Judge", candidate: Candidate, fielded: "Fielded", config: Config, *, measure: bool
) -> "tuple[Judgement, ArenaNeed]":
    """Return the verdict on one firmware, and the arena need that it rests on."""
    from dataclasses import replace

    from tflm_forge.gates.arena_need import known_need
    from tflm_forge.gates.interface import interface_of, list_changes
    from tflm_forge.gates.reasons import Reason
    from tflm_forge.gates.verdict import find_replaced

    facts, needs = fielded.facts, judge.needs
    replaced = find_replaced(facts.models, needs.file)
    others = [model for index, model in enumerate(fielded.models) if index != replaced]
    arena = known_need(needs, facts) or find_arena(candidate, facts, config, measure=measure, others=others)
    notes = []
    if candidate.signature_words:
        notes.append(Reason(id="signature", severity="note", words=candidate.signature_words))
    if any(model.sha256 == needs.sha256 for model in facts.models):
        notes.append(Reason(id="same-model", severity="note", words="The firmware has this very model already."))
    old = fielded.interface
    if fielded.models:
        old = interface_of(fielded.models[replaced])
    if old is not None:
        changes = list_changes(old, interface_of(candidate.model))
        notes += [Reason(id="interface", severity="note", words=words) for words in changes]
    judgement = judge.judge(facts, arena, seen_types=old.types if old else frozenset(), notes=notes)
    unknown = list(judgement.unknown)
    if old is None:
        unknown.append("whether inputs and outputs are as the firmware's application expects them")
    if len(facts.models) > 1 and not others:
        unknown.append("how much of the arena the firmware's other models need")
    return replace(judgement, unknown=tuple(unknown)), arena
