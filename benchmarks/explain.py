"""Explanations of rows with missing cells by the automatic regressor: seconds, and how far from all sets.

    python benchmarks/explain.py [--columns 8 20] [--rows 8 1000]

500 rows of Friedman's first function of as many columns as are asked for, of which five act, a tenth of all
cells missing. Rows that were not fitted to are explained with the defaults; of eight columns also the first
eight rows by all sets of columns, with twenty completions of each row with gaps, which the defaults are
compared with. Seconds are of the processor. Results are kept after each: `results/explain.json`.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from common import RESULTS, write_table
from sklearn.datasets import make_friedman1

from nongauss import AutoRegressor
from nongauss.estimator import shapley

N_FITTED, MOST_ROWS, SHARE_MISSING, EXACT_ROWS = 500, 1000, 0.1, 8


def made(n_columns: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table with gaps and its target."""
    cells, y = make_friedman1(N_FITTED + MOST_ROWS, n_columns, noise=1.0, random_state=0)
    gaps = np.random.default_rng(0).random(cells.shape) < SHARE_MISSING
    return pd.DataFrame(cells).add_prefix("x").mask(gaps), y


def timed(model: Any, rows: pd.DataFrame) -> tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]:
    """Seconds and method of an explanation, and what the columns add to the mean, with errors."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, error = model.explain(rows, return_error=True)
    about = {"seconds": time.process_time() - begin, "method": found.attrs["method"]}
    return about, found["mean"].iloc[:, :-1], error["mean"].iloc[:, :-1]


def one(n_columns: int, sizes: list[int]) -> dict[str, Any]:
    """Explanations of one table by the number of rows, and the distance from all sets."""
    X, y = made(n_columns)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AutoRegressor(random_state=0).fit(X[:N_FITTED], y[:N_FITTED])
    out: dict[str, Any] = {"fit_seconds": time.process_time() - begin, "weights": model.weights_}
    rows = X[N_FITTED:]
    model.predict(rows[:50])
    for size in sizes:
        about, adds, error = timed(model, rows[:size])
        about["rms_error"] = float(np.sqrt((error.to_numpy() ** 2).mean()))
        about["rms_added"] = float(np.sqrt((adds.to_numpy() ** 2).mean()))
        out[str(size)] = about
    if n_columns <= EXACT_ROWS:
        most, shapley.MOST_PREDICTIONS = shapley.MOST_PREDICTIONS, 10**9
        about, exact, _ = timed(model, rows[:EXACT_ROWS])
        shapley.MOST_PREDICTIONS = most
        _, adds, _ = timed(model, rows[:EXACT_ROWS])
        about["rms_apart"] = float(np.sqrt(((adds - exact).to_numpy() ** 2).mean()))
        out["all sets"] = about
    return out


def table(known: dict[str, Any]) -> list[str]:
    """A row for each number of columns and rows."""
    lines = ["| columns | rows | CPU s | method | rms of what columns add | stated error | off all sets |"]
    lines.append("|---" * 7 + "|")
    for n_columns, found in known.items():
        off = found.get("all sets", {}).get("rms_apart")
        for size, about in found.items():
            if size in ("fit_seconds", "weights"):
                continue
            error, added = (f"{about[key]:.2f}" if key in about else "" for key in ("rms_error", "rms_added"))
            apart = f"{off:.2f}" if off is not None and size == str(EXACT_ROWS) else ""
            rows = f"{EXACT_ROWS}" if size == "all sets" else size
            cells = [n_columns, rows, f"{about['seconds']:.1f}", about["method"], added, error, apart]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--columns", nargs="+", type=int, default=[8, 20])
    options.add_argument("--rows", nargs="+", type=int, default=[8, MOST_ROWS])
    chosen = options.parse_args()
    path = RESULTS / "explain.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for n_columns in chosen.columns:
        if str(n_columns) not in known:
            known[str(n_columns)] = one(n_columns, chosen.rows)
            print(n_columns, known[str(n_columns)], flush=True)
            path.write_text(json.dumps(known, indent=1) + "\n")
    write_table("explain", table(known))


if __name__ == "__main__":
    main()
