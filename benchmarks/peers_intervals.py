"""Predictive distributions and intervals beside NGBoost and MAPIE, whose packages people take for them.

    pip install ".[bench]"
    python benchmarks/peers_intervals.py --data FOLDER [--sets yacht boston] [--splits 3]

Every model has its defaults and no tuning. Of the published 90/10 splits the first few are taken. NGBoost
(`NGBRegressor()`) gives a normal distribution; MAPIE (`CrossConformalRegressor` around scikit-learn's boosted
trees, five folds, 90 %) intervals alone. The interval score is that of Gneiting and Raftery (2007): the width
plus 20 times what a row lies outside; lower is better, and it rewards intervals that are narrow and hold.
Writes results/peers_intervals.json after each set, and the table in benchmarks/README.md.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import known_results, load_splits, parser, with_error, write_results, write_table
from sklearn.ensemble import HistGradientBoostingRegressor

from nongauss import SparseGPRegressor

Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def scores(y: np.ndarray, ends: np.ndarray, log_density: np.ndarray | None) -> dict[str, float]:
    """Mean log density (NaN where there is none), coverage, and interval score of 90 % intervals (N, 2)."""
    low, high = ends.T
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return {
        "log_density": float("nan") if log_density is None else float(np.mean(log_density)),
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "interval_score": float(np.mean(high - low + 20.0 * outside)),
    }


def ours(make: Callable[[], Any]) -> Callable[[Data], dict[str, float]]:
    """A model of this package, by its defaults."""

    def run(data: Data) -> dict[str, float]:
        X, y, X_new, y_new = data
        law = make().fit(X, y).predict_distribution(X_new)
        return scores(y_new, law.interval(0.9), law.log_prob(y_new))

    return run


def ngboost(data: Data) -> dict[str, float]:
    """NGBoost by its defaults: a normal distribution."""
    from ngboost import NGBRegressor

    X, y, X_new, y_new = data
    law = NGBRegressor(verbose=False, random_state=0).fit(X, y).pred_dist(X_new)
    return scores(y_new, np.stack(law.interval(0.9), axis=1), law.logpdf(y_new))


def mapie(data: Data) -> dict[str, float]:
    """MAPIE's cross-conformal intervals around boosted trees."""
    from mapie.regression import CrossConformalRegressor

    X, y, X_new, y_new = data
    trees = HistGradientBoostingRegressor(random_state=0)
    model = CrossConformalRegressor(trees, confidence_level=0.9, cv=5, random_state=0).fit_conformalize(X, y)
    ends = np.asarray(model.predict_interval(X_new)[1]).reshape(len(X_new), 2)
    return scores(y_new, ends, None)


MODELS: dict[str, Callable[[Data], dict[str, float]]] = {
    "SparseGPRegressor": ours(lambda: SparseGPRegressor(random_state=0)),
    "NGBoost": ngboost,
    "MAPIE": mapie,
}


def of_set(data: Any, name: str, n_splits: int) -> dict[str, list[dict[str, float]]]:
    """The figures of every model on the first splits of a set."""
    X, y, pairs = load_splits(data, name)
    found: dict[str, list[dict[str, float]]] = {model: [] for model in MODELS}
    for train, test in pairs[:n_splits]:
        for model, run in MODELS.items():
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                figures = run((X[train], y[train], X[test], y[test]))
            found[model].append(figures | {"cpu_seconds": time.process_time() - began})
    return found


def shown(values: list[float]) -> str:
    """A mean with its standard error over the splits."""
    return with_error(values, ".2f", ".2f")


def table(results: dict[str, Any]) -> list[str]:
    """The lines of the table: a set and a model each."""
    lines = [
        "| set | model | log density | 90 % hold | interval score | CPU seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name, models in results.items():
        for model, runs in models.items():
            told = [[run[figure] for run in runs] for figure in ("log_density", "interval_score")]
            density = "–" if np.isnan(told[0]).any() else shown(told[0])
            held = f"{100 * np.mean([run['coverage'] for run in runs]):.0f} %"
            seconds = f"{np.mean([run['cpu_seconds'] for run in runs]):.1f}"
            lines.append(f"| {name} | {model} | {density} | {held} | {shown(told[1])} | {seconds} |")
    return lines


def main() -> None:
    """Measure set after set, keeping those that were measured before."""
    options = parser("Intervals beside NGBoost and MAPIE.")
    options.add_argument("--sets", nargs="+", default=["yacht", "boston"])
    options.add_argument("--splits", type=int, default=3)
    args = options.parse_args()
    results = known_results("peers_intervals").get("sets", {})
    for name in args.sets:
        results[name] = of_set(args.data, name, args.splits)
        write_results("peers_intervals", {"splits": args.splits, "sets": results})
        write_table("peers_intervals", table(results))
        print("\n".join(table({name: results[name]})), flush=True)


if __name__ == "__main__":
    main()
