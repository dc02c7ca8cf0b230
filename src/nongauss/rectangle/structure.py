"""What clusters look like: Student's t or Gaussians for numbers, one distribution over levels for each
label column.

Missing cells are integrated out. Priors are part of the objective: an inverse Wishart for the scatter and a
Dirichlet for the levels, so that no cluster collapses and no iteration lowers the objective.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from nongauss.rectangle.data import FloatArray, RectangleRows
from nongauss.rectangle.params import ClusterStructure

FREEDOM = 4.0
"""Degrees of freedom of Student's t."""

LEVEL_COUNT = 0.5
"""Rows that the prior adds to each level of a label column."""

_BLOCK = 2**18  # numbers handled at once


def prior_variance(n_clusters: int, n_columns: int) -> float:
    """Variance that the prior expects within a cluster, as a share of the column's: K clusters of that size
    fill the volume of the rows (Fraley and Raftery, J. Classification 2007, section 4)."""
    return float(n_clusters ** (-2.0 / max(n_columns, 1)))


def prior_count(n_columns: int, kind: str) -> float:
    """Rows that the prior of the scatter is worth: twice the exponent of its determinant."""
    return 3.0 if kind == "diagonal" else n_columns + 2.0


def log_density(rows: RectangleRows, structure: ClusterStructure, kind: str) -> tuple[FloatArray, FloatArray]:
    """Log density of each row in each cluster, and its weight there in Student's t (else 1): (S, K, N)."""
    n_starts, K, _ = structure.mean.shape
    log_p = structure.log_levels @ rows.Y_levels.T
    log_p = log_p.reshape(n_starts, K, len(rows))
    t_weight = np.ones_like(log_p)
    for group, columns in rows.groups:
        P = len(columns)
        if not P:
            continue
        root, log_det = _root(structure.scatter[..., columns[:, None], columns])
        mean = structure.mean[..., columns]
        for part in _pieces(group, n_starts * K * P):
            z = root @ (rows.Y[part][:, columns].T - mean[..., None])
            distance = (z * z).sum(axis=-2)
            if kind == "student_t":
                log_p[..., part] += _log_t(distance, log_det, P)
                t_weight[..., part] = (FREEDOM + P) / (FREEDOM + distance)  # u = (nu+P)/(nu+d^2)
            else:
                log_p[..., part] -= 0.5 * (distance + log_det[..., None] + P * np.log(2 * np.pi))
    return log_p, t_weight


def update_structure(
    rows: RectangleRows, share: FloatArray, t_weight: FloatArray, former: ClusterStructure, kind: str
) -> ClusterStructure:
    """The parameters that maximise the expected log density plus log prior, given shares of rows (S, K, N).

    `share` holds the rows' own weights, `t_weight` those of Student's t. `former` is where cells that are
    missing take their expectations from.
    """
    S, K, P = former.mean.shape
    # m = sum r u E[y] / sum r u
    # Sigma = (sum r u (E[y]-m)(E[y]-m)' + sum r Cov[y_gone|y_seen] + v I) / (sum r + c), eq. 10 and the prior
    share_t = share * t_weight
    total = share_t.sum(axis=-1)
    first, second, spread = np.zeros((S, K, P)), np.zeros((S, K, P, P)), np.zeros((S, K, P, P))
    for group, columns in rows.groups:
        if not len(columns):
            spread += share[..., group].sum(axis=-1)[..., None, None] * former.scatter
            first += share_t[..., group].sum(axis=-1)[..., None] * former.mean
            second += share_t[..., group].sum(axis=-1)[..., None, None] * _outer(former.mean)
            continue
        for part in _pieces(group, S * K * P):
            values, rest = _filled(rows.Y[part], columns, former)
            weighted = values * share_t[..., part, None]
            first += weighted.sum(axis=-2)
            second += np.swapaxes(weighted, -1, -2) @ values
            spread += share[..., part].sum(axis=-1)[..., None, None] * rest
    mean = first / np.maximum(total, 1e-12)[..., None]
    scatter = second - total[..., None, None] * _outer(mean) + spread
    return ClusterStructure(mean, _regular(scatter, share.sum(axis=-1), kind), _levels(rows, share))


def log_prior(structure: ClusterStructure, kind: str) -> FloatArray:
    """Log prior density of each start, up to a constant: (S,)."""
    # -(c log|Sigma| + v tr Sigma^-1)/2 + LEVEL_COUNT sum log p
    K, P = structure.mean.shape[1:]
    value: FloatArray = LEVEL_COUNT * structure.log_levels.sum(axis=(1, 2))
    if P:
        root, log_det = _root(structure.scatter)
        each = -0.5 * (prior_count(P, kind) * log_det + prior_variance(K, P) * (root**2).sum(axis=(-1, -2)))
        value = value + (each.mean(axis=1) if kind == "shared" else each.sum(axis=1))
    return value


def _regular(scatter: FloatArray, total: FloatArray, kind: str) -> FloatArray:
    """Sums of squares (S, K, P, P) as scatter matrices, the prior included."""
    K, P = scatter.shape[1:3]
    count, own = prior_count(P, kind), prior_variance(K, P) * np.eye(P)
    if kind == "diagonal":
        scatter = scatter * np.eye(P)
    if kind == "shared":
        pooled = (scatter.sum(axis=1) + own) / (total.sum(axis=1) + count)[:, None, None]
        return np.broadcast_to(pooled[:, None], scatter.shape).copy()
    return (scatter + own) / (total + count)[..., None, None]


def _levels(rows: RectangleRows, share: FloatArray) -> FloatArray:
    """Log probabilities of the levels of each label column (S, K, Ly)."""
    counts = share @ rows.Y_levels + LEVEL_COUNT
    for offset, n in zip(rows.Y_labels.offsets, rows.Y_labels.n_levels, strict=True):
        block = counts[..., offset : offset + n]
        block /= block.sum(axis=-1, keepdims=True)
    return np.log(counts)


def _filled(Y: FloatArray, columns: np.ndarray, former: ClusterStructure) -> tuple[FloatArray, FloatArray]:
    """Rows with gaps at their conditional means (..., n, P), and what is uncertain of them (..., P, P)."""
    P = Y.shape[1]
    if len(columns) == P:
        return Y, np.zeros((P, P))
    gone = np.setdiff1d(np.arange(P), columns)
    # E[y_g|y_s] = m_g + S_gs S_ss^-1 (y_s - m_s);  Cov[y_g|y_s] = S_gg - S_gs S_ss^-1 S_sg
    present = former.scatter[..., columns[:, None], columns]
    across = former.scatter[..., gone[:, None], columns]
    gain = np.swapaxes(np.linalg.solve(present, np.swapaxes(across, -1, -2)), -1, -2)
    values = np.empty((*former.mean.shape[:2], len(Y), P))
    values[..., columns] = Y[:, columns]
    off = Y[:, columns] - former.mean[..., None, columns]
    values[..., gone] = former.mean[..., None, gone] + off @ np.swapaxes(gain, -1, -2)
    rest = np.zeros_like(former.scatter)
    rest[..., gone[:, None], gone] = former.scatter[..., gone[:, None], gone] - gain @ np.swapaxes(
        across, -1, -2
    )
    return values, rest


def _root(scatter: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Inverse of the Cholesky factor, and the log determinant."""
    factor = np.linalg.cholesky(scatter)
    log_det = 2.0 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    return np.linalg.inv(factor), log_det


def _log_t(distance: FloatArray, log_det: FloatArray, P: int) -> FloatArray:
    """Log density of Student's t in P dimensions at squared distances (..., N)."""
    half = 0.5 * (FREEDOM + P)
    constant = gammaln(half) - gammaln(0.5 * FREEDOM) - 0.5 * P * np.log(FREEDOM * np.pi)
    log_p: FloatArray = constant - 0.5 * log_det[..., None] - half * np.log1p(distance / FREEDOM)
    return log_p


def _outer(mean: FloatArray) -> FloatArray:
    return mean[..., :, None] * mean[..., None, :]


def _pieces(group: np.ndarray, numbers_a_row: int) -> list[np.ndarray]:
    """The rows in pieces whose temporary arrays stay small."""
    return np.array_split(group, -(-len(group) * max(numbers_a_row, 1) // _BLOCK)) if len(group) else []
