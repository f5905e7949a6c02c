"""Reads which ops a C++ source registers, whoever wrote it, without a compiler.

It finds calls of the Add methods of an op resolver and the N of MicroMutableOpResolver<N>. A call under a condition
of the preprocessor that only a compiler can decide counts as one that may be there.
"""

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.errors import UsageError

MAX_BYTES = 8 << 20
_MAX_CALL_CHARS = 2000
_MAX_INCLUDE_DEPTH = 4

_COMMENT_OR_TEXT = re.compile(
    r'//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z)|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
_PARENTHESIS_OR_TEXT = re.compile(rf"[()]|{_COMMENT_OR_TEXT.pattern}", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b[ \t]*(.*)$")
_CALL = re.compile(
    r"(?:(?<!\w)(?P<receiver>[A-Za-z_]\w*(?:\(\)|\[\w+\])?)(?:\s*(?P<access>\.|->)\s*|\s+))?"
    r"(?<![\w:])(?P<method>Add[A-Z]\w*)\s*\("
)
_CAPACITY = re.compile(r"\bMicroMutableOpResolver\s*<\s*([^<>;{}]{1,80}?)\s*>")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_NUMBER = re.compile(r"(\d+)[uUlL]*")
_NAME = re.compile(r"[A-Za-z_]\w*")
_TEXT = re.compile(r'"((?:\\.|[^"\\])*)"')
_BUILTIN = re.compile(r"\bBuiltinOperator_(\w+)")
# A word before an unqualified call makes it a declaration, unless it is one of these.
_NOT_A_TYPE = frozenset(("return", "else", "do", "and", "or", "not", "co_return"))


@dataclass(frozen=True, kw_only=True)
class AddCall:
    """One call that registers an op.

    Attributes:
        path: the source.
        line: where it stands.
        receiver: the resolver, as the source names it; empty inside a resolver's own class.
        method: the method ("AddConv2D").
        arguments: what is between the parentheses, without comments.
        is_certain: whether it is compiled whatever macros are defined.
    """

    path: Path
    line: int
    receiver: str
    method: str
    arguments: str
    is_certain: bool

    @property
    def text(self) -> str:
        """The call without its receiver."""
        return f"{self.method}({' '.join(self.arguments.split())})"

    @property
    def custom_name(self) -> str | None:
        """The name that AddCustom gets, None when it is no literal."""
        found = _TEXT.match(self.arguments.lstrip())
        return _unescape(found[1]) if found else None

    @property
    def enumerator(self) -> str:
        """The op that AddBuiltin gets ("CONV_2D"); empty when it names none."""
        found = _BUILTIN.search(self.arguments)
        return found[1] if found else ""

    @property
    def functions(self) -> tuple[str, ...]:
        """The names in the arguments, without namespaces: the registration function is one of them."""
        plain = _TEXT.sub("", self.arguments)
        return tuple(name for name in _NAME.findall(plain) if name not in ("tflite", "ops", "micro"))


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """One MicroMutableOpResolver<N>; `value` is None when N is not plain from the sources."""

    path: Path
    line: int
    text: str
    value: int | None


@dataclass(frozen=True, kw_only=True)
class ResolverSource:
    """What one source registers, and the capacities it and its own headers declare."""

    path: Path
    calls: tuple[AddCall, ...]
    capacities: tuple[Capacity, ...]


def read_resolver(path: Path) -> ResolverSource:
    """Read a C++ source that registers ops.

    Raises:
        UsageError: it can not be read.
    """
    texts = {path: _clean(_read(path))}
    _follow_includes(path, texts, 0)
    constants = "\n".join(text for text, _ in texts.values())
    capacities = tuple(
        Capacity(path=place, line=_line(text, found.start()), text=found[1], value=_evaluate(found[1], constants))
        for place, (text, _) in texts.items()
        for found in _CAPACITY.finditer(text)
        if found[1] != "tOpCount"  # the class itself
    )
    return ResolverSource(path=path, calls=tuple(_find_calls(path, *texts[path])), capacities=capacities)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path}: larger than {MAX_BYTES >> 20} MiB, no source of an op resolver")
    return data.decode("utf-8", errors="replace")


def _follow_includes(path: Path, texts: dict[Path, tuple[str, list[bool]]], depth: int) -> None:
    """Add the headers that lie beside a source and are included by name."""
    for name in _INCLUDE.findall(_read(path)) if depth < _MAX_INCLUDE_DEPTH else ():
        header = path.parent / name
        if header not in texts and header.is_file():
            texts[header] = _clean(_read(header))
            _follow_includes(header, texts, depth + 1)


def _clean(text: str) -> tuple[str, list[bool]]:
    """Return a source without comments and without what `#if 0` leaves out; and of each line whether it is certain."""
    plain = _COMMENT_OR_TEXT.sub(_blank_comment, text)
    lines, certain = [], []
    stack: list[_Branch] = []
    for line in plain.split("\n"):
        directive = _DIRECTIVE.match(line)
        if directive:
            _enter(stack, directive[1], directive[2].strip())
        lines.append(line if directive is None and (not stack or stack[-1].may_be_kept) else "")
        certain.append(not stack or stack[-1].is_certain)
    return "\n".join(lines), certain


@dataclass(kw_only=True)
class _Branch:
    """One open #if: whether the branch at hand is compiled, None when only a compiler knows; and one before it."""

    outer: "_Branch | None"
    kept: bool | None
    taken: bool | None

    def __post_init__(self) -> None:
        self.outer_may = self.outer is None or self.outer.may_be_kept
        self.outer_is = self.outer is None or self.outer.is_certain

    @property
    def may_be_kept(self) -> bool:
        """Whether its lines may be compiled."""
        return self.outer_may and self.kept is not False

    @property
    def is_certain(self) -> bool:
        """Whether its lines are compiled whatever macros are defined."""
        return self.outer_is and self.kept is True


def _enter(stack: list[_Branch], word: str, condition: str) -> None:
    if word in ("if", "ifdef", "ifndef"):
        verdict = _decide(condition) if word == "if" else None
        stack.append(_Branch(outer=stack[-1] if stack else None, kept=verdict, taken=verdict))
    elif word == "endif":
        del stack[-1:]
    elif stack:
        branch = stack[-1]
        verdict = _decide(condition) if word == "elif" else True
        if branch.taken is True or verdict is False:
            branch.kept = False
        else:
            branch.kept = None if branch.taken is None else verdict
        branch.taken = True if True in (branch.taken, verdict) and branch.taken is not None else branch.taken


def _decide(condition: str) -> bool | None:
    found = _NUMBER.fullmatch(condition) or {"true": "1", "false": "0"}.get(condition)
    return None if found is None else int(found if isinstance(found, str) else found[1]) != 0


def _blank_comment(match: "re.Match[str]") -> str:
    found = match[0]
    return re.sub(r"[^\n]", " ", found) if found.startswith(("//", "/*")) else found


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _find_calls(path: Path, text: str, certain: list[bool]) -> Iterator[AddCall]:
    literals = [(m.start(), m.end()) for m in _COMMENT_OR_TEXT.finditer(text)]
    breaks = [m.start() for m in re.finditer("\n", text)]
    closing = _match_parentheses(text)
    for found in _CALL.finditer(text):
        at = found.start("method")
        before = bisect.bisect_right(literals, (at, 0)) - 1
        if before >= 0 and at < literals[before][1]:
            continue
        receiver = found["receiver"] or ""
        if receiver and not found["access"]:
            if receiver not in _NOT_A_TYPE:
                continue  # a declaration: TfLiteStatus AddConv2D(...)
            receiver = ""
        end = closing.get(found.end() - 1)
        if end is None or end - found.end() > _MAX_CALL_CHARS:
            continue
        arguments = text[found.end() : end]
        line = bisect.bisect_left(breaks, at) + 1
        yield AddCall(
            path=path,
            line=line,
            receiver="".join(receiver.split()),
            method=found["method"],
            arguments=arguments,
            is_certain=certain[line - 1],
        )


def _match_parentheses(text: str) -> dict[int, int]:
    """Return where each parenthesis that is opened is closed; parentheses in literals are none."""
    opened: list[int] = []
    pairs: dict[int, int] = {}
    for found in _PARENTHESIS_OR_TEXT.finditer(text):
        if found[0] == "(":
            opened.append(found.start())
        elif found[0] == ")" and opened:
            pairs[opened.pop()] = found.start()
    return pairs


def _evaluate(words: str, sources: str) -> int | None:
    """Return the number that a template argument stands for: a literal, or a constant of the sources."""
    number = _NUMBER.fullmatch(words)
    if number:
        return int(number[1])
    name = words.rpartition("::")[2].strip()
    if not _NAME.fullmatch(name):
        return None
    values = set(re.findall(rf"(?:\b{name}\s*(?:=|\{{)|#\s*define\s+{name}\b)\s*\(?\s*(\d+)[uUlL]*\b", sources))
    return int(values.pop()) if len(values) == 1 else None


def _unescape(text: str) -> str:
    """Return the bytes that a string literal stands for, as text; forge writes octal escapes."""
    plain = re.sub(r"\\([0-7]{1,3})", lambda m: chr(int(m[1], 8) & 0xFF), text)
    plain = re.sub(r'\\(["\\\'?])', r"\1", plain)
    try:
        return plain.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return plain
