"""Measures what each operator of a runtime costs, by linking firmware with and without it."""

import contextlib
import dataclasses
import shutil
from collections.abc import Callable, Sequence

from tflm_forge import __version__
from tflm_forge.board import Board, list_boards
from tflm_forge.build import lock_folder
from tflm_forge.config import BuildSettings
from tflm_forge.costs.linking import Linker
from tflm_forge.costs.records import CostTable, OpCost
from tflm_forge.costs.tables import cache_folder, write_table
from tflm_forge.errors import ModelError, UsageError
from tflm_forge.generate import Arena, Project, generate_project
from tflm_forge.model import Model, OpUse, read_model
from tflm_forge.model.opset import OpTypes
from tflm_forge.model.writing import OperatorSpec, TensorSpec, write_model
from tflm_forge.proc import run
from tflm_forge.resources import data_dir
from tflm_forge.runtimes import Registration, load_catalogue, load_runtime, plan_op_set
from tflm_forge.versus import every_op

COMPILER = "arm-none-eabi-gcc"
COMMON_OPS = (
    "ADD", "AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "DEQUANTIZE", "FULLY_CONNECTED", "LOGISTIC",
    "MAX_POOL_2D", "QUANTIZE", "RELU", "RELU6", "RESHAPE", "SOFTMAX",
)  # fmt: skip
"""What most networks of keyword spotting, vision and anomaly detection are made of: the ops of the bundled runtime."""

_VERSION_TIMEOUT_S = 10.0
_LEAST_REGION_BYTES = 8 << 20
_ARENA_BYTES = 1024

# As many inputs as the op with the most has (UNIDIRECTIONAL_SEQUENCE_LSTM).
_INT8_TYPES: OpTypes = (("INT8",) * 24, ("INT8",))

Progress = Callable[[str, int, int], None]


def measure_costs(
    board: Board, settings: BuildSettings, report: Callable[[str], None], progress: Progress
) -> CostTable:
    """Measure the costs of all operators of the settings' runtime and kernel set, and keep the table.

    A measurement that was interrupted goes on where it was.

    Args:
        board: the board whose firmware is linked; what the operators cost depends on its core.
        settings: runtime, kernel set, and how firmware is built.
        report: gets one line for each step that takes time.
        progress: gets the name of a step, how much of it is done, and how much there is.

    Raises:
        ToolError: a tool is missing or failed.
        ModelError, UsageError: the runtime can not be built with this kernel set.
    """
    settings = dataclasses.replace(settings, own_ops=(), arena_bytes=_ARENA_BYTES)
    uses = every_op(load_catalogue(settings))
    plan = plan_op_set(uses, board.core, settings)
    registrations = [*plan.registrations, *_special_registrations(uses, board, settings, plan.registrations)]
    folder = cache_folder().resolve() / f"{plan.runtime}-{board.core.name}-{plan.kernel_set}"
    with lock_folder(folder, report):
        report(f"compiling all {len(uses)} ops of {plan.runtime} {plan.version}, kernels {plan.kernel_set}")
        arena = Arena(bytes=_ARENA_BYTES, how="given")
        model = _smallest_model()
        project = generate_project(folder, model, _enlarge(board), plan, settings, arena)
        linker = Linker.build(project, registrations)
        table = _measure(project, linker, len(uses), len(model.data), progress)
        write_table(table)
        shutil.rmtree(folder / "build", ignore_errors=True)
    return table


def choose_kernel_set(board: Board, settings: BuildSettings) -> str:
    """Return the kernel set of the settings, or else the one that firmware of an int8 model gets on a board."""
    runtime = load_runtime(settings.runtime)
    uses = [_as_int8(use) for use in every_op(load_catalogue(settings)) if use.name == "CONV_2D"]
    return runtime.register(uses, board.core, settings).kernel_set


def choose_board(core: str) -> Board:
    """Return the board of a core with the most flash: what firmware of a table is linked for.

    Raises:
        UsageError: no board has the core; names those that boards have.
    """
    # A user's own boards would make other tables than everybody's.
    boards = [board for board in list_boards() if board.path.parent == data_dir("boards")]
    fitting = [board for board in boards if board.core.name == core]
    if not fitting:
        known = sorted({board.core.name for board in boards})
        raise UsageError(f"no board has the core {core!r}", hint=f"Cores: {', '.join(known)}.")
    return max(fitting, key=lambda board: (board.flash.length_bytes, board.name))


def measuring_command(*, runtime: str, core: str, kernel_set: str) -> str:
    """Return the command that measures a table."""
    chosen = f" --kernel-set {kernel_set}" if runtime == "tflm" else ""
    return f"forge ops --cost --measure --runtime {runtime} --core {core}{chosen}"


def _special_registrations(
    uses: Sequence[OpUse], board: Board, settings: BuildSettings, general: Sequence[Registration]
) -> list[Registration]:
    """Return what a runtime registers for models of certain types, where that is not what it has for any type."""
    runtime = load_runtime(settings.runtime)
    calls = {registration.call for registration in general}
    catalogue = load_catalogue(settings)
    found: list[Registration] = []
    for use in uses:
        if len(catalogue.ops[use.builtin_code, use.custom_name].registrations) > 1:
            # One by one: a runtime refuses an op set for one op that does not take the type.
            with contextlib.suppress(ModelError):
                found += runtime.register((_as_int8(use),), board.core, settings).registrations
    return [registration for registration in found if registration.call not in calls]


def _as_int8(use: OpUse) -> OpUse:
    return dataclasses.replace(use, types=(_INT8_TYPES,))


def _smallest_model() -> Model:
    """Return a model, which firmware must hold; its operator has nothing to do with what is registered."""
    tensors = [TensorSpec(name=name, type="FLOAT32", shape=(1, 1)) for name in ("x", "y")]
    operator = OperatorSpec(op="RELU", inputs=(0,), outputs=(1,))
    data = write_model(tensors=tensors, operators=(operator,), inputs=(0,), outputs=(1,))
    return read_model(data, name="smallest.tflite")


def _enlarge(board: Board) -> Board:
    """Return the board with room for all operators: nothing of it is ever run."""
    regions = tuple(
        dataclasses.replace(region, length_bytes=max(region.length_bytes, _LEAST_REGION_BYTES))
        for region in board.regions
    )
    return dataclasses.replace(board, regions=regions)


def _measure(project: Project, linker: Linker, ops: int, model_bytes: int, progress: Progress) -> CostTable:
    """Link firmware for each registration twice; the first `ops` of them are one for each operator."""
    registrations = linker.registrations
    common = [index for index, r in enumerate(registrations[:ops]) if r.use.name in COMMON_OPS]
    others = [tuple(i for i in common if registrations[i].use.name != r.use.name) for r in registrations]
    none, everything = (), tuple(range(ops))
    singles = [(index,) for index in range(len(registrations))]
    joined = [(*rest, index) for index, rest in enumerate(others)]
    linker.measure([none, everything, *singles, *others, *joined], lambda done, total: progress("links", done, total))
    flash = linker.flash_bytes
    costs = tuple(
        OpCost(
            name=registration.use.name,
            types="INT8" if registration.use.types else "",
            call=registration.call,
            alone_bytes=flash(single) - flash(none),
            added_bytes=flash(both) - flash(rest),
        )
        for registration, single, rest, both in zip(registrations, singles, others, joined, strict=True)
    )
    settings, board, plan = project.settings, project.board, project.plan
    return CostTable(
        runtime=plan.runtime,
        version=plan.version,
        kernel_set=plan.kernel_set,
        core=board.core.name,
        board=board.name,
        compiler=compiler_version(),
        flags=_flags(settings),
        command=measuring_command(runtime=plan.runtime, core=board.core.name, kernel_set=plan.kernel_set),
        forge=__version__,
        no_op_bytes=flash(none) - model_bytes,
        all_ops_bytes=flash(everything) - model_bytes,
        common_ops=tuple(registrations[index].use.name for index in common),
        costs=costs,
    )


def _flags(settings: BuildSettings) -> str:
    lto = " -flto" if settings.uses_lto else ""
    return f"{settings.profile}: -O{settings.optimize}{lto} -D{' -D'.join(settings.mode_defines)}"


def compiler_version() -> str:
    """Return the version of the compiler, as it says it itself.

    Raises:
        ToolError: it is missing.
    """
    return run([COMPILER, "-dumpfullversion"], timeout_s=_VERSION_TIMEOUT_S).output.strip()
