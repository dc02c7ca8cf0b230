"""Heavier tails than the model's: y's deviation from a member's mean times sqrt(g), g random with mean 1.

With g an inverse gamma variable, 1/g ~ Gamma(df / 2), a Gaussian deviation becomes a Student t one of df
degrees of freedom and the same variance. A few values of g stand for the density of log g (the trapezoid
rule, exact to 1e-3 for df <= 10), so that mixtures of Gaussians stay mixtures of Gaussians.

What is kept is an average over the degrees of freedom by their probability given rows that members did not
train on: a hundred rows can say that one in a hundred is no outlier, not that one in a thousand is none.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64
from scipy.special import logsumexp

from nongauss.core.records import persistable

DEGREES = (math.inf, 10.0, 6.0, 4.0, 3.0)
"""Degrees of freedom that are weighed; infinitely many are the model's own tails."""

_STEP = 0.75
_LOG_VARIANCES = _STEP * np.arange(-2, 8)  # 0 is among them: it is where no factor is at work


@persistable("tggm.Tails")
class Tails(NamedTuple):
    """A factor g of squared deviations: its values (Q,), their probabilities (Q,), and the likeliest df.

    The mean of g is 1.
    """

    degrees: float
    variances: Float64[np.ndarray, " Q"]
    weights: Float64[np.ndarray, " Q"]


MODEL_TAILS = Tails(math.inf, np.ones(1), np.ones(1))
"""No factor: the tails are those of the model."""


def student_weights(degrees: float) -> Float64[np.ndarray, " Q"]:
    """Probabilities of the values of g, with rate = df / 2 - 1: p(log g) ~ g^(-df/2) exp(-rate / g)."""
    if math.isinf(degrees):
        return np.where(_LOG_VARIANCES == 0.0, 1.0, 0.0)
    terms = -0.5 * degrees * _LOG_VARIANCES - (0.5 * degrees - 1.0) * np.exp(-_LOG_VARIANCES)
    weights: Float64[np.ndarray, " Q"] = np.exp(terms - logsumexp(terms))
    return weights


def candidate_variances() -> Float64[np.ndarray, " Q"]:
    """The values of g."""
    values: Float64[np.ndarray, " Q"] = np.exp(_LOG_VARIANCES)
    return values


def log_likelihoods(
    scores: Float[np.ndarray, "Q R"], weight: Float[np.ndarray, " R"]
) -> Float64[np.ndarray, " C"]:
    """Log-likelihood of each of `DEGREES` from the log density of R held-out rows at each value of g."""
    with np.errstate(divide="ignore"):
        logs = [np.log(student_weights(degrees)) for degrees in DEGREES]
    return np.array([weight @ logsumexp(scores + log[:, None], axis=0) for log in logs])


def averaged(found: Float[np.ndarray, " C"]) -> Tails:
    """The average over `DEGREES` by their probability, all alike before the rows were seen."""
    shares = np.exp(found - logsumexp(found))
    weights = shares @ np.stack([student_weights(degrees) for degrees in DEGREES])
    variances = candidate_variances()
    kept = weights > 1e-12
    weights, variances = weights[kept] / weights[kept].sum(), variances[kept]
    return Tails(DEGREES[int(np.argmax(found))], variances / (weights @ variances), weights)
