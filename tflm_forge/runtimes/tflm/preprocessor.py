"""Conditional compilation without a compiler: which lines of a C or C++ file may be compiled."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)
_CONTINUATION = re.compile(r"\\\r?\n")
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*)")
_INCLUDE = re.compile(r'["<]([^">]+)[">]')
_CONDITION_TOKEN = re.compile(r"defined|[A-Za-z_]\w*|\d+|&&|\|\||[!()]|==|!=|>=|<=|>|<")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, kw_only=True)
class Preprocessed:
    """A file's lines that may be compiled, without comments and literals' text.

    Attributes:
        code: the lines.
        includes: the paths of its include directives, as written.
        macros: for each macro it defines, the names in its body.
    """

    code: str
    includes: frozenset[str]
    macros: Mapping[str, set[str]]


def _strip(text: str) -> str:
    """Remove comments and the text of literals; include paths stay."""
    return _COMMENT_OR_STRING.sub(_blank, _CONTINUATION.sub(" ", text))


def _blank(match: "re.Match[str]") -> str:
    found = match.group(0)
    if found.startswith(("//", "/*")):
        return " " + "\n" * found.count("\n")
    start = match.string.rfind("\n", 0, match.start()) + 1
    if re.match(r"\s*#\s*include", match.string[start : match.start()]):
        return found
    return ' "" '


@dataclass(kw_only=True)
class _Branch:
    """One open #if: whether this branch is kept, and whether an earlier one was surely taken."""

    parent: bool
    keep: bool
    taken: bool


def preprocess(text: str, macros: Mapping[str, int | None]) -> Preprocessed:
    """Remove comments, literals' text and the branches that are surely not compiled.

    Args:
        text: a source or header.
        macros: value of each macro that is known, None for one known to be undefined; a condition on any
            other macro keeps all its branches.
    """
    kept: list[str] = []
    includes: set[str] = set()
    bodies: dict[str, set[str]] = {}
    stack: list[_Branch] = []
    for line in _strip(text).splitlines():
        directive = _DIRECTIVE.match(line)
        active = not stack or (stack[-1].parent and stack[-1].keep)
        if directive is None:
            if active:
                kept.append(line)
            continue
        word, rest = directive.groups()
        if word in ("if", "ifdef", "ifndef"):
            verdict = _decide(word, rest, macros)
            stack.append(_Branch(parent=active, keep=verdict is not False, taken=verdict is True))
        elif word == "elif" and stack:
            verdict = False if stack[-1].taken else _decide("if", rest, macros)
            stack[-1].keep = verdict is not False
            stack[-1].taken = stack[-1].taken or verdict is True
        elif word == "else" and stack:
            stack[-1].keep = not stack[-1].taken
        elif word == "endif" and stack:
            stack.pop()
        elif active and word == "include":
            path = _INCLUDE.search(rest)
            if path:
                includes.add(path.group(1))
        elif active and word == "define":
            name, *names = _NAME.findall(rest) or ("",)
            bodies.setdefault(name, set()).update(names)
    return Preprocessed(code="\n".join(kept), includes=frozenset(includes), macros=bodies)


def _decide(word: str, condition: str, macros: Mapping[str, int | None]) -> bool | None:
    """Return whether a condition holds; None when it depends on a macro that is not known."""
    if word in ("ifdef", "ifndef"):
        names = _NAME.findall(condition)
        if not names or names[0] not in macros:
            return None
        return (macros[names[0]] is not None) == (word == "ifdef")
    return _Condition(_CONDITION_TOKEN.findall(condition), macros).value()


class _Condition:
    """A three-valued evaluator for preprocessor conditions: true, false, not known."""

    def __init__(self, tokens: list[str], macros: Mapping[str, int | None]) -> None:
        self._tokens = tokens
        self._macros = macros
        self._at = 0

    def value(self) -> bool | None:
        number = self._either()
        return None if number is None or self._at != len(self._tokens) else bool(number)

    def _next(self) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else ""
        self._at += 1
        return token

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _either(self) -> int | None:
        left = self._both()
        while self._peek() == "||":
            self._next()
            right = self._both()
            left = 1 if left or right else (None if left is None or right is None else 0)
        return left

    def _both(self) -> int | None:
        left = self._compare()
        while self._peek() == "&&":
            self._next()
            right = self._compare()
            left = 0 if left == 0 or right == 0 else (None if left is None or right is None else 1)
        return left

    def _compare(self) -> int | None:
        left = self._single()
        if self._peek() in ("==", "!=", ">", "<", ">=", "<="):
            sign = self._next()
            right = self._single()
            if left is None or right is None:
                return None
            outcomes = {
                "==": left == right, "!=": left != right, ">": left > right,
                "<": left < right, ">=": left >= right, "<=": left <= right,
            }  # fmt: skip
            return int(outcomes[sign])
        return left

    def _single(self) -> int | None:
        token = self._next()
        if token == "!":
            inner = self._single()
            return None if inner is None else int(not inner)
        if token == "(":
            inner = self._either()
            self._next()
            return inner
        if token == "defined":
            name = self._next()
            if name == "(":
                name = self._next()
                self._next()
            return int(self._macros[name] is not None) if name in self._macros else None
        if token.isdigit():
            return int(token)
        if token in self._macros:
            return self._macros[token] or 0
        return None
