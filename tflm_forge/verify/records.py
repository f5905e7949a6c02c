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
        top_k: how many of the largest numbers are looked at for `top_k_agrees`.
        top_k_agrees: whether the `top_k` largest numbers are at the same places, in any order.
        relative_error: length of the error as a vector, relative to that of the expected output.
    """

    elements: int
    mismatches: int
    max_error: float
    mae: float
    rmse: float
    cosine: float
    argmax_agrees: bool
    top_k: int = 1
    top_k_agrees: bool = True
    relative_error: float = 0.0

    @property
    def mismatch_percent(self) -> float:
        """Share of the numbers that do not match."""
        return 100.0 * self.mismatches / self.elements if self.elements else 0.0


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One output of one case, compared.

    Attributes:
        case: the inputs ("digits_test.npz[3]").
        source: what they belong to ("digits_test.npz"); tables show the passed ones of a source in one row.
        output: the output's name.
        type: its type.
        unit: "LSB" for integers, empty for floats.
        metrics: how far it is from the expected one.
        passed: whether that is near enough.
    """

    case: str
    output: str
    type: str
    unit: str
    metrics: Metrics
    passed: bool
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class OperatorTime:
    """What one operator of an inference takes, in the latency's unit."""

    index: int
    op: str
    layer: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Latency:
    """What an inference takes.

    Attributes:
        unit: "instructions" in an emulator that counts them, "cycles" on hardware.
        runs: how many inferences were measured.
        minimum: the fastest.
        median: the one in the middle.
        maximum: the slowest.
        median_s: the median in seconds as the device measured it; None where ticks are not time.
        clock_hz: the board's clock; 0 when it is not known.
        operators: what each operator takes, in the order of execution.
    """

    unit: str
    runs: int
    minimum: int
    median: int
    maximum: int
    median_s: float | None
    clock_hz: int = 0
    operators: tuple[OperatorTime, ...] = ()

    @property
    def clock_s(self) -> float | None:
        """The median in seconds at the board's clock; for instructions, if each took one cycle."""
        if self.median_s is not None:
            return self.median_s
        return self.median / self.clock_hz if self.clock_hz else None


@dataclass(frozen=True, kw_only=True)
class SoakStep:
    """Some loops of a soak: how many there were after it, the stack's most use, and the time it took."""

    loops: int
    stack_high_water_bytes: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Soak:
    """Many inferences one after the other.

    Attributes:
        loops: how many were run.
        wanted: how many were wanted; more when the time was up before.
        stateful: whether the model kept its state from loop to loop.
        steps: the progress, for charts.
    """

    loops: int
    wanted: int
    stateful: bool
    steps: tuple[SoakStep, ...]


@dataclass(frozen=True, kw_only=True)
class LayerResult:
    """The output of one operator, compared with the reference's; `metrics` is None when it was not compared."""

    index: int
    op: str
    layer: str
    type: str
    unit: str
    metrics: Metrics | None
    passed: bool
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Layers:
    """Every operator's output for one case, in the order of execution."""

    case: str
    reference: str
    results: tuple[LayerResult, ...]

    @property
    def first_wrong(self) -> LayerResult | None:
        """The first operator whose output differs: what comes after it has wrong inputs."""
        return next((result for result in self.results if not result.passed), None)


@dataclass(frozen=True, kw_only=True)
class FloatAgreement:
    """How far one output is from the float model's, over all inputs together.

    Attributes:
        output: the output's name.
        model: the float model's file.
        cases: how many inputs.
        relative_error: length of the error as a vector, relative to that of the float model's outputs.
        limit: the largest relative error that passes.
        mae: mean absolute error, in real numbers.
        cosine: cosine of the angle between the two as vectors.
        argmax_agrees: for how many inputs the largest number is at the same place.
    """

    output: str
    model: str
    cases: int
    relative_error: float
    limit: float
    mae: float
    cosine: float
    argmax_agrees: int


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
    """The outcome of one run of the suite; it passed only when every part did.

    `left_out` names the parts that the user did not want.
    """

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
    soak: Soak | None = None
    layers: Layers | None = None
    float_agreements: tuple[FloatAgreement, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """The verdict."""
        return bool(self.parts) and all(part.passed for part in self.parts)
