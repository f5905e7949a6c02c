"""What the suite will run and what must come out of it; made before any device is asked."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tflm_forge.config import OpTable
from tflm_forge.errors import CheckError, UsageError
from tflm_forge.model import Model
from tflm_forge.verify.floats import DEFAULT_LIMIT, float_outputs
from tflm_forge.verify.golden import choose_reference, golden_path
from tflm_forge.verify.inputs import Case, make_boundary_cases, make_random_cases, soak_inputs
from tflm_forge.verify.parts import BOUNDARIES, INPUTS, NUMBERS, PARTS, SELF_CHECK, SOAK
from tflm_forge.verify.reference import Outputs, Reference
from tflm_forge.verify.samples import load_cases
from tflm_forge.verify.soak import SoakOptions, soak_seeds


@dataclass(frozen=True, kw_only=True)
class SuiteOptions:
    """What the user chose.

    Attributes:
        parts: which parts run.
        seed: of the random inputs.
        random_count: how many random inputs.
        inputs: the user's own: a file or a folder.
        reference: which reference; empty: the best there is.
        golden: a golden file to compare with.
        no_reference: whether it is all right to compare with nothing.
        float_reference: the float model to compare with besides.
        float_limit: the largest relative error against it that passes.
        soak: how long the soak is.
        clock_hz: the board's clock, for times.
        own_ops: the user's own kernels, whose Python files the reference needs.
    """

    parts: tuple[str, ...] = PARTS
    seed: int = 1
    random_count: int = 3
    inputs: Path | None = None
    reference: str = ""
    golden: Path | None = None
    no_reference: bool = False
    float_reference: Path | None = None
    float_limit: float = DEFAULT_LIMIT
    soak: SoakOptions = field(default_factory=SoakOptions)
    clock_hz: int = 0
    own_ops: tuple[OpTable, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SuitePlan:
    """What to run on a device and what must come out; made without a device.

    Attributes:
        options: what the user chose.
        cases: the inputs, in the order they run.
        expected: for each case the outputs, or None when they are not known.
        soak_expected: for each of the soak's inputs the outputs that must be equal bit for bit, where known.
        reference: what knows them; empty when there is none.
        tolerance_lsb: by how much integers may differ from the reference's.
        problem: why there are no expected outputs though they were wanted; with the remedy.
        float_cases: names of the cases that are compared with the float model.
        float_expected: for each of them what the float model gives.
    """

    options: SuiteOptions
    cases: tuple[Case, ...]
    expected: tuple[Outputs | None, ...]
    soak_expected: tuple[Outputs | None, ...] = ()
    reference: str = ""
    tolerance_lsb: int = 0
    problem: str = ""
    float_cases: tuple[str, ...] = ()
    float_expected: tuple[Outputs, ...] = ()


def options_of_further(options: SuiteOptions) -> SuiteOptions:
    """Return the options for a model besides the first: what the user gave for the first does not count for it."""
    parts = tuple(part for part in options.parts if part in (SELF_CHECK, NUMBERS, BOUNDARIES))
    return replace(options, parts=parts, inputs=None, golden=None, float_reference=None)


def plan_suite(model: Model, model_path: Path, options: SuiteOptions) -> SuitePlan:
    """Choose inputs and reference, and let the reference compute the outputs.

    Raises:
        UsageError: the user's inputs or a reference can not be used.
        ModelError: an input has a type that can not be exchanged with a device.
    """
    own = _own_cases(model, options)
    reference = _choose(model, model_path, options)
    recorded = reference.own_cases() if reference is not None else None
    cases = (*own, *_made_cases(model, options, recorded))
    plan = SuitePlan(options=options, cases=cases, expected=(None,) * len(cases))
    if reference is None:
        problem = "" if options.no_reference else _no_reference_words(model_path)
        plan = replace(plan, problem=problem)
    else:
        plan = _with_reference(plan, model, reference)
    return plan if options.float_reference is None else _with_float_model(plan, model, options.float_reference)


def _own_cases(model: Model, options: SuiteOptions) -> tuple[Case, ...]:
    if options.inputs is None and options.parts == (INPUTS,):
        raise UsageError("the part 'inputs' runs your own inputs, and there are none", hint="Give some with --inputs.")
    if options.inputs is None or INPUTS not in options.parts:
        return ()
    return load_cases(options.inputs, model)


def _choose(model: Model, model_path: Path, options: SuiteOptions) -> Reference | None:
    if options.no_reference:
        return None
    return choose_reference(model, model_path, options.golden, options.reference, options.own_ops)


def _made_cases(model: Model, options: SuiteOptions, recorded: Sequence[Case] | None) -> tuple[Case, ...]:
    boundaries = make_boundary_cases(model) if BOUNDARIES in options.parts else ()
    if NUMBERS not in options.parts:
        return boundaries
    if recorded is None:
        return (*make_random_cases(model, seed=options.seed, count=options.random_count), *boundaries)
    known = {_bytes_of(case) for case in boundaries}
    return (*(case for case in recorded if _bytes_of(case) not in known), *boundaries)


def _bytes_of(case: Case) -> tuple[bytes, ...]:
    return tuple(array.tobytes() for array in case.inputs)


def _with_reference(plan: SuitePlan, model: Model, reference: Reference) -> SuitePlan:
    """Let the reference compute the outputs, of the cases in their order and then of the soak's inputs."""
    comparable = [i for i, case in enumerate(plan.cases) if case.is_comparable]
    soak = _soak_cases(model, plan.options)
    try:
        cases = [*(plan.cases[i] for i in comparable), *soak]
        rows = list(reference.outputs(cases, keeps_state=plan.options.soak.stateful))
    except CheckError as error:
        return replace(plan, problem=". ".join(p for p in (error.message, *error.reasons, error.hint) if p))
    expected: list[Outputs | None] = [None] * len(plan.cases)
    for index, row in zip(comparable, rows, strict=False):
        expected[index] = row
    exact = reference.tolerance_lsb == 0
    return replace(
        plan,
        expected=tuple(expected),
        soak_expected=tuple(rows[len(comparable) :]) if exact else (),
        reference=reference.title,
        tolerance_lsb=reference.tolerance_lsb,
    )


def _soak_cases(model: Model, options: SuiteOptions) -> tuple[Case, ...]:
    """Return the soak's inputs as cases; none when the reference can not say the bits of the outputs.

    Floats differ in their last bits.
    """
    exact = all("FLOAT" not in tensor.type for tensor in model.outputs)
    if SOAK not in options.parts or options.soak.stateful or not exact:
        return ()
    return tuple(Case(name=f"soak {seed}", inputs=soak_inputs(model, seed)) for seed in soak_seeds())


def _with_float_model(plan: SuitePlan, model: Model, path: Path) -> SuitePlan:
    if NUMBERS not in plan.options.parts:
        raise UsageError("--float-reference needs the part 'numbers'", hint="Drop --only or --skip.")
    own = [case for case in plan.cases if case.part == INPUTS]
    cases = own or [case for case in plan.cases if case.part == NUMBERS]
    if not cases:
        raise UsageError("there are no inputs to compare with the float model", hint="Give some with --inputs.")
    expected = float_outputs(path, model, cases)
    if not all(np.isfinite(array).all() for row in expected for array in row):
        raise UsageError(f"{path}: the float model gives NaN or infinity", hint="Give typical inputs with --inputs.")
    return replace(plan, float_cases=tuple(case.name for case in cases), float_expected=expected)


def _no_reference_words(model_path: Path) -> str:
    return (
        "no reference to compare with: install it (pip install 'tflm-forge[reference]'), put a golden file "
        f"at {golden_path(model_path)}, or say --no-reference"
    )
