"""What the output of a failed build means: firmware that does not fit, or a kernel of the user's own."""

import re
from pathlib import Path

from tflm_forge.errors import FitError, ForgeError
from tflm_forge.generate import Project
from tflm_forge.size.overflow import attribute_overflow, words_of_largest
from tflm_forge.toolchains._own_errors import explain_own_error

_OVERFLOW = re.compile(r"region `(\w+)' overflowed by (\d+) bytes")


def explain_failure(project: Project, output: str, link_map: Path) -> ForgeError | None:
    """Return the error that says why a build failed; None: its own words have to do.

    Args:
        project: what was built.
        output: what compilers and linker printed.
        link_map: where the linker's map stands, if it came so far.
    """
    return _fit_error(project, output, link_map) or explain_own_error(project, output)


def _fit_error(project: Project, output: str, link_map: Path) -> FitError | None:
    """Read the linker's overflow messages: the linker script's regions have the board file's names."""
    over = {name: int(count) for name, count in _OVERFLOW.findall(output)}
    if not over:
        return None
    board = project.board
    return FitError(
        f"{project.model.name} does not fit {board.name}",
        reasons=[
            f"{region.name}: {over[region.name]} bytes over its {region.length_bytes} bytes "
            f"({_largest(project, region.kind)}){_contributors(project, region.kind, link_map)}"
            for region in (board.flash, board.ram)
            if region.name in over
        ],
        hint="Choose a board with more memory (`forge boards`) or a smaller model.",
        bytes_over=over,
    )


def _largest(project: Project, kind: str) -> str:
    if kind == "flash":
        return f"the model alone is {len(project.model.data)} bytes"
    return f"the tensor arena is {project.arena.bytes} bytes, the stack {project.board.stack_bytes} bytes"


def _contributors(project: Project, kind: str, link_map: Path) -> str:
    """Return what fills a region, the largest first, from the map that the linker wrote before it gave up."""
    attribution = attribute_overflow(link_map, project.board, project.model)
    if attribution is None:
        return ""
    return f": {words_of_largest(attribution, kind)}"
