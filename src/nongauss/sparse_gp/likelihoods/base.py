"""What a likelihood is: how y depends on the latent functions, and expectations of it under a normal."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from nongauss.core.errors import InputError
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.law import LatentDistribution, normal_points
from nongauss.prob.logistic import expected_log1pexp, log1pexp
from nongauss.prob.quadrature import gauss_hermite, quasi_normal
from nongauss.sparse_gp.likelihoods.support import SUPPORTS, first_bad, room_for

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

N_HERMITE = 32
"""Gauss-Hermite points, where a likelihood has no rule of its own."""

N_DRAWS = 64
"""Quasi-random points where Monte Carlo is asked for."""

LARGEST_EXPONENT = 300.0
"""Where the exponential function goes on as a straight line; see `capped_exp`."""

N_MOMENTS = 65
"""Trapezoid points for moments of y."""

N_SHARPNESS = 32
"""Draws of y for each f from which a likelihood's sharpness is told where it does not say it."""

_NARROWEST = 3e-4  # standard deviation over which differences of log p still stand out of rounding
_PSI_STEP = 1e-4  # of differences by the parameters
_F_STEP = 1e-3  # of differences by f


class Expectation(NamedTuple):
    """E[log p(y_n | f_n)] in nats under N(mean, variance) and its derivatives.

    `value` (N,); `d_mean` and `d_variance` (N, L), the latter half the expected second derivative (the
    theorems of Bonnet and Price); `d_params` (N, K) by the likelihood's parameters, (N, 0) if not asked for.
    """

    value: FloatArray
    d_mean: FloatArray
    d_variance: FloatArray
    d_params: FloatArray


@dataclass(frozen=True, kw_only=True)
class Likelihood(ABC):
    """p(y | f) of one row, f its L latent values. Parameters psi (K,) are logs or otherwise unbounded.

    All that is known of it stands in one class. A likelihood of numbers says `log_prob`, `cdf`, `draw` and
    `moments` (or `conditional_moments`); what it does not say of `expected_log_prob`, `start`, `sharpness`
    and the rest follows from these by quadrature. One of labels says `probabilities` instead. A new one is a
    class, and a place in `REGRESSION`.

    A fit calls `adapted` once, then `start`.

    `expectation` chooses how expectations are taken: "auto" is the first of `own_rules`. Anything but a
    member of `own_rules` or `point_rules` raises InputError.
    """

    expectation: str = "auto"

    name: ClassVar[str] = ""
    support = "real"
    """The values of y, of `SUPPORTS` (not annotated: a subclass may have a field)."""
    own_rules: ClassVar[tuple[str, ...]] = ("quadrature",)
    """The ways of taking expectations that the likelihood has itself, the best first."""
    point_rules: ClassVar[tuple[str, ...]] = ()
    """Averages over points, "quadrature" or "monte_carlo", where log p is smooth enough for them."""
    conjugate: ClassVar[bool] = False
    """Is log p a quadratic of f, so that sites do not depend on q?"""
    first_step: ClassVar[float] = 1.0
    """Size of the step of the sites that is tried first."""
    own_kernels: ClassVar[bool] = False
    """Has each latent function a kernel of its own, because they mean different things?"""
    target: ClassVar[str] = "raw"
    """What is done to y before: "standardised"; the same, "robust" to a few absurd values, or with these
    "limited" to the range of the others; "scaled"; or nothing."""
    is_label: ClassVar[bool] = False
    """Is y the number of a class, which has a probability, and no distribution of a number?"""
    takes_exposure: ClassVar[bool] = False
    """Is y a count whose rate an exposure multiplies, so that its log is added to f?"""
    takes_trials: ClassVar[bool] = False
    """Is y a count out of a number of trials, which is known of each row?"""
    param_names: ClassVar[tuple[str, ...]] = ()
    """What exp(psi) is, for people."""
    mean_is_latent: ClassVar[bool] = False
    """Is the mean of y that of f_1, in units of the target?"""
    nears_gaussian: ClassVar[bool] = False
    """Is y one function plus noise of a law that is not far from a normal one? See `beside_gaussian`."""
    recalibrates: ClassVar[bool] = False
    """Does it correct what it predicts by training rows left out, see `recalibrated`?"""
    several_modes: ClassVar[bool] = True
    """Does it predict from a mixture q(u)?"""

    def __post_init__(self) -> None:
        available = (*self.own_rules, *self.point_rules)
        if self.expectation not in ("auto", *available):
            raise InputError(
                f"expectation={self.expectation!r} is not available for the {self.name} likelihood; "
                f"choose 'auto' or one of {', '.join(map(repr, available))}."
            )

    @property
    def rule(self) -> str:
        """How expectations are taken."""
        return self.own_rules[0] if self.expectation == "auto" else self.expectation

    @property
    def n_latent(self) -> int:
        """Number L of latent functions."""
        return 1

    @property
    def latent_names(self) -> tuple[str, ...]:
        """What stands before the names of each latent function's hyper-parameters (L,)."""
        return ("", *(f"f{number} " for number in range(2, self.n_latent + 1)))

    @property
    def rates(self) -> FloatArray:
        """1 for each latent function that a log exposure is added to, else 0: (L,)."""
        return np.ones(self.n_latent)

    @property
    def fitted(self) -> Likelihood:
        """What predicts after a fit with this one."""
        return self

    def at(self, rows: IntArray) -> Self:
        """What is known in some rows of a law: the same, but where it has numbers of each row."""
        return self

    @property
    def read_as(self) -> str:
        """The support whose edges numbers of y come near, and keep their digits there."""
        return self.support

    @property
    def is_measured(self) -> bool:
        """Is y on a continuous scale, so that its functions may be known finely?"""
        return self.target != "raw" and self.support != "whole"

    def is_standard(self, latent: int) -> bool:
        """Is a latent function on the scale of a standardised target, so that its size is known?"""
        return self.target in ("standardised", "robust", "limited")

    def recalibrated(
        self, y: FloatArray, weight: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray
    ) -> Likelihood:
        """What predicts, corrected by latent moments (1, N, L) of training rows left out; here as it is."""
        return self

    # ------------------------------------------------------------ where a fit starts

    def check(self, y: FloatArray) -> None:
        """Raises InputError with the rule and the first row where y breaks it; here, that of the support."""
        rule, is_bad = SUPPORTS[self.support]
        first_bad(y, is_bad(y), self.name, rule, room_for(y))

    def adapted(self, y: FloatArray, weight: FloatArray, scale: float) -> Likelihood:
        """This likelihood with what it keeps of the data: y (N,), as it came but divided by `scale`."""
        return self

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The latent functions' constant mean (L,) and first parameters psi (K,).

        Here psi = 0, and the f under which the data are most probable, on a grid from -20 to 20, then finer.
        """
        psi = np.zeros(len(self.param_names))
        best, reach = 0.0, 20.0
        while reach > 0.01:
            grid = best + np.linspace(-reach, reach, 41)
            totals = [weight @ self.log_prob(y, np.full((len(y), 1), f), psi) for f in grid]
            best, reach = float(grid[int(np.argmax(totals))]), reach / 20.0
        return np.array([best]), psi

    def bounds(self) -> list[tuple[float, float]]:
        """Limits of each parameter."""
        return [(-10.0, 10.0)] * len(self.param_names)

    def log_prior(self, psi: FloatArray) -> tuple[float, FloatArray]:
        """Log prior of the parameters, up to a constant, and its derivative (K,)."""
        return 0.0, np.zeros(len(psi))

    def beside_gaussian(self, variance: float) -> FloatArray:
        """Parameters (K,) of noise that is as near to normal noise of this variance as it gets."""
        raise self._unsaid("beside_gaussian")

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A guess at q(f_n) from y_n: mean and variance (N, L). Here a wide one about `offset` (N, L)."""
        return np.array(offset), np.ones_like(offset)

    # ------------------------------------------------------------ expectations

    def expected_log_prob(
        self,
        y: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        with_params: bool = False,
    ) -> Expectation:
        """E[log p(y | f)] for y (N,), f ~ N(mean, variance) (N, L), by the rule that was chosen."""
        if self.rule not in self.own_rules:
            return self._expected_at_points(y, mean, variance, psi, with_params)
        return self.own_expectation(y, mean, variance, psi, with_params)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """`expected_log_prob` by a rule of the likelihood's own; here from `log_prob` alone, for L = 1.

        For f = m + sd x and l = log p, dE/dm = E[l x] / sd and dE/dv = E[l (x^2 - 1)] / (2 v) (Stein's
        lemma), by Gauss-Hermite points, so l should be smooth at the scale of the latent sd. Derivatives by
        psi are differences. With `point_rules` an override must hold for variance 0 too: there it is log p
        itself with its derivative and half its second derivative.
        """
        points, weights = gauss_hermite(N_HERMITE)
        sd = np.maximum(np.sqrt(variance), _NARROWEST)
        f = np.clip(mean + sd * points, -LARGEST_EXPONENT, LARGEST_EXPONENT)[..., None]
        values = self.log_prob(column(y), f, psi)
        value = values @ weights
        values = values - value[:, None]  # less their middle, so that nothing cancels
        d_mean = column(values @ (weights * points)) / sd
        d_variance = column(values @ (weights * (points**2 - 1.0))) / (2.0 * sd**2)
        if not (with_params and len(psi)):
            return Expectation(value, d_mean, d_variance, no_params(y))
        sides = [
            [self.log_prob(column(y), f, psi + step * unit) @ weights for step in (_PSI_STEP, -_PSI_STEP)]
            for unit in np.eye(len(psi))
        ]
        by_psi = np.stack([(up - down) / (2.0 * _PSI_STEP) for up, down in sides], axis=1)
        return Expectation(value, d_mean, d_variance, by_psi)

    def _expected_at_points(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """Averages over points S: E of log p, of its derivative, and half of its second derivative.

        E[f(m + sqrt(v) x)] with the theorems of Bonnet and Price for the derivatives by m and v.
        """
        if self.rule == "monte_carlo":
            points = quasi_normal(N_DRAWS, mean.shape[1])
            weights = np.full(len(points), 1.0 / len(points))
        else:
            points, weights = gauss_hermite(N_HERMITE)
            points = points[:, None]
        f = (mean[:, None] + np.sqrt(variance)[:, None] * points).reshape(-1, mean.shape[1])
        at = self.own_expectation(np.repeat(y, len(points), axis=0), f, np.zeros_like(f), psi, with_params)

        def average(values: FloatArray) -> FloatArray:
            split = values.reshape(len(y), len(points), *values.shape[1:])
            out: FloatArray = np.moveaxis(split, 1, -1) @ weights
            return out

        return Expectation(*(average(part) for part in at))

    def mean_precision(self, y: FloatArray, mean: FloatArray, expectation: Expectation) -> FloatArray | None:
        """Precision (N, L) of sites at y whose step cannot overshoot as one by -2 d_variance may; or None."""
        return None

    # ------------------------------------------------------------ p(y | f), arrays broadcasting

    @abstractmethod
    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """log p(y | f) for f (..., L) and y that broadcasts against f[..., 0]."""

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """P(Y <= y | f) for f (..., L) and y that broadcasts against f[..., 0]."""
        raise self._unsaid("cdf")

    def log_tails(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log P(Y <= y | f) and log P(Y > y | f) as of `cdf`; here by it, so coarse in the upper tail."""
        below = np.clip(self.cdf(y, f, psi), 1e-300, 1.0 - 2.0**-53)
        return np.log(below), np.log1p(-below)

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One draw of y for each f (..., L)."""
        raise self._unsaid("draw")

    def conditional_moments(self, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of y given f (..., L): (...) each."""
        raise self._unsaid("moments")

    def moments(
        self, mean: FloatArray, variance: FloatArray, psi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of y, (...) each, where f ~ N(mean, variance), (..., 1) each.

        E[y] = E[E[y | f]] and Var[y] = E[Var[y | f]] + Var[E[y | f]], here by the trapezoid rule over f.
        """
        z, log_weight = normal_points(N_MOMENTS)
        f = mean + np.sqrt(variance) * z
        given, spread = self.conditional_moments(f[..., None], psi)
        weight = np.exp(log_weight)
        first = given @ weight
        return first, (given - first[..., None]) ** 2 @ weight + spread @ weight

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """One over the width in f of p(y | f) where f is likely, (...) for mean and sd (..., 1).

        It tells how fine an integral over f has to be. Here the root of the Fisher information
        E[(d log p / df)^2], by draws of y, the largest at the mean of f and two deviations to either side.
        """
        f = np.stack([mean, mean - 2.0 * sd, mean + 2.0 * sd])
        every = np.broadcast_to(f, (N_SHARPNESS, *f.shape))
        y = self.draw(every, psi, np.random.default_rng(0))
        slope = self.log_prob(y, every + _F_STEP, psi) - self.log_prob(y, every - _F_STEP, psi)
        out: FloatArray = np.sqrt(((slope / (2.0 * _F_STEP)) ** 2).mean(axis=0)).max(axis=0)
        return out

    # ------------------------------------------------------------ p(y), f integrated out

    def predictive(
        self,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> PredictiveDistribution:
        """Distribution of centre + scale * y given latent moments (N, L).

        Moments (C, N, L) stand for a mixture of C equally weighted normals at each row. Here by integration
        over the one latent value.
        """
        return LatentDistribution(self, psi, mean[..., 0], variance[..., 0], centre=centre, scale=scale)

    def probabilities(self, mean: FloatArray, variance: FloatArray, psi: FloatArray) -> FloatArray:
        """P(y = c) for each class (N, C) given latent moments (N, L) or (C, N, L), as in `predictive`."""
        raise TypeError(f"The {self.name} likelihood predicts numbers; ask for its predictive distribution.")

    def readable(self, psi: FloatArray, scale: float) -> dict[str, float]:
        """The parameters by name, in units of a target that came divided by `scale`."""
        unit = {"noise_variance": scale**2, "scale": scale}
        return {
            name: float(np.exp(number)) * unit.get(name, 1.0)
            for name, number in zip(self.param_names, psi, strict=True)
        }

    def _unsaid(self, what: str) -> TypeError:
        """The error of a likelihood that is asked for what it does not say."""
        return TypeError(f"The {self.name} likelihood does not say {what} of y given f; give it that method.")


def capped_exp(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """e^x and its derivative; beyond LARGEST_EXPONENT the tangent there.

    So it stays finite, increasing and convex: a bad trial of an optimiser is a very low bound, no overflow.
    """
    slope = np.exp(np.minimum(x, LARGEST_EXPONENT))
    return slope * (1.0 + np.maximum(x - LARGEST_EXPONENT, 0.0)), slope


def expected_softplus(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`expected_log1pexp`, or at once the function and its derivatives where every variance is 0."""
    if variance.any():
        return expected_log1pexp(mean, variance)
    share = expit(mean)
    return log1pexp(mean), share, 0.5 * share * expit(-mean)


def column(values: FloatArray) -> FloatArray:
    """(N,) as (N, 1)."""
    return values[:, None]


def no_params(y: FloatArray) -> FloatArray:
    """`Expectation.d_params` where there is none: (N, 0)."""
    return np.zeros((len(y), 0))


def log_mean(y: FloatArray, weight: FloatArray, least: float) -> float:
    """Log of the weighted mean of y, whose sum is taken to be at least `least`."""
    return math.log(max(float(weight @ y), least) / float(weight.sum()))


def weighted_median(y: FloatArray, weight: FloatArray) -> float:
    """The middle of y, each value counted `weight` times."""
    order = np.argsort(y, kind="stable")
    total = np.cumsum(weight[order])
    half = 0.5 * total[-1]
    at = int(np.searchsorted(total, half))
    if total[at] == half and at + 1 < len(y):
        return 0.5 * float(y[order[at]] + y[order[at + 1]])
    return float(y[order[at]])
