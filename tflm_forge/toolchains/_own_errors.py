"""Says what a compiler or linker means by an error in a kernel of the user's own, in the words of its [[op]]."""

import re

from tflm_forge.config import CONFIG_NAME
from tflm_forge.errors import ToolError
from tflm_forge.generate import Project
from tflm_forge.runtimes import Registration

_UNDEFINED = re.compile(r"undefined reference to [`'\u2018](.+?)['\u2019]$", re.MULTILINE)
_DOUBLE = re.compile(r"multiple definition of [`'\u2018](.+?)['\u2019]")
_UNDECLARED = re.compile(
    r"op_resolver\.cc:\d+:\d+: error: ['\u2018](\w+)['\u2019] "
    r"(?:is not a member of|was not declared in)"
)
_NAMESPACE_MISSING = re.compile(r"op_resolver\.cc:\d+:\d+: error: ['\u2018](\w+)['\u2019] has not been declared")
_COMPILE_ERROR = re.compile(r"^(?:\S*/)?(ops/\S+?):(\d+):\d+: (?:fatal )?error: (.+)$", re.MULTILINE)
_MOST_REASONS = 5


def explain_own_error(project: Project, output: str) -> ToolError | None:
    """Return the error for a failed build when a kernel of the user's own is the cause; None: it is not.

    Args:
        project: what was built.
        output: what compilers and linker printed.
    """
    own = [r for r in project.plan.registrations if r.own_sources]
    if not own:
        return None
    return _find_compile_errors(own, output) or _find_undeclared(own, output) or _find_link_errors(own, output)


def _find_compile_errors(own: list[Registration], output: str) -> ToolError | None:
    found = list(dict.fromkeys(_COMPILE_ERROR.findall(output)))
    if not found:
        return None
    names = [r.use.name for r in own if any(name in r.own_sources for name, *_ in found)]
    return ToolError(
        f"[[op]] {', '.join(names) or 'of yours'} of {CONFIG_NAME}: its sources do not compile",
        reasons=[f"{name}:{line}: {text}" for name, line, text in found[:_MOST_REASONS]],
        hint="The sources are copied from your folder into the project's: correct them in yours.",
    )


def _find_undeclared(own: list[Registration], output: str) -> ToolError | None:
    for pattern in (_UNDECLARED, _NAMESPACE_MISSING):
        for name in pattern.findall(output):
            for registration in own:
                if name in registration.own_function.split("::"):
                    return ToolError(
                        f"[[op]] {registration.use.name} of {CONFIG_NAME}: {registration.includes[0]} does not declare "
                        f"{registration.own_function}()",
                        hint="`register` is the function with its namespace; `header` is the file that declares it.",
                    )
    return None


def _find_link_errors(own: list[Registration], output: str) -> ToolError | None:
    missing = list(dict.fromkeys(_UNDEFINED.findall(output)))
    for registration in own:
        function = registration.own_function.removeprefix("::")
        if any(name.partition("(")[0] == function for name in missing):
            return ToolError(
                f"[[op]] {registration.use.name} of {CONFIG_NAME}: none of its sources "
                f"({', '.join(registration.own_sources)}) defines {function}()",
                hint="Is it in the namespace that the header has, and not in an anonymous one?",
            )
    names = ", ".join(r.use.name for r in own)
    if missing:
        return ToolError(
            f"[[op]] {names} of {CONFIG_NAME}: the firmware does not link",
            reasons=[f"nothing defines {name}" for name in missing[:_MOST_REASONS]],
            hint='Add the source that defines it to `sources`, or name the op whose kernel has it: uses = ["CONV_2D"].',
        )
    doubles = list(dict.fromkeys(_DOUBLE.findall(output)))
    if doubles:
        return ToolError(
            f"[[op]] {names} of {CONFIG_NAME}: the firmware does not link",
            reasons=[f"{name} is defined twice" for name in doubles[:_MOST_REASONS]],
            hint="Give your function another name, or put it into an anonymous namespace.",
        )
    return None
