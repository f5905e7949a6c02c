"""What a test finds out, as values: checks, parts, comparisons, the whole report."""

from dataclasses import dataclass

FORMAT_VERSION = 1
"""Version of the report's JSON form."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was checked; `detail` says what was found, or what is wrong and what to do."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of the suite; it passed when all of its checks did.

    Attributes:
        name: what was tested ("self-check", "numbers").
        checks: what was found, one by one.
        skipped: why nothing was checked, when the user asked for that; else empty.
    """

    name: str
    checks: tuple[Check, ...]
    skipped: str = ""

    @property
    def passed(self) -> bool:
        """Whether every check passed; a part without checks passes only when it was skipped on request."""
        if not self.checks:
            return bool(self.skipped)
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that did not pass."""
        return tuple(check for check in self.checks if not check.passed)


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """How far one output is from the expected one.

    Attributes:
        elements: how many numbers the output has.
        mismatches: how many differ (integers) or lie outside the tolerance (floats).
        max_error: largest difference, in steps of the type (LSB) for integers.
        mae: mean absolute error, in the same unit.
        rmse: root of the mean squared error, in the same unit.
        cosine: cosine of the angle between the two as vectors; 1 for two zero vectors.
        argmax_agrees: whether the largest number is at the same place.
    """

    elements: int
    mismatches: int
    max_error: float
    mae: float
    rmse: float
    cosine: float
    argmax_agrees: bool

    @property
    def mismatch_percent(self) -> float:
        """Share of the numbers that do not match."""
        return 100.0 * self.mismatches / self.elements if self.elements else 0.0


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One output of one case, compared; `unit` is "LSB" for integers and empty for floats."""

    case: str
    output: str
    type: str
    unit: str
    metrics: Metrics
    passed: bool


@dataclass(frozen=True, kw_only=True)
class Latency:
    """What an inference takes.

    Attributes:
        unit: "instructions" in an emulator that counts them, "cycles" on hardware.
        runs: how many inferences were measured.
        minimum: the fastest.
        median: the one in the middle.
        maximum: the slowest.
        median_s: the median in seconds at the device's clock; None where ticks are not time.
    """

    unit: str
    runs: int
    minimum: int
    median: int
    maximum: int
    median_s: float | None


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How many labelled inputs the device put into their class; and the reference, if there is one."""

    total: int
    correct: int
    reference_correct: int | None

    @property
    def percent(self) -> float:
        """Share of the labelled inputs that the device got right."""
        return 100.0 * self.correct / self.total if self.total else 0.0


@dataclass(frozen=True, kw_only=True)
class DeviceFacts:
    """What the device said about itself, for the head of the report."""

    port: str
    board: str
    runtime: str
    runtime_version: str
    kernel_set: str
    forge_version: str
    build_id: str
    reset_cause: str
    arena_bytes: int
    arena_used_bytes: int
    stack_bytes: int
    stack_high_water_bytes: int


@dataclass(frozen=True, kw_only=True)
class TestReport:
    """The outcome of one run of the suite; it passed only when every part did."""

    __test__ = False  # Its name would make pytest look for tests in it.

    model: str
    model_sha256: str
    device: DeviceFacts
    reference: str
    parts: tuple[Part, ...]
    comparisons: tuple[Comparison, ...]
    latency: Latency | None
    accuracy: Accuracy | None
    log_lines: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """The verdict."""
        return bool(self.parts) and all(part.passed for part in self.parts)
