"""The automatic regressor and each family alone on published splits: density, error, coverage, seconds.

    python benchmarks/auto.py --data DIR [--sets boston yacht] [--splits 3] [--models auto]

Seconds are of the processor, for the whole fit. Results are kept after each split: `results/auto.json`; the
table in `benchmarks/README.md` has the splits that are there.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from common import hours_of_fits, judged, keep_results, known_results, load_splits, parser, write_table

import nongauss

SETS = ["yacht", "boston", "energy", "concrete", "wine_red", "power", "kin8nm", "naval", "protein"]

AIMS = {
    "boston": -2.12,
    "concrete": -2.45,
    "energy": 0.35,
    "kin8nm": 1.35,
    "naval": 8.2,
    "power": -2.35,
    "protein": -1.65,
    "yacht": 0.95,
}
"""Mean log density of test rows that is aimed at."""
MODELS: dict[str, Any] = {
    "auto": lambda: nongauss.AutoRegressor(random_state=0),
    "gp": lambda: nongauss.SparseGPRegressor(random_state=0),
    "gp heteroscedastic": lambda: nongauss.SparseGPRegressor("heteroscedastic", random_state=0),
    "gp laplace": lambda: nongauss.SparseGPRegressor("laplace", random_state=0),
    "gp gamma": lambda: nongauss.SparseGPRegressor("gamma", random_state=0),
    "tggm": lambda: nongauss.TGGMRegressor(random_state=0),
    "forest": lambda: nongauss.AutoRegressor(candidates=["constant"], random_state=0),
}


FIGURES = ("log_likelihood", "rmse", "coverage_90", "seconds")


def one(model: Any, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[train], y[train])
    seconds = time.process_time() - begin
    found: dict[str, Any] = {**judged(model.predict_distribution(X[test]), y[test]), "seconds": seconds}
    if hasattr(model, "weights_") and isinstance(model.weights_, dict):
        found["weights"] = model.weights_
    return found


FAMILIES = {"gp": "gp_uci", "tggm": "tggm_uci_ml"}
"""Families whose own tables have the same splits, and the files of these."""


def alone(name: str, splits: dict[str, Any]) -> dict[str, float]:
    """The mean log density of each single model that was measured on all of these splits of a set."""
    found = {
        model: [split[model]["log_likelihood"] for split in splits.values()]
        for model in MODELS
        if model != "auto" and all(model in split for split in splits.values())
    }
    for model, file in FAMILIES.items():
        runs = known_results(file).get("sets", {}).get(name, [])
        if model not in found and max(map(int, splits)) < len(runs):
            own = [runs[int(number)].get("log_likelihood") for number in splits]
            if None not in own:
                found[model] = own
    return {model: float(np.mean(values)) for model, values in found.items()}


def table(known: dict[str, Any]) -> list[str]:
    """Means over the splits that are there: the automatic regressor, and the best single family beside it."""
    lines = [
        "| set | splits | log-lik.: aim | log-lik.: auto | RMSE | 90 % covers | best alone | fit CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in (name for name in SETS if name in known):
        splits = {number: split for number, split in known[name].items() if "auto" in split}
        if not splits:
            continue
        mean = {key: np.mean([split["auto"][key] for split in splits.values()]) for key in FIGURES}
        single = alone(name, splits)
        best = max(single, key=lambda model: single[model]) if single else ""
        figures = [
            f"{mean['log_likelihood']:.3f}",
            f"{mean['rmse']:.4g}",
            f"{100 * mean['coverage_90']:.1f} %",
        ]
        figures += [f"{best} {single[best]:.3f}" if best else "", f"{mean['seconds']:.0f}"]
        lines.append(f"| {name} | {len(splits)} | {AIMS.get(name, '')} | {' | '.join(figures)} |")
    return lines


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", nargs="+", default=SETS)
    options.add_argument("--splits", type=int, default=3)
    options.add_argument("--models", nargs="+", default=list(MODELS))
    chosen = options.parse_args()
    known = known_results("auto")
    for name in chosen.sets:
        X, y, splits = load_splits(chosen.data, name)
        for number, (train, test) in enumerate(splits[: chosen.splits]):
            for model in chosen.models:
                place = known.setdefault(name, {}).setdefault(str(number), {})
                if model not in place:
                    place[model] = one(MODELS[model](), X, y, train, test)
                    print(name, number, model, place[model], flush=True)
                    keep_results("auto", known)
    write_table("auto", table(known) + hours_of_fits(known))


if __name__ == "__main__":
    main()
