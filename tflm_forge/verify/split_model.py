"""Runs a model whose operators are partly the user's own: TFLM's interpreter for the rest, Python for those.

The operators are cut into stretches. A stretch of the interpreter's is a model of its own, whose inputs are the tensors
that it reads and whose outputs are all that it writes. For the worker's process only.
"""

import copy
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np

from tflm_forge.model import CUSTOM_CODE, enum_name
from tflm_forge.ops.cases import OpTensor
from tflm_forge.verify.arrays import DTYPES, Array
from tflm_forge.verify.own_python import Reference, call_reference, load_function, read_options

References = Mapping[tuple[int, str], Path | None]
"""By builtin code and custom name: the Python file that computes an op; None when there is none."""

_VARIABLE_OPS = frozenset({"VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE", "CALL_ONCE"})


class SplitModel:
    """A model cut into stretches.

    Args:
        model: its bytes.
        references: what the interpreter does not run.
        arena_bytes: the interpreter's arena, for each stretch.
    """

    def __init__(self, model: bytes, references: References, arena_bytes: int) -> None:
        from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

        self._model: Any = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(model, 0))
        self._graph: Any = self._model.subgraphs[0]
        self._stretches = [
            _OwnOp(self._model, operators[0], references[key])
            if (key := self._key(operators[0])) in references
            else _Stretch(self._model, operators, arena_bytes)
            for operators in self._cut(references)
        ]
        self._refuse_shared_state()

    def _key(self, operator: Any) -> tuple[int, str]:
        return _op_key(self._model, operator)

    def _cut(self, references: References) -> list[list[Any]]:
        groups: list[list[Any]] = []
        goes_on = False
        for operator in self._graph.operators:
            is_own = self._key(operator) in references
            if goes_on and not is_own:
                groups[-1].append(operator)
            else:
                groups.append([operator])
            goes_on = not is_own
        return groups

    def _refuse_shared_state(self) -> None:
        """Exit when state would be shared between stretches, which each have their own."""
        users: dict[int, int] = {}
        for stretch in self._stretches:
            for index in stretch.variables:
                users[index] = users.get(index, 0) + 1
        if any(count > 1 for count in users.values()):
            sys.exit("a variable tensor is used on both sides of an operator of your own: compare with --golden FILE")
        if sum(stretch.has_resources for stretch in self._stretches) > 1:
            sys.exit("resource variables are used on both sides of an operator of your own: compare with --golden FILE")

    def run(self, inputs: Sequence[Array], *, resets_state: bool) -> dict[int, Array]:
        """Run one inference; return the tensors of the main graph that could be computed, by index."""
        values = dict(zip((int(i) for i in self._graph.inputs), inputs, strict=True))
        for stretch in self._stretches:
            if all(index in values for index in stretch.inputs):
                values.update(stretch.run(values, resets_state=resets_state))
        return values

    @property
    def outputs(self) -> list[int]:
        """Indices of the model's outputs."""
        return [int(i) for i in self._graph.outputs]


class _Stretch:
    """Operators in a row that the interpreter runs."""

    def __init__(self, model: Any, operators: Sequence[Any], arena_bytes: int) -> None:
        graph = model.subgraphs[0]
        written = _distinct(i for operator in operators for i in operator.outputs)
        read = _distinct(i for operator in operators for i in operator.inputs if i >= 0)
        self.variables = {i for i in (*read, *written) if graph.tensors[i].isVariable}
        self.outputs = [i for i in written if i not in self.variables]
        self.inputs = [
            i for i in read if i not in written and i not in self.variables and not _constant_bytes(model, i).size
        ]
        names = {enum_name("BuiltinOperator", _op_key(model, operator)[0]) for operator in operators}
        self.has_resources = not names.isdisjoint(_VARIABLE_OPS)
        part, part_graph = copy.copy(model), copy.copy(graph)
        part_graph.operators, part_graph.inputs, part_graph.outputs = list(operators), self.inputs, self.outputs
        part.subgraphs = [part_graph, *model.subgraphs[1:]]
        part.signatureDefs = []
        self._data = _pack(part)
        self._arena_bytes = arena_bytes
        self._interpreter: Any = None

    def run(self, values: Mapping[int, Array], *, resets_state: bool) -> dict[int, Array]:
        if self._interpreter is None:
            from tflite_micro import runtime

            self._interpreter = runtime.Interpreter.from_bytes(self._data, arena_size=self._arena_bytes)
        elif resets_state:
            self._interpreter.reset()
        for place, index in enumerate(self.inputs):
            self._interpreter.set_input(values[index], place)
        self._interpreter.invoke()
        return {i: np.array(self._interpreter.get_output(place)) for place, i in enumerate(self.outputs)}


@dataclass
class _OwnOp:
    """One operator that a Python file computes; `path` is None when there is none, and nothing comes out."""

    model: Any
    operator: Any
    path: Path | None
    variables = frozenset[int]()
    has_resources = False

    def __post_init__(self) -> None:
        self._function: Reference | None = None if self.path is None else load_function(self.path, "reference")

    @property
    def inputs(self) -> list[int]:
        """Tensors that must be known before."""
        return [int(i) for i in self.operator.inputs if i >= 0 and not _constant_bytes(self.model, i).size]

    def run(self, values: Mapping[int, Array], *, resets_state: bool) -> dict[int, Array]:
        del resets_state
        if self._function is None or self.path is None:
            return {}
        inputs = [self._tensor(int(i), values) for i in self.operator.inputs if i >= 0]
        outputs = [self._tensor(int(i), {}) for i in self.operator.outputs]
        arrays = call_reference(self.path, self._function, inputs, outputs, self._options())
        return dict(zip((int(i) for i in self.operator.outputs), arrays, strict=True))

    def _options(self) -> dict[str, Any]:
        if _op_key(self.model, self.operator)[0] == CUSTOM_CODE:
            data = self.operator.customOptions
            return read_options(b"" if data is None else bytes(bytearray(data)))
        return dict(vars(self.operator.builtinOptions)) if self.operator.builtinOptions is not None else {}

    def _tensor(self, index: int, values: Mapping[int, Array]) -> OpTensor:
        tensor = self.model.subgraphs[0].tensors[index]
        kind = enum_name("TensorType", tensor.type) or ""
        if kind not in DTYPES:
            sys.exit(f"tensor {index} has type {kind}, which a Python reference can not be given")
        shape = () if tensor.shape is None else tuple(int(n) for n in tensor.shape)
        quantization = tensor.quantization
        scales = [] if quantization is None or quantization.scale is None else [float(s) for s in quantization.scale]
        zeros = [] if not scales or quantization.zeroPoint is None else [int(z) for z in quantization.zeroPoint]
        data = _constant_bytes(self.model, index)
        array = np.frombuffer(data.tobytes(), DTYPES[kind]).reshape(shape) if data.size else values.get(index)
        return OpTensor(
            type=kind,
            shape=shape,
            scale=None if not scales else scales[0] if len(scales) == 1 else scales,
            zero_point=0 if not zeros else zeros[0] if len(zeros) == 1 else zeros,
            axis=quantization.quantizedDimension if scales else 0,
            values=array,
            is_constant=bool(data.size),
        )


def _op_key(model: Any, operator: Any) -> tuple[int, str]:
    opcode = model.operatorCodes[operator.opcodeIndex]
    code = max(opcode.builtinCode, opcode.deprecatedBuiltinCode)
    name = opcode.customCode if code == CUSTOM_CODE else b""
    return code, name.decode() if isinstance(name, bytes) else str(name or "")


def _constant_bytes(model: Any, index: int) -> Array:
    data = model.buffers[model.subgraphs[0].tensors[index].buffer].data
    return np.asarray([] if data is None else data, np.uint8)


def _distinct(indices: Iterable[Any]) -> list[int]:
    return list(dict.fromkeys(int(i) for i in indices))


def _pack(model: Any) -> bytes:
    builder: Any = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())
