"""Runs the TFLM interpreter for other modules, as a program of its own: it may abort the whole process.

Called as `python -m tflm_forge.verify.reference_worker FOLDER ARENA_BYTES`. FOLDER holds `model.tflite` and
`inputs.npz` with arrays `CASE/INPUT` (numbers); `outputs.npz` with arrays `CASE/OUTPUT` is written to it.
The interpreter keeps its state from one case to the next, as a device does.
"""

import sys
from pathlib import Path

import numpy as np

from tflm_forge.verify.arrays import write_npz


def run_cases(folder: Path, arena_bytes: int) -> None:
    """Run all cases of a job in order and write their outputs."""
    from tflite_micro import runtime

    model = (folder / "model.tflite").read_bytes()
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=arena_bytes)
    outputs = {}
    with np.load(folder / "inputs.npz", allow_pickle=False) as archive:
        case_count = int(archive["case_count"])
        input_count = int(archive["input_count"])
        output_count = int(archive["output_count"])
        for case in range(case_count):
            for i in range(input_count):
                interpreter.set_input(archive[f"{case}/{i}"], i)
            interpreter.invoke()
            for i in range(output_count):
                outputs[f"{case}/{i}"] = np.array(interpreter.get_output(i))
    write_npz(folder / "outputs.npz", outputs)


if __name__ == "__main__":
    run_cases(Path(sys.argv[1]), int(sys.argv[2]))
