r"""How it moves: one sweep over factors, loadings, shrinkage and classifier, by expectations or by draws.

Two inferences run the same sweep: variational Bayes takes expectations, Gibbs draws. Coefficients c (D, K)
are shrunk by a three-parameter-beta prior with one global scale a column, gammas having shape and rate:

    c_ik ~ N(0, xi_ik),  xi_ik ~ Ga(r, eta_ik),  eta_ik ~ Ga(s, phi_k),  phi_k ~ Ga(1/2, t),  t ~ Ga(1/2, 1)

r = s = 1/2 is the horseshoe.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import geninvgauss

from nongauss.prob import inverse_gaussian
from nongauss.prob.gig import moments
from nongauss.rank_factor import svm_mixture
from nongauss.rank_factor.config import RankConfig, ShrinkagePrior
from nongauss.rank_factor.data import RankRows
from nongauss.rank_factor.objective import TINY, rows_bound
from nongauss.rank_factor.params import (
    Experts,
    Gate,
    NeighbourScores,
    Normal,
    RankState,
    Shrinkage,
    System,
    WeightedLabels,
    cholesky_draw,
    joined,
    point,
    solve,
    unpack,
)
from nongauss.rank_factor.rank_likelihood import (
    CellQuadratics,
    CellSums,
    LoadingMoments,
    cell_sums,
    drawn_quadratics,
    expected_quadratics,
    level_means,
    level_scores,
    level_system,
    moments_of,
    moments_of_draw,
    neighbour_extremes,
    score_variance,
    with_loading_prior,
    with_prior,
    z_system,
)
from nongauss.rank_factor.slice_moves import log_likelihood_of, slice_move


def expected_shrinkage(now: Shrinkage, square: Float[np.ndarray, "D K"], prior: ShrinkagePrior) -> Shrinkage:
    """One round of coordinate ascent on (B3), given the second moments of the coefficients (D, K).

    xi is generalised inverse Gaussian of order r - 1/2; eta ~ Ga(r + s, <xi> + phi);
    phi ~ Ga(1/2 + s D, t + sum of eta); t ~ Ga(1/2 + K / 2, 1 + sum of phi).
    """
    variance, precision = moments(prior.r - 0.5, 2.0 * now.rate, np.maximum(square, TINY))
    rate = (prior.r + prior.s) / (variance + now.scale)
    scale = (0.5 + prior.s * len(square)) / (now.hyper + rate.sum(axis=0))
    hyper = (0.5 + 0.5 * len(scale)) / (1.0 + scale.sum())
    return Shrinkage(precision, rate, scale, float(hyper))


def drawn_shrinkage(
    rng: np.random.Generator, now: Shrinkage, value: Float[np.ndarray, "D K"], prior: ShrinkagePrior
) -> Shrinkage:
    """One Gibbs draw given the coefficients `value` (D, K).

    The variance xi is a Beta-prime variable times phi. Seen as xi | k ~ inverse Ga(s, k), k ~ Ga(r, 1/phi),
    its conditionals are gammas for every r and s; phi is then drawn with a fresh eta given xi, as the model
    is written. Both views have the same p(xi | phi).
    """
    r, s = prior.r, prior.s
    kappa = rng.gamma(r + s, 1.0, value.shape) / (now.precision + 1.0 / now.scale)
    rate_of_precision = kappa + np.maximum(0.5 * value**2, TINY)
    precision = np.maximum(rng.gamma(s + 0.5, 1.0, value.shape), 1e-30) / rate_of_precision
    rate = rng.gamma(r + s, 1.0, value.shape) / (1.0 / precision + now.scale)
    scale = rng.gamma(0.5 + s * len(value), 1.0, value.shape[1]) / (now.hyper + rate.sum(axis=0))
    hyper = rng.gamma(0.5 + 0.5 * len(scale)) / (1.0 + scale.sum())
    return Shrinkage(precision, rate, np.maximum(scale, 1e-300), float(hyper))


Rescaled = tuple[Normal, Normal, Shrinkage]


class VariationalBayes(NamedTuple):
    """Every quantity is a q, and the next one is the best given the others. Cells are held in `dtype`."""

    dtype: Any = np.float64

    def loading_moments(self, A: Normal, scale: NeighbourScores) -> LoadingMoments:
        """What rows need of the loadings."""
        return moments_of(A, scale, self.dtype)

    def quadratics(
        self, z: Normal, loadings: LoadingMoments, rows: RankRows, config: RankConfig
    ) -> CellQuadratics:
        """Quadratics of the cells in their scores, given the factors of their rows."""
        return expected_quadratics(z, loadings, rows, config)

    def normal(self, system: System) -> Normal:
        """q of normals from precision and linear term."""
        return solve(*system)

    def shrink(self, now: Shrinkage, c: Normal, prior: ShrinkagePrior) -> Shrinkage:
        """The hierarchy of coefficients (D, K)."""
        return expected_shrinkage(now, c.squares, prior)

    def rescale(self, A: Normal, z: Normal, shrink: Shrinkage, slab: float) -> Rescaled:
        """Factors, loadings and their shrinkage on another scale: left alone, as the bound is at its best."""
        return A, z, shrink

    def noise(self, rate: Float[np.ndarray, " D"], shape: Float[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
        """A variance whose inverse is Ga(shape, rate): one over the expected inverse."""
        variance: Float[np.ndarray, " D"] = rate / shape
        return variance

    def label_weights(
        self, u: Float[np.ndarray, "*B"], second: Float[np.ndarray, "*B"]
    ) -> Float[np.ndarray, "*B"]:
        """<1/lambda> of labels or pairs, <u^2>^{-1/2}."""
        return svm_mixture.expected_weights(second)

    def shares(self, logs: Float[np.ndarray, "N T"]) -> Float[np.ndarray, "N T"]:
        """q(t) of each row from logs (N, T)."""
        return svm_mixture.softmax(logs)

    def gate(
        self, gate: Gate, z: Normal, shares: Float[np.ndarray, "N T"], weight: Float[np.ndarray, " N"]
    ) -> Gate:
        """The mixture's parameters."""
        return svm_mixture.update_gate(gate, z, shares, weight)


class Gibbs(NamedTuple):
    """Every quantity is a draw given the others. A row of weight w counts w times in sums."""

    rng: np.random.Generator
    dtype: Any = np.float64

    def loading_moments(self, A: Normal, scale: NeighbourScores) -> LoadingMoments:
        """What rows need of the loadings."""
        return moments_of_draw(A.mean, scale, self.dtype)

    def quadratics(
        self, z: Normal, loadings: LoadingMoments, rows: RankRows, config: RankConfig
    ) -> CellQuadratics:
        """Quadratics of the cells in their scores, given the factors of their rows."""
        return drawn_quadratics(self.rng, z.mean, loadings, rows, config)

    def normal(self, system: System) -> Normal:
        """Draws of normals from precision and linear term."""
        return point(cholesky_draw(self.rng, *system))

    def shrink(self, now: Shrinkage, c: Normal, prior: ShrinkagePrior) -> Shrinkage:
        """The hierarchy of coefficients (D, K)."""
        return drawn_shrinkage(self.rng, now, c.mean, prior)

    def rescale(self, A: Normal, z: Normal, shrink: Shrinkage, slab: float) -> Rescaled:
        """A z keeps its value, and the two are drawn anew along (c A_k, z_k / c) for each factor k.

        The variances go along, xi c^2, eta / c^2, phi c^2, so that of the density only the priors of z and
        phi and the slab change. The Haar measure dc / c leaves the posterior as it is (Liu and
        Sabatti 2000): s = c^2 is generalised inverse Gaussian. Without it the scale creeps.
        """
        a = slab * (A.mean**2).sum(axis=0) + 2.0 * shrink.hyper * shrink.scale
        b = np.maximum((z.mean**2).sum(axis=0), 1e-300)
        p = 0.5 * (1.0 - len(z.mean))
        s = geninvgauss.rvs(p, np.sqrt(a * b), scale=np.sqrt(b / a), random_state=self.rng)
        moved = Shrinkage(shrink.precision / s, shrink.rate / s, shrink.scale * s, shrink.hyper)
        return point(A.mean * np.sqrt(s)), point(z.mean / np.sqrt(s)), moved

    def noise(self, rate: Float[np.ndarray, " D"], shape: Float[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
        """A variance whose inverse is Ga(shape, rate)."""
        return rate / np.maximum(self.rng.gamma(shape), 1e-300)

    def label_weights(
        self, u: Float[np.ndarray, "*B"], second: Float[np.ndarray, "*B"]
    ) -> Float[np.ndarray, "*B"]:
        """1/lambda of labels or pairs, inverse Gaussian(1 / |u|, 1)."""
        return inverse_gaussian.draw(self.rng, u)

    def shares(self, logs: Float[np.ndarray, "N T"]) -> Float[np.ndarray, "N T"]:
        """t of each row from logs (N, T), as 0 and 1, by Gumbel noise."""
        noisy = logs + self.rng.gumbel(size=logs.shape)
        found: Float[np.ndarray, "N T"] = np.eye(logs.shape[1])[noisy.argmax(axis=1)]
        return found

    def gate(
        self, gate: Gate, z: Normal, shares: Float[np.ndarray, "N T"], weight: Float[np.ndarray, " N"]
    ) -> Gate:
        """The mixture's parameters."""
        return svm_mixture.draw_gate(self.rng, gate, z.mean, shares, weight)


Inference = VariationalBayes | Gibbs


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
    seen = _pass_over_rows(state, rows, labels, config, inference, shares)
    z = seen.free if config.cut else seen.joint
    sums = seen.sums
    if config.observation == "rank":
        factor = _unit_scale(z, labels.weight)
        z, sums = Normal(z.mean * factor, z.covariance * factor**2), sums.rescaled(factor)
    A, scale = _loadings(state, z, sums, rows, labels, config, inference)
    shrink = inference.shrink(state.shrink, A, config.prior)
    experts = state.experts
    if config.n_outputs:
        experts = update_experts(inference, experts, z, shares, labels, config.prior)
    bound = rows_bound(seen.cell_loss, z, labels.weight)
    return RankState(A, shrink, z, scale, experts), {"bound": bound, "scale": float(np.abs(A.mean).mean())}


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
    return Experts(beta, shrink, gate)


def coefficient_shrinkage(
    inference: Inference, now: Experts, beta: Normal, prior: ShrinkagePrior
) -> Shrinkage:
    """The shrinkage of coefficients (T, C, K + 1), whose offsets have none: of their slopes (K, T C)."""
    T, C, K1 = beta.mean.shape
    slopes = Normal(beta.mean[..., :-1].reshape(T * C, K1 - 1).T, np.zeros((K1 - 1, T * C, T * C)))
    variance = np.einsum("tckk->tck", beta.covariance)[..., :-1].reshape(T * C, K1 - 1).T
    slopes.covariance[:, np.arange(T * C), np.arange(T * C)] = variance
    return inference.shrink(now.shrink, slopes, prior)
