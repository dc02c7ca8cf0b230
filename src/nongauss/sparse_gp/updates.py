"""How a model moves: q by steps of its sites, each of which can only raise the bound, the rest by gradients.

q: conjugate-computation steps. A step of size 1 puts the sites where the expectations' derivatives say (Khan
and Lin 2017; the natural gradient of the bound). Where the bound would fall the step is halved. For Gaussian
noise one step is exact. All else: the gradient of the bound where q has converged, for L-BFGS.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float

from nongauss.sparse_gp.buffers import product
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.every_row import NoDigits, RowKernels, by_row_kernels, row_bound_at, row_mean_at
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.objective import (
    LatentQ,
    QAtSites,
    bound_at,
    by_inducing,
    by_rows,
    exact_evidence,
    log_prior,
    mean_at,
)
from nongauss.sparse_gp.params import (
    INPUT_UNIT,
    Basis,
    GaussianSites,
    GPModel,
    GPParams,
    KernelBlocks,
    first_sites,
    pull_back_inducing,
    sites_at,
)

MOST_STEPS = 3
"""Steps of the sites at each evaluation of the bound."""

MOST_HALVINGS = 6

CLOSE_TOL = 3e-5
"""Nats a row below which a step of the sites is not worth another while the rest still moves."""

LAST_TOL, LAST_STEPS = 1e-9, 50
"""For the q that predicts: nats a row below which a step is not worth another, and the most steps."""


def q_at(kernels: KernelBlocks | RowKernels, sites: GaussianSites) -> QAtSites:
    """q at some sites, and the bound there."""
    return row_bound_at(kernels, sites) if isinstance(kernels, RowKernels) else bound_at(kernels, sites)


def converge_q(
    blocks: KernelBlocks | RowKernels, sites: GaussianSites, tol: float, most_steps: int = MOST_STEPS
) -> QAtSites:
    """Move the sites until a step gains less than `tol` nats a unit of weight. May raise LinAlgError."""
    model, rows = blocks.model, blocks.rows
    if model.likelihood.conjugate:
        return q_at(blocks, first_sites(model, rows, blocks.params.psi))

    def steps_from(best: QAtSites) -> Callable[[float], QAtSites]:
        way = _mean_first(blocks, best)
        if way is None:
            way = partial(best.sites.towards, sites_at(best.centred, best.expectation, rows.weight))
        return lambda step: q_at(blocks, way(step))

    enough = tol * rows.weight.sum()
    return climb(_q_to_begin_with(blocks, sites), steps_from, model.likelihood.first_step, enough, most_steps)


def _q_to_begin_with(kernels: KernelBlocks | RowKernels, sites: GaussianSites) -> QAtSites:
    """q at these sites; without negative precisions, where these leave no density at other parameters."""
    try:
        return q_at(kernels, sites)
    except NoDigits:
        raise
    except np.linalg.LinAlgError:
        if not (sites.precision < 0).any():
            raise
        return q_at(kernels, sites._replace(precision=np.maximum(sites.precision, 0.0)))


def _mean_first(blocks: KernelBlocks | RowKernels, at: QAtSites) -> Callable[[float], GaussianSites] | None:
    """Sites of a step t that moves the mean of q by precisions b of its own, or None where there are none.

    With q's mean mu - c = K' K_zz^-1 K a, a = lambda - beta (mu - c), the mean mu* that sites (b (y - c), b)
    give has a* = b (y - mu*). Here a goes there by t, beta to -2 w h by t, and lambda = a + beta (mu - c). So
    the mean moves along a rise of a quadratic below the bound whatever beta does, which a step of lambda may
    not: from the start of step data it fell, and the fit ended where it began.
    """
    model, rows = blocks.model, blocks.rows
    mean = at.centred + model.centre(rows.shift)
    found = model.likelihood.mean_precision(rows.y, mean, at.expectation)
    if found is None:
        return None
    own = rows.weight[:, None] * found
    residual = rows.y[:, None] - model.centre(rows.shift)
    at_goal = GaussianSites(own * residual, own)
    goal = row_mean_at(blocks, at_goal) if isinstance(blocks, RowKernels) else mean_at(blocks, at_goal)
    start, end = at.sites.linear - at.sites.precision * at.centred, own * (residual - goal)
    target = GaussianSites(end, -2.0 * rows.weight[:, None] * at.expectation.d_variance)

    def way(step: float) -> GaussianSites:
        pull, precision = GaussianSites(start, at.sites.precision).towards(target, step)
        centred = at.centred + step * (goal - at.centred)
        return GaussianSites(pull + precision * centred, precision)

    return way


@runtime_checkable
class HasBound(Protocol):
    """A q and its bound."""

    @property
    def bound(self) -> float:
        """The lower bound on the log marginal likelihood, in nats."""


Q = TypeVar("Q", bound=HasBound)


def climb(
    best: Q, steps_from: Callable[[Q], Callable[[float], Q]], first_step: float, enough: float, most: int
) -> Q:
    """Take at most `most` steps, `steps_from(q)(size)`, until one gains less than `enough` nats."""
    for _ in range(most):
        better = _halved_until_better(best, steps_from(best), first_step, enough)
        gain = better.bound - best.bound
        best = better
        if gain < enough:
            break
    return best


def _halved_until_better(best: Q, at: Callable[[float], Q], step: float, enough: float) -> Q:
    """The first of the steps 1, 1/2, 1/4, ... of `step` that raises the bound, or else `best` itself.

    A fall of less than `enough` is not worth a shorter step: q has converged.
    """
    for _ in range(MOST_HALVINGS):
        try:
            trial = at(step)
        except NoDigits:
            raise
        except np.linalg.LinAlgError:
            trial = None
        if trial is not None and trial.bound > best.bound - enough:
            return trial if trial.bound > best.bound else best
        step *= 0.5
    return best


class SitesSoFar(NamedTuple):
    """What evaluations of an objective hand on: the last sites, and the best value with its sites."""

    sites: GaussianSites
    best: float
    best_sites: GaussianSites


class HyperObjective:
    """Bound plus log prior at a flat vector of parameters, with its gradient. Remembers the last sites.

    `moves_inputs`: do inducing inputs move? `is_exact`: are they the rows, so that q is that of the process
    itself? `sites` are the first ones, if they are known. Sites are replaced, never changed.
    """

    def __init__(
        self,
        model: GPModel,
        rows: GPRows,
        params: GPParams,
        moves_inputs: bool,
        is_exact: bool,
        sites: GaussianSites | None = None,
    ) -> None:
        self.model, self.rows, self.params = model, rows, params
        self.moves_inputs, self.is_exact = moves_inputs, is_exact
        self.sites: GaussianSites = first_sites(model, rows, params.psi) if sites is None else sites
        self.best, self.best_sites = -np.inf, self.sites

    def __call__(self, flat: Float[np.ndarray, " P"]) -> tuple[float, Float[np.ndarray, " P"], float]:
        """(objective, gradient, F)."""
        params = self.params.like(flat)
        prior, prior_thetas, prior_psi = log_prior(self.model, params)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.is_exact and self.model.likelihood.conjugate:
                at = exact_evidence(self.model, params, self.rows)
                bound, by_psi = at.value, at.by_psi
                by_thetas, by_Z = [at.by_theta], np.zeros_like(params.Z)
            else:
                most = MOST_STEPS if np.isfinite(self.best) else LAST_STEPS  # sites that know nothing yet
                blocks, q = self.converged(params, CLOSE_TOL, most)
                bound, by_psi = q.bound, self._by_psi(params, q)
                if isinstance(blocks, RowKernels):
                    by_thetas, by_Z = by_row_kernels(blocks, q), np.zeros_like(params.Z)
                else:
                    by_thetas, by_Z = self._sparse(blocks, q)
        if bound + prior > self.best:
            self.best, self.best_sites = bound + prior, self.sites
        else:
            self.sites = self.best_sites  # those of a step too far lead nowhere
        gradient = [by + more for by, more in zip(by_thetas, prior_thetas, strict=True)]
        inputs = INPUT_UNIT * by_Z.ravel() if self.moves_inputs else np.zeros(0)
        return bound + prior, np.concatenate([*gradient, by_psi + prior_psi, inputs]), bound

    def snapshot(self) -> SitesSoFar:
        """What it remembers."""
        return SitesSoFar(self.sites, float(self.best), self.best_sites)

    def restore(self, at: SitesSoFar) -> None:
        """Remember what another objective of this model did."""
        self.sites, self.best, self.best_sites = at

    def converged(
        self, params: GPParams, tol: float, most_steps: int = MOST_STEPS
    ) -> tuple[KernelBlocks | RowKernels, QAtSites]:
        """Kernel matrices and q at these parameters, from the sites of the last evaluation.

        By matrices between rows if `is_exact`, unless these have too few digits.
        """
        blocks: KernelBlocks | RowKernels
        try:
            made = RowKernels if self.is_exact else KernelBlocks
            blocks = made(self.model, params, self.rows)
            q = converge_q(blocks, self.sites, tol, most_steps)
        except NoDigits:
            blocks = KernelBlocks(self.model, params, self.rows)
            q = converge_q(blocks, self.sites, tol, most_steps)
        if np.isfinite(q.bound):
            self.sites = q.sites
        return blocks, q

    def at_rest(self, params: GPParams) -> tuple[KernelBlocks | RowKernels, QAtSites]:
        """What predicts: q at the best parameters that were seen, from the sites of then."""
        self.sites = self.best_sites
        return self.converged(params, LAST_TOL, LAST_STEPS)

    def _by_psi(self, params: GPParams, q: QAtSites) -> Float[np.ndarray, " K"]:
        """The derivatives of F by psi."""
        rows, likelihood = self.rows, self.model.likelihood
        mean = q.centred + self.model.centre(rows.shift)
        of = likelihood.expected_log_prob(rows.y, mean, q.variance, params.psi, with_params=True)
        out: FloatArray = rows.weight @ of.d_params
        return out

    def _sparse(
        self, blocks: KernelBlocks, q: QAtSites
    ) -> tuple[list[Float[np.ndarray, " T"]], Float[np.ndarray, "M D"]]:
        """The derivatives of F by thetas and Z: the partial ones, as q has converged."""
        model = self.model
        by_thetas, by_Z = _inducing_part(blocks, q)
        pull = q.sites.linear - q.sites.precision * q.centred
        for block, (part, bases) in enumerate(blocks):
            for number, (kernel, theta, at) in enumerate(
                zip(model.kernels, blocks.params.thetas, bases, strict=True)
            ):
                own = model.latents_of(number)
                latents = [q.latents[l] for l in own]
                root = blocks.inducing[number].inverse
                products = [
                    q.products[block][l] if q.products else spread_product(at, q.latents[l]) for l in own
                ]
                total = by_rows(
                    at, root, latents, products, pull[part][:, own], q.sites.precision[part][:, own]
                )
                by_theta, more = kernel.backward(theta, model.space, at.cache, total)
                half = -0.5 * q.sites.precision[part][:, own].sum(axis=1)
                by_thetas[number] += by_theta
                by_thetas[number] += kernel.diagonal_backward(theta, model.space, self.rows.X[part], half)
                by_Z += more
        return by_thetas, by_Z


def spread_product(at: Basis, q: LatentQ) -> Float[np.ndarray, "M N"]:
    """W K of one latent function, or S V where V is kept."""
    return product(q.W, at.K) if at.white is None else product(q.covariance, at.white)


def _inducing_part(
    blocks: KernelBlocks, q: QAtSites
) -> tuple[list[Float[np.ndarray, " T"]], Float[np.ndarray, "M D"]]:
    """The share of K_zz in the derivatives of F by thetas and Z."""
    model, params = blocks.model, blocks.params
    by_thetas, by_Z = [], np.zeros_like(params.Z)
    for number, (kernel, theta, at) in enumerate(
        zip(model.kernels, params.thetas, blocks.inducing, strict=True)
    ):
        total = by_inducing(at, [q.latents[l] for l in model.latents_of(number)])
        by_theta, more = pull_back_inducing(kernel, theta, model.space, at, total, params.Z)
        by_thetas.append(by_theta)
        by_Z += more
    return by_thetas, by_Z
