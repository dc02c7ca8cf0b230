"""Counts with calendar and weather columns: the default network, a Gaussian process and boosted trees.

    python benchmarks/tggm_counts.py --data FOLDER [--sets bike_day "made hours"] [--splits 5]

bike_day has rentals of 731 days. "made hours" has 1,000 random hours of two years: the hour with two peaks
on working days and one on others, month, weekday, year, and weather that scales the rate; Poisson counts. A
tenth of the rows is held out at random. Results are kept after each split: `results/tggm_counts.json`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import (
    judged,
    known_results,
    load_table,
    parser,
    random_splits,
    with_error,
    write_results,
    write_table,
)
from sklearn.ensemble import HistGradientBoostingRegressor

from nongauss import SparseGPRegressor, TGGMRegressor

N_HOURS = 1_000


def bike_day(data: Path) -> tuple[pd.DataFrame, np.ndarray]:
    table, y = load_table(data, "bike_day")
    return table.drop(columns="date"), y.astype(float)


def made_hours(_: Path) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    day, hour = rng.integers(0, 730, N_HOURS), rng.integers(0, 24, N_HOURS)
    season = np.cos(2 * np.pi * (day - 200) / 365)
    works = day % 7 < 5
    warmth = season + 0.3 * np.sin(2 * np.pi * (hour - 9) / 24) + 0.3 * rng.standard_normal(N_HOURS)
    rain = rng.random(N_HOURS) < 0.1

    def peak(at: float, width: float) -> np.ndarray:
        return np.exp(-(((hour - at) / width) ** 2))

    daily = np.where(works, peak(8, 1.5) + peak(17.5, 2), 0.9 * peak(14, 4)) + 0.3 * peak(14, 6)
    log_rate = np.log(0.03 + daily) + 0.5 * warmth + 0.4 * (day >= 365) - 0.8 * rain
    columns = {
        "year": day // 365,
        "month": (day % 365) // 31 + 1,
        "weekday": day % 7,
        "works": works.astype(int),
        "hour": hour,
        "rain": rain.astype(int),
        "temperature": np.round(12 + 12 * warmth, 1),
        "humidity": np.round(60 + 20 * rain + 10 * rng.standard_normal(N_HOURS)),
        "wind": np.round(rng.gamma(3.0, 4.0, N_HOURS), 1),
    }
    return pd.DataFrame(columns), rng.poisson(250 * np.exp(log_rate)).astype(float)


SETS: dict[str, Callable[[Path], tuple[pd.DataFrame, np.ndarray]]] = {
    "bike_day": bike_day,
    "made hours": made_hours,
}

MODELS: dict[str, Callable[[int], Any]] = {
    "TGGM": lambda seed: TGGMRegressor(random_state=seed),
    "TGGM, no splines": lambda seed: TGGMRegressor(splines=None, random_state=seed),
    "Gaussian process": lambda seed: SparseGPRegressor(random_state=seed),
    "boosted trees": lambda seed: HistGradientBoostingRegressor(random_state=seed),
}


def one_split(model: Any, X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict:
    """Error on held-out rows, and of a model with distributions their log density and coverage."""
    started = time.process_time()
    model.fit(X.iloc[train], y[train])
    seconds = time.process_time() - started
    if not hasattr(model, "predict_distribution"):
        rmse = float(np.sqrt(np.mean((model.predict(X.iloc[test]) - y[test]) ** 2)))
        return {"rmse": rmse, "cpu_seconds": seconds}
    return {**judged(model.predict_distribution(X.iloc[test]), y[test]), "cpu_seconds": seconds}


def lines_of(sets: dict[str, dict[str, list[dict]]]) -> list[str]:
    """The Markdown table."""
    lines = ["| set | model | splits | RMSE | log-likelihood | 90 % covers | CPU s |", "|" + "---|" * 7]
    for name, models in sets.items():
        for model, rows in models.items():
            says = "log_likelihood" in rows[0]
            density = with_error([row["log_likelihood"] for row in rows], ".3f") if says else ""
            covers = f"{100 * np.mean([row['coverage_90'] for row in rows]):.1f} %" if says else ""
            rmse = with_error([row["rmse"] for row in rows], ".4g")
            seconds = np.median([row["cpu_seconds"] for row in rows])
            lines.append(
                f"| {name} | {model} | {len(rows)} | {rmse} | {density} | {covers} | {seconds:.1f} |"
            )
    return lines


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options.add_argument("--splits", type=int, default=5)
    asked = options.parse_args()
    found = known_results("tggm_counts").get("sets", {})
    for name in asked.sets:
        X, y = SETS[name](asked.data)
        splits = random_splits(len(y), round(0.9 * len(y)), asked.splits)
        for label, model in MODELS.items():
            rows = found.setdefault(name, {}).setdefault(label, [])
            for seed in range(len(rows), asked.splits):
                rows.append(one_split(model(seed), X, y, *splits[seed]))
                write_results("tggm_counts", {"sets": found})
    lines = lines_of(found)
    write_table("tggm_counts", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
