"""What a check of the repository finds, and everything it has looked at."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Severity = Literal["error", "warning"]

RULES: Mapping[str, str] = {
    "manifest-missing": "A firmware or a model has no operator manifest.",
    "manifest-unreadable": "A manifest is damaged, or contradicts itself.",
    "manifest-stale": "A manifest is not what forge makes of its model today.",
    "model-missing": "A manifest names a model that is not there.",
    "model-unreadable": "A model is damaged.",
    "model-refused": "The firmware's runtime can not run a model.",
    "model-changed": "A model is not the one its manifest was made of.",
    "operator-missing": "A model uses an op that its manifest does not list.",
    "operator-version": "A model uses an op in a version above what the firmware's kernel implements.",
    "runtime-version": "A manifest was made with another version of the runtime.",
    "resolver-missing": "The C++ source of an op resolver is not there, or registers nothing.",
    "resolver-operator-missing": "An op resolver lacks an op of the manifest.",
    "resolver-operator-unused": "An op resolver registers an op that no model uses.",
    "resolver-operator-twice": "An op resolver registers an op a second time, which TFLM refuses.",
    "resolver-capacity": "MicroMutableOpResolver<N> has another N than ops are registered.",
    "resolver-registration": "An op resolver registers a kernel for other tensor types than the models have.",
    "resolver-unknown": "An op resolver registers something that forge does not know.",
}
"""What each rule finds, in one sentence; the ids stay the same from release to release."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that is wrong in a repository.

    Attributes:
        rule: its id in RULES.
        severity: `error` fails the check.
        path: the file it is in.
        line: the line, None when it concerns the whole file.
        words: what is wrong, a full sentence.
        remedy: what to do, a full sentence; empty when the words say it.
    """

    rule: str
    severity: Severity = "error"
    path: Path
    line: int | None = None
    words: str
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class ManifestDiff:
    """The difference between a committed manifest and the one of today, as a unified diff."""

    path: Path
    text: str


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """The outcome of `forge check`.

    Attributes:
        folder: the project's folder.
        manifests: the manifests that were read.
        models: the models that were read.
        resolvers: the C++ sources that were read.
        findings: what is wrong, errors first, then by file and line.
        diffs: how manifests differ from those of today.
        skipped: what the policy of forge.toml turns off.
    """

    folder: Path
    manifests: tuple[Path, ...] = ()
    models: tuple[Path, ...] = ()
    resolvers: tuple[Path, ...] = ()
    findings: tuple[Finding, ...] = ()
    diffs: tuple[ManifestDiff, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether there is no error."""
        return not any(finding.severity == "error" for finding in self.findings)
