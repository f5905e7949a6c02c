"""Processor cores: the compiler flags that select each, and what it has."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Core:
    """A processor core: the compiler flags that select it, and what it has."""

    name: str
    cpu_flags: tuple[str, ...]
    has_dsp: bool
    has_mve: bool
    has_fpu: bool

    @property
    def kernel_class(self) -> tuple[bool, bool, bool]:
        """Return what decides which kernels run and how much memory they take: cores that agree measure the same."""
        return (self.has_dsp, self.has_mve, self.has_fpu)


def _core(name: str, cpu: str, fpu: str = "", *, dsp: bool = False, mve: bool = False, hard: bool = False) -> Core:
    flags = [f"-mcpu={cpu}", "-mthumb"]
    if hard:
        flags.append("-mfloat-abi=hard")
    if fpu:
        flags.append(f"-mfpu={fpu}")
    return Core(name=name, cpu_flags=tuple(flags), has_dsp=dsp, has_mve=mve, has_fpu=hard)


CORES: Mapping[str, Core] = {
    core.name: core
    for core in (
        _core("cortex-m0", "cortex-m0"),
        _core("cortex-m0plus", "cortex-m0plus"),
        _core("cortex-m3", "cortex-m3"),
        _core("cortex-m4f", "cortex-m4", "fpv4-sp-d16", dsp=True, hard=True),
        _core("cortex-m7f", "cortex-m7", "fpv5-d16", dsp=True, hard=True),
        # The same core with the smaller FPU: no arithmetic in double precision (STM32F74x, PM0253 section 1.3.2).
        _core("cortex-m7f-sp", "cortex-m7", "fpv5-sp-d16", dsp=True, hard=True),
        _core("cortex-m33f", "cortex-m33", "fpv5-sp-d16", dsp=True, hard=True),
        _core("cortex-m55f", "cortex-m55", dsp=True, mve=True, hard=True),
    )
}
