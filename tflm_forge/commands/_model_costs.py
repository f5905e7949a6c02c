"""What `forge inspect` says of the flash that a model's ops cost."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflm_forge.config import Config
    from tflm_forge.costs.of_model import ModelCosts
    from tflm_forge.model import Model, OpUse


def find_costs(model: "Model", runtime: str, board: str | None, config: "Config") -> "ModelCosts | None":
    """Return what a model's ops cost on the core of a board, or of the default core; None where no table says it.

    Raises:
        UsageError: the user named a board that there is not.
    """
    from tflm_forge.board import CORES
    from tflm_forge.commands._op_costs import DEFAULT_CORE
    from tflm_forge.commands._options import choose_board
    from tflm_forge.config import BuildSettings
    from tflm_forge.costs.of_model import find_model_costs

    wanted = board or config.build.board
    core = choose_board(wanted).core if wanted else CORES[DEFAULT_CORE]
    settings = BuildSettings(runtime=runtime, kernel_set=config.build.kernel_set, own_ops=config.op)
    return find_model_costs(model, core, settings)


def cost_column(costs: "ModelCosts | None") -> tuple[str, ...]:
    """Return the head of the column with costs; none when there are no costs."""
    return (f"flash on {costs.table.core}",) if costs else ()


def cost_cell(costs: "ModelCosts | None", use: "OpUse") -> tuple[str, ...]:
    """Return what stands in the column with costs for an op: bytes from least to most."""
    if costs is None:
        return ()
    cost = costs.by_op.get(use.name)
    return (f"{cost.least_bytes:,} to {cost.most_bytes:,}" if cost else "-",)


def words_of_dearest(costs: "ModelCosts | None") -> tuple[str, ...]:
    """Return a sentence on the op that costs most for one layer; none when there is none worth a thought."""
    if costs is None or costs.dearest is None:
        return ()
    use = costs.dearest
    cost = costs.by_op[use.name]
    return (
        f"{use.name} costs {cost.least_bytes:,} to {cost.most_bytes:,} bytes of flash for the one layer that uses it, "
        f"{use.first_layer!r}: of the ops that a single layer uses, the most worth avoiding.",
    )


def costs_json(costs: "ModelCosts | None") -> dict[str, object] | None:
    """Return the costs of a model's ops for --json; None when no table says them."""
    if costs is None:
        return None
    table = costs.table
    return {
        "core": table.core,
        "kernel_set": table.kernel_set,
        "compiler": table.compiler,
        "flags": table.flags,
        "is_shipped": table.is_shipped,
        "ops": {
            name: {"alone_bytes": cost.alone_bytes, "added_bytes": cost.added_bytes}
            for name, cost in costs.by_op.items()
        },
        "dearest_of_one_layer": costs.dearest.name if costs.dearest else None,
    }
