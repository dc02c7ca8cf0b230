"""How q moves: conjugate-computation steps of the sites, each of which can only raise the bound.

A step of size 1 puts the sites where the expectations' derivatives say (Khan and Lin 2017; the natural
gradient of the bound). Where the bound would fall the step is halved. For Gaussian noise one step is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nongauss.sparse_gp.kernel import FloatArray
from nongauss.sparse_gp.likelihoods.base import Expectation
from nongauss.sparse_gp.objective import Basis, Latent, latent, moments, weighted_gram
from nongauss.sparse_gp.params import Model, Rows

MOST_STEPS = 5
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
    """W K of each latent function."""
    expectation: Expectation
    bound: float


def first_sites(model: Model, rows: Rows, psi: FloatArray) -> Sites:
    """Sites from each row's own target alone."""
    mean, variance = model.likelihood.first_moments(rows.y, model.offset + rows.shift[:, None])
    expectation = model.likelihood.expect(rows.y, mean, variance, psi)
    return _new_sites(mean - model.offset - rows.shift[:, None], expectation, rows.weight)


def settle(
    model: Model, bases: tuple[Basis, ...], rows: Rows, psi: FloatArray, sites: Sites, tol: float,
    most_steps: int = MOST_STEPS,
) -> Settled:  # fmt: skip
    """Move the sites until a step gains less than `tol` nats a unit of weight. LinAlgError if the first q fails."""
    if model.likelihood.conjugate:
        return evaluate(model, bases, rows, psi, first_sites(model, rows, psi))
    best = evaluate(model, bases, rows, psi, sites)
    enough = tol * rows.weight.sum()
    for _ in range(most_steps):
        target = _new_sites(best.centred, best.expectation, rows.weight)
        better = _improved(model, bases, rows, psi, best, target)
        gain = better.bound - best.bound
        best = better
        if gain < enough:
            break
    return best


def _improved(
    model: Model, bases: tuple[Basis, ...], rows: Rows, psi: FloatArray, best: Settled, target: Sites
) -> Settled:
    """The first of the steps 1, 1/2, 1/4, ... that raises the bound, or where we are."""
    step = 1.0
    for _ in range(MOST_HALVINGS):
        try:
            trial = evaluate(model, bases, rows, psi, best.sites.towards(target, step))
        except np.linalg.LinAlgError:
            trial = best
        if trial.bound > best.bound:
            return trial
        step *= 0.5
    return best


def evaluate(model: Model, bases: tuple[Basis, ...], rows: Rows, psi: FloatArray, sites: Sites) -> Settled:
    """q at these sites, and the bound there."""
    latents, products = [], []
    mean, variance = np.empty_like(sites.linear), np.empty_like(sites.linear)
    for l, own in enumerate(model.kernel_of):
        at = bases[own]
        q = latent(at.inverse, weighted_gram(at.K, sites.precision[:, l]), at.K @ sites.linear[:, l])
        mean[:, l], variance[:, l], WK = moments(at, q)
        latents.append(q)
        products.append(WK)
    total = mean + (model.offset + rows.shift[:, None])
    expectation = model.likelihood.expect(rows.y, total, variance, psi, with_params=True)
    bound = float(rows.weight @ expectation.value) - sum(q.divergence for q in latents)
    return Settled(sites, tuple(latents), mean, tuple(products), expectation, bound)


def _new_sites(centred: FloatArray, expectation: Expectation, weight: FloatArray) -> Sites:
    precision = -2.0 * weight[:, None] * expectation.d_variance
    return Sites(weight[:, None] * expectation.d_mean + precision * centred, precision)
