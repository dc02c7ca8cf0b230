"""What distorting every column does: nothing to ranks, harm to values.

    python benchmarks/rank_distortion.py --data FOLDER

alon (logs), each column through exp(x / sd), 5 folds. Writes results/rank_distortion.json.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import load_table, parser, write_results, write_table
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from nongauss import RankFactorClassifier


def scores(X: np.ndarray, y: np.ndarray, observation: str) -> tuple[float, np.ndarray]:
    """Mean AUC over folds, and all decision values."""
    every, auc = np.empty(len(y)), []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model = RankFactorClassifier(observation=observation, random_state=0).fit(X[train], y[train])
        every[test] = model.decision_function(X[test])
        auc.append(roc_auc_score(y[test] == model.classes_[1], every[test]))
    return float(np.mean(auc)), every


def main() -> None:
    chosen = parser(__doc__.splitlines()[0]).parse_args()
    table, y = load_table(chosen.data, "alon")
    plain = np.log(table.to_numpy(float))
    distorted = np.exp(plain / plain.std(axis=0))
    lines = [
        "| model | AUC, logs | AUC, distorted | largest change of a decision value |",
        "|---|---|---|---|",
    ]
    results: dict[str, Any] = {}
    for observation in ("rank", "gaussian"):
        (before, f), (after, g) = (scores(X, y, observation) for X in (plain, distorted))
        change = float(np.abs(f - g).max())
        results[observation] = {"auc": before, "auc_distorted": after, "largest_change": change}
        lines.append(f"| {observation} | {before:.3f} | {after:.3f} | {change:.3g} |")
        print(lines[-1], flush=True)
    write_results("rank_distortion", results)
    write_table("rank_distortion", lines)


if __name__ == "__main__":
    main()
