"""Decides whose each span is: from its file, else from what is around it, else from what refers to it, else by name."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable

from tflm_forge.size.layout import Span
from tflm_forge.size.op_sources import tell_apart
from tflm_forge.size.records import Group
from tflm_forge.size.references import Reference
from tflm_forge.size.rules import Claim, Rules

Owner = tuple[Group, str]
"""A group and one operator; empty when none."""

_ROUNDS = 30
"""Chains of helpers that call helpers are shorter."""

_SURROUNDED = (Group.OPERATORS, Group.CPP, Group.LIBRARY, Group.APPLICATION)
"""Groups whose headers' code belongs to whatever uses it, even where it is a function of its own."""

_SAID_BY = (Group.LINK, Group.BOARD, Group.APPLICATION)
"""Groups that keep their own strings; those of all others are error strings."""


_RUNTIME = {Group.OPERATORS, Group.INTERPRETER, Group.PLANNER, Group.FLATBUFFER}

_CALLS_OPERATORS = {Group.OPERATORS, Group.LINK}
"""Whose calls leave code to the operators that call it: forge's link reaches kernels by their registrations only."""

_SPEAKS_FOR = {Group.VECTORS: Group.BOARD, Group.STARTUP: Group.BOARD}
"""Whose what these tables point to is, where nothing else says it."""


def resolve(spans: list[Span], references: Iterable[Reference], rules: Rules) -> None:
    """Give each span that has no claim yet its claim; where nothing tells, it stays without.

    Args:
        spans: all spans, by section and address; changed in place.
        references: what refers to what.
        rules: the rules of this ELF.
    """
    for span in spans:
        if span.claim is None:
            span.claim = _claim_of_file(span, rules)
    units = defaultdict(list)
    for span in spans:
        units[span.unit].append(span)
    for members in units.values():
        _settle_inside(members, rules)
    owners = _owners_by_use(spans, references)
    for span in spans:
        if not _is_settled(span):
            span.claim = _decide(span, owners.get(span.unit, set()), rules)


def _claim_of_file(span: Span, rules: Rules) -> Claim | None:
    """Return what the line table says, else the linker map, else a function's name.

    A name of the runtime counts too where its sources stand in folders of another name.
    The file of a string tells nothing: the linker merges those of all files.
    """
    claim = rules.of_file(span.source) if span.source else None
    if claim is None and span.object and not span.text:
        claim = rules.of_file(span.object)
    if span.section.is_code and span.symbol is not None and (claim is None or claim.group == Group.APPLICATION):
        named = rules.of_symbol(span.symbol.name)
        if named is not None and named.group in (_RUNTIME if claim else set(Group) - {Group.APPLICATION}):
            claim = named
    return claim


def _settle_inside(members: list[Span], rules: Rules) -> None:
    """Give code from headers, and code that serves operators, to the function around it."""
    symbol = members[0].symbol
    home = members[0].claim
    if home is not None and home.yields:
        home = None
    firm = home
    for span in members:
        claim = span.claim
        if claim is None or claim.yields:
            span.claim = firm if firm is not None and (claim is not None or symbol is not None) else claim
        elif claim.group == Group.OPERATORS and len(claim.ops) != 1:
            span.claim = _narrow(claim, firm, home, symbol.name if symbol else "", rules)
        else:
            firm = claim
            continue
        if span.claim is not None and not span.claim.yields and len(span.claim.ops) == 1:
            firm = span.claim


def _narrow(claim: Claim, firm: Claim | None, home: Claim | None, symbol: str, rules: Rules) -> Claim:
    """Choose among the operators of a claim: that of the code around, or the one that the function's name speaks of."""
    for near in (firm, home):
        if near is not None and len(near.ops) == 1 and (near.ops <= claim.ops or not claim.ops):
            return near
    if len(claim.ops) > 1:
        return Claim(Group.OPERATORS, tell_apart(claim.ops, symbol))
    named = rules.of_symbol(symbol) if symbol else None
    return named if named is not None and named.group == Group.OPERATORS and named.ops else claim


def _is_settled(span: Span) -> bool:
    claim = span.claim
    if claim is None or (claim.yields and claim.group in _SURROUNDED):
        return False
    return claim.group != Group.OPERATORS or len(claim.ops) == 1


def _owners_by_use(spans: list[Span], references: Iterable[Reference]) -> dict[int, set[Owner]]:
    """Return for each unit that is not settled all owners of what refers to it, directly or through others like it."""
    starts = [span.start for span in spans]
    open_units = {span.unit for span in spans if not _is_settled(span)}
    users: dict[int, set[int]] = defaultdict(set)
    owners: dict[int, set[Owner]] = defaultdict(set)
    for source, target in references:
        used = _find(spans, starts, target)
        user = _find(spans, starts, source)
        if used is None or user is None or used.unit not in open_units or used.unit == user.unit or _is_nameless(user):
            continue
        if _is_settled(user) and user.claim is not None:
            group = _SPEAKS_FOR.get(user.claim.group, user.claim.group)
            owners[used.unit].update((group, op) for op in user.claim.ops or ("",))
        else:
            users[used.unit].add(user.unit)
    for _ in range(_ROUNDS):
        changed = False
        for unit, through in users.items():
            before = len(owners[unit])
            for user_unit in through:
                owners[unit] |= owners.get(user_unit, set())
            changed = changed or len(owners[unit]) != before
        if not changed:
            break
    return owners


def _find(spans: list[Span], starts: list[int], address: int) -> Span | None:
    index = bisect_right(starts, address) - 1
    return spans[index] if index >= 0 and address < spans[index].end else None


def _is_nameless(span: Span) -> bool:
    """Whether it is code of which nothing is known: where one function ends and another starts can not be told."""
    return span.section.is_code and span.symbol is None and not span.source and not span.text


def _decide(span: Span, owners: set[Owner], rules: Rules) -> Claim | None:
    claim = span.claim
    groups = {group for group, _ in owners}
    ops = frozenset(op for group, op in owners if group == Group.OPERATORS and op)
    if span.text:
        return _decide_text(groups, ops)
    if claim is not None and claim.group == Group.OPERATORS:
        if groups <= _CALLS_OPERATORS:
            return Claim(Group.OPERATORS, (ops & claim.ops) or ops or claim.ops)
        return Claim(Group.OPERATORS, claim.ops)
    named = rules.of_symbol(span.symbol.name) if span.symbol is not None else None
    if _is_nameless(span):
        return claim
    if len(groups) == 1:
        return Claim(next(iter(groups)), ops)
    return named or claim


def _decide_text(groups: set[Group], ops: frozenset[str]) -> Claim:
    if len(groups) == 1 and (group := next(iter(groups))) in _SAID_BY:
        return Claim(group)
    return Claim(Group.STRINGS, ops if groups <= {Group.OPERATORS} else frozenset())
