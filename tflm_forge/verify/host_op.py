"""Compiles a kernel with the bundled runtime for this computer, with sanitizers, and runs models of one operator."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tflm_forge import objects
from tflm_forge.board import Core
from tflm_forge.config import BuildSettings, OpTable
from tflm_forge.errors import ToolError
from tflm_forge.files import write_if_changed
from tflm_forge.generate import template_environment
from tflm_forge.model import Model, op_set
from tflm_forge.ops.own import own_header, own_name
from tflm_forge.proc import find_tool, has_tool, run
from tflm_forge.runtimes import plan_op_set
from tflm_forge.verify.arrays import Array, dtype_of
from tflm_forge.verify.op_cases import ModelCase

_CONFIGURE_TIMEOUT_S = 120.0
_BUILD_TIMEOUT_S = 900.0
_RUN_TIMEOUT_S = 60.0
_EXECUTABLE = "op_test"
_RUNTIME = "bundled"
_ARENA_FLOOR_BYTES = 1 << 20
_REFUSED, _INVOKE_FAILED = 3, 4
_MOST_LINES = 20
_SUMMARY = "SUMMARY: "
"""The address sanitizer's last line, which names file, line and function."""
_SANITIZER = ": runtime error: "
"""In the line of the undefined-behaviour sanitizer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HostRun:
    """What a kernel did with one model on this computer.

    Attributes:
        outputs: its outputs; empty when it did not get that far.
        refused: whether AllocateTensors failed.
        problem: why there are no outputs, in words; empty when there are.
        log: what the runtime and the sanitizers printed, the last lines.
    """

    outputs: tuple[Array, ...] = ()
    refused: bool = False
    problem: str = ""
    log: tuple[str, ...] = ()


def build_host_test(folder: Path, table: OpTable, model: Model, core: Core) -> Path:
    """Compile the kernel of an [[op]] for this computer; return the program.

    Args:
        folder: where the project and its objects are kept.
        table: the [[op]].
        model: a model of this operator alone.
        core: any core; its kernels are the portable ones here.

    Raises:
        ToolError: a tool is missing, or the kernel does not compile; shows the compiler's last lines.
        UsageError: the table is wrong, or the bundled runtime does not have the op that it replaces.
    """
    for tool in ("g++", "cmake", "ninja"):
        find_tool(tool)
    settings = BuildSettings(runtime=_RUNTIME, profile="debug", own_ops=(table,))
    plan = plan_op_set(op_set(model), core, settings)
    registration = plan.registrations[0]
    context = {
        "name": own_name(table),
        "plan": plan,
        "call": registration.call,
        "header": own_header(table).name,
        "sources": [file.path for file in plan.own.files if file.is_source],
        "include_dirs": [own_header(table).resolve().parent, *(path.resolve() for path in table.include_dirs)],
    }
    environment = template_environment()
    for template, name in (("CMakeLists.txt", "CMakeLists.txt"), ("host_main.cc", "main.cc")):
        content = environment.get_template(f"op/{template}.j2").render(context).encode()
        write_if_changed(folder / name, content)
    build, log = folder / "build", folder / "build.log"
    log.unlink(missing_ok=True)
    variables = objects.cache_environment(folder)
    if not (build / "build.ninja").is_file():
        command: list[str | Path] = ["cmake", "-G", "Ninja", "-S", folder, "-B", build, "-DCMAKE_CXX_COMPILER=g++"]
        if has_tool(objects.TOOL):
            command += [f"-DCMAKE_{language}_COMPILER_LAUNCHER={objects.TOOL}" for language in ("C", "CXX")]
        run(command, timeout_s=_CONFIGURE_TIMEOUT_S, env=variables, log=log)
    run(["ninja", "-C", build], timeout_s=_BUILD_TIMEOUT_S, env=variables, log=log)
    return build / _EXECUTABLE


def run_on_host(program: Path, folder: Path, case: ModelCase) -> HostRun:
    """Run one case, whose model stands in the folder above, on this computer, in a process of its own."""
    model = folder.parent / case.model.name
    inputs, outputs = (folder / f"{model.stem}.{ending}" for ending in ("inputs", "outputs"))
    write_if_changed(inputs, b"".join(np.ascontiguousarray(array).tobytes() for array in case.inputs))
    outputs.unlink(missing_ok=True)
    tensors = sum(t.size_bytes for t in case.model.subgraphs[0].tensors)
    # A multiple of 16, as aligned_alloc wants it.
    arena_bytes = (_ARENA_FLOOR_BYTES + 4 * tensors) // 16 * 16
    try:
        done = run(
            [program, model, inputs, outputs, str(arena_bytes)],
            timeout_s=_RUN_TIMEOUT_S,
            check=False,
            env={"ASAN_OPTIONS": "detect_leaks=0"},
        )
    except ToolError as error:
        return HostRun(problem=error.message)
    log = tuple(line for line in done.output.splitlines() if line.strip())[:_MOST_LINES]
    if done.returncode == 0:
        return HostRun(outputs=_split(case.model, outputs.read_bytes()), log=log)
    words = {
        _REFUSED: "AllocateTensors failed: the kernel refused these tensors",
        _INVOKE_FAILED: "the inference failed",
    }
    stopped = next((line for line in log if _SANITIZER in line or line.startswith(_SUMMARY)), "")
    ended = f"stopped by a sanitizer: {stopped.removeprefix(_SUMMARY)}" if stopped else ""
    problem = words.get(done.returncode) or ended or f"the program ended with status {done.returncode}"
    return HostRun(refused=done.returncode == _REFUSED, problem=problem, log=log)


def _split(model: Model, data: bytes) -> tuple[Array, ...]:
    arrays, at = [], 0
    for tensor in model.outputs:
        piece = data[at : at + tensor.size_bytes]
        arrays.append(np.frombuffer(piece, dtype_of(tensor)).reshape(tensor.shape))
        at += tensor.size_bytes
    return tuple(arrays)
