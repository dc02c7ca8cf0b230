r"""The classifier on the factors: one max-margin expert, or a Dirichlet-process mixture of them.

    t ~ sticks(alpha),  z | t ~ N(mu_t, I / psi_t),  L(y | z, t) = exp(-2 [1 - y (beta_t' z + offset_t)]_+)

One expert is the linear model, whose z ~ N(0, I). The C outputs of several classes share factors and gate.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, logsumexp

from nongauss.rank_factor.config import ShrinkagePrior
from nongauss.rank_factor.data import FloatArray
from nongauss.rank_factor.params import Experts, Gate, Normal, System

FLOOR = 1e-6
"""Least <u^2> of a label's hinge."""


def factor_prior(gate: Gate | None, shares: FloatArray, n_factors: int) -> System:
    """Precision (B,) and linear term (B, K) of the prior of z, given shares of the experts (B, T)."""
    if gate is None:
        return np.ones(len(shares)), np.zeros((len(shares), n_factors))
    weighted = shares * gate.precision
    return weighted.sum(axis=1), weighted @ gate.mean


def shares_of(gate: Gate | None, z: Normal) -> FloatArray:
    """q(t) of each row from its factors alone: (B, T)."""
    if gate is None:
        return np.ones((len(z.mean), 1))
    return softmax(gate_logs(gate, z))


def gate_logs(gate: Gate, z: Normal) -> FloatArray:
    """Log of an expert's share of a row, up to a constant of the row: (B, T)."""
    K = z.mean.shape[1]
    squares = (z.mean**2).sum(axis=1)[:, None] - 2.0 * z.mean @ gate.mean.T + (gate.mean**2).sum(axis=1)
    squares += np.trace(z.covariance, axis1=1, axis2=2)[:, None] + K * gate.variance
    found: FloatArray = gate.log_share + 0.5 * K * gate.log_precision - 0.5 * gate.precision * squares
    return found


def softmax(logs: FloatArray) -> FloatArray:
    """Shares (B, T) from their logs, which may lack a constant of the row."""
    found: FloatArray = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    return found


def with_one(z: Normal) -> Normal:
    """Factors (B, K + 1) with a constant 1 behind them, for the offset."""
    mean = np.concatenate([z.mean, np.ones((len(z.mean), 1))], axis=1)
    covariance = np.zeros((len(mean), mean.shape[1], mean.shape[1]))
    covariance[:, :-1, :-1] = z.covariance
    return Normal(mean, covariance)


def margins(experts: Experts, z: Normal, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """u = 1 - y (beta'z) at the means and <u^2>, for labels y (B, C) of -1, 1: (B, T, C) each."""
    full = with_one(z)
    beta = experts.beta
    u = 1.0 - y[:, None, :] * np.einsum("bk,tck->btc", full.mean, beta.mean)
    size = full.mean.shape[1] ** 2
    flat_beta = beta.covariance.reshape(*beta.mean.shape[:2], size)
    second_z = full.second.reshape(-1, size)
    outer_beta = (beta.mean[..., :, None] * beta.mean[..., None, :]).reshape(*beta.mean.shape[:2], size)
    variance = np.einsum("bj,tcj->btc", second_z, flat_beta, optimize=True)
    variance += np.einsum("bj,tcj->btc", full.covariance.reshape(-1, size), outer_beta, optimize=True)
    return u, u * u + variance


def label_system(experts: Experts, g: FloatArray, y: FloatArray, shares: FloatArray) -> System:
    """What the labels tell of z: precision (B, K, K) and linear term (B, K); g = <1/lambda> is (B, T, C)."""
    beta = experts.beta
    second = beta.second
    weighted = shares[:, :, None] * g
    precision = np.einsum("btc,tckl->bkl", weighted, second[..., :-1, :-1], optimize=True)
    linear = np.einsum(
        "btc,tck->bk", shares[:, :, None] * y[:, None, :] * (1.0 + g), beta.mean[..., :-1], optimize=True
    )
    linear -= np.einsum("btc,tck->bk", weighted, second[..., :-1, -1], optimize=True)
    return precision, linear


def beta_system(
    experts: Experts,
    z: Normal,
    g: FloatArray,
    shares: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    prior: ShrinkagePrior,
) -> System:
    """Precision (T, C, K + 1, K + 1) and linear term of the coefficients, given factors and shares."""
    return with_coefficient_prior(beta_sums(z, g, shares, y, weight), experts, prior)


def beta_sums(z: Normal, g: FloatArray, shares: FloatArray, y: FloatArray, weight: FloatArray) -> System:
    """What rows say of the coefficients: precision (T, C, K + 1, K + 1) and linear term, sums over rows."""
    full = with_one(z)
    (_, T, C), K1 = g.shape, full.mean.shape[1]
    heavy = (weight[:, None] * shares)[:, :, None]
    precision = np.einsum("btc,bj->tcj", heavy * g, full.second.reshape(len(y), -1), optimize=True)
    precision = precision.reshape(T, C, K1, K1)
    linear = np.einsum("btc,bk->tck", heavy * y[:, None, :] * (1.0 + g), full.mean, optimize=True)
    return precision, linear


def with_coefficient_prior(sums: System, experts: Experts, prior: ShrinkagePrior) -> System:
    """The system of the coefficients with their prior precision added."""
    precision, linear = sums[0].copy(), sums[1]
    T, C, K1 = experts.beta.mean.shape
    own = np.full((T, C, K1), prior.offset_precision)
    own[..., :-1] = experts.shrink.precision.T.reshape(T, C, K1 - 1)
    precision[..., np.arange(K1), np.arange(K1)] += own
    return precision, linear


def update_gate(gate: Gate | None, z: Normal, shares: FloatArray, weight: FloatArray) -> Gate:
    """The best q of the mixture's parameters, one after the other, given shares (N, T) and factors."""
    K = z.mean.shape[1]
    heavy = weight[:, None] * shares
    counts = heavy.sum(axis=0)
    precision = np.ones(len(counts)) if gate is None else gate.precision
    alpha = 1.0 if gate is None else gate.alpha
    variance = 1.0 / (1.0 + precision * counts)
    mean = (variance * precision)[:, None] * (heavy.T @ z.mean)
    squares = (z.mean**2).sum(axis=1)[:, None] - 2.0 * z.mean @ mean.T + (mean**2).sum(axis=1)
    squares += np.trace(z.covariance, axis1=1, axis2=2)[:, None] + K * variance
    shape = 1.0 + 0.5 * K * counts
    rate = 1.0 + 0.5 * (heavy * squares).sum(axis=0)
    after = np.concatenate([np.cumsum(counts[::-1])[::-1][1:], [0.0]])
    both = digamma(1.0 + counts + alpha + after)
    log_stick, log_rest = digamma(1.0 + counts) - both, digamma(alpha + after) - both
    alpha = float(len(counts) / (1.0 - log_rest[:-1].sum()))
    log_psi = digamma(shape) - np.log(rate)
    return Gate(mean, variance, shape / rate, log_psi, _log_shares(log_stick, log_rest), alpha)


def _log_shares(log_stick: FloatArray, log_rest: FloatArray) -> FloatArray:
    """Log shares from the logs of the sticks and of what each leaves; the last takes all."""
    found: FloatArray = np.append(log_stick[:-1], 0.0) + np.concatenate([[0.0], np.cumsum(log_rest[:-1])])
    return found


def draw_gate(
    rng: np.random.Generator, gate: Gate, z: FloatArray, shares: FloatArray, weight: FloatArray
) -> Gate:
    """One Gibbs draw of each parameter of the mixture, given the experts of the rows."""
    K = z.shape[1]
    heavy = weight[:, None] * shares
    counts = heavy.sum(axis=0)
    variance = 1.0 / (1.0 + gate.precision * counts)
    mean = (variance * gate.precision)[:, None] * (heavy.T @ z)
    mean += np.sqrt(variance)[:, None] * rng.standard_normal(mean.shape)
    away = (z**2).sum(axis=1)[:, None] - 2.0 * z @ mean.T + (mean**2).sum(axis=1)
    psi = rng.gamma(1.0 + 0.5 * K * counts) / (1.0 + 0.5 * (heavy * away).sum(axis=0))
    after = np.concatenate([np.cumsum(counts[::-1])[::-1][1:], [0.0]])
    up, down = rng.gamma(1.0 + counts), np.maximum(rng.gamma(gate.alpha + after), 1e-300)
    log_stick, log_rest = np.log(up / (up + down)), np.log(down / (up + down))
    alpha = float(rng.gamma(len(counts)) / (1.0 - log_rest[:-1].sum()))
    return Gate(mean, np.zeros(len(psi)), psi, np.log(psi), _log_shares(log_stick, log_rest), alpha)


def first_gate(rng: np.random.Generator, z: Normal, weight: FloatArray, n_experts: int) -> Gate:
    """A gate from a few rounds of k-means on the factors."""
    n_rows = len(z.mean)
    centres = z.mean[rng.choice(n_rows, min(n_experts, n_rows), replace=False)]
    centres = np.concatenate([centres, np.zeros((n_experts - len(centres), z.mean.shape[1]))])
    for _ in range(10):
        far = (centres**2).sum(axis=1) - 2.0 * z.mean @ centres.T
        nearest = np.eye(n_experts)[far.argmin(axis=1)] * weight[:, None]
        counts = nearest.sum(axis=0)
        centres = np.where(
            counts[:, None] > 0, nearest.T @ z.mean / np.maximum(counts, 1e-12)[:, None], centres
        )
    order = np.argsort(-counts, kind="stable")
    return update_gate(None, z, nearest[:, order] / weight[:, None], weight)


def expected_weights(square: FloatArray) -> FloatArray:
    """<1/lambda> = <u^2>^{-1/2}."""
    return 1.0 / np.sqrt(np.maximum(square, FLOOR))


def decision_values(experts: Experts, z: Normal) -> FloatArray:
    """Mean decision value of each output: (B, C)."""
    shares = shares_of(experts.gate, z)
    beta = experts.beta.mean
    each = np.einsum("bk,tck->btc", z.mean, beta[..., :-1]) + beta[..., -1]
    found: FloatArray = (shares[:, :, None] * each).sum(axis=1)
    return found
