"""Options of the tests with a real board: `pytest tests/hardware --board X --port P [--runner R]`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds, Done
from tflm_forge.board import Board, load_board
from tflm_forge.link.session import Session, open_session

WHY_NOT = "no board: pytest tests/hardware --board NAME --port URL [--runner NAME]"
MODEL = EXAMPLES / "digits" / "digits.tflite"

_OPTIONS = {
    "board": "name of the board, or path of its board file",
    "port": "serial port or pyserial URL on which the board answers",
    "runner": "how to flash it; without one it must run the firmware of examples/digits, built for it",
    "serial-number": "of the probe, when several are connected",
    "gdb-server": "HOST:PORT, for runner gdb",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hardware", "tests with a real board")
    for name, words in _OPTIONS.items():
        group.addoption(f"--{name}", dest=f"hardware_{name.replace('-', '_')}", metavar="X", help=words)


def _option(config: pytest.Config, name: str) -> str | None:
    value: str | None = config.getoption(f"hardware_{name}", default=None)
    return value


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _option(config, "board") and _option(config, "port"):
        return
    for item in items:
        if Path(item.path).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.skip(reason=WHY_NOT))


@dataclass(frozen=True)
class Lab:
    """The board on the table, and the firmware for it."""

    builds: Builds
    name: str
    board: Board
    port: str
    runner: str | None
    where: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """The folder of the firmware."""
        return self.builds.place(MODEL, self.board.name)

    def flash(self, target: Path) -> Done:
        """Flash firmware; tests that need this are skipped without a runner."""
        if self.runner is None:
            pytest.skip("needs --runner")
        return self.builds.run(
            "flash", target, "--board", self.name, "--runner", self.runner, "--port", self.port, *self.where, "--json"
        )

    def open(self) -> Session:
        """Open a session; `connect` is still to be called."""
        return open_session(self.port, baud=self.board.baud)


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest, builds: Builds) -> Iterator[Lab]:
    """Yield the board; at the end it runs the good firmware again."""
    config = request.config
    name, port = _option(config, "board"), _option(config, "port")
    assert name is not None
    assert port is not None
    where: list[str] = []
    for option in ("serial_number", "gdb_server"):
        if value := _option(config, option):
            where += [f"--{option.replace('_', '-')}", value]
    found = Lab(
        builds=builds,
        name=name,
        board=load_board(name),
        port=port,
        runner=_option(config, "runner"),
        where=tuple(where),
    )
    builds.build_into(found.folder, MODEL, name)
    if found.runner is not None:
        assert found.flash(found.folder).returncode == 0
    yield found
    if found.runner is not None:
        assert found.flash(found.folder).returncode == 0
