"""Prints the numbers of docs/tflm.md: flash, arena, instructions and times of firmware built with TFLM.

    make bench-tflm                 # the targets: about 10 minutes the first time, needs an installed TFLM
    python tools/bench_tflm.py --targets    # the first half of that: flash, arena, instructions
    python tools/bench_tflm.py --times      # how long builds take, with and without cached objects
    python tools/bench_tflm.py --settings   # the effect of each setting on flash
    python tools/bench_tflm.py --table      # models x boards x kernel sets: long, see --models, --boards, --kernel-sets

Every figure is measured when the command runs, with the same forge a user runs.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT.parent / "shared" / "models"
BOARDS = ("mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547", "stm32f4")
KERNEL_SETS = ("reference", "cmsis_nn")

# Flash of a bare firmware without link and self-check: release with LTO, Cortex-M4F, GCC 12.2, -Os, measured for
# TFLM 90b983c2b with a hand-written main() and the same flags.
BARE_BYTES = {
    ("hello_world_int8", "reference"): 16_992,
    ("ad01_int8", "reference"): 16_992,
    ("kws_ref_model", "reference"): 32_072,
    ("vww_96_int8", "reference"): 32_072,
    ("pretrainedResnet_quant", "reference"): 34_344,
    ("hello_world_int8", "cmsis_nn"): 19_808,
    ("ad01_int8", "cmsis_nn"): 19_808,
    ("kws_ref_model", "cmsis_nn"): 40_104,
    ("vww_96_int8", "cmsis_nn"): 40_104,
    ("pretrainedResnet_quant", "cmsis_nn"): 37_832,
}
MLPERF = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")
SEVERAL = (
    "kws_ref_model", "vww_96_int8", "audio_preprocessor_int8", "trained_lstm_int8", "pretrainedResnet_quant",
    "hello_world_float",
)  # fmt: skip
"""Models that need 24 operators together."""

ALLOWANCE_BYTES = 6 * 1024
PARTS = ("--only", "self-check,numbers,latency")


def count(report: Any) -> str:
    """Return the millions of instructions of an inference."""
    return f"{report['latency']['median'] / 1e6:.2f}" if report["latency"] else ""


def run_forge(*args: str | Path, cache: Path | None = None) -> tuple[float, Any, str]:
    """Run forge with --json; return its wall time in seconds, its result (None when it failed) and its last words."""
    environment = {**os.environ, **({"FORGE_CACHE_DIR": str(cache)} if cache else {})}
    command = [sys.executable, "-m", "tflm_forge", *map(str, args), "--json"]
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=3600)
    took = time.perf_counter() - began
    words = done.stderr.strip().splitlines()[-1:] or [""]
    return took, json.loads(done.stdout) if done.returncode == 0 else None, words[0]


def agreement(report: Any) -> str:
    """Return how the outputs agree with the interpreter's; forge passes no integer that differs."""
    floats = any(comparison["unit"] is None for comparison in report["comparisons"])
    return "within float tolerance" if floats else "identical"


def test(model: str, board: str, kernel_set: str, work: Path) -> tuple[int, int, Any, str]:
    """Build and test one model; return flash without the model, arena, the report or None, and the last words."""
    arguments = options(model, board, kernel_set, work)
    _, report, words = run_forge("flash-and-test", *arguments, *PARTS)
    if report is None:
        return 0, 0, None, words.strip("- ")
    size = run_forge("size", arguments[-1])[1]
    return size["without_model_bytes"], size["arena_bytes"], report, ""


def options(model: str, board: str, kernel_set: str, work: Path, *more: str) -> tuple[str | Path, ...]:
    """Return the arguments that build one model in a folder of its own."""
    folder = work / f"{model}-{board}-{kernel_set}"
    path = MODELS / f"{model}.tflite"
    return (path, "--board", board, "--runtime", "tflm", "--kernel-set", kernel_set, "-o", folder, *more)


def bench_flash(work: Path) -> None:
    """Compare the flash of the MLPerf Tiny models with bare firmware."""
    print("| model | kernels | flash without the model | bare | more | arena | M instructions |")
    print("|---|---|---|---|---|---|---|")
    for model in ("hello_world_int8", *MLPERF):
        for kernels in KERNEL_SETS:
            flash, arena, report, words = test(model, "mps2-an386", kernels, work)
            if report is None:
                sys.exit(f"{model} with {kernels} kernels: {words}")
            bare = BARE_BYTES[model, kernels]
            verdict = "" if flash - bare <= ALLOWANCE_BYTES else " (over)"
            print(
                f"| {model} | {kernels} | {flash:,} | {bare:,} | {flash - bare:,}{verdict} "
                f"| {arena:,} | {count(report)} |",
                flush=True,
            )


def bench_times(work: Path) -> None:
    """Time builds with nothing cached, with the core's objects cached, and with everything cached."""
    cache = work / "cache"
    rows = [
        ("first build of keyword spotting, nothing cached", "kws_ref_model", "build", "first", "40 s"),
        ("a second model on the same core", "micro_speech_quantized", "build", "first", "10 s"),
        ("objects cached: keyword spotting to verdict", "kws_ref_model", "flash-and-test", "again", "6 s"),
    ]
    print("\n| what | measured | to reach |\n|---|---|---|")
    for what, model, command, name, target in rows:
        more = ("--only", "self-check,numbers") if command == "flash-and-test" else ()
        arguments = options(model, "mps2-an386", "reference", work / name, *more)
        took, result, words = run_forge(command, *arguments, cache=cache)
        if result is None:
            sys.exit(f"{what}: {words}")
        print(f"| {what} | {took:.1f} s | {target} |", flush=True)
    bench_size(work / "size", cache)


def bench_size(folder: Path, cache: Path) -> None:
    """Time the size report of a firmware with six models and the debug information of all their operators."""
    others = [word for name in SEVERAL[1:] for word in ("--with", MODELS / f"{name}.tflite")]
    build = (MODELS / f"{SEVERAL[0]}.tflite", *others, "--board", "mps2-an386", "--runtime", "tflm", "-o", folder)
    _, result, words = run_forge("build", *build, "--profile", "debug", cache=cache)
    if result is None:
        sys.exit(f"several models: {words}")
    took = statistics.median(run_forge("size", folder, cache=cache)[0] for _ in range(5))
    elf_mb = (folder / "firmware.elf").stat().st_size / 1e6
    what = f"`forge size`, {result['flash_bytes'] / 1000:.0f} KB of flash and {elf_mb:.1f} MB of ELF"
    print(f"| {what} | {took:.2f} s | 2 s with 10 MB of debug information |", flush=True)


def bench_settings(work: Path, kernel_sets: list[str]) -> None:
    """Show what each setting does to the flash of keyword spotting."""
    roomy = ("--arena", "32768")  # Measuring it would change no byte of flash.
    settings = (
        ("--profile debug", ("--profile", "debug")),
        ("--profile debug --strip-error-strings", ("--profile", "debug", "--strip-error-strings")),
        ("--keep-error-strings --no-lto", ("--keep-error-strings", "--no-lto")),
        ("--no-lto", ("--no-lto",)),
        ("--keep-error-strings", ("--keep-error-strings",)),
        ("(release)", ()),
        ("-O2", ("-O", "2")),
        ("-O3", ("-O", "3")),
    )
    print("\n| settings | " + " | ".join(kernel_sets) + " |\n|---|" + "---|" * len(kernel_sets))
    for name, more in settings:
        cells = []
        for kernels in kernel_sets:
            arguments = options("kws_ref_model", "mps2-an386", kernels, work / f"settings{name}", *roomy, *more)
            built = run_forge("build", *arguments)[1]
            cells.append(f"{built['flash_bytes'] - built['model_bytes']:,}" if built else "failed")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def bench_table(work: Path, models: list[str], boards: list[str], kernel_sets: list[str]) -> None:
    """Build and test models for boards with kernel sets."""
    print("\n| model | board | kernels | flash without the model | arena | M instructions | numbers |")
    print("|---|---|---|---|---|---|---|")
    for model, board, kernels in itertools.product(models, boards, kernel_sets):
        flash, arena, report, words = test(model, board, kernels, work)
        cells = (f"{flash:,}", f"{arena:,}") if report else ("", "")
        result = (count(report), agreement(report)) if report else ("", words)
        print(f"| {model} | {board} | {kernels} | {' | '.join((*cells, *result))} |", flush=True)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="models x boards x kernel sets")
    parser.add_argument("--settings", action="store_true", help="the effect of each setting")
    parser.add_argument("--targets", action="store_true", help="flash, arena and instructions against bare firmware")
    parser.add_argument("--times", action="store_true", help="how long builds take")
    names = sorted(path.stem for path in MODELS.glob("*.tflite"))
    parser.add_argument("--models", nargs="+", default=names, choices=names, help="the table's models")
    parser.add_argument("--boards", nargs="+", default=BOARDS, choices=BOARDS, help="the table's boards")
    parser.add_argument("--kernel-sets", nargs="+", default=KERNEL_SETS, choices=KERNEL_SETS, help="of the tables")
    parser.add_argument("--work", type=Path, help="keep the builds in this folder")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = chosen.work or Path(folder)
        if chosen.table:
            bench_table(work, chosen.models, chosen.boards, chosen.kernel_sets)
        elif chosen.settings:
            bench_settings(work, chosen.kernel_sets)
        elif chosen.targets:
            bench_flash(work)
        elif chosen.times:
            bench_times(Path(folder))
        else:
            bench_flash(work)
            bench_times(Path(folder))


if __name__ == "__main__":
    main()
