"""Other programs: missing, failing, slow, and never left behind."""

import os
import sys
import time
from pathlib import Path

import pytest

from tflm_forge.errors import ToolError
from tflm_forge.proc import find_tool, run, start


def test_missing_tool_says_how_to_install_it() -> None:
    with pytest.raises(ToolError) as caught:
        find_tool("arm-none-eabi-no-such-tool")
    assert "arm-none-eabi-no-such-tool is not installed" in caught.value.message
    assert "apt-get install gcc-arm-none-eabi" in caught.value.hint
    assert caught.value.exit_code == 4


def test_failure_shows_command_status_last_lines_and_log(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    with pytest.raises(ToolError) as caught:
        run([sys.executable, "-c", "print('the cause'); raise SystemExit(3)"], timeout_s=20, log=log)
    assert "failed with status 3" in caught.value.message
    assert "the cause" in caught.value.hint
    assert str(log) in caught.value.hint
    assert "the cause" in log.read_text()


def test_slow_program_is_stopped_with_its_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = (
        "import subprocess, sys, time, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(pid_file)!r}).write_text(str(child.pid))\n"
        "time.sleep(60)"
    )
    with pytest.raises(ToolError, match="did not finish within"):
        run([sys.executable, "-c", script], timeout_s=2)
    _expect_gone(int(pid_file.read_text()))


def test_leaving_a_started_program_ends_it() -> None:
    with start([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        pid = process.pid
        os.kill(pid, 0)
    _expect_gone(pid)


def _expect_gone(pid: int) -> None:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return
        if state == "Z":
            return
        time.sleep(0.02)
    pytest.fail(f"process {pid} is still there")
