"""q from all rows, wherever they are: each step is one sum over them, and nothing is kept with a row.

The sums that q is made of, K diag(beta) K' and K lambda, are linear in the sites. So the sums after a damped
step are those before it and those of the sites that it is towards, in the step's proportion. `updates.py` has
the same steps with the sites kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from nongauss.optimise.checkpoint import Checkpoint, kept
from nongauss.sparse_gp.blocks import row_slices
from nongauss.sparse_gp.kernels.algebra import FloatArray
from nongauss.sparse_gp.likelihoods.base import Expectation
from nongauss.sparse_gp.objective import Basis, Latent, basis, conditional, inducing, latent, weighted_gram
from nongauss.sparse_gp.params import Model, Params, Rows
from nongauss.sparse_gp.updates import Sites, climb, first_sites, new_sites
from nongauss.tables.source import Source, added

TOL, MOST_STEPS = 1e-9, 50
"""Nats a row below which a step is not worth another, and the most steps."""


class Sums(NamedTuple):
    """Over some rows: w E[log p], w, and of their sites K diag(beta) K' (L, M, M) and K lambda (L, M)."""

    value: float
    weight: float
    grams: FloatArray
    linears: FloatArray

    def towards(self, other: Sums, step: float) -> Sums:
        """The sums of sites that are part of the way to those of `other`."""
        return self._replace(
            grams=self.grams + step * (other.grams - self.grams),
            linears=self.linears + step * (other.linears - self.linears),
        )


class State(NamedTuple):
    """q, the sums it is made of, those of the sites that the next step is towards, and the bound."""

    latents: tuple[Latent, ...]
    own: Sums
    target: Sums
    bound: float


def settled(
    source: Source, model: Model, params: Params, checkpoint: Checkpoint | None = None
) -> tuple[Latent, ...]:
    """q at rest, at fixed parameters; each pass is kept. May raise LinAlgError."""
    inverses = [
        inducing(kernel, theta, model.space, params.Z).inverse
        for kernel, theta in zip(model.kernels, params.thetas, strict=True)
    ]

    def latents_of(sums: Sums) -> tuple[Latent, ...]:
        return tuple(
            latent(inverses[own], gram, linear)
            for own, gram, linear in zip(model.kernel_of, sums.grams, sums.linears, strict=True)
        )

    def at(own: Sums) -> State:
        latents = latents_of(own)
        alpha, W = np.stack([q.alpha for q in latents]), np.stack([q.W for q in latents])
        target: Sums = kept(checkpoint, partial(source.sum, next_sums, model, params, alpha, W), own)
        return State(latents, own, target, target.value - sum(q.divergence for q in latents))

    n_latent, M = len(model.kernel_of), len(params.Z)
    like = Sums(0.0, 0.0, np.zeros((n_latent, M, M)), np.zeros((n_latent, M)))
    first: Sums = kept(checkpoint, partial(source.sum, first_sums, model, params), like)
    if model.likelihood.conjugate:
        return latents_of(first)

    def steps_from(best: State) -> Callable[[float], State]:
        return lambda step: at(best.own.towards(best.target, step))

    enough = TOL * first.weight
    return climb(at(first), steps_from, model.likelihood.first_step, enough, MOST_STEPS).latents


def first_sums(rows: Rows, model: Model, params: Params) -> Sums | None:
    """The sums of sites that come from each row's own target alone; their value is left 0."""
    total = None
    for part, bases in _bases(rows, model, params):
        sums = _sums(first_sites(model, part, params.psi), bases, model)
        total = _more(total, Sums(0.0, float(part.weight.sum()), *sums))
    return total


def next_sums(rows: Rows, model: Model, params: Params, alpha: FloatArray, W: FloatArray) -> Sums | None:
    """The value at q, given by alpha (L, M) and W (L, M, M), and the sums of the sites that it calls for."""
    total = None
    for part, bases in _bases(rows, model, params):
        centred, variance = np.empty((2, len(part.y), len(alpha)))
        for l, own in enumerate(model.kernel_of):
            centred[:, l], variance[:, l], _ = conditional(bases[own], alpha[l], W[l])
        mean = centred + (model.offset + part.shift[:, None])
        expectation: Expectation = model.likelihood.expect(part.y, mean, variance, params.psi)
        sums = _sums(new_sites(centred, expectation, part.weight), bases, model)
        value = float(part.weight @ expectation.value)
        total = _more(total, Sums(value, float(part.weight.sum()), *sums))
    return total


def _more(total: Sums | None, sums: Sums) -> Sums:
    found: Sums = added(total, sums)
    return found


def _sums(sites: Sites, bases: list[Basis], model: Model) -> tuple[FloatArray, FloatArray]:
    grams = [weighted_gram(bases[own].K, sites.precision[:, l]) for l, own in enumerate(model.kernel_of)]
    linears = [bases[own].K @ sites.linear[:, l] for l, own in enumerate(model.kernel_of)]
    return np.stack(grams), np.stack(linears)


def _bases(rows: Rows, model: Model, params: Params) -> Iterator[tuple[Rows, list[Basis]]]:
    """The rows in blocks in float64, with one Basis a kernel."""
    for place in row_slices(len(rows.y), len(params.Z)):
        block = rows.take(place)
        part = Rows(*(array.astype(np.float64, copy=False) for array in block))
        yield (
            part,
            [
                basis(kernel, theta, model.space, params.Z, part.X)
                for kernel, theta in zip(model.kernels, params.thetas, strict=True)
            ],
        )
