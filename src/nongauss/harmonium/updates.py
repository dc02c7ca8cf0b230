"""Gradients of the globally normalised model by contrastive divergence, the hinge's, and Adam; in float32.

The gradients are written by hand: with sparse rows every product with the data is one of scipy's sparse times
dense products, several times cheaper than the same rows made dense for compiled code.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nongauss.harmonium.exponential_families import (
    Array,
    Layout,
    Response,
    dense,
    mean_of,
    respond,
    sample_hidden,
    sample_visible,
    saturated_share,
    totals_of,
)
from nongauss.harmonium.objective import centred, scores, softened, worst_rival
from nongauss.harmonium.params import Params

FILL_SWEEPS = 3
"""Mean-field sweeps that fill missing cells during learning."""

LEAST_VARIANCE = 1e-4
"""Added to the variance of a unit before correlations are priced, so that idle units are not pushed."""

DECAY_1, DECAY_2, TINY = 0.9, 0.999, 1e-8
"""Adam's memory of the mean and of the square of a gradient."""


class Contrast(NamedTuple):
    """Ascent direction of the likelihood by weights, visible and hidden bias, a row; weighted sum of the
    units' use (K,).

    `saturated`: share of the units' means outside [.02, .98].
    """

    weights: Array
    visible_bias: Array
    hidden_bias: Array
    on: Array
    saturated: float


def drive_of(params: Params, X: Any) -> Array:
    """S = beta + x' W for dense or sparse rows, (B, K)."""
    return np.asarray(X @ params.weights) + params.hidden_bias


def filled(
    params: Params,
    units: str,
    layout: Layout,
    prior: Array,
    x: Array,
    missing: Array,
    usual: Array,
    sweeps: int = FILL_SWEEPS,
) -> Array:
    """x (B, D) with missing cells at their mean-field expectation: q0 with those cells free.

    `usual`: what the counts of a row sum to in each block of counts, for rows that have none of them.
    """
    x = np.where(missing, 0.0, x).astype(x.dtype)
    seen = ~missing
    totals = _whole_totals(layout, x, seen, usual)
    a = np.broadcast_to(params.visible_bias, x.shape).copy()
    for _ in range(sweeps):
        x = np.where(missing, mean_of(layout, a, totals), x)
        a = respond(units, drive_of(params, x), prior).mean @ params.weights.T + params.visible_bias
    return np.where(missing, mean_of(layout, a, totals), x)


def _whole_totals(layout: Layout, x: Array, seen: Array, usual: Array) -> Array:
    """Totals of count blocks, scaled up for missing cells; a block wholly missing has its usual total."""
    share = totals_of(layout, seen) / totals_of(layout, np.ones((1, x.shape[1])))
    return np.where(share > 0, totals_of(layout, x) / np.maximum(share, 1e-12), usual)


def contrast(
    params: Params,
    units: str,
    layout: Layout,
    prior: Array,
    X: Any,
    weight: Array,
    chains: Array | None = None,
    rng: np.random.Generator | None = None,
    ridge: float = 0.0,
    overlap: float = 0.0,
) -> Contrast:
    """Gradient of -CF1 a row with q0 and q1 held fixed; with `chains` (B, D), these are the negative phase.

    `weight` (B,): shares of a batch, whose sum is what the batch counts for. With `rng`, hidden units are
    drawn before they reconstruct.
    """
    S0 = drive_of(params, X)
    at0 = respond(units, S0, prior)
    totals = totals_of(layout, X)
    h = at0.mean if rng is None else sample_hidden(rng, units, S0, prior)
    a1 = h @ params.weights.T + params.visible_bias
    x1 = mean_of(layout, a1, totals)
    negative, share = x1, weight
    if chains is not None:
        negative, share = chains, np.full(len(chains), weight.sum() / len(chains), weight.dtype)
    e1 = respond(units, drive_of(params, negative), prior).mean
    up, down = at0.mean * weight[:, None], e1 * share[:, None]
    up += restrain(ridge, overlap, S0, at0, weight)
    return Contrast(
        np.asarray(X.T @ up) - negative.T @ down,
        np.asarray(X.T @ weight).reshape(-1) - share @ negative,
        up.sum(axis=0) - down.sum(axis=0),
        weight @ at0.on,
        saturated_share(at0.on, weight),
    )


def restrain(ridge: float, overlap: float, drive: Array, at: Response, weight: Array) -> Array:
    """Slope by the drive S (B, K), row weights included, of

        - ridge / 2 sum_k Var S_k  - overlap / 16 sum_{j != k} r_jk^8

    times what the batch counts for, with moments over the batch: a g-prior of the weights (Zellner 1986), and
    a price of units that say the same, r being the correlation of their means. Its eighth power leaves pairs
    below .7 alone.
    """
    share = weight / weight.sum()
    slope = -ridge * (drive - share @ drive) if ridge else np.zeros_like(drive)
    if overlap:
        h = at.mean - share @ at.mean
        spread = np.sqrt(share @ (h * h) + LEAST_VARIANCE)
        h /= spread
        r = (h * share[:, None]).T @ h
        np.fill_diagonal(r, 0.0)
        push = r**7
        slope -= overlap * (h @ push - h * (push * r).sum(axis=0)) / spread * at.slope
    out: Array = (slope * weight[:, None]).astype(drive.dtype)
    return out


def advance(
    rng: np.random.Generator,
    params: Params,
    units: str,
    layout: Layout,
    prior: Array,
    chains: Array,
    totals: Array,
) -> Array:
    """One Gibbs sweep of persistent chains (S, D)."""
    h = sample_hidden(rng, units, drive_of(params, chains), prior)
    a = h @ params.weights.T + params.visible_bias
    return sample_visible(rng, layout, a, totals).astype(chains.dtype)


class Hinge(NamedTuple):
    """Ascent direction of minus the hinge loss a row, by weights, hidden bias, votes, intercept; the loss."""

    weights: Array
    hidden_bias: Array
    votes: Array
    intercept: Array
    loss: float


def hinge(
    params: Params,
    units: str,
    prior: Array,
    X: Any,
    weight: Array,
    labels: Array,
    margin: float = 1.0,
    overlap: float = 0.0,
    softness: float = 0.0,
) -> Hinge:
    """Sub-gradient of the weighted sum of the Crammer-Singer loss; `weight` (B,) as in `contrast`.

    With a `softness` above 0 the gradient of the loss that is softened so.
    """
    drive = drive_of(params, X)
    at = respond(units, drive, prior)
    f = scores(params, units, at.mean)
    rows = np.arange(len(f))
    pull = np.zeros_like(f)
    if softness > 0.0:
        loss, share = softened(f, labels, margin, softness)
        pull -= weight[:, None] * share
    else:
        loss, rival = worst_rival(f, labels, margin)
        pull[rows, rival] -= weight
    pull[rows, labels] += weight
    by_drive = (pull @ params.votes) * at.slope + restrain(0.0, overlap, drive, at, weight)
    return Hinge(
        np.asarray(X.T @ by_drive),
        by_drive.sum(axis=0),
        pull.T @ centred(units, at.mean),
        pull.sum(axis=0),
        float(weight @ loss),
    )


def dropped(rng: np.random.Generator, X: Any, share: float) -> Any:
    """X with cells set to 0 at random, the others scaled up so that their expectation is kept."""
    if hasattr(X, "tocsr"):
        out = X.copy()
        out.data = out.data * (rng.random(len(out.data), dtype=np.float32) >= share) / np.float32(1 - share)
        return out
    return X * ((rng.random(X.shape, dtype=np.float32) >= share) / np.float32(1 - share))


def hidden_views(rng: np.random.Generator, layout: Layout, X: Any, share: float, means: Array) -> Any:
    """X where a `share` of the rows have one of their views, drawn at random, at its `means` (D,); dense."""
    views = sorted({block.view for block in layout})
    if len(views) == 1:
        return X
    out = dense(X)
    gone = np.where(rng.random(len(out)) < share, rng.integers(0, len(views), len(out)), -1)
    for block in layout:
        out[gone == views.index(block.view), block.place] = means[block.place]
    return out


class Adam:
    """Kingma and Ba (2015), ascending, in place on float32 arrays."""

    def __init__(self, arrays: tuple[Array, ...]) -> None:
        self.means = [np.zeros_like(array) for array in arrays]
        self.squares = [np.zeros_like(array) for array in arrays]
        self.spare = [np.empty_like(array) for array in arrays]
        self.n_steps = 0

    @property
    def memory(self) -> tuple[list[Array], list[Array], int]:
        """Running means, running squares and number of steps."""
        return self.means, self.squares, self.n_steps

    @memory.setter
    def memory(self, memory: tuple[list[Array], list[Array], int]) -> None:
        self.means, self.squares, self.n_steps = memory

    def step(self, arrays: tuple[Array, ...], gradients: tuple[Array, ...], rates: tuple[float, ...]) -> None:
        """Move each array along its gradient, with a step size of its own."""
        self.n_steps += 1
        first, second = 1 - DECAY_1**self.n_steps, 1 - DECAY_2**self.n_steps
        every = zip(arrays, gradients, rates, self.means, self.squares, self.spare, strict=True)
        for array, gradient, rate, mean, square, spare in every:
            if rate == 0.0 or not array.size:
                continue
            np.multiply(gradient, 1 - DECAY_1, out=spare)
            mean *= DECAY_1
            mean += spare
            np.multiply(gradient, gradient, out=spare)
            spare *= 1 - DECAY_2
            square *= DECAY_2
            square += spare
            np.sqrt(square, out=spare)
            spare += TINY
            np.divide(mean, spare, out=spare)
            spare *= rate * np.sqrt(second) / first
            array += spare
