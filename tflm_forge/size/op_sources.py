"""Knows which operator a kernel source, a registration function or a parser belongs to, from the runtimes' catalogues.

It reads the two data files that travel with forge, and nothing that is installed: an ELF may be of any version.
"""

import functools
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tflm_forge
from tflm_forge.resources import bundled_dir

_TFLM_CATALOGUE = Path(tflm_forge.__file__).parent / "runtimes" / "tflm" / "catalogue.json"

_MANY = 8
"""A source that more ops need than this is everybody's."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|\d+")
_PARSERS = {"pool": ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")}
"""Parsers that serve several ops and are named after none: tensorflow/lite/core/api/flatbuffer_conversions.h."""


@dataclass(frozen=True, kw_only=True)
class OpSources:
    """Which ops a name stands for.

    Attributes:
        stems: ops by the stem of a source's name, without underscores ("poolingcommon").
        functions: op by registration function ("Register_CONV_2D_INT8").
        methods: op by the op resolver's Add method, without "Add" and in lower case ("conv2d").
    """

    stems: Mapping[str, frozenset[str]]
    functions: Mapping[str, str]
    methods: Mapping[str, str]

    def of_file(self, stem: str) -> frozenset[str]:
        """Return the ops whose kernels a source or header with this stem is for; empty when it is for many or none."""
        name = stem.lower()
        for candidate in (name, name.removesuffix("_common"), name.rpartition("_")[0]):
            ops = self.stems.get(candidate.replace("_", ""))
            if ops:
                return ops if len(ops) <= _MANY else frozenset()
        return frozenset()

    def of_function(self, name: str) -> frozenset[str]:
        """Return the op of a registration function or of a parser, by its unqualified name."""
        if name in self.functions:
            return frozenset((self.functions[name],))
        if name.startswith("Parse"):
            word = name.removeprefix("Parse").lower()
            op = self.methods.get(word)
            return frozenset((op,)) if op else frozenset(_PARSERS.get(word, ()))
        return frozenset()


def tell_apart(ops: Iterable[str], name: str) -> frozenset[str]:
    """Return which of some ops a function's name speaks of, as `AverageEval` of AVERAGE_POOL_2D; else all of them."""
    all_ops = frozenset(ops)
    words = {op: set(op.lower().split("_")) for op in all_ops}
    common = frozenset.intersection(*map(frozenset, words.values())) if words else frozenset()
    spoken = {word.lower() for word in _WORD.findall(name)}
    matched = {op: len(own - common) for op, own in words.items() if own - common and own - common <= spoken}
    best = max(matched.values(), default=0)
    told = frozenset(op for op, count in matched.items() if count == best)
    return told if len(told) == 1 else all_ops


@functools.cache
def load_op_sources() -> OpSources:
    """Read the catalogues of both runtimes."""
    stems: dict[str, set[str]] = {}
    functions: dict[str, str] = {}
    methods: dict[str, str] = {}
    for name, method, registrations, sources in (*_read_tflm(), *_read_bundled()):
        methods[method.removeprefix("Add").lower()] = name
        for function in registrations:
            functions[function.rpartition("::")[2]] = name
        for source in sources:
            stems.setdefault(Path(source).stem.lower().replace("_", ""), set()).add(name)
    return OpSources(stems={stem: frozenset(ops) for stem, ops in stems.items()}, functions=functions, methods=methods)


_Row = tuple[str, str, list[str], list[str]]


def _read_tflm() -> list[_Row]:
    plain: dict[str, Any] = json.loads(_TFLM_CATALOGUE.read_text(encoding="utf-8"))
    rows = []
    for op in plain["ops"]:
        own = [kernels["ops"][op["add_method"]] for kernels in plain["kernel_sets"].values()]
        special = [each["function"] for kernel in own for each in kernel["registrations"].values()]
        sources = [source for kernel in own for source in kernel["sources"]]
        rows.append((op["name"], op["add_method"], [op["function"], *special], sources))
    return rows


def _read_bundled() -> list[_Row]:
    table = tomllib.loads((bundled_dir() / "ops.toml").read_text(encoding="utf-8"))
    return [(op["name"], op["add_method"], [*op["registrations"].values()], op["sources"]) for op in table["op"]]
