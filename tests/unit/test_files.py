"""Files are written whole or not at all, and only when they changed."""

from pathlib import Path

import pytest

from tflm_forge.files import write_if_changed


def test_unchanged_content_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    assert write_if_changed(path, b"one")
    before = path.stat().st_mtime_ns
    assert not write_if_changed(path, b"one")
    assert path.stat().st_mtime_ns == before
    assert write_if_changed(path, b"two")
    assert path.read_bytes() == b"two"


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(b"old")

    def fail(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write_if_changed(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]
