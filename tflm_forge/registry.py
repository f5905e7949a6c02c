"""Finds the modules of a package of alternatives and picks one by name."""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from types import ModuleType

from tflm_forge.errors import UsageError


def list_names(package: ModuleType) -> tuple[str, ...]:
    """Return the names of the alternatives in a package, sorted."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")))


def load_alternative(package: ModuleType, name: str, *, kind: str) -> ModuleType:
    """Import one alternative of a package.

    Args:
        package: the package that holds one module per alternative.
        name: the word the user typed.
        kind: what the alternatives are, for the error ("runtime", "runner").

    Raises:
        UsageError: no such alternative; names the nearest one.
    """
    names = list_names(package)
    if name not in names:
        raise unknown_name(kind, name, names)
    return importlib.import_module(f"{package.__name__}.{name}")


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Build the error for a name that is not known: the nearest ones first."""
    choices = sorted(known)
    near = difflib.get_close_matches(name, choices, n=2, cutoff=0.5)
    hint = f"Did you mean {' or '.join(repr(n) for n in near)}? " if near else ""
    return UsageError(f"unknown {kind} {name!r}", hint=f"{hint}Known: {', '.join(choices) or 'none'}.")
