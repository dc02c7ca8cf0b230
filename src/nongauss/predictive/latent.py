"""Predictive distributions of y given a latent f ~ N(m, v): p(y) = integral of p(y | f) N(f; m, v) df.

Latent moments are (N,), or (K, N) for an equally weighted mixture of K normals. Real families stay mixtures
of Gaussians or have a closed form; the others are integrated over f by the trapezoid rule, which converges
geometrically for such integrands, with as many points as the likelihood is sharper than the latent normal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import (
    betainc,
    betaln,
    expit,
    gammainc,
    gammaincc,
    gammaincinv,
    gammaln,
    log_ndtr,
    logsumexp,
    ndtr,
    xlog1py,
    xlogy,
)

from nongauss.predictive.distribution import FloatArray, GaussianMixtureDistribution, PredictiveDistribution
from nongauss.predictive.rowwise import RowwiseDistribution, bounded_exp

_BLOCK_NUMBERS = 2_000_000
_REACH = 9.0  # standard deviations of f that are integrated over
_FEWEST, _MOST = 33, 1025


class Family(NamedTuple):
    """A likelihood as functions of arrays that broadcast: what `LatentDistribution` integrates over f.

    `moments`: exact mean and variance of y for latent moments. `sharpness`: one over the width in f of
    p(y | f), for latent mean and standard deviation: how fine the integration has to be.
    """

    support: str
    log_prob: Callable[[FloatArray, FloatArray], FloatArray]
    cdf: Callable[[FloatArray, FloatArray], FloatArray]
    draw: Callable[[FloatArray, np.random.Generator], FloatArray]
    moments: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
    sharpness: Callable[[FloatArray, FloatArray], FloatArray]


class LatentDistribution(RowwiseDistribution):
    """p(y) = integral of p(y | f) N(f; m, v) df for a `Family`."""

    def __init__(self, mean: FloatArray, variance: FloatArray, family: Family) -> None:
        super().__init__(mean, variance, family.support)
        self._family = family
        ratio = np.sqrt(self._v) * family.sharpness(self._m, np.sqrt(self._v))
        needed = 2.0 * _REACH * np.sqrt(1.0 + ratio.max(axis=0) ** 2) / 0.8
        sizes = 2.0 ** np.ceil(np.log2(np.clip(needed, _FEWEST, _MOST - 1))) + 1
        self._n_points = sizes.astype(np.intp)

    def _blocks(self) -> Iterator[npt.NDArray[np.intp]]:
        """Rows that need equally many points."""
        for size in np.unique(self._n_points):
            rows = np.flatnonzero(self._n_points == size)
            height = max(1, _BLOCK_NUMBERS // (int(size) * len(self._m)))
            for start in range(0, len(rows), height):
                yield rows[start : start + height]

    def _points(self, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Latent values (n, K Q) of rows that need equally many points, and their log weights (K Q,)."""
        z = np.linspace(-_REACH, _REACH, int(self._n_points[rows[0]]))
        weight = -0.5 * z * z
        weight = weight - logsumexp(weight) - math.log(len(self._m))
        f = self._m[:, rows, None] + np.sqrt(self._v[:, rows, None]) * z
        return np.moveaxis(f, 0, 1).reshape(len(rows), -1), np.tile(weight, len(self._m))

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        return self._family.moments(self._m, self._v)

    def _row_log_prob(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        f, weight = self._points(rows)
        out: FloatArray = logsumexp(self._family.log_prob(y[:, None], f) + weight, axis=1)
        return out

    def _row_cdf(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        f, weight = self._points(rows)
        return self._family.cdf(y[:, None], f) @ np.exp(weight)

    def _draw(self, f: FloatArray, rows: npt.NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        return self._family.draw(f, rng)

    def _guess(self, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        mean, width = super()._guess(rows)
        return mean, width + 0.5 / (
            1e-3 + self._family.sharpness(self._m, np.sqrt(self._v)).max(axis=0)[rows]
        )


class LaplaceDistribution(RowwiseDistribution):
    """y = f + Laplace(b) noise, f ~ N(m, v), in closed form; y in original units centre + scale * y."""

    def __init__(self, mean: FloatArray, variance: FloatArray, b: float) -> None:
        super().__init__(mean, variance, "real")
        self._b = b

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        return self._m, self._v + 2.0 * self._b**2

    def _tails(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Standardised distance, and the logs of the two one-sided exponentials: (K, n) each."""
        v, x = self._v[:, rows], y - self._m[:, rows]
        sd, rate = np.sqrt(v), 1.0 / self._b
        half = 0.5 * rate**2 * v
        right = half - rate * x + log_ndtr(x / sd - rate * sd)
        left = half + rate * x + log_ndtr(-x / sd - rate * sd)
        return x / sd, right, left

    def _row_log_prob(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        _, right, left = self._tails(y, rows)
        both = np.concatenate([right, left])
        out: FloatArray = logsumexp(both, axis=0) - math.log(2.0 * self._b * len(self._m))
        return out

    def _row_cdf(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        z, right, left = self._tails(y, rows)
        parts = np.where(
            z > 0,
            1.0 - (ndtr(-z) + 0.5 * (bounded_exp(right) - bounded_exp(left))),
            ndtr(z) - 0.5 * (bounded_exp(right) - bounded_exp(left)),
        )
        return parts.mean(axis=0)

    def _draw(self, f: FloatArray, rows: npt.NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        return f + rng.laplace(scale=self._b, size=f.shape)

    def _guess(self, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        return self._m[:, rows].mean(axis=0), np.sqrt(self._v[:, rows]).max(axis=0) + self._b


def gaussian_predictive(
    mean: FloatArray, variance: FloatArray, centre: float = 0.0, scale: float = 1.0
) -> PredictiveDistribution:
    """y ~ N(mean, variance), noise included, in original units centre + scale * y."""
    m, v = centre + scale * np.atleast_2d(mean), scale**2 * np.atleast_2d(variance)
    weight = -math.log(len(m))
    return _mixture(m.mean(0), v.mean(0) + m.var(0), len(m), lambda r: (m[:, r].T, v[:, r].T, weight))


def heteroscedastic_predictive(
    mean: FloatArray, variance: FloatArray, centre: float = 0.0, scale: float = 1.0
) -> PredictiveDistribution:
    """y ~ N(f_1, e^{2 f_2}) for independent normal f_1, f_2: moments (..., N, 2). Integrated over f_2."""
    m, v = (np.asarray(part).reshape(-1, *np.shape(part)[-2:]) for part in (mean, variance))
    z = np.linspace(-_REACH, _REACH, 49)
    weight = -0.5 * z * z
    weight = weight - logsumexp(weight) - math.log(len(m))
    noise = bounded_exp(2.0 * (m[..., 1] + v[..., 1]))
    middle, spread = centre + scale * m[..., 0], scale**2 * (v[..., 0] + noise)

    def parts(rows: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        sizes = bounded_exp(2.0 * (m[:, rows, 1, None] + np.sqrt(v[:, rows, 1, None]) * z))
        total = scale**2 * (v[:, rows, 0, None] + sizes)
        means = np.broadcast_to(middle[:, rows, None], total.shape)
        return _by_row(means), _by_row(total), np.tile(weight, len(m))

    return _mixture(middle.mean(0), spread.mean(0) + middle.var(0), len(m) * len(z), parts)


def student_t_predictive(
    mean: FloatArray, variance: FloatArray, noise: float, df: float, centre: float = 0.0, scale: float = 1.0
) -> PredictiveDistribution:
    """y = f + noise * t(df): a mixture of Gaussians over the noise's precision, which is gamma; df > 2."""
    m, v = np.atleast_2d(mean), np.atleast_2d(variance)
    low, high = (math.log(gammaincinv(0.5 * df, p)) for p in (1e-12, 1.0 - 1e-12))
    x = np.linspace(low, high, 129)
    weight = 0.5 * df * x - np.exp(x)
    weight = weight - logsumexp(weight) - math.log(len(m))
    spreads = noise**2 * 0.5 * df * np.exp(-x)
    middle, total = centre + scale * m, scale**2 * (v + noise**2 * df / (df - 2.0))

    def parts(rows: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        sizes = scale**2 * (v[:, rows, None] + spreads)
        return (
            _by_row(np.broadcast_to(middle[:, rows, None], sizes.shape)),
            _by_row(sizes),
            np.tile(weight, len(m)),
        )

    return _mixture(middle.mean(0), total.mean(0) + middle.var(0), len(m) * len(x), parts)


def laplace_predictive(
    mean: FloatArray, variance: FloatArray, b: float, centre: float = 0.0, scale: float = 1.0
) -> PredictiveDistribution:
    """y = f + Laplace(b), in closed form. Of `scale` only the size matters to the noise."""
    return LaplaceDistribution(
        centre + scale * np.asarray(mean), scale**2 * np.asarray(variance), abs(scale) * b
    )


def gamma_predictive(mean: FloatArray, variance: FloatArray, shape: float) -> PredictiveDistribution:
    """y gamma with mean e^f and this shape; shape 1 is the exponential distribution."""
    constant = shape * math.log(shape) - float(gammaln(shape))

    def moments(m: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = bounded_exp(m + 0.5 * v)
        return mean, mean**2 * (np.expm1(v) + np.exp(v) / shape)

    family = Family(
        "positive",
        lambda y, f: constant + (shape - 1.0) * np.log(y) - shape * (f + y * bounded_exp(-f)),
        lambda y, f: gammainc(shape, shape * y * bounded_exp(-f)),
        lambda f, rng: rng.gamma(shape, bounded_exp(f) / shape),
        moments,
        lambda m, sd: np.full_like(m, math.sqrt(shape)),
    )
    return LatentDistribution(mean, variance, family)


def beta_predictive(mean: FloatArray, variance: FloatArray, precision: float) -> PredictiveDistribution:
    """y beta with mean s(f) and alpha + beta = precision."""

    def sides(f: FloatArray) -> tuple[FloatArray, FloatArray]:
        return precision * np.maximum(expit(f), 1e-12), precision * np.maximum(expit(-f), 1e-12)

    def log_prob(y: FloatArray, f: FloatArray) -> FloatArray:
        a, b = sides(f)
        out: FloatArray = xlogy(a - 1.0, y) + xlog1py(b - 1.0, -y) - betaln(a, b)
        return out

    def moments(m: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        z = np.linspace(-_REACH, _REACH, 65)
        weight = np.exp(-0.5 * z * z)
        share = expit(m[..., None] + np.sqrt(v)[..., None] * z)
        first, second = (power @ (weight / weight.sum()) for power in (share, share**2))
        return first, second - first**2 + (first - second) / (1.0 + precision)

    family = Family(
        "unit",
        log_prob,
        lambda y, f: betainc(*sides(f), y),
        lambda f, rng: rng.beta(*sides(f)),
        moments,
        lambda m, sd: np.full_like(m, 0.5 * math.sqrt(precision) + 1.0),
    )
    return LatentDistribution(mean, variance, family)


def poisson_predictive(mean: FloatArray, variance: FloatArray) -> PredictiveDistribution:
    """y Poisson with rate e^f."""

    def moments(m: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = bounded_exp(m + 0.5 * v)
        return mean, mean + mean**2 * np.expm1(v)

    family = Family(
        "count",
        lambda y, f: y * f - bounded_exp(f) - gammaln(y + 1.0),
        lambda y, f: gammaincc(np.floor(y) + 1.0, bounded_exp(f)),
        lambda f, rng: rng.poisson(np.minimum(bounded_exp(f), 1e18)).astype(np.float64),
        moments,
        lambda m, sd: np.exp(0.5 * np.clip(m + 2.0 * sd, -40.0, 40.0)),
    )
    return LatentDistribution(mean, variance, family)


def negative_binomial_predictive(
    mean: FloatArray, variance: FloatArray, dispersion: float
) -> PredictiveDistribution:
    """y negative binomial with mean e^f and variance e^f + e^{2f} / dispersion."""
    r = dispersion

    def moments(m: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = bounded_exp(m + 0.5 * v)
        return mean, mean + mean**2 * (np.expm1(v) + np.exp(v) / r)

    def log_prob(y: FloatArray, f: FloatArray) -> FloatArray:
        u = f - math.log(r)
        constant = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0)
        out: FloatArray = y * u - (y + r) * np.logaddexp(0.0, u) + constant
        return out

    def sharpness(m: FloatArray, sd: FloatArray) -> FloatArray:
        rate = np.exp(np.clip(m + 2.0 * sd, -40.0, 40.0))
        return np.sqrt(rate * r / (rate + r))

    family = Family(
        "count",
        log_prob,
        lambda y, f: betainc(r, np.floor(y) + 1.0, expit(math.log(r) - f)),
        lambda f, rng: rng.poisson(np.minimum(rng.gamma(r, bounded_exp(f) / r), 1e18)).astype(np.float64),
        moments,
        sharpness,
    )
    return LatentDistribution(mean, variance, family)


def _by_row(values: FloatArray) -> FloatArray:
    """(K, n, C) as (n, K C)."""
    return np.moveaxis(values, 0, 1).reshape(values.shape[1], -1)


def _mixture(
    mean: FloatArray, variance: FloatArray, size: int, parts: Callable[[slice], tuple[Any, Any, Any]]
) -> GaussianMixtureDistribution:
    """From a function that gives means, variances (n, C) and log weights of some rows."""

    def components(start: int, stop: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        means, variances, weight = parts(slice(start, stop))
        weights = np.broadcast_to(weight, means.shape)
        return weights, means[..., None], np.sqrt(variances)[..., None]

    return GaussianMixtureDistribution(
        mean[:, None], variance[:, None], components, squeeze=True, n_components=size
    )
