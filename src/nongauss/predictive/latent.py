"""Laws of single likelihoods, until the likelihoods say these formulas themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import (
    betainc,
    betaln,
    expit,
    gammainc,
    gammaincc,
    gammaincinv,
    gammaln,
    logsumexp,
    xlog1py,
    xlogy,
)

from nongauss.predictive.distribution import FloatArray, PredictiveDistribution
from nongauss.predictive.law import (
    LaplaceNoiseDistribution,
    LatentDistribution,
    gaussian_noise_mixture,
    normal_points,
)
from nongauss.predictive.rowwise import bounded_exp

_REACH = 9.0
_NO_PSI = np.zeros(0)


@dataclass(frozen=True)
class Family:
    """A `Conditional` from functions of f (...), without parameters."""

    support: str
    log_prob_: Callable[[FloatArray, FloatArray], FloatArray]
    cdf_: Callable[[FloatArray, FloatArray], FloatArray]
    draw_: Callable[[FloatArray, np.random.Generator], FloatArray]
    moments_: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
    sharpness_: Callable[[FloatArray, FloatArray], FloatArray]

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """As `Conditional`."""
        return self.log_prob_(y, f[..., 0])

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """As `Conditional`."""
        return self.cdf_(y, f[..., 0])

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """As `Conditional`."""
        return self.draw_(f[..., 0], rng)

    def moments(
        self, mean: FloatArray, variance: FloatArray, psi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """As `Conditional`."""
        return self.moments_(mean[..., 0], variance[..., 0])

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """As `Conditional`."""
        return self.sharpness_(mean[..., 0], sd[..., 0])


def gaussian_predictive(
    mean: FloatArray, variance: FloatArray, centre: float = 0.0, scale: float = 1.0
) -> PredictiveDistribution:
    """y ~ N(mean, variance), noise included, in original units centre + scale * y."""
    return gaussian_noise_mixture(
        mean, variance, lambda rows: np.zeros(1), np.zeros(1), 0.0, centre=centre, scale=scale
    )


def heteroscedastic_predictive(
    mean: FloatArray, variance: FloatArray, centre: float = 0.0, scale: float = 1.0
) -> PredictiveDistribution:
    """y ~ N(f_1, e^{2 f_2}) for independent normal f_1, f_2: moments (..., N, 2). Integrated over f_2."""
    m, v = (np.asarray(part).reshape(-1, *np.shape(part)[-2:]) for part in (mean, variance))
    z, weight = normal_points(49)

    def noise(rows: slice) -> FloatArray:
        return bounded_exp(2.0 * (m[:, rows, 1, None] + np.sqrt(v[:, rows, 1, None]) * z))

    total = bounded_exp(2.0 * (m[..., 1] + v[..., 1]))
    return gaussian_noise_mixture(m[..., 0], v[..., 0], noise, weight, total, centre=centre, scale=scale)


def student_t_predictive(
    mean: FloatArray, variance: FloatArray, noise: float, df: float, centre: float = 0.0, scale: float = 1.0
) -> PredictiveDistribution:
    """y = f + noise * t(df): a mixture of Gaussians over the noise's precision, which is gamma; df > 2."""
    low, high = (math.log(gammaincinv(0.5 * df, p)) for p in (1e-12, 1.0 - 1e-12))
    x = np.linspace(low, high, 129)
    weight = 0.5 * df * x - np.exp(x)
    spreads = noise**2 * 0.5 * df * np.exp(-x)
    total = noise**2 * df / (df - 2.0)
    return gaussian_noise_mixture(
        mean, variance, lambda rows: spreads, weight - logsumexp(weight), total, centre=centre, scale=scale
    )


def laplace_predictive(
    mean: FloatArray, variance: FloatArray, b: float, centre: float = 0.0, scale: float = 1.0
) -> PredictiveDistribution:
    """y = f + Laplace(b), in closed form. Of `scale` only the size matters to the noise."""
    return LaplaceNoiseDistribution(mean, variance, b, centre=centre, scale=scale)


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
    return LatentDistribution(family, _NO_PSI, mean, variance)


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
    return LatentDistribution(family, _NO_PSI, mean, variance)


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
    return LatentDistribution(family, _NO_PSI, mean, variance)


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
    return LatentDistribution(family, _NO_PSI, mean, variance)
