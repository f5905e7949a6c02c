"""What a manifest says, as values; the words of the file stand in `rendering` and `reading`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tflm_forge.config import BuildSettings, Optimize, Profile
from tflm_forge.manifest.tree import Node, find_line
from tflm_forge.model.opset import OpTypes
from tflm_forge.ops.hash import op_hash

MANIFEST_NAME = "ops.manifest.yaml"
FORMAT = 1
"""The format that this forge writes. A reader takes higher ones too, without the keys that it does not know."""


@dataclass(frozen=True, kw_only=True)
class ManifestOp:
    """One op that the firmware registers.

    Attributes:
        name: what a person calls it.
        builtin_code: number in BuiltinOperator, 32 for a custom op.
        custom_name: exact name of a custom op, else empty.
        version: the highest version that the models use.
        max_version: the highest version that the firmware's kernel implements.
        count: how many operators use it; None when not said.
        types: the distinct combinations of input and output types that the models have.
        first_layer: label of the first operator that uses it; empty when not said.
        registration: the call on the op resolver, without the receiver; empty when not said.
        kernel_types: types of first input and output that the registered kernel takes; empty when it takes any;
            None when not said.
    """

    name: str
    builtin_code: int
    custom_name: str = ""
    version: int
    max_version: int
    count: int | None = None
    types: tuple[OpTypes, ...] = ()
    first_layer: str = ""
    registration: str = ""
    kernel_types: tuple[str, ...] | None = None

    @property
    def key(self) -> tuple[int, str]:
        """Builtin code and custom name."""
        return self.builtin_code, self.custom_name


@dataclass(frozen=True, kw_only=True)
class ModelOp:
    """One op of one of several models."""

    name: str
    version: int
    count: int | None = None


@dataclass(frozen=True, kw_only=True)
class ManifestModel:
    """A model of the firmware.

    Attributes:
        file: its path from the manifest's folder, or its name alone.
        sha256: digest of its bytes, in hex.
        size_bytes: its length.
        op_hash: of its own ops; None where it is the only model, whose op hash is the firmware's.
        ops: its own ops, where there are several models.
    """

    file: str
    sha256: str
    size_bytes: int
    op_hash: int | None = None
    ops: tuple[ModelOp, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ManifestRuntime:
    """The runtime: its name, version as people write it, whole commit where there is one, kernel set."""

    name: str
    version: str = ""
    commit: str = ""
    kernels: str = ""


@dataclass(frozen=True, kw_only=True)
class ManifestBuild:
    """How the firmware is built."""

    profile: Profile = "release"
    optimize: Optimize = "s"
    lto: bool = True
    strip_error_strings: bool = True
    allow_versions: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class ManifestArena:
    """Size of the tensor arena, and how it is known; empty when not said."""

    size_bytes: int
    how: str = ""


@dataclass(frozen=True, kw_only=True)
class ManifestFlash:
    """Flash of the linked firmware, its parts by kind of owner, and what the board has; None when not said."""

    size_bytes: int | None = None
    limit_bytes: int | None = None
    groups: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The operator manifest of a firmware; None or empty where it says nothing.

    Attributes:
        format: of the file.
        forge: version of the forge that made it.
        models: the models that are built in, the first first.
        board: name of the board.
        board_file: path from the manifest's folder of a board file of the user's; empty for a board of forge's.
        runtime: what the kernels are from.
        build: how it is built.
        op_hash: of `ops`, as the models use them.
        arena: the tensor arena.
        flash: flash of the linked firmware.
        saving_kb: flash that registering all ops would cost more, in kB of 1000 bytes.
        resource_variables: how many resource variables the interpreter has room for.
        compression: whether the runtime unpacks constants that TFLM's compression tool has packed.
        schema_version: version of the TFLite schema that the runtime reads.
        ops: what is registered, in canonical order.
        tree: what the file holds, with its lines; None for one that was not read.
    """

    format: int = FORMAT
    forge: str = ""
    models: tuple[ManifestModel, ...] = ()
    board: str = ""
    board_file: str = ""
    runtime: ManifestRuntime | None = None
    build: ManifestBuild | None = None
    op_hash: int | None = None
    arena: ManifestArena | None = None
    flash: ManifestFlash | None = None
    saving_kb: float | None = None
    resource_variables: int | None = None
    compression: bool | None = None
    schema_version: int | None = None
    ops: tuple[ManifestOp, ...] = ()
    tree: Node | None = field(default=None, compare=False, hash=False, repr=False)

    def line_of(self, path: str) -> int:
        """Return the line of a key, by its path ("ops[2].version"); 1 for a manifest that was not read."""
        return 1 if self.tree is None else find_line(self.tree, path)

    @property
    def computed_op_hash(self) -> int:
        """The op hash that the listed ops have."""
        return op_hash(self.ops)

    @property
    def settings(self) -> BuildSettings | None:
        """The settings that build this firmware again; None when the manifest does not name a runtime."""
        if self.runtime is None:
            return None
        build = self.build or ManifestBuild()
        return BuildSettings(
            runtime=self.runtime.name,
            kernel_set=self.runtime.kernels or None,
            profile=build.profile,
            optimize=build.optimize,
            lto=build.lto,
            strip_error_strings=build.strip_error_strings,
            arena_bytes=self.arena.size_bytes if self.arena else None,
            allow_versions=build.allow_versions,
        )


@dataclass(frozen=True, kw_only=True)
class BuildFacts:
    """What of a build its manifest tells: the models' own file names, the board, the settings."""

    model_names: tuple[str, ...]
    board: str
    settings: BuildSettings


def locate_model(manifest_path: Path, model: ManifestModel) -> Path:
    """Return where the manifest says that a model lies."""
    return manifest_path.parent / model.file
