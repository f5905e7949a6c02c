"""Reads a whole tree into the catalogue's plain form: ops, registrations and sources of each kernel set."""

import re
from collections.abc import Mapping
from typing import Any

from tflm_forge.errors import ToolError
from tflm_forge.runtimes.tflm.op_methods import OpMethod, read_op_methods
from tflm_forge.runtimes.tflm.sources import KERNEL_SETS, SourceGraph, read_source_graph
from tflm_forge.runtimes.tflm.tree import Tree

FORMAT = 1
_KERNEL_FOLDERS = ("tensorflow/lite/micro/kernels", "signal/micro/kernels")
# Type suffixes of specialised registrations. INT8REF keeps reference code for comparing: never a choice.
_SUFFIX = re.compile(r"_(INT4|INT8|INT16|INT32|FLOAT|INT8_INT16)")
_DECLARED = re.compile(r"\b(Register_\w+)\s*\(\s*\)")
_NAME_FUNCTION = re.compile(r'const\s+char\s*\*\s*(\w+)\s*\(\s*\)\s*\{\s*return\s*"([^"]*)"\s*;\s*\}')
# kernels/ethosu.cc, the stub, returns "": the name stands in the co-processor's own kernel.
_ETHOSU = "tflite-micro/tensorflow/lite/micro/kernels/ethos_u/ethosu.cc"
_ETHOSU_FALLBACK: Mapping[str, str] = {"GetString_ETHOSU": "ethos-u"}


def read_tree(tree: Tree) -> dict[str, Any]:
    """Read a tree's catalogue.

    Returns:
        A value for JSON: format, version, ops (one row per Add method) and kernel_sets (sources of the core;
        for each Add method its further sources and specialised registrations).

    Raises:
        ToolError: the tree is not complete, or newer than this reader understands.
    """
    methods = read_op_methods(tree, _read_name_functions(tree))
    headers = _read_registration_headers(tree)
    kernel_sets = {}
    for name in KERNEL_SETS:
        if name == "reference" or tree.glob("tflite-micro", f"{_KERNEL_FOLDERS[0]}/{name}/*"):
            found = _read_kernel_set(tree, name, methods, headers)
            if found is not None:
                kernel_sets[name] = found
    if not kernel_sets:
        raise ToolError(
            f"TFLM {tree.version}: kernel sources are missing for {_first_missing(tree, methods)}",
            hint="The tree is not complete: install it again, or give another --tree.",
        )
    return {
        "format": FORMAT,
        "version": tree.version,
        "ops": [
            {
                "name": m.name,
                "builtin_code": m.builtin_code,
                "custom_name": m.custom_name,
                "add_method": m.method,
                "argument": m.argument,
                "function": m.function,
            }
            for m in methods
        ],
        "kernel_sets": kernel_sets,
    }


def _read_kernel_set(
    tree: Tree, name: str, methods: tuple[OpMethod, ...], headers: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the core's and every op's sources; None when the tree was made for another kernel set."""
    graph = read_source_graph(tree, name)
    core = graph.core()
    ops = {}
    for method in methods:
        definers = graph.definers.get(_bare(method.function))
        if not definers:
            return None
        ops[method.method] = {
            "sources": sorted(graph.closure(definers) - core),
            "registrations": _specialised(method, graph, headers),
        }
    return {"core": sorted(core), "ops": ops}


def _first_missing(tree: Tree, methods: tuple[OpMethod, ...]) -> str:
    definers = read_source_graph(tree, "reference").definers
    return ", ".join(m.name for m in methods if _bare(m.function) not in definers)


def _specialised(method: OpMethod, graph: SourceGraph, headers: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the registrations for one type that this kernel set defines itself, not its aliases."""
    if method.argument == "none":
        return {}
    bare = _bare(method.function)
    scope = method.function.removesuffix(bare)
    found = {}
    for name in sorted(headers):
        suffix = name.removeprefix(bare)
        if name.startswith(bare) and _SUFFIX.fullmatch(suffix) and name in graph.definers:
            found[suffix[1:]] = {"function": scope + name, "header": headers[name]}
    return found


def _bare(function: str) -> str:
    return function.rpartition("::")[2]


def _read_registration_headers(tree: Tree) -> dict[str, str]:
    """Return the header that declares each registration function, as it is included."""
    found: dict[str, str] = {}
    for folder in _KERNEL_FOLDERS:
        for header in tree.glob("tflite-micro", f"{folder}/*.h"):
            for name in _DECLARED.findall(tree.read(header)):
                found.setdefault(name, header.removeprefix("tflite-micro/"))
    return found


def _read_name_functions(tree: Tree) -> dict[str, str]:
    """Return the strings of functions that return a custom op's name."""
    found = dict(_ETHOSU_FALLBACK)
    if tree.has(_ETHOSU):
        found.update(_NAME_FUNCTION.findall(tree.read(_ETHOSU)))
    return found
