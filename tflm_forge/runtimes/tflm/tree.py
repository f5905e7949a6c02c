"""A TFLM tree on disk: where it and each third-party package lie, under one set of names."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.errors import ToolError, UsageError

PACKAGES = ("tflite-micro", "flatbuffers", "gemmlowp", "ruy", "kissfft", "cmsis", "cmsis_nn")


@dataclass(frozen=True, kw_only=True)
class Tree:
    """TFLM and its third-party packages.

    Files are named "package/path/inside", whatever folder the package lies in.

    Attributes:
        version: what a person calls it: a commit, or the name of a user's tree.
        folders: the folder of each package.
    """

    version: str
    folders: Mapping[str, Path]

    def path(self, file: str) -> Path:
        """Return where a file lies."""
        package, _, inside = file.partition("/")
        return self.folders[package] / inside if inside else self.folders[package]

    def has(self, file: str) -> bool:
        """Return whether the tree has a file."""
        package = file.partition("/")[0]
        return package in self.folders and self.path(file).is_file()

    def read(self, file: str) -> str:
        """Return a file's text.

        Raises:
            ToolError: the tree is not complete.
        """
        try:
            return self.path(file).read_text(encoding="utf-8", errors="replace")
        except (OSError, KeyError) as cause:
            raise ToolError(
                f"TFLM {self.version}: {file} is missing or can not be read",
                hint="The tree is not complete: install it again with `forge runtime install tflm --force`.",
            ) from cause

    def glob(self, package: str, pattern: str) -> list[str]:
        """Return the files of a package that match a pattern, sorted."""
        folder = self.folders.get(package)
        if folder is None:
            return []
        return sorted(f"{package}/{p.relative_to(folder).as_posix()}" for p in folder.glob(pattern) if p.is_file())


# Where a package lies in a user's tree: beside upstream's makefile after its downloads, or where
# create_tflm_tree.py puts it; each with a file that proves it is there.
_PLACES = ("tensorflow/lite/micro/tools/make/downloads", "third_party")
_PROOFS: Mapping[str, str] = {
    "flatbuffers": "include/flatbuffers/flatbuffers.h",
    "gemmlowp": "fixedpoint/fixedpoint.h",
    "ruy": "ruy/profiler/instrumentation.h",
    "kissfft": "kiss_fft.h",
    "cmsis": "CMSIS/Core/Include/cmsis_compiler.h",
    "cmsis_nn": "Include/arm_nnfunctions.h",
}
_TREE_PROOF = "tensorflow/lite/micro/micro_mutable_op_resolver.h"


def locate_packages(root: Path) -> dict[str, Path]:
    """Return the folders of TFLM and of the third-party packages that a user's tree has.

    Raises:
        UsageError: the folder is no TFLM tree.
    """
    if not (root / _TREE_PROOF).is_file():
        raise UsageError(
            f"--tree {root}: no TFLM tree ({_TREE_PROOF} is missing)",
            hint="Give the root of a tflite-micro checkout, or the output of upstream's create_tflm_tree.py.",
        )
    found = {"tflite-micro": root}
    for package, proof in _PROOFS.items():
        place = next((root / p / package for p in _PLACES if (root / p / package / proof).is_file()), None)
        if place is not None:
            found[package] = place
    return found
