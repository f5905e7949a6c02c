"""A TFLM tree on disk: where it and each third-party package lie, under one set of names."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.errors import ToolError

PACKAGES = ("tflite-micro", "flatbuffers", "gemmlowp", "ruy", "kissfft", "CMSIS_6", "CMSIS-NN")


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
