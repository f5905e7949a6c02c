"""Words of C++: string literals that nothing can leave, and names that may stand in a program."""

import re

_QUALIFIED = re.compile(r"(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")


def cpp_string(text: str) -> str:
    """Return a C++ string literal; whatever a model's names hold can not leave it."""
    plain = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{plain}"'


def is_qualified_name(text: str) -> bool:
    """Return whether a text has the form of a C++ name with its namespaces ("tflite::Register_MY_OP")."""
    return _QUALIFIED.fullmatch(text) is not None
