"""Probabilities of five made classes by rank factors, a forest and logistic regression, 300 rows.

    python benchmarks/rank_classes.py

Ten columns from three factors with noise of sd 1/2, classes by a softmax of the factors; five tables, 2,000
new rows of each. Excess is the log-loss above that of the true probabilities, nats. Writes
results/rank_classes.json.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import write_results, write_table
from scipy.special import softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from nongauss import RankFactorClassifier

N_ROWS, N_NEW, N_COLUMNS, N_FACTORS, N_CLASSES, N_TABLES = 300, 2000, 10, 3, 5, 5
MODELS = {
    "rank, vb": lambda: RankFactorClassifier(random_state=0),
    "rank, predictive": lambda: RankFactorClassifier(inference="predictive", random_state=0),
    "forest": lambda: RandomForestClassifier(300, min_samples_leaf=3, random_state=0),
    "logistic regression": lambda: LogisticRegression(max_iter=1000),
}


def made(seed: int) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Training and new rows: columns, classes, true probabilities."""
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((N_FACTORS, N_COLUMNS))
    slopes = 1.5 * rng.standard_normal((N_FACTORS, N_CLASSES))

    def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        z = rng.standard_normal((n, N_FACTORS))
        X = z @ loadings + 0.5 * rng.standard_normal((n, N_COLUMNS))
        p = softmax(z @ slopes, axis=1)
        y = np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), N_CLASSES - 1)
        return X, y, p

    return draw(N_ROWS, rng), draw(N_NEW, np.random.default_rng(seed + 100))


def judged(model: Any, seed: int) -> dict[str, float]:
    (X, y, _), (new, labels, true) = made(seed)
    began = time.process_time()
    p = model.fit(X, y).predict_proba(new)
    rows = np.arange(N_NEW)
    excess = np.log(true[rows, labels]).mean() - np.log(np.maximum(p[rows, labels], 1e-6)).mean()
    right = float((p.argmax(axis=1) == labels).mean())
    return {"excess": float(excess), "accuracy": right, "cpu_seconds": time.process_time() - began}


def main() -> None:
    results: dict[str, list[dict[str, float]]] = {}
    lines = ["| model | excess | of each table | accuracy | CPU s |", "|---|---|---|---|---|"]
    for name, make in MODELS.items():
        rows = results[name] = [judged(make(), seed) for seed in range(N_TABLES)]
        mean = {key: np.mean([row[key] for row in rows]) for key in rows[0]}
        each = ", ".join(f"{row['excess']:.2f}" for row in rows)
        lines.append(
            f"| {name} | {mean['excess']:.3f} | {each} | {mean['accuracy']:.3f} | {mean['cpu_seconds']:.1f} |"
        )
        print(lines[-1], flush=True)
        write_results("rank_classes", results)
    write_table("rank_classes", lines)


if __name__ == "__main__":
    main()
