"""Two hidden layers on Friedman's first function: how far each posterior's predictions are from new rows.

    python benchmarks/tggm_depth.py [--seeds 0 1 2] [--ways "mean_field 60"]

600 rows of ten columns, five of which matter, noise of sd 1; (20, 20) units, one member; 4,000 new rows.
Results are kept after each fit: `results/tggm_depth.json`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import judged, known_results, with_error, write_results, write_table
from sklearn.datasets import make_friedman1

from nongauss import TGGMRegressor

N_ROWS, N_NEW = 600, 4_000

WAYS = {
    "mean_field 60": {"posterior": "mean_field", "max_epochs": 60},
    "mean_field 240": {"posterior": "mean_field", "max_epochs": 240},
    "moments 60": {"posterior": "moments", "max_epochs": 60},
    "moments 240": {"posterior": "moments", "max_epochs": 240},
    "default": {"n_members": 5},
}


def one_fit(way: str, seed: int) -> dict[str, float]:
    """Root mean squared error and log-likelihood on new rows."""
    X, y = make_friedman1(N_ROWS + N_NEW, noise=1.0, random_state=seed)
    started = time.perf_counter()
    settings = {"n_members": 1, **WAYS[way]}
    model = TGGMRegressor((20, 20), random_state=seed, **settings).fit(X[:N_ROWS], y[:N_ROWS])
    seconds = time.perf_counter() - started
    return {**judged(model.predict_distribution(X[N_ROWS:]), y[N_ROWS:]), "fit_seconds": seconds}


def lines_of(found: dict[str, list[dict[str, float]]]) -> list[str]:
    """The Markdown table."""
    lines = ["| posterior, epochs | seeds | RMSE (noise: 1) | log-likelihood | 90 % covers | fit s |"]
    lines += ["|" + "---|" * 6]
    for way, rows in found.items():
        rmse = with_error([row["rmse"] for row in rows], ".3f")
        density = with_error([row["log_likelihood"] for row in rows], ".3f")
        coverage = 100.0 * np.mean([row["coverage_90"] for row in rows])
        seconds = np.median([row["fit_seconds"] for row in rows])
        lines.append(f"| {way} | {len(rows)} | {rmse} | {density} | {coverage:.1f} % | {seconds:.1f} |")
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    asked = options.parse_args()
    found = known_results("tggm_depth").get("ways", {})
    for seed in asked.seeds:
        for way in asked.ways:
            rows = [row for row in found.get(way, []) if row["seed"] != seed]
            found[way] = [*rows, {"seed": seed, **one_fit(way, seed)}]
            write_results("tggm_depth", {"ways": found})
    lines = lines_of({way: found[way] for way in WAYS if way in found})
    write_table("tggm_depth", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
