"""Plans the build of an op set with TFLM: kernel set, sources, registrations, definitions."""

import re
from collections.abc import Mapping, Sequence

from tflm_forge.board import Core
from tflm_forge.config import BuildSettings
from tflm_forge.errors import ModelError, ToolError
from tflm_forge.model import OpUse
from tflm_forge.ops.obstacles import list_obstacles
from tflm_forge.registry import unknown_name
from tflm_forge.runtimes import BuildPlan, OpPlan
from tflm_forge.runtimes.tflm.fetch import MIRROR_VARIABLE
from tflm_forge.runtimes.tflm.install import LEAN_SCHEMA, OBJECT_TYPES, Installed, find_installed
from tflm_forge.runtimes.tflm.op_table import NAME, KernelSet, TflmOp, as_catalogue, load_kernel_sets
from tflm_forge.runtimes.tflm.registrations import choose_registration

_INCLUDE_DIRS = (".", "tflite-micro", "flatbuffers/include", "gemmlowp", "ruy")
_KISSFFT_DIRS = ("kissfft",)
_CMSIS_DIRS = ("cmsis_nn", "cmsis_nn/Include", "cmsis/CMSIS/Core/Include")

# What CMSIS-NN has code for: with other types its kernels call the reference ones, and take more flash.
_INTEGERS = frozenset({"INT8", "INT16"})

_SUPPORT_FOLDER = "tensorflow/lite/kernels/"

# Reading these, after the schema, is nearly all the work of compiling a TFLM source.
PRECOMPILED_HEADERS = (
    "tensorflow/lite/micro/kernels/kernel_util.h",
    "tensorflow/lite/micro/micro_context.h",
    "tensorflow/lite/micro/micro_utils.h",
)


def plan_build(ops: Sequence[OpUse], core: Core, settings: BuildSettings) -> BuildPlan:
    """Plan the build: the core's sources and the kernels of the op set, nothing else.

    CMSIS-NN is used where core and model profit, unless it refuses the model or computes one of its ops in another way,
    and the reference kernels do neither.

    Raises:
        ModelError: no kernel set runs the op set; gives all reasons at once.
        ToolError: TFLM is not installed.
        UsageError: the tree has no kernel set of the name the user gave.
    """
    installed = find_installed()
    kernels, notes = _choose_kernel_set(ops, core, settings, installed)
    if installed is None:
        raise not_installed_error()
    registered = _register(ops, kernels, notes, settings)
    rows = [kernels.ops[use.builtin_code, use.custom_name] for use in ops]
    support = _find_support(kernels) if settings.own_ops else ()
    sources = (*kernels.core, *support, *(source for row in rows for source in row.sources))
    lean = not installed.in_place and (installed.folder / LEAN_SCHEMA).is_file()
    return BuildPlan(
        runtime=registered.runtime,
        version=registered.version,
        commit=registered.commit,
        kernel_set=registered.kernel_set,
        registrations=registered.registrations,
        root=installed.folder,
        sources=tuple(sorted(dict.fromkeys(sources))),
        include_dirs=_include_dirs(installed, kernels.name, sources),
        defines=_defines(kernels.name, settings),
        # The headers of a user's own tree may change under a header that was compiled before.
        precompiled_headers=(LEAN_SCHEMA, *PRECOMPILED_HEADERS) if lean else (),
        not_precompiled=_find_object_users(installed, sources) if lean else (),
        notes=notes,
    )


def plan_ops(ops: Sequence[OpUse], core: Core, settings: BuildSettings) -> OpPlan:
    """Say how an op set is registered: with the tree in use, or as the pinned commit has it when none is installed.

    Raises:
        ModelError, UsageError: as for `plan_build`.
    """
    kernels, notes = _choose_kernel_set(ops, core, settings, find_installed())
    return _register(ops, kernels, notes, settings)


def _register(ops: Sequence[OpUse], kernels: KernelSet, notes: tuple[str, ...], settings: BuildSettings) -> OpPlan:
    rows = [kernels.ops[use.builtin_code, use.custom_name] for use in ops]
    return OpPlan(
        runtime=NAME,
        version=kernels.version,
        commit=kernels.commit,
        kernel_set=kernels.name,
        registrations=tuple(
            choose_registration(use, row, profile=settings.profile, max_version=_limit(use, row, settings))
            for use, row in zip(ops, rows, strict=True)
        ),
        notes=notes,
    )


def find_refusals(
    ops: Sequence[OpUse], kernels: KernelSet, settings: BuildSettings, installed: Installed | None = None
) -> tuple[str, ...]:
    """List every reason why a kernel set can not run an op set: ops, versions, tensor types, hybrid nodes."""
    found = list_obstacles(ops, as_catalogue(kernels, installed), allow_versions=settings.allow_versions)
    return tuple(
        f"{each.use.name} (first used by layer {each.use.first_layer!r}): {each.words} {each.remedy}".strip()
        for each in found
    )


def _choose_kernel_set(
    ops: Sequence[OpUse], core: Core, settings: BuildSettings, installed: Installed | None
) -> tuple[KernelSet, tuple[str, ...]]:
    """Return the user's kernel set, else the best for the core that refuses nothing, and why a better was not taken."""
    sets = load_kernel_sets()
    if settings.kernel_set is not None:
        if settings.kernel_set not in sets:
            raise unknown_name("kernel set of this TFLM tree", settings.kernel_set, sets)
        order = [sets[settings.kernel_set]]
    else:
        wanted = ("cmsis_nn", "reference") if _profits(ops, core, sets) else ("reference", "cmsis_nn")
        order = [sets[name] for name in wanted if name in sets]
    refusals = [find_refusals(ops, kernels, settings, installed) for kernels in order]
    able = [kernels for kernels, reasons in zip(order, refusals, strict=True) if not reasons]
    unasked = [kernels for kernels in able if not _find_reservations(ops, kernels)]
    if able:
        chosen = (unasked or able)[0]
        passed_over = able[: able.index(chosen)]
        notes = [
            f"{chosen.name} kernels: {reason}; --kernel-set {kernels.name} takes them all the same"
            for kernels in passed_over
            for reason in _find_reservations(ops, kernels)
        ]
        return chosen, tuple(notes)
    raise ModelError(
        f"TFLM {order[0].version} can not run this model",
        reasons=refusals[0],
        hint="For hybrid models, convert again with full integer quantization: give the converter a "
        "representative dataset.",
    )


def _profits(ops: Sequence[OpUse], core: Core, sets: Mapping[str, KernelSet]) -> bool:
    """Return whether a core has instructions for CMSIS-NN's kernels, and the model integers for them to compute."""
    if not (core.has_dsp or core.has_mve) or not {"cmsis_nn", "reference"} <= set(sets):
        return core.has_dsp or core.has_mve
    own, plain = sets["cmsis_nn"].ops, sets["reference"].ops
    keys = {key for key, row in own.items() if key not in plain or row.sources != plain[key].sources}
    return any(
        not _INTEGERS.isdisjoint(inputs[:1] + outputs[:1])
        for use in ops
        if (use.builtin_code, use.custom_name) in keys
        for inputs, outputs in use.types
    )


def _find_reservations(ops: Sequence[OpUse], kernels: KernelSet) -> tuple[str, ...]:
    rows = (kernels.ops[use.builtin_code, use.custom_name] for use in ops)
    return tuple(f"{row.name}: {row.not_by_default}" for row in rows if row.not_by_default)


def _find_support(kernels: KernelSet) -> tuple[str, ...]:
    """Return the sources with the functions that TFLM's own kernels share, for kernels of the user's.

    The linker leaves out what they do not call.
    """
    sources = {source for row in kernels.ops.values() for source in row.sources}
    return tuple(sorted(s for s in sources if _SUPPORT_FOLDER in s))


def _limit(use: OpUse, row: TflmOp, settings: BuildSettings) -> int:
    return max(row.max_version, settings.allow_versions.get(use.name, 0))


def _include_dirs(installed: Installed, kernel_set: str, sources: Sequence[str]) -> tuple[str, ...]:
    dirs = list(_INCLUDE_DIRS)
    if any("kiss_fft" in source for source in sources):
        dirs += _KISSFFT_DIRS
    if kernel_set == "cmsis_nn":
        dirs += _CMSIS_DIRS
    missing = [d for d in dirs if not (installed.folder / d).is_dir()]
    if missing:
        raise ToolError(
            f"TFLM {installed.name}: {', '.join(missing)} missing",
            hint="Install it again: forge runtime install tflm --force",
        )
    return tuple(dirs)


def _find_object_users(installed: Installed, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the sources that name a type of the schema's object API, which the lean header leaves out."""
    names = (installed.folder / OBJECT_TYPES).read_text(encoding="utf-8").split()
    uses = re.compile(rf"(?<![\w:])(?:tflite::)?(?:{'|'.join(names) or 'no type'})\b")
    texts = ((source, (installed.folder / source).read_text(encoding="utf-8", errors="replace")) for source in sources)
    return tuple(sorted({source for source, text in texts if uses.search(text)}))


def _defines(kernel_set: str, settings: BuildSettings) -> tuple[str, ...]:
    defines = ["TF_LITE_STATIC_MEMORY", "TF_LITE_DISABLE_X86_NEON", "KERNELS_OPTIMIZED_FOR_SPEED"]
    if kernel_set == "cmsis_nn":
        defines += ["CMSIS_NN", "ARM_NN_ENABLE_F16=0", "ARM_NN_ENABLE_F32=0"]
    return (*defines, *settings.mode_defines)


def not_installed_error() -> ToolError:
    """Build the error for a build with TFLM where none is installed: three ways to get it."""
    return ToolError(
        "TFLM is not installed",
        hint="forge runtime install tflm                      fetches it from GitHub with git\n"
        f"forge runtime install tflm --mirror 'PATTERN'   from a URL or folder with {{owner}} and {{name}} "
        f"(or {MIRROR_VARIABLE})\n"
        "forge runtime install tflm --tree DIR           uses a tflite-micro checkout, or the output of "
        "create_tflm_tree.py\n"
        "Meanwhile --runtime bundled works without it.",
    )
