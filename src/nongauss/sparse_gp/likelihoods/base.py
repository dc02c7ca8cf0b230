"""What a likelihood is: how y depends on the latent functions, and expectations of it under a normal."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from nongauss.core.errors import InputError
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.prob.logistic import expected_log1pexp, log1pexp
from nongauss.prob.quadrature import gauss_hermite, quasi_normal

FloatArray = NDArray[np.float64]

N_HERMITE = 32
"""Gauss-Hermite points, where a likelihood has no rule of its own."""

N_DRAWS = 64
"""Quasi-random points where Monte Carlo is asked for."""

LARGEST_EXPONENT = 300.0
"""Where the exponential function goes on as a straight line; see `capped_exp`."""


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

    `expectation` chooses how expectations are taken: "auto" is the first of `own_rules`. Anything but a
    member of `own_rules` or `point_rules` raises InputError.
    """

    expectation: str = "auto"

    name: ClassVar[str] = ""
    own_rules: ClassVar[tuple[str, ...]] = ()
    """The rules of the likelihood's own, the best first."""
    point_rules: ClassVar[tuple[str, ...]] = ()
    """Averages over points, "quadrature" or "monte_carlo", where log p is smooth enough for them."""
    conjugate: ClassVar[bool] = False
    """Is log p a quadratic of f, so that sites do not depend on q?"""
    first_step: ClassVar[float] = 1.0
    """Size of the step of the sites that is tried first."""
    own_kernels: ClassVar[bool] = False
    """Has each latent function a kernel of its own, because they mean different things?"""
    target: ClassVar[str] = "raw"
    """What is done to y before: "standardised", "scaled" by a positive unit, or nothing."""
    takes_exposure: ClassVar[bool] = False
    """Is y a count whose rate an exposure multiplies, so that its log is added to f?"""
    param_names: ClassVar[tuple[str, ...]] = ()
    """What exp(psi) is, for people."""

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

    def check(self, y: FloatArray) -> None:
        """Raises InputError with the rule and the first row where y breaks it; here, a finite number."""
        first_bad(y, ~np.isfinite(y), self.name, "that is finite", "leave such rows out")

    @abstractmethod
    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The latent functions' constant mean (L,) and first parameters psi (K,)."""

    def bounds(self) -> list[tuple[float, float]]:
        """Limits of each parameter."""
        return []

    def log_prior(self, psi: FloatArray) -> tuple[float, FloatArray]:
        """Log prior of the parameters, up to a constant, and its derivative (K,)."""
        return 0.0, np.zeros(len(psi))

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A guess at q(f_n) from y_n: mean and variance (N, L). Here a wide one about `offset` (N, L)."""
        return np.array(offset), np.ones_like(offset)

    def expected_log_prob(
        self,
        y: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        with_params: bool = False,
    ) -> Expectation:
        """E[log p(y | f)] for y (N,), mean and variance (N, L), by the rule that was chosen."""
        if self.rule not in self.own_rules:
            return self._expect_by_points(y, mean, variance, psi, with_params)
        return self.own_expectation(y, mean, variance, psi, with_params)

    @abstractmethod
    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """`expected_log_prob` by a rule of the likelihood's own.

        With `point_rules` it must hold for variance 0 too: there it is log p itself with its derivative and
        half its second derivative.
        """

    @abstractmethod
    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """log p(y | f) for f (..., L) and y that broadcasts against f[..., 0]."""

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

        Moments (C, N, L) stand for a mixture of C equally weighted normals at each row.
        """
        raise TypeError(f"The {self.name} likelihood predicts labels; ask for its probabilities.")

    def probabilities(self, mean: FloatArray, variance: FloatArray, psi: FloatArray) -> FloatArray:
        """P(y = c) for each class (N, C) given latent moments (N, L) or (C, N, L), as in `predictive`."""
        raise TypeError(f"The {self.name} likelihood predicts numbers; ask for its predictive distribution.")

    def _expect_by_points(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """Averages over points S: E of log p, of its derivative, and half of its second derivative."""
        if self.rule == "monte_carlo":
            points = quasi_normal(N_DRAWS, mean.shape[1])
            weights = np.full(len(points), 1.0 / len(points))
        else:
            points, weights = gauss_hermite(N_HERMITE)
            points = points[:, None]
        f = (mean[:, None] + np.sqrt(variance)[:, None] * points).reshape(-1, mean.shape[1])
        at = self.own_expectation(np.repeat(y, len(points)), f, np.zeros_like(f), psi, with_params)

        def average(values: FloatArray) -> FloatArray:
            return np.moveaxis(values.reshape(len(y), len(points), *values.shape[1:]), 1, -1) @ weights

        return Expectation(*(average(part) for part in at))


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


def first_bad(y: FloatArray, bad: NDArray[np.bool_], name: str, rule: str, remedy: str) -> None:
    """Raises InputError for the first row where `bad`; nothing where there is none."""
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"The {name} likelihood needs y {rule}, got {y[row]:g} in row {row} (counted from 0); {remedy}."
        )


def log_mean(y: FloatArray, weight: FloatArray, least: float) -> float:
    """Log of the weighted mean of y, whose sum is taken to be at least `least`."""
    return math.log(max(float(weight @ y), least) / float(weight.sum()))
