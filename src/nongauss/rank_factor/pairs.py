r"""The pairwise rule: one density over pairs of rows that are adjacent in the order of a column.

    prod over columns i and pairs (l, h): exp(-2 [eps - a_i'(z_h - z_l)]_+)

Every conditional is exact and the bound never falls: the reference for the other rules, for small tables.
With `cut` the labels reach neither factors nor loadings.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nongauss.rank_factor import svm_mixture
from nongauss.rank_factor.config import RankConfig
from nongauss.rank_factor.data import NONE, FloatArray
from nongauss.rank_factor.inference import Gibbs, Inference
from nongauss.rank_factor.objective import pairwise_bound
from nongauss.rank_factor.params import (
    Normal,
    RankState,
    System,
    WeightedLabels,
    joint_draw,
    outer,
    pack,
    pack_twice,
    point,
    unpack,
)
from nongauss.rank_factor.rank_likelihood import with_loading_prior, with_prior
from nongauss.rank_factor.updates import label_system, share_logs, update_experts

CHUNK = 20_000
"""Pairs that are handled at once."""
MOST_JOINT = 1500
"""Rows times factors up to which a draw of the factors is one system."""


class Pairs(NamedTuple):
    """Pairs (P,): column, lower and higher row, ordered by column. touching: for each row, its pairs."""

    column: NDArray[np.intp]
    low: NDArray[np.intp]
    high: NDArray[np.intp]
    touching: tuple[NDArray[np.intp], ...]

    def chunks(self) -> Iterator[slice]:
        """Slices of CHUNK pairs."""
        for begin in range(0, len(self.column), CHUNK):
            yield slice(begin, begin + CHUNK)


def find_pairs(codes: NDArray[np.uint8]) -> Pairs:
    """Pairs of rows with adjacent values, of levels (N, D), NONE where missing.

    Of two adjacent groups of equal values each row has a partner; the smaller group's rows take turns.
    """
    parts: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
    column: list[int] = []
    for i, codes_i in enumerate(codes.T):
        groups = [np.flatnonzero(codes_i == value) for value in np.unique(codes_i[codes_i != NONE])]
        for below, above in pairwise(groups):
            size = max(len(below), len(above))
            parts.append((np.resize(below, size), np.resize(above, size)))
            column += [i] * size
    low, high = np.concatenate([np.stack(pair) for pair in parts] or [np.zeros((2, 0), np.intp)], axis=1)
    touching = tuple(np.flatnonzero((low == n) | (high == n)) for n in range(len(codes)))
    return Pairs(np.array(column, dtype=np.intp), low, high, touching)


def sweep(
    state: RankState, pairs: Pairs, labels: WeightedLabels, config: RankConfig, inference: Inference
) -> tuple[RankState, dict[str, float]]:
    """Latent variances, factors row by row, loadings, shrinkage, classifier; and the bound after them."""
    shares = inference.shares(share_logs(state, labels, config))
    g = pair_weights(state.A, state.z, pairs, config, inference)
    z = _factors(state, pairs, g, labels, config, inference, shares)
    system = loading_system(z, pairs, g, len(state.A.mean), config.eps)
    A = inference.normal(with_loading_prior(system, state.shrink.precision + config.prior.slab))
    shrink = inference.shrink(state.shrink, A, config.prior)
    if state.experts.gate is None and (config.cut or not config.n_outputs):  # else labels scale, too
        A, z, shrink = inference.rescale(A, z, shrink, config.prior.slab)
    experts = state.experts
    if config.n_outputs:
        experts = update_experts(inference, experts, z, shares, labels, config.prior)
    after = state._replace(A=A, shrink=shrink, z=z, experts=experts)
    margin = None
    if config.n_outputs and not config.cut and config.n_experts == 1:
        margin = svm_mixture.margins(experts, z, labels.y)
    bound = pairwise_bound(after, state, gaps(A, z, pairs, config), margin, labels.weight, config)
    return after, {"bound": bound, "scale": float(np.abs(A.mean).mean())}


def gaps(A: Normal, z: Normal, pairs: Pairs, config: RankConfig) -> tuple[FloatArray, FloatArray]:
    """u = eps - a'(z_h - z_l) at the means, and its variance, of each pair: (P,) each."""
    u, variance = np.empty(len(pairs.column)), np.empty(len(pairs.column))
    square = pack_twice(A.mean[:, :, None] * A.mean[:, None, :])
    own = pack_twice(A.covariance)
    spread = pack(z.covariance)
    for part in pairs.chunks():
        i, low, high = pairs.column[part], pairs.low[part], pairs.high[part]
        D = z.mean[high] - z.mean[low]
        V = spread[high] + spread[low]
        u[part] = config.eps - (A.mean[i] * D).sum(axis=1)
        variance[part] = (square[i] * V).sum(axis=1) + (own[i] * (V + outer(D))).sum(axis=1)
    return u, np.maximum(variance, 0.0)


def pair_weights(A: Normal, z: Normal, pairs: Pairs, config: RankConfig, inference: Inference) -> FloatArray:
    """1/lambda of each pair: (P,)."""
    u, variance = gaps(A, z, pairs, config)
    return inference.label_weights(u, u * u + variance)


def loading_system(z: Normal, pairs: Pairs, g: FloatArray, n_columns: int, eps: float) -> System:
    """Precision (D, K, K) and linear term (D, K) of the loadings, prior left out."""
    K = z.mean.shape[1]
    packed, linear = np.zeros((n_columns, K * (K + 1) // 2)), np.zeros((n_columns, K))
    spread = pack(z.covariance)
    for part in pairs.chunks():
        i, low, high = pairs.column[part], pairs.low[part], pairs.high[part]
        D = z.mean[high] - z.mean[low]
        first = np.flatnonzero(np.append(True, i[1:] != i[:-1]))
        each = g[part, None] * (outer(D) + spread[high] + spread[low])
        packed[i[first]] += np.add.reduceat(each, first, axis=0)
        linear[i[first]] += np.add.reduceat((g[part] * eps + 1.0)[:, None] * D, first, axis=0)
    return unpack(packed, K), linear


def row_system(n: int, z: FloatArray, A: Normal, pairs: Pairs, g: FloatArray, eps: float) -> System:
    """Precision (K, K) and linear term (K,) of the factors of row n given all other rows, prior left out."""
    touched = pairs.touching[n]
    i = pairs.column[touched]
    is_high = pairs.high[touched] == n
    other = z[np.where(is_high, pairs.low[touched], pairs.high[touched])]
    weight = g[touched]
    n_columns = len(A.mean)
    mass = np.bincount(i, weight, n_columns)
    push = np.bincount(i, np.where(is_high, 1.0, -1.0) * (weight * eps + 1.0), n_columns)
    pull = np.stack([np.bincount(i, weight * z_k, n_columns) for z_k in other.T], axis=1)
    linear = push @ A.mean + A.mean.T @ (A.mean * pull).sum(axis=1)
    linear += np.einsum("dkl,dl->k", A.covariance, pull)
    precision = (A.mean * mass[:, None]).T @ A.mean + np.tensordot(mass, A.covariance, 1)
    return precision, linear


def _factors(
    state: RankState,
    pairs: Pairs,
    g: FloatArray,
    labels: WeightedLabels,
    config: RankConfig,
    inference: Inference,
    shares: FloatArray,
) -> Normal:
    """Factors: draws of a small table all at once, since rows hold each other fast; else row after row."""
    K = config.n_factors
    prior = svm_mixture.factor_prior(state.experts.gate, shares, K)
    own, push = with_prior((np.zeros((len(shares), K, K)), np.zeros((len(shares), K))), prior)
    if config.n_outputs and not config.cut:
        told = label_system(state.experts, state.z, labels.y, shares, inference)
        own, push = own + told[0], push + told[1]
    if isinstance(inference, Gibbs) and len(own) * K <= MOST_JOINT:
        precision, linear = joint_system(state.A.mean, pairs, g, len(own), config.eps)
        precision[np.arange(len(own)), :, np.arange(len(own)), :] += own
        return point(joint_draw(inference.rng, precision, linear + push))
    mean, covariance = state.z.mean.copy(), np.array(state.z.covariance)
    for n in range(len(mean)):
        precision, linear = row_system(n, mean, state.A, pairs, g, config.eps)
        one = inference.normal(((precision + own[n])[None], (linear + push[n])[None]))
        mean[n], covariance[n] = one.mean[0], one.covariance[0]
    return Normal(mean, covariance)


def joint_system(A: FloatArray, pairs: Pairs, g: FloatArray, n_rows: int, eps: float) -> System:
    """Precision (N, K, N, K) and linear term (N, K) of all factors given known loadings, prior left out."""
    D, K = A.shape
    n = len(g)
    place = sparse.csr_matrix((g, (pairs.low * n_rows + pairs.high, pairs.column)), (n_rows * n_rows, D))
    between = place @ (A[:, :, None] * A[:, None, :]).reshape(D, K * K)
    between = between.reshape(n_rows, n_rows, K, K)
    between = between + between.transpose(1, 0, 2, 3)
    precision = -between.transpose(0, 2, 1, 3)
    precision[np.arange(n_rows), :, np.arange(n_rows), :] += between.sum(axis=1)
    ends = sparse.csr_matrix(
        (np.repeat([1.0, -1.0], n), (np.append(pairs.high, pairs.low), np.tile(np.arange(n), 2))), (n_rows, n)
    )
    return precision, ends @ ((g * eps + 1.0)[:, None] * A[pairs.column])
