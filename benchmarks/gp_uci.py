"""Regression sets of the Bayesian literature on the published splits, one default configuration for all sets.

    python benchmarks/gp_uci.py --data FOLDER [--sets boston yacht] [--splits 20]

Writes results/gp_uci.json after each split, or gp_uci_scales_N.json and the like with --scales N and other
settings, and the table in benchmarks/README.md.
"""

from __future__ import annotations

import time
import traceback
from typing import Any

import numpy as np
from common import judged, known_results, load_splits, parser, with_error, write_results, write_table

from nongauss import SparseGPRegressor

# What is aimed at: log-likelihood (nats a row) and RMSE.
AIMS = {
    "boston": (-2.35, 2.50),
    "concrete": (-3.00, 4.9),
    "energy": (-0.69, 0.48),
    "yacht": (0.00, 0.28),
    "wine_red": (-0.95, 0.63),
    "power": (-2.72, 3.66),
    "kin8nm": (1.11, 0.078),
    "naval": (None, None),
    "protein": (-2.82, 4.05),
}


def one_split(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, **settings: Any) -> dict:
    """Fit on the training rows, judge on the test rows. An exception is a result too."""
    started, cpu = time.perf_counter(), time.process_time()
    try:
        model = SparseGPRegressor(**settings).fit(X[train], y[train])
        fitted, cpu = time.perf_counter(), time.process_time() - cpu
        figures = judged(model.predict_distribution(X[test]), y[test])
    except Exception:  # noqa: BLE001
        return {"failed": traceback.format_exc()}
    return {
        **figures,
        "bound_per_row": model.bound_ / len(train),
        "fit_seconds": fitted - started,
        "fit_cpu_seconds": cpu,
        "predict_seconds": time.perf_counter() - fitted,
        "iterations": model.n_iter_,
        "n_inducing": len(model.posterior_.Z),
    }


def table(sets: dict[str, list[dict]]) -> list[str]:
    """The Markdown table: aim and ours."""
    lines = [
        "| set | splits | failed | M | RMSE: aim | RMSE: ours | log-lik.: aim | log-lik.: ours "
        "| 90 % covers | fit CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, every in sets.items():
        rows = [row for row in every if "failed" not in row]
        rmse = with_error([row["rmse"] for row in rows], ".4g")
        density = with_error([row["log_likelihood"] for row in rows], ".3f")
        coverage = np.mean([row["coverage_90"] for row in rows])
        seconds = np.median([row["fit_cpu_seconds"] for row in rows])
        aim, aim_rmse = ("" if aim is None else aim for aim in AIMS[name])
        lines.append(
            f"| {name} | {len(every)} | {len(every) - len(rows)} | {rows[0]['n_inducing']} | {aim_rmse} "
            f"| {rmse} | {aim} | {density} "
            f"| {100 * coverage:.1f} % | {seconds:.1f} |"
        )
    return lines


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="+", choices=AIMS, default=list(AIMS))
    options.add_argument("--splits", type=int, default=20)
    options.add_argument("--scales", type=int, help="as `n_scales`, for comparison with the default")
    options.add_argument("--inducing", type=int, help="as `n_inducing`")
    options.add_argument("--iterations", type=int, help="as `max_iter`")
    options.add_argument("--likelihood", help="another law than Gaussian noise")
    options.add_argument("--go-on", action="store_true", help="only the splits that have no result yet")
    chosen = options.parse_args()
    given = {
        "n_scales": chosen.scales,
        "n_inducing": chosen.inducing,
        "max_iter": chosen.iterations,
        "likelihood": chosen.likelihood,
    }
    more = {setting: value for setting, value in given.items() if value is not None}
    words = {"n_scales": "scales", "n_inducing": "inducing", "max_iter": "iterations"}
    parts = [f"{words[s]}_{value}" if s in words else value for s, value in more.items()]
    name = "_".join(["gp_uci", *parts])
    sets = known_results(f"{name}").get("sets", {})
    for data_set in chosen.sets:
        X, y, splits = load_splits(chosen.data, data_set)
        done = sets.get(data_set, []) if chosen.go_on else []
        for number, split in list(enumerate(splits[: chosen.splits]))[len(done) :]:
            done = [*done, one_split(X, y, *split, random_state=number, **more)]
            sets[data_set] = done
            write_results(name, {**more, "sets": sets})
            write_table(name, table({key: sets[key] for key in AIMS if key in sets}))
        print(table({data_set: sets[data_set]})[-1], flush=True)


if __name__ == "__main__":
    main()
