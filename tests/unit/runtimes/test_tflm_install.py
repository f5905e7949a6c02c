"""Installing trees: whole or not at all, one at a time, in place; fetching itself is replaced."""

import errno
import threading
import time
from pathlib import Path

import pytest

from tests.unit.runtimes.small_tree import MAKE_DOWNLOADS, write_package, write_tree
from tflm_forge.errors import ToolError, UsageError
from tflm_forge.runtimes.tflm import install as module
from tflm_forge.runtimes.tflm.fetch import hide_credentials, mirror_url
from tflm_forge.runtimes.tflm.install import (
    find_installed,
    install,
    list_installed,
    refresh,
    remove,
    runtime_dir,
    use_tree,
)
from tflm_forge.runtimes.tflm.pins import TFLM_COMMIT, TFLM_REPOSITORY, Pin


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORGE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    packages: list[str] = []

    def fetch(pin: Pin, folder: Path, *, mirror: str, patch: Path | None) -> str:
        packages.append(pin.package)
        write_package(folder, pin.package)
        return pin.commit or "9" * 40

    monkeypatch.setattr(module, "fetch_package", fetch)
    return packages


def leftovers() -> list[str]:
    return sorted(p.name for p in runtime_dir().iterdir() if p.name not in (".lock", "current"))


def test_nothing_is_installed_at_first() -> None:
    assert list_installed() == ()
    assert find_installed() is None


def test_an_installed_tree_is_found_with_its_sources(fetched: list[str]) -> None:
    done = install()
    assert done.name == TFLM_COMMIT[:12]
    assert sorted(fetched) == ["cmsis", "cmsis_nn", "flatbuffers", "gemmlowp", "kissfft", "ruy", "tflite-micro"]
    assert find_installed() == done
    assert find_installed(TFLM_COMMIT[:9]) == done
    commits = {s.repository: s.commit for s in done.sources}
    assert commits[TFLM_REPOSITORY] == TFLM_COMMIT
    assert commits["mborgerding/kissfft"] == "9" * 40
    assert (done.folder / "tflite-micro/LICENSE").read_text() == "licence"
    assert leftovers() == [done.name]


def test_a_second_install_fetches_nothing(fetched: list[str]) -> None:
    install()
    fetched.clear()
    install()
    assert fetched == []
    install(force=True)
    assert len(fetched) == 7


def test_another_commit_lies_beside_and_is_used(fetched: list[str]) -> None:
    first = install()
    second = install(commits={TFLM_REPOSITORY: "c" * 40})
    third = install(commits={"google/ruy": "d" * 40})
    assert len({first.name, second.name, third.name}) == 3
    assert find_installed() == third
    assert [s.override_of for s in third.sources if s.repository == "google/ruy"] == ["2" * 40]
    assert use_tree(second.name) == second
    assert find_installed() == second


@pytest.mark.parametrize("package", ["tflite-micro", "ruy"])
def test_a_failed_fetch_leaves_nothing(package: str, fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fetch = module.fetch_package

    def fail(pin: Pin, folder: Path, *, mirror: str, patch: Path | None) -> str:
        if pin.package == package:
            raise ToolError("unreachable")
        return fetch(pin, folder, mirror=mirror, patch=patch)

    monkeypatch.setattr(module, "fetch_package", fail)
    with pytest.raises(ToolError, match="unreachable"):
        install()
    assert leftovers() == []
    assert find_installed() is None


def test_a_full_disk_leaves_nothing_and_says_so(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(pin: Pin, folder: Path, *, mirror: str, patch: Path | None) -> str:
        folder.mkdir(parents=True)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "fetch_package", fill)
    with pytest.raises(ToolError, match="disk is full"):
        install()
    assert leftovers() == []


def test_a_failed_reinstall_keeps_the_old_tree(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    done = install()

    def fail(pin: Pin, folder: Path, *, mirror: str, patch: Path | None) -> str:
        raise ToolError("unreachable")

    monkeypatch.setattr(module, "fetch_package", fail)
    with pytest.raises(ToolError):
        install(force=True)
    assert find_installed() == done


def test_what_a_killed_install_left_is_ignored_then_removed(fetched: list[str]) -> None:
    killed = runtime_dir() / ".staging-killed/tree"
    write_package(killed / "tflite-micro", "tflite-micro")
    half = runtime_dir() / "abcdefabcdef"
    half.mkdir()
    assert list_installed() == ()
    install()
    assert not killed.exists()
    assert [tree.name for tree in list_installed()] == [TFLM_COMMIT[:12]]


def test_two_installs_at_once_end_with_one_tree(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fetch = module.fetch_package
    running: list[int] = []
    most: list[int] = []

    def slow(pin: Pin, folder: Path, *, mirror: str, patch: Path | None) -> str:
        running.append(1)
        most.append(len(running))
        time.sleep(0.01)
        commit = fetch(pin, folder, mirror=mirror, patch=patch)
        running.pop()
        return commit

    monkeypatch.setattr(module, "fetch_package", slow)
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(install().name)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert results == [TFLM_COMMIT[:12]] * 2
    assert max(most) == 1
    assert len(fetched) == 7


def test_removing_forgets_the_tree(fetched: list[str]) -> None:
    done = install()
    remove(done.name)
    assert not done.folder.exists()
    assert find_installed() is None
    assert leftovers() == []


def test_an_unknown_name_names_the_nearest(fetched: list[str]) -> None:
    done = install()
    with pytest.raises(UsageError) as caught:
        find_installed(done.name[:-2] + "xx")
    assert done.name in caught.value.hint


def test_a_wrong_flatbuffers_version_is_refused(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fetch = module.fetch_package

    def newer(pin: Pin, folder: Path, *, mirror: str, patch: Path | None) -> str:
        commit = fetch(pin, folder, mirror=mirror, patch=patch)
        base = folder / "include/flatbuffers/base.h"
        if base.is_file():
            base.write_text(base.read_text().replace("MINOR 2", "MINOR 9"))
        return commit

    monkeypatch.setattr(module, "fetch_package", newer)
    with pytest.raises(ToolError, match=r"needs flatbuffers 1\.2\.3; this one is 1\.9\.3"):
        install()
    assert leftovers() == []


def test_a_users_tree_is_used_in_place_and_never_removed(fetched: list[str], tmp_path: Path) -> None:
    root = write_tree(tmp_path / "mine")
    done = install(tree=root)
    assert fetched == []
    assert done.version == "tree-mine"
    assert done.in_place == str(root.resolve())
    assert (done.folder / "tflite-micro").resolve() == root.resolve()
    remove(done.name)
    assert (root / "LICENSE").is_file()


def test_packages_that_a_users_tree_lacks_are_fetched(fetched: list[str], tmp_path: Path) -> None:
    root = write_tree(tmp_path / "mine", without=(f"{MAKE_DOWNLOADS}/ruy", f"{MAKE_DOWNLOADS}/kissfft"))
    done = install(tree=root)
    assert sorted(fetched) == ["kissfft", "ruy"]
    assert (done.folder / "ruy/ruy/profiler/instrumentation.h").is_file()
    assert not (root / MAKE_DOWNLOADS / "ruy").exists()


def test_a_users_tree_is_read_again_when_it_changed(fetched: list[str], tmp_path: Path) -> None:
    root = write_tree(tmp_path / "mine")
    done = install(tree=root)
    assert refresh(done) == done
    before = (done.folder / module.CATALOGUE_NAME).read_text()
    kernel = root / "tensorflow/lite/micro/kernels/cumsum.cc"
    helper = kernel.with_name("cumsum_common.cc")
    include = '#include "tensorflow/lite/micro/helper2.h"\n'
    kernel.write_text(include + "TFLMRegistration Register_CUMSUM() { return Deep(); }")
    (root / "tensorflow/lite/micro/helper2.h").write_text("TFLMRegistration Deep();")
    helper.write_text('#include "tensorflow/lite/micro/helper2.h"\nTFLMRegistration Deep() { return R(); }')
    refresh(done)
    after = (done.folder / module.CATALOGUE_NAME).read_text()
    assert "cumsum_common.cc" in after
    assert "cumsum_common.cc" not in before


def test_a_users_tree_that_is_gone_is_named(fetched: list[str], tmp_path: Path) -> None:
    root = write_tree(tmp_path / "mine")
    done = install(tree=root)
    root.rename(tmp_path / "elsewhere")
    with pytest.raises(ToolError, match="is gone"):
        refresh(done)


@pytest.mark.parametrize(
    ("mirror", "url"),
    [
        ("", "https://github.com/google/ruy"),
        ("https://git.example.org/{owner}/{name}.git", "https://git.example.org/google/ruy.git"),
        ("git@example.org:{owner}-{name}", "git@example.org:google-ruy"),
        ("file:///srv/{name}", "file:///srv/ruy"),
        ("/srv/{owner}+{name}/repo", "/srv/google+ruy/repo"),
    ],
)
def test_mirror_patterns(mirror: str, url: str) -> None:
    assert mirror_url(mirror, "google/ruy") == url


def test_a_mirror_folder_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert mirror_url("mirrors/{name}", "google/ruy") == str(tmp_path / "mirrors/ruy")


@pytest.mark.parametrize("mirror", ["https://example.org/all", "https://example.org/{owner}", "x/{name}/{branch}"])
def test_mirror_patterns_that_can_not_work(mirror: str) -> None:
    with pytest.raises(UsageError, match="--mirror"):
        mirror_url(mirror, "google/ruy")


def test_credentials_are_hidden() -> None:
    assert hide_credentials("https://me:secret@example.org/x") == "https://example.org/x"
