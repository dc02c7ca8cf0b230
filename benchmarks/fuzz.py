"""Bad inputs of every kind, counted: files, tables, command lines, estimators; faults with their seeds.

It goes on from the seeds that `results/fuzz.json` has: run it until the counts are what is wanted.
"""

from __future__ import annotations

import argparse
import json
import resource
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


def peak() -> float:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def explore(target: Any, found: dict[str, Any], seconds: float) -> None:
    """Try one target for so long, from the first seed that was not tried yet."""
    counts, until = Counter(found["counts"]), time.monotonic() + seconds
    while time.monotonic() < until:
        seed, began, before = sum(counts.values()), time.monotonic(), peak()
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = target(np.random.default_rng(seed), Path(folder))
            except Fault as fault:
                outcome = "fault"
                found["faults"].append([seed, str(fault)[-300:]])
        counts[outcome] += 1
        took = time.monotonic() - began
        if took > SLOW_SECONDS or peak() - before > LARGE_BYTES:
            found["costly"].append([seed, took, peak() - before])
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
    for name in SMALL:
        saved_model(name)
    for target in TARGETS:
        explore(target, found[target.__name__], chosen.seconds / len(TARGETS))
        print(target.__name__, found[target.__name__]["counts"], flush=True)
        write_results("fuzz", {"targets": found})
        tell(found)


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
