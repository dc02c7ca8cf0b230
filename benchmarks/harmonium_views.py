"""Sets with several views (figures 3 and 4 of the paper): each alone, all of them, with labels or not.

    python benchmarks/harmonium_views.py --data FOLDER [--sets bbcsport ...] [--splits 10]

Half of the rows train, half test. Writes results/harmonium_views.json and the table.
"""

from __future__ import annotations

import json
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from common import RESULTS, mean_and_error, parser, random_splits, write_results, write_table
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
        "best view alone": alone[best],
        "all views": judged(whole, X[test], y[test]),
        "all, a view missing": judged(whole, gone, y[test]),
        "without that view": judged(without, others[test], y[test]),
        "features + SVM": judged(svm, features.transform(X[test]), y[test]),
        "raw SVM": judged(tuned_svm(X[train], y[train]), X[test], y[test]),
    }


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="+", choices=VIEWS, default=list(VIEWS))
    options.add_argument("--splits", type=int, default=10)
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    path = RESULTS / "harmonium_views.json"
    results = json.loads(path.read_text())["sets"] if path.exists() else {}
    for name in chosen.sets:
        parts, y = views(chosen.data, name)
        results[name] = []
        for seed, split in enumerate(random_splits(len(y), len(y) // 2, chosen.splits)):
            results[name].append(one_split(parts, y, *split, seed))
            print(name, {key: round(row["error"], 3) for key, row in results[name][-1].items()}, flush=True)
            write_results("harmonium_views", {"sets": results})
    lines = ["| set | splits | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---|" * len(COLUMNS)]
    for name, rows in results.items():
        cells = []
        for column in COLUMNS:
            error, spread = mean_and_error([row[column]["error"] for row in rows])
            f1 = np.mean([row[column]["f1"] for row in rows])
            cells.append(f"{error:.3f} ± {spread:.3f} ({f1:.3f})")
        lines.append(f"| {name} | {len(rows)} | " + " | ".join(cells) + " |")
    write_table("harmonium_views", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
