"""The formatter behind DebugLog against the C library's."""

import subprocess

from tests.unit.firmware.conftest import Compile


def test_formats_as_the_c_library_does(compile_host: Compile) -> None:
    program = compile_host("host_format", ("debug_log",), ("host_format",))
    done = subprocess.run([program], capture_output=True, text=True, timeout=20, check=False)
    assert done.stdout == "log line 7\n%q\n"
    assert done.returncode == 0
