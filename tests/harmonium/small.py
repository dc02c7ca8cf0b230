"""Tiny harmoniums for tests: every state can be enumerated. And tables with known features."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from nongauss.harmonium.config import HarmoniumRecipe
from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.exponential_families import UnitBlock
from nongauss.harmonium.params import HarmoniumParams

BINARY = (UnitBlock("all", "binary", 0, 4),)
D, K = 4, 3


def states(n: int) -> np.ndarray:
    """All 2^n rows of zeros and ones."""
    return np.array(list(itertools.product([0.0, 1.0], repeat=n)))


def params(seed: int = 0, n_classes: int = 0, size: float = 1.0) -> HarmoniumParams:
    rng = np.random.default_rng(seed)
    return HarmoniumParams(
        size * rng.normal(size=(D, K)),
        0.5 * rng.normal(size=D),
        0.5 * rng.normal(size=K),
        np.ones(D),
        rng.normal(size=(n_classes, K)),
        np.zeros(n_classes),
    )


def log_z(p: HarmoniumParams, prior: np.ndarray) -> float:
    """log Z of the globally normalised binary model, by enumeration of x and z."""
    x, z = states(D), states(K)
    energy = (x @ p.visible_bias)[:, None] + (z @ (p.hidden_bias + prior))[None, :] + x @ p.weights @ z.T
    return float(np.logaddexp.reduce(energy.ravel()))


def table(n_features: int, n_rows: int, kind: str, seed: int = 0, n_columns: int = 60):
    """Columns made by features that each touch a fifth of them, and who has which: (X, Z)."""
    rng = np.random.default_rng(seed)
    W, width = np.zeros((n_columns, n_features)), n_columns // 5
    for k in range(n_features):
        touched = rng.choice(n_columns, width, replace=False)
        W[touched, k] = rng.choice([-1, 1], width) * rng.uniform(0.7, 1.3, width)
    Z = (rng.random((n_rows, n_features)) < rng.uniform(0.1, 0.4, n_features)).astype(float)
    if kind == "real":
        return Z @ W.T + 0.5 * rng.standard_normal((n_rows, n_columns)), Z
    chance = expit(rng.normal(-1, 0.5, n_columns) + 3 * Z @ W.T)
    return (rng.random((n_rows, n_columns)) < chance).astype(float), Z


def recipe(**changes) -> HarmoniumRecipe:
    base = HarmoniumRecipe(
        n_components=8,
        units="binary",
        method="cd",
        max_epochs=None,
        batch_size=64,
        has_sticks=False,
        alpha=1.0,
        stick_expectation="accurate",
        C=300.0,
        margin=1.0,
        dropout=None,
        validation_fraction=0.0,
        n_scores=0,
        seed=0,
    )
    return base._replace(**changes)


def rows_of(kind="binary", n_features=3, n_rows=250, labels=None, sparse=False):
    X, Z = table(n_features, n_rows, kind)
    X = X.astype(np.float32)
    layout = (UnitBlock("all", kind, 0, X.shape[1]),)
    return layout, VisibleRows(sp.csr_matrix(X) if sparse else X, None, np.ones(n_rows), labels), Z
