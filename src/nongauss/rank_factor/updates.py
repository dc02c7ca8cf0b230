"""How it moves: one sweep over factors, loadings, shrinkage and classifier, by expectations or by draws.

What is taken as an expectation or drawn is said in `inference.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from nongauss.rank_factor import svm_mixture
from nongauss.rank_factor.config import RankConfig, ShrinkagePrior
from nongauss.rank_factor.data import RankRows
from nongauss.rank_factor.hamiltonian_moves import hamiltonian_move, hinge_table, n_leaps
from nongauss.rank_factor.inference import Gibbs, Inference
from nongauss.rank_factor.level_density import drawn_factors, is_joint
from nongauss.rank_factor.machine_moves import moved_machines
from nongauss.rank_factor.mixing_moves import mixed_state, scaled_columns, scaled_hierarchy, scaled_loadings
from nongauss.rank_factor.objective import rows_bound
from nongauss.rank_factor.params import (
    Experts,
    NeighbourScores,
    Normal,
    RankState,
    Shrinkage,
    System,
    WeightedLabels,
    joined,
    point,
    unpack,
)
from nongauss.rank_factor.rank_likelihood import (
    CellSums,
    cell_sums,
    level_means,
    level_scores,
    level_system,
    mean_by_level,
    neighbour_extremes,
    score_variance,
    with_loading_prior,
    with_prior,
    z_system,
)
from nongauss.rank_factor.slice_moves import log_likelihood_of, slice_move


class FactorPass(NamedTuple):
    """What a sweep gives: factors as a new row has them, and sums over cells at factors that know the labels.

    `cell_loss` is the summed loss (B1) of the cells.
    """

    free: Normal
    joint: Normal
    sums: CellSums
    cell_loss: float


def sweep(
    state: RankState, rows: RankRows, labels: WeightedLabels, config: RankConfig, inference: Inference
) -> tuple[RankState, dict[str, float]]:
    """The next state, and for observers (B1) + (B2) of the objective and the loadings' mean size."""
    shares = inference.shares(share_logs(state, labels, config))
    drawn = inference if isinstance(inference, Gibbs) and is_joint(rows, labels, config) else None
    if drawn is None:
        seen = _pass_over_rows(state, rows, labels, config, inference, shares)
    else:
        seen = _joint_pass(state, rows, labels, config, drawn, shares)
    z = seen.free if config.cut else seen.joint
    sums = seen.sums
    if config.observation == "rank":
        factor = _unit_scale(z, labels.weight)
        z, sums = Normal(z.mean * factor, z.covariance * factor**2), sums.rescaled(factor)
    before = state.shrink
    A, scale = _loadings(state, z, sums, rows, labels, config, inference)
    if drawn is not None:
        own = state.shrink.precision + config.prior.slab
        columns = scaled_columns(drawn.rng, A.mean, z.mean, rows, scale, own, config.eps)
        assert scale.means is not None
        own_scale = level_scores(point(columns), scale.means)
        columns, before = scaled_loadings(drawn.rng, columns, z.mean, rows, own_scale, before, config)
        own_scale = level_scores(point(columns), scale.means)
        columns, before = scaled_hierarchy(drawn.rng, columns, z.mean, rows, own_scale, before, config)
        A = point(columns)
    shrink = inference.shrink(before, A, config.prior)
    experts = state.experts
    if config.n_outputs:
        experts = update_experts(inference, experts, z, shares, labels, config.prior)
    after = RankState(A, shrink, z, scale, experts)
    if drawn is not None:
        after = _with_factors_mixed(after, rows, labels, config, drawn)
    bound = rows_bound(seen.cell_loss, z, labels.weight)
    return after, {"bound": bound, "scale": float(np.abs(A.mean).mean())}


def _with_factors_mixed(
    state: RankState, rows: RankRows, labels: WeightedLabels, config: RankConfig, inference: Gibbs
) -> RankState:
    """The state after moves that change no score, and one of loadings and factors together.

    With its levels' scores, which hold whatever is moved.
    """
    A, z, shrink, experts = state.A, state.z, state.shrink, state.experts
    assert rows.codes is not None
    if experts.gate is None and not (config.cut and config.n_outputs):  # else factors have other priors, too
        loadings, factors, shrink, experts = mixed_state(
            inference.rng, A.mean, z.mean, shrink, experts, config.prior.slab
        )
        leaps = n_leaps(rows.codes.size, factors.size)
        if leaps:
            table, own = hinge_table(rows.codes, config.eps, labels.y), shrink.precision + config.prior.slab
            beta = experts.beta.mean[0]
            loadings, factors = hamiltonian_move(inference.rng, loadings, factors, table, own, beta, leaps)
        A, z = point(loadings), point(factors)
    means = mean_by_level(rows.codes, z.mean, labels.weight, state.scale.lower.shape[1])
    return RankState(A, shrink, z, level_scores(A, means), experts)


def share_logs(state: RankState, labels: WeightedLabels, config: RankConfig) -> Float[np.ndarray, "N T"]:
    """Log of the experts' shares of each row, from its factors and, without `cut`, its labels: (N, T)."""
    gate = state.experts.gate
    if gate is None:
        return np.zeros((len(state.z.mean), config.n_experts))
    logs = svm_mixture.gate_logs(gate, state.z)
    if not config.cut:
        u, square = svm_mixture.margins(state.experts, state.z, labels.y)
        logs = logs - (u + np.sqrt(square)).sum(axis=2)
    return logs


def _pass_over_rows(
    state: RankState,
    rows: RankRows,
    labels: WeightedLabels,
    config: RankConfig,
    inference: Inference,
    shares: Float[np.ndarray, "N T"],
) -> FactorPass:
    """Factors of all rows, block by block, and the sums that the loadings need."""
    loadings = inference.loading_moments(state.A, state.scale)
    n_levels = state.scale.lower.shape[1] if config.is_level else 0
    free, joint, loss = [], [], 0.0
    total: CellSums | None = None
    for part in rows.blocks():
        z, block = state.z.take(part), rows.take(part)
        prior = svm_mixture.factor_prior(state.experts.gate, shares[part], config.n_factors)
        if isinstance(inference, Gibbs) and block.cells is not None:
            seen = None if config.cut or not config.n_outputs else (labels.y[part], shares[part])
            likelihood = log_likelihood_of(loadings, block, state.experts, seen, config)
            z = point(slice_move(inference.rng, z.mean, prior, likelihood))
        at = inference.quadratics(z, loadings, block, config)
        loss += float(labels.weight[part] @ at.loss)
        system = with_prior(z_system(at, loadings), prior)
        free.append(inference.normal(system) if config.cut or not config.n_outputs else z)
        joint.append(free[-1])
        if config.n_outputs:
            told = label_system(state.experts, z, labels.y[part], shares[part], inference)
            joint[-1] = inference.normal((system[0] + told[0], system[1] + told[1]))
        sums = cell_sums(at, joint[-1], block, labels.weight[part], n_levels)
        total = sums if total is None else total.plus(sums)
    assert total is not None
    return FactorPass(joined(free), joined(joint), total, loss)


def _joint_pass(
    state: RankState,
    rows: RankRows,
    labels: WeightedLabels,
    config: RankConfig,
    inference: Gibbs,
    shares: Float[np.ndarray, "N T"],
) -> FactorPass:
    """`_pass_over_rows` with the factors of all rows drawn at once, and weights of hinges drawn after it."""
    loadings = inference.loading_moments(state.A, state.scale)
    K = config.n_factors
    prior = svm_mixture.factor_prior(state.experts.gate, shares, K)
    none = np.zeros((len(shares), K, K)), np.zeros((len(shares), K))
    own = with_prior(none, prior)
    g = inference.quadratics(state.z, loadings, rows, config).weights
    assert rows.codes is not None
    assert g is not None
    if config.n_outputs:
        told = label_system(state.experts, state.z, labels.y, shares, inference)
        own = own[0] + told[0], own[1] + told[1]
    z = drawn_factors(inference.rng, state.A.mean, rows.codes, g, config.eps, own)
    n_levels = state.scale.lower.shape[1]
    means = mean_by_level(rows.codes, z.mean, labels.weight, n_levels)
    moved = inference.loading_moments(state.A, level_scores(state.A, means))
    at = inference.quadratics(z, moved, rows, config)
    sums = cell_sums(at, z, rows, labels.weight, n_levels)
    return FactorPass(z, z, sums, float(labels.weight @ at.loss))


def label_system(
    experts: Experts,
    z: Normal,
    y: Float[np.ndarray, "B C"],
    shares: Float[np.ndarray, "B T"],
    inference: Inference,
) -> System:
    """What labels y (B, C) tell of the factors of their rows, at weights that their hinges have there."""
    g = inference.label_weights(*svm_mixture.margins(experts, z, y))
    return svm_mixture.label_system(experts, g, y, shares)


def _unit_scale(z: Normal, weight: Float[np.ndarray, " N"]) -> float:
    """What makes the factors' mean square 1.

    The order of values does not tell the scale of A z; the prior of z is too weak to hold its half of it, and
    plug-in neighbours push outwards. So it is fixed.
    """
    second = (weight @ z.squares).mean()
    return float(np.sqrt(weight.sum() / second))


def _loadings(
    state: RankState,
    z: Normal,
    sums: CellSums,
    rows: RankRows,
    labels: WeightedLabels,
    config: RankConfig,
    inference: Inference,
) -> tuple[Normal, NeighbourScores]:
    """Loadings given the factors, and with what cells are compared by them."""
    own = state.shrink.precision
    if config.is_level:
        return level_loadings(sums, own, config, inference)
    system = unpack(sums.square, config.n_factors), sums.linear
    if config.observation == "gaussian":
        A = inference.normal(with_loading_prior(system, own))
        return A, state.scale._replace(noise=_noise(A, z, rows, labels.weight, config.prior, inference))
    A = inference.normal(with_loading_prior(system, own + config.prior.slab))
    assert rows.codes is not None
    return A, neighbour_extremes(A, z, rows.codes, state.scale.lower.shape[1])


def level_loadings(
    sums: CellSums, own: Float[np.ndarray, "D K"], config: RankConfig, inference: Inference
) -> tuple[Normal, NeighbourScores]:
    """Loadings under the level rule, given their prior precision (D, K), and the levels' scores by them."""
    means = level_means(sums)
    A = inference.normal(with_loading_prior(level_system(sums, means, config.eps), own + config.prior.slab))
    return A, level_scores(A, means)


def _noise(
    A: Normal,
    z: Normal,
    rows: RankRows,
    weight: Float[np.ndarray, " N"],
    prior: ShrinkagePrior,
    inference: Inference,
) -> Float[np.ndarray, " D"]:
    """Noise variance of each column (D,): its inverse is Ga(a + n / 2, b + sum of <(x - w)^2> / 2)."""
    shape, rate = np.full(len(A.mean), prior.noise_shape), np.full(len(A.mean), prior.noise_rate)
    none = np.zeros((len(shape), 0))
    loadings = inference.loading_moments(A, NeighbourScores(none, none, np.ones(len(shape))))
    for part in rows.blocks():
        values, factors = rows.take(part).values, z.take(part)
        assert values is not None
        present = ~np.isnan(values)
        score = factors.mean @ A.mean.T
        square = np.where(present, (np.where(present, values, 0.0) - score) ** 2, 0.0)
        square += present * score_variance(factors, loadings)
        shape += 0.5 * (weight[part] @ present)
        rate += 0.5 * (weight[part] @ square)
    return inference.noise(rate, shape)


def update_experts(
    inference: Inference,
    now: Experts,
    z: Normal,
    shares: Float[np.ndarray, "N T"],
    labels: WeightedLabels,
    prior: ShrinkagePrior,
) -> Experts:
    """Coefficients, their shrinkage and the gate, given the factors."""
    g = inference.label_weights(*svm_mixture.margins(now, z, labels.y))
    beta = inference.normal(svm_mixture.beta_system(now, z, g, shares, labels.y, labels.weight, prior))
    shrink = coefficient_shrinkage(inference, now, beta, prior)
    gate = None if now.gate is None else inference.gate(now.gate, z, shares, labels.weight)
    after = Experts(beta, shrink, gate)
    if isinstance(inference, Gibbs):
        return moved_machines(inference.rng, after, z.mean, shares, labels, prior)
    return after


def coefficient_shrinkage(
    inference: Inference, now: Experts, beta: Normal, prior: ShrinkagePrior
) -> Shrinkage:
    """The shrinkage of coefficients (T, C, K + 1), whose offsets have none: of their slopes (K, T C)."""
    T, C, K1 = beta.mean.shape
    slopes = Normal(beta.mean[..., :-1].reshape(T * C, K1 - 1).T, np.zeros((K1 - 1, T * C, T * C)))
    variance = np.einsum("tckk->tck", beta.covariance)[..., :-1].reshape(T * C, K1 - 1).T
    slopes.covariance[:, np.arange(T * C), np.arange(T * C)] = variance
    return inference.shrink(now.shrink, slopes, prior)
