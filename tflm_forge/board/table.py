"""Reads TOML tables key by key, and keeps every problem instead of stopping at the first."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tflm_forge.errors import UsageError
from tflm_forge.registry import unknown_name

ADDRESS_END = 1 << 32


class Problems:
    """What is wrong in one file: each with the key it is about, and what to do."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: list[tuple[str, str]] = []

    def add(self, key: str, problem: str, hint: str = "") -> None:
        """Note a problem of a key."""
        self._found.append((f"{key}: {problem}", hint))

    def __len__(self) -> int:
        """Return how many problems there are."""
        return len(self._found)

    def raise_any(self) -> None:
        """Raise all of them in one error, if there are any.

        Raises:
            UsageError: names the file, and every key with its problem.
        """
        if not self._found:
            return
        if len(self._found) == 1:
            problem, hint = self._found[0]
            raise UsageError(f"{self._path}: {problem}", hint=hint)
        raise UsageError(
            f"{self._path}: {len(self._found)} things are wrong in this board file",
            reasons=[problem + (f" ({hint.strip()})" if hint else "") for problem, hint in self._found],
            hint="`forge board check FILE` reads it again when you have changed it.",
        )


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Read a file of TOML.

    Raises:
        UsageError: it can not be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"{path}: can not read the {what}: {reason}", hint="`forge boards` lists names.") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}", hint="See the files in boards/.") from error


class Table:
    """One TOML table that is read key by key; what nobody has asked for is an unknown key.

    A value that is missing or wrong is noted as a problem, and a harmless one is returned in its place.
    """

    def __init__(self, problems: Problems, prefix: str, values: Mapping[str, Any]) -> None:
        self._problems = problems
        self._prefix = prefix
        self._values = values
        self._asked: set[str] = set()

    def problem(self, key: str, problem: str, hint: str = "") -> None:
        """Note a problem of a key of this table."""
        self._problems.add(f"{self._prefix}{key}", problem, hint)

    def unknown(self, key: str, kind: str, name: str, known: Iterator[str] | Mapping[str, Any] | set[str]) -> None:
        """Note that a name is not known, with the nearest ones."""
        error = unknown_name(kind, name, known)
        self.problem(key, error.message, error.hint)

    def text(self, key: str, pattern: re.Pattern[str] | None = None) -> str:
        """Return a text that is not empty; a wrong one is returned as it is, a missing one as ""."""
        value = self._take(key)
        if value is None:
            return ""
        if not isinstance(value, str) or not value.strip():
            self.problem(key, f"must be text, not {value!r}")
            return ""
        if pattern is not None and pattern.fullmatch(value) is None:
            self.problem(key, f"{value!r} does not match {pattern.pattern}")
        return value

    def number(self, key: str, *, least: int = 0, most: int = ADDRESS_END - 1, multiple_of: int = 1) -> int | None:
        """Return a whole number in a range; None when it is missing or wrong."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            self.problem(key, f"must be a whole number, not {value!r}")
        elif not least <= value <= most:
            self.problem(key, f"0x{value:X} is out of range 0x{least:X}..0x{most:X}")
        elif value % multiple_of:
            self.problem(key, f"0x{value:X} is misaligned: not a multiple of {multiple_of}")
        else:
            return value
        return None

    def value(self, key: str) -> str | int:
        """Return a text or a whole number."""
        value = self._take(key)
        if isinstance(value, bool) or not isinstance(value, str | int):
            self.problem(key, f"must be text or a whole number, not {value!r}")
            return ""
        return value

    def texts(self, key: str, pattern: re.Pattern[str] | None = None, like: str = "") -> tuple[str, ...]:
        """Return a list of texts; one that is left out is empty."""
        value = self._take(key) if key in self._values else []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.problem(key, f"must be a list of texts, not {value!r}")
            return ()
        for item in value:
            if pattern is not None and pattern.fullmatch(item) is None:
                self.problem(key, f"{item!r} is not {like}")
        return tuple(value)

    def table(self, key: str) -> "Table":
        """Return a table of this table; a missing or wrong one is empty."""
        value = self._take(key)
        if value is None:
            return Table(self._problems, f"{self._prefix}{key}.", {}).silenced()
        if not isinstance(value, dict):
            self.problem(key, f"must be a table [{key}], not {value!r}")
            return Table(self._problems, f"{self._prefix}{key}.", {}).silenced()
        return Table(self._problems, f"{self._prefix}{key}.", value)

    def tables(self, key: str) -> list["Table"]:
        """Return the tables of an array of tables; a missing or wrong one is empty."""
        value = self._take(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.problem(key, f"must be tables [[{key}]], not {value!r}")
            return []
        return [Table(self._problems, f"{self._prefix}{key}[{i}].", item) for i, item in enumerate(value)]

    def has(self, key: str) -> bool:
        """Return whether a key is there."""
        return key in self._values

    def rest(self) -> list[str]:
        """Return the keys nobody has asked for, in the file's order."""
        return [key for key in self._values if key not in self._asked]

    def silenced(self) -> "Table":
        """Return this table, which stands for one that is missing: what it lacks is no problem of its own."""
        self._problems = Problems(Path())
        return self

    def close(self) -> None:
        """Refuse the keys nobody asked for."""
        for key in self.rest():
            near = unknown_name("key", key, self._asked)
            self.problem(key, "unknown key", near.hint)

    def _take(self, key: str) -> Any:
        self._asked.add(key)
        if key not in self._values:
            self.problem(key, "is missing")
            return None
        return self._values[key]
