"""Finds the source files that a function of a TFLM tree needs, by resolving names through its headers."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tflm_forge.runtimes.tflm.cpp_scan import Scan, scan_source
from tflm_forge.runtimes.tflm.tree import Tree

_MICRO = "tensorflow/lite/micro"
_CORE_FOLDERS = ("", "/arena_allocator", "/memory_planner", "/tflite_bridge")
# The board supplies these (debug output and time): see cortex_m_generic's README.
_BOARD_FILES = frozenset({"debug_log", "micro_time", "system_setup"})
_GENERATED = "schema_generated.h"
_INCLUDE_FOLDERS = ("tflite-micro", "cmsis_nn/Include", "cmsis_nn", "kissfft")
_SOURCE_SUFFIXES = (".cc", ".cpp", ".c")

# What the generated application uses of TFLM beside its ops.
_APPLICATION_NAMES = (
    "MicroInterpreter",
    "MicroAllocator",
    "MicroResourceVariables",
    "SingleArenaBufferAllocator",
    "MicroPrintf",
)

_MACROS: Mapping[str, int | None] = {
    "TF_LITE_STATIC_MEMORY": 1,
    "TF_LITE_MCU_DEBUG_LOG": None,
    "__cplusplus": 201703,
    "XTENSA": None,
    "HIFI3": None,
    "HIFI4": None,
    "HIFI5": None,
    "VISION_P6": None,
    "HEXAGON": None,
    "USE_TFLM_COMPRESSION": None,
    "TF_LITE_USE_CTIME": None,
    "TF_LITE_DISABLE_X86_NEON": 1,
    "_WIN32": None,
    "__APPLE__": None,
    "__ANDROID__": None,
    "ARM_NN_ENABLE_F16": 0,
    "ARM_NN_ENABLE_F32": 0,
}

KERNEL_SETS = ("reference", "cmsis_nn")


@dataclass(frozen=True, kw_only=True)
class SourceGraph:
    """The sources of one kernel set and the names each resolves.

    Attributes:
        definers: source files by the name they define.
        needs: for each source, the sources that define what it uses.
        by_class: source files by the class whose methods they define.
    """

    definers: Mapping[str, frozenset[str]]
    by_class: Mapping[str, frozenset[str]]
    needs: Mapping[str, frozenset[str]]

    def closure(self, files: Iterable[str]) -> frozenset[str]:
        """Return the files and all they need, directly or not."""
        todo = list(files)
        found: set[str] = set()
        while todo:
            file = todo.pop()
            if file not in found:
                found.add(file)
                todo.extend(self.needs.get(file, frozenset()) - found)
        return frozenset(found)

    def core(self) -> frozenset[str]:
        """Return what any application with an interpreter links."""
        roots: set[str] = set()
        for name in _APPLICATION_NAMES:
            roots |= self.definers.get(name, frozenset()) | self.by_class.get(name, frozenset())
        return self.closure(roots)


def read_source_graph(tree: Tree, kernel_set: str) -> SourceGraph:
    """Scan a tree's sources for one kernel set and resolve what each needs."""
    return _Resolver(tree, kernel_set).graph()


def list_sources(tree: Tree, kernel_set: str) -> tuple[str, ...]:
    """Return the candidates for a build: core, kernels and signal sources, without tests and ports.

    A kernel set's file replaces the reference file of the same name, as in upstream's specialize_files.py.
    """
    found: list[str] = []
    lite = tree.glob("tflite-micro", "tensorflow/**/*")
    found += [
        f for f in lite if not f.startswith((f"tflite-micro/{_MICRO}/", "tflite-micro/tensorflow/lite/experimental/"))
    ]
    for folder in _CORE_FOLDERS:
        found += tree.glob("tflite-micro", f"{_MICRO}{folder}/*")
    folders = ["kernels"] if kernel_set == "reference" else ["kernels", f"kernels/{kernel_set}"]
    kernels: dict[str, str] = {}
    for folder in folders:
        kernels.update({_stem(f): f for f in tree.glob("tflite-micro", f"{_MICRO}/{folder}/*") if _is_built(f)})
    found += kernels.values()
    found += tree.glob("tflite-micro", "signal/micro/kernels/*")
    found += tree.glob("tflite-micro", "signal/src/**/*")
    if kernel_set == "cmsis_nn":
        found += [f for f in tree.glob("cmsis_nn", "Source/**/*.c") if not f.endswith(("_f16.c", "_f32.c", "_flt.c"))]
    return tuple(sorted({f for f in found if _is_built(f)}))


def _stem(file: str) -> str:
    return file.rpartition("/")[2].rpartition(".")[0]


def _is_built(file: str) -> bool:
    stem = _stem(file)
    is_test = stem.endswith(("_test", "_test_common", "_generated_data", "_benchmark")) or "/testing/" in file
    is_mock = stem.startswith(("fake_", "mock_", "test_")) or "/test_helpers" in file
    return file.endswith(_SOURCE_SUFFIXES) and not is_test and not is_mock and stem not in _BOARD_FILES


class _Resolver:
    """Scans each file once, and answers which headers a source reaches."""

    def __init__(self, tree: Tree, kernel_set: str) -> None:
        self._tree = tree
        self._macros = {**_MACROS, "CMSIS_NN": 1 if kernel_set == "cmsis_nn" else None}
        self._sources = list_sources(tree, kernel_set)
        self._scans: dict[str, Scan] = {}
        self._reached: dict[str, frozenset[str]] = {}
        self._present: dict[str, bool] = {}

    def graph(self) -> SourceGraph:
        definers: dict[str, set[str]] = defaultdict(set)
        by_class: dict[str, set[str]] = defaultdict(set)
        for source in self._sources:
            parts = (source, *(f for f in self._headers(source) if f.endswith(_SOURCE_SUFFIXES)))
            for name in {name for part in parts for name in self._scan(part).defined}:
                definers[name].add(source)
                owner, _, method = name.rpartition("::")
                if owner and method:
                    by_class[owner].add(source)
        needs = {source: self._needs(source, definers, by_class) for source in self._sources}
        return SourceGraph(
            definers={name: frozenset(files) for name, files in definers.items()},
            by_class={name: frozenset(files) for name, files in by_class.items()},
            needs=needs,
        )

    def _needs(self, source: str, definers: Mapping[str, set[str]], by_class: Mapping[str, set[str]]) -> frozenset[str]:
        scan = self._scan(source)
        headers = self._headers(source)
        declared = set(scan.declared).union(*(self._scan(header).declared for header in headers))
        found: set[str] = set()
        for name in self._mentioned(source, headers):
            if name in by_class:
                found |= by_class[name]
            if name in declared and name in definers and name not in scan.defined:
                found |= self._choose(name, headers, definers[name])
        return frozenset(found - {source})

    def _mentioned(self, source: str, headers: frozenset[str]) -> set[str]:
        """Return the names a source mentions, and what each of them mentions in turn in its headers."""
        found: set[str] = set()
        todo = set(self._scan(source).all_uses())
        while todo:
            found |= todo
            todo = {
                deeper for header in headers for name in todo for deeper in self._scan(header).uses.get(name, ())
            } - found
        return found

    def _choose(self, name: str, headers: frozenset[str], files: set[str]) -> set[str]:
        """Of several files that define a name, those that share the header which declares it."""
        if len(files) == 1:
            return files
        declaring = {h for h in headers if name in self._scan(h).declared}
        sharing = {f for f in files if declaring & self._headers(f)}
        return sharing or files

    def _scan(self, file: str) -> Scan:
        if file not in self._scans:
            if file.endswith(_GENERATED):
                self._scans[file] = Scan(includes=frozenset(), defined=frozenset(), declared=frozenset(), uses={})
            else:
                text = self._tree.read(file)
                self._scans[file] = scan_source(text, self._macros)
        return self._scans[file]

    def _headers(self, file: str) -> frozenset[str]:
        """Return all headers of the tree that a file includes, directly or not."""
        if file not in self._reached:
            found: set[str] = set()
            todo = [file]
            while todo:
                including = todo.pop()
                for path in self._scan(including).includes:
                    header = self._find_header(path, including)
                    if header and header not in found:
                        found.add(header)
                        todo.append(header)
            self._reached[file] = frozenset(found)
        return self._reached[file]

    def _find_header(self, path: str, including: str) -> str | None:
        """Return the file of an include directive, the includer's own folder first; None outside the tree."""
        own = f"{including.rpartition('/')[0]}/{path}"
        others = (f"{folder}/{path}" for folder in _INCLUDE_FOLDERS)
        for candidate in (own, *others):
            if candidate not in self._present:
                self._present[candidate] = self._tree.has(candidate)
            if self._present[candidate]:
                return candidate
        return None
