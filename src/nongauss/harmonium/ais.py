"""Log likelihood of rows under a fitted harmonium, so that models can be compared.

Globally normalised: log p~(x) - log Z, where log Z comes from annealed importance sampling (Neal 2001;
Salakhutdinov and Murray 2008): from the model without weights, whose Z is known, in many small steps. Chain
graph: importance sampling of z from q(z | x), row by row.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from nongauss.core.errors import InputError
from nongauss.harmonium.data import unlabelled
from nongauss.harmonium.exponential_families import (
    Array,
    dense,
    log_partition,
    sample_visible,
    softplus,
    totals_of,
)
from nongauss.harmonium.objective import chain_log_joint, log_marginal
from nongauss.harmonium.posterior import infer_features
from nongauss.harmonium.predict import CELLS, Machine


def annealed_log_partition(
    machine: Machine, rng: np.random.Generator, n_chains: int, n_steps: int
) -> tuple[float, float]:
    """log Z of the globally normalised model with binary hidden units, and its standard error.

    log Z = log Z_0 + log mean_s prod_t p~_t(x_t) / p~_{t-1}(x_t), p~_t having t times the preactivations.
    """
    if machine.units != "binary" or any(block.kind == "counts" for block in machine.layout):
        raise InputError(
            "The log likelihood by annealing is for binary hidden units and binary or real columns; "
            "fit with units='binary' and without counts."
        )
    params, odds = machine.params, machine.prior.log_odds
    W, bias = params.weights.astype(np.float64), (params.hidden_bias + odds).astype(np.float64)
    eta = params.visible_bias.astype(np.float64)
    none = np.zeros((n_chains, 0))
    x = sample_visible(rng, machine.layout, np.tile(eta, (n_chains, 1)), none)
    log_weight = np.full(
        n_chains, log_partition(machine.layout, eta[None], none[:1])[0] + len(bias) * np.log(2.0)
    )
    steps = np.linspace(0.0, 1.0, n_steps + 1)
    S = x @ W + bias
    for before, now in pairwise(steps):
        log_weight += (softplus(now * S) - softplus(before * S)).sum(axis=1)
        z = rng.random(S.shape) < expit(now * S)
        x = sample_visible(rng, machine.layout, eta + now * (z @ W.T), none)
        S = x @ W + bias
    total = logsumexp(log_weight)
    ratios = np.exp(log_weight - total)
    return float(total - np.log(n_chains)), float(np.sqrt(max((ratios**2).sum() - 1.0 / n_chains, 0.0)))


def log_likelihood(
    machine: Machine, X: Any, rng: np.random.Generator, n_chains: int = 200, n_steps: int = 1000
) -> Array:
    """log p(x) of encoded rows X (N, D) without gaps, nats (N,).

    Real columns by the density of encoded values, counts given their sum. Some rows at a time are made dense.
    """
    log_z = annealed_log_partition(machine, rng, n_chains, n_steps)[0] if machine.reading == "global" else 0.0
    out = np.empty(X.shape[0])
    for place, rows in unlabelled(X).blocks(CELLS):
        x = dense(rows.X, np.float64)
        scaled = x * machine.params.scale
        if machine.reading == "chain":
            relative = _by_importance(machine, x, scaled, rng, n_chains)
        else:
            relative = log_marginal(machine.params, machine.units, machine.prior.log_odds, scaled) - log_z
        out[place] = _log_base(machine, scaled) + relative
    return out


def _log_base(machine: Machine, x: Array) -> Array:
    """The log base measure of scaled rows (B, D), (B,): what does not depend on the features.

    log scale - (x^2 + log 2 pi) / 2 of a real cell, log (sum x)! - sum log x! of a block of counts.
    """
    out = np.zeros(len(x))
    for block in machine.layout:
        part = x[:, block.place]
        if block.kind == "real":
            log_scale = np.log(machine.params.scale[block.place])
            out += (log_scale - 0.5 * (part**2 + np.log(2 * np.pi))).sum(axis=1)
        elif block.kind == "counts":
            out += gammaln(part.sum(axis=1) + 1.0) - gammaln(part + 1.0).sum(axis=1)
    return out


def _by_importance(machine: Machine, X: Array, x: Array, rng: np.random.Generator, n_draws: int) -> Array:
    """log mean_s p(x, z_s) / q(z_s | x), z_s ~ q, of the chain graph: (B,), X encoded and x scaled rows."""
    q = np.clip(infer_features(machine.params, machine.layout, machine.prior, unlabelled(X)), 0.001, 0.999)
    totals = totals_of(machine.layout, x)
    ratios = np.empty((n_draws, len(x)))
    for s in range(n_draws):
        z = (rng.random(q.shape) < q).astype(np.float64)
        own = (z * np.log(q) + (1 - z) * np.log1p(-q)).sum(axis=1)
        ratios[s] = (
            chain_log_joint(machine.params, machine.layout, machine.prior.log_odds, x, totals, z) - own
        )
    out: Array = logsumexp(ratios, axis=0) - np.log(n_draws)
    return out
