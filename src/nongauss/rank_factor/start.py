"""Where a fit begins: principal components of the mid-ranks, or of the values."""

from __future__ import annotations

import numpy as np

from nongauss.rank_factor import rank_likelihood as cells
from nongauss.rank_factor import shrinkage
from nongauss.rank_factor import svm_mixture as experts
from nongauss.rank_factor.levels import NONE
from nongauss.rank_factor.params import Config, FloatArray, Normal
from nongauss.rank_factor.rank_likelihood import Rows
from nongauss.rank_factor.updates import Labels, State, extreme_scale, level_scale

SPREAD_Z, SPREAD_A = 0.1, 0.01
"""First variances of factors and loadings."""


def start(rng: np.random.Generator, rows: Rows, labels: Labels, config: Config) -> State:
    """The state before the first sweep."""
    table = standard(rows, labels.weight)
    factors, loadings = components(rng, table, labels.weight, config.n_factors)
    K = config.n_factors
    z = Normal(factors, np.tile(SPREAD_Z * np.eye(K), (len(factors), 1, 1)))
    A = Normal(loadings, np.tile(SPREAD_A * np.eye(K), (len(loadings), 1, 1)))
    heads = experts.start(config)
    if config.n_experts > 1:
        heads = heads._replace(gate=experts.first_gate(rng, z, labels.weight, config.n_experts))
    return State(A, shrinkage.start(loadings.shape), z, _first_scale(A, z, rows, labels, config), heads)


def _first_scale(A: Normal, z: Normal, rows: Rows, labels: Labels, config: Config) -> cells.Scale:
    if rows.codes is None:
        empty = np.zeros((len(A.mean), 0))
        return cells.Scale(empty, empty, np.full(len(A.mean), 0.5))
    n_levels = int(rows.codes[rows.codes != NONE].max(initial=0)) + 1
    if config.neighbours == "extremes":
        return extreme_scale(A, z, rows, n_levels)
    one = labels.weight[:, None] * np.append(z.mean, np.ones((len(z.mean), 1)), axis=1)
    sums = np.stack([(rows.codes == level).T @ one for level in range(n_levels)], axis=1)
    return level_scale(A, sums[..., :-1] / np.maximum(sums[..., -1:], 1e-12))


def standard(rows: Rows, weight: FloatArray) -> FloatArray:
    """Standardised mid-ranks of the levels, or values, with 0 where missing: (N, D)."""
    if rows.codes is None:
        assert rows.values is not None
        return np.nan_to_num(rows.values)
    out = np.empty(rows.codes.shape)
    for i, column in enumerate(rows.codes.T):
        present = column != NONE
        mass = np.bincount(column[present], weights=weight[present])
        middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum() - 0.5
        spread = np.sqrt((mass @ middle**2) / mass.sum() - ((mass @ middle) / mass.sum()) ** 2)
        out[:, i] = np.append(middle - (mass @ middle) / mass.sum(), 0.0)[
            np.where(present, column, len(middle))
        ] / max(spread, 1e-12)
    return out


def components(
    rng: np.random.Generator, table: FloatArray, weight: FloatArray, n_factors: int
) -> tuple[FloatArray, FloatArray]:
    """Factors (N, K) of mean square 1 and loadings (D, K), by subspace iteration; noise beyond the rank."""
    root = np.sqrt(weight / weight.sum())[:, None]
    X = table * root
    size = min(n_factors + 10, *X.shape)
    basis = np.linalg.qr(X.T @ (X @ rng.standard_normal((X.shape[1], size))))[0]
    for _ in range(6):
        basis = np.linalg.qr(X.T @ (X @ basis))[0]
    u, s, vt = np.linalg.svd(X @ basis, full_matrices=False)
    kept = min(n_factors, int((s > 1e-8 * max(s[0], 1e-12)).sum()))
    factors = rng.standard_normal((len(X), n_factors))
    loadings = 0.01 * rng.standard_normal((X.shape[1], n_factors))
    loadings[:, :kept] = basis @ vt[:kept].T * s[:kept]
    sign = np.sign(loadings[np.abs(loadings[:, :kept]).argmax(axis=0), np.arange(kept)])
    factors[:, :kept] = u[:, :kept] / root
    loadings[:, :kept] *= sign
    factors[:, :kept] *= sign
    return factors, loadings
