"""Finds why a model will not run, before anything is built: rules, each with a remedy and a source.

Pure: values in, findings out. A new rule is a function with `@rule` in a module of `rules/`.
"""

from collections.abc import Iterator, Mapping, Sequence

from tflm_forge.doctor.records import Finding, Hit, Rule, Severity, Subject
from tflm_forge.doctor.rules import board, custom, file, graph, kernels, ops, quantization, scales, types
from tflm_forge.errors import UsageError
from tflm_forge.model import Model
from tflm_forge.registry import unknown_name

__all__ = ["RULES", "Finding", "Rule", "Severity", "Subject", "check_silence", "diagnose", "find_findings"]

RULES: tuple[Rule, ...] = tuple(
    value
    for module in (file, ops, custom, types, quantization, scales, kernels, graph, board)
    for value in vars(module).values()
    if isinstance(value, Rule)
)
"""All rules, in the order in which they are asked."""

_ORDER: Sequence[Severity] = ("error", "warning", "note")


def diagnose(subject: Subject, silence: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """Ask all rules that know enough about a model: errors first, then warnings, then notes.

    Args:
        subject: the model, and what it is to run on.
        silence: id of a rule to the reason why its findings do not stand.
    """
    reasons = silence or {}
    findings = [
        Finding(
            id=rule.id,
            severity=rule.severity,
            layer=hit.layer,
            words=hit.words,
            remedy=hit.remedy or rule.remedy,
            silenced=reasons.get(rule.id, ""),
        )
        for rule in RULES
        if _knows_enough(rule, subject)
        for hit in _gather(rule.check(subject))
    ]
    return tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.severity)))


def find_findings(model: Model) -> tuple[Finding, ...]:
    """Return what can be said about a model without knowing the runtime or the board."""
    return diagnose(Subject(model=model))


def check_silence(silence: Mapping[str, str], where: str) -> None:
    """Refuse a rule that does not exist, and a rule that is silenced without a reason.

    Args:
        silence: id of a rule to the reason.
        where: where the user wrote it, for the error.

    Raises:
        UsageError: names the nearest rule.
    """
    known = {rule.id for rule in RULES}
    for name, reason in silence.items():
        if name not in known:
            error = unknown_name("rule", name, known)
            raise UsageError(f"{where}: {error.message}", hint=error.hint)
        if not reason.strip():
            raise UsageError(f"{where}: {name} has no reason", hint="Say why the finding does not matter here.")


def _knows_enough(rule: Rule, subject: Subject) -> bool:
    if rule.needs == "runtime":
        return subject.catalogue is not None
    return rule.needs == "model" or subject.board is not None


def _gather(hits: Iterator[Hit]) -> list[Hit]:
    """Make one hit of all of a kind: the first, which says how many more there are."""
    firsts: dict[str, Hit] = {}
    counts: dict[str, int] = {}
    for number, hit in enumerate(hits):
        key = hit.kind or str(number)
        firsts.setdefault(key, hit)
        counts[key] = counts.get(key, 0) + 1
    return [_with_count(hit, counts[key]) for key, hit in firsts.items()]


def _with_count(hit: Hit, count: int) -> Hit:
    if count == 1:
        return hit
    more = f"{count - 1} more like it" if count > 2 else "one more like it"
    return Hit(layer=hit.layer, words=f"{hit.words} There {'are' if count > 2 else 'is'} {more}.", remedy=hit.remedy)
