"""Runs an interpreter for other modules, as a program of its own: it may abort the whole process.

Called as `python -m tflm_forge.verify.reference_worker ENGINE FOLDER ARENA_BYTES`. ENGINE is `tflm`, `tflm-layers`
(keeps all tensors) or the module of a TFLite interpreter. FOLDER holds `model.tflite` and `inputs.npz` with arrays
`CASE/INPUT` (numbers); `outputs.npz` with arrays `CASE/OUTPUT`, or `CASE/TENSOR` of the main graph for `tflm-layers`,
is written to it. The model's state goes on from one case to the next, or is reset before each. Where there is an
`own.json`, its operators are the user's own, and computed by the Python files it names.
"""

import contextlib
import importlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tflm_forge.verify.arrays import Array, write_npz

TFLM = "tflm"
TFLM_LAYERS = "tflm-layers"
OWN_NAME = "own.json"

Run = Callable[[Sequence[Array], bool], Mapping[int, Array]]
"""Takes the inputs of one inference, and whether to reset the state before; returns what it gave, by number."""


def run_cases(engine: str, folder: Path, arena_bytes: int) -> None:
    """Run all cases of a job in order and write what they gave."""
    model = (folder / "model.tflite").read_bytes()
    results: dict[str, Array] = {}
    with np.load(folder / "inputs.npz", allow_pickle=False) as archive:
        outputs = int(archive["output_count"])
        tensors, resets_state = archive["tensors"].tolist(), bool(archive["resets_state"])
        if (folder / OWN_NAME).is_file():
            run = _open_split(model, arena_bytes, folder / OWN_NAME, tensors)
        elif engine.startswith(TFLM):
            run = _open_tflm(model, arena_bytes, outputs, tensors)
        else:
            run = _open_tflite(engine, model)
        for case in range(int(archive["case_count"])):
            inputs = [archive[f"{case}/{i}"] for i in range(int(archive["input_count"]))]
            results.update({f"{case}/{i}": array for i, array in run(inputs, resets_state).items()})
    write_npz(folder / "outputs.npz", results)


def _open_tflm(model: bytes, arena_bytes: int, outputs: int, tensors: Iterable[int]) -> Run:
    from tflite_micro import runtime

    wanted = list(tensors)
    config = runtime.InterpreterConfig.kPreserveAllTensors if wanted else runtime.InterpreterConfig.kAllocationRecording
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=arena_bytes, intrepreter_config=config)

    def run(inputs: Sequence[Array], resets_state: bool) -> Mapping[int, Array]:
        if resets_state:
            interpreter.reset()
        for i, array in enumerate(inputs):
            interpreter.set_input(array, i)
        interpreter.invoke()
        if not wanted:
            return {i: np.array(interpreter.get_output(i)) for i in range(outputs)}
        found = {}
        for index in wanted:
            # What the interpreter does not keep (a tensor without data) it refuses.
            with contextlib.suppress(RuntimeError, ValueError, TypeError, KeyError):
                found[index] = np.array(interpreter.GetTensor(index, 0)["tensor_data"])
        return found

    return run


def _open_split(model: bytes, arena_bytes: int, own: Path, tensors: Iterable[int]) -> Run:
    from tflm_forge.verify.split_model import SplitModel

    rows = json.loads(own.read_text(encoding="utf-8"))
    references = {(row["code"], row["name"]): Path(row["path"]) if row["path"] else None for row in rows}
    split = SplitModel(model, references, arena_bytes)
    wanted = list(tensors)

    def run(inputs: Sequence[Array], resets_state: bool) -> Mapping[int, Array]:
        values = split.run(inputs, resets_state=resets_state)
        if wanted:
            return {index: values[index] for index in wanted if index in values}
        if not all(index in values for index in split.outputs):
            names = ", ".join(row["shown"] for row in rows if not row["path"])
            sys.exit(f"{names}: has no Python reference, so that the outputs are not known")
        return {i: values[index] for i, index in enumerate(split.outputs)}

    return run


def _open_tflite(module: str, model: bytes) -> Run:
    library: Any = importlib.import_module(module)
    kinds: Any = library
    if module == "tensorflow":
        library, kinds = library.lite, library.lite.experimental
    # The reference kernels: what the optimized ones round to depends on this processor.
    kernels = kinds.OpResolverType.BUILTIN_REF
    engine = library.Interpreter(model_content=model, experimental_op_resolver_type=kernels)
    engine.allocate_tensors()

    def run(inputs: Sequence[Array], resets_state: bool) -> Mapping[int, Array]:
        if resets_state:
            engine.reset_all_variables()
        for detail, array in zip(engine.get_input_details(), inputs, strict=True):
            engine.set_tensor(detail["index"], array)
        engine.invoke()
        return {i: engine.get_tensor(detail["index"]) for i, detail in enumerate(engine.get_output_details())}

    return run


if __name__ == "__main__":
    run_cases(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
