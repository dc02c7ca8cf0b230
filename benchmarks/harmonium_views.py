"""Sets with several views (figures 3 and 4 of the paper): each alone, all of them, with labels or not.

    python benchmarks/harmonium_views.py --data FOLDER [--sets bbcsport ...] [--splits 10]

Half of the rows train, half test. Writes results/harmonium_views.json and the table.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from common import known_results, parser, random_splits, with_error, write_results, write_table
from harmonium_common import VIEWS, tuned_svm, views
from sklearn.metrics import f1_score

from nongauss import Harmonium, HarmoniumClassifier

COLUMNS = [
    "best view alone",
    "all views",
    "all, a view missing",
    "without that view",
    "features + SVM",
    "raw SVM",
]


def placed(parts: list[np.ndarray]) -> tuple[np.ndarray, dict[str, slice]]:
    """Views side by side, and where each is."""
    ends = np.cumsum([0, *(part.shape[1] for part in parts)])
    where = {f"v{i}": slice(int(a), int(b)) for i, (a, b) in enumerate(pairwise(ends))}
    return np.hstack(parts), where


def judged(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    predicted = model.predict(X)
    return {"error": float(np.mean(predicted != y)), "f1": float(f1_score(y, predicted, average="macro"))}


def one_split(parts: list[np.ndarray], y: np.ndarray, train: np.ndarray, test: np.ndarray, seed: int) -> dict:
    """Errors of one split."""
    X, where = placed(parts)
    make = lambda **more: HarmoniumClassifier(50, random_state=seed, **more)  # noqa: E731
    whole = make(views=where).fit(X[train], y[train])
    alone = [judged(make().fit(part[train], y[train]), part[test], y[test]) for part in parts]
    best = int(np.argmin([row["error"] for row in alone]))
    gone = X[test].copy()
    gone[np.random.default_rng(seed).random(len(test)) < 0.5, where[f"v{best}"]] = np.nan
    others, kept = placed([part for i, part in enumerate(parts) if i != best])
    features = Harmonium(50, views=where, random_state=seed).fit(X[train])
    svm = tuned_svm(features.transform(X[train]), y[train])
    without = make(views=kept).fit(others[train], y[train])
    return {
        **{f"v{i}": row for i, row in enumerate(alone)},
        "all views": judged(whole, X[test], y[test]),
        "all, a view missing": judged(whole, gone, y[test]),
        "without that view": judged(without, others[test], y[test]),
        "features + SVM": judged(svm, features.transform(X[test]), y[test]),
        "raw SVM": judged(tuned_svm(X[train], y[train]), X[test], y[test]),
    }


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="*", choices=VIEWS, default=list(VIEWS))
    options.add_argument("--splits", type=int, default=10)
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    results = known_results("harmonium_views").get("sets", {})
    for name in chosen.sets:
        parts, y = views(chosen.data, name)
        results[name] = []
        for seed, split in enumerate(random_splits(len(y), len(y) // 2, chosen.splits)):
            results[name].append(one_split(parts, y, *split, seed))
            print(name, {key: round(row["error"], 3) for key, row in results[name][-1].items()}, flush=True)
            write_results("harmonium_views", {"sets": results})
    write_table("harmonium_views", [*errors(results), "", *differences(results)])


def best_alone(rows: list[dict]) -> str:
    """The view that alone has the least mean error over the splits."""
    return min((key for key in rows[0] if key.startswith("v")), key=lambda key: mean_of(rows, key))


def mean_of(rows: list[dict], column: str, figure: str = "error") -> float:
    return float(np.mean([row[column][figure] for row in rows]))


def errors(results: dict[str, list[dict]]) -> list[str]:
    """The table of errors, and of the macro F1 in brackets."""
    lines = ["| set | splits | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---|" * len(COLUMNS)]
    for name, rows in results.items():
        cells = []
        for column in COLUMNS:
            key = best_alone(rows) if column == COLUMNS[0] else column
            error = with_error([row[key]["error"] for row in rows], ".3f", ".3f")
            cells.append(f"{error} ({mean_of(rows, key, 'f1'):.3f})")
        lines.append(f"| {name} | {len(rows)} | " + " | ".join(cells) + " |")
    return lines


def differences(results: dict[str, list[dict]]) -> list[str]:
    """Paired over the splits: what all views gain, what labels gain, what a missing view costs."""
    lines = [
        "| set | all views less best alone | with labels less features + SVM | cost of gaps / of dropping |",
        "|---|---|---|---|",
    ]
    for name, rows in results.items():
        cells = []
        for other in (best_alone(rows), "features + SVM"):
            gaps = [row["all views"]["error"] - row[other]["error"] for row in rows]
            cells.append(with_error(gaps, "+.3f", ".3f"))
        whole = mean_of(rows, "all views")
        costs = [mean_of(rows, column) - whole for column in ("all, a view missing", "without that view")]
        cells.append(f"{costs[0]:+.3f} / {costs[1]:+.3f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    main()
