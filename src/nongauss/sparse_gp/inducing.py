"""Where the inducing inputs start: k-means++ on the distinct rows."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import kmeans_plusplus

from nongauss.sparse_gp.kernels.algebra import FloatArray

MOST_ROWS = 20_000
"""Rows that are looked at: the centres of more would be the same, at a higher price."""


def inducing_inputs(X: FloatArray, n_inducing: int, seed: int) -> FloatArray:
    """At most `n_inducing` distinct rows of X (N, D), far from one another; all of them if they are few."""
    if len(X) > MOST_ROWS:
        X = X[np.random.default_rng(seed).choice(len(X), MOST_ROWS, replace=False)]
    distinct = np.unique(X, axis=0)
    if len(distinct) <= n_inducing:
        return distinct
    centres, _ = kmeans_plusplus(distinct, n_inducing, random_state=seed, n_local_trials=2)
    return np.unique(centres, axis=0)


def are_all_rows(Z: FloatArray, X: FloatArray) -> bool:
    """Are inducing inputs Z, which are distinct rows of X, all the distinct rows there are?"""
    first = len(np.unique(X[:MOST_ROWS], axis=0))
    return first <= len(Z) and len(Z) == (first if len(X) <= MOST_ROWS else len(np.unique(X, axis=0)))
