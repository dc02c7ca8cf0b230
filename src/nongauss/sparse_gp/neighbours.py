"""What a sparse process leaves of its training rows, told by their nearest neighbours.

A few hundred inducing inputs smooth away what is short-ranged. With Gaussian noise, r = y - E f of the rows
is then taken for a second process of variance a s^2 whose correlation falls as e^(-d / h), d the distance in
length-scales of the first, and noise of variance s^2; at a row it is predicted from the nearest rows alone
(Vecchia 1988; of residuals of inducing inputs Gyger, Furrer and Sigrist 2024). With C the correlations of the
neighbours times a, plus the identity, and k those with the row times a:

    E r = k' C^-1 r_near,     var = s^2 (1 + a - k' C^-1 k)

h and a are those under which some rows are predicted best from all others, s^2 then has a closed form. If
that predicts them no better than one variance for all, beyond doubt, nothing is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nongauss.core.records import persistable
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.params import GPModel, first_sites
from nongauss.sparse_gp.predict import GPAverage, GPPosterior

N_NEAR = 24
"""Neighbours of a row; thirty predicted no better."""

MOST_JUDGED = 1000
"""Rows that are predicted from all others to choose h and a."""

REACHES, RATIOS = (0.03, 0.1, 0.3, 1.0, 3.0), (0.3, 1.0, 3.0, 10.0, 30.0)
"""The h, in length-scales, and the a that are tried."""

DOUBTS = 3.0
"""Standard errors that the gain has to exceed."""

MOST_COLUMNS = 30
"""Encoded columns up to which near rows are found by a tree in less than the time of the fit."""

_SAME = 1e-5
_AT_ONCE = 2000


@persistable("sparse_gp.NearResiduals")
@dataclass(frozen=True, eq=False)
class NearResiduals:
    """Rows X (N, D) in length-scales, what is left of each, `residual` (N,), and `noise` (N,), 1 / weight.

    `unit` (D,): what encoded columns are multiplied by. `reach` and `ratio` are h and a; `least`: s^2 as a
    share of the variance of all residuals, which the fit has as its noise.
    """

    X: Float64[np.ndarray, "N D"]
    residual: Float64[np.ndarray, " N"]
    noise: Float64[np.ndarray, " N"]
    unit: Float64[np.ndarray, " D"]
    reach: float
    ratio: float
    least: float

    def check_fields(self) -> None:
        """Raises ValueError where parts do not fit each other."""
        n_rows, n_columns = self.X.shape
        fits = self.residual.shape == self.noise.shape == (n_rows,) and self.unit.shape == (n_columns,)
        if not (fits and n_rows > N_NEAR and min(self.reach, self.ratio, self.least) > 0):
            raise ValueError("rows and what is left of them do not fit each other")

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.X)

    def at(self, encoded: FloatArray, own: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """At encoded rows (N, D): what neighbours add to the mean, and to the variance beyond `least` (N,).

        The latter as a share of the fit's noise. `own` (N,): residuals of these rows, which are training rows
        and tell nothing of themselves.
        """
        shift, left = np.empty((2, len(encoded)))
        for start in range(0, len(encoded), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            mine = None if own is None else own[rows]
            shift[rows], left[rows] = self._at(encoded[rows] * self.unit, mine)
        return shift, self.least * (left - 1.0)

    def beside(
        self,
        posterior: GPPosterior,
        mean: FloatArray,
        variance: FloatArray,
        told: tuple[FloatArray, FloatArray],
    ) -> tuple[GPPosterior, FloatArray, FloatArray]:
        """A posterior's moments of f (C, N, L) at rows of which neighbours have `told`, by `at`.

        The posterior comes with the least noise; what neighbours leave open beyond is variance of f.
        """
        shift, more = told
        noise = math.exp(posterior.psi[0])
        least = posterior._replace(psi=posterior.psi + math.log(self.least))
        return least, mean + shift[:, None], variance + noise * more[:, None]

    def _at(self, X: FloatArray, own: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """E r and var / s^2 at rows in length-scales."""
        return self.law_of(*self.nearest(X, own), self.reach, self.ratio)

    def nearest(self, X: FloatArray, own: FloatArray | None = None) -> tuple[NDArray[np.intp], FloatArray]:
        """The nearest rows to rows in length-scales and their distances (n, K); `own` as of `at`."""
        distance, near = self._tree.query(X, N_NEAR + (own is not None))
        return (near, distance) if own is None else self._others(near, distance, own)

    def law_of(
        self, near: NDArray[np.intp], distance: FloatArray, reach: float, ratio: float
    ) -> tuple[FloatArray, FloatArray]:
        """E r (n,) and var / s^2 (n,) of rows with these neighbours, under h = `reach` and a = `ratio`."""
        places = self.X[near]
        squares = (places * places).sum(axis=2)
        products = places @ places.transpose(0, 2, 1)
        apart = np.sqrt(np.maximum(squares[:, :, None] + squares[:, None] - 2.0 * products, 0.0))
        C = ratio * np.exp(apart / -reach)
        every = np.arange(N_NEAR)
        C[:, every, every] = ratio + self.noise[near]
        k = ratio * np.exp(distance / -reach)
        solved = np.linalg.solve(C, k[..., None])[..., 0]
        mean = (solved * self.residual[near]).sum(axis=1)
        return mean, np.maximum(1.0 + ratio - (solved * k).sum(axis=1), 1.0)

    def _others(
        self, near: NDArray[np.intp], distance: FloatArray, own: FloatArray
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """The neighbours of training rows but for these: of rows at the same place the one with its residual.

        Where there is none, the farthest goes.
        """
        unlike = np.abs(self.residual[near] - own[:, None]) + np.where(distance > _SAME, np.inf, 0.0)
        gone = np.where(np.isfinite(unlike.min(axis=1)), unlike.argmin(axis=1), N_NEAR)
        kept = np.arange(N_NEAR + 1) != gone[:, None]
        shape = (len(near), N_NEAR)
        return near[kept].reshape(shape), distance[kept].reshape(shape)


def near_residuals(average: GPAverage, rows: GPRows) -> NearResiduals | None:
    """What neighbours tell of rows that an average was fitted to, None where that is nothing beyond doubt.

    The length-scales of its first posterior say what is near.
    """
    unit = _units(average.posteriors[0])
    if unit is None or len(rows.y) <= N_NEAR + 1:
        return None
    residual = residuals(average, rows)
    noise = 1.0 / rows.weight
    spread = float(np.average(residual**2, weights=rows.weight))
    every = NearResiduals(rows.X * unit, residual, noise, unit, 1.0, 1.0, 1.0)
    some = np.random.default_rng(0).permutation(len(residual))[:MOST_JUDGED]
    near = every.nearest(every.X[some], residual[some])
    before = _log_density(residual[some], spread * noise[some])
    best, gain = every, np.full(len(some), -np.inf)
    for reach, ratio in product(REACHES, RATIOS):
        mean, variance = every.law_of(*near, reach, ratio)
        variance += noise[some] - 1.0
        rest = residual[some] - mean
        least = float((rest**2 / variance).mean())
        own = _log_density(rest, least * variance) - before
        if own.mean() > gain.mean():
            best, gain = replace(every, reach=reach, ratio=ratio, least=least / spread), own
    return best if gain.mean() > DOUBTS * float(gain.std()) / math.sqrt(len(some)) else None


def residuals(average: GPAverage, rows: GPRows) -> FloatArray:
    """y - E f of rows, y as the likelihood's normal has it: (N,)."""
    posterior = average.posteriors[0]
    model = GPModel(
        posterior.kernels, posterior.kernel_of, posterior.space, posterior.likelihood, posterior.offset
    )
    sites = first_sites(model, rows, posterior.psi)
    out: FloatArray = (sites.linear / sites.precision)[:, 0] + posterior.offset[0] - average.mean(rows.X)
    return out


def _log_density(residual: FloatArray, variance: FloatArray) -> FloatArray:
    """Normal log density of residuals (N,), up to a constant."""
    out: FloatArray = -0.5 * (np.log(variance) + residual**2 / variance)
    return out


def _units(posterior: GPPosterior) -> FloatArray | None:
    """One over the length-scale of each encoded column; None where a column has none, or columns are many."""
    space = posterior.space
    scales = posterior.kernels[0].lengthscales(posterior.thetas[0], space)
    if len(space.group) > MOST_COLUMNS or not all(name in scales for name in space.names):
        return None
    return 1.0 / np.array([scales[space.names[g]] for g in space.group])
