"""Tiny harmoniums for tests: every state can be enumerated. And tables with known features."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import expit

from nongauss.harmonium.params import Params
from nongauss.harmonium.units import Block

BINARY = (Block("all", "binary", 0, 4),)
D, K = 4, 3


def states(n: int) -> np.ndarray:
    """All 2^n rows of zeros and ones."""
    return np.array(list(itertools.product([0.0, 1.0], repeat=n)))


def params(seed: int = 0, n_classes: int = 0, size: float = 1.0) -> Params:
    rng = np.random.default_rng(seed)
    return Params(
        size * rng.normal(size=(D, K)),
        0.5 * rng.normal(size=D),
        0.5 * rng.normal(size=K),
        np.ones(D),
        rng.normal(size=(n_classes, K)),
        np.zeros(n_classes),
    )


def log_z(p: Params, prior: np.ndarray) -> float:
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
