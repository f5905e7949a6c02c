"""A lean copy of a tree's schema_generated.h: the same accessors, without the object API that TFLM never uses.

flatc writes two interfaces into one header: accessors that read a flatbuffer in place, and an object API that copies
it into std::vector and std::unique_ptr. TFLM uses the first, but for a source or two, and compiling the second is most
of the work of compiling a TFLM source. Without it the objects are the same (`tests/tflm/test_lean_schema.py`).
"""

import re
from collections.abc import Iterator

_OBJECT_TYPE = re.compile(r"^struct (\w+T) : public (?:::)?flatbuffers::NativeTable \{", re.MULTILINE)
_UNION = re.compile(r"^(?:template<.*> )?struct \w+Union(?:Traits\S*(?: .*)?)? \{")
_FUNCTION = re.compile(r"^(?:inline|template)\b")


def find_object_types(header: str) -> tuple[str, ...]:
    """Return the names of a generated schema header's object types ("ModelT"), sorted."""
    return tuple(sorted(_OBJECT_TYPE.findall(header)))


def strip_object_api(header: str) -> str:
    """Return a generated schema header without the definitions of its object API.

    Definitions at the margin that end with a line `}` or `};` are looked at one by one, as flatc lays them out;
    what is not recognised stays.
    """
    objects = set(find_object_types(header))
    return "".join(block for block in _split_blocks(header) if not _is_object_api(block, objects))


def _is_object_api(block: str, objects: set[str]) -> bool:
    first = block.partition("\n")[0]
    if _OBJECT_TYPE.match(block) or _UNION.match(first):
        return True
    if not _FUNCTION.match(first):
        return False
    signature = block.partition("{")[0]
    words = set(re.findall(r"\w+", signature))
    return bool(words & objects) or "UnPack" in words or any(word.endswith("Union") for word in words)


def _split_blocks(header: str) -> Iterator[str]:
    """Yield the header in pieces: each definition at the margin as one, and each other line."""
    lines = iter(header.splitlines(keepends=True))
    for line in lines:
        if not _opens_definition(line):
            yield line
            continue
        block = [line]
        while not (block[-1].startswith("}") or (len(block) == 1 and _ends_at_once(line))):
            following = next(lines, None)
            if following is None:
                break
            block.append(following)
        yield "".join(block)


def _opens_definition(line: str) -> bool:
    return bool(_FUNCTION.match(line)) or (line.startswith("struct ") and line.rstrip().endswith("{"))


def _ends_at_once(line: str) -> bool:
    return line.rstrip().endswith((";", "}"))
