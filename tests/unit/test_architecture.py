"""The rooms and doors of the package: which module may import which, read with ast."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "tflm_forge"

# From the lowest room to the highest: a module imports only from its own level or from lower ones.
LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"errors", ""}),
    frozenset({"proc", "resources", "registry", "files", "objects"}),
    frozenset({"ops", "model", "board", "config"}),
    frozenset({"doctor"}),
    frozenset({"runtimes"}),
    frozenset({"manifest", "elf"}),
    frozenset({"generate", "scaffold", "toolchains", "runners", "link", "size"}),
    frozenset({"environment", "gates", "verify", "arena", "reports", "build", "versus", "costs", "explain"}),
    frozenset({"console"}),
    frozenset({"commands", "cli", "__main__"}),
)

DOORS = {
    "typer": {"cli.py", "commands/"},
    "rich": {"console.py"},
    "subprocess": {"proc.py"},
    "serial": {"link/port.py"},
    "elftools": set(),
    "jinja2": {"generate.py", "reports/html.py"},
    "yaml": {"manifest/"},
}


def _modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if "bundled" not in p.relative_to(PACKAGE).parts[:1])


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _room(name: str) -> str:
    return name.removeprefix("tflm_forge").lstrip(".").split(".")[0]


def _level(room: str) -> int:
    return next(i for i, rooms in enumerate(LEVELS) if room in rooms)


@pytest.mark.parametrize("path", _modules(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_module_keeps_its_place(path: Path) -> None:
    relative = path.relative_to(PACKAGE)
    own = relative.parts[0].removesuffix(".py").replace("__init__", "")
    for name in _imports(path):
        top = name.split(".")[0]
        if top == "tflm_forge":
            module = PACKAGE / Path(*name.split(".")[1:])
            if name.count(".") and not (module.exists() or module.with_suffix(".py").exists()):
                continue  # a name inside a module, whose module has been yielded before
            assert _level(_room(name)) <= _level(own), f"{relative} imports {name}, which is a higher room"
        for door, allowed in DOORS.items():
            if top == door:
                assert any(relative.as_posix().startswith(a) for a in allowed), f"{relative} imports {door}"


def test_every_module_is_in_a_room() -> None:
    rooms = {p.relative_to(PACKAGE).parts[0].removesuffix(".py").replace("__init__", "") for p in _modules()}
    known = frozenset().union(*LEVELS)
    assert rooms <= known, f"rooms without a level: {rooms - known}"
