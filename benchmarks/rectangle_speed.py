"""Seconds and memory of the rectangle mixture: iris, and growth of made rows to a million."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
from common import known_results, one_core, write_results, write_table
from sklearn.datasets import load_iris

SIZES = ((1_000, 20, 10), (10_000, 20, 10), (100_000, 20, 10), (1_000_000, 20, 10))


def rows(n_rows: int, n_columns: int, K: int) -> np.ndarray:
    """Clusters in boxes of the first columns, noise in the others."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-8, 8, (K, n_columns))
    centres[:, 6:] = 0.0
    return centres[rng.integers(0, K, n_rows)] + rng.normal(size=(n_rows, n_columns))


def one(n_rows: int, n_columns: int, K: int) -> dict[str, float]:
    """A fit in this process: seconds, processor seconds, peak memory."""
    from nongauss import RectangleMixture

    X = load_iris().data if n_rows == 150 else rows(n_rows, n_columns, K)
    began, cpu = time.perf_counter(), time.process_time()
    model = RectangleMixture(K, random_state=0).fit(X)
    return {
        "rows": n_rows,
        "columns": n_columns,
        "clusters": K,
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "inside_one": model.inside_one_,
    }


def table(fits: list[dict[str, float]]) -> list[str]:
    lines = [
        "One fresh process and one core a fit, ten starts; the first line is iris, the others are made.",
        "Seconds on the clock were taken while others used the machine.",
        "",
        "| rows | columns | K | processor s | s on the clock | peak MiB | inside exactly one rule |",
        "|---|---|---|---|---|---|---|",
    ]
    return lines + [
        f"| {f['rows']} | {f['columns']} | {f['clusters']} | {f['cpu_seconds']:.1f} | {f['seconds']:.1f} "
        f"| {f['peak_mib']:.0f} | {100 * f['inside_one']:.1f} % |"
        for f in fits
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--one", type=int, nargs=3, help="one fit: rows, columns, clusters")
    options.add_argument("--least", type=int, default=0, help="smallest number of rows; others are kept")
    options.add_argument("--most", type=int, default=1_000_000, help="largest number of rows")
    chosen = options.parse_args()
    if chosen.one:
        print(json.dumps(one(*chosen.one)))
        return
    one_core()
    sizes = [size for size in ((150, 4, 3), *SIZES) if chosen.least <= size[0] <= chosen.most]
    kept = known_results("rectangle_speed").get("fits", [])
    every = {(fit["rows"], fit["columns"], fit["clusters"]): fit for fit in kept}
    for size in sizes:
        command = [sys.executable, __file__, "--one", *map(str, size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        every[size] = json.loads(done.stdout)
        print(every[size], flush=True)
        write_results("rectangle_speed", {"fits": list(every.values())})
        write_table("rectangle_speed", table(list(every.values())))


if __name__ == "__main__":
    main()
