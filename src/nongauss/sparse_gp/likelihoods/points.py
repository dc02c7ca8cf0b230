"""Expectations under a normal by points, for any function of f whose width is known: as fine as it is sharp.

Gauss-Hermite points where the latent normal is narrower than the function, else the trapezoid rule, which
converges geometrically. With z the standardised latent value and l the function,

    dE[l]/dm = E[l z] / sd,    dE[l]/dv = E[l (z^2 - 1)] / (2 v)           (Stein's lemma)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product

import numpy as np

from nongauss.predictive.law import normal_points
from nongauss.prob.quadrature import gauss_hermite
from nongauss.sparse_gp.likelihoods.base import Expectation, FloatArray, IntArray

_NARROW, _N_NARROW = 0.5, 16
"""Latent sd, in widths of the function, up to which so many Gauss-Hermite points will do."""

_STEP, _MOST = 0.6, 1025
"""Of the trapezoid rule: a step, in widths of the function, and the most points."""

_N_OTHER = 20
"""Gauss-Hermite points of latent functions but the first."""

_BLOCK_NUMBERS = 2_000_000
_SMALLEST_SD = 3e-4  # over which differences of log P still stand out of rounding
_PSI_STEP = 1e-4  # of differences by the parameters

LogProb = Callable[[IntArray, FloatArray, FloatArray], FloatArray]
"""l(rows (n,), f (n, Q, L), psi): (n, Q)."""


def expected_by_points(
    log_prob: LogProb,
    sharpness: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    mean: FloatArray,
    variance: FloatArray,
    psi: FloatArray,
    with_params: bool,
    narrowest: float = _SMALLEST_SD,
) -> Expectation:
    """E l(f) for f ~ N(mean, variance) (N, L), with its derivatives; those by psi are differences.

    `sharpness` (mean, sd, psi): one over the width of l, (N,), as of `Likelihood.sharpness`. `narrowest`: the
    sd over which differences of l still stand out of rounding.
    """
    sd = np.maximum(np.sqrt(variance), narrowest)
    n_params = len(psi) if with_params else 0
    shapes = ((), mean.shape[1:], mean.shape[1:], (n_params,))
    out = Expectation(*(np.empty((len(mean), *shape)) for shape in shapes))
    extra = sd**2 - variance  # that a narrow normal is given, and taken back from the value
    for rows, z, weights in points_by_width(sd[:, 0] * sharpness(mean, sd, psi), mean.shape[1]):
        f = mean[rows, None, :] + sd[rows, None, :] * z
        values = log_prob(rows, f, psi)
        middle = values @ weights
        values = values - middle[:, None]  # less their middle, so that nothing cancels
        out.d_mean[rows] = values @ (weights[:, None] * z) / sd[rows]
        out.d_variance[rows] = values @ (weights[:, None] * (z**2 - 1.0)) / (2.0 * sd[rows] ** 2)
        out.value[rows] = middle - (extra[rows] * out.d_variance[rows]).sum(axis=1)
        for k, unit in enumerate(np.eye(len(psi))[:n_params]):
            sides = [log_prob(rows, f, psi + step * unit) for step in (_PSI_STEP, -_PSI_STEP)]
            out.d_params[rows, k] = (sides[0] - sides[1]) @ weights / (2.0 * _PSI_STEP)
    return out


def points_by_width(ratio: FloatArray, n_latent: int) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Rows that need equally many points, with these points (Q, L) and weights (Q,) of a standard normal.

    `ratio` (N,): the sd of the first latent value, in widths of the function that is integrated.
    """
    sizes = 2.0 ** np.ceil(np.log2(np.clip(18.0 * ratio / _STEP, 32, _MOST - 1))) + 1
    sizes[ratio <= _NARROW] = _N_NARROW
    for size in map(int, np.unique(sizes)):
        z, weights = _rule(size, n_latent)
        rows = np.flatnonzero(sizes == size)
        height = max(1, _BLOCK_NUMBERS // len(weights))
        for start in range(0, len(rows), height):
            yield rows[start : start + height], z, weights


@lru_cache(maxsize=32)
def _rule(size: int, n_latent: int) -> tuple[FloatArray, FloatArray]:
    """Points (Q, L) and weights (Q,) with `size` points of the first latent value, which nobody changes."""
    z, weights = gauss_hermite(size) if size == _N_NARROW else normal_points(size)
    weights = weights if size == _N_NARROW else np.exp(weights)
    z, weights = _grid(z, weights, n_latent - 1) if n_latent > 1 else (z[:, None], weights)
    z.flags.writeable = weights.flags.writeable = False
    return z, weights


def _grid(z: FloatArray, weights: FloatArray, n_others: int) -> tuple[FloatArray, FloatArray]:
    """A rule for the first latent value times Gauss-Hermite rules for the others: (Q, L) and (Q,)."""
    others, share = gauss_hermite(_N_OTHER)
    places = np.array(list(product(range(len(z)), *[range(_N_OTHER)] * n_others)))
    points = np.concatenate([z[places[:, :1]], others[places[:, 1:]]], axis=1)
    return points, weights[places[:, 0]] * share[places[:, 1:]].prod(axis=1)
