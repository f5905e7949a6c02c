"""A table as text: what the reports of a console, of a pull request and of a page have in common."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table: title, column heads, rows of cells, and which columns hold numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()
