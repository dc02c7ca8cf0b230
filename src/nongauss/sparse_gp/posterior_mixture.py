"""q(u) as a mixture of Gaussians: what one Gaussian cannot say (Bui and Turner 2014, section 3.2).

The components are isotropic where the best single Gaussian N(m, S) is standard normal: with S_l = R_l R_l',

    e_l = m_l + R_l z_l,      q(z) = (1/C) sum_c N(z; a_c, s_c^2 I),      z = (z_1, ..., z_L), D = M L numbers

so that one component at a = 0, s = 1 is that Gaussian. The bound is

    F = (1/C) sum_c sum_n w_n E_{N(mu_cn, v_cn)}[log p(y_n | f_n)] + (1/C) sum_c E_c[log p(e)] + H
    mu_cn = c + k_n' L^-T (m + R a_c)          v_cn = k_nn - k_n' L^-T (I - s_c^2 S) L^-1 k_n

with a lower bound of the mixture's entropy for H. Hyper-parameters stay where the single Gaussian left them.
The components start where q converges from random draws of the prior: at several modes, if there are several.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from nongauss.optimise import loop
from nongauss.optimise.course import FitResult, Rule, Run, Status
from nongauss.optimise.lbfgs import lbfgs
from nongauss.prob.mixture_entropy import pairwise_entropy
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.objective import SMALLEST_VARIANCE, QAtSites, spread_factor
from nongauss.sparse_gp.params import GaussianSites, KernelBlocks
from nongauss.sparse_gp.updates import converge_q

LOG_SD_BOUND = 3.0
"""MixtureComponents are at most e^3 times as wide or as narrow as the single Gaussian."""

DRAWS = 4
"""Draws of the prior from which q converges, for each component."""

SEARCH_TOL, SEARCH_STEPS = 1e-4, 20
"""In the search for modes: nats a row below which a step of the sites is not worth another; most steps."""

OTHER_MODE = 1.0
"""Distance, in standard deviations of the single Gaussian, from which a converged mean is another mode."""


class MixtureComponents(NamedTuple):
    """a (C, L, M) and log s (C,)."""

    mean: FloatArray
    log_sd: FloatArray

    def flat(self) -> FloatArray:
        """All numbers in one vector, for an optimiser."""
        return np.concatenate([self.mean.ravel(), self.log_sd])

    def like(self, flat: FloatArray) -> MixtureComponents:
        """The inverse of `flat`."""
        return MixtureComponents(flat[: self.mean.size].reshape(self.mean.shape), flat[self.mean.size :])


class MixtureBound:
    """Value and gradient of the bound at a flat vector of `MixtureComponents`."""

    def __init__(self, blocks: KernelBlocks, q: QAtSites, n_components: int) -> None:
        self.blocks, self.q = blocks, q
        shape = (n_components, len(q.latents), len(blocks.params.Z))
        self.components = MixtureComponents(np.zeros(shape), np.zeros(n_components))
        self.roots = [cholesky(latent.covariance, lower=True, check_finite=False) for latent in q.latents]
        self._known: list[tuple[slice, int, FloatArray, FloatArray]] = (
            list(self._made()) if blocks.kept else []
        )

    def __call__(self, flat: FloatArray) -> tuple[float, FloatArray, float]:
        """(F, its gradient, F)."""
        at = self.components.like(flat)
        value, by_mean, by_log_sd = self._prior_and_entropy(at)
        mean, variance, spread = self._moments(at)
        model, rows = self.blocks.model, self.blocks.rows
        share = 1.0 / len(at.log_sd)
        pull = np.empty_like(mean)
        for c in range(len(at.log_sd)):
            of = model.likelihood.expected_log_prob(rows.y, mean[c], variance[c], self.blocks.params.psi)
            value += share * float(rows.weight @ of.value)
            pull[c] = share * rows.weight[:, None] * of.d_mean
            widened = 2.0 * np.exp(2.0 * at.log_sd[c]) * spread * of.d_variance
            by_log_sd[c] += share * float(rows.weight @ widened.sum(axis=1))
        for part, l, B, _ in self._bases():
            by_mean[:, l] += pull[:, part, l] @ B.T
        return value, MixtureComponents(by_mean, by_log_sd).flat(), value

    def factors(self, at: MixtureComponents) -> tuple[FloatArray, FloatArray]:
        """What a prediction needs: alpha (C, L, M) and W (C, L, M, M) of each component."""
        whitened = self._whitened(at)
        alpha, W = np.empty_like(at.mean), np.empty((*at.mean.shape, at.mean.shape[-1]))
        for l, own in enumerate(self.blocks.model.kernel_of):
            inverse = self.blocks.inducing[own].inverse
            alpha[:, l] = whitened[:, l] @ inverse
            for c, log_sd in enumerate(at.log_sd):
                W[c, l] = spread_factor(inverse, math.exp(2.0 * log_sd) * self.q.latents[l].covariance)
        return alpha, W

    def standardised(self, other: QAtSites) -> FloatArray:
        """The mean of another q as a component's a (L, M)."""
        return np.stack(
            [
                solve_triangular(root, its.mean - mine.mean, lower=True, check_finite=False)
                for root, its, mine in zip(self.roots, other.latents, self.q.latents, strict=True)
            ]
        )

    def _whitened(self, at: MixtureComponents) -> FloatArray:
        """m + R a, the means of e: (C, L, M)."""
        return np.stack(
            [q.mean + at.mean[:, l] @ self.roots[l].T for l, q in enumerate(self.q.latents)], axis=1
        )

    def _prior_and_entropy(self, at: MixtureComponents) -> tuple[float, FloatArray, FloatArray]:
        """(1/C) sum_c E_c[log p(e)] + H with its derivatives by a and log s."""
        n_components = len(at.log_sd)
        traces = sum(q.covariance.trace() for q in self.q.latents)
        log_det = sum(float(np.log(root.diagonal()).sum()) for root in self.roots)
        whitened, square = self._whitened(at), np.exp(2.0 * at.log_sd)
        size = at.mean[0].size
        value = -0.5 * float((whitened**2).sum() + traces * square.sum()) / n_components
        value += log_det - 0.5 * size * math.log(2.0 * math.pi)
        entropy, by_mean, by_log_sd = pairwise_entropy(at.mean.reshape(n_components, size), at.log_sd)
        by_mean = by_mean.reshape(at.mean.shape)
        for l, root in enumerate(self.roots):
            by_mean[:, l] -= whitened[:, l] @ root / n_components
        return value + entropy, by_mean, by_log_sd - traces * square / n_components

    def _moments(self, at: MixtureComponents) -> tuple[FloatArray, FloatArray, FloatArray]:
        """mu and v (C, N, L), and the part of v (N, L) that grows with s^2."""
        model, rows = self.blocks.model, self.blocks.rows
        shape = (len(at.log_sd), len(rows.y), len(self.roots))
        mean, variance = np.empty(shape), np.empty(shape)
        spread = np.empty(shape[1:])
        for part, l, B, residual in self._bases():
            mean[:, part, l] = self.q.centred[part, l] + at.mean[:, l] @ B
            spread[part, l] = np.einsum("mn,mn->n", B, B)
            variance[:, part, l] = residual + np.exp(2.0 * at.log_sd)[:, None] * spread[part, l]
        return mean + model.centre(rows.shift), variance, spread

    def _bases(self) -> Iterator[tuple[slice, int, FloatArray, FloatArray]]:
        """(rows, latent function, B, k_nn - |L^-1 k_n|^2) with B = R' L^-1 K_zx; kept where they fit."""
        return iter(self._known) if self._known else self._made()

    def _made(self) -> Iterator[tuple[slice, int, FloatArray, FloatArray]]:
        for part, bases in self.blocks:
            for l, own in enumerate(self.blocks.model.kernel_of):
                at = bases[own]
                A = self.blocks.inducing[own].inverse @ at.K
                residual = at.diagonal - np.einsum("mn,mn->n", A, A)
                yield part, l, self.roots[l].T @ A, np.maximum(residual, SMALLEST_VARIANCE * at.diagonal)


def fit_mixture(
    blocks: KernelBlocks,
    q: QAtSites,
    former: FitResult,
    n_components: int,
    seed: int,
    run: Run,
    rule: Rule,
) -> tuple[FitResult, FloatArray, FloatArray]:
    """Maximise the mixture's bound from the best Gaussian `q`: result, alpha (C, L, M), W (C, L, M, M).

    The result goes on from `former`. If no mixture is better, the components coincide at `q`.
    """
    bound = MixtureBound(blocks, q, n_components)
    apart = MixtureComponents(modes(bound, seed), bound.components.log_sd)
    limits = [(None, None)] * apart.mean.size + [(-LOG_SD_BOUND, LOG_SD_BOUND)] * n_components
    result = loop.run(lbfgs(bound, limits), apart.flat(), run, rule, name="mixture", former=former)
    stopped = result.status is Status.STOPPED
    if not result.trace or result.trace[-1]["bound"] < q.bound:
        former = replace(former, status=result.status) if stopped else former
        return former, *bound.factors(bound.components)
    if not (former.status.converged or stopped):
        result = replace(result, status=former.status)
    return result, *bound.factors(bound.components.like(result.state))


def modes(bound: MixtureBound, seed: int) -> FloatArray:
    """Where the components start, a (C, L, M): the best distinct means that q converges at, a hair apart."""
    rng = np.random.default_rng(seed)
    n_components, n_latent, size = bound.components.mean.shape
    found = [bound.q]
    means = [np.zeros((n_latent, size))]
    for _ in range(DRAWS * n_components):
        converged = _converged_from(bound.blocks, rng.normal(size=(n_latent, size)))
        if converged is None:
            continue
        mean = bound.standardised(converged)
        if min(np.linalg.norm(mean - other) for other in means) > OTHER_MODE:
            found.append(converged)
            means.append(mean)
    order = np.argsort([-converged.bound for converged in found], kind="stable")
    chosen = np.stack([means[order[c % len(order)]] for c in range(n_components)])
    return chosen + rng.normal(scale=0.1 / math.sqrt(size), size=chosen.shape)


def _converged_from(blocks: KernelBlocks, draw: FloatArray) -> QAtSites | None:
    """q converged from a draw e (L, M) of the prior, as if each row had shown its f with variance 1."""
    weight = blocks.rows.weight[:, None]
    f = np.empty((len(weight), len(draw)))
    for part, bases in blocks:
        for l, own in enumerate(blocks.model.kernel_of):
            f[part, l] = (draw[l] @ blocks.inducing[own].inverse) @ bases[own].K
    try:
        converged = converge_q(
            blocks, GaussianSites(weight * f, weight + np.zeros_like(f)), SEARCH_TOL, SEARCH_STEPS
        )
    except np.linalg.LinAlgError:
        return None
    return converged if np.isfinite(converged.bound) else None
