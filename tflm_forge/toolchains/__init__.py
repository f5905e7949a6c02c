"""Ways to build a firmware project, one module each: `build(project, ...) -> Firmware`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Firmware:
    """The files of one build."""

    elf: Path
    bin: Path
    hex: Path
    map: Path
