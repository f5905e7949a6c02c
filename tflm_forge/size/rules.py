"""The rules that say whose code is, by the source file it came from, the object it was linked from, or its symbol."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tflm_forge.elf import readable_name
from tflm_forge.resources import data_dir
from tflm_forge.size.libraries import find_member_group, find_source_group, find_symbol_group, is_library
from tflm_forge.size.op_sources import OpSources
from tflm_forge.size.records import Group

_NO_OPS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose something is, as one source says.

    Attributes:
        group: the group.
        ops: the operators it may serve; with several, what calls it decides. Empty when it names none.
        yields: code of a header that is compiled into whatever includes it: the function around it comes first.
    """

    group: Group
    ops: frozenset[str] = _NO_OPS
    yields: bool = False


_BOARD_FILES = frozenset(
    ("board.cc", "startup.cc", "cortex_m.cc", "cortex_m.h", "board.h", "board_config.h", "syscalls.cc", "debug_log.cc")
)
"""The sources of templates/firmware that know the board, with those in boards/; all others are of the link, the
self-check or the model."""

_TEMPORARY = re.compile(r"\.ltrans\d*|\.debug\.temp|^cc\w{6}\.o$")
"""Objects that the compiler makes for link-time optimization: they hold everybody's code."""

_HEADER = re.compile(r"\.(h|hh|hpp|hxx|inc|inl|ipp|tcc)$")
_OBJECT = re.compile(r"\.(o|obj|lo)$")

# In this order; the first that matches a path counts. Paths are those of tflite-micro and the trees made from it.
_FLATBUFFER = re.compile(
    r"flatbuffers/(include/)?(flatbuffers/)?[\w.]+\.h$|/schema_(generated|utils)\.|flatbuffer_(conversions|utils)"
    r"|/model_reader\.|/model_options\."
)
_KERNELS = re.compile(
    r"(^|/)(lite|micro)/kernels/|(^|/)signal/(micro/kernels|src)/|(^|/)kiss_?fft|/gemmlowp/|/ruy/|:kernels/"
)
_CMSIS_NN = re.compile(r"cmsis[-_]?nn[^/]*/(Source|Include)/|/NN/(Source|Include)/|(^|[/:])arm_nn\w*\.", re.IGNORECASE)
_ESP_NN = re.compile(r"esp[-_]nn/", re.IGNORECASE)
_PLANNER = re.compile(
    r"/memory_planner/|/arena_allocator/|/micro/(recording_)?(micro_allocator|micro_allocation_info|memory_helpers"
    r"|memory_plan)\b|/micro_arena_constants\."
)
_INTERPRETER = re.compile(r"tensorflow/(lite|compiler)/|(^|/)tflite[-_]micro/|(^|/)tflite/(micro|core|c)/")
_BOARD = re.compile(
    r"(^|/)(startup[\w-]*|system_\w+|syscalls?|sysmem|debug_log|cortex_m\w*|vectors?(_table)?|irq\w*|hal_\w+|hardware_\w+)"
    r"\.\w+$|HAL_Driver/|/hal/|/Drivers?/|/drivers?/|CMSIS/Device/|/bsp/|/pico-sdk/|/nrfx/|/libopencm3/|/sdk/",
    re.IGNORECASE,
)
_STANDARD_HEADERS = re.compile(
    r"/c\+\+/|/include/(sys|machine|bits|newlib|c\+\+)/|/gcc/[\w.-]+/[\w.]+/include/|/usr/include/"
)
_CORE_HEADERS = re.compile(r"(^|/)(cmsis_\w+|core_c\w+|arm_acle|arm_mve\w*|mpu_\w+)\.h$|/CMSIS/Core", re.IGNORECASE)

_CMSIS_FUNCTION = re.compile(
    r"arm_(nn|convolve|depthwise|transpose|fully|vector_sum|batch_matmul|softmax|avg_?pool|max_?pool|elementwise|svdf|lstm"
    r"|pad|q7|s8|relu|concatenation|reshape|minimum|maximum)\w*|(depthwise|elementwise|mat_mul)\w*_s(4|8|16)\w*"
)
_PLANNER_CLASS = re.compile(r"\w*(MemoryPlanner|Allocator|AllocationInfo|AllocationData)\w*")
_SCHEMA_FUNCTION = re.compile(
    r"(Verify|Get|Identifier|Enum)\w*Model\w*|\w*Flat(B|b)uffer\w*|ConvertTensorType|GetBuiltinCode"
)
_KERNEL_FUNCTION = re.compile(
    r"\w*(Eval|Prepare|QuantizedMultiplier|Quantize|Padding|Activation\w*|Broadcast\w*|Kernel\w*)\w*|Init|Free|Reset|Invoke"
    r"|\w*RuntimeShape\w*|OpData\w*|k\w*(Tensor|Shape)"
)
_BOARD_SYMBOL = re.compile(
    r"\w+_(IRQ)?Handler|Reset_Handler|Default_Handler|System(Init|CoreClock)\w*|HAL_\w+|LL_\w+|BSP_\w+|__StackTop"
    r"|g_pfnVectors|_start|_reset|DebugLog|_(read|write|open|close|sbrk|lseek|fstat|isatty|kill|getpid|exit)"
)


@functools.cache
def _driver_files() -> frozenset[str]:
    return frozenset(path.name for path in (data_dir("templates") / "firmware" / "boards").glob("*"))


def is_temporary(file: str) -> bool:
    """Whether an object is one that link-time optimization made, so that its name tells nothing."""
    return _TEMPORARY.search(PurePosixPath(file).name) is not None


class Rules:
    """The rules for one ELF.

    Args:
        ops: which names belong to which operator.
        present: the operators that the firmware has; empty when that is not known.
        own_sources: operator by the path of a source of the user's own kernel.
        is_forge: whether forge made the firmware: then the sources in src/ are its own.
    """

    def __init__(
        self, ops: OpSources, present: frozenset[str], own_sources: Mapping[str, str], *, is_forge: bool
    ) -> None:
        self._ops, self._present, self._is_forge = ops, present, is_forge
        self._own = {PurePosixPath(path).as_posix(): op for path, op in own_sources.items()}
        self._files: dict[str, Claim | None] = {}
        self._symbols: dict[str, Claim | None] = {}

    def of_file(self, path: str) -> Claim | None:
        """Return whose the code of a source file is, or of an object; None when the path tells nothing."""
        if path not in self._files:
            self._files[path] = self._find_file(path)
        return self._files[path]

    def of_symbol(self, symbol: str) -> Claim | None:
        """Return whose a symbol is by its name alone; None when it tells nothing."""
        if symbol not in self._symbols:
            self._symbols[symbol] = self._find_symbol(symbol)
        return self._symbols[symbol]

    def _find_file(self, path: str) -> Claim | None:
        name = PurePosixPath(path.rpartition(":")[2]).name
        if not name or name.startswith("<") or is_temporary(name):
            return None
        archive, colon, member = path.rpartition(":")
        if colon and archive.endswith(".a"):
            return self._find_member(archive, member)
        source = _OBJECT.sub("", path)
        name = _OBJECT.sub("", name)
        for own, op in self._own.items():
            if f"/{source}".endswith(f"/{own}") or source == PurePosixPath(own).name:
                return Claim(Group.OPERATORS, frozenset((op,)))
        if "/" not in path:
            return self._find_bare(name, path)
        is_header = _HEADER.search(name) is not None
        if library := find_source_group(path):
            return Claim(library)
        if _FLATBUFFER.search(source):
            return Claim(Group.FLATBUFFER)
        if _KERNELS.search(source) or _CMSIS_NN.search(source) or _ESP_NN.search(source):
            return Claim(Group.OPERATORS, self._in_firmware(self._ops.of_file(_stem(name))), yields=is_header)
        if _PLANNER.search(source):
            return Claim(Group.PLANNER, yields=is_header)
        if _STANDARD_HEADERS.search(source) or _CORE_HEADERS.search(source):
            return Claim(Group.CPP if "/c++/" in source else Group.LIBRARY, yields=True)
        if _INTERPRETER.search(source):
            return Claim(Group.INTERPRETER, yields=is_header)
        if self._is_forge and re.search(r"(^|/)src/[\w.]+$", source):
            return self._find_own(name, is_header=is_header)
        if _BOARD.search(source):
            return Claim(Group.BOARD, yields=is_header)
        return Claim(Group.APPLICATION, yields=is_header)

    def _find_bare(self, name: str, path: str) -> Claim | None:
        """Return what a name without a folder tells, as symbol tables have them: only names that are nobody else's."""
        stem = _stem(name)
        if _CMSIS_FUNCTION.fullmatch(stem) or "kernel" in stem:
            return Claim(Group.OPERATORS, self._in_firmware(self._ops.of_file(stem)))
        inside = f"tensorflow/lite/micro/{name}"
        if _PLANNER.search(inside) or re.search(r"_memory_planner\.|arena_buffer_allocator\.", name):
            return Claim(Group.PLANNER)
        if _FLATBUFFER.search(inside):
            return Claim(Group.FLATBUFFER)
        if name.startswith(("micro_interpreter", "micro_context", "micro_op_resolver", "micro_mutable_op_resolver")):
            return Claim(Group.INTERPRETER)
        if name.endswith(".cc") and (ops := self._ops.of_file(stem)):
            return Claim(Group.OPERATORS, self._in_firmware(ops))
        if self._is_forge and name in _BOARD_FILES:
            return Claim(Group.BOARD)
        library = find_source_group(path) or find_symbol_group(_stem(path.removeprefix("lib_a-")))
        return Claim(library) if library else None

    def _find_own(self, name: str, *, is_header: bool) -> Claim:
        if name in _BOARD_FILES or name in _driver_files():
            return Claim(Group.BOARD)
        if name == "small_library.cc":
            return Claim(Group.MEMORY)
        if name.startswith("op_resolver."):
            return Claim(Group.INTERPRETER)
        return Claim(Group.LINK, yields=is_header)

    def _find_member(self, archive: str, member: str) -> Claim | None:
        library = PurePosixPath(archive).name
        if is_library(library):
            return Claim(find_member_group(library, member))
        stem = _stem(member)
        if _CMSIS_FUNCTION.fullmatch(stem) or re.search("tensorflow|tflite|tflm", library):
            ops = self._in_firmware(self._ops.of_file(stem))
            if ops or stem.startswith(("arm_", "kernel_", "quantization_", "tensor_")):
                return Claim(Group.OPERATORS, ops)
            return self._find_file(f"tensorflow/lite/micro/{member}")
        return self._find_file(member)

    def _find_symbol(self, symbol: str) -> Claim | None:
        plain = re.sub(r"\.(constprop|isra|part|lto_priv|cold)\b.*|\.\d+$", "", symbol)
        name = readable_name(re.sub(r"^_Z(T[VIST]|GV|Z|TS)(?=N)", "_Z", plain))
        parts = name.split("::")
        if _CMSIS_FUNCTION.fullmatch(plain):
            return Claim(Group.OPERATORS, self._in_firmware(self._ops.of_file(plain)))
        if parts[0] in ("tflite", "tflm_signal") or "TfLite" in parts[0] or parts[0].startswith("Register_"):
            return self._find_tflite(parts)
        if parts[0] == "flatbuffers":
            return Claim(Group.FLATBUFFER)
        if self._is_forge and (parts[0] == "forge" or plain == "main" or "forge" in plain.lower()):
            return Claim(Group.LINK)
        if _BOARD_SYMBOL.fullmatch(plain):
            return Claim(Group.BOARD)
        if library := find_symbol_group(symbol):
            return Claim(library)
        return Claim(Group.APPLICATION) if plain.strip("_.0123456789") else None

    def _find_tflite(self, parts: list[str]) -> Claim:
        last = parts[-1]
        if ops := self._ops.of_function(last):
            return Claim(Group.OPERATORS, self._in_firmware(ops))
        if len(parts) > 2 and re.match(r"(reference|optimized|cmsis|ops|micro$|tensor_utils|lstm)", parts[1]):
            return Claim(Group.OPERATORS)
        if any(_PLANNER_CLASS.fullmatch(part) for part in parts[1:]):
            return Claim(Group.PLANNER)
        if last.startswith("Parse") or _SCHEMA_FUNCTION.fullmatch(last):
            return Claim(Group.FLATBUFFER)
        if len(parts) == 2 and _KERNEL_FUNCTION.fullmatch(last):
            return Claim(Group.OPERATORS)
        return Claim(Group.INTERPRETER)

    def _in_firmware(self, ops: frozenset[str]) -> frozenset[str]:
        """Leave out the operators that the firmware does not have, unless that leaves none."""
        return (ops & self._present) or ops


def _stem(name: str) -> str:
    """Return a file's name without its endings: "conv.cc.obj" is "conv"."""
    return name.partition(".")[0] if not name.startswith(".") else name
