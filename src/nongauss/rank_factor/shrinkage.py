r"""Three-parameter-beta shrinkage of coefficients c (D, K), one global scale a column: bounds and draws.

    c_ik ~ N(0, xi_ik),  xi_ik ~ Ga(r, eta_ik),  eta_ik ~ Ga(s, phi_k),  phi_k ~ Ga(1/2, t),  t ~ Ga(1/2, 1)

Gammas have shape and rate. r = s = 1/2 is the horseshoe.
"""

from __future__ import annotations

import numpy as np

from nongauss.prob.gig import moments
from nongauss.rank_factor.config import ShrinkagePrior
from nongauss.rank_factor.data import FloatArray
from nongauss.rank_factor.objective import TINY
from nongauss.rank_factor.params import Shrinkage


def expected(now: Shrinkage, square: FloatArray, prior: ShrinkagePrior) -> Shrinkage:
    """One round of coordinate ascent on (B3), given the second moments of the coefficients (D, K).

    xi is generalised inverse Gaussian of order r - 1/2; eta ~ Ga(r + s, <xi> + phi);
    phi ~ Ga(1/2 + s D, t + sum of eta); t ~ Ga(1/2 + K / 2, 1 + sum of phi).
    """
    variance, precision = moments(prior.r - 0.5, 2.0 * now.rate, np.maximum(square, TINY))
    rate = (prior.r + prior.s) / (variance + now.scale)
    scale = (0.5 + prior.s * len(square)) / (now.hyper + rate.sum(axis=0))
    hyper = (0.5 + 0.5 * len(scale)) / (1.0 + scale.sum())
    return Shrinkage(precision, rate, scale, float(hyper))


def drawn(rng: np.random.Generator, now: Shrinkage, value: FloatArray, prior: ShrinkagePrior) -> Shrinkage:
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
