"""How y depends on the latent function, one class for each kind of target."""

from __future__ import annotations

from nongauss.sparse_gp.likelihoods.base import Expectation, Likelihood
from nongauss.sparse_gp.likelihoods.count import NegativeBinomial, Poisson
from nongauss.sparse_gp.likelihoods.custom import Custom
from nongauss.sparse_gp.likelihoods.label import Bernoulli, Multinomial, Ordinal
from nongauss.sparse_gp.likelihoods.positive import Beta, Exponential, Gamma
from nongauss.sparse_gp.likelihoods.real import Gaussian, HeteroscedasticGaussian, Laplace, StudentT

__all__ = [
    "REGRESSION",
    "Bernoulli",
    "Beta",
    "Custom",
    "Expectation",
    "Exponential",
    "Gamma",
    "Gaussian",
    "HeteroscedasticGaussian",
    "Laplace",
    "Likelihood",
    "Multinomial",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "StudentT",
]

_REAL = (Gaussian, HeteroscedasticGaussian, Laplace, StudentT)
_POSITIVE = (Exponential, Gamma, Beta)
_COUNT = (Poisson, NegativeBinomial)

REGRESSION: dict[str, type[Likelihood]] = {kind.name: kind for kind in (*_REAL, *_POSITIVE, *_COUNT)}
"""Likelihoods of regression by the name that a user gives."""
