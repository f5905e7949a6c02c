"""A simulated STM32L476 for OpenOCD's remote_bitbang: two TAPs, a debug port, core registers, and flash.

Sources: IEEE 1149.1 (TAP states), ARM IHI 0031 (ADIv5: JTAG-DP, MEM-AP), ARMv7-M ARM chapter C1 (debug registers),
RM0351 sections 3.7 (flash registers), 48.6.1 (DBGMCU_IDCODE) and 49.2 (flash size),
OpenOCD's doc/manual/jtag/drivers/remote_bitbang.txt.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

L476_ID = 0x10076415
L452_ID = 0x10006462

_CPU_TAP_ID, _BOUNDARY_TAP_ID = 0x4BA00477, 0x06415041
_AHB_AP_ID, _CPU_ID = 0x24770011, 0x410FC241
_FLASH = 0x08000000
_FLASH_BYTES = 1 << 20
_PAGE_BYTES = 2048
_KEYR, _SR, _CR, _OPTR = 0x40022008, 0x40022010, 0x40022014, 0x40022020
_UNLOCKED, _PROTECTED = 0xFFEFF8AA, 0xFFEFF8BB  # RDP level 0 and 1, two banks

# The real configuration of the chip; without working memory (no code runs here), without waiting for its memory, and
# without what sets a probe's speed.
_CONFIG = """\
adapter driver remote_bitbang
remote_bitbang host {path}
remote_bitbang port 0
transport select jtag
gdb_port disabled
tcl_port disabled
telnet_port disabled
set WORKAREASIZE 0
source [find target/stm32l4x.cfg]
stm32l4x.cpu configure -event examine-end {{stm32l4x.dap memaccess 0}}
stm32l4x.cpu configure -event reset-start {{}}
stm32l4x.cpu configure -event reset-init {{}}
"""

# Each state's successors for TMS 0 and 1.
_NEXT = {
    "reset": ("idle", "reset"),
    "idle": ("idle", "select-dr"),
    "select-dr": ("capture-dr", "select-ir"),
    "select-ir": ("capture-ir", "reset"),
    **{
        f"{step}-{r}": (f"{zero}-{r}", f"{one}-{r}")
        for r in ("dr", "ir")
        for step, zero, one in (
            ("capture", "shift", "exit1"),
            ("shift", "shift", "exit1"),
            ("exit1", "pause", "update"),
            ("pause", "pause", "exit2"),
            ("exit2", "shift", "update"),
        )
    },
    "update-dr": ("idle", "select-dr"),
    "update-ir": ("idle", "select-dr"),
}
_IDCODE, _ABORT, _DPACC, _APACC = 0xE, 0x8, 0xA, 0xB
_OK = 0b010


@dataclass
class Memory:
    """The chip's memory as the debugger sees it."""

    chip_id: int = L476_ID
    is_locked: bool = False
    worn_address: int | None = None
    flash: bytearray = field(default_factory=lambda: bytearray(b"\xff" * _FLASH_BYTES))
    words: dict[int, int] = field(default_factory=dict)
    core: dict[int, int] = field(default_factory=dict)
    starts: int = 0
    _halted: bool = False
    _was_reset: bool = False
    _keys: int = 0

    def __post_init__(self) -> None:
        self.words |= {0xE000ED00: _CPU_ID, 0xE0002000: 0x260, 0xE0001000: 0x40000000, 0xE0042000: self.chip_id}
        self.words |= {0x1FFF75E0: _FLASH_BYTES // 1024, _CR: 1 << 31}
        self.words[_OPTR] = _PROTECTED if self.is_locked else _UNLOCKED

    def read(self, address: int, size: int) -> int:
        at = address - _FLASH
        if 0 <= at < _FLASH_BYTES:
            return int.from_bytes(self.flash[at : at + size], "little")
        word = self._read_word(address & ~3)
        return word >> 8 * (address & 3) & (1 << 8 * size) - 1

    def _read_word(self, address: int) -> int:
        if address == 0xE000EDF0:
            status = self.words.get(address, 0) & 0xFFFF | 1 << 16 | self._halted << 17 | self._was_reset << 25
            self._was_reset = False
            return status
        return self.words.get(address, 0)

    def write(self, address: int, size: int, value: int) -> None:
        at = address - _FLASH
        if 0 <= at < _FLASH_BYTES:
            if self.words[_CR] & 1:
                for i, byte in enumerate(value.to_bytes(size, "little")):
                    self.flash[at + i] &= byte if address + i != self.worn_address else 0
            return
        handler = {
            0xE000EDF0: self._control,
            0xE000EDF4: self._transfer,
            0xE000ED0C: self._restart,
            _KEYR: self._unlock,
            _SR: self._clear_status,
            _CR: self._control_flash,
        }.get(address)
        if handler is not None:
            handler(value)
            return
        shift = 8 * (address & 3)
        mask = (1 << 8 * size) - 1 << shift
        self.words[address & ~3] = self.words.get(address & ~3, 0) & ~mask | value << shift & mask

    def _control(self, value: int) -> None:
        if value >> 16 == 0xA05F:
            self.words[0xE000EDF0] = value & 0xFFFF
            self._halted = value & 3 == 3

    def _transfer(self, value: int) -> None:
        register = value & 0x7F
        if value >> 16 & 1:
            self.core[register] = self.words.get(0xE000EDF8, 0)
        else:
            self.words[0xE000EDF8] = self.core.get(register, 0)

    def _restart(self, value: int) -> None:
        if value >> 16 == 0x05FA and value & 4:
            self.starts += 1
            self._was_reset = True
            self._halted = bool(self.words.get(0xE000EDFC, 0) & 1)

    def _unlock(self, value: int) -> None:
        self._keys = (self._keys << 32 | value) & (1 << 64) - 1
        if self._keys == 0x45670123_CDEF89AB:
            self.words[_CR] &= ~(1 << 31)

    def _clear_status(self, value: int) -> None:
        self.words[_SR] = self.words.get(_SR, 0) & ~value

    def _control_flash(self, value: int) -> None:
        self.words[_CR] = value & ~(1 << 16)
        if not value & 1 << 16:
            return
        if self.is_locked:
            self.words[_SR] = 1 << 4
        elif value & 2:
            start = (value >> 3 & 0x1FF) * _PAGE_BYTES  # PNB and, above it, BKER
            self.flash[start : start + _PAGE_BYTES] = b"\xff" * _PAGE_BYTES


class DebugPort:
    """JTAG-DP and one MEM-AP; the result of a read is captured by the next scan."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.result = 0
        self._select = self._control = self._csw = self._tar = 0

    def scan(self, instruction: int, bits: int) -> None:
        value, register, is_read = bits >> 3, bits >> 1 & 3, bits & 1
        if instruction == _DPACC:
            self.result = self._port(register * 4, value, is_read)
        elif instruction == _APACC:
            self.result = self._access(self._select & 0xF0 | register * 4, value, is_read)

    def _port(self, register: int, value: int, is_read: int) -> int:
        if register == 4 and not is_read:
            self._control = value & 0x50000000
        elif register == 8 and not is_read:
            self._select = value
        return self._control | self._control << 1 if register == 4 and is_read else 0

    def _access(self, register: int, value: int, is_read: int) -> int:
        if self._select >> 24:
            return 0
        if register == 0x00 and not is_read:
            self._csw = value & ~0x20
        elif register == 0x04 and not is_read:
            self._tar = value
        elif register == 0x0C or register & 0xF0 == 0x10:
            return self._data(register, value, is_read)
        return {0x00: self._csw | 0x40, 0x04: self._tar, 0xF8: 0xE00FF003, 0xFC: _AHB_AP_ID}.get(register, 0)

    def _data(self, register: int, value: int, is_read: int) -> int:
        banked = register != 0x0C
        address = self._tar & ~15 | register & 12 if banked else self._tar
        size = 4 if banked else 1 << (self._csw & 3)
        shift = 8 * (address & 3)
        if not banked and self._csw & 0x10:
            self._tar += size
        if is_read:
            return self.memory.read(address, size) << shift & 0xFFFF_FFFF
        self.memory.write(address, size, value >> shift & (1 << 8 * size) - 1)
        return 0


class Chain:
    """Both TAPs of the chip: the boundary scan's gets TDI, the core's gives TDO."""

    def __init__(self, port: DebugPort) -> None:
        self.port = port
        self.state = "reset"
        self.shift = self.length = 0
        self.instruction, self.is_boundary_id = _IDCODE, True

    def rise(self, tms: int, tdi: int) -> None:
        """Clock once."""
        if self.state in ("shift-dr", "shift-ir"):
            self.shift = self.shift >> 1 | tdi << self.length - 1
        elif self.state == "capture-ir":
            self.shift, self.length = 0b00001_0001, 9
        elif self.state == "capture-dr":
            self._capture()
        self.state = _NEXT[self.state][tms]
        if self.state == "reset":
            self.instruction, self.is_boundary_id = _IDCODE, True
        elif self.state == "update-ir":
            self.instruction, self.is_boundary_id = self.shift & 15, self.shift >> 4 == 1
        elif self.state == "update-dr" and self.instruction in (_DPACC, _APACC):
            self.port.scan(self.instruction, self.shift & (1 << 35) - 1)

    def _capture(self) -> None:
        boundary, boundary_bits = (_BOUNDARY_TAP_ID, 32) if self.is_boundary_id else (0, 1)
        core, bits = {
            _IDCODE: (_CPU_TAP_ID, 32),
            _ABORT: (0, 35),
            _DPACC: (self.port.result << 3 | _OK, 35),
            _APACC: (self.port.result << 3 | _OK, 35),
        }.get(self.instruction, (0, 1))
        self.shift, self.length = boundary << bits | core, bits + boundary_bits


@contextlib.contextmanager
def serve(folder: Path, memory: Memory, *, is_powered: bool = True) -> Iterator[Path]:
    """Offer the chip on a Unix socket, and yield OpenOCD's configuration for it. A chip without power gives zeros.

    OpenOCD sends byte after byte: on a TCP socket every one would wait for an acknowledgement.
    """
    config = folder / "simulated.cfg"
    config.write_text(_CONFIG.format(path=folder / "jtag"), encoding="utf-8")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "jtag"))
        server.listen()
        thread = threading.Thread(target=_accept, args=(server, memory, is_powered), daemon=True)
        thread.start()
        yield config
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10.0)


def _accept(server: socket.socket, memory: Memory, is_powered: bool) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            _talk(connection, memory, is_powered)


def _talk(connection: socket.socket, memory: Memory, is_powered: bool) -> None:
    chain = Chain(DebugPort(memory))
    clock = 0
    while data := connection.recv(65536):
        answer = bytearray()
        for code in data:
            if 0x30 <= code <= 0x37:
                if code & 4 and not clock:
                    chain.rise(code >> 1 & 1, code & 1)
                clock = code & 4
            elif code == 0x52:
                answer.append(0x30 | (chain.shift & 1 if is_powered else 0))
            elif code == 0x51:
                return
        if answer:
            connection.sendall(answer)
