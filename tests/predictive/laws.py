"""The laws of y of the Gaussian processes' likelihoods, by their parameters in plain words."""

from __future__ import annotations

import numpy as np

from nongauss.sparse_gp import likelihoods


def law(likelihood, *parameters, **units):
    """A function of latent mean and variance, (N,) or (K, N), that gives the law of y."""
    psi = np.log(np.array(parameters, dtype=float))
    return lambda mean, variance: likelihood().predictive(mean[..., None], variance[..., None], psi, **units)


def gaussian(**units):
    return law(likelihoods.Gaussian, 0.3, **units)


def laplace(**units):
    return law(likelihoods.Laplace, 0.4, **units)


def student_t(**units):
    return law(likelihoods.StudentT, 0.4, 3.5, **units)


exponential = law(likelihoods.Exponential)
poisson = law(likelihoods.Poisson)


def gamma(shape):
    return law(likelihoods.Gamma, shape)


def beta(precision):
    return law(likelihoods.Beta, precision)


def negative_binomial(dispersion):
    return law(likelihoods.NegativeBinomial, dispersion)
