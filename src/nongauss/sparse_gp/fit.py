"""The recipe of a fit: inducing inputs, then L-BFGS on everything with q settled at each evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nongauss.core.contracts import Callback, FitResult
from nongauss.core.records import value
from nongauss.inference.quasi_newton import ascend
from nongauss.sparse_gp import exact
from nongauss.sparse_gp.inducing import inducing_inputs
from nongauss.sparse_gp.kernel import FloatArray
from nongauss.sparse_gp.objective import basis, cotangents, pull_back
from nongauss.sparse_gp.params import Model, Params, Rows, box, log_prior, start
from nongauss.sparse_gp.predict import Posterior
from nongauss.sparse_gp.updates import Settled, Sites, first_sites, settle

MOST_EXACT = 1000
"""Distinct rows up to which Gaussian noise is treated exactly by default."""

SETTLE_TOL = 1e-5
"""Nats a row below which a step of the sites is not worth another."""


@value
class Recipe:
    """How a model is fitted; see the parameters of `SparseGPRegressor`."""

    n_inducing: int
    max_iter: int
    tol: float
    seed: int


class Bound:
    """Value and gradient of bound plus log prior at a flat vector of parameters. Remembers the last sites."""

    def __init__(self, model: Model, rows: Rows, params: Params, moves_inputs: bool, is_exact: bool) -> None:
        self.model, self.rows, self.params = model, rows, params
        self.moves_inputs, self.is_exact = moves_inputs, is_exact
        self.sites: Sites = first_sites(model, rows, params.psi)

    def __call__(self, flat: FloatArray) -> tuple[float, FloatArray, Mapping[str, float]]:
        """(objective, gradient, {"bound": F})."""
        params = self.params.like(flat)
        prior, prior_thetas, prior_psi = log_prior(self.model, params)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.is_exact:
                at = exact.evidence(self.model, params, self.rows)
                bound, by_psi = at.value, at.by_psi
                by_thetas, by_Z = [at.by_theta], np.zeros_like(params.Z)
            else:
                bound, by_thetas, by_psi, by_Z = self._sparse(params)
        gradient = [by + more for by, more in zip(by_thetas, prior_thetas, strict=True)]
        inputs = by_Z.ravel() if self.moves_inputs else np.zeros(0)
        return bound + prior, np.concatenate([*gradient, by_psi + prior_psi, inputs]), {"bound": bound}

    def settled(self, params: Params, tol: float, most_steps: int = 5) -> tuple[tuple, Settled]:
        """Kernel matrices and q at these parameters."""
        bases = tuple(
            basis(kernel, theta, self.model.space, params.Z, self.rows.X)
            for kernel, theta in zip(self.model.kernels, params.thetas, strict=True)
        )
        settled = settle(self.model, bases, self.rows, params.psi, self.sites, tol, most_steps)
        if np.isfinite(settled.bound):
            self.sites = settled.sites
        return bases, settled

    def _sparse(self, params: Params) -> tuple[float, list[FloatArray], FloatArray, FloatArray]:
        model = self.model
        bases, q = self.settled(params, SETTLE_TOL)
        by_thetas, by_Z = [], np.zeros_like(params.Z)
        for number, (kernel, theta, at) in enumerate(zip(model.kernels, params.thetas, bases, strict=True)):
            parts = []
            for l in model.latents_of(number):
                linear, precision = q.sites.linear[:, l], q.sites.precision[:, l]
                pull = linear - precision * q.centred[:, l]
                parts.append(cotangents(at, q.latents[l], q.products[l], pull, precision))
            total = type(parts[0])(*(sum(part[1:], start=part[0]) for part in zip(*parts, strict=True)))
            by_theta, more = pull_back(kernel, theta, model.space, at, total, params.Z, self.rows.X)
            by_thetas.append(by_theta)
            by_Z = by_Z + more
        return q.bound, by_thetas, self.rows.weight @ q.expectation.d_params, by_Z


def fit(
    model: Model,
    rows: Rows,
    psi: FloatArray,
    recipe: Recipe,
    *,
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
) -> tuple[FitResult, Posterior]:
    """Maximise the bound: the optimiser's result, and the posterior at the best parameters."""
    Z = inducing_inputs(rows.X, recipe.n_inducing, recipe.seed)
    everywhere = len(Z) <= recipe.n_inducing and len(Z) == len(np.unique(rows.X, axis=0))
    is_exact = everywhere and model.likelihood.conjugate
    params = start(model, psi, rows.X if is_exact else Z)
    bound = Bound(model, rows, params, not everywhere, is_exact)
    result = ascend(
        bound,
        params.flat(not everywhere),
        box(model, 0 if everywhere else Z.size),
        max_iter=recipe.max_iter,
        tol=recipe.tol * rows.weight.sum(),
        callbacks=callbacks,
        verbose=verbose,
    )
    return result, posterior(bound, params.like(result.state))


def posterior(bound: Bound, params: Params) -> Posterior:
    """What predicts, at these parameters."""
    model = bound.model
    parts = (model.kernels, model.kernel_of, model.space, model.likelihood, model.offset, *params)
    if bound.is_exact:
        at = exact.evidence(model, params, bound.rows)
        return Posterior(*parts, at.alpha[None], at.W[None])
    _, q = bound.settled(params, 1e-9, 50)
    alpha, W = (np.stack(part) for part in zip(*((q.alpha, q.W) for q in q.latents), strict=True))
    return Posterior(*parts, alpha, W)
