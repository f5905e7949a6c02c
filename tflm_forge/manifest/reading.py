"""YAML -> Manifest: a hand-edited or newer file is read as far as it makes sense, or refused with line and key."""

from pathlib import Path
from typing import cast, get_args

from tflm_forge.config import Optimize, Profile
from tflm_forge.errors import UsageError
from tflm_forge.manifest.keys import Keys
from tflm_forge.manifest.record import (
    FORMAT,
    MANIFEST_NAME,
    BuildFacts,
    Manifest,
    ManifestArena,
    ManifestBuild,
    ManifestFlash,
    ManifestModel,
    ManifestOp,
    ManifestRuntime,
    ModelOp,
)
from tflm_forge.manifest.rendering import CHECKSUM_KEY, TOP_KEY
from tflm_forge.manifest.tree import MAX_BYTES, Mapped, Node, checksum, parse_tree
from tflm_forge.model.opset import LEFT_OUT, OpTypes
from tflm_forge.model.schema import CUSTOM_CODE, enum_name, enum_value, op_name
from tflm_forge.ops.hash import format_op_hash

_HASH = r"0x[0-9A-Fa-f]{1,8}"
_SHA256 = r"[0-9a-fA-F]{64}"
_COMMIT = r"[0-9a-f]{40}"
_HAND_WRITTEN = "When the edit is meant, delete the lines `checksum` and `forge`: it is yours then."
_MOST_NAME_BYTES = 255
"""What the op hash and the link have room for."""


def read_manifest(path: Path) -> Manifest:
    """Read a manifest file.

    Raises:
        UsageError: it can not be read, is no manifest, is damaged, or contradicts itself; names line and key.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"{path}: can not read the manifest: {error.strerror or error}",
            hint="`forge manifest` or `forge build` makes it.",
        ) from error
    return parse_manifest(data, str(path))


def parse_manifest(data: bytes, shown: str) -> Manifest:
    """Read a manifest from its bytes.

    Args:
        data: YAML, as `render_manifest` writes it or as a person does.
        shown: what errors call the file.

    Raises:
        UsageError: as for `read_manifest`.
    """
    root = parse_tree(data, shown)
    if not isinstance(root, Mapped) or TOP_KEY not in root.entries:
        raise UsageError(
            f"{shown}: no operator manifest: the key {TOP_KEY} is missing",
            hint="`forge manifest` or `forge build` makes one.",
        )
    line, node = root.entries[TOP_KEY]
    keys = Keys(shown, "", node, line)
    number = keys.needed_number("format", least=1)
    written = keys.matching(CHECKSUM_KEY, _HASH, "a CRC-32 like 0x0123ABCD")
    if written and int(written, 16) != (found := checksum(node, without=CHECKSUM_KEY)):
        raise keys.error(
            CHECKSUM_KEY,
            f"says {written}, and what the file says gives {format_op_hash(found)}: it was damaged, or edited by hand",
            hint=f"Make it again with `forge manifest`. {_HAND_WRITTEN}",
        )
    if not written and number <= FORMAT and keys.has("forge"):
        raise keys.error(
            "forge",
            "what forge makes has a checksum, and there is none: it was damaged, or edited by hand",
            hint=f"Make it again with `forge manifest`. {_HAND_WRITTEN}",
        )
    manifest = _read_body(keys, number, node)
    if number <= FORMAT:
        keys.refuse_rest()
        strangers = [key for key in root.entries if key != TOP_KEY]
        if strangers:
            raise UsageError(f"{shown}:{root.entries[strangers[0]][0]}: {strangers[0]}: unknown key beside {TOP_KEY}")
    return manifest


def read_build(folder: Path) -> BuildFacts:
    """Return the facts of the build whose manifest stands in a folder.

    Raises:
        UsageError: there is no manifest, or it does not say how to build.
    """
    path = folder / MANIFEST_NAME
    if not path.is_file():
        raise UsageError(f"{path}: no such file", hint="Build with `forge build` first.")
    manifest = read_manifest(path)
    settings = manifest.settings
    if settings is None or not manifest.board or not manifest.models:
        raise UsageError(f"{path}: does not name runtime, board and model", hint="Build again.")
    board = str(path.parent / manifest.board_file) if manifest.board_file else manifest.board
    return BuildFacts(model_names=tuple(Path(m.file).name for m in manifest.models), board=board, settings=settings)


def _read_body(keys: Keys, number: int, tree: Node) -> Manifest:
    strict = number <= FORMAT
    ops = tuple(_read_op(each, strict=strict) for each in keys.mappings("ops"))
    if not keys.has("ops") and "ops" not in keys.names():
        raise keys.error("", "key 'ops' is missing")
    _refuse_twice(keys, ops)
    written = keys.matching("op_hash", _HASH, "an op hash like 0x0123ABCD")
    manifest = Manifest(
        format=number,
        forge=keys.text("forge", ""),
        models=_read_models(keys, strict=strict),
        board=keys.text("board", ""),
        board_file=keys.text("board_file", ""),
        runtime=_read_runtime(keys.mapping("runtime"), strict=strict),
        build=_read_build(keys.mapping("build"), strict=strict),
        op_hash=int(written, 16) if written else None,
        arena=_read_arena(keys.mapping("arena"), strict=strict),
        flash=_read_flash(keys.mapping("flash"), strict=strict),
        saving_kb=keys.decimal("total_flash_saving_kb"),
        resource_variables=keys.number("resource_variables"),
        compression=keys.flag("compression"),
        schema_version=keys.number("schema_version", least=1),
        ops=ops,
        tree=tree,
    )
    if manifest.op_hash not in (None, manifest.computed_op_hash):
        raise keys.error(
            "op_hash",
            f"is {written}, and the ops below have {format_op_hash(manifest.computed_op_hash)}: "
            "the list of ops and the hash are not of one firmware",
            hint="Make the manifest again with `forge manifest`.",
        )
    return manifest


def _finish(keys: Keys, *, strict: bool) -> None:
    if strict:
        keys.refuse_rest()


def _read_models(keys: Keys, *, strict: bool) -> tuple[ManifestModel, ...]:
    models = tuple(_read_model(each, strict=strict) for each in keys.mappings("models"))
    first = keys.mapping("model")
    if first is None:
        return models
    model = _read_model(first, strict=strict)
    if not models:
        return (model,)
    if (model.file, model.sha256) != (models[0].file, models[0].sha256):
        raise keys.error("model", "is not the first of `models`")
    return models


def _read_model(keys: Keys, *, strict: bool) -> ManifestModel:
    written = keys.matching("op_hash", _HASH, "an op hash like 0x0123ABCD")
    model = ManifestModel(
        file=keys.text("file"),
        sha256=keys.matching("sha256", _SHA256, "64 hex digits").lower(),
        size_bytes=keys.needed_number("bytes", least=1),
        op_hash=int(written, 16) if written else None,
        ops=tuple(_read_model_op(each, strict=strict) for each in keys.mappings("ops")),
    )
    if not model.sha256:
        raise keys.error("", "key 'sha256' is missing")
    _finish(keys, strict=strict)
    return model


def _read_model_op(keys: Keys, *, strict: bool) -> ModelOp:
    name, version = keys.text("name"), keys.needed_number("version", least=1)
    op = ModelOp(name=name, version=version, count=keys.number("count", least=1))
    _finish(keys, strict=strict)
    return op


def _read_runtime(keys: Keys | None, *, strict: bool) -> ManifestRuntime | None:
    if keys is None:
        return None
    runtime = ManifestRuntime(
        name=keys.text("name"),
        version=keys.text("version", ""),
        commit=keys.matching("commit", _COMMIT, "a commit of 40 hex digits"),
        kernels=keys.text("kernels", ""),
    )
    _finish(keys, strict=strict)
    return runtime


def _read_build(keys: Keys | None, *, strict: bool) -> ManifestBuild | None:
    if keys is None:
        return None
    profile = keys.choice("profile", get_args(Profile), "release")
    lto, strip = keys.flag("lto"), keys.flag("strip_error_strings")
    allowed = keys.mapping("allow_versions")
    build = ManifestBuild(
        profile=cast("Profile", profile),
        optimize=cast("Optimize", keys.choice("optimize", get_args(Optimize), "s")),
        lto=profile == "release" if lto is None else lto,
        strip_error_strings=profile == "release" if strip is None else strip,
        allow_versions={name: allowed.needed_number(name, least=1) for name in allowed.names()} if allowed else {},
    )
    _finish(keys, strict=strict)
    return build


def _read_arena(keys: Keys | None, *, strict: bool) -> ManifestArena | None:
    if keys is None:
        return None
    arena = ManifestArena(size_bytes=keys.needed_number("bytes"), how=keys.text("how", ""))
    _finish(keys, strict=strict)
    return arena


def _read_flash(keys: Keys | None, *, strict: bool) -> ManifestFlash | None:
    if keys is None:
        return None
    parts = keys.mapping("groups")
    groups = {name: parts.needed_number(name) for name in parts.names()} if parts else {}
    flash = ManifestFlash(size_bytes=keys.number("bytes"), limit_bytes=keys.number("limit"), groups=groups)
    _finish(keys, strict=strict)
    total = sum(groups.values())
    if groups and total != flash.size_bytes:
        raise keys.error("groups", f"add up to {total} bytes, and the key bytes says {flash.size_bytes}")
    return flash


def _read_op(keys: Keys, *, strict: bool) -> ManifestOp:
    code, custom, name = _read_identity(keys)
    version = keys.needed_number("version", least=1)
    most = keys.number("max_version", least=1)
    op = ManifestOp(
        name=name,
        builtin_code=code,
        custom_name=custom,
        version=version,
        max_version=version if most is None else most,
        count=keys.number("count"),
        types=tuple(_read_types(keys, text, strict=strict) for text in keys.texts("types")),
        first_layer=keys.text("first_layer", ""),
        registration=keys.text("registration", ""),
        kernel_types=_read_kernel_types(keys, strict=strict),
    )
    _finish(keys, strict=strict)
    if op.max_version < op.version:
        raise keys.error("max_version", f"{op.max_version} is less than version {op.version}, which the models use")
    return op


def _read_identity(keys: Keys) -> tuple[int, str, str]:
    """Return builtin code, custom name and name; a hand-written op may leave out what follows from the others."""
    custom, code, name = keys.text("custom_name", ""), keys.number("builtin_code"), keys.text("name", "")
    if code is None:
        if not custom and not name:
            raise keys.error("", "key 'builtin_code' is missing")
        code = CUSTOM_CODE if custom else enum_value("BuiltinOperator", name)
        if code is None:
            raise keys.error("name", f"{name!r} is no builtin op", hint="A custom op has a key `custom_name`.")
    if len(custom.encode()) > _MOST_NAME_BYTES:
        raise keys.error("custom_name", f"is longer than {_MOST_NAME_BYTES} bytes")
    if custom and code != CUSTOM_CODE:
        raise keys.error("custom_name", f"stands at builtin code {code}; a custom op has {CUSTOM_CODE}")
    known = op_name(code, custom)
    if name and name != known and (code == CUSTOM_CODE or enum_name("BuiltinOperator", code) is not None):
        raise keys.error("name", f"is {name!r}, and builtin code {code} is {known}")
    return code, custom, name or known


def _read_types(keys: Keys, text: str, *, strict: bool) -> OpTypes:
    inputs, arrow, outputs = text.partition("->")
    if not arrow:
        raise keys.error("types", f"{text!r} is not of the form INT8, INT8 -> INT8")
    sides = tuple(tuple(name.strip() for name in side.split(",") if name.strip()) for side in (inputs, outputs))
    for name in (*sides[0], *sides[1]):
        if strict and name != LEFT_OUT:
            _check_type(keys, "types", name)
    return sides[0], sides[1]


def _read_kernel_types(keys: Keys, *, strict: bool) -> tuple[str, ...] | None:
    if not keys.has("kernel_types"):
        return None
    names = keys.texts("kernel_types")
    if names == ("any",):
        return ()
    for name in names:
        if strict:
            _check_type(keys, "kernel_types", name)
    return names


def _check_type(keys: Keys, key: str, name: str) -> None:
    if enum_value("TensorType", name) is None:
        raise keys.error(key, f"{name!r} is no tensor type")


def _refuse_twice(keys: Keys, ops: tuple[ManifestOp, ...]) -> None:
    seen: dict[tuple[int, str], int] = {}
    for index, op in enumerate(ops):
        if op.key in seen:
            raise keys.error("ops", f"ops[{index}] is {op.name}, which stands at ops[{seen[op.key]}] already")
        seen[op.key] = index
