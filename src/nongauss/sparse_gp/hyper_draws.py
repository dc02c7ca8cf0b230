"""How sure the hyper-parameters are: a normal about the best ones, by the curvature there (Laplace 1774).

The negative Hessian of the objective by log parameters, inducing inputs held, from differences of its
gradient. Where it says less than the prior, the prior's precision is taken: no direction is wider than it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from nongauss.core.records import persistable
from nongauss.sparse_gp.kernels import PRIOR_SD, FloatArray
from nongauss.sparse_gp.params import WIDEST, GPModel, GPParams
from nongauss.sparse_gp.updates import HyperObjective

N_DRAWS = 4
"""Draws of hyper-parameters whose predictions are averaged: with eight .006 nats more, at twice the price."""

_STEP = 0.02  # of differences of the gradient, in log parameters: q is converged to so much; to one side,
# as log densities of new rows were the same to four digits by differences to both


@persistable("sparse_gp.HyperParameters")
class HyperParameters(NamedTuple):
    """Log parameters of the kernels, then those of the likelihood, by name: mean (P,), covariance (P, P)."""

    names: tuple[str, ...]
    mean: FloatArray
    covariance: FloatArray

    def draws(self, n: int, rng: np.random.Generator) -> FloatArray:
        """n draws (n, P)."""
        root = np.linalg.cholesky(self.covariance)
        out: FloatArray = self.mean + rng.standard_normal((n, len(self.mean))) @ root.T
        return out


def hyper_parameters(bound: HyperObjective, params: GPParams) -> HyperParameters:
    """The normal about the best parameters of an objective."""
    flat = params.flat(bound.moves_inputs)
    names = names_of(bound.model)
    size = len(names)
    hessian = np.empty((size, size))
    here = bound(flat)[1][:size]
    for k in range(size):
        moved = flat.copy()
        moved[k] += _STEP
        hessian[k] = (bound(moved)[1][:size] - here) / _STEP
    values, vectors = eigh(-0.5 * (hessian + hessian.T))
    values = np.maximum(values, PRIOR_SD**-2)
    return HyperParameters(names, flat[:size], (vectors / values) @ vectors.T)


def names_of(model: GPModel) -> tuple[str, ...]:
    """A name for each log parameter of a model, as in `kernel_params_` and `likelihood_params_`."""
    names: list[str] = []
    for number, kernel in enumerate(model.kernels):
        prefix = model.likelihood.latent_names[model.latents_of(number)[0]]
        names += [prefix + label for label in kernel.labels(model.space)]
    own = model.likelihood.fitted.param_names
    n_psi = len(model.likelihood.bounds())
    return (*names, *(own if len(own) == n_psi else [f"psi {k + 1}" for k in range(n_psi)]))


def nearby(bound: HyperObjective, params: GPParams, at: HyperParameters) -> list[GPParams]:
    """Parameters that are drawn from the normal, with their mirror images, within the objective's box."""
    half = np.random.default_rng(0).standard_normal((N_DRAWS // 2, len(at.mean)))
    moved = at.mean + np.concatenate([half, -half]) @ np.linalg.cholesky(at.covariance).T
    limits = [(-WIDEST, WIDEST)] * sum(bound.model.sizes) + bound.model.likelihood.bounds()
    moved = np.clip(moved, *np.array(limits).T)
    flat = params.flat(bound.moves_inputs)
    return [params.like(np.concatenate([own, flat[len(own) :]])) for own in moved]
