"""Names of symbols for a person: C++ names without parameters, template arguments and unnamed namespaces.

Only names are read, never types, so that the work and the result stay in proportion to the symbol's length whatever it
holds. Grammar: Itanium C++ ABI, 5.1 "External names (a.k.a. mangling)".
"""

from functools import lru_cache

_SPECIAL = {
    "TV": "vtable for ",
    "TT": "VTT for ",
    "TI": "typeinfo for ",
    "TS": "typeinfo name for ",
    "GV": "guard variable for ",
}
_STANDARD = {"t": "std", "a": "std::allocator", "b": "std::basic_string", "s": "std::string", "i": "std::istream"}
_STANDARD |= {"o": "std::ostream", "d": "std::iostream"}
_OPERATORS = {"nw": " new", "na": " new[]", "dl": " delete", "da": " delete[]", "eq": "==", "ne": "!=", "lt": "<"}
_OPERATORS |= {"gt": ">", "le": "<=", "ge": ">=", "aS": "=", "pL": "+=", "mI": "-=", "pl": "+", "mi": "-", "ml": "*"}
_OPERATORS |= {"dv": "/", "ls": "<<", "rs": ">>", "cl": "()", "ix": "[]", "pt": "->", "nt": "!", "pp": "++", "mm": "--"}
_OPENS = frozenset("NIXJFZ")


@lru_cache(maxsize=4096)
def readable_symbol(symbol: str) -> str:
    """Return `tflite::Eval.lto_priv.1` for `_ZN6tflite12_GLOBAL__N_14EvalEv.lto_priv.1`; a name of C as it is.

    A mangled name that is not understood comes back as it is.
    """
    if not symbol.startswith("_Z"):
        return symbol
    mangled, dot, clone = symbol.partition(".")
    try:
        return f"{_Reader(mangled).encoding()}{dot}{clone}"
    except (ValueError, IndexError, RecursionError):
        return symbol


class _Reader:
    """Reads one mangled name from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 2

    def encoding(self) -> str:
        """Read a whole symbol behind its `_Z`; parameters are left."""
        start = self._text[self._at : self._at + 2]
        if start in _SPECIAL:
            self._at += 2
            return _SPECIAL[start] + self._name()
        if start in ("Th", "Tv"):  # offsets, each with an underscore behind
            self._at += 2
            for _ in range(1 if start == "Th" else 2):
                self._at = self._text.index("_", self._at) + 1
            return f"thunk to {self.encoding()}"
        return self._name()

    def _name(self) -> str:
        here = self._text[self._at]
        if here == "N":
            self._at += 1
            return self._nested()
        if here == "Z":
            self._at += 1
            outer = self.encoding()
            self._skip_to_end()
            if self._take("s"):
                return f"{outer}::text"
            return f"{outer}::{self._name()}"
        parts = [self._standard()] if here == "S" else []
        if self._text[self._at : self._at + 1] != "I":
            parts.append(self._unqualified(""))
        self._skip_arguments()
        return _join(parts)

    def _nested(self) -> str:
        while self._text[self._at] in "rVKRO":
            self._at += 1
        parts: list[str] = []
        while not self._take("E"):
            here = self._text[self._at]
            if here == "I":
                self._skip_arguments()
            elif here == "S":
                parts.append(self._standard())
            elif here == "T":
                self._at = self._text.index("_", self._at) + 1
            else:
                parts.append(self._unqualified(parts[-1] if parts else ""))
        return _join(parts)

    def _unqualified(self, owner: str) -> str:
        self._take("L")
        here = self._text[self._at : self._at + 2]
        if here[0].isdigit():
            name = self._source_name()
        elif here[0] in "CD" and here[1].isdigit():
            self._at += 2
            name = owner if here[0] == "C" else f"~{owner}"
        elif here == "Ul":
            self._at += 2
            self._skip_to_end()
            self._at = self._text.index("_", self._at) + 1
            name = "lambda"
        elif here == "Ut":
            self._at = self._text.index("_", self._at) + 1
            name = "unnamed"
        elif here in _OPERATORS:
            self._at += 2
            name = f"operator{_OPERATORS[here]}"
        else:
            raise ValueError(here)
        while self._take("B"):
            self._source_name()
        return name

    def _source_name(self) -> str:
        length = self._number()
        name = self._text[self._at : self._at + length]
        if not length or len(name) < length:
            raise ValueError(length)
        self._at += length
        return "" if name.startswith("_GLOBAL__N") else name

    def _standard(self) -> str:
        """Read a substitution; one that repeats an earlier part of the name is left out."""
        letter = self._text[self._at + 1]
        if letter in _STANDARD:
            self._at += 2
            return _STANDARD[letter]
        self._at = self._text.index("_", self._at) + 1
        return ""

    def _number(self) -> int:
        start = self._at
        while self._text[self._at : self._at + 1].isdigit():
            self._at += 1
        return int(self._text[start : self._at])

    def _take(self, letter: str) -> bool:
        if self._text[self._at : self._at + 1] != letter:
            return False
        self._at += 1
        return True

    def _skip_arguments(self) -> None:
        if self._take("I"):
            self._skip_to_end()

    def _skip_to_end(self) -> None:
        """Go behind the E that ends what is open; names are jumped over, as they may hold any letter."""
        depth = 1
        while depth:
            here = self._text[self._at]
            if here.isdigit():
                length = self._number()
                self._at += length
            elif here == "S":
                self._standard()
            elif here == "T":
                self._at = self._text.index("_", self._at) + 1
            elif here == "L":
                self._skip_literal()
            else:
                depth += (here in _OPENS) - (here == "E")
                self._at += 1

    def _skip_literal(self) -> None:
        self._at += 1
        if self._text.startswith("_Z", self._at):
            self._at += 2
            self._skip_to_end()
            return
        if self._text[self._at].isdigit():
            self._source_name()
        elif self._take("N"):
            self._skip_to_end()
        self._at = self._text.index("E", self._at) + 1


def _join(parts: list[str]) -> str:
    return "::".join(part for part in parts if part)
