"""The number of rank factors: right of ten draws, of made tables of 500 rows and 20 columns.

    python benchmarks/rank_factors_number.py [--shapes dense ...] [--numbers 1 ...]

Loadings are dense, half of them zero, or in blocks of columns with one factor each; columns go through exp,
the cube or nothing. "gaps": 15 % of the cells missing. "grades": each column cut into five. Beside the tests
of `n_factors="auto"` stands Horn's parallel analysis of the same normal scores. Writes
results/rank_factors_number.json.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import known_results, parser, write_results, write_table

from nongauss.rank_factor.factor_number import normal_scores, number_of_factors

N_ROWS, N_COLUMNS, N_DRAWS = 500, 20, 10
SHAPES = ("dense", "sparse", "blocks")
NUMBERS = (1, 2, 4, 8)


def made(shape: str, n_factors: int, seed: int) -> np.ndarray:
    """A table with loadings of a shape, its columns turned by increasing maps."""
    rng = np.random.default_rng(1000 + seed)
    z = rng.standard_normal((N_ROWS, n_factors))
    A = rng.standard_normal((N_COLUMNS, n_factors))
    if shape == "sparse":
        A *= rng.random(A.shape) < 0.5
    elif shape == "blocks":
        own = np.arange(N_COLUMNS)
        A = np.zeros(A.shape)
        A[own, own % n_factors] = 1.0 + 0.3 * rng.standard_normal(N_COLUMNS)
    X = z @ A.T + (0.7 if shape == "blocks" else 1.0) * rng.standard_normal((N_ROWS, N_COLUMNS))
    X[:, ::3], X[:, 1::3] = np.exp(X[:, ::3]), X[:, 1::3] ** 3
    return X


def with_gaps(X: np.ndarray, seed: int) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(X.shape) < 0.15, np.nan, X)


def in_grades(X: np.ndarray) -> np.ndarray:
    return (X[None] > np.quantile(X, [0.2, 0.4, 0.6, 0.8], axis=0)[:, None]).sum(axis=0).astype(float)


def found(X: np.ndarray) -> int:
    return number_of_factors(X, np.ones(len(X)), [1] * X.shape[1], 20, 0)


def parallel_analysis(X: np.ndarray, seed: int) -> int:
    """Eigenvalues of the scores' correlations above the 95 % points of those of shuffled columns."""
    scores = np.stack([normal_scores(column, np.ones(len(X))) for column in X.T], axis=1)
    rng = np.random.default_rng(seed)
    values = np.linalg.svd(scores, compute_uv=False)
    chance = [np.linalg.svd(rng.permuted(scores, axis=0), compute_uv=False) for _ in range(20)]
    return int(np.cumprod(values > np.quantile(chance, 0.95, axis=0)).sum())


def case(shape: str, number: int) -> dict[str, Any]:
    """What is found in ten tables of a shape with this number of factors."""
    tables = [made(shape, number, seed) for seed in range(N_DRAWS)]
    began = time.perf_counter()
    plain = [found(X) for X in tables]
    seconds = (time.perf_counter() - began) / N_DRAWS
    return {
        "found": plain,
        "gaps": [found(with_gaps(X, seed)) for seed, X in enumerate(tables)],
        "grades": [found(in_grades(X)) for X in tables],
        "parallel analysis": [parallel_analysis(X, seed) for seed, X in enumerate(tables)],
        "seconds": seconds,
    }


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--shapes", nargs="*", default=list(SHAPES))
    options.add_argument("--numbers", nargs="*", type=int, default=list(NUMBERS))
    chosen = options.parse_args()
    results: dict[str, Any] = known_results("rank_factors_number").get("found", {})
    for shape in chosen.shapes:
        for number in chosen.numbers:
            results[f"{shape}, {number}"] = case(shape, number)
            write_results("rank_factors_number", {"rows": N_ROWS, "columns": N_COLUMNS, "found": results})
    lines = [
        "| loadings | factors | right of 10 | with gaps | as grades | parallel analysis | seconds a table |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in results.items():
        shape, number = name.split(", ")
        right = [sum(k == int(number) for k in row[part]) for part in list(row)[:-1]]
        lines.append(f"| {shape} | {number} | " + " | ".join(map(str, right)) + f" | {row['seconds']:.2f} |")
    write_table("rank_factors_number", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
