"""Table 1 of the TGGM paper on the published splits, one default configuration for all sets.

    python benchmarks/tggm_uci.py --data FOLDER [--sets boston yacht] [--splits 20] [--method ml]

Writes results/tggm_uci_METHOD.json after each split, and the table in benchmarks/README.md. Splits that are
there are not fitted again, so it can be run in pieces; --anew forgets those of the sets that are named. With
--checkpoints FOLDER a fit that is interrupted goes on from there; its seconds are then not measured.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from common import judged, known_results, load_splits, mean_and_error, parser, write_results, write_table

from nongauss import TGGMRegressor

# RMSE of TGGM-BP and TGGM-ML (Su et al. 2016, Table 1); log-likelihood of PBP (Hernandez-Lobato and Adams
# 2015) and of MC dropout (Gal and Ghahramani 2016). The spread of the better TGGM column as it is printed.
PUBLISHED = {
    "boston": {"bp": 2.927, "ml": 2.820, "spread": 0.2565, "pbp": -2.57, "dropout": -2.46},
    "concrete": {"bp": 5.657, "ml": 5.395, "spread": 0.2404, "pbp": -3.16, "dropout": -3.04},
    "energy": {"bp": 1.029, "ml": 1.244, "spread": 0.1206, "pbp": -2.04, "dropout": -1.99},
    "yacht": {"bp": 0.957, "ml": 0.841, "spread": 0.2028, "pbp": -1.63, "dropout": -1.55},
    "wine_red": {"bp": 0.640, "ml": 0.625, "spread": 0.0340, "pbp": -0.97, "dropout": -0.93},
    "power": {"bp": 3.949, "ml": 4.183, "spread": 0.1478, "pbp": -2.84, "dropout": -2.80},
    "kin8nm": {"bp": 0.088, "ml": 0.083, "spread": 0.0034, "pbp": 0.90, "dropout": 0.95},
    "naval": {"bp": 0.00057, "ml": 0.003, "spread": 0.0001, "pbp": 3.73, "dropout": 3.80},
    "protein": {"bp": 4.477, "ml": 4.431, "spread": 0.0292, "pbp": -2.97, "dropout": -2.89},
}


def one_split(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, **settings: Any) -> dict:
    """Fit on the training rows, judge on the test rows."""
    checkpoint = settings.get("checkpoint")
    is_whole = checkpoint is None or not Path(checkpoint).exists()
    started = time.perf_counter()
    model = TGGMRegressor(**settings).fit(X[train], y[train])
    fitted = time.perf_counter()
    figures = judged(model.predict_distribution(X[test]), y[test])
    return {
        **figures,
        "fit_seconds": fitted - started if is_whole else None,
        "predict_seconds": time.perf_counter() - fitted,
        "epochs": model.n_iter_,
        "skewness": model.ensemble_.skewness,
        "inflation": float(model.ensemble_.inflation[0]),
        "degrees": str(model.ensemble_.tails.degrees),
        "posterior": model.posterior_,
        "n_heads": model.n_heads_,
        "layers": list(model.hidden_layer_sizes_),
        "skip": model.skip_,
        "splines": list(model.spline_columns_),
    }


def spread_of(error: float) -> str:
    """The standard error as a cell shows it; nothing of a single split."""
    return "" if np.isnan(error) else f" ± {error:.2g}"


def table(sets: dict[str, list[dict]]) -> list[str]:
    """The Markdown table: paper, peers, ours."""
    lines = [
        "| set | splits | RMSE: paper bp / ml | RMSE: ours | log-lik.: PBP / MC dropout | log-lik.: ours "
        "| 90 % covers | fit s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, rows in sets.items():
        paper = PUBLISHED[name]
        rmse, rmse_error = mean_and_error([row["rmse"] for row in rows])
        density, density_error = mean_and_error([row["log_likelihood"] for row in rows])
        coverage = np.mean([row["coverage_90"] for row in rows])
        known = [row["fit_seconds"] for row in rows if row["fit_seconds"] is not None]
        seconds = f"{np.median(known):.1f}" if known else "–"
        lines.append(
            f"| {name} | {len(rows)} | {paper['bp']:.4g} / {paper['ml']:.4g} "
            f"| {rmse:.4g}{spread_of(rmse_error)} | {paper['pbp']} / {paper['dropout']} "
            f"| {density:.3f}{spread_of(density_error)} "
            f"| {100 * coverage:.1f} % | {seconds} |"
        )
    return lines


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    options.add_argument("--splits", type=int, default=20)
    options.add_argument("--method", choices=("ml", "bp"), default="ml")
    options.add_argument("--posterior", choices=("auto", "moments", "exact", "mean_field"), default="auto")
    options.add_argument("--layers", nargs="+", type=int, help="units of each hidden layer")
    options.add_argument("--preset", choices=("paper",))
    options.add_argument("--skip", choices=("linear", "auto"))
    options.add_argument("--anew", action="store_true")
    options.add_argument("--checkpoints", type=Path)
    chosen = options.parse_args()
    settings = {"method": chosen.method, "posterior": chosen.posterior, "preset": chosen.preset}
    settings |= {"skip": chosen.skip}
    if chosen.layers:
        settings["hidden_layer_sizes"] = tuple(chosen.layers)
    layers, skip = "-".join(map(str, chosen.layers or [])), chosen.skip and f"skip_{chosen.skip}"
    marks = (chosen.method, chosen.posterior, chosen.preset, layers, skip)
    name = "_".join(["tggm_uci", *(mark for mark in marks if mark and mark != "auto")])
    sets = known_results(f"{name}").get("sets", {})
    for data_set in chosen.sets:
        X, y, splits = load_splits(chosen.data, data_set)
        rows = [] if chosen.anew else sets.get(data_set, [])
        for number in range(len(rows), min(chosen.splits, len(splits))):
            place = chosen.checkpoints and chosen.checkpoints / f"{name}_{data_set}_{number}"
            rows.append(one_split(X, y, *splits[number], random_state=number, checkpoint=place, **settings))
            sets[data_set] = rows
            write_results(name, {"settings": settings, "sets": sets})
        lines = table({key: sets[key] for key in PUBLISHED if key in sets})
        write_table(name, lines)
        print(lines[-1] if len(lines) == 3 else "\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
