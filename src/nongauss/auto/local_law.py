"""The local law of the residuals: what is left of a base law's shape, learned where the row lies.

Let m(x) and s(x) be mean and standard deviation of a base law and e_i = (y_i - m_i) / s_i the standardised
residuals of the training rows, each by the law that was left without its row. With w_i(x) the weights of a
forest on (x, m, s),

    p(y | x) = (1 - a) sum_i w_i(x) N(y; m(x) + s(x) e_i, s(x)^2 h(x)^2) + a p_base(y | x),

a mixture of Gaussians with the base's tails; a, the band h and the size of the leaves are those under which
rows are most probable by the trees that have not drawn them. The residuals, one for each training row, are
part of the model and of its file.
"""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nongauss.auto.forest import LeafForest, grow
from nongauss.core.records import persistable
from nongauss.predictive.combined import mixture
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution
from nongauss.predictive.mixture import GaussianMixtureDistribution

LEAVES = (3, 10, 30)
"""Fewest rows of a leaf that are tried."""

BANDS = (0.03, 0.05, 0.08, 0.12, 0.18, 0.27, 0.4, 0.65, 1.0)
"""Bands that are tried: in standard deviations of the base, or in those of the residuals about the row."""

SHARES = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
"""Shares of the base's own law that are tried. None is 0: its tails reach beyond all residuals."""

SMALLEST_SPREAD = 0.02
"""Least spread of the residuals about a row, in standard deviations of the base."""

LARGEST_RESIDUAL = 4.0
"""Residuals beyond are moved here for the forest that looks where they differ, not in the law."""


@persistable("auto.LocalLaw")
class LocalLaw(NamedTuple):
    """The forest, the residuals e (N,) and what was chosen for them.

    `is_relative`: is the band `band` times the spread of the residuals about the row? `base_share`: a.
    `with_base`: does the forest look at mean and deviation of the base beside the columns?
    """

    forest: LeafForest
    residuals: FloatArray
    band: float
    is_relative: bool
    base_share: float
    with_base: bool

    def law(self, X: FloatArray, base: PredictiveDistribution) -> PredictiveDistribution:
        """The law of y at encoded rows X (N, D) whose base law is `base`."""
        W = self.forest.weights(_inputs(X, base.mean, base.std, self.with_base))
        return self._mixed(W, base)

    def _mixed(self, W: csr_array, base: PredictiveDistribution) -> PredictiveDistribution:
        """The law from weights (N, n_rows)."""
        mean, sd = base.mean, base.std
        band = self.band * (_spread(W, self.residuals) if self.is_relative else np.ones(len(mean)))
        shares = [1.0 - self.base_share, self.base_share]
        return mixture([_kernels(W, self.residuals, mean, sd, band), base], shares)


class LocalFit(NamedTuple):
    """A local law, its law of each training row without that row, and the log densities there (N,)."""

    local: LocalLaw
    left_out: PredictiveDistribution
    log_density: FloatArray
    value: float


def fit_local(
    X: FloatArray,
    left_out: PredictiveDistribution,
    y: FloatArray,
    weight: FloatArray,
    seed: int,
    *,
    with_base: bool = True,
    n_jobs: int | None = None,
) -> LocalFit:
    """The local law on a base: encoded rows X (N, D) and the base's law of each row without it.

    `with_base` False: a constant base, which gives the forest's own conditional law of y.
    """
    mean, sd = left_out.mean, left_out.std
    residuals = (y - mean) / sd
    near = np.clip(residuals, -LARGEST_RESIDUAL, LARGEST_RESIDUAL)
    inputs = _inputs(X, _like_inputs(X, mean), _like_inputs(X, sd), with_base)
    base = np.exp(left_out.log_prob(y) + np.log(sd))
    best: LocalFit | None = None
    for leaf in LEAVES:
        if 2 * leaf > len(y) and best is not None:
            break
        forest, W = grow(inputs, np.column_stack([near, np.abs(near)]), weight, leaf, seed, n_jobs)
        density, (band, is_relative, share) = _chosen(W, residuals, base, weight)
        log_density = np.log(np.maximum(density, 1e-300)) - np.log(sd)
        value = float(weight @ log_density / weight.sum())
        if best is None or value > best.value:
            local = LocalLaw(forest, residuals, band, is_relative, share, with_base)
            best = LocalFit(local, local._mixed(W, left_out), log_density, value)
    assert best is not None
    return best


def _chosen(
    W: csr_array, residuals: FloatArray, base: FloatArray, weight: FloatArray
) -> tuple[FloatArray, tuple[float, bool, float]]:
    """The density of the residuals (N,) under the best of band, kind of band and share, and these.

    `W` (N, N): weights that no row has a part in; `base` (N,): the base's own density of the residual.
    """
    spread = _spread(W, residuals)
    unjudged = np.diff(W.indptr) == 0  # heavy rows, which every tree has drawn
    best_value, best, chosen = -math.inf, base, (1.0, False, SHARES[-1])
    for is_relative, band in product((False, True), BANDS):
        near = _density(W, residuals, band * (spread if is_relative else np.ones(len(spread))))
        near = np.where(unjudged, base, near)
        for share in SHARES:
            density = (1.0 - share) * near + share * base
            value = float(weight @ np.log(np.maximum(density, 1e-300)))
            if value > best_value:
                best_value, best, chosen = value, density, (band, is_relative, share)
    return best, chosen


def _density(W: csr_array, residuals: FloatArray, band: FloatArray) -> FloatArray:
    """sum_i w_ni N(e_n; e_i, h_n^2) at each training row: (N,)."""
    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    z = (residuals[row] - residuals[W.indices]) / band[row]
    terms = W.data * np.exp(-0.5 * z * z)
    total = np.bincount(row, weights=terms, minlength=W.shape[0])
    out: FloatArray = total / (math.sqrt(2.0 * math.pi) * band)
    return out


def _spread(W: csr_array, residuals: FloatArray) -> FloatArray:
    """The weighted standard deviation of the residuals about each row (N,), `SMALLEST_SPREAD` at least."""
    mean = W @ residuals
    variance = W @ residuals**2 - mean**2
    out: FloatArray = np.sqrt(np.maximum(variance, SMALLEST_SPREAD**2))
    return out


def _like_inputs(X: FloatArray, values: FloatArray) -> FloatArray:
    """Values (N,), averaged over rows with equal inputs X (N, D).

    What is said of a row without it tells its target where others have the same inputs: it is lower the
    higher that is. The average tells nothing but the inputs.
    """
    _, group = np.unique(X, axis=0, return_inverse=True)
    group = group.ravel()
    out: FloatArray = (np.bincount(group, values) / np.bincount(group))[group]
    return out


def _inputs(X: FloatArray, mean: FloatArray, sd: FloatArray, with_base: bool) -> FloatArray:
    """Inputs of the forest that finds alike rows: X (N, D), and beside it the base's mean and sd (N,)."""
    return np.column_stack([X, mean, sd]) if with_base else np.asarray(X)


def _kernels(
    W: csr_array, residuals: FloatArray, mean: FloatArray, sd: FloatArray, band: FloatArray
) -> GaussianMixtureDistribution:
    """sum_i w_i(x) N(m + s e_i, (s h)^2) of each row, with its exact moments.

    E = m + s sum_i w_i e_i and Var = s^2 (h^2 + sum_i w_i (e_i - sum_j w_j e_j)^2).
    """
    middle = W @ residuals
    scatter = np.maximum(W @ residuals**2 - middle**2, 0.0)
    width = int(np.diff(W.indptr).max(initial=1))

    def components(rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        own = W[rows]
        used = np.arange(width) < np.diff(own.indptr)[:, None]
        shares, centres = np.zeros(used.shape), np.zeros(used.shape)
        shares[used], centres[used] = own.data, residuals[own.indices]
        with np.errstate(divide="ignore"):
            logs = np.log(shares / shares.sum(axis=1, keepdims=True))
        at = mean[rows, None] + sd[rows, None] * centres
        sds = np.broadcast_to((sd * band)[rows, None], at.shape)
        return logs, at[:, :, None], sds[:, :, None]

    return GaussianMixtureDistribution(
        (mean + sd * middle)[:, None],
        (sd**2 * (band**2 + scatter))[:, None],
        components,
        squeeze=True,
        n_components=width,
    )
