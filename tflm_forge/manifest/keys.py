"""Reads the keys of a YAML mapping one by one; whatever is wrong is refused with its line and key."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tflm_forge.errors import UsageError
from tflm_forge.manifest.tree import Listing, Mapped, Node, Scalar
from tflm_forge.registry import unknown_name

_WHOLE_NUMBER = re.compile(r"[0-9]{1,10}")
_MOST = 0xFFFFFFFF
_DECIMAL_NUMBER = re.compile(r"[-+]?[0-9]{1,15}(\.[0-9]{1,15})?")
_WORDS = {"true": True, "True": True, "false": False, "False": False}
_Value = TypeVar("_Value")


class Keys:
    """One mapping of a manifest.

    Args:
        shown: what errors call the file.
        path: the mapping's own key ("ops[2]"); empty for the top.
        node: what stands there.
        line: where that key stands.
    """

    def __init__(self, shown: str, path: str, node: Node, line: int) -> None:
        self._shown = shown
        self._path = path
        self._line = line
        if not isinstance(node, Mapped):
            raise self.error("", "must be keys with values")
        self._entries = node.entries
        self._asked: set[str] = set()

    def error(self, key: str, problem: str, *, hint: str = "") -> UsageError:
        """Build the error for a key, or for the mapping itself when the key is empty."""
        line = self._entries[key][0] if key and key in self._entries else self._line
        path = self._name(key) if key else self._path
        return UsageError(f"{self._shown}:{line}: {path + ': ' if path else ''}{problem}", hint=hint)

    def has(self, key: str) -> bool:
        """Return whether a key stands here with a value."""
        return self._find(key) is not None

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; without a default the key must be there."""
        return self._scalar(key, default, lambda text: text, "text")

    def number(self, key: str, *, least: int = 0) -> int | None:
        """Return a whole number, None when the key is absent."""
        if not self.has(key):
            return None
        value = self._scalar(key, None, lambda t: int(t) if _WHOLE_NUMBER.fullmatch(t) else None, "a whole number")
        if not least <= value <= _MOST:
            raise self.error(key, f"{value} is out of the range {least} to {_MOST}")
        return value

    def needed_number(self, key: str, *, least: int = 0) -> int:
        """Return a whole number that must be there."""
        value = self.number(key, least=least)
        if value is None:
            raise self._missing(key)
        return value

    def decimal(self, key: str) -> float | None:
        """Return a number with or without a fraction, None when the key is absent."""
        if not self.has(key):
            return None
        return self._scalar(key, None, lambda t: float(t) if _DECIMAL_NUMBER.fullmatch(t) else None, "a number")

    def flag(self, key: str) -> bool | None:
        """Return true or false, None when the key is absent."""
        return self._scalar(key, None, _WORDS.get, "true or false") if self.has(key) else None

    def matching(self, key: str, pattern: str, words: str) -> str:
        """Return a text of a form, empty when the key is absent."""
        return self._scalar(key, "", lambda text: text if re.fullmatch(pattern, text) else None, words)

    def choice(self, key: str, allowed: Sequence[str], default: str) -> str:
        """Return one of the allowed words."""
        words = f"one of {', '.join(allowed)}"
        return self._scalar(key, default, lambda text: text if text in allowed else None, words)

    def mapping(self, key: str) -> "Keys | None":
        """Return the mapping behind a key, None when the key is absent."""
        node = self._find(key)
        return None if node is None else Keys(self._shown, self._name(key), node, self._entries[key][0])

    def mappings(self, key: str) -> "Iterator[Keys]":
        """Yield the mappings of a list; none when the key is absent."""
        for index, item in enumerate(self._items(key)):
            path = f"{self._name(key)}[{index}]"
            yield Keys(self._shown, path, item, item.line)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the texts of a list; none when the key is absent."""
        found = []
        for index, item in enumerate(self._items(key)):
            if not isinstance(item, Scalar):
                raise UsageError(f"{self._shown}:{item.line}: {self._name(key)}[{index}]: must be text")
            found.append(item.text)
        return tuple(found)

    def names(self) -> tuple[str, ...]:
        """Return all keys."""
        return tuple(self._entries)

    def refuse_rest(self) -> None:
        """Refuse keys that nobody has asked for."""
        for key in self._entries:
            if key not in self._asked:
                unknown = unknown_name("key", key, self._asked)
                raise self.error(key, unknown.message, hint=unknown.hint)

    def _name(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def _find(self, key: str) -> Node | None:
        self._asked.add(key)
        _, node = self._entries.get(key, (0, None))
        return None if node is None or (isinstance(node, Scalar) and node.is_empty) else node

    def _missing(self, key: str) -> UsageError:
        if key in self._entries:
            return self.error(key, "has no value")
        return self.error("", f"key {key!r} is missing")

    def _items(self, key: str) -> tuple[Node, ...]:
        node = self._find(key)
        if node is None:
            return ()
        if not isinstance(node, Listing):
            raise self.error(key, "must be a list")
        return node.items

    def _scalar(self, key: str, default: _Value | None, read: Callable[[str], _Value | None], words: str) -> _Value:
        node = self._find(key)
        if node is None:
            if default is None:
                raise self._missing(key)
            return default
        value = read(node.text) if isinstance(node, Scalar) else None
        if value is None:
            shown = f", not {node.text!r}" if isinstance(node, Scalar) else ""
            raise self.error(key, f"must be {words}{shown}")
        return value
