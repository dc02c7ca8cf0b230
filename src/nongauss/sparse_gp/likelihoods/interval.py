"""What is known of y only up to an interval: censored rows, and whole numbers as what was rounded.

    log P(a < Y <= b | f) = log(F(b | f) - F(a | f)),  F the distribution function of a likelihood of numbers

taken from both tails, so that nothing cancels. Its expectation is an integral over the latent values: by
Gauss-Hermite points where the latent normal is narrower than the likelihood, else by the trapezoid rule, with
points as fine as the likelihood is sharp. With z the standardised latent value and l = log P,

    dE[l]/dm = E[l z] / sd,    dE[l]/dv = E[l (z^2 - 1)] / (2 v)           (Stein's lemma)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.predictive.composed import RoundedDistribution
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.law import normal_points
from nongauss.prob.quadrature import gauss_hermite
from nongauss.prob.tails import log_between
from nongauss.sparse_gp.likelihoods.base import Expectation, FloatArray, IntArray, Likelihood
from nongauss.sparse_gp.likelihoods.heavy_tailed import StudentT
from nongauss.sparse_gp.likelihoods.real import Gaussian

_NARROW, _N_NARROW = 0.5, 16
"""Latent sd, in widths of the likelihood, up to which so many Gauss-Hermite points will do."""

_STEP, _MOST = 0.6, 1025
"""Of the trapezoid rule: a step, in widths of the likelihood, and the most points."""

_N_OTHER = 20
"""Gauss-Hermite points of latent functions but the first."""

_BLOCK_NUMBERS = 2_000_000
_SMALLEST_SD = 3e-4  # over which differences of log P still stand out of rounding
_PSI_STEP = 1e-4  # of differences by the parameters
_LOWEST = -1e100
_START_ROWS = 2000  # from which the constant part of f is started

EDGES = {"real": (-np.inf, np.inf), "positive": (0.0, np.inf), "unit": (0.0, 1.0)}


def log_interval(
    of: Likelihood, low: FloatArray, high: FloatArray, f: FloatArray, psi: FloatArray
) -> FloatArray:
    """log P(low < Y <= high | f) for f (..., L); the ends may lie outside the support, or be infinite."""
    lowest, highest = EDGES[of.support]
    tails = []
    for end in (low, high):
        inside = (end > lowest) & (end < highest)
        below, above = of.log_tails(np.where(inside, end, _inner(of)), f, psi)
        below = np.where(end <= lowest, -np.inf, np.where(end >= highest, 0.0, below))
        above = np.where(end <= lowest, 0.0, np.where(end >= highest, -np.inf, above))
        tails.append((below, above))
    (below_low, above_low), (below_high, above_high) = tails
    out: FloatArray = np.maximum(log_between((below_low, below_high), (above_low, above_high)), _LOWEST)
    return out


def _inner(of: Likelihood) -> float:
    """A value of the support, which stands for one outside where the result is not used."""
    return 0.5 if of.support != "real" else 0.0


def expected_log_interval(
    of: Likelihood,
    low: FloatArray,
    high: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    psi: FloatArray,
    with_params: bool,
) -> Expectation:
    """E log P(low < Y <= high | f) for f ~ N(mean, variance) (N, L), with its derivatives."""
    sd = np.maximum(np.sqrt(variance), _SMALLEST_SD)
    n_params = len(psi) if with_params else 0
    shapes = ((), mean.shape[1:], mean.shape[1:], (n_params,))
    out = Expectation(*(np.empty((len(low), *shape)) for shape in shapes))
    extra = sd**2 - variance  # that a narrow normal is given, and taken back from the value
    for rows, z, weights in points_by_width(sd[:, 0] * of.sharpness(mean, sd, psi), mean.shape[1]):
        f = mean[rows, None, :] + sd[rows, None, :] * z
        ends = low[rows, None], high[rows, None]
        values = log_interval(of, *ends, f, psi)
        middle = values @ weights
        values = values - middle[:, None]  # less their middle, so that nothing cancels
        out.d_mean[rows] = values @ (weights[:, None] * z) / sd[rows]
        out.d_variance[rows] = values @ (weights[:, None] * (z**2 - 1.0)) / (2.0 * sd[rows] ** 2)
        out.value[rows] = middle - (extra[rows] * out.d_variance[rows]).sum(axis=1)
        for k, unit in enumerate(np.eye(len(psi))[:n_params]):
            sides = [log_interval(of, *ends, f, psi + step * unit) for step in (_PSI_STEP, -_PSI_STEP)]
            out.d_params[rows, k] = (sides[0] - sides[1]) @ weights / (2.0 * _PSI_STEP)
    return out


def points_by_width(ratio: FloatArray, n_latent: int) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Rows that need equally many points, with these points (Q, L) and weights (Q,) of a standard normal.

    `ratio` (N,): the sd of the first latent value, in widths of the function that is integrated.
    """
    sizes = 2.0 ** np.ceil(np.log2(np.clip(18.0 * ratio / _STEP, 32, _MOST - 1))) + 1
    sizes[ratio <= _NARROW] = _N_NARROW
    for size in map(int, np.unique(sizes)):
        z, weights = gauss_hermite(size) if size == _N_NARROW else normal_points(size)
        weights = weights if size == _N_NARROW else np.exp(weights)
        if n_latent > 1:
            z, weights = _grid(z, weights, n_latent - 1)
        else:
            z = z[:, None]
        rows = np.flatnonzero(sizes == size)
        height = max(1, _BLOCK_NUMBERS // len(weights))
        for start in range(0, len(rows), height):
            yield rows[start : start + height], z, weights


def _grid(z: FloatArray, weights: FloatArray, n_others: int) -> tuple[FloatArray, FloatArray]:
    """A rule for the first latent value times Gauss-Hermite rules for the others: (Q, L) and (Q,)."""
    others, share = gauss_hermite(_N_OTHER)
    places = np.array(list(product(range(len(z)), *[range(_N_OTHER)] * n_others)))
    points = np.concatenate([z[places[:, :1]], others[places[:, 1:]]], axis=1)
    return points, weights[places[:, 0]] * share[places[:, 1:]].prod(axis=1)


@persistable("sparse_gp.likelihoods.Censored")
@dataclass(frozen=True, kw_only=True)
class Censored(Likelihood):
    """`of`, with rows of which only an interval is known: y (N, 2) has its ends, equal where y is known.

    A fit uses it; what predicts is `of`, the law of a target that is not censored.
    """

    of: Likelihood

    name = "censored"

    @property
    def n_latent(self) -> int:
        """As of what is censored."""
        return self.of.n_latent

    @property
    def fitted(self) -> Likelihood:
        """What is censored."""
        return self.of

    def bounds(self) -> list[tuple[float, float]]:
        """As of what is censored."""
        return self.of.bounds()

    def log_prior(self, psi: FloatArray) -> tuple[float, FloatArray]:
        """As of what is censored."""
        return self.of.log_prior(psi)

    def is_standard(self, latent: int) -> bool:
        """As of what is censored."""
        return self.of.is_standard(latent)

    def adapted(self, y: FloatArray, weight: FloatArray, scale: float) -> Likelihood:
        """Adapted to the ends that are numbers. InputError if all rows are limits of one side."""
        lowest, highest = EDGES[self.of.support]
        for side, name in ((y[:, 0] <= lowest, "left"), (y[:, 1] >= highest, "right")):
            if side.all():
                raise InputError(
                    f"Every row is {name}-censored, so nothing says how far the true values go; "
                    "add rows with a known value or a limit on the other side."
                )
        return Censored(of=self.of.adapted(self.guess(y), weight, scale))

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The parameters of the ends; the constant part of f that makes the rows most probable."""
        y, weight = y[:_START_ROWS], weight[:_START_ROWS]
        offset, psi = self.of.start(self.guess(y), weight)
        box = np.array(self.of.bounds()).reshape(-1, 2)

        def loss(at: FloatArray) -> float:
            f, own = at[: len(offset)], np.clip(at[len(offset) :], *box.T)
            values = self.log_prob(y, np.tile(f, (len(y), 1)), own)
            return -float(weight @ values) / float(weight.sum())

        best = minimize(loss, np.concatenate([offset, psi]), method="Nelder-Mead", options={"maxiter": 300})
        better = np.isfinite(best.fun) and best.fun <= loss(np.concatenate([offset, psi]))
        return (best.x[: len(offset)] if better else offset), psi

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As of what is censored at the ends that are numbers."""
        return self.of.first_moments(self.guess(y), offset)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """That of `of` where y is known, else that of the log probability of the interval."""
        known = y[:, 0] == y[:, 1]
        rest = ~known
        at = self.of.expected_log_prob(y[known, 0], mean[known], variance[known], psi, with_params)
        low, high = y[rest].T
        of = expected_log_interval(self.of, low, high, mean[rest], variance[rest], psi, with_params)
        out = Expectation(np.empty(len(y)), *(np.empty((len(y), part.shape[1])) for part in of[1:]))
        for part, exact, between in zip(out, at, of, strict=True):
            part[known], part[rest] = exact, between
        return out

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Log density where y (N, 2) is known, else log probability, for f (N, L)."""
        known = y[:, 0] == y[:, 1]
        out = np.empty(len(y))
        out[known] = self.of.log_prob(y[known, 0], f[known], psi)
        low, high = y[~known].T
        out[~known] = log_interval(self.of, low, high, f[~known], psi)
        return out

    def guess(self, y: FloatArray) -> FloatArray:
        """A number for each row (N,): the middle of its interval, or the end that is inside the support."""
        low, high = y.T
        lowest, highest = EDGES[self.of.support]
        low_in, high_in = low > lowest, high < highest
        with np.errstate(invalid="ignore"):
            middle = 0.5 * (low + high)
        one = np.where(low_in, low, np.where(high_in, high, 1.0 if self.of.support == "positive" else 0.5))
        out: FloatArray = np.where(low_in & high_in, middle, one)
        return out


def check_censoring(of: Likelihood) -> None:
    """Raises InputError for a likelihood that has no distribution function of a real number."""
    if of.support not in EDGES or type(of).cdf is Likelihood.cdf:
        raise InputError(
            f"censoring and y_upper are not for the {of.name} likelihood, but for real and positive numbers "
            "and shares: take 'gaussian', 'student_t', 'gamma', 'log_normal' or 'beta'."
        )


@persistable("sparse_gp.likelihoods.Discretised")
@dataclass(frozen=True, kw_only=True)
class Discretised(Likelihood):
    """Whole numbers of any dispersion: f plus Gaussian noise, rounded to the nearest; psi is the noise's.

    P(y = k) = P(k - 1/2 < Z <= k + 1/2). y comes standardised, so the grid has a width other than 1, which is
    learned at the start of a fit: `half` of it is kept.
    """

    half: float = 0.5

    name = "discretised"
    support = "whole"
    target = "standardised"
    param_names: ClassVar[tuple[str, ...]] = Gaussian.param_names

    @property
    def noise(self) -> Likelihood:
        """What is rounded."""
        return Gaussian()

    def adapted(self, y: FloatArray, weight: FloatArray, scale: float) -> Likelihood:
        """With the grid's width on the scale of the fit."""
        return type(self)(half=0.5 / abs(scale))

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As of what is rounded."""
        return self.noise.start(y, weight)

    def bounds(self) -> list[tuple[float, float]]:
        """As of what is rounded."""
        return self.noise.bounds()

    def log_prior(self, psi: FloatArray) -> tuple[float, FloatArray]:
        """As of what is rounded."""
        return self.noise.log_prior(psi)

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As of what is rounded."""
        return self.noise.first_moments(y, offset)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """That of the log probability of the interval that is rounded to y."""
        low, high = y - self.half, y + self.half
        return expected_log_interval(self.noise, low, high, mean, variance, psi, with_params)

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Log probability of what is rounded to y."""
        return log_interval(self.noise, y - self.half, y + self.half, f, psi)

    def predictive(
        self,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> PredictiveDistribution:
        """The law of what is rounded, a mixture of Gaussians, rounded."""
        law = self.noise.predictive(mean, variance, psi, centre=centre, scale=scale)
        return RoundedDistribution(law)  # type: ignore[arg-type]


@persistable("sparse_gp.likelihoods.DiscretisedStudentT")
class DiscretisedStudentT(Discretised):
    """Whole numbers with outliers: f plus Student-t noise, rounded to the nearest."""

    name = "discretised_student_t"
    target = "robust"
    param_names = StudentT.param_names

    @property
    def noise(self) -> Likelihood:
        """What is rounded."""
        return StudentT()
