"""Figure 2 of the TGGM paper: test RMSE against a fixed hidden variance, and with the variance learned.

    python benchmarks/tggm_variance.py --data FOLDER [--set concrete] [--splits 5]

Writes results/tggm_variance.json, results/tggm_variance.png and the table in benchmarks/README.md.
"""

from __future__ import annotations

import numpy as np
from common import RESULTS, load_splits, parser, with_error, write_results, write_table
from matplotlib.figure import Figure

from nongauss import TGGMRegressor

VARIANCES = (1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0, 10.0)
METHODS = {
    "bp": {"method": "bp"},
    "ml": {"method": "ml"},
    "ml, mean field": {"method": "ml", "posterior": "mean_field"},
}


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--set", default="concrete")
    options.add_argument("--splits", type=int, default=5)
    options.add_argument("--max-epochs", type=int, default=100)
    chosen = options.parse_args()
    X, y, splits = load_splits(chosen.data, chosen.set)
    rmse: dict[str, dict[str, list[float]]] = {}
    for label, method in METHODS.items():
        rmse[label] = {}
        for variance in (*VARIANCES, "learn"):
            rmse[label][str(variance)] = [
                one(X, y, split, hidden_variance=variance, max_epochs=chosen.max_epochs, **method)
                for split in splits[: chosen.splits]
            ]
        print(
            label, {key: round(float(np.mean(values)), 3) for key, values in rmse[label].items()}, flush=True
        )
    write_results("tggm_variance", {"set": chosen.set, "max_epochs": chosen.max_epochs, "rmse": rmse})
    write_table("tggm_variance", table(chosen.set, rmse))
    plot(chosen.set, rmse)


def one(X: np.ndarray, y: np.ndarray, split: tuple[np.ndarray, np.ndarray], **settings: object) -> float:
    """Test RMSE of one fit: one member, as in the paper, without an ensemble to smooth the difference."""
    train, test = split
    model = TGGMRegressor(n_members=1, random_state=0, **settings).fit(X[train], y[train])
    return float(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))


def table(name: str, rmse: dict[str, dict[str, list[float]]]) -> list[str]:
    """Rows: methods; columns: hidden variances."""
    keys = list(next(iter(rmse.values())))
    lines = [f"| {name}, one member | " + " | ".join(keys) + " |", "|---" * (len(keys) + 1) + "|"]
    for label, row in rmse.items():
        cells = (with_error(values, ".2f", ".2f") for values in row.values())
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return lines


def plot(name: str, rmse: dict[str, dict[str, list[float]]]) -> None:
    """The curves, with the learned variance as a dotted line."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for number, (label, row) in enumerate(rmse.items()):
        means = [np.mean(row[str(variance)]) for variance in VARIANCES]
        axes.plot(VARIANCES, means, "o-", color=f"C{number}", label=label)
        axes.axhline(np.mean(row["learn"]), color=f"C{number}", linestyle=":")
    axes.set(xscale="log", xlabel="fixed hidden variance (dotted: learned)", ylabel=f"test RMSE, {name}")
    axes.legend(frameon=False)
    figure.savefig(RESULTS / "tggm_variance.png", dpi=120)


if __name__ == "__main__":
    main()
