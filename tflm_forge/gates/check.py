"""Checks a repository: its models, their committed manifests, and the op resolvers in its sources."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tflm_forge.config import CONFIG_NAME, Config, OperatorCheckTable
from tflm_forge.errors import ForgeError, ModelError, UsageError
from tflm_forge.gates.findings import CheckReport, Finding, ManifestDiff, Severity
from tflm_forge.gates.project_files import find_files, nearest_above
from tflm_forge.gates.renewal import Origin, find_origin, make_again
from tflm_forge.gates.resolver_check import compare_resolver, list_wanted, load_catalogues
from tflm_forge.gates.resolver_source import read_resolver
from tflm_forge.manifest import Manifest, keep_measured, read_manifest, render_manifest
from tflm_forge.manifest.making import relative_name
from tflm_forge.manifest.record import locate_model
from tflm_forge.model import Model, OpUse, load_model, op_set, union_op_set

_RENEW = "Run `forge manifest --all`, look at the difference, and commit it."
_RENEW_MEASURED = "Run `forge build`, which measures arena and flash, then `forge manifest --all`, and commit it."
_POLICY = (
    "parse_model_ops",
    "compare_firmware_resolver",
    "fail_on_missing_operator",
    "check_version_compatibility",
    "generate_op_manifest",
)


@dataclass(kw_only=True)
class _Check:
    """One check under way: the policy, and what has been found so far."""

    folder: Path
    config: Config
    policy: OperatorCheckTable
    models: dict[Path, Model] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    diffs: list[ManifestDiff] = field(default_factory=list)

    @property
    def missing(self) -> Severity:
        """Severity of an op that the firmware lacks."""
        return "error" if self.policy.fail_on_missing_operator else "warning"

    def add(self, rule: str, path: Path, words: str, *, line: int | None = None, remedy: str = "") -> None:
        """Note an error."""
        self.findings.append(Finding(rule=rule, path=path, line=line, words=words, remedy=remedy))


def check_project(folder: Path, config: Config, manifests: Sequence[Path] = ()) -> CheckReport:
    """Check a project.

    Args:
        folder: the folder of its forge.toml.
        config: what forge.toml says.
        manifests: the manifests to check; default: those of [operator_ci_check].

    Raises:
        UsageError: there is nothing to check: no forge.toml and no manifest.
    """
    check = _Check(folder=folder, config=config, policy=config.operator_ci_check)
    paths = tuple(manifests) or find_files(folder, check.policy.manifests)
    known: dict[Path, Manifest] = {}
    if not paths:
        _note_no_match(check, "manifest-missing", "manifests")
    for path in paths:
        if not path.is_file():
            if manifests or config == Config():
                raise _nothing_to_check(path)
            check.add("manifest-missing", path, "There is no operator manifest.", remedy=_how_to_make(config))
            continue
        try:
            known[path] = read_manifest(path)
        except UsageError as error:
            check.findings.append(_from_error("manifest-unreadable", path, error))
    if check.policy.parse_model_ops:
        for path, manifest in known.items():
            _check_manifest(check, path, manifest)
        if not manifests:
            _check_coverage(check, known)
    sources: tuple[Path, ...] = ()
    if check.policy.compare_firmware_resolver:
        sources = find_files(folder, check.policy.resolvers)
        if check.policy.resolvers and not sources:
            _note_no_match(check, "resolver-missing", "resolvers")
        _check_resolvers(check, sources, known)
    return CheckReport(
        folder=folder,
        manifests=tuple(known),
        models=tuple(check.models),
        resolvers=sources,
        findings=tuple(sorted(check.findings, key=_order)),
        diffs=tuple(check.diffs),
        skipped=tuple(name for name in _POLICY if not getattr(check.policy, name)),
    )


def _note_no_match(check: _Check, rule: str, key: str) -> None:
    """Note that patterns name no file at all: a gate that looks at nothing would let everything pass."""
    patterns = ", ".join(getattr(check.policy, key))
    check.add(rule, check.folder / CONFIG_NAME, f"No file matches [operator_ci_check] {key}: {patterns}.")


def _order(finding: Finding) -> tuple[bool, str, int]:
    return finding.severity != "error", str(finding.path), finding.line or 0


def _nothing_to_check(path: Path) -> UsageError:
    return UsageError(
        f"{path}: no such manifest, and nothing to check",
        hint="`forge manifest MODEL --board BOARD` makes one; `forge init MODEL` writes a forge.toml.",
    )


def _how_to_make(config: Config) -> str:
    known = config.build.model is not None and config.build.board is not None
    return f"Run `forge manifest{'' if known else ' MODEL --board BOARD'}` and commit the file."


def _how_to_renew(old: Manifest) -> str:
    return _RENEW_MEASURED if old.arena or (old.flash and old.flash.groups) else _RENEW


def _from_error(rule: str, path: Path, error: ForgeError) -> Finding:
    """Return the finding of an error whose message may begin with the file and its line."""
    words = error.message.removeprefix(f"{path}:")
    number, colon, rest = words.partition(":")
    line = int(number) if colon and number.isdigit() else None
    words = "; ".join([(rest if line is not None else words).strip(), *error.reasons])
    return Finding(rule=rule, path=path, line=line, words=words, remedy=error.hint)


def _check_manifest(check: _Check, path: Path, old: Manifest) -> None:
    """Compare a manifest with its models, and with what forge makes of them today."""
    try:
        origin = find_origin(path, old, check.config)
    except UsageError as error:
        check.findings.append(_from_error("manifest-stale", path, error))
        return
    models = []
    for index, place in enumerate(origin.model_paths):
        key = f"models[{index}].file" if len(old.models) > 1 else "model.file"
        model = _load(check, place, path, old.line_of(key))
        if model is None:
            return
        models.append(model)
    _compare_models(check, path, old, models)
    _compare_ops(check, path, old, models)
    if check.policy.generate_op_manifest or check.policy.check_version_compatibility:
        _compare_with_today(check, path, old, models, origin)


def _load(check: _Check, place: Path, path: Path, line: int) -> Model | None:
    if place in check.models:
        return check.models[place]
    if not place.is_file():
        remedy = "Bring it back, or make the manifest of another with `forge manifest MODEL -o FILE`."
        check.add(
            "model-missing",
            path,
            f"The model {relative_name(place, check.folder)} is not there.",
            line=line,
            remedy=remedy,
        )
        return None
    try:
        check.models[place] = load_model(place)
    except ModelError as error:
        check.findings.append(_from_error("model-unreadable", place, error))
        return None
    return check.models[place]


def _compare_models(check: _Check, path: Path, old: Manifest, models: Sequence[Model]) -> None:
    for index, (model, said) in enumerate(zip(models, old.models, strict=False)):
        if model.sha256 != said.sha256:
            key = f"models[{index}].sha256" if len(old.models) > 1 else "model.sha256"
            words = f"{model.name} has SHA-256 {model.sha256[:12]}, the manifest was made of {said.sha256[:12]}."
            check.add("model-changed", path, words, line=old.line_of(key), remedy=_how_to_renew(old))


def _compare_ops(check: _Check, path: Path, old: Manifest, models: Sequence[Model]) -> None:
    """Say of each op and version that the models need whether the manifest's firmware has it."""
    listed = {op.key: (index, op) for index, op in enumerate(old.ops)}
    for use in union_op_set(models):
        found = listed.get((use.builtin_code, use.custom_name))
        if found is None:
            finding = Finding(
                rule="operator-missing",
                severity=check.missing,
                path=path,
                line=old.line_of("ops"),
                words=f"{_where(use, models)} is not registered by this firmware.",
                remedy="A firmware without it can not run the model: upgrade it first, or convert the model without.",
            )
            check.findings.append(finding)
        elif check.policy.check_version_compatibility and use.version > found[1].max_version:
            index, op = found
            words = f"{_where(use, models)}, and the firmware's kernel implements up to version {op.max_version}."
            check.add("operator-version", path, words, line=old.line_of(f"ops[{index}].max_version"))


def _where(use: OpUse, models: Sequence[Model]) -> str:
    owner = next(m.name for m in models if any((u.builtin_code, u.custom_name) == _key(use) for u in op_set(m)))
    return f"{use.name} version {use.version} (layer {use.first_layer!r} of {owner})"


def _key(use: OpUse) -> tuple[int, str]:
    return use.builtin_code, use.custom_name


def _compare_with_today(check: _Check, path: Path, old: Manifest, models: Sequence[Model], origin: Origin) -> None:
    try:
        new = make_again(origin, models, old)
    except ModelError as error:
        check.findings.append(_from_error("model-refused", origin.model_paths[0], error))
        return
    except ForgeError as error:
        check.findings.append(_from_error("manifest-stale", path, error))
        return
    # Another forge may make another firmware, but the ops of this one are what counts here.
    new = keep_measured(replace(new, format=old.format, forge=old.forge), old)
    if old.runtime and new.runtime and check.policy.check_version_compatibility:
        theirs, ours = (f"{r.name} {r.version}" for r in (old.runtime, new.runtime))
        if theirs != ours:
            words = f"The manifest was made with {theirs}, and {ours} is in use here."
            remedy = _how_to_renew(old)
            if old.runtime.commit:
                remedy = f"`forge runtime install tflm --commit {old.runtime.commit}` brings that one. Or: {remedy}"
            check.add("runtime-version", path, words, line=old.line_of("runtime.version"), remedy=remedy)
    if check.policy.generate_op_manifest and new != old:
        diff = _diff(path, old, new, check.folder)
        check.diffs.append(ManifestDiff(path=path, text=diff))
        words = f"The manifest is not what forge makes of {', '.join(model.name for model in models)} today."
        check.add("manifest-stale", path, words, line=_first_line(old, diff), remedy=_how_to_renew(old))


def _diff(path: Path, old: Manifest, new: Manifest, folder: Path) -> str:
    """Return the difference of two manifests as forge writes them, whatever layout the committed file has."""
    before, after = (render_manifest(each).decode().splitlines(keepends=True) for each in (old, new))
    try:
        name = path.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        name = path.as_posix()
    lines = difflib.unified_diff(before, after, f"{name} (committed)", f"{name} (made again)", n=2)
    return "".join(lines)


def _first_line(old: Manifest, diff: str) -> int:
    """Return the line of the first op or key that differs, other than the checksum."""
    number = 0
    for line in diff.splitlines():
        if line.startswith("@@"):
            number = int(line.split()[1].removeprefix("-").partition(",")[0])
        elif line.startswith("-") and not line.startswith("---") and "checksum" not in line:
            return number
        elif number and not line.startswith("+"):
            number += 1
    return old.line_of("ops")


def _check_coverage(check: _Check, known: dict[Path, Manifest]) -> None:
    """Find models that no manifest names."""
    table = check.config.build
    own = [path for path in (table.model, *table.with_) if path is not None]
    named = {locate_model(path, model).resolve() for path, manifest in known.items() for model in manifest.models}
    if not known:
        own = []  # said already: there is no manifest that can be read
    for path in dict.fromkeys([*own, *find_files(check.folder, check.policy.models)]):
        if path.resolve() not in named:
            name = relative_name(path, check.folder)
            manifest_name = f"{name.removesuffix(path.suffix)}.manifest.yaml"
            remedy = f"Run `forge manifest {name} --board BOARD -o {manifest_name}` and commit the file."
            check.add("manifest-missing", path, f"No checked manifest names the model {path.name}.", remedy=remedy)


def _check_resolvers(check: _Check, sources: Sequence[Path], known: dict[Path, Manifest]) -> None:
    """Compare each source with the manifests that are nearest to it."""
    by_folder: dict[Path, list[Path]] = {}
    for path in known:
        by_folder.setdefault(path.parent.resolve(), []).append(path)
    groups: dict[Path, list[Path]] = {}
    for source in sources:
        home = nearest_above(source, by_folder)
        if not source.is_file():
            check.add("resolver-missing", source, "This source of an op resolver is not there.")
        elif home is not None:
            groups.setdefault(home, []).append(source)
        elif known:
            check.add(
                "resolver-missing", source, "No checked manifest is in its folder or above: nothing to compare with."
            )
    catalogues = load_catalogues(known.values()) if groups else ()
    for home, members in groups.items():
        wanted = [want for path in by_folder[home] for want in list_wanted(path, known[path], check.models)]
        try:
            read = [read_resolver(member) for member in members]
        except UsageError as error:
            check.findings.append(_from_error("resolver-missing", members[0], error))
            continue
        check.findings.extend(compare_resolver(read, wanted, catalogues, check.missing))
