"""Prints how long `forge ota check --fleet` takes for many different manifests, and for many alike.

    python tools/bench_fleet.py [--count 10000]

The manifests are those of digits' firmware with other arenas, op sets and flash sizes, no two the same; then as many
copies of ten of them, as a real fleet has. The arena need comes from a package, so that nothing is built.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.unit.gates.firmwares import DIGITS, manifest_of
from tflm_forge.gates.facts import facts_of_manifest
from tflm_forge.gates.needs import ArenaNeed
from tflm_forge.gates.package import pack_model
from tflm_forge.manifest import Manifest, ManifestFlash, render_manifest
from tflm_forge.model import load_model

ARENA_BYTES = 3328
VERDICTS = (0, 7)


def vary(manifest: Manifest, number: int, draw: random.Random) -> Manifest:
    """Return the manifest of another firmware: each has its own size of flash."""
    ops = tuple(op for op in manifest.ops if draw.random() > 0.02)
    arena = replace(manifest.arena, size_bytes=draw.randrange(ARENA_BYTES - 160, ARENA_BYTES + 1600, 16))
    flash = ManifestFlash(size_bytes=40_000 + number, limit_bytes=1024 * 1024)
    changed = replace(manifest, ops=ops, arena=arena, flash=flash)
    return replace(changed, op_hash=changed.computed_op_hash)


def write_fleet(folder: Path, manifests: list[bytes], count: int) -> None:
    """Write a fleet, a file for each firmware."""
    folder.mkdir()
    for number in range(count):
        (folder / f"device-{number:05d}.yaml").write_bytes(manifests[number % len(manifests)])


def measure(package: Path, fleet: Path) -> float:
    """Return the wall time of the command in seconds."""
    command = [sys.executable, "-m", "tflm_forge", "ota", "check", str(package), "--fleet", str(fleet)]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    took = time.perf_counter() - began
    if done.returncode not in VERDICTS:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return took


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="firmwares of the fleet")
    count = parser.parse_args().count
    model = load_model(DIGITS)
    own = manifest_of(model)
    draw = random.Random(1)
    different = [render_manifest(vary(own, number, draw)) for number in range(count)]
    print(f"| `forge ota check --fleet`, {os.cpu_count()} cores | measured | to reach |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = folder / "new.tflmpkg"
        arena = ArenaNeed(bytes=ARENA_BYTES, how="measured for this bench", is_measured=True)
        package.write_bytes(pack_model(model, arena, facts_of_manifest(own, "bench")))
        for words, manifests in (("no two the same", different), ("ten builds", different[:10])):
            fleet = folder / words.replace(" ", "-")
            write_fleet(fleet, manifests, count)
            kilobytes = sum(map(len, manifests)) / len(manifests) / 1000
            took = measure(package, fleet)
            print(f"| {count:,} manifests of {kilobytes:.1f} KB, {words} | {took:.1f} s | 10 s |", flush=True)


if __name__ == "__main__":
    main()
