"""Bad inputs of every kind, counted: files, tables, command lines, estimators; faults with their seeds.

It goes on from the seeds that `results/fuzz.json` has: run it until the counts are what is wanted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, write_results, write_table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from fuzz.targets import SMALL, TARGETS, Fault, saved_model

SLOW_SECONDS, LARGE_BYTES = 60.0, 500e6
"""No call may take more."""

INPUTS = {
    "model_bytes": 50_000,
    "model_content": 4_000,
    "checkpoint_bytes": 12_000,
    "checkpoint_content": 9_000,
    "csv": 3_000,
    "parquet": 20_000,
    "command_line": 1_000,
    "estimators": 1_000,
}
"""How many are to be tried: 100,000, by what they cost; 98,000 are files of models, fits and tables."""
WRITTEN_EVERY = 10.0
"""Seconds after which the counts are written, for a run that does not come to its end."""
PIECES = 400
"""A target is left for another after such a part of its inputs."""


def memory(key: str) -> float:
    """What the system says of this process's memory, in bytes: `VmRSS` now, `VmHWM` the most since reset."""
    return float(Path("/proc/self/status").read_text().split(f"{key}:")[1].split()[0]) * 1024.0


def explore(target: Any, found: dict[str, Any], n_inputs: int, folder: Path) -> None:
    """Try one target so often, from the first seed that was not tried yet."""
    counts = Counter(found["counts"])
    for seed in range(sum(counts.values()), sum(counts.values()) + n_inputs):
        Path("/proc/self/clear_refs").write_text("5")  # the most memory is counted anew
        began, before = time.monotonic(), memory("VmRSS")
        try:
            outcome = target(np.random.default_rng(seed), folder)
        except Fault as fault:
            outcome = "fault"
            found["faults"].append([seed, str(fault)[-300:]])
        counts[outcome] += 1
        took, more = time.monotonic() - began, memory("VmHWM") - before
        if took > SLOW_SECONDS or more > LARGE_BYTES:
            found["costly"].append([seed, took, more])
        for left in os.scandir(folder):
            shutil.rmtree(left) if left.is_dir(follow_symlinks=False) else os.unlink(left)
    found["counts"] = dict(counts)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=600.0)
    options.add_argument("--anew", action="store_true", help="forget what was counted")
    chosen = options.parse_args()
    file = RESULTS / "fuzz.json"
    former = json.loads(file.read_text())["targets"] if file.exists() and not chosen.anew else {}
    found = {t.__name__: former.get(t.__name__, {"counts": {}, "faults": [], "costly": []}) for t in TARGETS}
    warnings.simplefilter("ignore")
    written = time.monotonic()
    until = written + chosen.seconds
    for name in SMALL:
        saved_model(name)
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < until:
            shares = {t: sum(found[t.__name__]["counts"].values()) / INPUTS[t.__name__] for t in TARGETS}
            target = min(TARGETS, key=lambda one: shares[one])
            if shares[target] >= 1.0:
                break
            explore(target, found[target.__name__], INPUTS[target.__name__] // PIECES, Path(folder))
            if time.monotonic() > written + WRITTEN_EVERY:
                written = time.monotonic()
                write_results("fuzz", {"targets": found})
    write_results("fuzz", {"targets": found})
    tell(found)
    for name, each in found.items():
        print(name, each)


def tell(found: dict[str, Any]) -> None:
    """The table of all that was counted so far."""
    total = sum(sum(each["counts"].values()) for each in found.values())
    lines = [f"{total:,} inputs; the rows say how they ended.", ""]
    lines += ["| target | inputs | refused | answered | with a warning | faults | over 60 s or 500 MB |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for name, each in found.items():
        counts = Counter(each["counts"])
        cells = [sum(counts.values()), *(counts[key] for key in ("refused", "fine", "warned", "fault"))]
        lines.append(f"| {name} | {' | '.join(f'{n:,}' for n in cells)} | {len(each['costly'])} |")
    write_table("fuzz", lines)


if __name__ == "__main__":
    main()
