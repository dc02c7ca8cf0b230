"""Thirteen small sets with two classes, 10-fold: log-loss and accuracy beside an MLP and a linear model.

    python benchmarks/tggm_binary.py --data FOLDER [--sets pima sonar] [--folds 10]

Folds are stratified, shuffled with seed 0. The peers get standardised columns, labels as 0/1 columns; the MLP
has the same 100 units and up to 2,000 epochs, until it converges. The TGGM gets the table as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from common import known_results, load_table, parser, with_error, write_results, write_table
from labels import one_fit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nongauss import TGGMClassifier

SETS = (
    "pima", "ionosphere", "sonar", "breast_wisconsin", "german", "banana", "titanic", "flare_solar",
    "breast_ljubljana", "image", "splice", "banknote", "mushroom",
)  # fmt: skip


def models() -> dict[str, Any]:
    """The columns of the table."""
    return {
        "ml": TGGMClassifier(random_state=0),
        "MLP": make_pipeline(StandardScaler(), MLPClassifier((100,), max_iter=2000, random_state=0)),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    }


def one_set(X: pd.DataFrame, target: np.ndarray, n_folds: int) -> dict[str, list[dict[str, float]]]:
    """The figures of every model and fold."""
    y = (target == np.unique(target)[-1]).astype(int)
    plain = pd.get_dummies(X).astype(float)
    rows: dict[str, list[dict[str, float]]] = {}
    for number, (train, test) in enumerate(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y)):
        if number == n_folds:
            break
        for name, model in models().items():
            table = X if name == "ml" else plain
            parts = [(table.iloc[part], y[part]) for part in (train, test)]
            rows.setdefault(name, []).append(one_fit(model, *parts))
    return rows


def table(sets: dict[str, dict[str, list[dict[str, float]]]]) -> list[str]:
    """The Markdown table, and in how many sets the log-loss is no worse than the MLP's."""
    names = list(models())
    lines = [
        "| set | folds | " + " | ".join(f"{name}: log-loss / accuracy %" for name in names) + " |",
        "|---|---|" + "---|" * len(names),
    ]
    wins = 0
    for key, rows in sets.items():
        cells, losses = [], []
        for name in names:
            values = [run["log_loss"] for run in rows[name]]
            losses.append(np.mean(values))
            accuracy = 100 * np.mean([run["accuracy"] for run in rows[name]])
            cells.append(f"{with_error(values, '.4f')} / {accuracy:.1f}")
        wins += losses[0] <= losses[1]
        lines.append(f"| {key} | {len(rows['ml'])} | " + " | ".join(cells) + " |")
    return [*lines, "", f"Log-loss of `ml` no worse than the MLP's on {wins} of {len(sets)} sets."]


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options.add_argument("--folds", type=int, default=10)
    chosen = options.parse_args()
    sets = known_results("tggm_binary").get("sets", {})
    for name in chosen.sets:
        sets[name] = one_set(*load_table(chosen.data, name), chosen.folds)
        write_results("tggm_binary", {"sets": sets})
        write_table("tggm_binary", table({key: sets[key] for key in SETS if key in sets}))
        print(table({name: sets[name]})[2], flush=True)


if __name__ == "__main__":
    main()
