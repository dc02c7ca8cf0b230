"""The predictive distribution of a likelihood known as log p(y | f) alone: a grid of y for each row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logsumexp

from nongauss.predictive.distribution import FloatArray, PredictiveDistribution, checked_levels
from nongauss.predictive.rowwise import TRANSFORMS, RowwiseDistribution

_Z = np.linspace(-7.0, 7.0, 43)
_WEIGHT = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()
_COARSE, _FINE = 600, 1201
_LARGEST = 1e12
_NEGLIGIBLE = 28.0  # nats below the mode


class GridDistribution(RowwiseDistribution):
    """p(y) normalised on a grid of y that covers each row's mass; log densities are taken anew at each y."""

    def __init__(
        self, mean: FloatArray, variance: FloatArray, log_prob: Callable[..., FloatArray], support: str
    ) -> None:
        super().__init__(mean, variance, support)
        self._function = log_prob
        self._grid, self._mass = np.empty((len(self), _FINE)), np.empty((len(self), _FINE))
        for start in range(0, len(self), 64):
            rows = np.arange(start, min(start + 64, len(self)))
            self._grid[rows], self._mass[rows] = self._tabulated(rows)

    def _log_density(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        """log p(y) at y (n, G) of rows (n,)."""
        f = self._m[:, rows, None] + np.sqrt(self._v[:, rows, None]) * _Z
        f = np.moveaxis(f, 0, 1).reshape(len(rows), 1, -1)
        weight = np.log(np.tile(_WEIGHT, len(self._m)) / len(self._m))
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
        """Whole numbers about the mode, every one where they are few, else spaced."""
        y = np.floor(np.concatenate([np.arange(200.0), np.geomspace(200.0, _LARGEST, _COARSE)]))
        y = np.tile(np.unique(y), (len(rows), 1))
        density = self._log_density(y, rows)
        low, high = _extent(y, density)
        step = np.maximum(np.ceil((high - low) / (_FINE - 1)), 1.0)
        y = low + step * np.arange(_FINE)
        mass = np.exp(self._log_density(y, rows)) * step
        return y, mass / mass.sum(axis=1, keepdims=True)

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        mean = (self._grid * self._mass).sum(axis=1)
        variance = ((self._grid - mean[:, None]) ** 2 * self._mass).sum(axis=1)
        return mean[None], variance[None]

    def _row_log_prob(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        return np.concatenate(
            [
                self._log_density(y[i : i + 1000, None], rows[i : i + 1000])[:, 0]
                for i in range(0, len(y), 1000)
            ]
        )

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

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles from the grid: (N,) or (N, Q)."""
        if self._support == "count":
            return super().quantile(q)
        levels = checked_levels(q)
        middle = np.cumsum(self._mass, axis=1) - 0.5 * self._mass
        out = np.stack([np.interp(levels.ravel(), *row) for row in zip(middle, self._grid, strict=True)])
        return out if levels.ndim else out[:, 0]

    def _draw(self, f: FloatArray, rows: npt.NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        """From the predictive distribution itself: the latent draws are not needed."""
        total = np.cumsum(self._mass, axis=1)
        uniform = rng.random(f.shape)
        place = np.stack([np.searchsorted(row, u) for row, u in zip(total, uniform, strict=True)])
        return np.take_along_axis(self._grid, np.minimum(place, _FINE - 1), axis=1)


def _extent(grid: FloatArray, density: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The part of each row's grid that holds its mass: (n, 1) each."""
    alive = density > density.max(axis=1, keepdims=True) - _NEGLIGIBLE
    last = grid.shape[1] - 1
    first, final = alive.argmax(axis=1), last - alive[:, ::-1].argmax(axis=1)
    low = np.take_along_axis(grid, np.maximum(first - 1, 0)[:, None], axis=1)
    return low, np.take_along_axis(grid, np.minimum(final + 1, last)[:, None], axis=1)


def grid_predictive(
    mean: FloatArray, variance: FloatArray, log_prob: Callable[..., FloatArray], support: str
) -> PredictiveDistribution:
    """p(y) for a function log_prob(y, f) and latent moments (N,) or (K, N)."""
    return GridDistribution(mean, variance, log_prob, support)
