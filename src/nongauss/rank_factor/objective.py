r"""What is maximised: the evidence bound of the rank factors, term by term. The numbers stand in NOTATION.md.

    L =   sum_n w_n (-sum_h (u_h + <u_h^2>^{1/2})      (B1) hinges h of the ranks of row n, or pairs
                     - KL(q(z_n) || N(0, I)))          (B2) factors
        + E log p(A | xi) + .. - E log q(xi) ..        (B3) shrinkage of the loadings
        - slab E|A|^2 / 2                              (B4) their second prior
        + H[q(A)]                                      (B5) their entropy
        - sum_nc (u_nc + <u_nc^2>^{1/2})               (B6) labels, and (B3) and (B5) of the coefficients

A hinge exp(-2 [u]_+) is a mixture of normals over lambda, exp(-g u^2 / 2 - u) given g = 1/lambda; at the
best q(lambda) its expected logarithm is at least -(<u> + <u^2>^{1/2}). Under the rules "level" and
"extremes", and of values, a sweep reports (B1) and (B2): neighbours move with the factors, and no joint
density has them. Under "pairwise" it reports all of L, which never falls.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import digamma, gammaln

from nongauss.prob.gig import log_integral, moments
from nongauss.rank_factor.config import RankConfig, ShrinkagePrior
from nongauss.rank_factor.params import Normal, RankState, Shrinkage

TINY = 1e-10
"""Least square of a coefficient: the prior has a pole at zero, where a draw would stay."""


def hinge_loss(u: Float[np.ndarray, "*B"], second: Float[np.ndarray, "*B"]) -> Float[np.ndarray, "*B"]:
    """(B1), (B6): minus the bound of E log exp(-2 [u]_+), from <u> and <u^2>: u + <u^2>^{1/2}."""
    found: Float[np.ndarray, "*B"] = u + np.sqrt(second)
    return found


def rank_loss(
    u: Float[np.ndarray, "B D"], variance: Float[np.ndarray, "#B #D"], has: Bool[np.ndarray, "B D"]
) -> Float[np.ndarray, " B"]:
    """(B1): the loss of one side's hinges (B, D), where there is one, summed over cells of a row: (B,)."""
    each = np.where(has, hinge_loss(u, u * u + variance), u.dtype.type(0.0))
    total: Float[np.ndarray, " B"] = each.sum(axis=1, dtype=np.float64)
    return total


def value_loss(
    square: Float[np.ndarray, "B D"], present: Bool[np.ndarray, "B D"], noise: Float[np.ndarray, " D"]
) -> Float[np.ndarray, " B"]:
    """For observed values, in place of (B1): <(x - w)^2> / noise + log noise, over a row's cells: (B,).

    Twice the expected negative log density, without its constant. `square` (B, D) is <(x - w)^2>.
    """
    each = present / noise * square + present * np.log(noise)
    total: Float[np.ndarray, " B"] = each.sum(axis=1, dtype=np.float64)
    return total


def factor_divergence(z: Normal, weight: Float[np.ndarray, " N"]) -> float:
    """(B2): KL of the factors to N(0, I), summed over rows; of draws, the negative log density."""
    square = (z.mean**2).sum(axis=1) + np.einsum("nkk->n", z.covariance)
    sign, log_size = np.linalg.slogdet(z.covariance)
    known = sign <= 0
    K = z.mean.shape[1]
    kl = 0.5 * (square - np.where(known, 0.0, log_size + K))
    return float(weight @ kl)


def rows_bound(cell_loss: float, z: Normal, weight: Float[np.ndarray, " N"]) -> float:
    """(B1) + (B2), given the summed loss of the cells: what a sweep reports without a joint density."""
    return -cell_loss - factor_divergence(z, weight)


def shrinkage_bound(now: Shrinkage, square: Float[np.ndarray, "D K"], prior: ShrinkagePrior) -> float:
    """(B3), given second moments of coefficients (D, K), with xi, then eta, phi, t at their best.

    E log p(c | xi) + E log p(xi | eta) and so on, minus the logs of their own q, which follow from `now`.
    """
    r, s = prior.r, prior.s
    variance, _ = moments(r - 0.5, 2.0 * now.rate, np.maximum(square, TINY))
    shape_e, rate_e = r + s, variance + now.scale
    shape_p, rate_p = 0.5 + s * len(square), now.hyper + now.rate.sum(axis=0)
    shape_t, rate_t = 0.5 + 0.5 * len(now.scale), 1.0 + now.scale.sum()
    log_e = digamma(shape_e) - np.log(rate_e)
    log_p = digamma(shape_p) - np.log(rate_p)
    log_t = digamma(shape_t) - np.log(rate_t)
    eta, phi, t = shape_e / rate_e, shape_p / rate_p, shape_t / rate_t
    # q(xi) is generalised inverse Gaussian; its log integral is E log p(c | xi) p(xi | eta) + H[q(xi)]
    local = log_integral(r - 0.5, 2.0 * now.rate, np.maximum(square, TINY)) + (now.rate - eta) * variance
    terms = (local - 0.5 * np.log(2.0 * np.pi) + r * log_e - gammaln(r)).sum()
    terms += (s * log_p + (s - 1.0) * log_e - phi * eta - gammaln(s)).sum()  # eta ~ Ga(s, phi)
    terms += (0.5 * log_t - 0.5 * log_p - t * phi - gammaln(0.5)).sum()  # phi ~ Ga(1/2, t)
    terms += -0.5 * log_t - t - gammaln(0.5)  # t ~ Ga(1/2, 1)
    entropies = (
        gamma_entropy(shape_e, rate_e),
        gamma_entropy(shape_p, rate_p),
        gamma_entropy(shape_t, rate_t),
    )
    return float(terms + entropies[0] + entropies[1] + entropies[2])


def gamma_entropy(shape: float, rate: Float[np.ndarray, ...] | float) -> float:
    """Entropy of gammas, summed."""
    each = shape - np.log(rate) + gammaln(shape) + (1.0 - shape) * digamma(shape)
    return float(np.sum(each))


def slab_loss(square: Float[np.ndarray, "D K"], prior: ShrinkagePrior) -> float:
    """(B4): minus the expected log of the loadings' second prior N(0, 1 / slab), without its constant."""
    return float(0.5 * prior.slab * square.sum())


def normal_entropy(q: Normal) -> float:
    """(B5): entropies of normals, summed; 0 for known values."""
    sign, log_size = np.linalg.slogdet(q.covariance)
    K = q.mean.shape[-1]
    return float(np.where(sign > 0, 0.5 * (log_size + K * np.log(2.0 * np.pi * math.e)), 0.0).sum())


def loadings_bound(A: Normal, before: Shrinkage, prior: ShrinkagePrior) -> float:
    """(B3) + (B4) + (B5) of the loadings, whose shrinkage is one round from `before`."""
    return shrinkage_bound(before, A.squares, prior) - slab_loss(A.squares, prior) + normal_entropy(A)


def classifier_bound(
    beta: Normal,
    before: Shrinkage,
    prior: ShrinkagePrior,
    u: Float[np.ndarray, "N T C"],
    second: Float[np.ndarray, "N T C"],
) -> float:
    """(B6), (B3) and (B5) of one expert, from <u> and <u^2> (N, 1, C) of u = 1 - y (beta'z + offset)."""
    squares = beta.squares
    slopes, offsets = squares[0, :, :-1].T, squares[..., -1]
    labels = -hinge_loss(u, second).sum() - 0.5 * prior.offset_precision * offsets.sum()
    return float(labels + shrinkage_bound(before, slopes, prior) + normal_entropy(beta))


def pairwise_bound(
    now: RankState,
    before: RankState,
    gap: tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]],
    margin: tuple[Float[np.ndarray, "N T C"], Float[np.ndarray, "N T C"]] | None,
    weight: Float[np.ndarray, " N"],
    config: RankConfig,
) -> float:
    """L at `now`, whose shrinkage is one round from that of `before`; of one expert.

    `gap`: mean and variance of u = eps - a'(z_h - z_l) of the pairs (P,). `margin`: <u> and <u^2> of the
    labels, None where they are no part of the model. For draws it is a number to watch, no more.
    """
    u, variance = gap
    total = -hinge_loss(u, u * u + variance).sum() - factor_divergence(now.z, weight)
    total += loadings_bound(now.A, before.shrink, config.prior)
    if margin is not None:
        total += classifier_bound(now.experts.beta, before.experts.shrink, config.prior, *margin)
    return float(total)
