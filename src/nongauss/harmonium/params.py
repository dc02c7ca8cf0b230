"""What is estimated: weights between the layers, biases, scales of real columns, votes of the classes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from nongauss.core.records import persistable
from nongauss.harmonium.exponential_families import Array, Layout, totals_of

SHARE = 1e-4
"""Shares of ones closer to 0 or 1 than this count as this when biases start."""


@persistable("harmonium.Params", "nongauss.harmonium.params:Params")
class Params(NamedTuple):
    """Weights W (D, K), biases eta (D,) and beta (K,), scale (D,), votes (C, K), intercept (C,).

    `scale` multiplies encoded real columns so that their noise has variance 1; it is 1 for the others, and
    for all in the globally normalised model, where the noise has the variance of the column. Without classes
    C is 0.
    """

    weights: Array
    visible_bias: Array
    hidden_bias: Array
    scale: Array
    votes: Array
    intercept: Array

    @property
    def n_components(self) -> int:
        """Number K of hidden units."""
        return int(self.weights.shape[1])

    def keep(self, units: Array) -> Params:
        """Only these hidden units."""
        return self._replace(
            weights=self.weights[:, units],
            hidden_bias=self.hidden_bias[units],
            votes=self.votes[:, units],
        )


@persistable("harmonium.Prior", "nongauss.harmonium.params:Prior")
class Prior(NamedTuple):
    """Prior log odds of each hidden unit to be on, (K,), and gamma (K, 2) of the sticks, if there are any."""

    log_odds: Array
    gamma: Array


class Rows(NamedTuple):
    """X (N, D) float32, dense or CSR; missing (N, D) or None; weight (N,); label numbers (N,) or None."""

    X: Any
    missing: Array | None
    weight: Array
    labels: Array | None

    def take(self, chosen: Array) -> Rows:
        """Some of the rows."""
        return Rows(
            self.X[chosen],
            None if self.missing is None else self.missing[chosen],
            self.weight[chosen],
            None if self.labels is None else self.labels[chosen],
        )


def column_means(rows: Rows) -> Array:
    """Weighted mean of the cells that are present in each column, (D,)."""
    weight = rows.weight / rows.weight.mean()
    total = np.asarray(rows.X.T @ weight, dtype=np.float64).reshape(-1)
    present = weight.sum() if rows.missing is None else (~rows.missing).T @ weight
    return total / np.maximum(present, 1e-12)


def column_spreads(rows: Rows) -> Array:
    """Standard deviation of each visible unit over the cells that are present, (D,)."""
    X, share = rows.X, rows.weight / rows.weight.sum()
    squared = X.multiply(X) if hasattr(X, "multiply") else X * X
    present = 1.0 if rows.missing is None else np.maximum((~rows.missing).T @ share, 1e-12)
    mean = np.asarray(X.T @ share).reshape(-1) / present
    return np.sqrt(np.maximum(np.asarray(squared.T @ share).reshape(-1) / present - mean * mean, 0.0))


def usual_totals(layout: Layout, rows: Rows) -> Array:
    """What the counts of a row without gaps sum to in each block of counts, on average."""
    return totals_of(layout, column_means(rows)[None])[0]


def start_biases(layout: Layout, rows: Rows) -> Array:
    """Visible biases at which the model without hidden units has the means of the data: (D,)."""
    means = column_means(rows)
    out = means.copy()
    for block in layout:
        part = means[block.place]
        if block.kind == "binary":
            out[block.place] = logit(np.clip(part, SHARE, 1 - SHARE))
        elif block.kind == "counts":
            out[block.place] = np.log(np.maximum(part, SHARE * max(float(part.sum()), SHARE) / len(part)))
    return out


def activity(rows: Rows) -> float:
    """Mean over rows of the sum of squares of a row: how strongly a unit with weights of size 1 is driven."""
    X = rows.X
    squares = (
        np.asarray(X.multiply(X).sum(axis=1)).reshape(-1) if hasattr(X, "multiply") else (X * X).sum(axis=1)
    )
    return max(float(np.average(squares, weights=rows.weight)), 1.0)


def start(
    rng: np.random.Generator,
    layout: Layout,
    rows: Rows,
    n_components: int,
    drive: float,
    hidden_bias: float,
    n_classes: int,
) -> Params:
    """Weights are normal, so that the drive of a hidden unit starts with standard deviation `drive`."""
    D = rows.X.shape[1]
    weights = rng.standard_normal((D, n_components)) * (drive / np.sqrt(activity(rows)))
    return Params(
        weights.astype(np.float32),
        start_biases(layout, rows).astype(np.float32),
        np.full(n_components, hidden_bias, np.float32),
        np.ones(D, np.float32),
        np.zeros((n_classes, n_components), np.float32),
        np.zeros(n_classes, np.float32),
    )
