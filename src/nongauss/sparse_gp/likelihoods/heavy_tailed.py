"""Likelihoods of real, standardised targets with outliers: Laplace and Student-t."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma, erf, expit, gammaincinv, gammaln, logsumexp, stdtr

from nongauss.core.records import persistable
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.law import LaplaceNoiseDistribution, gaussian_noise_mixture
from nongauss.sparse_gp.likelihoods.base import (
    Expectation,
    FloatArray,
    Likelihood,
    column,
    no_params,
    weighted_median,
)
from nongauss.sparse_gp.likelihoods.real import noise_prior

N_PRECISIONS = 129
"""Gaussians of which a predictive law is a mixture: over the precision of a heavy tail."""

FAR_SD = 1e13
"""The widest of them, in scales of the noise: distances up to a thousandth of that are told rightly."""

NEARLY_NORMAL = 50.0
"""Degrees of freedom with which a fit starts that has been fitted with normal noise before."""

_NEAR_POINTS, _BEND = 44, 3.0  # of `precisions`: where the mass is, and over how many steps lengthen
_MIDDLE = 1e-9  # a distance below which y is at the mean
_LOG_FLOOR = math.log(1e-3)  # of a scale, as a share of the target's standard deviation


class _HeavyTailed(Likelihood):
    """Noise with outliers about f."""

    target = "robust"
    mean_is_latent = True
    nears_gaussian = True

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As wide as y is far away: every site starts with a positive precision, an outlier's a small one."""
        return np.array(offset), np.maximum((column(y) - offset) ** 2, 1.0)

    def _within(self, psi: list[float]) -> FloatArray:
        """Parameters, moved between their bounds."""
        low, high = np.transpose(self.bounds())
        out: FloatArray = np.clip(psi, low, high)
        return out

    def mean_precision(self, y: FloatArray, mean: FloatArray, expectation: Expectation) -> FloatArray | None:
        """g / (y - m), g = dE/dm: E log p is convex in (y - m)^2, so this quadratic lies below it."""
        residual = column(y) - mean
        at_middle = np.maximum(-2.0 * expectation.d_variance, 0.0)
        small = np.abs(residual) < _MIDDLE
        return np.where(small, at_middle, expectation.d_mean / np.where(small, 1.0, residual))


@persistable("sparse_gp.likelihoods.Laplace", "nongauss.sparse_gp.likelihoods.real:Laplace")
class Laplace(_HeavyTailed):
    """y ~ f + Laplace(b), heavier tails than the Gaussian; psi = (log b).

    Expectations are exact. Points will not do: at its kink log p has no second derivative to average.
    """

    name = "laplace"
    target = "limited"  # b, which is a mean distance, would be told by an absurd value alone
    own_rules = ("closed_form",)
    param_names = ("scale",)

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Noise of a tenth of the target's variance, about its median."""
        return np.array([weighted_median(y, weight)]), np.array([0.5 * math.log(0.05)])

    def beside_gaussian(self, variance: float) -> FloatArray:
        """Of the same variance."""
        return self._within([0.5 * math.log(0.5 * variance)])

    def bounds(self) -> list[tuple[float, float]]:
        """Between a thousandth and twice the target's standard deviation."""
        return [(_LOG_FLOOR, math.log(2.0))]

    def log_prior(self, psi: FloatArray) -> tuple[float, FloatArray]:
        """Of the variance 2 b^2, see `noise_prior`."""
        value, slope = noise_prior(math.log(2.0) + 2.0 * float(psi[0]))
        return value, np.array([2.0 * slope])

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """-log 2b - E|y - f| / b, the mean of a folded normal."""
        b = math.exp(psi[0])
        residual, sd = column(y) - mean, np.sqrt(variance)
        z = residual / sd
        density = np.exp(-0.5 * np.minimum(z * z, 1400.0)) / math.sqrt(2.0 * math.pi)
        side = erf(z / math.sqrt(2.0))
        distance = (2.0 * sd * density + residual * side) / b
        value = -math.log(2.0) - psi[0] - distance[:, 0]
        by_psi = distance - 1.0 if with_params else no_params(y)
        return Expectation(value, side / b, -density / (b * sd), by_psi)

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Laplace log density."""
        out: FloatArray = -math.log(2.0) - psi[0] - math.exp(-psi[0]) * np.abs(y - f[..., 0])
        return out

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """e^{-|z|} / 2 below f, 1 - e^{-|z|} / 2 above, z = (y - f) / b."""
        z = (y - f[..., 0]) * math.exp(-psi[0])
        tail = 0.5 * np.exp(-np.abs(z))
        return np.where(z < 0, tail, 1.0 - tail)

    def log_tails(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log(e^{-|z|} / 2) on the far side, log(1 - e^{-|z|} / 2) on the near one."""
        z = (y - f[..., 0]) * math.exp(-psi[0])
        small = -math.log(2.0) - np.abs(z)
        large = np.log1p(-np.exp(small))
        return np.where(z < 0, small, large), np.where(z < 0, large, small)

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """4 / b: its kinks want fine points."""
        return np.full_like(mean[..., 0], 4.0 * math.exp(-psi[0]))

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Laplace draws."""
        return rng.laplace(f[..., 0], math.exp(psi[0]))

    def conditional_moments(self, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """f and 2 b^2."""
        return f[..., 0], np.full_like(f[..., 0], 2.0 * math.exp(2.0 * psi[0]))

    def predictive(
        self,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> PredictiveDistribution:
        """Laplace noise on a Gaussian, in closed form."""
        b = math.exp(psi[0])
        return LaplaceNoiseDistribution(mean[..., 0], variance[..., 0], b, centre=centre, scale=scale)


@persistable("sparse_gp.likelihoods.StudentT", "nongauss.sparse_gp.likelihoods.real:StudentT")
class StudentT(_HeavyTailed):
    """y ~ f + scale * t(df): outliers cost little; psi = (log scale, log df).

    It is not log-concave: sites may be negative. The degrees of freedom stay above 2.05, so that a variance
    exists, and have a weak log-normal prior about 5.
    """

    name = "student_t"
    own_rules = ("quadrature",)
    point_rules = ("monte_carlo",)
    param_names = ("scale", "degrees_of_freedom")

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A scale of 0.3 about the median, 5 degrees of freedom."""
        return np.array([weighted_median(y, weight)]), np.array([math.log(0.3), math.log(5.0)])

    def beside_gaussian(self, variance: float) -> FloatArray:
        """Of the same variance, with `NEARLY_NORMAL` degrees of freedom."""
        share = (NEARLY_NORMAL - 2.0) / NEARLY_NORMAL
        return self._within([0.5 * math.log(share * variance), math.log(NEARLY_NORMAL)])

    def bounds(self) -> list[tuple[float, float]]:
        """Scale at least a thousandth of the target's standard deviation, as normal noise may be small."""
        return [(_LOG_FLOOR, math.log(2.0)), (math.log(2.05), math.log(200.0))]

    def log_prior(self, psi: FloatArray) -> tuple[float, FloatArray]:
        """log df ~ N(log 5, 1); of the squared scale, see `noise_prior`."""
        z = psi[1] - math.log(5.0)
        value, slope = noise_prior(2.0 * float(psi[0]))
        return value - 0.5 * z * z, np.array([2.0 * slope, -z])

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """const - (df + 1)/2 E log(1 + z^2), where z = (y - f) / a is normal too and a^2 = df scale^2."""
        df = math.exp(psi[1])
        width = df * math.exp(2.0 * psi[0])
        residual = y - mean[:, 0]
        square, spread = residual**2 / width, variance[:, 0] / width
        log_tail, by_square, by_spread = expected_log_tail(square, spread)
        value = self._constant(psi) - 0.5 * (df + 1.0) * log_tail
        d_mean = (df + 1.0) / width * by_square * residual
        d_variance = -0.5 * (df + 1.0) / width * by_spread
        by_psi = no_params(y)
        if with_params:
            by_scale = (df + 1.0) * (square * by_square + spread * by_spread) - 1.0
            constant = 0.5 * df * (digamma(0.5 * (df + 1.0)) - digamma(0.5 * df))
            by_psi = np.stack([by_scale, constant + 0.5 * (by_scale - df * log_tail)], axis=1)
        return Expectation(value, column(d_mean), column(d_variance), by_psi)

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Student-t log density."""
        df = math.exp(psi[1])
        z = (y - f[..., 0]) * math.exp(-psi[0])
        out: FloatArray = self._constant(psi) - 0.5 * (df + 1.0) * np.log1p(z * z / df)
        return out

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """That of Student's t."""
        out: FloatArray = stdtr(math.exp(psi[1]), (y - f[..., 0]) * math.exp(-psi[0]))
        return out

    def log_tails(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Student's t, which is symmetric."""
        z, df = (y - f[..., 0]) * math.exp(-psi[0]), math.exp(psi[1])
        tail = np.maximum(stdtr(df, -np.abs(z)), 1e-300)
        small, large = np.log(tail), np.log1p(-tail)
        return np.where(z < 0, small, large), np.where(z < 0, large, small)

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """One over the scale."""
        return np.full_like(mean[..., 0], math.exp(-psi[0]))

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Student-t draws."""
        noise = rng.standard_t(math.exp(psi[1]), f.shape[:-1])
        out: FloatArray = f[..., 0] + math.exp(psi[0]) * noise
        return out

    def conditional_moments(self, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """f and scale^2 df / (df - 2)."""
        df = math.exp(psi[1])
        return f[..., 0], np.full_like(f[..., 0], math.exp(2.0 * psi[0]) * df / (df - 2.0))

    def predictive(
        self,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> PredictiveDistribution:
        """A mixture of Gaussians over the precision of the noise."""
        noise, df = (math.exp(part) for part in psi)
        spreads, log_weights = precisions(df)
        sizes, total = noise**2 * spreads, noise**2 * df / (df - 2.0)
        return gaussian_noise_mixture(
            mean[..., 0],
            variance[..., 0],
            lambda rows: sizes,
            log_weights,
            total,
            centre=centre,
            scale=scale,
        )

    @staticmethod
    def _constant(psi: FloatArray) -> float:
        df = math.exp(psi[1])
        gammas = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df)
        return float(gammas - 0.5 * (psi[1] + math.log(math.pi)) - psi[0])


def precisions(df: float) -> tuple[FloatArray, FloatArray]:
    """Student's t as a mixture of Gaussians about 0: their variances and log weights, (`N_PRECISIONS`,) each.

    With G gamma of shape df / 2, (df / 2) / G is the variance. The trapezoid rule in log G has small steps
    where the mass is, and long ones from there to Gaussians of sd `FAR_SD`, so that what lies
    absurdly far away has the density of Student's t too (to .002 nats up to df 10, to .5 at df 50): log G is
    smooth in the number k of a point.
    """
    high, low = (math.log(gammaincinv(0.5 * df, p)) for p in (1.0 - 1e-12, 1e-12))
    far = min(math.log(0.5 * df) - 2.0 * math.log(FAR_SD), low)
    last = N_PRECISIONS - 1
    k = np.arange(N_PRECISIONS, dtype=np.float64)
    step = min((high - low) / _NEAR_POINTS, (high - far) / last)
    bend = (k - _NEAR_POINTS) / _BEND
    beyond = _BEND * np.logaddexp(0.0, bend)
    longer = (high - far - step * last) / beyond[-1]
    x = high - step * k - longer * beyond
    log_weights = 0.5 * df * x - np.exp(x) + np.log(step + longer * expit(bend))
    return 0.5 * df * np.exp(-x), log_weights - logsumexp(log_weights)


_STEP = 0.4
_LOG_RATE = np.arange(-42.0, 3.7, _STEP)
_RATE = np.exp(_LOG_RATE)
_SHARE = _STEP * np.exp(-_RATE)
_BLOCK = 128  # rows whose points fit into the processor's nearest memory


def expected_log_tail(square: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """E log(1 + z^2) for z ~ N(m, v), given m^2 and v >= 0 (N,), and its derivatives by both: (N,) each.

    Frullani's integral, log(1 + z^2) = integral of (1 - e^{-s z^2}) e^{-s} d log s, leaves an expectation
    that is known: E e^{-s z^2} = q^{1/2} e^{-s q m^2}, q = 1 / (1 + 2 s v). The trapezoid rule in log s
    converges geometrically whatever v is, where Gauss-Hermite points would miss a narrow peak: error about
    1e-9, for m^2 and v up to 1e9, and beyond it stays finite and increasing.
    """
    out = np.empty((3, len(square)))
    for start in range(0, len(square), _BLOCK):
        rows = slice(start, start + _BLOCK)
        q = 1.0 / (1.0 + 2.0 * spread[rows, None] * _RATE)
        rate = _RATE * q
        exponent = rate * square[rows, None]
        gone = np.sqrt(q) * np.exp(-exponent)
        out[0, rows] = _SHARE.sum() - gone @ _SHARE
        gone *= rate
        out[1, rows] = gone @ _SHARE
        out[2, rows] = out[1, rows] - 2.0 * ((gone * exponent) @ _SHARE)
    return out[0], out[1], out[2]
