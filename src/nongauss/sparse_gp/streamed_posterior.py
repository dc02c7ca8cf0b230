"""q from all rows, wherever they are: each step is one sum over them, and nothing is kept with a row.

The sums that q is made of, V diag(beta) V' and V lambda with V = L^-1 K, are linear in the sites. So the sums
after a damped step are those before it and those of the sites that it is towards, in the step's proportion.
`updates.py` has the same steps with the sites kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrsm

from nongauss.optimise.checkpoint import Checkpoint, computed_once
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.objective import SMALLEST_VARIANCE, LatentQ, given_u, latent, weighted_gram
from nongauss.sparse_gp.params import (
    Basis,
    GaussianSites,
    GPModel,
    GPParams,
    bases_of,
    first_sites,
    inducing_of,
    row_slices,
    sites_at,
    whitened,
)
from nongauss.sparse_gp.updates import LAST_STEPS, LAST_TOL, climb
from nongauss.tables.source import Source, added


class SiteSums(NamedTuple):
    """Over some rows: w E[log p], w, and of their sites V diag(beta) V' (L, M, M) and V lambda (L, M)."""

    value: float
    weight: float
    grams: FloatArray
    linears: FloatArray

    def towards(self, other: SiteSums, step: float) -> SiteSums:
        """The sums of sites that are part of the way to those of `other`."""
        return self._replace(
            grams=self.grams + step * (other.grams - self.grams),
            linears=self.linears + step * (other.linears - self.linears),
        )


class StreamedQ(NamedTuple):
    """q, the sums it is made of, those of the sites that the next step is towards, and the bound."""

    latents: tuple[LatentQ, ...]
    own: SiteSums
    target: SiteSums
    bound: float


def converged_latents(
    source: Source, model: GPModel, params: GPParams, checkpoint: Checkpoint | None = None
) -> tuple[LatentQ, ...]:
    """The latent functions' q from all rows, converged at fixed parameters; each pass is kept on file.

    May raise LinAlgError.
    """
    number = count()
    inverses = np.stack([at.inverse for at in inducing_of(model, params)])

    def latents_of(sums: SiteSums) -> tuple[LatentQ, ...]:
        return tuple(
            latent(inverses[own], gram, linear, is_white=True)
            for own, gram, linear in zip(model.kernel_of, sums.grams, sums.linears, strict=True)
        )

    def at(own: SiteSums) -> StreamedQ:
        latents = latents_of(own)
        means = np.stack([q.mean for q in latents])
        roots = np.stack([cholesky(q.precision, lower=True, check_finite=False) for q in latents])
        found = partial(source.sum, next_sums, model, params, inverses, means, roots)
        target: SiteSums = computed_once(checkpoint, f"white pass {next(number)}", found, own)
        return StreamedQ(latents, own, target, target.value - sum(q.divergence for q in latents))

    n_latent, M = len(model.kernel_of), len(params.Z)
    like = SiteSums(0.0, 0.0, np.zeros((n_latent, M, M)), np.zeros((n_latent, M)))
    first: SiteSums = computed_once(
        checkpoint, "first white sites", partial(source.sum, first_sums, model, params, inverses), like
    )
    if model.likelihood.conjugate:
        return latents_of(first)

    def steps_from(best: StreamedQ) -> Callable[[float], StreamedQ]:
        return lambda step: at(best.own.towards(best.target, step))

    enough = LAST_TOL * first.weight
    return climb(at(first), steps_from, model.likelihood.first_step, enough, LAST_STEPS).latents


def first_sums(rows: GPRows, model: GPModel, params: GPParams, inverses: FloatArray) -> SiteSums | None:
    """The sums of sites that come from each row's own target alone; their value is left 0."""
    total = None
    for part, bases in _in_blocks(rows, model, params, inverses):
        sums = _sums_of(first_sites(model, part, params.psi), bases, model)
        total = _more(total, SiteSums(0.0, float(part.weight.sum()), *sums))
    return total


def next_sums(
    rows: GPRows,
    model: GPModel,
    params: GPParams,
    inverses: FloatArray,
    means: FloatArray,
    roots: FloatArray,
) -> SiteSums | None:
    """The value at q, given by m (L, M) and R (L, M, M), and the sums of the sites that it calls for.

    S^-1 = R R', so that v = k_nn - sum V^2 + sum (R^-1 V)^2.
    """
    total = None
    for part, bases in _in_blocks(rows, model, params, inverses):
        centred, variance = np.empty((2, len(part.y), len(means)))
        given = [given_u(at) for at in bases]
        for l, own in enumerate(model.kernel_of):
            V, least = bases[own].summed, SMALLEST_VARIANCE * bases[own].diagonal
            left = dtrsm(1.0, roots[l], V.T, side=1, lower=1, trans_a=1)
            centred[:, l] = V.T @ means[l]
            variance[:, l] = np.maximum(given[own] + np.einsum("nm,nm->n", left, left), least)
        mean = centred + model.centre(part.shift)
        expectation = model.likelihood.expected_log_prob(part.y, mean, variance, params.psi)
        sums = _sums_of(sites_at(centred, expectation, part.weight), bases, model)
        value = float(part.weight @ expectation.value)
        total = _more(total, SiteSums(value, float(part.weight.sum()), *sums))
    return total


def _more(total: SiteSums | None, sums: SiteSums) -> SiteSums:
    """`added` for sums of sites, of which there is one at least."""
    found: SiteSums = added(total, sums)
    return found


def _sums_of(sites: GaussianSites, bases: list[Basis], model: GPModel) -> tuple[FloatArray, FloatArray]:
    """V diag(beta) V' (L, M, M) and V lambda (L, M) of some rows."""
    of = [bases[own].summed for own in model.kernel_of]
    grams = [weighted_gram(V, sites.precision[:, l]) for l, V in enumerate(of)]
    return np.stack(grams), np.stack([V @ sites.linear[:, l] for l, V in enumerate(of)])


def _in_blocks(
    rows: GPRows, model: GPModel, params: GPParams, inverses: FloatArray
) -> Iterator[tuple[GPRows, list[Basis]]]:
    """The rows in blocks in float64, with one Basis a kernel, which keeps V by L^-1 (kernels, M, M)."""
    for place in row_slices(len(rows.y), len(params.Z)):
        part = rows.take(place).in_float64()
        bases = bases_of(model, params, part.X)
        yield part, [whitened(at, inverse) for at, inverse in zip(bases, inverses, strict=True)]
