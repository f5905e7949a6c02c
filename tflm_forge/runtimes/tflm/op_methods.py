"""Reads the Add methods of a tree's op resolver: what each registers, under which code or name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tflm_forge.errors import ToolError
from tflm_forge.runtimes.tflm.tree import Tree

RESOLVER = "tflite-micro/tensorflow/lite/micro/micro_mutable_op_resolver.h"
CUSTOM_CODE = 32
_SCHEMAS = (
    "tflite-micro/tensorflow/lite/schema/schema_generated.h",
    "tflite-micro/tensorflow/compiler/mlir/lite/schema/schema_generated.h",
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_METHOD = re.compile(r"TfLiteStatus\s+(Add\w+)\s*\(")
_BUILTIN = re.compile(r"AddBuiltin\s*\(\s*(?:tflite::)?BuiltinOperator_(\w+)\s*,")
_CUSTOM = re.compile(r'AddCustom\s*\(\s*(?:"([^"]*)"|([\w:]+)\s*\(\s*\))\s*,')
_REGISTER = re.compile(r"((?:\w+::)*)(Register_\w+)\s*\(")
_ENUM = re.compile(r"enum\s+BuiltinOperator\b[^{]*\{(.*?)\}", re.DOTALL)
_ENUM_ROW = re.compile(r"BuiltinOperator_(\w+)\s*=\s*(\d+)")

Argument = Literal["none", "reference", "pointer"]


@dataclass(frozen=True, kw_only=True)
class OpMethod:
    """One Add method.

    Attributes:
        method: its name ("AddConv2D").
        builtin_code: the code it registers; 32 for a custom op.
        custom_name: the custom name it registers, else empty.
        name: what a person calls the op: the enumerator, or the custom name.
        function: the registration function it takes or calls ("tflite::Register_CONV_2D").
        argument: how it takes another registration.
    """

    method: str
    builtin_code: int
    custom_name: str
    name: str
    function: str
    argument: Argument


def read_builtin_codes(tree: Tree) -> dict[str, int]:
    """Return the code of each name in the tree's BuiltinOperator."""
    for schema in _SCHEMAS:
        if tree.has(schema):
            enum = _ENUM.search(tree.read(schema))
            if enum:
                codes = {name: int(code) for name, code in _ENUM_ROW.findall(enum.group(1))}
                return {name: code for name, code in codes.items() if name not in ("MIN", "MAX")}
    raise ToolError(
        f"TFLM {tree.version}: no BuiltinOperator in {_SCHEMAS[0]}",
        hint="The tree is not complete or too old.",
    )


def read_op_methods(tree: Tree, custom_names: Mapping[str, str]) -> tuple[OpMethod, ...]:
    """Return all Add methods that register one op, sorted by name.

    Args:
        tree: the tree.
        custom_names: the string that each name function returns ("GetString_ETHOSU").

    Raises:
        ToolError: a method registers something this reader does not understand.
    """
    codes = read_builtin_codes(tree)
    text = _COMMENT.sub(" ", tree.read(RESOLVER))
    methods = []
    for match in _METHOD.finditer(text):
        name = match.group(1)
        if name in ("AddCustom", "AddBuiltin"):
            continue
        parameters, after = _balanced(text, match.end() - 1, "()")
        body, _ = _balanced(text, text.index("{", after), "{}")
        methods.append(_read_method(tree, name, parameters, body, codes, custom_names))
    if not methods:
        raise ToolError(f"TFLM {tree.version}: {RESOLVER} has no Add method", hint="The tree is not complete.")
    return tuple(sorted(methods, key=lambda m: m.method))


def _read_method(
    tree: Tree,
    method: str,
    parameters: str,
    body: str,
    codes: Mapping[str, int],
    custom_names: Mapping[str, str],
) -> OpMethod:
    register = _REGISTER.search(parameters) or _REGISTER.search(body)
    builtin = _BUILTIN.search(body)
    custom = _CUSTOM.search(body)
    code = codes.get(builtin.group(1)) if builtin else CUSTOM_CODE
    custom_name = ""
    if custom and not builtin:
        function = (custom.group(2) or "").rpartition("::")[2]
        custom_name = custom_names.get(function, "") if function else custom.group(1)
    if register is None or code is None or not (builtin or custom_name):
        raise ToolError(
            f"TFLM {tree.version}: can not tell which op {method} registers",
            hint="This TFLM commit is newer than this forge knows; use an older one or --runtime bundled.",
        )
    namespaces = [n for n in register.group(1).split("::") if n and n != "tflite"]
    argument: Argument = "none" if not parameters.strip() else ("pointer" if "*" in parameters else "reference")
    return OpMethod(
        method=method,
        builtin_code=code,
        custom_name=custom_name,
        name=builtin.group(1) if builtin else custom_name,
        function="::".join(["tflite", *namespaces, register.group(2)]),
        argument=argument,
    )


def _balanced(text: str, start: int, pair: str) -> tuple[str, int]:
    """Return what stands between the bracket at `start` and its partner, and the index after the partner."""
    depth = 0
    for index in range(start, len(text)):
        depth += {pair[0]: 1, pair[1]: -1}.get(text[index], 0)
        if depth == 0:
            return text[start + 1 : index], index + 1
    return text[start + 1 :], len(text)
