"""Likelihoods of real, standardised targets with Gaussian noise, constant or varying."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtr

from nongauss.core.records import persistable
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.law import gaussian_noise_mixture, normal_points
from nongauss.predictive.rowwise import bounded_exp
from nongauss.sparse_gp.likelihoods.base import (
    Expectation,
    FloatArray,
    IntArray,
    Likelihood,
    capped_exp,
    column,
    no_params,
)

N_NOISES = 49
"""Gaussians of which a predictive law is a mixture: over varying noise."""

_LOG_2PI = math.log(2.0 * math.pi)
_NOISE_MEAN, _NOISE_SD = math.log(0.3), 2.0  # of the prior of log s^2
_LOG_FLOOR = math.log(1e-3)  # of a standard deviation, as a share of the target's


def noise_prior(log_share: float) -> tuple[float, float]:
    """log s^2 ~ N(log 0.3, 2^2) of the noise's share s^2 in the target's variance, and its derivative.

    A function that is rough beyond the rows' distances and noise are one to the data, and then it is noise
    for the greater part.
    """
    z = (log_share - _NOISE_MEAN) / _NOISE_SD
    return -0.5 * z * z, -z / _NOISE_SD


@persistable("sparse_gp.likelihoods.Gaussian", "nongauss.sparse_gp.likelihoods.real:Gaussian")
class Gaussian(Likelihood):
    """y ~ N(f, s^2); psi = (log s^2). Expectations are exact, and so is one step of the sites."""

    name = "gaussian"
    own_rules = ("closed_form",)
    point_rules = ("quadrature", "monte_carlo")
    conjugate = True
    target = "standardised"
    mean_is_latent = True
    param_names = ("noise_variance",)

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean 0, a tenth of the variance as noise."""
        return np.zeros(1), np.array([math.log(0.1)])

    def bounds(self) -> list[tuple[float, float]]:
        """Between 1e-6 and 4 times the target's variance."""
        return [(2.0 * _LOG_FLOOR, math.log(4.0))]

    def log_prior(self, psi: FloatArray) -> tuple[float, FloatArray]:
        """See `noise_prior`."""
        value, slope = noise_prior(float(psi[0]))
        return value, np.array([slope])

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """At the target."""
        return column(y), np.full((len(y), 1), 0.1)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """-log(2 pi s^2)/2 - ((y - m)^2 + v) / (2 s^2)."""
        precision = math.exp(-psi[0])
        residual = column(y) - mean
        square = precision * (residual**2 + variance)
        value = -0.5 * (_LOG_2PI + psi[0] + square[:, 0])
        by_psi = 0.5 * (square - 1.0) if with_params else no_params(y)
        return Expectation(value, precision * residual, np.full_like(mean, -0.5 * precision), by_psi)

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Normal log density."""
        out: FloatArray = -0.5 * (_LOG_2PI + psi[0] + math.exp(-psi[0]) * (y - f[..., 0]) ** 2)
        return out

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Normal."""
        out: FloatArray = ndtr((y - f[..., 0]) * math.exp(-0.5 * psi[0]))
        return out

    def log_tails(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Normal."""
        z = (y - f[..., 0]) * math.exp(-0.5 * psi[0])
        return log_ndtr(z), log_ndtr(-z)

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """1 / s."""
        return np.full_like(mean[..., 0], math.exp(-0.5 * psi[0]))

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Normal draws."""
        return rng.normal(f[..., 0], math.exp(0.5 * psi[0]))

    def conditional_moments(self, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """f and s^2."""
        return f[..., 0], np.full_like(f[..., 0], math.exp(psi[0]))

    def predictive(
        self,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> PredictiveDistribution:
        """N(m, v + s^2) in closed form, a mixture of such for several latent components."""
        noise = np.array([math.exp(psi[0])])
        return gaussian_noise_mixture(
            mean[..., 0], variance[..., 0], lambda rows: noise, np.zeros(1), noise, centre=centre, scale=scale
        )


@persistable(
    "sparse_gp.likelihoods.HeteroscedasticGaussian",
    "nongauss.sparse_gp.likelihoods.real:HeteroscedasticGaussian",
)
class HeteroscedasticGaussian(Likelihood):
    """y ~ N(f_1, exp(2 f_2)): the noise depends on the inputs. Expectations are exact."""

    name = "heteroscedastic"
    own_rules = ("closed_form",)
    point_rules = ("monte_carlo",)
    own_kernels = True
    target = "standardised"
    mean_is_latent = True

    @property
    def n_latent(self) -> int:
        """Mean and log standard deviation."""
        return 2

    @property
    def latent_names(self) -> tuple[str, ...]:
        """The second is of the noise."""
        return "", "noise "

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Noise of a tenth of the target's variance."""
        return np.array([0.0, 0.5 * math.log(0.1)]), np.zeros(0)

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The mean half way to the target, the noise at its start."""
        mean = np.array(offset)
        mean[:, 0] += 0.5 * (y - mean[:, 0])
        return mean, np.full_like(mean, 0.1)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """-log(2 pi)/2 - m_2 - ((y - m_1)^2 + v_1) exp(2 v_2 - 2 m_2) / 2."""
        precision, slope = capped_exp(2.0 * (variance[:, 1] - mean[:, 1]))
        residual = y - mean[:, 0]
        square = residual**2 + variance[:, 0]
        value = -0.5 * (_LOG_2PI + precision * square) - mean[:, 1]
        d_mean = np.stack([precision * residual, slope * square - 1.0], axis=1)
        return Expectation(value, d_mean, np.stack([-0.5 * precision, -slope * square], axis=1), no_params(y))

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Normal log density."""
        out: FloatArray = (
            -0.5 * (_LOG_2PI + (y - f[..., 0]) ** 2 * capped_exp(-2.0 * f[..., 1])[0]) - f[..., 1]
        )
        return out

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Normal."""
        out: FloatArray = ndtr((y - f[..., 0]) * bounded_exp(-f[..., 1]))
        return out

    def log_tails(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Normal."""
        z = (y - f[..., 0]) * bounded_exp(-f[..., 1])
        return log_ndtr(z), log_ndtr(-z)

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """e^{-f_2} where the noise is small, of f_1."""
        return bounded_exp(2.0 * sd[..., 1] - mean[..., 1])

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Normal draws."""
        return rng.normal(f[..., 0], bounded_exp(f[..., 1]))

    def conditional_moments(self, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """f_1 and e^{2 f_2}."""
        return f[..., 0], bounded_exp(2.0 * f[..., 1])

    def predictive(
        self,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> PredictiveDistribution:
        """A mixture of Gaussians over the noise: f_1 in closed form, f_2 by the trapezoid rule."""
        m, v = (np.asarray(part).reshape(-1, *np.shape(part)[-2:]) for part in (mean, variance))
        z, weight = normal_points(N_NOISES)

        def noise(rows: IntArray) -> FloatArray:
            return bounded_exp(2.0 * (m[:, rows, 1, None] + np.sqrt(v[:, rows, 1, None]) * z))

        total = bounded_exp(2.0 * (m[..., 1] + v[..., 1]))  # E e^{2 f_2}
        return gaussian_noise_mixture(m[..., 0], v[..., 0], noise, weight, total, centre=centre, scale=scale)
