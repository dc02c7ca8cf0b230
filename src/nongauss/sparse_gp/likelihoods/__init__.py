"""How y depends on the latent function, one class for each kind of target."""

from __future__ import annotations

from nongauss.sparse_gp.likelihoods.base import Expectation, Likelihood
from nongauss.sparse_gp.likelihoods.count import NegativeBinomial, Poisson
from nongauss.sparse_gp.likelihoods.custom import Custom
from nongauss.sparse_gp.likelihoods.heavy_tailed import Laplace, StudentT
from nongauss.sparse_gp.likelihoods.hurdle_counts import HurdleNegativeBinomial, HurdlePoisson
from nongauss.sparse_gp.likelihoods.interval import (
    Censored,
    Discretised,
    DiscretisedStudentT,
    Truncated,
    check_censoring,
)
from nongauss.sparse_gp.likelihoods.label import Bernoulli, Multinomial, Ordinal
from nongauss.sparse_gp.likelihoods.masses import (
    HurdleGamma,
    HurdleLogNormal,
    ZeroInflatedNegativeBinomial,
    ZeroInflatedPoisson,
    ZeroOneBeta,
)
from nongauss.sparse_gp.likelihoods.ordinal_spread import VaryingOrdinal
from nongauss.sparse_gp.likelihoods.positive import Exponential, Gamma, LogNormal, Weibull
from nongauss.sparse_gp.likelihoods.real import Gaussian, HeteroscedasticGaussian
from nongauss.sparse_gp.likelihoods.share import Beta
from nongauss.sparse_gp.likelihoods.square import SquarePoisson
from nongauss.sparse_gp.likelihoods.trials import BetaBinomial, Binomial

__all__ = [
    "REGRESSION",
    "Bernoulli",
    "Beta",
    "BetaBinomial",
    "Binomial",
    "Censored",
    "Custom",
    "Discretised",
    "DiscretisedStudentT",
    "Expectation",
    "Exponential",
    "Gamma",
    "Gaussian",
    "HeteroscedasticGaussian",
    "HurdleGamma",
    "HurdleLogNormal",
    "HurdleNegativeBinomial",
    "HurdlePoisson",
    "Laplace",
    "Likelihood",
    "LogNormal",
    "Multinomial",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "SquarePoisson",
    "StudentT",
    "Truncated",
    "VaryingOrdinal",
    "Weibull",
    "ZeroInflatedNegativeBinomial",
    "ZeroInflatedPoisson",
    "ZeroOneBeta",
    "check_censoring",
]

_REAL = (Gaussian, HeteroscedasticGaussian, Laplace, StudentT)
_POSITIVE = (Exponential, Gamma, LogNormal, Weibull, HurdleGamma, HurdleLogNormal)
_SHARE = (Beta, ZeroOneBeta)
_WHOLE = (
    Poisson,
    NegativeBinomial,
    ZeroInflatedPoisson,
    ZeroInflatedNegativeBinomial,
    HurdlePoisson,
    HurdleNegativeBinomial,
    SquarePoisson,
    Binomial,
    BetaBinomial,
    Discretised,
    DiscretisedStudentT,
)

REGRESSION: dict[str, type[Likelihood]] = {kind.name: kind for kind in (*_REAL, *_POSITIVE, *_SHARE, *_WHOLE)}
"""Likelihoods of regression by the name that a user gives."""
