"""The flash that each operator costs, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class OpCost:
    """What registering an operator in one way costs.

    Attributes:
        name: the operator.
        types: the tensor type that it is registered for; empty for any.
        call: the call on the op resolver that registers it ("AddConv2D(tflite::Register_CONV_2D_INT8())").
        alone_bytes: flash that firmware with this operator and no other has more than firmware with none.
        added_bytes: flash that firmware with the common operators of the table has more with this one than without it.
    """

    name: str
    types: str
    call: str
    alone_bytes: int
    added_bytes: int

    @property
    def least_bytes(self) -> int:
        """What the operator costs at least, in most firmware."""
        return min(self.alone_bytes, self.added_bytes)

    @property
    def most_bytes(self) -> int:
        """What the operator costs at most."""
        return max(self.alone_bytes, self.added_bytes)


@dataclass(frozen=True, kw_only=True)
class CostTable:
    """The costs of all operators of a runtime on one core, and how they were measured.

    Attributes:
        runtime: name of the runtime.
        version: its version or commit, as the catalogue has it.
        kernel_set: which of its kernels.
        core: the processor core.
        board: the board whose firmware was linked.
        compiler: version of arm-none-eabi-gcc.
        flags: what of compiler and linker options decides about size.
        command: the command that makes this table again.
        forge: version of forge whose firmware was linked.
        no_op_bytes: flash of the firmware without an operator and without the model.
        all_ops_bytes: flash of the firmware with all of them, without the model.
        common_ops: the operators beside which each was linked the second time.
        costs: one row for each way to register each operator.
        not_measured: why, by the name of each operator that has no row.
        is_shipped: whether forge carries the table, or it was measured on this machine.
    """

    runtime: str
    version: str
    kernel_set: str
    core: str
    board: str
    compiler: str
    flags: str
    command: str
    forge: str
    no_op_bytes: int
    all_ops_bytes: int
    common_ops: tuple[str, ...]
    costs: tuple[OpCost, ...]
    not_measured: Mapping[str, str] = field(default_factory=dict)
    is_shipped: bool = False

    def find(self, name: str, call: str) -> OpCost | None:
        """Return the cost of an operator registered by this very call, or None."""
        return next((cost for cost in self.costs if (cost.name, cost.call) == (name, call)), None)
