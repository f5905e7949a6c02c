"""Says what a processor's fault was and where, from its registers and the firmware's ELF."""

from pathlib import Path

from tflm_forge.elf import find_place
from tflm_forge.errors import ForgeError
from tflm_forge.link.answers import FaultRecord
from tflm_forge.link.failures import RefusedError

# Armv7-M Architecture Reference Manual, B3.2.15, and Armv8-M's, D1.2.9: bits of the CFSR.
_CAUSES: tuple[tuple[int, str], ...] = (
    (0, "an instruction was fetched from where none may be"),
    (1, "a load or store went where it may not: a wild pointer, or the stack ran over its end"),
    (3, "the stack was at its end on return from an exception"),
    (4, "the stack ran over its end while an exception was entered"),
    (8, "an instruction was fetched from where there is no memory"),
    (9, "a load or store went to where there is no memory (precise)"),
    (10, "a store went to where there is no memory (imprecise: PC is a little behind it)"),
    (11, "the stack was at its end on return from an exception"),
    (12, "the stack ran over its end while an exception was entered"),
    (16, "undefined instruction: code is damaged, or was built for another core"),
    (17, "a jump to an even address: a damaged function pointer"),
    (18, "a damaged return address"),
    (19, "floating point is switched off"),
    (20, "the stack ran over its end"),
    (24, "a load or store was not aligned"),
    (25, "division by zero"),
)
_MMFAR_VALID, _BFAR_VALID = 7, 15


def explain_fault(fault: FaultRecord, elf: Path | None) -> tuple[str, ...]:
    """Return lines that say the cause and, with the ELF, where PC and LR are."""
    lines = [cause for bit, cause in _CAUSES if fault.cfsr >> bit & 1]
    for bit, name, value in ((_MMFAR_VALID, "MMFAR", fault.mmfar), (_BFAR_VALID, "BFAR", fault.bfar)):
        if fault.cfsr >> bit & 1:
            lines.append(f"the address was 0x{value:08X} ({name})")
    if elf is not None:
        lines += [f"{name} 0x{value:08X} is in {place}" for name, value, place in _places(fault, elf)]
    return tuple(lines)


def explain_refusal(error: RefusedError, elf: Path | None) -> RefusedError:
    """Return the error with its fault explained; the error itself when there is none."""
    if error.fault is not None:
        error.reasons = (*error.reasons, *explain_fault(error.fault, elf))
    return error


def _places(fault: FaultRecord, elf: Path) -> list[tuple[str, int, str]]:
    found = []
    for name, value in (("PC", fault.pc), ("LR", fault.lr)):
        try:
            place = find_place(elf, value)
        except ForgeError:
            # Without its ELF the fault still has its registers.
            continue
        if place is not None and place.words:
            found.append((name, value, place.words))
    return found
