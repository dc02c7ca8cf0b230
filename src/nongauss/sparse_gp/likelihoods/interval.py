"""What is known of y only up to an interval: censored rows, and whole numbers as what was rounded.

    log P(a < Y <= b | f) = log(F(b | f) - F(a | f)),  F the distribution function of a likelihood of numbers

taken from both tails, so that nothing cancels. Its expectation is an integral over the latent values, by
points as fine as the likelihood is sharp (`points`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.predictive.composed import RoundedDistribution
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.prob.tails import log_between
from nongauss.sparse_gp.likelihoods.base import Expectation, FloatArray, IntArray, Likelihood
from nongauss.sparse_gp.likelihoods.heavy_tailed import StudentT
from nongauss.sparse_gp.likelihoods.points import expected_by_points
from nongauss.sparse_gp.likelihoods.real import Gaussian

_LOWEST = -1e100
_START_ROWS = 2000  # from which the constant part of f is started

EDGES = {"real": (-np.inf, np.inf), "positive": (0.0, np.inf), "unit": (0.0, 1.0)}


def log_interval(
    of: Likelihood, low: FloatArray, high: FloatArray, f: FloatArray, psi: FloatArray
) -> FloatArray:
    """log P(low < Y <= high | f) for f (..., L); the ends may lie outside the support, or be infinite."""
    lowest, highest = EDGES[of.support]
    tails, nothing = [], np.zeros(f.shape[:-1])
    for end in (low, high):
        inside = (end > lowest) & (end < highest)
        below, above = nothing, nothing
        if inside.any():
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

    def log_prob(rows: IntArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        return log_interval(of, low[rows, None], high[rows, None], f, psi)

    return expected_by_points(log_prob, of.sharpness, mean, variance, psi, with_params)


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
        """The law whose values are censored, which predicts them."""
        return self.of

    @property
    def is_measured(self) -> bool:
        """As of what is censored."""
        return self.of.is_measured

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
        names = ("left", "right") if scale > 0 else ("right", "left")  # of y in its own unit
        for side, name in zip((y[:, 0] <= lowest, y[:, 1] >= highest), names, strict=True):
            if side.all():
                raise InputError(
                    f"Every row is {name}-censored, so nothing says how far the true values go; "
                    "add rows with a known value or a limit on the other side."
                )
        return replace(self, of=self.of.adapted(self.guess(y), weight, scale))

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
        low, high = y[:, 0], y[:, 1]
        lowest, highest = EDGES[self.of.support]
        low_in, high_in = low > lowest, high < highest
        with np.errstate(invalid="ignore"):
            middle = 0.5 * (low + high)
        one = np.where(low_in, low, np.where(high_in, high, 1.0 if self.of.support == "positive" else 0.5))
        out: FloatArray = np.where(low_in & high_in, middle, one)
        return out


@persistable("sparse_gp.likelihoods.Truncated")
@dataclass(frozen=True, kw_only=True)
class Truncated(Censored):
    """Rows that are in the table only because y lies above one limit and not above another: y (N, 4).

    Its columns are the ends of what is known of y, as of `Censored`, and these two limits c and d:
    log p(y | f) - log P(c < Y <= d | f). What predicts is `of`, the law of a target that is not selected.
    """

    name = "truncated"

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """That of what is known of y, less that of the log probability of a row that is selected."""
        seen = super().own_expectation(y[:, :2], mean, variance, psi, with_params)
        rows = self._selected(y)
        low, high = y[rows, 2:].T
        less = expected_log_interval(self.of, low, high, mean[rows], variance[rows], psi, with_params)
        for part, of in zip(seen, less, strict=True):
            part[rows] -= of
        return seen

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """As of `Censored`, given that the row is selected."""
        out = super().log_prob(y[:, :2], f, psi)
        rows = self._selected(y)
        low, high = y[rows, 2:].T
        out[rows] -= log_interval(self.of, low, high, f[rows], psi)
        return out

    def _selected(self, y: FloatArray) -> IntArray:
        """Rows with a limit within the support."""
        lowest, highest = EDGES[self.of.support]
        return np.flatnonzero((y[:, 2] > lowest) | (y[:, 3] < highest))


def check_censoring(of: Likelihood, given: str = "censoring and y_upper") -> None:
    """Raises InputError for a likelihood that has no distribution function of a real number."""
    if of.support not in EDGES or type(of).cdf is Likelihood.cdf:
        raise InputError(
            f"{given} are not for the {of.name} likelihood, but for real and positive numbers "
            "and shares without point masses: take 'gaussian', 'student_t', 'gamma', 'log_normal' or 'beta'."
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
        """The law whose values are rounded."""
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
        """The law whose values are rounded."""
        return StudentT()
