"""The recipe of a fit: inducing inputs, then L-BFGS on everything with q settled at each evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from nongauss.core.memory import keep_freed_memory
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.lbfgs import ascend
from nongauss.optimise.result import Callback, FitResult, Status
from nongauss.sparse_gp import exact
from nongauss.sparse_gp import streamed_posterior as passes
from nongauss.sparse_gp.blocks import KEPT_NUMBERS, Blocks
from nongauss.sparse_gp.inducing import are_all_rows, inducing_inputs
from nongauss.sparse_gp.kernels.algebra import FloatArray
from nongauss.sparse_gp.objective import Latent, by_inducing, by_rows, pull_back_inducing
from nongauss.sparse_gp.params import INPUT_UNIT, Model, Params, Rows, box, log_prior, start
from nongauss.sparse_gp.posterior_mixture import fit_mixture
from nongauss.sparse_gp.predict import Posterior
from nongauss.sparse_gp.updates import MOST_STEPS, Settled, Sites, first_sites, settle
from nongauss.tables.source import Source, Stream

MOST_EXACT = 1000
"""Distinct rows up to which Gaussian noise is treated exactly by default."""

WORTH_THREADS = 5e8
"""N M^2 from which matrix products gain from several threads; below, these mostly wait for each other."""

SETTLE_TOL = 3e-5
"""Nats a row below which a step of the sites is not worth another."""


class Recipe(NamedTuple):
    """How a model is fitted; see the parameters of `SparseGPRegressor`."""

    n_inducing: int
    max_iter: int
    tol: float
    seed: int
    n_components: int = 1


class Bound:
    """Value and gradient of bound plus log prior at a flat vector of parameters. Remembers the last sites.

    Sites are replaced, never changed.
    """

    def __init__(self, model: Model, rows: Rows, params: Params, moves_inputs: bool, is_exact: bool) -> None:
        self.model, self.rows, self.params = model, rows, params
        self.moves_inputs, self.is_exact = moves_inputs, is_exact
        self.sites: Sites = first_sites(model, rows, params.psi)
        self.best, self.best_sites = -np.inf, self.sites

    def __call__(self, flat: FloatArray) -> tuple[float, FloatArray, float]:
        """(objective, gradient, F)."""
        params = self.params.like(flat)
        prior, prior_thetas, prior_psi = log_prior(self.model, params)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.is_exact:
                at = exact.evidence(self.model, params, self.rows)
                bound, by_psi = at.value, at.by_psi
                by_thetas, by_Z = [at.by_theta], np.zeros_like(params.Z)
            else:
                bound, by_thetas, by_psi, by_Z = self._sparse(params)
        if bound + prior > self.best:
            self.best, self.best_sites = bound + prior, self.sites
        gradient = [by + more for by, more in zip(by_thetas, prior_thetas, strict=True)]
        inputs = INPUT_UNIT * by_Z.ravel() if self.moves_inputs else np.zeros(0)
        return bound + prior, np.concatenate([*gradient, by_psi + prior_psi, inputs]), bound

    def snapshot(self) -> tuple[Sites, float, Sites]:
        """What it remembers."""
        return self.sites, float(self.best), self.best_sites

    def restore(self, at: tuple[Sites, float, Sites]) -> None:
        """Remember that."""
        self.sites, self.best, self.best_sites = at

    def settled(self, params: Params, tol: float, most_steps: int = MOST_STEPS) -> tuple[Blocks, Settled]:
        """Kernel matrices and q at these parameters."""
        blocks = Blocks(self.model, params, self.rows)
        settled = settle(blocks, self.sites, tol, most_steps)
        if np.isfinite(settled.bound):
            self.sites = settled.sites
        return blocks, settled

    def at_rest(self, params: Params) -> tuple[Blocks, Settled]:
        """`settled` at the best parameters that were seen, from the sites of then: what predicts."""
        self.sites = self.best_sites
        return self.settled(params, passes.TOL, passes.MOST_STEPS)

    def _sparse(self, params: Params) -> tuple[float, list[FloatArray], FloatArray, FloatArray]:
        """The bound, and its derivatives by thetas, psi and Z."""
        model = self.model
        blocks, q = self.settled(params, SETTLE_TOL)
        by_thetas, by_Z = _inducing_part(blocks, q)
        pull = q.sites.linear - q.sites.precision * q.centred
        for block, (part, bases) in enumerate(blocks):
            for number, (kernel, theta, at) in enumerate(
                zip(model.kernels, params.thetas, bases, strict=True)
            ):
                own = model.latents_of(number)
                latents = [q.latents[l] for l in own]
                products = [q.products[block][l] if q.products else q.latents[l].W @ at.K for l in own]
                total = by_rows(latents, products, pull[part][:, own], q.sites.precision[part][:, own])
                by_theta, more = kernel.backward(theta, model.space, at.cache, total)
                half = -0.5 * q.sites.precision[part][:, own].sum(axis=1)
                by_thetas[number] += by_theta
                by_thetas[number] += kernel.diagonal_backward(theta, model.space, self.rows.X[part], half)
                by_Z += more
        return q.bound, by_thetas, self.rows.weight @ q.expectation.d_params, by_Z


def _inducing_part(blocks: Blocks, q: Settled) -> tuple[list[FloatArray], FloatArray]:
    """The share of the inducing inputs' own kernel matrices in the derivatives by thetas and Z."""
    model, params = blocks.model, blocks.params
    by_thetas, by_Z = [], np.zeros_like(params.Z)
    for number, (kernel, theta, at) in enumerate(
        zip(model.kernels, params.thetas, blocks.inducing, strict=True)
    ):
        total = np.sum([by_inducing(at, q.latents[l]) for l in model.latents_of(number)], axis=0)
        by_theta, more = pull_back_inducing(kernel, theta, model.space, at, total, params.Z)
        by_thetas.append(by_theta)
        by_Z += more
    return by_thetas, by_Z


def fit(
    model: Model,
    rows: Rows,
    psi: FloatArray,
    recipe: Recipe,
    *,
    everywhere: Source | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> tuple[FitResult, Posterior]:
    """Maximise the bound: the optimiser's result, and the posterior at the best parameters.

    `everywhere` has all rows where there are more than `rows`, which all else is then learned from.
    """
    learned_from = sample(rows, min(recipe.n_inducing, len(rows.y)) * model.n_leaves)
    Z = inducing_inputs(learned_from.X, recipe.n_inducing, recipe.seed)
    fixed = are_all_rows(Z, learned_from.X)
    is_exact = fixed and model.likelihood.conjugate and learned_from is rows and everywhere is None
    params = start(model, psi, rows.X if is_exact else Z)
    small = len(learned_from.y) * len(Z) ** 2 < WORTH_THREADS
    keep_freed_memory()
    with threadpool_limits(limits=1 if small else None, user_api="blas"):
        bound = Bound(model, learned_from, params, not fixed, is_exact)
        result = ascend(
            bound, params.flat(not fixed), box(model, 0 if fixed else Z.size), max_iter=recipe.max_iter,
            tol=recipe.tol * learned_from.weight.sum(), callbacks=callbacks, checkpoint=checkpoint,
            verbose=verbose,
        )  # fmt: skip
        params = params.like(result.state)
        if recipe.n_components == 1 or model.likelihood.conjugate or result.status is Status.STOPPED:
            if everywhere is None and learned_from is rows:
                return result, posterior(bound, params)
            latents = passes.settled(everywhere or Stream([rows]), model, params, checkpoint)
            return result, _posterior(model, params, *_stacked(latents))
        if learned_from is not rows:
            bound = Bound(model, rows, params, moves_inputs=False, is_exact=False)
        blocks, q = bound.at_rest(params)
        result, alpha, W = fit_mixture(
            blocks, q, result, recipe.n_components, recipe.seed,
            max_iter=recipe.max_iter, tol=recipe.tol * rows.weight.sum(),
            callbacks=callbacks, checkpoint=checkpoint, verbose=verbose,
        )  # fmt: skip
        return result, _posterior(model, params, alpha, W)


def sample(rows: Rows, n_inducing: int) -> Rows:
    """Rows to learn hyper-parameters from: as many as can keep their kernel matrices.

    Rows are in an order by a hash of their content, so the first ones are a random sample.
    """
    most = most_rows(n_inducing)
    return rows if len(rows.y) <= most else rows.take(slice(most))


def most_rows(n_inducing: int) -> int:
    """How many rows can keep their kernel matrices."""
    return KEPT_NUMBERS // n_inducing


def posterior(bound: Bound, params: Params) -> Posterior:
    """What predicts, at these parameters."""
    if bound.is_exact:
        at = exact.evidence(bound.model, params, bound.rows)
        return _posterior(bound.model, params, at.alpha[None, None], at.W[None, None])
    return _posterior(bound.model, params, *_stacked(bound.at_rest(params)[1].latents))


def _stacked(latents: Sequence[Latent]) -> tuple[FloatArray, FloatArray]:
    """alpha (1, L, M) and W (1, L, M, M): one component."""
    return np.stack([q.alpha for q in latents])[None], np.stack([q.W for q in latents])[None]


def _posterior(model: Model, params: Params, alpha: FloatArray, W: FloatArray) -> Posterior:
    return Posterior(
        model.kernels, model.kernel_of, model.space, model.likelihood, model.offset, *params, alpha, W
    )
