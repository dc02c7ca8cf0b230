"""Small tables with factors, and the records of a fit made from them."""

from __future__ import annotations

import numpy as np

from nongauss.rank_factor.config import RankConfig
from nongauss.rank_factor.data import CellCoding, CodedTable, RankRows, find_levels, neighbours_of
from nongauss.rank_factor.params import Normal, WeightedLabels
from nongauss.rank_factor.start import first_state


def table(n_rows: int = 60, n_columns: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Values X (N, D) that two factors make, distorted by column, and labels -1, 1 (N,)."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n_rows, 2))
    w = z @ rng.standard_normal((2, n_columns)) * 1.5 + 0.5 * rng.standard_normal((n_rows, n_columns))
    y = np.where(z[:, 0] + 0.5 * z[:, 1] > 0, 1.0, -1.0)
    return np.sinh(w) * np.arange(1, n_columns + 1), y


def ranked(X: np.ndarray, n_levels: int | None = 5) -> RankRows:
    """Training rows of the rank model."""
    levels = find_levels(X, np.ones(len(X)), n_levels)
    codes = levels.codes(X)
    return RankRows(neighbours_of(codes, levels.counts), None, codes)


def problem(n_levels: int | None = 5, n_rows: int = 60, **settings) -> tuple:
    """(state, rows, labels, config) before the first sweep; labels are there with n_outputs=1."""
    X, y = table(n_rows)
    rows = ranked(X, n_levels)
    config = RankConfig(2, **settings)
    labels = WeightedLabels(y[:, None] if config.n_outputs else np.zeros((n_rows, 0)), np.ones(n_rows))
    return first_state(np.random.default_rng(0), rows, labels, config), rows, labels, config


def coded(rows: RankRows, labels: WeightedLabels) -> CodedTable:
    """The rows of a problem as a fit takes them."""
    classes = (labels.y > 0).any(axis=1).astype(float)
    return CodedTable(CellCoding(None, ()), rows, classes, labels.weight, False, np.arange(len(classes)))


def random_normal(rng: np.random.Generator, *shape: int, width: float = 0.3) -> Normal:
    """Independent normals with full covariances; the last axis is K."""
    root = width * rng.standard_normal((*shape, shape[-1]))
    return Normal(rng.standard_normal(shape), root @ np.swapaxes(root, -1, -2) + 0.01 * np.eye(shape[-1]))


def second_differences(f, x: np.ndarray, h: float = 1e-3) -> tuple[np.ndarray, np.ndarray]:
    """Precision P and linear term b of a quadratic f(x) = b'x - x'Px / 2 + constant: (K, K), (K,)."""
    K = len(x)
    e = h * np.eye(K)
    P = np.array(
        [
            [
                -(f(e[i] + e[j]) - f(e[i] - e[j]) - f(e[j] - e[i]) + f(-e[i] - e[j])) / (4 * h * h)
                for j in range(K)
            ]
            for i in range(K)
        ]
    )
    b = np.array([(f(e[i]) - f(-e[i])) / (2 * h) for i in range(K)])
    return P, b
