"""Chips without a QEMU machine: an emulated core (Unicorn) with the registers that a driver uses, as manuals have them.

A chip answers with its ready bits when its clocks are turned on, takes the bytes of its UART, and knows from its
registers alone which clock it made and at which rate it sends. Addresses, fields and values at reset are those of the
vendors' SVD and header files: cmsis-svd-data (STM32F407, F446, F401, F7x6, H743x, L4R5, L4x6, nrf52840, rp2040),
cmsis_device_u5 (stm32u575xx.h), pico-sdk (src/rp2350/hardware_regs) and Teensy's imxrt.h.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile
from unicorn import UC_ARCH_ARM, UC_MODE_MCLASS, UC_MODE_THUMB, Uc
from unicorn.arm_const import (
    UC_ARM_REG_MSP,
    UC_CPU_ARM_CORTEX_M0,
    UC_CPU_ARM_CORTEX_M4,
    UC_CPU_ARM_CORTEX_M7,
    UC_CPU_ARM_CORTEX_M33,
)

from tflm_forge.board import Board

TIMEOUT_S = 60
PAGE = 0x1000
PRIVATE_BUS = (0xE0000000, 0x100000)
CPUS = {
    "cortex-m0plus": UC_CPU_ARM_CORTEX_M0,
    "cortex-m4f": UC_CPU_ARM_CORTEX_M4,
    "cortex-m7f": UC_CPU_ARM_CORTEX_M7,
    "cortex-m7f-sp": UC_CPU_ARM_CORTEX_M7,
    "cortex-m33f": UC_CPU_ARM_CORTEX_M33,
}


def _bits(value: int, low: int, width: int = 1) -> int:
    return value >> low & ((1 << width) - 1)


@dataclass
class Chip:
    """Registers that keep what is written, with rules for those that answer otherwise; `stuck` has no ready bits."""

    stuck: bool = False
    registers: dict[int, int] = field(default_factory=dict)
    sent: bytearray = field(default_factory=bytearray)

    spaces: tuple[tuple[int, int], ...] = ()
    tx: int = 0
    reset: dict[int, int] = field(default_factory=dict)

    def __getitem__(self, address: int) -> int:
        return self.registers.get(address, self.reset.get(address, 0))

    def read(self, address: int) -> int:
        ready = self.uart_answer(address)
        if ready is not None:
            return ready
        return self[address] if self.stuck else self.answer(address)

    def write(self, address: int, value: int) -> None:
        if address == self.tx:
            self.sent.append(value & 0xFF)
        else:
            self.registers[address] = value

    def uart_answer(self, address: int) -> int | None:
        """Return the UART's status: it always takes a byte, and has none."""
        raise NotImplementedError

    def answer(self, address: int) -> int:
        raise NotImplementedError

    def core_hz(self) -> float:
        """Return the core's clock as the registers have it."""
        raise NotImplementedError

    def baud(self) -> float:
        """Return the UART's rate as the registers have it."""
        raise NotImplementedError


@dataclass
class Stm32(Chip):
    """What STM32 have in common: RCC_CR's oscillators answer in the bit behind, GPIO pins have alternate functions."""

    uart: int = 0
    rcc: int = 0
    cfgr: int = 0
    switch_bits: int = 2
    hsi_bits: tuple[int, int] = (8, 10)
    crystal_hz: int = 8_000_000
    newer_uart: bool = True

    def __post_init__(self) -> None:
        self.tx = self.uart + (0x28 if self.newer_uart else 0x04)

    def uart_answer(self, address: int) -> int | None:
        return 0xC0 if address == self.uart + (0x1C if self.newer_uart else 0x00) else None

    def read(self, address: int) -> int:
        if self.stuck and address == self.rcc:
            return self[address] & ~(1 << 25 | 1 << 17)
        return super().read(address)

    def answer(self, address: int) -> int:
        value = self[address]
        if address == self.rcc:
            on, ready = self.hsi_bits
            for source, bit in ((on, ready), (16, 17), (24, 25)):
                value = value & ~(1 << bit) | _bits(value, source) << bit
        if address == self.rcc + self.cfgr:
            mask = (1 << self.switch_bits) - 1
            value = value & ~(mask << self.switch_bits) | (value & mask) << self.switch_bits
        return value

    @property
    def switched_to(self) -> int:
        return _bits(self[self.rcc + self.cfgr], 0, self.switch_bits)

    def uart_hz(self) -> float:
        return self.core_hz()

    def baud(self) -> float:
        if not self.newer_uart:
            return self.uart_hz() / self[self.uart + 0x08]
        scale = 256 if self.uart == 0x40008000 else 1  # LPUART1
        return self.uart_hz() * scale / self[self.uart + 0x0C]


@dataclass
class Stm32F4F7(Stm32):
    """RM0090, RM0390, RM0368, RM0385."""

    spaces: tuple[tuple[int, int], ...] = ((0x40000000, 0x30000),)
    rcc: int = 0x40023800
    cfgr: int = 0x08
    hsi_bits: tuple[int, int] = (0, 1)
    reset: dict[int, int] = field(
        default_factory=lambda: {0x40023800: 0x83, 0x40023804: 0x24003010, 0x40007000: 0xC000}
    )

    def answer(self, address: int) -> int:
        if address == 0x40007004:  # ODRDY and ODSWRDY follow ODEN and ODSWEN
            return self[0x40007000] & 3 << 16
        return super().answer(address)

    def core_hz(self) -> float:
        if self.switched_to != 2:
            return 16e6
        pll = self[self.rcc + 0x04]
        source = self.crystal_hz if _bits(pll, 22) else 16e6
        return source / _bits(pll, 0, 6) * _bits(pll, 6, 9) / (2 * _bits(pll, 16, 2) + 2)

    def uart_hz(self) -> float:
        field_ = _bits(self[self.rcc + self.cfgr], 13 if self.uart >= 0x40010000 else 10, 3)
        return self.core_hz() / (2 ** (field_ - 3) if field_ & 4 else 1)


@dataclass
class Stm32L4(Stm32):
    """RM0351, RM0432."""

    spaces: tuple[tuple[int, int], ...] = ((0x40000000, 0x30000), (0x48000000, 0x2000))
    rcc: int = 0x40021000
    cfgr: int = 0x08
    reset: dict[int, int] = field(default_factory=lambda: {0x40021000: 0x63, 0x4002100C: 0x1000, 0x40007080: 0x100})

    def core_hz(self) -> float:
        pll = self[self.rcc + 0x0C]
        if self.switched_to != 3 or not _bits(pll, 24):
            return 16e6 if self.switched_to == 1 else 4e6
        source = {2: 16e6, 3: self.crystal_hz}[_bits(pll, 0, 2)]
        ahb = 2 if _bits(self[self.rcc + self.cfgr], 4, 4) == 8 else 1
        return source / (_bits(pll, 4, 4) + 1) * _bits(pll, 8, 7) / (2 * _bits(pll, 25, 2) + 2) / ahb


@dataclass
class Stm32H7(Stm32):
    """RM0433."""

    spaces: tuple[tuple[int, int], ...] = ((0x40000000, 0x30000), (0x58000000, 0x30000), (0x52000000, 0x10000))
    rcc: int = 0x58024400
    cfgr: int = 0x10
    switch_bits: int = 3
    hsi_bits: tuple[int, int] = (0, 2)
    reset: dict[int, int] = field(
        default_factory=lambda: {
            0x58024400: 0x25,
            0x58024428: 0x02020200,
            0x5802442C: 0x01FF0000,
            0x58024430: 0x01010280,
            0x5802480C: 0x6,
            0x58024818: 0x4000,
            0x52002000: 0x37,
        }
    )

    def answer(self, address: int) -> int:
        if address == 0x58024804:  # ACTVOSRDY
            return 1 << 13
        if address == 0x58024818:  # VOSRDY
            return self[address] | 1 << 13
        return super().answer(address)

    def core_hz(self) -> float:
        if self.switched_to != 3:
            return 64e6
        select, dividers = self[self.rcc + 0x28], self[self.rcc + 0x30]
        source = {0: 64e6, 2: self.crystal_hz}[_bits(select, 0, 2)]
        return source / _bits(select, 4, 6) * (_bits(dividers, 0, 9) + 1) / (_bits(dividers, 9, 7) + 1)

    def uart_hz(self) -> float:
        ahb = 2 if _bits(self[self.rcc + 0x18], 0, 4) == 8 else 1
        apb = 2 if _bits(self[self.rcc + 0x1C], 4 if self.uart < 0x40010000 else 8, 3) == 4 else 1
        return self.core_hz() / ahb / apb


@dataclass
class Stm32U5(Stm32):
    """RM0456."""

    spaces: tuple[tuple[int, int], ...] = ((0x40000000, 0x40000), (0x46020000, 0x2000), (0x42020000, 0x3000))
    rcc: int = 0x46020C00
    cfgr: int = 0x1C
    reset: dict[int, int] = field(default_factory=lambda: {0x46020C00: 0x35, 0x46020C34: 0x01010280, 0x40022000: 1})

    def answer(self, address: int) -> int:
        if address == 0x4602080C:  # VOSRDY with a range, BOOSTRDY with the booster and a range
            value = self[address]
            return value & ~(3 << 14) | (value >> 16 & 3 != 0) << 15 | _bits(value, 18) << 14
        return super().answer(address)

    def core_hz(self) -> float:
        if self.switched_to != 3:
            return 16e6 if self.switched_to == 1 else 4e6
        pll, dividers = self[self.rcc + 0x28], self[self.rcc + 0x34]
        source = {2: 16e6, 3: self.crystal_hz}[_bits(pll, 0, 2)]
        return source / (_bits(pll, 8, 4) + 1) * (_bits(dividers, 0, 9) + 1) / (_bits(dividers, 24, 7) + 1)


@dataclass
class Nrf52(Chip):
    """nRF52833 and nRF52840 Product Specifications."""

    spaces: tuple[tuple[int, int], ...] = ((0x40000000, 0x20000), (0x50000000, 0x1000), (0x10001000, 0x1000))
    tx: int = 0x4000251C
    reset: dict[int, int] = field(default_factory=lambda: {0x10001208: 0x5A})  # UICR.APPROTECT: HwDisabled

    def uart_answer(self, address: int) -> int | None:
        if address == 0x4000211C:
            return int(self[0x40002500] == 4 and self[0x40002008] == 1)
        return 0 if address == 0x40002108 else None

    def answer(self, address: int) -> int:
        return self[0x40000000] if address == 0x40000100 else self[address]

    def core_hz(self) -> float:
        return 64e6

    def baud(self) -> float:
        return self[0x40002524] * 16e6 / 2**32


@dataclass
class Rp2(Chip):
    """RP2040 data sheet; RP2350 has the same units at other places."""

    resets: int = 0x4000C000
    xosc: int = 0x40024000
    clocks: int = 0x40008000
    pll: int = 0x40028000
    uart: int = 0x40034000
    ring_hz: float = 6e6
    spaces: tuple[tuple[int, int], ...] = ((0x40000000, 0x80000), (0x18000000, 0x1000))

    def __post_init__(self) -> None:
        self.tx = self.uart
        self.reset = {self.resets: 0xFFFFFFFF, self.pll: 1, self.pll + 4: 0x2D}

    def write(self, address: int, value: int) -> None:
        base = address & ~0x3000
        if address >= 0x40000000 and _bits(address, 12, 2) in (2, 3):  # the aliases that set and clear
            value = self[base] | value if _bits(address, 12, 2) == 2 else self[base] & ~value
            address = base
        super().write(address, value)

    def uart_answer(self, address: int) -> int | None:
        return 0x90 if address == self.uart + 0x18 else None

    def answer(self, address: int) -> int:
        if address == self.resets + 8:
            return ~self[self.resets] & 0xFFFFFFFF
        if address == self.xosc + 4:
            return int(self[self.xosc] >> 12 == 0xFAB) << 31
        if address == self.clocks + 0x38:
            return 1 << _bits(self[self.clocks + 0x30], 0, 2)
        if address == self.clocks + 0x44:
            return 1 << _bits(self[self.clocks + 0x3C], 0)
        if address == self.pll:
            return self[address] | int(self[self.pll + 4] & 0x21 == 0) << 31
        return self[address]

    def core_hz(self) -> float:
        if self.stuck or _bits(self[self.clocks + 0x30], 0, 2) != 2:
            return self.ring_hz
        if not _bits(self[self.clocks + 0x3C], 0):
            return 12e6
        post = self[self.pll + 0x0C]
        vco = 12e6 / _bits(self[self.pll], 0, 6) * self[self.pll + 8]
        return vco / _bits(post, 16, 3) / _bits(post, 12, 3)

    def baud(self) -> float:
        return self.core_hz() * 4 / (self[self.uart + 0x24] * 64 + self[self.uart + 0x28])


@dataclass
class Imxrt1062(Chip):
    """IMXRT1060RM."""

    spaces: tuple[tuple[int, int], ...] = ((0x40000000, 0x400000),)
    tx: int = 0x4019801C
    reset: dict[int, int] = field(
        default_factory=lambda: {
            0x400FC010: 1,
            0x400FC014: 0x000A8200,
            0x400FC018: 0x24AE8304,
            0x400FC024: 0x06490B03,
            0x400D8000: 0x00013042,
            0x4008000C: 0x10E,
        }
    )

    def uart_answer(self, address: int) -> int | None:
        return 1 << 23 if address == 0x40198014 else None

    def read(self, address: int) -> int:
        return 0xFFFFFFFF if self.stuck and address == 0x400FC048 else super().read(address)

    def answer(self, address: int) -> int:
        if address == 0x400D8000:
            return self[address] | _bits(self[address], 13) << 31
        if address == 0x40080000:
            return 1 << 31
        return self[address]

    def core_hz(self) -> float:
        if _bits(self[0x400FC014], 25):
            return 24e6
        assert _bits(self[0x400FC018], 18, 2) == 3
        assert not _bits(self[0x400D8000], 16)
        pll = 24e6 * _bits(self[0x400D8000], 0, 7) / 2
        return pll / (_bits(self[0x400FC010], 0, 3) + 1) / (_bits(self[0x400FC014], 10, 3) + 1)

    def baud(self) -> float:
        assert self[0x400FC024] & 0x7F == 0x40  # the crystal, undivided
        return 24e6 / (_bits(self[0x40198010], 24, 5) + 1) / _bits(self[0x40198010], 0, 13)


def _stm32(kind: type[Stm32], **more: object) -> Callable[[Board, bool], Chip]:
    def make(board: Board, stuck: bool) -> Chip:
        crystal = board.constants["hse_hz"] or 8_000_000
        return kind(stuck=stuck, uart=board.constants["uart_base"], crystal_hz=crystal, **more)  # type: ignore[arg-type]

    return make


CHIPS: dict[str, Callable[[Board, bool], Chip]] = {
    "stm32f4": _stm32(Stm32F4F7, newer_uart=False),
    "stm32f7": _stm32(Stm32F4F7),
    "stm32l4": _stm32(Stm32L4),
    "stm32l4plus": _stm32(Stm32L4),
    "stm32h7": _stm32(Stm32H7),
    "stm32u5": _stm32(Stm32U5),
    "nrf52": lambda _, stuck: Nrf52(stuck=stuck),
    "rp2040": lambda _, stuck: Rp2(stuck=stuck),
    "rp2350": lambda _, stuck: Rp2(
        stuck=stuck,
        resets=0x40020000,
        xosc=0x40048000,
        clocks=0x40010000,
        pll=0x40050000,
        uart=0x40070000,
        ring_hz=11e6,
        spaces=((0x40000000, 0x110000),),
    ),
    "imxrt1062": lambda _, stuck: Imxrt1062(stuck=stuck),
}


class Simulation:
    """An ELF in a board's flash, its core and its chip."""

    def __init__(
        self, board: Board, elf: Path, *, stuck: bool = False, more_ram: tuple[tuple[int, int], ...] = ()
    ) -> None:
        self.chip = CHIPS[board.driver](board, stuck)
        self.core = Uc(UC_ARCH_ARM, UC_MODE_THUMB | UC_MODE_MCLASS)
        self.core.ctl_set_cpu_model(CPUS[board.core.name])
        self._until = b""
        for origin, length in (*((r.origin, r.length_bytes) for r in board.regions), PRIVATE_BUS, *more_ram):
            self.core.mem_map(origin, length)
        with elf.open("rb") as file:
            for segment in ELFFile(file).iter_segments("PT_LOAD"):
                self.core.mem_write(segment["p_paddr"], segment.data())
        for base, size in self.chip.spaces:
            self.core.mmio_map(base, size, self._read, base, self._write, base)

    def word(self, address: int) -> int:
        """Return a word of memory."""
        return int.from_bytes(self.core.mem_read(address, 4), "little")

    def start_from_vectors(self, vectors: int, until: bytes) -> bytes:
        """Start as a core does after reset: stack pointer and program counter from the vector table."""
        self.core.reg_write(UC_ARM_REG_MSP, self.word(vectors))
        return self.start(self.word(vectors + 4), until)

    def start(self, address: int, until: bytes) -> bytes:
        """Run until the UART has sent these bytes; return all that it has sent."""
        self._until = until
        self.core.emu_start(address | 1, 0xFFFFFFFF, timeout=TIMEOUT_S * 1_000_000)
        return bytes(self.chip.sent)

    def _read(self, _core: Uc, offset: int, _size: int, base: int) -> int:
        return self.chip.read(base + offset)

    def _write(self, core: Uc, offset: int, _size: int, value: int, base: int) -> None:
        self.chip.write(base + offset, value)
        if self.chip.sent.endswith(self._until):
            core.emu_stop()
