"""`forge ota`: may a model be sent to devices in the field, and in what."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._options import JsonOption
from tflm_forge.commands._ota_shown import show_package, show_refusal, show_verdict, show_verdict_as_json

if TYPE_CHECKING:
    from tflm_forge.commands._ota import Candidate
    from tflm_forge.config import Config
    from tflm_forge.gates.facts import FirmwareFacts
    from tflm_forge.gates.needs import ArenaNeed

app = typer.Typer(
    name="ota",
    help="Say whether firmware in the field can run a new model, and pack models for sending.\n\n"
    "Example: forge ota check new.tflite --against firmware.elf",
    no_args_is_help=True,
)

_AGAINST_HELP = (
    "The firmware: an ELF, an ops.manifest.yaml, the folder of a build, a port (/dev/ttyACM0, COM5, socket://...), "
    "or qemu:ELF for a device in the emulator."
)
_AgainstOption = Annotated[str | None, typer.Option("--against", metavar="FIRMWARE", help=_AGAINST_HELP)]
_NoMeasureOption = Annotated[
    bool, typer.Option("--no-measure", help="Estimate the tensor arena instead of building and running the model.")
]
_PackageArgument = Annotated[Path, typer.Argument(metavar="PACKAGE", help="A package of `forge ota pack`.")]


@app.command()
def check(
    model: Annotated[Path, typer.Argument(metavar="NEW", help="The new model, or a package with it.")],
    against: _AgainstOption = None,
    fleet: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Judge all firmware manifests (*.yaml) below a folder.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="PUB", help="Public key that a package has to be signed with.")
    ] = None,
    no_measure: _NoMeasureOption = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="With --fleet: write a line for each firmware.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a firmware can run a new model: compatible, firmware upgrade first, or reject.

    Exit codes: 0 compatible, 7 firmware upgrade first, 3 reject. A package alone is checked for damage and signature.

    Example: forge ota check new.tflite --against build/old-stm32f4
    """
    from tflm_forge.commands._ota import load_candidate
    from tflm_forge.config import load_config
    from tflm_forge.errors import ModelError, UsageError
    from tflm_forge.gates.package_reading import is_package

    if against is not None and fleet is not None:
        raise UsageError("--against and --fleet: give one of them", hint="--against is one firmware, --fleet many.")
    if against is None and fleet is None and not is_package(model):
        raise UsageError("no firmware given", hint="Add --against FIRMWARE, or --fleet DIR.")
    if csv is not None and fleet is None:
        raise UsageError("--csv is for --fleet DIR", hint="--json prints the verdict on one firmware.")
    config = load_config(Path.cwd())
    try:
        candidate = load_candidate(model, key)
    except ModelError as error:
        raise typer.Exit(show_refusal(model, error, as_json=as_json)) from error
    if fleet is not None:
        raise typer.Exit(_check_fleet(candidate, fleet, config, csv, measure=not no_measure, as_json=as_json))
    if against is not None:
        raise typer.Exit(_check_one(candidate, against, config, measure=not no_measure, as_json=as_json))
    if candidate.package is not None:
        show_package(candidate.package, model, checked=key is not None, as_json=as_json)


@app.command()
def pack(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model, or the folder of a build of it.")],
    against: _AgainstOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The package; default MODEL's name.tflmpkg.")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY", help="Private key of `forge ota keygen` to sign with.")
    ] = None,
    no_measure: _NoMeasureOption = False,
    as_json: JsonOption = False,
) -> None:
    """Pack a model that a firmware can run into one file with all that a device has to know, signed or not.

    A model that the firmware can not run is not packed: exit 7 or 3, as `forge ota check`.

    Example: forge ota pack new.tflite --against build/old-stm32f4 -o new.tflmpkg --sign release.pem
    """
    from tflm_forge.commands._ota import load_build, load_candidate
    from tflm_forge.config import load_config
    from tflm_forge.errors import UsageError
    from tflm_forge.files import write_if_changed
    from tflm_forge.gates.package import pack_model
    from tflm_forge.gates.package_layout import SUFFIX
    from tflm_forge.gates.package_reading import read_package
    from tflm_forge.gates.signing import load_private_key, make_signer

    source = against or (str(model) if model.is_dir() else None)
    if source is None:
        raise UsageError("no firmware given", hint="Add --against FIRMWARE: a package is for one kind of firmware.")
    signer = make_signer(load_private_key(sign)) if sign is not None else None
    candidate = load_build(model) if model.is_dir() else load_candidate(model, None)
    facts, arena = _refuse_unless_sendable(candidate, source, load_config(Path.cwd()), measure=not no_measure)
    data = pack_model(candidate.model, arena, facts, signer)
    path = output or Path(f"{Path(candidate.model.name).stem}{SUFFIX}")
    package = read_package(data, shown=str(path))
    try:
        write_if_changed(path, data)
    except OSError as error:
        raise UsageError(f"{path}: can not write: {error.strerror or error}") from error
    show_package(package, path, checked=False, as_json=as_json)


@app.command()
def show(package: _PackageArgument, as_json: JsonOption = False) -> None:
    """Show what a package holds; a damaged one is refused with exit 3.

    Example: forge ota show new.tflmpkg
    """
    from tflm_forge.gates.package_reading import load_package

    show_package(load_package(package), package, checked=False, as_json=as_json)


@app.command()
def keygen(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of the private key; the public gets .pub behind.")],
) -> None:
    """Make an Ed25519 key pair to sign packages with, as PEM files; no existing file is overwritten.

    Example: forge ota keygen release.pem
    """
    from tflm_forge.console import show_table
    from tflm_forge.gates.signing import key_id, load_public_key, make_key

    public = make_key(file)
    rows = [
        ("private key", f"{file}  keep it secret: who has it can sign for you"),
        ("public key", f"{public}  for `forge ota check PACKAGE --key`, and for the device"),
        ("key id", key_id(load_public_key(public)).hex()),
    ]
    show_table("Made an Ed25519 key pair", ("", ""), rows)


def _check_one(candidate: "Candidate", against: str, config: "Config", *, measure: bool, as_json: bool) -> int:
    from tflm_forge.commands._ota import judge_fielded, make_judge, read_source
    from tflm_forge.gates.reasons import exit_code

    judge = make_judge(candidate.model, config)
    fielded = read_source(against)
    judgement, arena = judge_fielded(judge, candidate, fielded, config, measure=measure)
    if as_json:
        show_verdict_as_json(judge.needs, judgement, fielded.facts, arena)
    else:
        show_verdict(candidate, judgement, fielded.facts, arena)
    return exit_code(judgement.verdict, config.ota_model_compatibility)


def _check_fleet(
    candidate: "Candidate", folder: Path, config: "Config", csv: Path | None, *, measure: bool, as_json: bool
) -> int:
    from tflm_forge.commands._ota import find_arena, make_judge
    from tflm_forge.commands._ota_fleet import finish_fleet
    from tflm_forge.console import show_progress
    from tflm_forge.gates.fleet import find_manifests, judge_fleet

    judge = make_judge(candidate.model, config)
    paths = find_manifests(folder)
    with show_progress(f"judging {candidate.model.name} on {len(paths):,} firmwares"):
        rows = judge_fleet(
            judge,
            paths,
            lambda facts, sizes: find_arena(candidate, facts, config, measure=measure, enough_bytes=min(sizes)),
        )
    return finish_fleet(rows, candidate.model.name, config, csv, as_json=as_json)


def _refuse_unless_sendable(
    candidate: "Candidate", source: str, config: "Config", *, measure: bool
) -> "tuple[FirmwareFacts, ArenaNeed]":
    """Judge a model that is to be packed.

    Raises:
        ModelError: the verdict is `reject`.
        CheckError: it is `firmware upgrade first`, and the policy holds such models.
    """
    from tflm_forge.commands._ota import judge_fielded, make_judge, read_source
    from tflm_forge.console import show_note, show_warning
    from tflm_forge.errors import CheckError, ModelError
    from tflm_forge.gates.reasons import exit_code

    fielded = read_source(source)
    judgement, arena = judge_fielded(make_judge(candidate.model, config), candidate, fielded, config, measure=measure)
    reasons = [f"{reason.words} {reason.remedy}".rstrip() for reason in judgement.reasons]
    if exit_code(judgement.verdict, config.ota_model_compatibility):
        kind = ModelError if judgement.verdict == "reject" else CheckError
        raise kind(f"{candidate.model.name}: {judgement.verdict}; nothing was packed", reasons=reasons)
    for text in reasons:
        show_warning(text)
    for note in judgement.notes:
        show_note(note.words)
    for item in judgement.unknown:
        show_note(f"not checked: {item}")
    return fielded.facts, arena
