"""What a sparse process leaves of its training rows, told by their nearest neighbours.

A few hundred inducing inputs smooth away what is short-ranged. Each row speaks of f as a normal observation
would, by its site: r = g / b above E f with noise of variance 1 / b, where g = dE/dm and b = -2 dE/dv are
derivatives of E log p(y | f); with Gaussian noise these are y - E f and s^2. With heavy tails rows may also
speak alike, if that predicts better: what is far out for the process need not be for its neighbours. What is
left is taken for a second process of variance a s^2 whose correlation falls as e^(-d / h), d the distance in
length-scales of the first; at a row it is predicted from the nearest rows alone (Vecchia 1988; of residuals
of inducing inputs Gyger, Furrer and Sigrist 2024). With C the correlations of the neighbours times a, plus
diag(noise / s^2), and k those with the row times a:

    E r = k' C^-1 r_near,     var f = s^2 (a - k' C^-1 k)

h and a are those under which some rows are predicted best from all others as normal observations; s^2 and the
likelihood's parameters then maximise the predictive density of these rows' targets. If that predicts them no
better than the likelihood alone, beyond doubt, or if they are farther from the mean, nothing is kept: of
counts that are no Poisson ones a wide f has the better density, and a mean of several times theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.spatial import cKDTree

from nongauss.core.records import persistable
from nongauss.core.schema import LARGEST_LOG
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.sparse_gp.cavity import Cavities, left_out_moments, row_numbers
from nongauss.sparse_gp.data import FAR, ROBUST_SD, GPRows
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.likelihoods.base import weighted_median
from nongauss.sparse_gp.predict import GPAverage, GPPosterior

N_NEAR = 24
"""Neighbours of a row; thirty predicted no better."""

MOST_JUDGED = 3000
"""Rows that are predicted from all others to choose h and a. Of 1,000 rows of power one outlier took so many
nats back that a gain of .14 a row was hardly beyond doubt."""

LENGTHS, RATIOS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0), (0.3, 1.0, 3.0, 10.0, 30.0)
"""The h, in length-scales, and the a that are tried."""

DOUBTS = 3.0
"""Standard errors that the gain has to exceed, and by which targets may be farther from their mean."""

MOST_COLUMNS = 30
"""Encoded columns up to which near rows are found by a tree in less than the time of the fit."""

_SAME = 1e-5
_AT_ONCE = 2000
_LEAST_LEFT = 1e-9  # of a row's weight
_LEAST_PRECISION = 1e-6  # of a site, as a share of the greatest: others say nothing of f
_LOG_FLOOR = -1e3  # of a density, so that one row cannot decide
_ROOM = 5.0  # of log s^2 about where normal observations put it


@persistable("sparse_gp.NearResiduals")
@dataclass(frozen=True, eq=False)
class NearResiduals:
    """Rows X (N, D) in length-scales, what is left of each, `residual` (N,), and its `noise` (N,) / s^2.

    `unit` (D,): what encoded columns are multiplied by. `length` and `ratio` are h and a; `variance` is s^2,
    and `psi_shift` (K,) is added to the likelihood's parameters, as the noise beside neighbours is less.
    `weight` (N,) is part of the noise.
    """

    X: Float64[np.ndarray, "N D"]
    residual: Float64[np.ndarray, " N"]
    noise: Float64[np.ndarray, " N"]
    unit: Float64[np.ndarray, " D"]
    length: float
    ratio: float
    variance: float
    psi_shift: Float64[np.ndarray, " K"]
    weight: Float64[np.ndarray, " N"]

    def check_fields(self) -> None:
        """Raises ValueError where parts do not fit each other."""
        n_rows, n_columns = self.X.shape
        fits = self.residual.shape == self.noise.shape == (n_rows,) and self.unit.shape == (n_columns,)
        positive = min(self.length, self.ratio, self.variance, self.noise.min(initial=np.inf)) > 0
        bounded = np.abs(self.psi_shift).max(initial=0.0) < LARGEST_LOG
        if not (fits and n_rows > N_NEAR and positive and bounded):
            raise ValueError("rows and what is left of them do not fit each other")

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.X)

    def at(self, encoded: FloatArray, copies: Copies | None = None) -> tuple[FloatArray, FloatArray]:
        """At encoded rows (N, D): what neighbours add to the mean of f, and to its variance (N,).

        `copies`: what is left of training rows, each of which is left out where it is told.
        """
        shift, left = np.empty((2, len(encoded)))
        for start in range(0, len(encoded), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            own = None if copies is None else copies.take(rows)
            near = self.nearest(encoded[rows] * self.unit, own)
            shift[rows], left[rows] = self.law_of(*near, self.length, self.ratio, own)
        return shift, self.variance * left

    def beside(
        self,
        posterior: GPPosterior,
        mean: FloatArray,
        variance: FloatArray,
        told: tuple[FloatArray, FloatArray],
    ) -> tuple[GPPosterior, FloatArray, FloatArray]:
        """A posterior's moments of f (C, N, 1) at rows of which neighbours have `told`, by `at`.

        The posterior comes with the likelihood's parameters beside neighbours.
        """
        shift, more = told
        changed = posterior._replace(psi=posterior.psi + self.psi_shift)
        return changed, mean + shift[:, None], variance + more[:, None]

    def nearest(self, X: FloatArray, copies: Copies | None = None) -> tuple[NDArray[np.intp], FloatArray]:
        """The nearest rows to rows in length-scales and their distances (n, K), those gone left out.

        Where none is gone, the farthest of one more goes.
        """
        distance, near = self._tree.query(X, N_NEAR + (copies is not None))
        if copies is None:
            return near, distance
        is_gone = (near == copies.row[:, None]) & (copies.stays <= 0.0)[:, None]
        gone = np.where(is_gone.any(axis=1), is_gone.argmax(axis=1), N_NEAR)
        kept = np.arange(N_NEAR + 1) != gone[:, None]
        shape = (len(near), N_NEAR)
        return near[kept].reshape(shape), distance[kept].reshape(shape)

    def law_of(
        self,
        near: NDArray[np.intp],
        distance: FloatArray,
        length: float,
        ratio: float,
        copies: Copies | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """E r (n,) and var f / s^2 (n,) of rows with these neighbours, under h = `length` and a = `ratio`.

        `copies`: of rows that are left out, what is left at their places.
        """
        residual, noise, places = self.residual[near], self.noise[near], self.X[near]
        if copies is not None:
            beside = np.abs(places - self.X[copies.row][:, None]).max(axis=2) <= _SAME
            residual = residual + np.where(beside, copies.gap[:, None], 0.0)
            more = self.weight[copies.row] / np.where(copies.stays > 0.0, copies.stays, np.inf)
            stays = (near == copies.row[:, None]) & (copies.stays > 0.0)[:, None]
            noise = noise * np.where(stays, more[:, None], 1.0)
        squares = (places * places).sum(axis=2)
        products = places @ places.transpose(0, 2, 1)
        apart = np.sqrt(np.maximum(squares[:, :, None] + squares[:, None] - 2.0 * products, 0.0))
        C = ratio * np.exp(apart / -length)
        every = np.arange(N_NEAR)
        C[:, every, every] = ratio + noise
        k = ratio * np.exp(distance / -length)
        solved = np.linalg.solve(C, k[..., None])[..., 0]
        mean = (solved * residual).sum(axis=1)
        return mean, np.maximum(ratio - (solved * k).sum(axis=1), 0.0)


class Copies(NamedTuple):
    """What is left at the places of rows that are left out, of which others may be copies.

    `row` (n,): their numbers. `stays` (n,): the weight that is left of them, 0 where none is. `gap` (n,): how
    much the mean of f falls where the row leaves the process, so that what is at its place is so much farther
    above it.
    """

    row: NDArray[np.intp]
    stays: FloatArray
    gap: FloatArray

    def take(self, index: NDArray[np.intp] | slice) -> Copies:
        """Those of some rows."""
        return Copies(self.row[index], self.stays[index], self.gap[index])


def copies_of(near: NearResiduals, average: GPAverage, rows: GPRows, cavities: Cavities) -> Copies:
    """What is left of rows that an average was fitted to, each left out with its weight.

    `cavities` are those of its first posterior.
    """
    residual, _ = residuals(average, rows)
    number = row_numbers(near.X, near.residual, rows.X * near.unit, residual)
    stays = near.weight[number] - rows.weight
    left_out, _ = cavities.at(rows.X, np.arange(len(rows.X)))
    return Copies(number, np.where(stays > _LEAST_LEFT, stays, 0.0), _gap(average, rows, left_out))


def _gap(average: GPAverage, rows: GPRows, left_out: FloatArray) -> FloatArray:
    """How much the mean of f of the first posterior falls at rows without them, `left_out` (1, N, 1)."""
    posterior = average.posteriors[0]
    shift = rows.shift * posterior.likelihood.rates[0]
    out: FloatArray = posterior.mean(rows.X)[:, 0] + shift - left_out[0, :, 0]
    return out


def near_residuals(average: GPAverage, rows: GPRows) -> NearResiduals | None:
    """What neighbours tell of rows that an average was fitted to, None where that is nothing beyond doubt.

    The length-scales of its first posterior say what is near.
    """
    posterior = average.posteriors[0]
    unit = _units(posterior)
    if unit is None or len(rows.y) <= N_NEAR + 1:
        return None
    residual, noise = residuals(average, rows)
    variance = 1.0 / float((1.0 / noise).mean())
    if not (np.isfinite(residual).all() and np.isfinite(noise).all() and variance > 0.0):
        return None
    no_shift = np.zeros(len(posterior.psi))
    every = NearResiduals(
        rows.X * unit, residual, noise / variance, unit, 1.0, 1.0, variance, no_shift, rows.weight
    )
    some = np.random.default_rng(0).permutation(len(residual))[:MOST_JUDGED]
    judged = _JudgedRows(average, rows, some)
    near = every.nearest(every.X[some], judged.copies)
    readings = [every]
    if posterior.likelihood.nears_gaussian:
        readings.append(replace(every, noise=_alike(residual, every.noise, rows.weight)))
    found = []
    for reading in readings:
        best = _best_law(reading, near, judged)
        found.append((best, best.law_of(*near, best.length, best.ratio, judged.copies)))
    return _worth_keeping(found, judged)


def _alike(residual: FloatArray, noise: FloatArray, weight: FloatArray) -> FloatArray:
    """The noise of rows (N,) that speak alike; of those beyond `FAR` robust sds that of their sites.

    A site of next to no precision has lost how far its row is, and the size of its noise tells it.
    """
    usual, distance = 1.0 / weight, np.abs(residual)
    far = distance > FAR * ROBUST_SD * weighted_median(distance, weight)
    far |= noise * weight > FAR**2 * weighted_median(noise * weight, weight)
    return np.where(far, np.maximum(noise, usual), usual)


def _best_law(
    every: NearResiduals, near: tuple[NDArray[np.intp], FloatArray], judged: _JudgedRows
) -> NearResiduals:
    """These rows with the h, a and s^2 under which the judged ones are predicted best as normal observations.

    `near`: the nearest rows of these and their distances.
    """
    some, copies = judged.copies.row, judged.copies
    best, least = every, math.inf
    for length, ratio in product(LENGTHS, RATIOS):
        mean, open_part = every.law_of(*near, length, ratio, copies)
        total = open_part + every.noise[some] * judged.counted
        rest = float(judged.share @ ((every.residual[some] + copies.gap - mean) ** 2 / total))
        loss = float(judged.share @ np.log(total)) + math.log(rest)
        if loss < least:
            best, least = replace(every, length=length, ratio=ratio, variance=rest), loss
    return best


def are_counts(weight: FloatArray) -> bool:
    """Do weights tell how many equal rows were merged: whole numbers, 1 for most?"""
    return bool((weight == np.rint(weight)).all() and np.median(weight) == 1.0)


def residuals(average: GPAverage, rows: GPRows) -> tuple[FloatArray, FloatArray]:
    """What each row's target is above E f, as its site reads it, and the noise's variance: (N,) each.

    A row of no weight tells nothing: its noise has no end.
    """
    posterior = average.posteriors[0]
    mean = (average.mean(rows.X) + rows.shift * posterior.likelihood.rates[0])[:, None]
    variance = posterior.moments(rows.X)[1].mean(axis=0)
    of = posterior.likelihood.expected_log_prob(rows.y, mean, variance, posterior.psi)
    precision = posterior.likelihood.mean_precision(rows.y, mean, of)
    told = (-2.0 * of.d_variance if precision is None else precision)[:, 0]
    told = np.maximum(told, _LEAST_PRECISION * max(float(told.max()), 1e-300))
    heavy, noise = told * rows.weight, np.full(len(told), np.inf)
    return of.d_mean[:, 0] / told, np.divide(1.0, heavy, out=noise, where=heavy > 0.0)


class _Mean(NamedTuple):
    """A mean over rows, and its standard error."""

    mean: float
    error: float


class _JudgedRows:
    """The rows by which it is judged whether neighbours tell anything, and moments of f without each of them.

    Of copies that were merged to a row of greater weight one is left out, and each counts: `copies` are those
    that stay, `counted` (n,) is their number with it, `share` (n,) their part in all.
    """

    def __init__(self, average: GPAverage, rows: GPRows, some: NDArray[np.intp]) -> None:
        self.posterior = average.posteriors[0]
        part = rows.take(some)
        self.y = part.y
        merged = are_counts(rows.weight)
        out = np.minimum(part.weight, 1.0) if merged else part.weight
        self.counted = part.weight if merged else np.ones(len(some))
        self.share = self.counted / self.counted.sum()
        left_out, variance = left_out_moments(self.posterior, part._replace(weight=out))
        self.copies = Copies(some, part.weight - out, _gap(average, part, left_out))
        self.mean = average.mean(part.X) + part.shift * self.posterior.likelihood.rates[0] - self.copies.gap
        self.variance = variance[0, :, 0]

    def law(self, shift: FloatArray, more: FloatArray, psi: FloatArray) -> PredictiveDistribution:
        """The law of each row with so much added to the mean and the variance of f."""
        mean, variance = (self.mean + shift)[:, None], (self.variance + more)[:, None]
        return self.posterior.likelihood.predictive(mean, variance, psi)

    def log_density(self, shift: FloatArray, more: FloatArray, psi: FloatArray) -> FloatArray:
        """log p(y) of each row under `law`: (n,)."""
        return np.maximum(self.law(shift, more, psi).log_prob(self.y), _LOG_FLOOR)

    def mean_of(self, values: FloatArray) -> _Mean:
        """The mean over the rows of one number a row (n,), with its standard error."""
        mean = float(self.share @ values)
        with np.errstate(over="ignore", invalid="ignore"):  # of a log-normal law a mean may be any number
            spread = math.sqrt(float(self.share @ (values - mean) ** 2))
        return _Mean(mean, spread * math.sqrt(float(self.share @ self.share)))

    def best(
        self, shift: FloatArray, open_part: FloatArray, variance: float
    ) -> tuple[FloatArray, FloatArray]:
        """The log of s^2 and psi under which these rows are most probable (1 + K,), and their log density.

        var f is s^2 * `open_part` beyond that of the process; s^2 starts at `variance`.
        """

        def loss(x: FloatArray) -> float:
            told = self.share @ self.log_density(shift, math.exp(x[0]) * open_part, x[1:])
            return 0.5 * float(((x - start) ** 2).sum()) / len(shift) - float(told)

        start = np.array([math.log(variance), *self.posterior.psi])
        limits = [(start[0] - _ROOM, start[0] + _ROOM), *self.posterior.likelihood.bounds()]
        found = minimize(loss, start, method="L-BFGS-B", bounds=limits)
        return found.x, self.log_density(shift, math.exp(found.x[0]) * open_part, found.x[1:])


def _worth_keeping(
    found: Sequence[tuple[NearResiduals, tuple[FloatArray, FloatArray]]], judged: _JudgedRows
) -> NearResiduals | None:
    """That reading of rows under which the judged ones are most probable, if it gains beyond doubt.

    Each comes with what it tells of these, E r and var f / s^2. With s^2 and the likelihood's parameters
    beside neighbours.
    """
    nothing = np.zeros(len(judged.y))
    x_alone, before = judged.best(nothing, nothing, found[0][0].variance)
    fits = [judged.best(*told, best.variance) for best, told in found]
    number = int(np.argmax([judged.share @ after for _, after in fits]))
    (best, told), (x, after) = found[number], fits[number]
    gain, error = judged.mean_of(after - before)
    alone, beside = (
        judged.mean_of(np.abs(judged.y - judged.law(shift, more, psi).mean))
        for shift, more, psi in (
            (nothing, nothing, x_alone[1:]),
            (told[0], math.exp(x[0]) * told[1], x[1:]),
        )
    )
    worse_mean = beside.mean > alone.mean + DOUBTS * alone.error  # not where both overflow
    if worse_mean or not gain > DOUBTS * error:
        return None
    return replace(best, variance=math.exp(x[0]), psi_shift=x[1:] - judged.posterior.psi)


def _units(posterior: GPPosterior) -> FloatArray | None:
    """One over the length-scale of each encoded column; None where a column has none, or columns are many."""
    space = posterior.space
    scales = posterior.kernels[0].lengthscales(posterior.thetas[0], space)
    if len(space.group) > MOST_COLUMNS or not all(name in scales for name in space.names):
        return None
    return 1.0 / np.array([scales[space.names[g]] for g in space.group])
