"""The expected log softmax under independent normals: quasi-Monte Carlo, and bounds with their derivatives.

Every function of `SOFTMAX` takes class numbers y, mean and variance, and gives E[log p(y | f)] or a lower
bound of it, and the derivatives by mean and variance, on the host in float64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64, Int
from scipy.special import logsumexp, softmax

from nongauss.prob.logistic import expected_log1pexp
from nongauss.prob.quadrature import quasi_normal

Classes = Int[np.ndarray, " N"]
Latent = Float64[np.ndarray, "N C"]
Expected = tuple[Float64[np.ndarray, " N"], Latent, Latent]
"""A value and its derivatives by the means and by the variances."""

N_DRAWS = 32
"""Quasi-random draws of `monte_carlo`."""

N_FINE = 512
"""Quasi-random draws of `expected_softmax`."""

_TILTED_STEPS, _TILTED_HALVINGS, _TILTED_CLOSE = 40, 12, 1e-10
"""Newton steps of the tilted bound, halvings of each, and the change of a below which it has its best."""

_BLOCK_NUMBERS = 200_000
_SMALLEST = 1e-300
_SAFE = 600.0  # of exponents, above the logarithm of the smallest double


def monte_carlo(y: Classes, mean: Latent, variance: Latent) -> Expected:
    """The mean over the same quasi-random draws for every row; no bound.

    With p = softmax(f): derivatives [c = y] - E p_c by the means and E(p_c^2 - p_c) / 2 by the variances
    (theorems of Bonnet and Price).
    """
    points = np.ascontiguousarray(quasi_normal(N_DRAWS, mean.shape[1]).T)
    farthest = np.abs(points).max()
    value, by_mean, by_variance = np.empty(len(y)), np.empty_like(mean), np.empty_like(mean)
    for rows in _blocks(len(y), points.size):
        sd, m = np.sqrt(variance[rows]), mean[rows]
        top = (m + sd * farthest).max(axis=1)
        f = sd[:, :, None] * points
        if (top - (m - sd * farthest).max(axis=1)).max() < _SAFE:
            f += (m - top[:, None])[:, :, None]  # no draw is above 0, and one class of each above -_SAFE
            highest = top[:, None]
        else:
            f += m[:, :, None]
            highest = f.max(axis=1)
            f -= highest[:, None]
        np.exp(f, out=f)
        total = f.sum(axis=1)
        value[rows] = -(highest + np.log(total)).mean(axis=1)
        f /= total[:, None]
        by_mean[rows] = -f.mean(axis=2)
        by_variance[rows] = 0.5 * (by_mean[rows] + np.einsum("ncs,ncs->nc", f, f) / f.shape[2])
    return _with_class(y, mean, value, by_mean, by_variance)


def jensen(y: Classes, mean: Latent, variance: Latent) -> Expected:
    """E log sum e^f <= log sum e^{m + v/2} (Blei and Lafferty 2007 at their optimal zeta)."""
    top = mean + 0.5 * variance
    share = softmax(top, axis=1)
    return _with_class(y, mean, -logsumexp(top, axis=1), -share, -0.5 * share)


def tilted(y: Classes, mean: Latent, variance: Latent) -> Expected:
    """sum a^2 v / 2 + log sum e^{m + (1 - 2 a) v / 2} at the best a (Knowles and Minka 2011).

    Convex in a; by Newton steps. With p = softmax(m + (1/2 - a) v) the gradient is v (a - p) and the Hessian
    diag(v) + diag(v) (diag(p) - p p') diag(v), so that a step d solves (1 + p v) d - p sum(p v d) = p - a.
    """

    def bound(a: Latent) -> Float64[np.ndarray, " N"]:
        out: Float64[np.ndarray, " N"] = logsumexp(mean + (0.5 - a) * variance, axis=1)
        out += 0.5 * (a * a * variance).sum(axis=1)
        return out

    a = softmax(mean, axis=1)
    value = bound(a)
    for _ in range(_TILTED_STEPS):
        p = softmax(mean + (0.5 - a) * variance, axis=1)
        rest = p - a
        curve = 1.0 + p * variance
        along = (p * variance * rest / curve).sum(axis=1) / (p / curve).sum(axis=1)
        step = (rest + p * along[:, None]) / curve
        size = np.ones(len(a))
        for _ in range(_TILTED_HALVINGS):
            trial = bound(a + size[:, None] * step)
            worse = trial > value
            if not worse.any():
                break
            size[worse] *= 0.5
        size[bound(a + size[:, None] * step) > value] = 0.0
        a = a + size[:, None] * step
        value = bound(a)
        if np.abs(size[:, None] * step).max(initial=0.0) < _TILTED_CLOSE:
            break
    share = softmax(mean + (0.5 - a) * variance, axis=1)
    return _with_class(y, mean, -value, -share, -(0.5 * a * a + share * (0.5 - a)))


def bouchard(y: Classes, mean: Latent, variance: Latent) -> Expected:
    """alpha + sum E log(1 + e^{f - alpha}) at the best alpha, by safe Newton steps (Bouchard 2007)."""
    low, high = mean.min(axis=1) - 40.0, logsumexp(mean + 0.5 * np.minimum(variance, 80.0), axis=1) + 5.0
    alpha = np.clip(logsumexp(mean, axis=1), low, high)
    for _ in range(40):
        _, share, curve = expected_log1pexp(mean - alpha[:, None], variance)
        slope = 1.0 - share.sum(axis=1)
        low, high = np.where(slope < 0, alpha, low), np.where(slope < 0, high, alpha)
        step = alpha - slope / np.maximum(2.0 * curve.sum(axis=1), 1e-12)
        new = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
        if np.abs(new - alpha).max(initial=0.0) < 1e-12:
            break
        alpha = new
    value, share, curve = expected_log1pexp(mean - alpha[:, None], variance)
    return _with_class(y, mean, -alpha - value.sum(axis=1), -share, -curve)


def bohning(y: Classes, mean: Latent, variance: Latent) -> Expected:
    """log sum e^m + sum A_cc v_c / 2, A the constant matrix that bounds every Hessian (Bohning 1992)."""
    curve = 0.25 * (1.0 - 1.0 / mean.shape[1])
    value = -logsumexp(mean, axis=1) - curve * variance.sum(axis=1)
    return _with_class(y, mean, value, -softmax(mean, axis=1), np.full_like(mean, -curve))


def one_vs_each(y: Classes, mean: Latent, variance: Latent) -> Expected:
    """-sum over other classes of E log(1 + e^{f_c - f_y}) (Titsias 2016); exact for two classes."""
    rows, own = np.arange(len(y)), y.astype(np.intp)
    gap, spread = mean - mean[rows, own][:, None], variance + variance[rows, own][:, None]
    value, share, curve = expected_log1pexp(gap, spread)
    for part in (value, share, curve):
        part[rows, own] = 0.0
    by_mean, by_variance = -share, -curve
    by_mean[rows, own] = share.sum(axis=1)
    by_variance[rows, own] = -curve.sum(axis=1)
    return -value.sum(axis=1), by_mean, by_variance


SOFTMAX: dict[str, Callable[[Classes, Latent, Latent], Expected]] = {
    "monte_carlo": monte_carlo,
    "one_vs_each": one_vs_each,
    "tilted": tilted,
    "bouchard": bouchard,
    "bohning": bohning,
    "jensen": jensen,
}
"""Ways to the expected log softmax, by name."""


def expected_softmax(
    mean: Float64[np.ndarray, "*E N C"], variance: Float64[np.ndarray, "*E N C"], n_points: int = N_FINE
) -> Latent:
    """E softmax(f), positive; rows sum to 1. A leading axis is one of equally weighted components."""
    stacked = mean.reshape(-1, *mean.shape[-2:]), variance.reshape(-1, *mean.shape[-2:])
    points = quasi_normal(n_points, mean.shape[-1])
    out = np.zeros(mean.shape[-2:])
    for m, v in zip(*stacked, strict=True):
        for rows in _blocks(len(m), points.size):
            f = m[rows, None, :] + np.sqrt(v[rows, None, :]) * points
            out[rows] += softmax(f, axis=2).mean(axis=1)
    out = np.maximum(out, _SMALLEST)
    found: Latent = out / out.sum(axis=1, keepdims=True)
    return found


def _with_class(
    y: Classes, mean: Latent, value: Float64[np.ndarray, " N"], by_mean: Latent, by_variance: Latent
) -> Expected:
    """E log softmax(f)_y = E f_y - E log sum_c e^{f_c}, whose second term is given, and its derivatives."""
    rows = np.arange(len(y))
    by_mean[rows, y] += 1.0
    return value + mean[rows, y], by_mean, by_variance


def _blocks(n_rows: int, per_row: int) -> list[slice]:
    """Slices of the rows whose draws take at most `_BLOCK_NUMBERS` numbers together."""
    height = max(1, _BLOCK_NUMBERS // per_row)
    return [slice(start, min(start + height, n_rows)) for start in range(0, n_rows, height)]
