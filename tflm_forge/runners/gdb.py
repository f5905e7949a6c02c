"""Flashes through any gdb server: OpenOCD's, pyOCD's, J-Link's, st-util's, Black Magic's, or QEMU's empty machine."""

from tflm_forge.proc import has_tool
from tflm_forge.runners import Capabilities, Command, FlashJob, Plan, Runner
from tflm_forge.runners._failures import Failure

TOOLS = ("gdb-multiarch", "arm-none-eabi-gdb")
RESET_WORDS = ("reset", "system_reset")
"""What servers call it: OpenOCD, pyOCD, J-Link, st-util; QEMU. Each refuses the other's, which does no harm."""

_CONNECT_TIMEOUT_S = 5
_ANSWER_TIMEOUT_S = 30
_IDENTIFY_TIMEOUT_S = 30.0
_FLASH_TIMEOUT_S = 240.0


def plan(job: FlashJob) -> Plan:
    """Return the command: load, compare every section, reset, and let the firmware run."""
    server = job.gdb_server or job.text("server") or "HOST:PORT"
    resets = (job.text("reset"),) if "reset" in job.settings else RESET_WORDS
    program = next((tool for tool in TOOLS if has_tool(tool)), TOOLS[0])
    connect = [
        "set tcp auto-retry off",
        f"set tcp connect-timeout {_CONNECT_TIMEOUT_S}",
        f"set remotetimeout {_ANSWER_TIMEOUT_S}",
        f"target extended-remote {server}",
    ]
    work = ["load", "compare-sections", *(f"monitor {word}" for word in resets), "detach"]
    chip = job.board.chip_id
    identify = None
    if chip is not None:
        # "detach" would let an empty chip run.
        words = [*connect, f"x/xw 0x{chip.address:08X}", "disconnect"]
        identify = Command(argv=(program, *_batch(words)), timeout_s=_IDENTIFY_TIMEOUT_S)
    return Plan(
        steps=(
            Command(
                argv=(program, *_batch([*connect, *work]), str(job.image.elf)),
                timeout_s=_FLASH_TIMEOUT_S,
                must_say="Transfer rate",
            ),
        ),
        identify=identify,
        chip_id=r"^0x[0-9a-f]{8}:\s+0x([0-9a-f]{8})",
    )


def _batch(words: list[str]) -> list[str]:
    return ["-nx", "-batch", *(part for word in words for part in ("-ex", word))]


RUNNER = Runner(
    name="gdb",
    title="gdb",
    tools=TOOLS,
    install="sudo apt-get install gdb-multiarch",
    can=Capabilities(verify=True),
    plan=plan,
    keys=("server", "reset"),
    failures=(
        Failure(
            kind="no server",
            pattern=r"Connection (?:refused|timed out)|could not connect|Name or service not known|No route to host",
            source="gdb 13 ser-tcp.c: the system's words for connect() and getaddrinfo()",
        ),
        Failure(kind="busy", pattern=r"Remote connection closed|Remote replied unexpectedly", source="gdb 13 remote.c"),
        Failure(
            kind="locked",
            pattern=r"Error (?:erasing|writing data to) flash",
            source="gdb 13 remote.c: vFlashErase, vFlashWrite; OpenOCD 0.12 with a simulated STM32L4 at RDP level 1",
        ),
        Failure(kind="verify", pattern=r"MIS-MATCHED!", source="gdb 13 remote.c: compare_sections_command"),
        Failure(
            kind="no target", pattern=r"Remote communication error|Ignoring packet error", source="gdb 13 remote.c"
        ),
    ),
)
