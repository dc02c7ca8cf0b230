"""How q moves: conjugate-computation steps of the sites, each of which can only raise the bound.

A step of size 1 puts the sites where the expectations' derivatives say (Khan and Lin 2017; the natural
gradient of the bound). Where the bound would fall the step is halved. For Gaussian noise one step is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nongauss.sparse_gp.blocks import Blocks
from nongauss.sparse_gp.kernel import FloatArray
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
    products: tuple[FloatArray, ...]
    """W K of each latent function, where the blocks are kept; else empty."""
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
    best = evaluate(blocks, sites)
    enough = tol * rows.weight.sum()
    for _ in range(most_steps):
        better = _stepped(blocks, best, enough)
        gain = better.bound - best.bound
        best = better
        if gain < enough:
            break
    return best


def _stepped(blocks: Blocks, best: Settled, enough: float) -> Settled:
    """The first of the steps 1, 1/2, 1/4, ... (of the likelihood's) that raises the bound, or where we are.

    A fall of less than `enough` is not worth a shorter step: we are there.
    """
    target = new_sites(best.centred, best.expectation, blocks.rows.weight)
    step = blocks.model.likelihood.first_step
    for _ in range(MOST_HALVINGS):
        try:
            trial = evaluate(blocks, best.sites.towards(target, step))
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
    products = []
    for part, bases in blocks:
        for l, own in enumerate(model.kernel_of):
            centred[part, l], variance[part, l], WK = moments(bases[own], latents[l])
            if blocks.kept:
                products.append(WK)
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
