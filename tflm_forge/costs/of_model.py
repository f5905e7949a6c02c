"""What the ops of a model cost: the rows of a table that fit how a build registers them."""

from collections.abc import Mapping
from dataclasses import dataclass

from tflm_forge.board import Core
from tflm_forge.config import BuildSettings
from tflm_forge.costs.records import CostTable, OpCost
from tflm_forge.costs.tables import find_table
from tflm_forge.errors import ForgeError
from tflm_forge.model import Model, OpUse, op_set
from tflm_forge.ops.own import find_own
from tflm_forge.runtimes import load_runtime

_LEAST_BYTES = 512
"""What is not worth a thought: two percent of a small firmware."""


@dataclass(frozen=True, kw_only=True)
class ModelCosts:
    """The costs of a model's ops.

    Attributes:
        table: where they are from.
        by_op: the cost of each op of the model by its name; an op that the table does not have is absent.
        dearest: the op that costs most among those that a single layer uses, or None when none is worth a thought.
    """

    table: CostTable
    by_op: Mapping[str, OpCost]
    dearest: OpUse | None


def find_model_costs(model: Model, core: Core, settings: BuildSettings) -> ModelCosts | None:
    """Return what the ops of a model cost as a build would register them; None where no table says it.

    An operator of the user's own has no cost here. The dearest op is found by what it certainly costs, beside the
    others: of an op that several layers use, no single layer is the cause.
    """
    uses = [use for use in op_set(model) if find_own(use, settings.own_ops) is None]
    try:
        plan = load_runtime(settings.runtime).register(uses, core, settings)
    except (ForgeError, KeyError):
        # The runtime can not run the model, and its findings say why.
        return None
    table = find_table(runtime=plan.runtime, version=plan.version, core=core.name, kernel_set=plan.kernel_set)
    if table is None:
        return None
    found = {r.use.name: cost for r in plan.registrations if (cost := table.find(r.use.name, r.call)) is not None}
    once = [use for use in uses if use.count == 1 and use.name in found and found[use.name].least_bytes >= _LEAST_BYTES]
    dearest = max(once, key=lambda use: found[use.name].least_bytes) if once and len(uses) > 1 else None
    return ModelCosts(table=table, by_op=found, dearest=dearest)
