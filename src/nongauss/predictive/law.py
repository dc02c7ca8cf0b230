"""Predictive distributions of y given a latent f ~ N(m, v): p(y) = integral of p(y | f) N(f; m, v) df.

Latent moments are (N,), or (K, N) for an equally weighted mixture of K normals. No likelihood is named here:
`LatentDistribution` integrates any that says what `Conditional` lists, by the trapezoid rule, which converges
geometrically for such integrands, with as many points as the likelihood is sharper than the latent normal;
`GridDistribution` needs log p(y | f) alone; noise that is a mixture of Gaussians stays one
(`gaussian_noise_mixture`), and Laplace noise has a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Protocol, Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_ndtr, logsumexp, ndtr

from nongauss.predictive.distribution import FloatArray
from nongauss.predictive.mixture import GaussianMixtureDistribution
from nongauss.predictive.rowwise import TRANSFORMS, RowwiseDistribution, bounded_exp

_BLOCK_NUMBERS = 2_000_000
_REACH = 9.0  # standard deviations of f that are integrated over
_FEWEST, _MOST = 33, 1025
_GRID_Z = np.linspace(-7.0, 7.0, 43)
_GRID_WEIGHT = np.exp(-0.5 * _GRID_Z**2) / np.exp(-0.5 * _GRID_Z**2).sum()
_COARSE, _FINE = 600, 1201
_EACH = 801  # whole numbers that are looked at one by one
_LARGEST = 1e12
_LOWEST = -1e300
_NEGLIGIBLE = 28.0  # nats below the mode


class Conditional(Protocol):
    """p(y | f, psi) of one number y given one latent number f: what a likelihood says, arrays broadcasting.

    y (...); f (..., 1), whose last axis is that of the latent functions; psi (K,) the likelihood's own
    parameters. `support` is "real", "positive", "unit" or "count".
    """

    @property
    def support(self) -> str:
        """The values that y can take."""

    def at(self, rows: npt.NDArray[np.intp]) -> Self:
        """What is known in some rows, where some is of each row, such as the trials of a count."""

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """log p(y | f): (...)."""

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """P(Y <= y | f): (...)."""

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One draw of y for each f: (...)."""

    def moments(
        self, mean: FloatArray, variance: FloatArray, psi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of y, (...) each, where f ~ N(mean, variance), (..., 1) each."""

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """One over the width in f of p(y | f) where f is likely: how fine an integral over f has to be."""


@final
class LatentDistribution(RowwiseDistribution):
    """centre + scale * y for y ~ integral of p(y | f, psi) N(f; m, v) df, p a `Conditional`.

    Parameters
    ----------
    likelihood : what is known of y given f. psi : (K,) its parameters.
    mean, variance : (N,) or (K, N) latent moments, the latter for a mixture of K equally weighted normals.
    centre, scale : units of the target; other than 0 and 1 only where y is a real or a positive number.
    """

    def __init__(
        self,
        likelihood: Conditional,
        psi: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        super().__init__(mean, variance, likelihood.support, centre=centre, scale=scale)
        self._likelihood, self._psi = likelihood, psi
        sd = np.sqrt(self._v)
        self._sharpness = likelihood.sharpness(self._m[..., None], sd[..., None], psi)
        needed = 2.0 * _REACH * np.sqrt(1.0 + (sd * self._sharpness).max(axis=0) ** 2) / 0.8
        sizes = 2.0 ** np.ceil(np.log2(np.clip(needed, _FEWEST, _MOST - 1))) + 1
        self._n_points = sizes.astype(np.intp)

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        """The laws of the rows of these numbers, with what is known of their sharpness."""
        out = super()._take(rows)
        out._likelihood = self._likelihood.at(rows)
        out._sharpness, out._n_points = self._sharpness[:, rows], self._n_points[rows]
        return out

    def _blocks(self) -> Iterator[npt.NDArray[np.intp]]:
        """Rows that need equally many points, few enough for their points to fit into memory."""
        for size in np.unique(self._n_points):
            rows = np.flatnonzero(self._n_points == size)
            height = max(1, _BLOCK_NUMBERS // (int(size) * len(self._m)))
            for start in range(0, len(rows), height):
                yield rows[start : start + height]

    def _points(self, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Latent values (n, K Q, 1) of rows that need equally many points, and their log weights (K Q,)."""
        z, weight = normal_points(int(self._n_points[rows[0]]))
        f = self._m[:, rows, None] + np.sqrt(self._v[:, rows, None]) * z
        return _by_row(f)[..., None], np.tile(weight - math.log(len(self._m)), len(self._m))

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        return self._likelihood.moments(self._m[..., None], self._v[..., None], self._psi)

    def _row_log_prob(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        """log sum_q w_q p(y | f_q)."""
        f, weight = self._points(rows)
        values = self._likelihood.at(rows).log_prob(y[:, None], f, self._psi)
        out: FloatArray = logsumexp(values + weight, axis=1)
        return out

    def _row_cdf(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        """sum_q w_q P(Y <= y | f_q); of a count once for each number where all rows have one law."""
        if self.is_discrete and len(rows) > 1 and self._is_constant(rows):
            y, first, back = np.unique(y, return_index=True, return_inverse=True)
            return self._cdf_of_each(y, rows[first])[back]
        return self._cdf_of_each(y, rows)

    def _is_constant(self, rows: npt.NDArray[np.intp]) -> bool:
        """Have these rows one law?"""
        m, v = self._m[:, rows], self._v[:, rows]
        same = (m == m[:, :1]).all() and (v == v[:, :1]).all()
        return bool(same) and self._likelihood.at(rows) is self._likelihood

    def _cdf_of_each(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        f, weight = self._points(rows)
        return self._likelihood.at(rows).cdf(y[:, None], f, self._psi) @ np.exp(weight)

    def _draw(self, f: FloatArray, rows: npt.NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        return self._likelihood.at(rows).draw(f[..., None], self._psi, rng)

    def _guess(self, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        mean, width = super()._guess(rows)
        return mean, width + 0.5 / (1e-3 + self._sharpness.max(axis=0)[rows])


@final
class LaplaceNoiseDistribution(RowwiseDistribution):
    """centre + scale * (f + e), f ~ N(m, v) and e ~ Laplace(b), in closed form.

    With z = (y - m) / sd: p(y) = (R + L) / (2 b) and P(Y <= y) = Phi(z) - (R - L) / 2, where
    R = exp(v / 2b^2 - (y - m) / b) Phi(z - sd / b) and L = exp(v / 2b^2 + (y - m) / b) Phi(-z - sd / b).
    """

    def __init__(
        self, mean: FloatArray, variance: FloatArray, b: float, *, centre: float = 0.0, scale: float = 1.0
    ) -> None:
        super().__init__(mean, variance, "real", centre=centre, scale=scale)
        self._b = b

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        return self._m, self._v + 2.0 * self._b**2

    def _tails(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """z, log R and log L of the class's docstring: (K, n) each."""
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
        difference = 0.5 * (bounded_exp(right) - bounded_exp(left))
        below = np.where(z > 0, 1.0 - (ndtr(-z) + difference), ndtr(z) - difference)
        out: FloatArray = below.mean(axis=0)
        return out

    def _draw(self, f: FloatArray, rows: npt.NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        return f + rng.laplace(scale=self._b, size=f.shape)

    def _guess(self, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        return self._m[:, rows].mean(axis=0), np.sqrt(self._v[:, rows]).max(axis=0) + self._b


@final
class GridDistribution(RowwiseDistribution):
    """p(y) of a likelihood of which only a function log p(y | f) is known, for f ~ N(m, v).

    p(y) = integral of p(y | f) N(f; m, v) df is normalised on a grid of y that covers each row's mass; log
    densities are taken anew at each y.

    Parameters
    ----------
    log_prob : function of y and f, two arrays that broadcast. support : "real", "positive", "unit", "count".
    mean, variance : (N,) or (K, N) latent moments, the latter for K equally weighted normals.
    """

    def __init__(
        self, log_prob: Callable[..., FloatArray], support: str, mean: FloatArray, variance: FloatArray
    ) -> None:
        super().__init__(mean, variance, support)
        self._function = log_prob
        self._grid, self._mass = np.empty((len(self), _FINE)), np.empty((len(self), _FINE))
        for start in range(0, len(self), 64):
            rows = np.arange(start, min(start + 64, len(self)))
            self._grid[rows], self._mass[rows] = self._tabulated(rows)

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        """The laws of the rows of these numbers, as tabulated."""
        out = super()._take(rows)
        out._grid, out._mass = self._grid[rows], self._mass[rows]
        return out

    def crps(self, y: npt.ArrayLike) -> FloatArray:
        """Continuous ranked probability score at `y`, exact for the distribution function as tabulated: (N,).

        Where F is linear from F_0 to F_1 over a length h, F^2 integrates to h (F_0^2 + F_0 F_1 + F_1^2) / 3.
        """
        if self._support == "count":
            return super().crps(y)
        target = self._checked(y)
        middle = np.cumsum(self._mass, axis=1) - 0.5 * self._mass
        ends = self._grid[:, 0], self._grid[:, -1]
        out = np.maximum(ends[0] - target, 0.0) + np.maximum(target - ends[1], 0.0)
        for n, at in enumerate(np.clip(target, *ends)):
            x = np.sort(np.append(self._grid[n], at))
            below = np.interp(x, self._grid[n], middle[n])
            for part, value in ((x <= at, below), (x >= at, 1.0 - below)):
                a, b = value[part][:-1], value[part][1:]
                out[n] += np.diff(x[part]) @ (a * a + a * b + b * b) / 3.0
        return out

    def _log_density(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        """log p(y) at y (n, G) of rows (n,)."""
        f = self._m[:, rows, None] + np.sqrt(self._v[:, rows, None]) * _GRID_Z
        f = np.moveaxis(f, 0, 1).reshape(len(rows), 1, -1)
        weight = np.log(np.tile(_GRID_WEIGHT, len(self._m)) / len(self._m))
        shape = (*y.shape, f.shape[-1])
        with np.errstate(all="ignore"):
            values = self._function(np.broadcast_to(y[..., None], shape), np.broadcast_to(f, shape))
        out: FloatArray = logsumexp(np.where(np.isnan(values), -np.inf, values) + weight, axis=-1)
        return out

    def _tabulated(self, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Grid of y and probability masses (n, G): first where the mass is, then finely there."""
        if self._support == "count":
            return self._counts(rows)
        value, _ = TRANSFORMS[self._support]
        reach = {"real": float(np.arcsinh(_LARGEST)), "positive": float(np.log(_LARGEST))}
        low, high = np.full((len(rows), 1), -reach.get(self._support, 30.0)), np.full((len(rows), 1), 30.0)
        for size in (_COARSE, _COARSE, _FINE):
            t = low + (high - low) * np.linspace(0.0, 1.0, size)
            y = np.sinh(t) if self._support == "real" else value(t)
            slope = {"real": np.cosh(t), "positive": y}.get(self._support, y * expit(-t))
            density = self._log_density(y, rows) + np.log(np.maximum(slope, 1e-300))
            low, high = _extent(t, density)
        mass = np.exp(density - density.max(axis=1, keepdims=True))
        return y, mass / mass.sum(axis=1, keepdims=True)

    def _counts(self, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Whole numbers from the first likely one on: every one of the first, then the middles of runs."""
        y = np.floor(np.concatenate([np.arange(200.0), np.geomspace(200.0, _LARGEST, _COARSE)]))
        y = np.tile(np.unique(y), (len(rows), 1))
        density = self._log_density(y, rows)
        low, high = _extent(y, density)
        last = np.maximum(high - low, _EACH)[:, 0] + 1.0
        ends = np.geomspace(_EACH, last, _FINE - _EACH + 1, axis=1)
        begins = np.column_stack([np.tile(np.arange(_EACH), (len(rows), 1)), np.floor(ends)])
        length = np.diff(begins, axis=1)  # 0 where a run is empty
        y = low + begins[:, :-1] + np.floor(0.5 * np.maximum(length - 1.0, 0.0))
        mass = np.exp(self._log_density(y, rows)) * length
        return y, mass / mass.sum(axis=1, keepdims=True)

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """From the masses on the grid, all latent components together: (1, N) each."""
        mean = (self._grid * self._mass).sum(axis=1)
        variance = ((self._grid - mean[:, None]) ** 2 * self._mass).sum(axis=1)
        return mean[None], variance[None]

    def _row_log_prob(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        parts = [
            self._log_density(y[i : i + 1000, None], rows[i : i + 1000])[:, 0]
            for i in range(0, len(y) or 1, 1000)
        ]
        return np.maximum(np.concatenate(parts), _LOWEST)  # a value of the support is never impossible

    def _row_cdf(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        total = np.cumsum(self._mass[rows], axis=1)
        grid = self._grid[rows]
        if self._support == "count":
            place = (grid <= y[:, None]).sum(axis=1)
            return np.where(
                place > 0, np.take_along_axis(total, np.maximum(place - 1, 0)[:, None], 1)[:, 0], 0.0
            )
        middle = total - 0.5 * self._mass[rows]
        return np.array([np.interp(*pair) for pair in zip(y, grid, middle, strict=True)])

    def _inner_quantiles(self, levels: FloatArray) -> FloatArray:
        """Between the points of the grid, linearly; of counts as of any counts."""
        if self._support == "count":
            return super()._inner_quantiles(levels)
        middle = np.cumsum(self._mass, axis=1) - 0.5 * self._mass
        found = [np.interp(levels, *row) for row in zip(middle, self._grid, strict=True)]
        return np.reshape(found, (len(self), len(levels)))

    def _draw(self, f: FloatArray, rows: npt.NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        """From the predictive distribution itself: the latent draws are not needed."""
        total = np.cumsum(self._mass, axis=1)
        uniform = rng.random(f.shape)
        found = [np.searchsorted(row, u) for row, u in zip(total, uniform, strict=True)]
        place = np.reshape(found, uniform.shape).astype(np.intp)
        return np.take_along_axis(self._grid, np.minimum(place, _FINE - 1), axis=1)


def gaussian_noise_mixture(
    mean: FloatArray,
    variance: FloatArray,
    noise: Callable[[npt.NDArray[np.intp]], FloatArray],
    log_weights: FloatArray,
    noise_variance: npt.ArrayLike,
    *,
    centre: float = 0.0,
    scale: float = 1.0,
) -> GaussianMixtureDistribution:
    """centre + scale * (f + e), f ~ N(mean, variance) and e a mixture of S Gaussians about 0.

    Parameters
    ----------
    mean, variance : (N,) or (K, N) latent moments.
    noise : gives the S variances of e in the rows of these numbers (n,), to be broadcast to (K, n, S).
    log_weights : (S,) of the S variances, summing to 1.
    noise_variance : the variance of e, exact, in a shape that broadcasts to (K, N).
    """
    m, v = centre + scale * np.atleast_2d(mean), scale**2 * np.atleast_2d(variance)
    total = v + scale**2 * np.asarray(noise_variance)
    weight = np.tile(log_weights - math.log(len(m)), len(m))

    def components(rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        sizes = v[:, rows, None] + scale**2 * noise(rows)
        means = _by_row(np.broadcast_to(m[:, rows, None], sizes.shape))
        return np.broadcast_to(weight, means.shape), means[..., None], np.sqrt(_by_row(sizes))[..., None]

    return GaussianMixtureDistribution(
        m.mean(axis=0)[:, None],
        (total.mean(axis=0) + m.var(axis=0))[:, None],
        components,
        squeeze=True,
        n_components=len(weight),
    )


@lru_cache
def normal_points(size: int) -> tuple[FloatArray, FloatArray]:
    """Trapezoid rule for N(0, 1): points (size,) from -9 to 9 and the logs of their weights."""
    z = np.linspace(-_REACH, _REACH, size)
    weight = -0.5 * z * z
    weight = weight - logsumexp(weight)
    z.flags.writeable = weight.flags.writeable = False  # all callers have the same arrays
    return z, weight


def _by_row(values: FloatArray) -> FloatArray:
    """(K, n, C) as (n, K C)."""
    return np.moveaxis(values, 0, 1).reshape(values.shape[1], -1)


def _extent(grid: FloatArray, density: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The part of each row's grid that holds its mass: (n, 1) each."""
    alive = density > density.max(axis=1, keepdims=True) - _NEGLIGIBLE
    last = grid.shape[1] - 1
    first, final = alive.argmax(axis=1), last - alive[:, ::-1].argmax(axis=1)
    low = np.take_along_axis(grid, np.maximum(first - 1, 0)[:, None], axis=1)
    return low, np.take_along_axis(grid, np.minimum(final + 1, last)[:, None], axis=1)
