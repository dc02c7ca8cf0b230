"""Which features a row has under the chain graph: q(z) = prod Bernoulli(nu), units of a row in turn.

x a - A(a) of a visible unit is replaced by a quadratic around the present a: Jaakkola and Jordan's bound
(2000) for binary units, exact for real ones, for counts with the curvature of a Poisson law (no bound).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax

from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.enumeration import feature_sets
from nongauss.harmonium.exponential_families import Array, Layout, dense, mean_of, totals_of
from nongauss.harmonium.params import FeaturePrior, HarmoniumParams

CELLS = 2**18
"""Cells of a block of rows that are in memory at once."""

GROUP, SWEEPS = 7, 10
"""Units of a group whose sets are summed, and sweeps over all groups."""

SHARES = (*np.geomspace(0.02, 1.0, 12).tolist(), *[1.0] * 8)
"""Share of the likelihood of a new row with counts that is heeded in each sweep: it rises, so that features
that compete are told apart by all that they explain, not by which of them moves first (annealing)."""

UNSEEN = -1e30
"""Natural parameter of a count that is not seen: the others share the total."""

STEEPEST = 30.0
"""Weights of counts beyond this count as this in an exponential: within float32."""


class Surrogate(NamedTuple):
    """Slope and curvature (B, D) of the quadratic that replaces x a - A(a) around the mean of a."""

    slope: Array
    curvature: Array


def surrogate(
    layout: Layout, x: Array, a: Array, variance: Array, totals: Array, seen: Array | None
) -> Surrogate:
    """The quadratic around natural parameters of mean `a` and `variance` (B, D); 0 for cells not `seen`.

    Binary: curvature 2 w(xi) = tanh(xi / 2) / (2 xi), xi^2 = E[a^2] (Jaakkola and Jordan). Counts: the mean.
    """
    others = tuple(block for block in layout if block.kind != "binary")
    mean = mean_of(others, masked(a, seen), totals)
    slope, curvature = np.empty_like(a), np.ones_like(a)
    for block in layout:
        at = block.place
        if block.kind == "binary":
            xi = np.sqrt(a[:, at] * a[:, at] + variance[:, at]) + 1e-6
            left = np.exp(-xi)
            curvature[:, at] = (1.0 - left) / ((1.0 + left) * (xi + xi))
            slope[:, at] = x[:, at] - 0.5 - curvature[:, at] * a[:, at]
            continue
        slope[:, at] = x[:, at] - mean[:, at]
        if block.kind == "counts":
            curvature[:, at] = mean[:, at]
    if seen is not None:
        slope, curvature = slope * seen, curvature * seen
    return Surrogate(slope, curvature)


class DenseBlock(NamedTuple):
    """Rows that are worked on at once: their place among the N rows, and dense scaled cells x (B, D).

    `seen` (B, D): 1 where a cell is not missing (None: all); `totals` of counts; `weight` (B,).
    """

    place: slice
    x: Array
    seen: Array | None
    totals: Array
    weight: Array


def dense_blocks(layout: Layout, rows: VisibleRows, scale: Array) -> Iterator[DenseBlock]:
    """The rows, scaled and made dense, a block at a time."""
    scale = scale.astype(np.float32)
    for place, some in rows.blocks(CELLS):
        x = dense(some.X) * scale
        seen = None if some.missing is None else (~some.missing).astype(np.float32)
        yield DenseBlock(place, x.astype(np.float32), seen, totals_of(layout, x), some.weight)


def natural_moments(params: HarmoniumParams, on: Array) -> tuple[Array, Array]:
    """Mean and variance (B, D) of the natural parameter a = eta + W z under q(z) with P(z = 1) `on` (B, K):

        E a = eta + W nu,   Var a_d = sum_k nu_k (1 - nu_k) W_dk^2

    Large products are in float32: half the time.
    """
    W, nu = params.weights.astype(np.float32), on.astype(np.float32)
    return nu @ W.T + params.visible_bias.astype(np.float32), (nu * (1 - nu)) @ (W * W).T


def mean_field_sweeps(
    params: HarmoniumParams,
    layout: Layout,
    log_odds: Array,
    block: DenseBlock,
    on: Array,
    shares: Sequence[float],
) -> tuple[Array, Array]:
    """q(z) of the rows of a block, from P(z = 1) `on` (B, K): the new P(z = 1) and its logits (B, K).

    logit nu_k = log odds_k + t (W_k' slope + (nu_k - 1/2) W_k^2' curvature - e_k), e_k being what units that
    moved before it in the sweep explain by now, and t, one of `shares` a sweep, the share of the likelihood
    that counts. Between units of one sweep the curvature is that of a row whose units are as the prior has
    them; the next sweep starts from exact slopes.
    """
    W = params.weights.astype(np.float32)
    fixed, counted = _interactions(params, layout, log_odds)
    logits = np.empty_like(on)
    for share in shares:
        a, variance = natural_moments(params, on)
        at = surrogate(layout, block.x, a, variance, block.totals, block.seen)
        own = (at.curvature @ (W * W)).astype(np.float64)
        pull = (at.slope @ W).astype(np.float64) + (on - 0.5) * own
        pull += _count_correction(params, layout, block, a, on)
        moved, new = np.zeros_like(on), on.copy()
        for k in range(on.shape[1]):
            explained = moved @ fixed[:, k]
            for total, each in zip(block.totals.T, counted, strict=True):
                explained += total * (moved @ each[:, k])
            logits[:, k] = log_odds[k] + share * (pull[:, k] - explained)
            new[:, k] = expit(logits[:, k])
            moved[:, k] = new[:, k] - on[:, k]
        on = new
    return on, logits


def structured_sweeps(
    params: HarmoniumParams, layout: Layout, log_odds: Array, block: DenseBlock, on: Array
) -> Array:
    """P(z = 1) (B, K) of rows without counts by structured mean field: q(z) is a product over groups.

    Of the units g of a group, the others being at their means, each set z_g has the chance

        log q(z_g) = z_g' (log odds + W_g' slope + F nu_g) - z_g' F z_g / 2,    F = W_g' diag(curvature) W_g

    up to a constant: units of a group compete exactly. Groups are drawn anew, alike for all rows, in each of
    `SWEEPS`, in which the quadratics stay as they are.
    """
    W, on, rng = params.weights.astype(np.float32), on.copy(), np.random.default_rng(0)
    n_groups = -(-len(log_odds) // GROUP)
    for _ in range(SWEEPS):
        a, variance = natural_moments(params, on)
        slope, curvature = surrogate(layout, block.x, a, variance, block.totals, block.seen)
        for group in np.array_split(rng.permutation(len(log_odds)), n_groups):
            own, n, sets = W[:, group], len(group), feature_sets(len(group))
            pairs = (own[:, :, None] * own[:, None, :]).reshape(-1, n * n)
            F = (curvature @ pairs).astype(np.float64)
            pull = (slope @ own + log_odds[group]).astype(np.float64)
            pull += (F.reshape(-1, n, n) @ on[:, group, None])[:, :, 0]
            squares = (sets[:, :, None] * sets[:, None, :]).reshape(-1, n * n)
            new = softmax(pull @ sets.T - 0.5 * F @ squares.T, axis=1) @ sets
            slope = slope - curvature * ((new - on[:, group]).astype(np.float32) @ own.T)
            on[:, group] = new
    return on


def _interactions(params: HarmoniumParams, layout: Layout, log_odds: Array) -> tuple[Array, list[Array]]:
    """W' diag(curvature) W (K, K): how much a unit lowers the logit of another, in a row whose units are as
    the prior has them; and for each block of counts the same by each one that is counted."""
    a, variance = natural_moments(params, expit(log_odds)[None])
    n_counted = sum(block.kind == "counts" for block in layout)
    usual = surrogate(layout, np.zeros_like(a), a, variance, np.ones((1, n_counted)), None).curvature[0]
    fixed, counted = np.zeros((len(log_odds), len(log_odds))), []
    for block in layout:
        W = params.weights[block.place]
        cross = (W * usual[block.place, None]).T @ W
        if block.kind == "counts":
            counted.append(cross)
        else:
            fixed += cross
    return fixed, counted


def _count_correction(
    params: HarmoniumParams, layout: Layout, block: DenseBlock, a: Array, on: Array
) -> Array:
    """What the log partition of counts adds to the logits beyond its quadratic, (B, K).

    A unit may multiply a count by so much that g(t) = log sum_d p_d e^(t w_d) is far from quadratic. It is
    taken as the polynomial of fourth degree that has its values at -1, 0 and 1 and two derivatives at 0.
    """
    out, counted = np.zeros_like(on), 0
    for part in layout:
        if part.kind != "counts":
            continue
        at, W = part.place, params.weights[part.place].astype(np.float32)
        p = softmax(masked(a, block.seen)[:, at], axis=1)
        slope, square = p @ W, p @ (W * W)
        up, down = (np.log(p @ np.exp(np.clip(sign * W, -STEEPEST, STEEPEST))) for sign in (1, -1))
        second = 0.5 * (square - slope * slope)
        third, fourth = 0.5 * (up - down) - slope, 0.5 * (up + down) - second
        off, rest = 1.0 - on, -on
        moves = second * (off**2 - rest**2) + third * (off**3 - rest**3) + fourth * (off**4 - rest**4)
        out += block.totals[:, counted, None] * ((0.5 - on) * square - moves)
        counted += 1
    return out


def masked(a: Array, seen: Array | None) -> Array:
    """Natural parameters (B, D), those of cells that are not seen at minus infinity."""
    return a if seen is None else np.where(seen > 0, a, UNSEEN)


def infer_features(params: HarmoniumParams, layout: Layout, prior: FeaturePrior, rows: VisibleRows) -> Array:
    """P(z = 1) under q(z) of new rows, (N, K): by groups of units, or with counts unit by unit."""
    on, odds = np.tile(expit(prior.log_odds), (rows.X.shape[0], 1)), prior.log_odds
    has_counts = any(block.kind == "counts" for block in layout)
    for block in dense_blocks(layout, rows, params.scale):
        at = block.place
        if has_counts:
            on[at], _ = mean_field_sweeps(params, layout, odds, block, on[at], SHARES)
        else:
            on[at] = structured_sweeps(params, layout, odds, block, on[at])
    return on
