"""What a firmware can run, said by its ELF file, its manifest or the device itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tflm_forge.board import load_board
from tflm_forge.config import BuildSettings
from tflm_forge.elf import FACTS_SECTION, Elf, read_elf
from tflm_forge.errors import UsageError
from tflm_forge.link.answers import Info, ModelInfo, RegisteredOp
from tflm_forge.manifest import MANIFEST_NAME, Manifest, parse_manifest, read_manifest
from tflm_forge.model.schema import op_name

ELF_NAME = "firmware.elf"
_ELF_MAGIC = b"\x7fELF"

Kind = Literal["elf", "manifest", "device"]


@dataclass(frozen=True, kw_only=True)
class FirmwareOp:
    """One op of a firmware's op resolver.

    Attributes:
        builtin_code: number in BuiltinOperator, 32 for a custom op.
        custom_name: exact name of a custom op, else empty.
        name: what a person calls it.
        max_version: the highest version that the firmware's kernels implement.
        version: the version that the firmware's models use; None when the source does not know.
        types: tensor types that the registered kernel takes as first input and output; empty when it takes any;
            None when the source does not know.
        registration: the call on the op resolver, without the receiver; None when the source does not know.
    """

    builtin_code: int
    custom_name: str
    name: str
    max_version: int
    version: int | None = None
    types: tuple[str, ...] | None = None
    registration: str | None = None

    @property
    def key(self) -> tuple[int, str]:
        """Builtin code and custom name."""
        return self.builtin_code, self.custom_name


@dataclass(frozen=True, kw_only=True)
class FirmwareModel:
    """A model that a firmware has built in; `file` is its name without a folder."""

    file: str | None
    sha256: str
    size_bytes: int
    op_hash: int | None = None


@dataclass(frozen=True, kw_only=True)
class FirmwareFacts:
    """What a firmware is and can run; None where the source does not know.

    Attributes:
        source: what the user named: a path or a port.
        kind: which kind of source that is.
        runtime: name of the runtime ("tflm").
        version: the runtime's version or commit.
        kernel_set: which kernels.
        board: name of the board.
        forge_version: the forge that made it.
        settings: how it was built, with runtime, kernel set and arena; enough to build for it again.
        ops: the ops of its op resolver, in canonical order.
        op_hash: of the op set of its models together.
        models: its models, the first first.
        arena_bytes: size of the tensor arena.
        arena_how: how that size is known.
        flash_bytes: flash that the whole firmware takes, its models included.
        flash_limit_bytes: flash that the board has.
        resource_variables: how many resource variables it has room for.
        compression: whether its runtime decompresses packed constants.
        schema_version: version of the TFLite schema that it reads.
    """

    source: str
    kind: Kind
    runtime: str | None = None
    version: str | None = None
    kernel_set: str | None = None
    board: str | None = None
    forge_version: str | None = None
    settings: BuildSettings | None = None
    ops: tuple[FirmwareOp, ...] = ()
    op_hash: int | None = None
    models: tuple[FirmwareModel, ...] = ()
    arena_bytes: int | None = None
    arena_how: str | None = None
    flash_bytes: int | None = None
    flash_limit_bytes: int | None = None
    resource_variables: int | None = None
    compression: bool | None = None
    schema_version: int | None = None

    @property
    def model_slot_bytes(self) -> int | None:
        """Bytes a model may have that takes the place of the firmware's models; None when not known."""
        if self.flash_bytes is None or self.flash_limit_bytes is None or not self.models:
            return None
        return self.flash_limit_bytes - self.flash_bytes + sum(model.size_bytes for model in self.models)

    def find_op(self, builtin_code: int, custom_name: str = "") -> FirmwareOp | None:
        """Return the registered op, or None."""
        return self.by_key.get((builtin_code, custom_name))

    @property
    def by_key(self) -> Mapping[tuple[int, str], FirmwareOp]:
        """The ops by builtin code and custom name."""
        return {op.key: op for op in self.ops}


def read_facts(path: Path) -> FirmwareFacts:
    """Read the facts of a firmware from an ELF file, a manifest, or the folder of a build.

    Raises:
        UsageError: no such file, neither ELF nor manifest, damaged, or an ELF without forge's facts.
    """
    if path.is_dir():
        if not (path / ELF_NAME).is_file():
            manifest = path / MANIFEST_NAME
            if not manifest.is_file():
                raise UsageError(f"{path}: neither {ELF_NAME} nor {MANIFEST_NAME} is in this folder")
            return facts_of_manifest(read_manifest(manifest), str(manifest))
        path = path / ELF_NAME
    if _starts_like_elf(path):
        return _read_elf_facts(path)
    return facts_of_manifest(read_manifest(path), str(path))


def facts_of_manifest(manifest: Manifest, source: str, kind: Kind = "manifest") -> FirmwareFacts:
    """Return what a manifest says of its firmware.

    Args:
        manifest: the manifest.
        source: what the user named.
        kind: where the manifest stood.
    """
    runtime, arena, flash = manifest.runtime, manifest.arena, manifest.flash
    return FirmwareFacts(
        source=source,
        kind=kind,
        runtime=runtime.name if runtime else None,
        version=runtime.version or None if runtime else None,
        kernel_set=runtime.kernels or None if runtime else None,
        board=manifest.board or None,
        forge_version=manifest.forge or None,
        settings=manifest.settings,
        ops=tuple(
            FirmwareOp(
                builtin_code=op.builtin_code,
                custom_name=op.custom_name,
                name=op.name,
                max_version=op.max_version,
                version=op.version,
                types=op.kernel_types,
                registration=op.registration or None,
            )
            for op in sorted(manifest.ops, key=lambda op: (op.builtin_code, op.custom_name.encode()))
        ),
        op_hash=manifest.computed_op_hash,
        models=tuple(
            FirmwareModel(file=Path(m.file).name, sha256=m.sha256, size_bytes=m.size_bytes, op_hash=m.op_hash)
            for m in manifest.models
        ),
        arena_bytes=arena.size_bytes if arena else None,
        arena_how=arena.how or None if arena else None,
        flash_bytes=flash.size_bytes if flash else None,
        flash_limit_bytes=flash.limit_bytes if flash else None,
        resource_variables=manifest.resource_variables,
        compression=manifest.compression,
        schema_version=manifest.schema_version,
    )


def facts_from_device(
    source: str, info: Info, ops: Sequence[RegisteredOp], models: Sequence[ModelInfo] = ()
) -> FirmwareFacts:
    """Return the facts that a device answers: INFO, all pages of OPS and, where it has several models, SELECT of each.

    Args:
        source: the port, as the user named it.
        info: the answer to INFO.
        ops: all registered ops.
        models: the answers to SELECT, when the firmware has several models.
    """
    only = FirmwareModel(file=None, sha256=info.model_sha256.hex(), size_bytes=info.model_bytes, op_hash=info.op_hash)
    several = tuple(
        FirmwareModel(file=m.name or None, sha256=m.model_sha256.hex(), size_bytes=m.model_bytes, op_hash=m.op_hash)
        for m in models
    )
    return FirmwareFacts(
        source=source,
        kind="device",
        runtime=info.runtime,
        version=info.runtime_version,
        kernel_set=info.kernel_set,
        board=info.board,
        forge_version=info.forge_version,
        ops=tuple(
            FirmwareOp(
                builtin_code=op.builtin_code,
                custom_name=op.custom_name,
                name=op_name(op.builtin_code, op.custom_name),
                max_version=op.max_version,
            )
            for op in ops
        ),
        # With several models INFO has the hash of the one that is selected.
        op_hash=None if len(several) > 1 else info.op_hash,
        models=several or (only,),
        arena_bytes=info.arena_bytes,
        arena_how="the device's answer",
        flash_limit_bytes=_flash_of_board(info.board),
    )


def _starts_like_elf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_ELF_MAGIC)) == _ELF_MAGIC
    except OSError as error:
        raise UsageError(
            f"{path}: can not read: {error.strerror or error}",
            hint="Name a firmware.elf, an ops.manifest.yaml, or the folder of a build.",
        ) from error


def _read_elf_facts(path: Path) -> FirmwareFacts:
    elf = read_elf(path)
    text = bytes(elf.debug_bytes(FACTS_SECTION))
    if not text:
        raise UsageError(
            f"{path}: carries no facts of forge: the section {FACTS_SECTION} is missing",
            hint="It was built by an older forge or by other means, or stripped of that section: "
            "name its ops.manifest.yaml instead.",
        )
    manifest = parse_manifest(text, f"{path}({FACTS_SECTION})")
    facts = facts_of_manifest(manifest, str(path), "elf")
    return replace(facts, flash_bytes=_flash_of_elf(elf))


def _flash_of_elf(elf: Elf) -> int:
    return sum(section.size_bytes for section in elf.sections if section.has_bytes)


def _flash_of_board(name: str) -> int | None:
    """Return the flash of a board that forge knows; a board of the user's own may not be at hand."""
    try:
        return load_board(name).flash.length_bytes
    except UsageError:
        return None
