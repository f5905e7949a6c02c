"""ELF -> Attribution: gives every byte of every allocated section exactly one owner."""

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tflm_forge.elf import Elf, LineTable, Section, read_elf, read_lines
from tflm_forge.model import Model, op_set
from tflm_forge.size.layout import MAX_SPANS, MAX_TEXTS, Span, cut_sections
from tflm_forge.size.link_map import LinkMap, read_link_map
from tflm_forge.size.op_sources import load_op_sources
from tflm_forge.size.records import Attribution, Group, Piece, SectionSize
from tflm_forge.size.references import MAX_CODE_BYTES, find_references
from tflm_forge.size.resolve import resolve
from tflm_forge.size.rules import Claim, Rules, is_temporary
from tflm_forge.size.weights import PlacedModel, find_models

_MAX_PADDING_BYTES = 64
"""Alignment of the largest objects that compilers and linker scripts align (cache lines)."""

_FILLERS = (b"\x00\x00", b"\x00\xbf", b"\xff\xff", b"\x01\x00", b"\x13\x00")
"""Zeros, Thumb's NOP, erased flash, RISC-V's compressed NOP and the first half of its long one."""

_SHOWN_OPS = 2
_SECTIONS: tuple[tuple[re.Pattern[str], Group], ...] = (
    (re.compile(r"\.?(isr_)?vectors?(_table)?|\.intvecs?|\.boot2|\.vector.*|\.isr_vector.*"), Group.VECTORS),
    (re.compile(r"\.ARM\.(exidx|extab).*|\.eh_frame.*|\.gcc_except_table.*"), Group.EXCEPTIONS),
    (re.compile(r"\.(pre)?init_array.*|\.fini_array.*|\.[cd]tors.*|\.init|\.fini"), Group.STARTUP),
    (re.compile(r".*heap_?stack|.*stack.*", re.IGNORECASE), Group.STACK),
    (re.compile(r".*heap.*", re.IGNORECASE), Group.HEAP),
    (re.compile(r".*tensor_?arena.*|\.forge_arena", re.IGNORECASE), Group.ARENA),
)
_MEMORY = re.compile(r"vector|arena|stack|heap", re.IGNORECASE)
_SYMBOLS: tuple[tuple[re.Pattern[str], Group], ...] = (
    (re.compile(r"_*(g_pfn|isr_)?vectors?(_?table)?|_*interrupt_?vectors?|g_pfnVectors", re.IGNORECASE), Group.VECTORS),
    (re.compile(r".*tensor_?arena\w*", re.IGNORECASE), Group.ARENA),
    (
        re.compile(r"_*(main_?|process_?|interrupt_?|isr_?|z_)?stacks?(_?(memory|mem|area|space))?", re.I),
        Group.STACK,
    ),
    (re.compile(r"_*(uc)?heap(_?(mem|memory|area|space))?", re.IGNORECASE), Group.HEAP),
)


def attribute(
    path: Path,
    *,
    link_map: Path | None = None,
    model: Model | None = None,
    own_sources: Mapping[str, str] | None = None,
) -> Attribution:
    """Say for each byte of an ELF's flash and RAM whose it is.

    Args:
        path: the ELF file.
        link_map: the linker's map; the .map beside the ELF when there is one.
        model: a model that may be in it, and need not be read again.
        own_sources: name of the operator by the path of each source of the user's own kernels.

    Raises:
        UsageError: not an ELF file that can be read.
    """
    elf = read_elf(path)
    return attribute_linked(elf, read_lines(elf), _read_map(elf, link_map), model=model, own_sources=own_sources)


def attribute_linked(
    elf: Elf,
    lines: LineTable,
    placed: LinkMap,
    *,
    model: Model | None = None,
    own_sources: Mapping[str, str] | None = None,
) -> Attribution:
    """Say for each byte whose it is, from what has been read of a link."""
    path = elf.path
    models, model_notes = find_models(elf, model)
    present = frozenset(use.name for each in models if each.model for use in op_set(each.model))
    is_forge = any(symbol.name.startswith("_ZN5forge") for symbol in elf.symbols)
    rules = Rules(load_op_sources(), present, own_sources or {}, is_forge=is_forge)
    spans = cut_sections(elf, lines, placed)
    _claim_by_kind(elf, spans, models)
    resolve(spans, find_references(elf, [range(m.start, m.end) for m in models]), rules)
    sections = tuple(_size_of(section) for section in elf.sections)
    notes = [*elf.notes, *lines.notes, *placed.notes, *model_notes]
    if len(spans) >= MAX_SPANS or sum(1 for span in spans if span.text) >= MAX_TEXTS:
        notes.append("The file has more symbols or texts than any firmware; not all of them are told apart.")
    if sum(section.size_bytes for section in elf.sections if section.is_code) > MAX_CODE_BYTES:
        notes.append(f"Calls were looked for in the first {MAX_CODE_BYTES >> 20} MiB of code only.")
    if not lines.stretches and elf.symbols:
        notes.append("The file has no line table: code is told by symbols and objects only. Build with -g for more.")
    pieces = tuple(_merge(_make_pieces(spans, models, arena_parts(path))))
    check_sums(path, sections, pieces)
    return Attribution(
        path=path,
        sections=sections,
        pieces=pieces,
        notes=tuple(notes),
    )


def check_sums(path: Path, sections: Iterable[SectionSize], pieces: Iterable[Piece]) -> None:
    """Make sure that the pieces of each section cover it, without a gap and without overlap.

    Raises:
        RuntimeError: they do not: a bug in this package.
    """
    own = iter(pieces)
    for section in sections:
        at = section.address
        while at < section.address + section.size_bytes:
            piece = next(own, None)
            if piece is None or piece.address != at or piece.section != section.name:
                raise RuntimeError(f"{path}: the bytes of {section.name} at 0x{at:08X} have no owner, or two")
            at += piece.size_bytes
        if at != section.address + section.size_bytes:
            raise RuntimeError(f"{path}: a piece of {section.name} reaches past its end")


def _read_map(elf: Elf, link_map: Path | None) -> LinkMap:
    path = link_map or elf.path.with_suffix(".map")
    if link_map is None and not path.is_file():
        return LinkMap(inputs=())
    return read_link_map(path, elf.sections)


def _size_of(section: Section) -> SectionSize:
    return SectionSize(
        name=section.name,
        address=section.address,
        size_bytes=section.size_bytes,
        in_flash=section.has_bytes,
        in_ram=section.is_writable,
        is_code=section.is_code,
    )


def _claim_by_kind(elf: Elf, spans: list[Span], models: list[PlacedModel]) -> None:
    """Claim what its section, its symbol's name or its bytes tell beyond doubt."""
    by_section = {section.name: _match(_SECTIONS, section.name) for section in elf.sections}
    for span in spans:
        name = span.symbol.name if span.symbol else ""
        group = by_section[span.section.name]
        if any(model.start <= span.start < model.end for model in models):
            span.claim = Claim(Group.METADATA)
        elif group is not None and not (span.section.is_code and name):
            span.claim = Claim(group)
        elif span.is_filled or (not name and not span.source and _is_padding(elf, span)):
            span.claim = Claim(Group.PADDING)
        elif span.symbol is not None and span.symbol.kind != "func" and (group := _match_symbol(name)):
            span.claim = Claim(group)


def _match_symbol(name: str) -> Group | None:
    return _match(_SYMBOLS, name) if _MEMORY.search(name) else None


def _match(table: tuple[tuple[re.Pattern[str], Group], ...], name: str) -> Group | None:
    return next((group for pattern, group in table if pattern.fullmatch(name)), None)


def _is_padding(elf: Elf, span: Span) -> bool:
    size = span.end - span.start
    if size >= _MAX_PADDING_BYTES or span.text:
        return False
    if not span.section.has_bytes:
        return not span.object
    data = elf.read(span.start, size)
    halves = {data[at : at + 2] for at in range(len(data) % 2, len(data), 2)}
    return halves <= set(_FILLERS) and data[: len(data) % 2] in (b"", b"\0", b"\xff")


def arena_parts(path: Path) -> tuple[tuple[str, int], ...]:
    """Return names and bytes of the arena's parts in the order of their addresses, where the build measured them."""
    try:
        record = json.loads((path.parent / "arena.json").read_text(encoding="utf-8"))
        parts = record["parts"]
        head, tail = int(parts["head_bytes"]), int(parts["tail_bytes"])
        free = int(record["bytes"]) - head - tail
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    if min(head, tail, free) < 0:
        return ()
    return (
        ("head: tensors and scratch buffers", head),
        ("between: temporary, while tensors are allocated", free),
        ("tail: what kernels and runtime keep", tail),
    )


def _make_pieces(spans: list[Span], models: list[PlacedModel], arena: tuple[tuple[str, int], ...]) -> Iterator[Piece]:
    for span in spans:
        model = next((m for m in models if m.start <= span.start < m.end), None)
        if model is not None:
            yield from _make_model_pieces(span, model)
        elif span.claim is not None and span.claim.group == Group.ARENA:
            yield from _make_arena_pieces(span, arena)
        else:
            yield _make_piece(span, span.start, span.end)


def _make_piece(
    span: Span, start: int, end: int, *, group: Group | None = None, layer: str = "", detail: str = ""
) -> Piece:
    claim = span.claim
    return Piece(
        address=start,
        size_bytes=end - start,
        section=span.section.name,
        in_flash=span.section.has_bytes,
        in_ram=span.section.is_writable,
        group=group or (claim.group if claim else Group.OTHER),
        op=_join_ops(claim.ops) if claim else "",
        layer=layer,
        symbol=span.symbol.name if span.symbol else "",
        file="" if claim and claim.group == Group.PADDING else shorten(span.source or span.object),
        detail=detail or span.text,
    )


def _join_ops(ops: frozenset[str]) -> str:
    return ", ".join(sorted(ops)) if len(ops) <= _SHOWN_OPS else "several operators"


def _make_model_pieces(span: Span, model: PlacedModel) -> Iterator[Piece]:
    for part in model.parts:
        start, end = max(part.start, span.start), min(part.end, span.end)
        if start < end:
            group = Group.WEIGHTS if part.is_weights else Group.METADATA
            yield _make_piece(span, start, end, group=group, layer=part.layer, detail=part.what)


def _make_arena_pieces(span: Span, arena: tuple[tuple[str, int], ...]) -> Iterator[Piece]:
    if sum(size for _, size in arena) != span.end - span.start:
        yield _make_piece(span, span.start, span.end)
        return
    at = span.start
    for name, size in arena:
        if size:
            yield _make_piece(span, at, at + size, detail=name)
        at += size


_ROOTS = re.compile(
    r"(?:^|.*/)((?:tensorflow/(?:lite|compiler)|signal/(?:micro|src)|cmsis[-_]nn/(?:Source|Include)"
    r"|lean/schema_generated|flatbuffers/include|gemmlowp|ruy|c\+\+/|CMakeFiles/[^/]+\.dir/src)\b.*|src/[\w.]+)$",
    re.IGNORECASE,
)


@functools.lru_cache(maxsize=4096)
def shorten(file: str) -> str:
    """Return a source's path as it stands in its own tree, without the folders that differ from machine to machine."""
    name = re.sub(r"(\.\w+)\.(o|obj)$", r"\1", file)
    root = _ROOTS.match(name)
    if root:
        name = re.sub(r"^CMakeFiles/[^/]+\.dir/", "", root[1])
    return "" if is_temporary(name) or name.startswith("<") else name


def _merge(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Join neighbours that differ in nothing but their place."""
    last: Piece | None = None
    for piece in pieces:
        if last is not None and _is_alike(last, piece):
            last = _make_longer(last, piece.size_bytes)
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last


def _is_alike(one: Piece, other: Piece) -> bool:
    return (
        one.address + one.size_bytes == other.address
        and one.symbol == other.symbol
        and one.file == other.file
        and one.group == other.group
        and one.op == other.op
        and one.detail == other.detail
        and one.layer == other.layer
        and one.section == other.section
    )


def _make_longer(piece: Piece, more_bytes: int) -> Piece:
    return Piece(
        address=piece.address, size_bytes=piece.size_bytes + more_bytes, section=piece.section,
        in_flash=piece.in_flash, in_ram=piece.in_ram, group=piece.group, op=piece.op, layer=piece.layer,
        symbol=piece.symbol, file=piece.file, detail=piece.detail,
    )  # fmt: skip
