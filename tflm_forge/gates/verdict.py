"""Says whether a firmware can run a model: compatible, firmware upgrade first, or reject; every reason at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tflm_forge import runtimes
from tflm_forge.config import ModelCompatibilityTable, OpTable
from tflm_forge.errors import UsageError
from tflm_forge.gates.facts import FirmwareFacts, FirmwareModel, FirmwareOp
from tflm_forge.gates.needs import ArenaNeed, ModelNeeds
from tflm_forge.gates.reasons import Judgement, Reason, Severity, conclude, judge_arena
from tflm_forge.model import OpUse
from tflm_forge.ops.catalogue import Catalogue, CatalogueOp, activation_types
from tflm_forge.ops.hash import format_op_hash
from tflm_forge.ops.obstacles import Obstacle, list_obstacles
from tflm_forge.ops.own import add_own_ops
from tflm_forge.registry import list_names
from tflm_forge.runtimes import load_runtime
from tflm_forge.runtimes.tflm.registrations import fits_registration

_FLEX_ID = "flex-op"


def load_catalogues(own_ops: Sequence[OpTable] = ()) -> dict[str, Catalogue]:
    """Return what each runtime that forge knows can run, with the user's own kernels, by the runtime's name.

    Raises:
        UsageError: a table of the user's own kernels is wrong for every runtime.
    """
    found = {name: load_runtime(name).catalogue() for name in list_names(runtimes)}
    problems = []
    for name, catalogue in found.items():
        try:
            found[name] = add_own_ops(catalogue, own_ops)
        except UsageError as error:  # a kernel may stand for an op that only another runtime has
            problems.append(error)
    if problems and len(problems) == len(found):
        raise problems[0]
    return found


@dataclass(frozen=True, kw_only=True)
class Judge:
    """Judges one model on any number of firmwares.

    Attributes:
        needs: what the model needs.
        catalogues: what the runtimes that this forge knows can run, by their names.
        policy: what is checked.
    """

    needs: ModelNeeds
    catalogues: Mapping[str, Catalogue]
    policy: ModelCompatibilityTable

    def find_reasons(
        self, facts: FirmwareFacts, seen_types: frozenset[str] = frozenset()
    ) -> tuple[list[Reason], list[str]]:
        """Return all reasons against the model on a firmware but for the arena, and what could not be checked.

        Args:
            facts: what the firmware can run.
            seen_types: tensor types of its own model's inputs and outputs: all that is known of its kernels where the
                facts have no types.
        """
        unknown: list[str] = []
        found = [
            Reason(id=finding.id, severity="reject", subject=finding.layer, words=finding.words, remedy=finding.remedy)
            for finding in self.needs.problems
        ]
        found += self._judge_ops(facts, seen_types, unknown)
        found += self._judge_features(facts, unknown)
        found += self._judge_flash(facts, unknown)
        return found, unknown

    def judge(
        self,
        facts: FirmwareFacts,
        arena: ArenaNeed,
        *,
        seen_types: frozenset[str] = frozenset(),
        notes: Sequence[Reason] = (),
    ) -> Judgement:
        """Return the verdict on one firmware.

        Args:
            facts: what the firmware can run.
            arena: how large an arena the model needs on it.
            seen_types: as for `find_reasons`.
            notes: what was noticed besides.
        """
        reasons, unknown = self.find_reasons(facts, seen_types)
        if facts.arena_bytes is None:
            unknown.append("the size of the firmware's tensor arena")
        elif arena.is_moot:
            unknown.append("the arena, for this firmware's runtime does not run the model")
        else:
            reasons += judge_arena(facts.arena_bytes, arena)
        return conclude(reasons, notes=notes, unknown=unknown)

    def _judge_ops(self, facts: FirmwareFacts, seen_types: frozenset[str], unknown: list[str]) -> list[Reason]:
        found = []
        registered = facts.by_key
        unsaid = []
        for use in self.needs.ops:
            op = registered.get((use.builtin_code, use.custom_name))
            if op is None:
                found += self._judge_missing(use, facts)
            elif self.policy.check_firmware_resolver:
                found += self._judge_registered(use, op, facts)
                if op.types is None and op.registration is None:
                    unsaid.append(use)
        if unsaid:
            found += self._judge_unsaid(unsaid, facts, seen_types)
            unknown.append(f"the tensor types that the kernels of {', '.join(use.name for use in unsaid)} take")
        if self.policy.block_model_if_resolver_hash_mismatch and facts.op_hash != self.needs.op_hash:
            theirs = "not known" if facts.op_hash is None else format_op_hash(facts.op_hash)
            words = f"The model's op hash is {format_op_hash(self.needs.op_hash)}, the firmware's is {theirs}."
            remedy = "block_model_if_resolver_hash_mismatch lets only models pass whose ops and versions are the same."
            found.append(Reason(id="op-hash", severity="upgrade", words=words, remedy=remedy))
        return found

    def _judge_unsaid(self, uses: list[OpUse], facts: FirmwareFacts, seen_types: frozenset[str]) -> list[Reason]:
        """Return the reasons against ops whose kernels may be for other types: a device does not tell which.

        Versions go with types, so with the op hash of the firmware's own model all is well. Else only those types are
        believed that its model has at its ends.
        """
        if not seen_types or facts.op_hash == self.needs.op_hash:
            return []
        catalogue = self.catalogues.get(facts.runtime or "")
        found = []
        for use in uses:
            row = catalogue.find(use) if catalogue else None
            strange = sorted(activation_types(use) - seen_types)
            if row is not None and len(row.registrations) > 1 and strange:
                words = (
                    f"{use.name} (first used by layer {use.first_layer!r}) has {', '.join(strange)} tensors, and the "
                    f"firmware's kernel may be for {', '.join(sorted(seen_types))} alone: the device does not say."
                )
                remedy = "Its ELF or manifest does."
                found.append(Reason(id="op-type", severity="upgrade", subject=use.name, words=words, remedy=remedy))
        return found

    def _judge_missing(self, use: OpUse, facts: FirmwareFacts) -> list[Reason]:
        if any(finding.id == _FLEX_ID and finding.layer == use.first_layer for finding in self.needs.problems):
            return []  # said already, with a better remedy
        having = [name for name, catalogue in self.catalogues.items() if catalogue.find(use)]
        where = f"{use.name} ({use.count}x, version {use.version}, first used by layer {use.first_layer!r})"
        if not having:
            words = f"{where} is neither registered nor an op of a runtime that forge knows."
            remedy = "A kernel of your own can run it: write it down as [[op]] of forge.toml."
            severity: Severity = "reject" if self.policy.reject_model_with_unknown_operator else "upgrade"
            return [Reason(id="unknown-op", severity=severity, subject=use.name, words=words, remedy=remedy)]
        if not self.policy.check_firmware_resolver:
            return []
        if nowhere := self._judge_types_everywhere(use, where):
            return nowhere
        own = facts.runtime in (None, *having)
        remedy = "" if own else f"Runtime {facts.runtime}, which it was built with, has no such op; {having[0]} has."
        words = f"{where} is not registered."
        return [Reason(id="op-missing", severity="upgrade", subject=use.name, words=words, remedy=remedy)]

    def _judge_registered(self, use: OpUse, op: FirmwareOp, facts: FirmwareFacts) -> list[Reason]:
        where = f"{use.name} (first used by layer {use.first_layer!r})"
        found = []
        if use.version > op.max_version:
            limits = [row.max_version for c in self.catalogues.values() if (row := c.find(use))]
            remedy = ""
            if limits and max(limits) < use.version:
                remedy = f"No runtime that forge knows goes beyond version {max(limits)}."
            words = f"{where} needs version {use.version}, and the firmware's kernel goes up to {op.max_version}."
            found.append(Reason(id="op-version", severity="upgrade", subject=use.name, words=words, remedy=remedy))
        if refused := self._find_type_fault(use, op, facts.runtime or ""):
            found += self._judge_types_everywhere(use, where) or [
                Reason(id="op-type", severity="upgrade", subject=use.name, words=f"{where} {refused}.")
            ]
        return found

    @cached_property
    def _type_obstacles(self) -> Mapping[tuple[str, OpUse], tuple[Obstacle, ...]]:
        """What of an op's tensor types each runtime does not take, whatever its version, for all firmwares."""
        return {
            (name, use): list_obstacles([replace(use, version=1)], catalogue)
            for name, catalogue in self.catalogues.items()
            for use in self.needs.ops
        }

    def _find_type_fault(self, use: OpUse, op: FirmwareOp, runtime: str) -> str:
        """Say which tensor types of an op its registered kernel does not take; empty when none is known."""
        refused = sorted(activation_types(use) - set(op.types)) if op.types else []
        if refused:
            return f"has {', '.join(refused)} tensors, and the firmware's kernel takes {', '.join(op.types or ())}"
        if op.registration is not None and not fits_registration(op.name, op.registration, use.types):
            types = "; ".join(f"{', '.join(inputs)} -> {', '.join(outputs)}" for inputs, outputs in use.types)
            return f"has tensors {types}, and the firmware registers {op.registration}"
        catalogue = self.catalogues.get(runtime)
        row = catalogue.find(use) if catalogue else None
        if row is None or not _is_runtimes_own(op, row):
            return ""
        obstacles = self._type_obstacles[runtime, use]
        return obstacles[0].words.removesuffix(".") if obstacles else ""

    def _judge_types_everywhere(self, use: OpUse, where: str) -> list[Reason]:
        """Return the reason against an op whose tensor types no runtime takes, whatever its version."""
        obstacles = [self._type_obstacles[name, use] for name, c in self.catalogues.items() if c.find(use)]
        if not obstacles or not all(obstacles):
            return []
        last = obstacles[-1][0]
        words = f"{where} can not be run by any runtime that forge knows: it {last.words}"
        return [Reason(id="op-type-nowhere", severity="reject", subject=use.name, words=words, remedy=last.remedy)]

    def _judge_features(self, facts: FirmwareFacts, unknown: list[str]) -> list[Reason]:
        needs, found = self.needs, []
        if facts.schema_version is not None and needs.schema_version > facts.schema_version:
            words = f"The model has TFLite schema {needs.schema_version}, the firmware reads {facts.schema_version}."
            found.append(Reason(id="schema", severity="upgrade", words=words))
        if needs.resource_variables:
            if facts.resource_variables is None:
                unknown.append("how many resource variables the firmware has room for")
            elif needs.resource_variables > facts.resource_variables:
                words = (
                    f"The model names {needs.resource_variables} resource variables, and the firmware has room for "
                    f"{facts.resource_variables}."
                )
                found.append(Reason(id="resource-variables", severity="upgrade", words=words))
        if needs.is_compressed and not facts.compression:
            words = (
                "The model's constants are packed by TFLM's compression tool, and the firmware does not unpack them."
            )
            remedy = "Or send the model as it was before compression."
            found.append(Reason(id="compression", severity="upgrade", words=words, remedy=remedy))
        return found

    def _judge_flash(self, facts: FirmwareFacts, unknown: list[str]) -> list[Reason]:
        needs, slot = self.needs, find_slot(facts, self.needs.file)
        if slot is None:
            unknown.append("the flash that is left for a model")
            return []
        if needs.size_bytes <= slot:
            return []
        words = (
            f"The model takes {needs.size_bytes:,} bytes of flash, and with the model out whose place it takes there "
            f"are {slot:,}."
        )
        return [Reason(id="flash", severity="upgrade", words=words)]


def find_replaced(models: Sequence[FirmwareModel], file: str) -> int:
    """Return which of a firmware's models a new one takes the place of: that with its file's name, else the first."""
    names = [Path(model.file or "").name for model in models]
    return names.index(file) if file in names else 0


def find_slot(facts: FirmwareFacts, file: str) -> int | None:
    """Return how many bytes of flash a model may have that takes its place in a firmware; None when not known."""
    slot, replaced = facts.model_slot_bytes, find_replaced(facts.models, file)
    if slot is None:
        return None
    return slot - sum(model.size_bytes for index, model in enumerate(facts.models) if index != replaced)


def _is_runtimes_own(op: FirmwareOp, row: CatalogueOp) -> bool:
    """Return whether the registered kernel is one of the runtime's, not one of the user's that stands for it."""
    if op.registration is None:
        return True
    function = op.registration.partition("(")[2].removesuffix(")").removesuffix("()").removeprefix("tflite::")
    return not function or function in row.registrations.values()
