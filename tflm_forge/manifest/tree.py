"""YAML text as a tree of mappings, lists and scalars that know their lines.

Events are read one by one: nothing is constructed, no alias is followed, depth and size are bounded, whatever a file
holds.
"""

import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from tflm_forge.errors import UsageError

MAX_BYTES = 4 * 1024 * 1024
"""More than any op set takes: an op is about 300 bytes, and TFLM has some 110."""

_MAX_DEPTH = 16
# libyaml's parser where the package has it: a tenth of the time.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Scalar(NamedTuple):
    """A value: its text, and whether it stands without quotes."""

    line: int
    text: str
    is_plain: bool

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands behind the key."""
        return self.is_plain and self.text in ("", "~", "null", "Null", "NULL")


class Listing(NamedTuple):
    """A list."""

    line: int
    items: "tuple[Node, ...]"


class Mapped(NamedTuple):
    """Keys and their values, each key with its line."""

    line: int
    entries: "Mapping[str, tuple[int, Node]]"


Node = Scalar | Listing | Mapped


class _TreeError(Exception):
    """What is wrong, and in which line."""

    def __init__(self, line: int, words: str) -> None:
        super().__init__(words)
        self.line = line
        self.words = words


def parse_tree(data: bytes, shown: str) -> Node:
    """Parse a YAML document.

    Args:
        data: the file's bytes.
        shown: what errors call the file.

    Raises:
        UsageError: names line and problem: not UTF-8, not YAML, a key twice, an alias, a tag, several documents.
    """
    if len(data) > MAX_BYTES:
        raise UsageError(f"{shown}: {len(data):,} bytes, more than any manifest has ({MAX_BYTES:,})")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{shown}:{line}: not UTF-8 text") from error
    try:
        loader = _LOADER(text)
        try:
            return _read_document(loader)
        finally:
            loader.dispose()
    except _TreeError as error:
        raise UsageError(f"{shown}:{error.line}: {error.words}") from error
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise UsageError(f"{shown}:{line}: not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{shown}: not YAML: {' '.join(str(error).split())}") from error
    except (ValueError, OverflowError, RecursionError) as error:
        # PyYAML's own parser: an escape outside Unicode; deep nesting, which libyaml counts itself.
        raise UsageError(f"{shown}: not YAML: {error}") from error


def checksum(node: Node, *, without: str) -> int:
    """Return the CRC-32 of what a tree says, whatever its layout, comments and order of keys.

    Args:
        node: the tree.
        without: key of the top mapping to leave out.
    """
    return zlib.crc32(json.dumps(_plain(node, without), separators=(",", ":")).encode())


def _plain(node: Node, without: str = "") -> Any:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Listing):
        return [_plain(item) for item in node.items]
    return {key: _plain(value) for key, (_, value) in sorted(node.entries.items()) if key != without}


def find_line(node: Node, path: str) -> int:
    """Return the line of a key by its path ("ops[2].version"), or of the nearest key above it that is there."""
    line = node.line
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if index and isinstance(node, Listing) and int(index) < len(node.items):
            node = node.items[int(index)]
            line = node.line
        elif name and isinstance(node, Mapped) and name in node.entries:
            line, node = node.entries[name]
        else:
            break
    return line


def _read_document(loader: Any) -> Node:
    found: Node | None = None
    while loader.check_event():
        event = loader.get_event()
        if isinstance(event, yaml.DocumentStartEvent):
            if found is not None:
                raise _TreeError(_line(event), "a second document: one file is one manifest")
            found = _read_node(loader.get_event(), loader.get_event, 0)
    return found if found is not None else Scalar(line=1, text="", is_plain=True)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _read_node(event: Any, get_event: Callable[[], Any], depth: int) -> Node:
    line = event.start_mark.line + 1
    kind = type(event)
    if event.anchor is not None:
        raise _TreeError(line, "anchors and aliases are not taken: write the value out")
    if event.tag is not None:
        raise _TreeError(line, f"tag {event.tag!r} is not taken")
    if kind is yaml.ScalarEvent:
        return Scalar(line, event.value, not event.style)
    if depth >= _MAX_DEPTH:
        raise _TreeError(line, f"nested deeper than {_MAX_DEPTH} levels")
    if kind is yaml.SequenceStartEvent:
        items = []
        while type(inner := get_event()) is not yaml.SequenceEndEvent:
            items.append(_read_node(inner, get_event, depth + 1))
        return Listing(line, tuple(items))
    entries: dict[str, tuple[int, Node]] = {}
    while type(inner := get_event()) is not yaml.MappingEndEvent:
        key = _read_node(inner, get_event, depth + 1)
        if not isinstance(key, Scalar):
            raise _TreeError(key.line, "a key must be text")
        if key.text in entries:
            raise _TreeError(key.line, f"key {key.text!r} stands here a second time")
        entries[key.text] = key.line, _read_node(get_event(), get_event, depth + 1)
    return Mapped(line, entries)


def tree_of(value: Any) -> Node:
    """Return the tree of plain values: what reading their YAML gives, but for the lines."""
    if isinstance(value, Mapping):
        return Mapped(line=0, entries={str(key): (0, tree_of(item)) for key, item in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, str):
        return Listing(line=0, items=tuple(tree_of(item) for item in value))
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return Scalar(line=0, text=text, is_plain=not isinstance(value, str))
