"""Reads what a C or C++ source defines, declares and uses, without a compiler.

Good enough to say which source files one function needs: names at namespace scope, the bodies' identifiers
and the includes, after conditional compilation. It knows no types and resolves no overloads; a name in doubt
counts as used, so that a file too many may be found, never one too few.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tflm_forge.runtimes.tflm.preprocessor import preprocess

_TOKEN = re.compile(r"[A-Za-z_]\w*|::|[{}()\[\];=<>,~:]")
_NAME = re.compile(r"[A-Za-z_]\w*")

_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
        alignas auto bool break case char class const constexpr const_cast continue default
        delete do double else enum explicit extern false float for friend goto if inline int
        long mutable namespace new noexcept nullptr operator override private protected
        public reinterpret_cast return short signed sizeof static static_cast struct switch
        template this true typedef typename union unsigned using virtual void volatile while
        """,
    )
)


_INTERNAL = frozenset(("static", "inline", "constexpr", "template"))


@dataclass(frozen=True, kw_only=True)
class Scan:
    """What one file holds.

    Attributes:
        includes: the paths of its include directives, as written.
        defined: functions and variables with external linkage that it defines; methods as "Class::name".
        declared: functions and variables that it declares at namespace scope.
        uses: for each function, class, variable, alias and macro that it has, the names it mentions.
    """

    includes: frozenset[str]
    defined: frozenset[str]
    declared: frozenset[str]
    uses: Mapping[str, frozenset[str]]

    def all_uses(self) -> frozenset[str]:
        """Return every name that anything in the file mentions."""
        return frozenset().union(*self.uses.values())


@dataclass(kw_only=True)
class _Found:
    defined: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    uses: dict[str, set[str]] = field(default_factory=dict)

    def note_uses(self, name: str, tokens: Iterable[str]) -> None:
        """Note what a function, class, variable, alias or macro mentions; a method's are its class's too."""
        names = {token for token in tokens if _NAME.fullmatch(token) and token not in _KEYWORDS}
        for part in filter(None, name.split("::")):
            self.uses.setdefault(part, set()).update(names - {part})


def scan_source(text: str, macros: Mapping[str, int | None]) -> Scan:
    """Read one source or header.

    Args:
        text: the file's text.
        macros: value of each macro that is known, None for one known to be undefined; a condition on any
            other macro keeps all its branches.
    """
    found = _Found()
    source = preprocess(text, macros)
    for name, names in source.macros.items():
        found.note_uses(name, names)
    _read_scope(_TOKEN.findall(source.code), found)
    return Scan(
        includes=source.includes,
        defined=frozenset(found.defined),
        declared=frozenset(found.declared),
        uses={name: frozenset(names) for name, names in found.uses.items()},
    )


def _read_scope(tokens: list[str], found: _Found) -> None:
    """Walk namespace scope: declarations end with ';', definitions with a body."""
    position = 0
    hidden = [False]
    statement: list[str] = []
    while position < len(tokens):
        token = tokens[position]
        position += 1
        if token == ";":
            _note_statement(statement, found, hidden=hidden[-1])
            statement = []
        elif token == "}":
            if len(hidden) > 1:
                hidden.pop()
            statement = []
        elif token != "{":
            statement.append(token)
        elif _opens_namespace(statement):
            names = [t for t in statement if t not in ("namespace", "inline", "::", "extern")]
            hidden.append(hidden[-1] or (not names and "namespace" in statement))
            statement = []
        else:
            end = _matching_brace(tokens, position)
            body = tokens[position : end - 1]
            _note_definition(statement, body, found, hidden=hidden[-1])
            position = end
            statement = [] if _is_function(statement) else [*statement, "{}"]


def _opens_namespace(statement: list[str]) -> bool:
    return "namespace" in statement or statement == ["extern"]


def _matching_brace(tokens: list[str], position: int) -> int:
    """Return the index after the brace that closes the one before `position`."""
    depth = 1
    while position < len(tokens) and depth:
        depth += {"{": 1, "}": -1}.get(tokens[position], 0)
        position += 1
    return position


def _is_class(statement: list[str]) -> bool:
    words = [t for t in _without_template(statement) if t not in ("typedef", "static", "const", "extern")]
    return bool(words) and words[0] in ("class", "struct", "union", "enum") and "(" not in words and "=" not in words


def _is_function(statement: list[str]) -> bool:
    """A function definition's head: a parameter list, and no '=' before it."""
    head = _without_template(statement)
    if "(" not in head or _is_class(statement):
        return False
    return "=" not in head[: head.index("(")] or "operator" in head[: head.index("(")]


def _without_template(statement: list[str]) -> list[str]:
    """Drop leading `template <...>`."""
    tokens = statement
    while tokens[:1] == ["template"]:
        depth = 0
        for index, token in enumerate(tokens[1:], start=1):
            depth += {"<": 1, ">": -1}.get(token, 0)
            if depth == 0:
                tokens = tokens[index + 1 :]
                break
        else:
            return []
    return tokens


def _note_definition(statement: list[str], body: list[str], found: _Found, *, hidden: bool) -> None:
    if _is_class(statement):
        found.note_uses(_class_name(statement), _class_uses(statement, body))
        return
    if not _is_function(statement):
        found.note_uses(_variable_name(_without_template(statement)), body)
        return
    name = _function_name(statement)
    found.note_uses(name, (*statement, *body))
    internal = hidden or any(t in _INTERNAL or t.startswith("__STATIC") for t in statement)
    if name and not internal:
        found.defined.add(name)


def _class_name(statement: list[str]) -> str:
    words = _without_template(statement)
    stop = words.index(":") if ":" in words else len(words)
    names = [t for t in words[:stop] if _NAME.fullmatch(t) and t not in _KEYWORDS]
    return names[-1] if names else ""


def _class_uses(statement: list[str], body: list[str]) -> Iterator[str]:
    """Names a class uses: its bases, its members' types, its inline bodies; not its methods' declarations."""
    yield from (t for t in statement[2:] if _NAME.fullmatch(t))
    position = 0
    part: list[str] = []
    while position < len(body):
        token = body[position]
        position += 1
        if token == ";":
            if "(" not in part:
                yield from (t for t in part if _NAME.fullmatch(t))
            part = []
        elif token == "{":
            end = _matching_brace(body, position)
            yield from (t for t in body[position : end - 1] if _NAME.fullmatch(t))
            position = end
            part = []
        else:
            part.append(token)


def _note_statement(statement: list[str], found: _Found, *, hidden: bool) -> None:
    words = _without_template(statement)
    if not words or words[0] == "friend" or _is_class(words):
        return
    if words[0] in ("using", "typedef"):
        names = [t for t in words if _NAME.fullmatch(t) and t not in _KEYWORDS]
        if names:
            found.note_uses(names[0] if words[0] == "using" and "=" in words else names[-1], names)
    elif not _is_function(words) and ("=" in words or "{}" in words):
        _note_variable(words, found, hidden=hidden)
    elif "(" in words:
        name = _function_name(words).rpartition("::")[2]
        if name:
            found.declared.add(name)
            found.note_uses(name, words)
    else:
        _note_plain_variable(words, found, hidden=hidden)


def _note_plain_variable(words: list[str], found: _Found, *, hidden: bool) -> None:
    name = _variable_name(words)
    typed = sum(1 for t in words if _NAME.fullmatch(t)) > 1
    found.note_uses(name, words)
    if "extern" in words:
        found.declared.add(name)
    elif name and typed and not hidden and "static" not in words:
        found.defined.add(name)


def _note_variable(words: list[str], found: _Found, *, hidden: bool) -> None:
    stop = min((words.index(mark) for mark in ("=", "{}") if mark in words), default=len(words))
    head = words[:stop]
    name = _variable_name(head)
    found.note_uses(name, words)
    if name and not hidden and "static" not in head and "constexpr" not in head:
        found.defined.add(name)


def _variable_name(words: list[str]) -> str:
    """The declared name: the last identifier before an array bound."""
    head = words[: words.index("[")] if "[" in words else words
    names = [t for t in head if _NAME.fullmatch(t) and t not in _KEYWORDS]
    return names[-1] if names else ""


def _function_name(statement: list[str]) -> str:
    """The name before the parameter list, with its class when it has one; empty when there is none."""
    words = _without_template(statement)
    for index, token in enumerate(words):
        if token != "(" or index == 0:
            continue
        name = words[index - 1]
        if name.startswith("__attribute") or not _NAME.fullmatch(name) or name in _KEYWORDS:
            continue
        before = words[index - 2 : index - 1]
        if before == ["~"]:
            return f"{name}::~{name}"
        if before == ["::"] and index >= 3 and _NAME.fullmatch(words[index - 3]):
            owner = words[index - 3]
            return name if owner[0].islower() else f"{owner}::{name}"
        return name
    return ""
