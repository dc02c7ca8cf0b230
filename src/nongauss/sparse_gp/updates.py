"""How q moves: conjugate-computation steps of the sites, each of which can only raise the bound.

A step of size 1 puts the sites where the expectations' derivatives say (Khan and Lin 2017; the natural
gradient of the bound). Where the bound would fall the step is halved. For Gaussian noise one step is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from nongauss.sparse_gp.blocks import Blocks
from nongauss.sparse_gp.kernels.algebra import FloatArray
from nongauss.sparse_gp.likelihoods.base import Expectation
from nongauss.sparse_gp.objective import Latent, latent, moments, weighted_gram
from nongauss.sparse_gp.params import Model, Rows

MOST_STEPS = 3
MOST_HALVINGS = 6


class Sites(NamedTuple):
    """lambda and beta (N, L), weights included: observations of c + lambda / beta with precision beta."""

    linear: FloatArray
    precision: FloatArray

    def towards(self, other: Sites, step: float) -> Sites:
        """Part of the way to other sites."""
        return Sites(*(mine + step * (its - mine) for mine, its in zip(self, other, strict=True)))


class Settled(NamedTuple):
    """q at some sites, and what the bound and its derivatives need."""

    sites: Sites
    latents: tuple[Latent, ...]
    centred: FloatArray
    """mu - c (N, L), without the rows' shift."""
    products: tuple[list[FloatArray], ...]
    """W K of each block and latent function where these are kept, else empty."""
    expectation: Expectation
    bound: float


def first_sites(model: Model, rows: Rows, psi: FloatArray) -> Sites:
    """Sites from each row's own target alone; none is negative, so that there is a q to begin with."""
    centre = model.offset + rows.shift[:, None]
    mean, variance = model.likelihood.first_moments(rows.y, centre)
    of = model.likelihood.expect(rows.y, mean, variance, psi)
    return new_sites(mean - centre, of._replace(d_variance=np.minimum(of.d_variance, 0.0)), rows.weight)


def settle(blocks: Blocks, sites: Sites, tol: float, most_steps: int = MOST_STEPS) -> Settled:
    """Move the sites until a step gains less than `tol` nats a unit of weight. May raise LinAlgError."""
    model, rows = blocks.model, blocks.rows
    if model.likelihood.conjugate:
        return evaluate(blocks, first_sites(model, rows, blocks.params.psi))

    def steps_from(best: Settled) -> Callable[[float], Settled]:
        target = new_sites(best.centred, best.expectation, rows.weight)
        return lambda step: evaluate(blocks, best.sites.towards(target, step))

    enough = tol * rows.weight.sum()
    return climb(evaluate(blocks, sites), steps_from, model.likelihood.first_step, enough, most_steps)


class HasBound(Protocol):
    """A q and its bound."""

    @property
    def bound(self) -> float:
        """In nats."""


Q = TypeVar("Q", bound=HasBound)


def climb(
    best: Q, steps_from: Callable[[Q], Callable[[float], Q]], first_step: float, enough: float, most: int
) -> Q:
    """At most so many steps, `steps_from(q)(size)`, until one gains less than `enough` nats."""
    for _ in range(most):
        better = _stepped(best, steps_from(best), first_step, enough)
        gain = better.bound - best.bound
        best = better
        if gain < enough:
            break
    return best


def _stepped(best: Q, at: Callable[[float], Q], step: float, enough: float) -> Q:
    """The first of the steps 1, 1/2, 1/4, ... of `step` that raises the bound, or where we are.

    A fall of less than `enough` is not worth a shorter step: we are there.
    """
    for _ in range(MOST_HALVINGS):
        try:
            trial = at(step)
        except np.linalg.LinAlgError:
            trial = None
        if trial is not None and trial.bound > best.bound - enough:
            return trial if trial.bound > best.bound else best
        step *= 0.5
    return best


def evaluate(blocks: Blocks, sites: Sites) -> Settled:
    """q at these sites, and the bound there: one pass for q, one for the moments."""
    model, rows = blocks.model, blocks.rows
    grams, linears = _sums(blocks, sites)
    latents = [
        latent(blocks.inducing[own].inverse, gram, linear)
        for own, gram, linear in zip(model.kernel_of, grams, linears, strict=True)
    ]
    centred, variance = np.empty_like(sites.linear), np.empty_like(sites.linear)
    products: list[list[FloatArray]] = []
    for part, bases in blocks:
        made = []
        for l, own in enumerate(model.kernel_of):
            centred[part, l], variance[part, l], WK = moments(bases[own], latents[l])
            made.append(WK)
        if blocks.keeps_products:
            products.append(made)
    mean = centred + (model.offset + rows.shift[:, None])
    expectation = model.likelihood.expect(rows.y, mean, variance, blocks.params.psi, with_params=True)
    bound = float(rows.weight @ expectation.value) - sum(q.divergence for q in latents)
    return Settled(sites, tuple(latents), centred, tuple(products), expectation, bound)


def _sums(blocks: Blocks, sites: Sites) -> tuple[list[FloatArray], list[FloatArray]]:
    """K diag(beta) K' and K lambda of each latent function, summed over all rows."""
    size, kernel_of = len(blocks.params.Z), blocks.model.kernel_of
    grams = [np.zeros((size, size)) for _ in kernel_of]
    linears = [np.zeros(size) for _ in kernel_of]
    for part, bases in blocks:
        for l, own in enumerate(kernel_of):
            grams[l] += weighted_gram(bases[own].K, sites.precision[part, l])
            linears[l] += bases[own].K @ sites.linear[part, l]
    return grams, linears


def new_sites(centred: FloatArray, expectation: Expectation, weight: FloatArray) -> Sites:
    """Where the expectations' derivatives put the sites of rows with mu - c = `centred` (N, L)."""
    precision = -2.0 * weight[:, None] * expectation.d_variance
    return Sites(weight[:, None] * expectation.d_mean + precision * centred, precision)
