"""Rules, what they are asked about, and what they find."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from tflm_forge.board import Board
from tflm_forge.model import Model, Operator, OpUse, Subgraph, Tensor, op_set
from tflm_forge.ops.catalogue import Catalogue

Severity = Literal["error", "warning", "note"]
"""`error`: the model can not run as it is, or gives wrong numbers. `warning`: it runs, and may surprise."""

Needs = Literal["model", "runtime", "board"]
"""What a rule has to know: the model alone, the runtime that is to run it, the board it is to run on."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something about a model that its user should know.

    Attributes:
        id: the rule's id; stays the same from release to release ("flex-op").
        severity: the rule's.
        layer: label of the first layer it concerns; empty when it concerns the model.
        words: what was found, a full sentence.
        remedy: what to do, full sentences; empty for a note that needs nothing.
        silenced: the reason that the user gave for going on all the same; empty when it stands.
    """

    id: str
    severity: Severity
    layer: str
    words: str
    remedy: str
    silenced: str = ""

    @property
    def stands(self) -> bool:
        """Whether the model may not be built: an error that is not silenced."""
        return self.severity == "error" and not self.silenced

    @property
    def text(self) -> str:
        """What was found and what to do, in one paragraph."""
        return f"{self.words} {self.remedy}".strip()


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One place where a rule applies.

    Attributes:
        layer: label of the layer; empty when it concerns the model.
        words: what was found, a full sentence.
        remedy: what to do, when the rule's own remedy does not fit.
        kind: hits of one kind become one finding that counts them; empty for one that stands alone.
    """

    layer: str = ""
    words: str
    remedy: str = ""
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Node:
    """One operator with the tensors of its subgraph."""

    operator: Operator
    graph: Subgraph

    @property
    def name(self) -> str:
        """What a person calls its op."""
        return self.operator.name

    @property
    def label(self) -> str:
        """The layer's name."""
        return self.operator.label

    def input(self, place: int) -> Tensor | None:
        """Return an input, or None when it is left out or not there."""
        inputs = self.operator.inputs
        return self.graph.tensors[inputs[place]] if place < len(inputs) and inputs[place] >= 0 else None

    def output(self, place: int = 0) -> Tensor | None:
        """Return an output, or None when it is not there."""
        outputs = self.operator.outputs
        return self.graph.tensors[outputs[place]] if place < len(outputs) else None

    def describe(self, tensor: Tensor) -> str:
        """Name one of its tensors for a person."""
        return f"Tensor {tensor.name!r} of layer {self.label!r} ({self.name})"

    def tensors(self) -> Iterator[Tensor]:
        """Yield all inputs that are not left out, and all outputs."""
        for index in (*self.operator.inputs, *self.operator.outputs):
            if index >= 0:
                yield self.graph.tensors[index]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What rules are asked about.

    Attributes:
        model: the model.
        catalogue: of the runtime that is to run it, with the user's own kernels; None when no runtime is chosen.
        board: what it is to run on; None when none is chosen.
        allow_versions: op name to a version that the user takes responsibility for.
    """

    model: Model
    catalogue: Catalogue | None = None
    board: Board | None = None
    allow_versions: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def ops(self) -> tuple[OpUse, ...]:
        """The model's op set."""
        return op_set(self.model)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All operators of all subgraphs."""
        return tuple(
            Node(operator=operator, graph=graph) for graph in self.model.subgraphs for operator in graph.operators
        )

    @cached_property
    def kernel_nodes(self) -> tuple[Node, ...]:
        """The operators that the runtime's own kernels compute: without missing ops, and without the user's kernels."""
        if self.catalogue is None:
            return self.nodes
        rows = self.catalogue.ops
        keys = {key for key, row in rows.items() if not row.is_own}
        return tuple(n for n in self.nodes if (n.operator.builtin_code, n.operator.custom_name) in keys)

    @property
    def runtime(self) -> str:
        """Name of the runtime, empty when none is chosen."""
        return self.catalogue.runtime if self.catalogue else ""


Check = Callable[[Subject], Iterator[Hit]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One cause why a model does not run, or not as expected.

    Attributes:
        id: the word that findings and forge.toml name it by.
        severity: of all its findings.
        needs: what it has to know to be asked.
        title: what it looks for, in a few words.
        why: what goes wrong, full sentences.
        remedy: what to do, full sentences; findings may have a better one.
        source: where the rule comes from: a kernel's file, a specification, a thread.
        check: yields the places where it applies.
    """

    id: str
    severity: Severity
    needs: Needs
    title: str
    why: str
    remedy: str
    source: str
    check: Check = field(repr=False)


def rule(
    *, id: str, severity: Severity, title: str, why: str, source: str, remedy: str = "", needs: Needs = "model"
) -> Callable[[Check], Rule]:
    """Make a rule of the function that looks for it."""

    def make(check: Check) -> Rule:
        return Rule(
            id=id, severity=severity, needs=needs, title=title, why=why, remedy=remedy, source=source, check=check
        )

    return make
