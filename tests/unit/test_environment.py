"""What `forge doctor` says of a machine: ports, folders, runtimes."""

from pathlib import Path

import pytest

from tests.unit.runtimes.small_tree import write_package, write_tree
from tflm_forge import environment
from tflm_forge.environment import Part, examine_environment, install_line
from tflm_forge.link.port import PortInfo
from tflm_forge.runtimes.tflm.install import install


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No programs, no ports, folders of its own."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("FORGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FORGE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(environment, "list_ports", lambda: ())


def parts() -> dict[str, Part]:
    return {part.name: part for part in examine_environment()}


def test_needed_programs_are_missing_and_others_optional() -> None:
    found = parts()
    assert {name for name, part in found.items() if part.state == "missing"} == {
        "arm-none-eabi-g++", "cmake", "ninja", "qemu-system-arm",
    }  # fmt: skip
    assert found["openocd"].state == "optional"
    assert found["serial ports"].state == "optional"
    assert install_line(tuple(found.values())).split()[:3] == ["sudo", "apt-get", "install"]


def test_a_port_that_may_not_be_opened_says_which_group_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "ttyACM0"
    device.touch()
    port = PortInfo(url=str(device), description="STLink", usb_id="0483:374B", serial_number="1")
    monkeypatch.setattr(environment, "list_ports", lambda: (port,))
    assert parts()[str(device)].state == "ok"
    access = environment.os.access
    monkeypatch.setattr(environment.os, "access", lambda path, mode: path != device and access(path, mode))
    part = parts()[str(device)]
    assert part.state == "problem"
    assert "0483:374B" in part.found
    assert part.remedy.startswith(f"sudo usermod -a -G {device.group()} ")


def test_a_folder_that_can_not_be_written_names_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment.os, "access", lambda path, mode: False)
    part = parts()["home"]
    assert part.state == "problem"
    assert "FORGE_HOME" in part.remedy


def test_installed_trees_and_what_is_left_of_one(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "tree")
    for package in ("flatbuffers", "gemmlowp", "ruy", "kissfft", "cmsis", "cmsis_nn"):
        write_package(root / "third_party" / package, package)
    tree = install(tree=root)
    (tree.folder.parent / "half").mkdir()
    found = parts()
    assert found[f"tflm {tree.name}"].state == "ok"
    assert "in use" in found[f"tflm {tree.name}"].found
    assert found["tflm half"].state == "problem"
    assert "--force" in found["tflm half"].remedy
    (tree.folder / "tflite-micro").unlink()
    gone = parts()[f"tflm {tree.name}"]
    assert gone.state == "problem"
    assert "forge runtime remove" in gone.remedy
