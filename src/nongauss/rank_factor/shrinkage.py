r"""Three-parameter-beta shrinkage of coefficients c (D, K), one global scale a column: bounds and draws.

    c_ik ~ N(0, xi_ik),  xi_ik ~ Ga(r, eta_ik),  eta_ik ~ Ga(s, phi_k),  phi_k ~ Ga(1/2, t),  t ~ Ga(1/2, 1)

Gammas have shape and rate. r = s = 1/2 is the horseshoe.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from nongauss.core.records import persistable
from nongauss.prob.gig import log_integral, moments

FloatArray = NDArray[np.float64]

TINY = 1e-10
"""Least square of a coefficient: the prior has a pole at zero, where a draw would stay."""


@persistable("rank_factor.Prior", "nongauss.rank_factor.shrinkage:Prior")
class Prior(NamedTuple):
    """Shapes r of the local variances and s of their rates: the shrinkage factor's near 1 and near 0."""

    r: float = 0.5
    s: float = 0.5


class Shrinkage(NamedTuple):
    """Expectations (or draws): precision <1/xi> (D, K), rate <eta> (D, K), scale <phi> (K,), hyper <t>."""

    precision: FloatArray
    rate: FloatArray
    scale: FloatArray
    hyper: float


def start(shape: tuple[int, int]) -> Shrinkage:
    """Everything at 1."""
    return Shrinkage(np.ones(shape), np.ones(shape), np.ones(shape[1]), 1.0)


def expect(now: Shrinkage, square: FloatArray, prior: Prior) -> Shrinkage:
    """One round of coordinate ascent, given the second moments of the coefficients (D, K)."""
    variance, precision = moments(prior.r - 0.5, 2.0 * now.rate, np.maximum(square, TINY))
    rate = (prior.r + prior.s) / (variance + now.scale)
    scale = (0.5 + prior.s * len(square)) / (now.hyper + rate.sum(axis=0))
    hyper = (0.5 + 0.5 * len(scale)) / (1.0 + scale.sum())
    return Shrinkage(precision, rate, scale, float(hyper))


def bound(now: Shrinkage, square: FloatArray, prior: Prior) -> float:
    """The part of the evidence bound that holds the coefficients' prior, with xi, then eta, phi, t at their
    best.

    E log p(c | xi) + E log p(xi | eta) and so on, minus the logs of their own q, which follow from `now`.
    """
    r, s = prior
    variance, _ = moments(r - 0.5, 2.0 * now.rate, np.maximum(square, TINY))
    shape_e, rate_e = r + s, variance + now.scale
    shape_p, rate_p = 0.5 + s * len(square), now.hyper + now.rate.sum(axis=0)
    shape_t, rate_t = 0.5 + 0.5 * len(now.scale), 1.0 + now.scale.sum()
    log_e, log_p, log_t = (
        digamma(shape_e) - np.log(rate_e),
        digamma(shape_p) - np.log(rate_p),
        digamma(shape_t) - np.log(rate_t),
    )
    eta, phi, t = shape_e / rate_e, shape_p / rate_p, shape_t / rate_t
    local = log_integral(r - 0.5, 2.0 * now.rate, np.maximum(square, TINY)) + (now.rate - eta) * variance
    terms = (local - 0.5 * np.log(2.0 * np.pi) + r * log_e - gammaln(r)).sum()
    terms += (s * log_p + (s - 1.0) * log_e - phi * eta - gammaln(s)).sum()
    terms += (0.5 * log_t - 0.5 * log_p - t * phi - gammaln(0.5)).sum()
    terms += -0.5 * log_t - t - gammaln(0.5)
    return float(terms + _entropy(shape_e, rate_e) + _entropy(shape_p, rate_p) + _entropy(shape_t, rate_t))


def draw(rng: np.random.Generator, now: Shrinkage, value: FloatArray, prior: Prior) -> Shrinkage:
    """One Gibbs draw given the coefficients `value` (D, K).

    The variance xi is a Beta-prime variable times phi. Seen as xi | k ~ inverse Ga(s, k), k ~ Ga(r, 1/phi),
    its conditionals are gammas for every r and s; phi is then drawn with a fresh eta given xi, as the model
    is written. Both views have the same p(xi | phi).
    """
    r, s = prior
    kappa = rng.gamma(r + s, 1.0, value.shape) / (now.precision + 1.0 / now.scale)
    rate_of_precision = kappa + np.maximum(0.5 * value**2, TINY)
    precision = np.maximum(rng.gamma(s + 0.5, 1.0, value.shape), 1e-30) / rate_of_precision
    rate = rng.gamma(r + s, 1.0, value.shape) / (1.0 / precision + now.scale)
    scale = rng.gamma(0.5 + s * len(value), 1.0, value.shape[1]) / (now.hyper + rate.sum(axis=0))
    hyper = rng.gamma(0.5 + 0.5 * len(scale)) / (1.0 + scale.sum())
    return Shrinkage(precision, rate, np.maximum(scale, 1e-300), float(hyper))


def _entropy(shape: float, rate: FloatArray | float) -> float:
    """Entropy of gammas, summed."""
    each = shape - np.log(rate) + gammaln(shape) + (1.0 - shape) * digamma(shape)
    return float(np.sum(each))
