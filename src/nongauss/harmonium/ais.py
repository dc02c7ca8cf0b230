"""Log likelihood of rows under a fitted harmonium, so that models can be compared.

Globally normalised: log p~(x) - log Z, where log Z comes from annealed importance sampling (Neal 2001;
Salakhutdinov and Murray 2008): from the model without weights, whose Z is known, in many small steps. Chain
graph: importance sampling of z from q(z | x), row by row. Where features are few both are sums over their
sets.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from nongauss.core.errors import InputError
from nongauss.harmonium.data import VisibleRows, unlabelled
from nongauss.harmonium.exponential_families import (
    Array,
    Layout,
    dense,
    log_partition,
    sample_visible,
    softplus,
    totals_of,
)
from nongauss.harmonium.objective import log_marginal
from nongauss.harmonium.posterior import UNSEEN
from nongauss.harmonium.predict import Machine


def annealed_log_partition(
    machine: Machine, rng: np.random.Generator, n_chains: int, n_steps: int, use: Array | None = None
) -> tuple[float, float]:
    """log Z of the globally normalised model with binary hidden units, and its standard error.

    log Z = log Z_0 + log mean_s prod_t p~_t(x_t) / p~_{t-1}(x_t), p~_t having t times the preactivations and
    the visible bias eta + (1 - t) W use. `use` (K,): mean of the hidden units over the data, from which the
    model without weights is near it (None: 0); any gives the same log Z, a near one with less error.
    """
    _check_annealed(machine)
    params, odds = machine.params, machine.prior.log_odds
    W, bias = params.weights.astype(np.float64), (params.hidden_bias + odds).astype(np.float64)
    more = W @ (np.zeros(len(bias)) if use is None else use)
    eta = params.visible_bias.astype(np.float64) + more
    none = np.zeros((n_chains, 0))
    x = sample_visible(rng, machine.layout, np.tile(eta, (n_chains, 1)), none)
    log_weight = np.full(
        n_chains, log_partition(machine.layout, eta[None], none[:1])[0] + len(bias) * np.log(2.0)
    )
    steps = np.linspace(0.0, 1.0, n_steps + 1)
    S = x @ W + bias
    for before, now in pairwise(steps):
        log_weight += (softplus(now * S) - softplus(before * S)).sum(axis=1) - (now - before) * (x @ more)
        z = rng.random(S.shape) < expit(now * S)
        x = sample_visible(rng, machine.layout, eta + now * (z @ W.T - more), none)
        S = x @ W + bias
    total = logsumexp(log_weight)
    ratios = np.exp(log_weight - total)
    return float(total - np.log(n_chains)), float(np.sqrt(max((ratios**2).sum() - 1.0 / n_chains, 0.0)))


def log_partition_function(
    machine: Machine, rng: np.random.Generator, n_chains: int, n_steps: int, use: Array | None
) -> float:
    """log Z of the globally normalised model: summed over few features, else by annealing; see there."""
    _check_annealed(machine)
    if not machine.is_summed:
        return annealed_log_partition(machine, rng, n_chains, n_steps, use)[0]
    D = len(machine.params.scale)
    none = unlabelled(np.zeros((1, D)), np.ones((1, D), dtype=np.bool_))
    return float(logsumexp(machine.log_joint(none)))


def _check_annealed(machine: Machine) -> None:
    """Raises InputError for models whose Z is not computed: with sizes, or that of each row with counts."""
    if machine.units != "binary" or any(block.kind == "counts" for block in machine.layout):
        raise InputError(
            "The log likelihood by annealing is for binary hidden units and binary or real columns; "
            "fit with units='binary' and without counts."
        )


def log_likelihood(
    machine: Machine,
    X: Any,
    rng: np.random.Generator,
    n_chains: int = 200,
    n_steps: int = 1000,
    missing: Array | None = None,
    use: Array | None = None,
) -> Array:
    """log p(x) of the seen cells of encoded rows X (N, D), nats (N,); `missing` (N, D): the others, or None.

    `use`: see `annealed_log_partition`.

    Real columns by the density of encoded values, counts given their sum. Some rows at a time are made dense.
    """
    log_z = 0.0
    if machine.reading == "global":
        log_z = log_partition_function(machine, rng, n_chains, n_steps, use)
    out = np.empty(X.shape[0])
    for place, rows in machine.blocks(X, missing):
        x = dense(rows.X, np.float64)
        scaled = x * machine.params.scale
        seen = np.ones(x.shape) if rows.missing is None else (~rows.missing).astype(np.float64)
        if machine.is_summed:
            relative = logsumexp(machine.log_joint(rows), axis=1) - log_z
        elif machine.reading == "chain" or rows.missing is not None:
            relative = _by_importance(machine, rows, scaled * seen, seen, rng, n_chains) - log_z
        else:
            relative = log_marginal(machine.params, machine.units, machine.prior.log_odds, scaled) - log_z
        out[place] = _log_base(machine, scaled * seen, seen) + relative
    return out


def _log_base(machine: Machine, x: Array, seen: Array) -> Array:
    """The log base measure of scaled rows (B, D) over their seen cells: what does not depend on the features.

    log scale - (x^2 + log 2 pi) / 2 of a real cell, log (sum x)! - sum log x! of a block of counts.
    """
    out = np.zeros(len(x))
    for block in machine.layout:
        part = x[:, block.place]
        if block.kind == "real":
            log_scale = np.log(machine.params.scale[block.place])
            out += (seen[:, block.place] * (log_scale - 0.5 * (part**2 + np.log(2 * np.pi)))).sum(axis=1)
        elif block.kind == "counts":
            out += gammaln(part.sum(axis=1) + 1.0) - gammaln(part + 1.0).sum(axis=1)
    return out


def _by_importance(
    machine: Machine, rows: VisibleRows, x: Array, seen: Array, rng: np.random.Generator, n_draws: int
) -> Array:
    """log mean_s p(x, z_s) / q(z_s | x), z_s ~ q, over the seen cells: (B,), x scaled rows, 0 where not seen.

    Of the globally normalised model p~(x, z) = exp(x a + (beta + log odds) z) with A(a) of each cell that is
    not seen.
    """
    mean = machine.hidden(rows.X, rows.missing)
    q = np.clip(mean, 0.001, 0.999)
    params, layout, odds = machine.params, machine.layout, machine.prior.log_odds
    totals = totals_of(layout, x)
    ratios = np.empty((n_draws, len(x)))
    for s in range(n_draws):
        z = (rng.random(q.shape) < q).astype(np.float64)
        own = (z * np.log(q) + (1 - z) * np.log1p(-q)).sum(axis=1)
        a = z @ params.weights.T + params.visible_bias
        told = (x * a).sum(axis=1)
        if machine.reading == "chain":
            prior = (z * odds - softplus(odds)).sum(axis=1)
            joint = prior + told - log_partition(layout, _only(layout, a, seen), totals)
        else:
            unseen = log_partition(layout, _only(layout, a, 1.0 - seen), totals)
            joint = told + z @ (params.hidden_bias + odds) + unseen
        ratios[s] = joint - own
    out: Array = logsumexp(ratios, axis=0) - np.log(n_draws)
    return out


def _only(layout: Layout, a: Array, cells: Array) -> Array:
    """Natural parameters (B, D) whose log partition is that of some cells, 1 in (B, D), alone."""
    out = np.where(cells > 0, a, UNSEEN)
    for block in layout:
        if block.kind == "real":
            out[:, block.place] = a[:, block.place] * cells[:, block.place]
    return out
