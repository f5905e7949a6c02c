"""Prints the numbers of the README: times of the commands, and flash and instructions of the bundled runtime.

    make bench

Every figure is measured when the command runs. Model files that are not beside the project are left out, and
the row says so.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT.parent / "shared" / "models"
DIGITS = ROOT / "examples" / "digits" / "digits.tflite"
SINE = ROOT / "examples" / "sine" / "sine.tflite"
KWS = MODELS / "kws_ref_model.tflite"
LARGE = MODELS / "person_detect.tflite"
FORGE = [sys.executable, "-m", "tflm_forge"]
BOARD = "stm32f4"


def run_forge(*args: str | Path, cache: Path) -> tuple[float, str]:
    """Run forge and return its wall time in seconds and its stdout."""
    environment = {**os.environ, "FORGE_CACHE_DIR": str(cache)}
    began = time.perf_counter()
    done = subprocess.run(
        [*FORGE, *map(str, args)], env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    took = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(f"forge {' '.join(map(str, args))} failed:\n{done.stderr}")
    return took, done.stdout


def median_time(*args: str | Path, cache: Path, runs: int = 5) -> float:
    """Return the median wall time in seconds."""
    return statistics.median(run_forge(*args, cache=cache)[0] for _ in range(runs))


def show(what: str, value: str, target: str) -> None:
    """Print one row."""
    print(f"| {what} | {value} | {target} |", flush=True)


def bench_check(work: Path) -> None:
    """Time `forge check` on a project of 20 models, each with its manifest."""
    project = work / "twenty"
    (project / "models").mkdir(parents=True)
    sources = sorted(MODELS.glob("*.tflite")) or [DIGITS, SINE]
    names = [f"models/m{index}" for index in range(20)]
    patterns = 'manifests = ["models/*.manifest.yaml"]\nmodels = ["models/*.tflite"]\n'
    (project / "forge.toml").write_text(f"[operator_ci_check]\n{patterns}")
    for index, name in enumerate(names):
        model = project / f"{name}.tflite"
        model.write_bytes(sources[index % len(sources)].read_bytes())
        options = ("--board", BOARD, "--runtime", "tflm", "-o", f"{name}.manifest.yaml")
        subprocess.run([*FORGE, "manifest", f"{name}.tflite", *options], cwd=project, check=True, capture_output=True)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([*FORGE, "check"], cwd=project, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    show("`forge check`, 20 models", f"{statistics.median(times):.2f} s", "2 s")


def bench_commands(work: Path) -> None:
    """Time the commands of a first day with forge."""
    cache = work / "cache"
    show("`forge --help`", f"{median_time('--help', cache=cache):.2f} s", "0.25 s")
    if LARGE.is_file():
        show("`forge inspect`, model of 300 KB", f"{median_time('inspect', LARGE, cache=cache):.2f} s", "0.4 s")
        show("`forge doctor`, the same model", f"{median_time('doctor', LARGE, cache=cache):.2f} s", "0.5 s")
    else:
        show("`forge inspect`, model of 300 KB", f"left out, no {LARGE.name}", "0.4 s")
    build = ("build", DIGITS, "--board", BOARD, "--runtime", "bundled", "-o", work / "digits")
    show("first build of digits, empty cache", f"{run_forge(*build, cache=cache)[0]:.1f} s", "15 s")
    show("the same again, unchanged", f"{median_time(*build, cache=cache, runs=3):.2f} s", "1 s")
    other = ("build", SINE, "--board", BOARD, "--runtime", "bundled", "-o", work / "sine")
    show("another model on the same core", f"{run_forge(*other, cache=cache)[0]:.1f} s", "4 s")
    test = ("flash-and-test", DIGITS, "--board", BOARD, "--runtime", "bundled", "-o", work / "digits")
    short = (*test, "--only", "self-check,numbers")
    show(
        "`forge flash-and-test --only self-check,numbers` to verdict in QEMU",
        f"{median_time(*short, cache=cache, runs=3):.1f} s",
        "5 s",
    )
    run_forge(*test, cache=cache)
    soak = (*test, "--only", "soak", "--soak", "5000")
    show("5,000 soak loops of digits in QEMU", f"{run_forge(*soak, cache=cache)[0]:.1f} s", "20 s")


def bench_size(work: Path) -> None:
    """Time the size report of a firmware with a large model and debug information."""
    if not LARGE.is_file():
        show("`forge size`", f"left out, no {LARGE.name}", "0.6 s")
        return
    cache, folder = work / "cache", work / "large"
    run_forge("build", LARGE, "--board", "mps2-an386", "--runtime", "bundled", "-o", folder, cache=cache)
    size = json.loads(run_forge("size", folder, "--json", cache=cache)[1])
    elf_mb = (folder / "firmware.elf").stat().st_size / 1e6
    what = f"`forge size`, {size['flash_bytes'] / 1000:.0f} KB of flash and {elf_mb:.1f} MB of ELF"
    show(what, f"{median_time('size', folder, cache=cache):.2f} s", "0.6 s")


def bench_kws(work: Path) -> None:
    """Measure flash and instructions of MLPerf Tiny keyword spotting on the bundled runtime."""
    if not KWS.is_file():
        show("keyword spotting, bundled", f"left out, no {KWS.name}", "")
        return
    cache, folder = work / "cache", work / "kws"
    common = (KWS, "--board", "mps2-an386", "--runtime", "bundled", "-o", folder)
    run_forge("build", *common, cache=cache)
    size = json.loads(run_forge("size", folder, "--json", cache=cache)[1])
    show("keyword spotting, bundled: flash without the model", f"{size['without_model_bytes']:,} B", "24,576 B")
    groups = {row["name"]: row["flash_bytes"] for row in size["groups"]}
    show("of it link, self-check and main", f"{groups['link and self-check']:,} B", "6,144 B")
    run_forge("flash-and-test", *common, cache=cache)
    took, report = run_forge("flash-and-test", *common, "--json", cache=cache)
    instructions = json.loads(report)["latency"]["median"]
    show("keyword spotting, bundled: the whole suite in QEMU", f"{took:.1f} s", "30 s")
    show("keyword spotting, bundled: instructions an inference", f"{instructions:,}", "30,000,000")


def main() -> None:
    """Print the table."""
    print("| what | measured | to reach |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        bench_commands(Path(folder))
        bench_check(Path(folder))
        bench_size(Path(folder))
        bench_kws(Path(folder))


if __name__ == "__main__":
    main()
