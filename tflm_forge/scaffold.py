"""Writes the first files of an operator of one's own: kernel, Python reference, cases, its [[op]] in forge.toml."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.config import CONFIG_NAME, load_config
from tflm_forge.errors import UsageError
from tflm_forge.files import write_if_changed
from tflm_forge.generate import template_environment
from tflm_forge.model import enum_value
from tflm_forge.ops.own import own_name
from tflm_forge.registry import unknown_name

KINDS: Mapping[str, str] = {
    "RELU": "one input, element by element",
    "ADD": "two inputs of one shape, element by element",
    "RESHAPE": "the input's elements in another shape",
    "SOFTMAX": "row by row, with scratch memory",
}
"""What a kernel can be made like, and what that means."""

_TYPES: Mapping[str, tuple[str, ...]] = {"RESHAPE": ()}
_OTHER_TYPES = ("INT8", "FLOAT32")
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9 _.:/-]{0,99}")
_NO_IDENTIFIER = re.compile(r"[^A-Za-z0-9]+")
_FOLDER = "ops"


@dataclass(frozen=True, kw_only=True)
class Scaffold:
    """What was written: the op's exact name, its C++ function, and its files."""

    name: str
    function: str
    files: tuple[Path, ...]


def scaffold_op(folder: Path, name: str, like: str, taken: Mapping[str, str]) -> Scaffold:
    """Write kernel, header, reference and cases of an op into `ops/`, and add its [[op]] to forge.toml.

    Nothing that is there is changed but forge.toml, which gets a table at its end; it is made when there is none.

    Args:
        folder: the project, with or without forge.toml.
        name: exact name of the custom op.
        like: one of `KINDS`.
        taken: names that can not be used, each with what has it.

    Raises:
        UsageError: the name or the kind can not be used, or a file is there already; then nothing is written.
    """
    if like not in KINDS:
        raise unknown_name("kind of kernel", like, KINDS)
    stem = _choose_stem(name)
    function = f"Register_{stem.upper()}"
    _refuse_taken(name, function, taken)
    if name in {own_name(table) for table in load_config(folder).op}:
        raise UsageError(f"{CONFIG_NAME}: has an [[op]] named {name!r} already")
    files = _render(name, stem, function, like)
    there = [path for path in files if (folder / path).exists()]
    if there:
        raise UsageError(
            f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} there already, and nothing is overwritten",
            hint="Choose another name for the op, or move the files.",
        )
    try:
        for path, content in files.items():
            write_if_changed(folder / path, content)
        _add_entry(folder / CONFIG_NAME, _render_entry(name, stem, function, like))
    except OSError as error:
        raise UsageError(f"{folder}: can not write: {error.strerror or error}") from error
    return Scaffold(name=name, function=function, files=tuple(Path(path) for path in files))


def _choose_stem(name: str) -> str:
    """Return the name as it stands in file names: MyOp -> my_op.

    Raises:
        UsageError: no C++ name can be made of it.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r}: no C++ name can be made of this",
            hint="A name starts with a letter; letters, digits, spaces and _ - . : / may follow, 100 in all. An op of "
            "another name needs an [[op]] written by hand: docs/custom-ops.md.",
        )
    return _NO_IDENTIFIER.sub("_", _WORD_STARTS.sub("_", name)).strip("_").lower()


def _refuse_taken(name: str, function: str, taken: Mapping[str, str]) -> None:
    if enum_value("BuiltinOperator", name) is not None:
        taken = {name: "the TFLite schema", **taken}
    for other, owner in taken.items():
        if other == name:
            raise UsageError(
                f"{name!r}: {owner} has an op of this name",
                hint=f'To use one of your own instead, write an [[op]] with replaces = "{name}": docs/custom-ops.md.',
            )
        if _choose_register(other) == function:
            raise UsageError(
                f"{name!r}: its C++ function {function} would collide with that of {other}, which {owner} has",
                hint="Put the name of your project in front of it.",
            )


def _choose_register(name: str) -> str:
    return f"Register_{_NO_IDENTIFIER.sub('_', name).upper()}"


def _render(name: str, stem: str, function: str, like: str) -> dict[str, bytes]:
    environment = template_environment()
    context = {"name": name, "stem": stem, "function": function}
    kind = like.lower()
    names = {
        f"{stem}.h": "op.h",
        f"{stem}.cc": f"{kind}.cc",
        f"{stem}.py": f"{kind}.py",
        f"{stem}_test.py": f"{kind}_test.py",
    }
    return {
        f"{_FOLDER}/{file}": environment.get_template(f"op/{template}.j2").render(context).encode()
        for file, template in names.items()
    }


def _render_entry(name: str, stem: str, function: str, like: str) -> str:
    types = ", ".join(f'"{kind}"' for kind in _TYPES.get(like, _OTHER_TYPES))
    lines = [
        "[[op]]",
        f'name = "{name}"',
        f'sources = ["{_FOLDER}/{stem}.cc"]',
        f'register = "tflite::{function}"',
        "version = 1",
        *([f"types = [{types}]"] if types else []),
        f'reference = "{_FOLDER}/{stem}.py"',
        f'test = "{_FOLDER}/{stem}_test.py"',
    ]
    return "\n".join(lines) + "\n"


def _add_entry(path: Path, entry: str) -> None:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    head = f"{text.rstrip()}\n\n" if text.strip() else ""
    whole = head + entry
    tomllib.loads(whole)
    write_if_changed(path, whole.encode())
