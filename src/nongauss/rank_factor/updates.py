"""One sweep: factors, loadings, shrinkage, classifier; by expectations or by draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nongauss.rank_factor import rank_likelihood as cells
from nongauss.rank_factor import svm_mixture as experts
from nongauss.rank_factor.params import Config, FloatArray, Normal
from nongauss.rank_factor.rank_likelihood import CellSums, Rows, Scale
from nongauss.rank_factor.shrinkage import Shrinkage
from nongauss.rank_factor.svm_mixture import Experts
from nongauss.rank_factor.vb_and_gibbs import System, Way, update_experts

SLAB = 1.0
"""Precision of a second, normal prior of the loadings of ranks, whose scale no order of values can tell."""
NOISE_SHAPE, NOISE_RATE = 1.0, 0.1
"""Gamma prior of the inverse noise variance of a standardised column."""


class Labels(NamedTuple):
    """Labels (N, C) of -1 and 1; C is 0 without them. Weights (N,)."""

    y: FloatArray
    weight: FloatArray


class State(NamedTuple):
    """Where a fit stands. `z` are the factors that the classifier sees: with `cut`, those of a new row."""

    A: Normal
    shrink: Shrinkage
    z: Normal
    scale: Scale
    experts: Experts


class Seen(NamedTuple):
    """Of a sweep: factors as a new row has them, and sums over cells at factors that know the labels."""

    free: Normal
    joint: Normal
    sums: CellSums
    loss: float


def sweep(
    state: State, rows: Rows, labels: Labels, config: Config, way: Way
) -> tuple[State, dict[str, float]]:
    """The next state, and what an observer reads: the bound's part of the cells and the factors' prior."""
    shares = way.shares(share_logs(state, labels, config))
    seen = _see(state, rows, labels, config, way, shares)
    z = seen.free if config.cut else seen.joint
    sums = seen.sums
    if config.observation == "rank":
        factor = _unit_scale(z, labels.weight)
        z, sums = Normal(z.mean * factor, z.covariance * factor**2), sums.rescaled(factor)
    A, scale = _loadings(state, z, sums, rows, labels, config, way)
    shrink = way.shrink(state.shrink, A, config.prior)
    heads = state.experts
    if config.n_outputs:
        heads = update_experts(way, heads, z, shares, labels.y, labels.weight, config.prior)
    after = State(A, shrink, z, scale, heads)
    return after, {"bound": -seen.loss - prior_loss(z, labels.weight), "scale": float(np.abs(A.mean).mean())}


def share_logs(state: State, labels: Labels, config: Config) -> FloatArray:
    """Log of the experts' shares of each row, from its factors and, without `cut`, its labels: (N, T)."""
    gate = state.experts.gate
    if gate is None:
        return np.zeros((len(state.z.mean), config.n_experts))
    logs = experts.gate_logs(gate, state.z)
    if not config.cut:
        u, square = experts.margins(state.experts, state.z, labels.y)
        logs = logs - (u + np.sqrt(square)).sum(axis=2)
    return logs


def _see(state: State, rows: Rows, labels: Labels, config: Config, way: Way, shares: FloatArray) -> Seen:
    """Factors of all rows, block by block, and the sums that the loadings need."""
    terms = way.terms(state.A, state.scale)
    n_levels = state.scale.lower.shape[1] if is_level(config) else 0
    free, joint, loss = [], [], 0.0
    total: CellSums | None = None
    for part in rows.blocks():
        z = Normal(state.z.mean[part], state.z.covariance[part])
        block = rows.take(part)
        at = way.sites(z, terms, block, config)
        loss += float(labels.weight[part] @ at.loss)
        prior = experts.prior_of(state.experts.gate, shares[part], config.n_factors)
        system = cells.with_prior(cells.z_system(at, terms), prior)
        free.append(way.normal(system) if config.cut or not config.n_outputs else z)
        joint.append(free[-1])
        if config.n_outputs:
            joint[-1] = way.normal(_with_labels(system, state, z, labels.y[part], shares[part], way))
        sums = cells.cell_sums(at, joint[-1], block, labels.weight[part], n_levels)
        total = sums if total is None else total.plus(sums)
    assert total is not None
    return Seen(_joined(free), _joined(joint), total, loss)


def _with_labels(
    system: System, state: State, z: Normal, y: FloatArray, shares: FloatArray, way: Way
) -> System:
    g = way.label_weights(*experts.margins(state.experts, z, y))
    precision, linear = experts.label_system(state.experts, g, y, shares)
    return system[0] + precision, system[1] + linear


def _joined(parts: list[Normal]) -> Normal:
    return Normal(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _unit_scale(z: Normal, weight: FloatArray) -> float:
    """What makes the factors' mean square 1.

    The order of values does not tell the scale of A z; the prior of z is too weak to hold its half of it, and
    plug-in neighbours push outwards. So it is fixed.
    """
    second = (weight @ (z.mean**2 + np.einsum("nkk->nk", z.covariance))).mean()
    return float(np.sqrt(weight.sum() / second))


def is_level(config: Config) -> bool:
    """Are the neighbours levels' means?"""
    return config.observation == "rank" and config.neighbours == "level"


def _loadings(
    state: State, z: Normal, sums: CellSums, rows: Rows, labels: Labels, config: Config, way: Way
) -> tuple[Normal, Scale]:
    """A given the factors, and the scale of its cells."""
    own = state.shrink.precision
    K = config.n_factors
    if is_level(config):
        return level_loadings(sums, own, config, way)
    system = cells.unpack(sums.square, K), sums.linear
    if config.observation == "gaussian":
        A = way.normal(cells.with_own(system, own))
        return A, state.scale._replace(noise=_noise(A, z, rows, labels.weight, way))
    A = way.normal(cells.with_own(system, own + SLAB))
    return A, extreme_scale(A, z, rows, state.scale.lower.shape[1])


def level_loadings(sums: CellSums, own: FloatArray, config: Config, way: Way) -> tuple[Normal, Scale]:
    """A under the level rule, given its prior precision (D, K), and the levels' scores by it."""
    means = cells.level_means(sums)
    A = way.normal(cells.with_own(cells.level_system(sums, means, config.eps), own + SLAB))
    return A, level_scale(A, means)


def level_scale(A: Normal, means: FloatArray) -> Scale:
    """Neighbours' scores from the levels' mean factors (D, Q, K)."""
    table = np.einsum("dk,dqk->dq", A.mean, means)
    return Scale(table, table, np.ones(len(table)), means)


def extreme_scale(A: Normal, z: Normal, rows: Rows, n_levels: int) -> Scale:
    """Neighbours' scores as published: the largest of all lower rows, the smallest of all higher ones."""
    assert rows.codes is not None
    lower, upper = cells.extreme_scores(z.mean @ A.mean.T, rows.codes, n_levels)
    return Scale(lower, upper, np.ones(len(lower)))


def _noise(A: Normal, z: Normal, rows: Rows, weight: FloatArray, way: Way) -> FloatArray:
    """Noise variance of each column: (D,)."""
    shape, rate = np.full(len(A.mean), NOISE_SHAPE), np.full(len(A.mean), NOISE_RATE)
    one = Scale(np.zeros((len(shape), 0)), np.zeros((len(shape), 0)), np.ones(len(shape)))
    terms = way.terms(A, one)
    for part in rows.blocks():
        block = rows.take(part)
        assert block.values is not None
        factors = Normal(z.mean[part], z.covariance[part])
        present = ~np.isnan(block.values)
        score = factors.mean @ A.mean.T
        square = np.where(present, (np.where(present, block.values, 0.0) - score) ** 2, 0.0)
        square += present * cells.score_variance(factors, terms)
        shape += 0.5 * (weight[part] @ present)
        rate += 0.5 * (weight[part] @ square)
    return way.noise(rate, shape)


def prior_loss(z: Normal, weight: FloatArray) -> float:
    """KL of the factors to N(0, I), summed over rows; of draws, the negative log density."""
    square = (z.mean**2).sum(axis=1) + np.einsum("nkk->n", z.covariance)
    sign, log_size = np.linalg.slogdet(z.covariance)
    known = sign <= 0
    K = z.mean.shape[1]
    kl = 0.5 * (square - np.where(known, 0.0, log_size + K))
    return float(weight @ kl)
