"""Gradients of the globally normalised model by contrastive divergence, the labels', Adam; sticks; float32.

The gradients are written by hand: with sparse rows every product with the data is one of scipy's sparse times
dense products, several times cheaper than the same rows made dense for compiled code. B rows of a batch, D
visible units, K hidden units, C classes, S persistent chains.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import digamma

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
from nongauss.harmonium.objective import (
    VoteLoss,
    centred,
    expected_log_pi,
    expected_log_rest,
    multinomial_bound,
    scores,
)
from nongauss.harmonium.params import HarmoniumParams

FILL_SWEEPS = 3
"""Mean-field sweeps that fill missing cells during learning."""

LEAST_VARIANCE = 1e-4
"""Added to the variance of a unit before correlations are priced, so that idle units are not pushed."""

DECAY_1, DECAY_2, TINY = 0.9, 0.999, 1e-8
"""Adam's memory of the mean and of the square of a gradient."""

SWEEPS = 30
"""Most updates of gamma, the sticks; they stop earlier when gamma no longer moves."""


class Contrast(NamedTuple):
    """Ascent direction of the likelihood a row by weights (D, K), visible (D,) and hidden bias (K,); the
    weighted sum of P(z = 1) over rows, `on` (K,).

    `saturated`: share of the units' means outside [.02, .98]. `scale` (D,), if asked for: by the logarithm of
    the factor by which a real column was scaled, 1 + E[x (a - x)], since E[x (a - x)] is -1 in the model.
    """

    weights: Float[np.ndarray, "D K"]
    visible_bias: Float[np.ndarray, " D"]
    hidden_bias: Float[np.ndarray, " K"]
    on: Float[np.ndarray, " K"]
    saturated: float
    scale: Float[np.ndarray, " D"] | None = None


def preactivation(params: HarmoniumParams, X: Any) -> Float[np.ndarray, "B K"]:
    """S = beta + x' W (6) for dense or sparse rows X (B, D)."""
    S: Float[np.ndarray, "B K"] = np.asarray(X @ params.weights) + params.hidden_bias
    return S


def filled_by_mean_field(
    params: HarmoniumParams,
    units: str,
    layout: Layout,
    log_odds: Float[np.ndarray, " K"],
    x: Float[np.ndarray, "B D"],
    missing: Bool[np.ndarray, "B D"],
    mean_totals: Float[np.ndarray, " n_counted"],
    sweeps: int = FILL_SWEEPS,
) -> Float[np.ndarray, "B D"]:
    """x with missing cells at their mean-field expectation: x_d = E[x_d | a], a = eta + W E[h~ | x] in turn.

    `mean_totals`: what the counts of a row sum to in each block of counts, for rows that have none of them.
    """
    x = np.where(missing, 0.0, x).astype(x.dtype)
    totals = complete_totals(layout, x, ~missing, mean_totals)
    a = np.broadcast_to(params.visible_bias, x.shape).copy()
    for _ in range(sweeps):
        x = np.where(missing, mean_of(layout, a, totals), x)
        a = respond(units, preactivation(params, x), log_odds).mean @ params.weights.T + params.visible_bias
    return np.where(missing, mean_of(layout, a, totals), x)


def complete_totals(
    layout: Layout,
    x: Float[np.ndarray, "B D"],
    seen: Bool[np.ndarray, "B D"],
    mean_totals: Float[np.ndarray, " n_counted"],
) -> Float[np.ndarray, "B n_counted"]:
    """Totals of blocks of counts divided by the share of the block that is seen; where none of it is, the
    mean total."""
    share = totals_of(layout, seen) / totals_of(layout, np.ones((1, x.shape[1])))
    return np.where(share > 0, totals_of(layout, x) / np.maximum(share, 1e-12), mean_totals)


def contrast(
    params: HarmoniumParams,
    units: str,
    layout: Layout,
    log_odds: Float[np.ndarray, " K"],
    X: Any,
    weight: Float[np.ndarray, " B"],
    chains: Float[np.ndarray, "S D"] | None = None,
    rng: np.random.Generator | None = None,
    ridge: float = 0.0,
    overlap: float = 0.0,
    with_scale: bool = False,
) -> Contrast:
    """Gradient of -CF1 a row with q0 and q1 held fixed, X dense or CSR (B, D): by weights

        sum_d w_d (x_d E_q0[h~]' - x1_d E_q1[h~]')

    With `chains` these are the negative phase. `weight`: shares of a batch, whose sum is what the batch
    counts for. With `rng`, hidden units are drawn before they reconstruct. `ridge` and `overlap`: see
    `restraint_slope`.
    """
    S0 = preactivation(params, X)
    at0 = respond(units, S0, log_odds)
    if chains is None or with_scale:
        h = at0.mean if rng is None else sample_hidden(rng, units, S0, log_odds)
        a1 = h @ params.weights.T + params.visible_bias
    if chains is None:
        negative, share = mean_of(layout, a1, totals_of(layout, X)), weight
    else:
        negative, share = chains, np.full(len(chains), weight.sum() / len(chains), weight.dtype)
    e1 = respond(units, preactivation(params, negative), log_odds).mean
    up, down = at0.mean * weight[:, None], e1 * share[:, None]
    up += restraint_slope(ridge, overlap, S0, at0, weight)
    return Contrast(
        np.asarray(X.T @ up) - negative.T @ down,
        np.asarray(X.T @ weight).reshape(-1) - share @ negative,
        up.sum(axis=0) - down.sum(axis=0),
        weight @ at0.on,
        saturated_share(at0.on, weight),
        _scale_slope(X, a1, weight) if with_scale else None,
    )


def _scale_slope(
    X: Any, a: Float[np.ndarray, "B D"], weight: Float[np.ndarray, " B"]
) -> Float[np.ndarray, " D"]:
    """sum_d w_d (1 + x_d (a_d - x_d)) of each column, X (B, D) dense or CSR."""
    product = X.multiply(a) - X.multiply(X) if hasattr(X, "multiply") else X * (a - X)
    out: Float[np.ndarray, " D"] = weight.sum() + np.asarray(product.T @ weight).reshape(-1)
    return out


def restraint_slope(
    ridge: float,
    overlap: float,
    S: Float[np.ndarray, "B K"],
    at: Response,
    weight: Float[np.ndarray, " B"],
) -> Float[np.ndarray, "B K"]:
    """Slope by the preactivation S, row weights included, of

        - ridge / 2 sum_k Var S_k  - overlap / 16 sum_{j != k} r_jk^8

    times what the batch counts for, with moments over the batch: a g-prior of the weights (Zellner 1986), and
    a price of units that say the same, r being the correlation of their means. Its eighth power leaves pairs
    below .7 alone.
    """
    share = weight / weight.sum()
    slope = -ridge * (S - share @ S) if ridge else np.zeros_like(S)
    if overlap:
        h = at.mean - share @ at.mean
        spread = np.sqrt(share @ (h * h) + LEAST_VARIANCE)
        h /= spread
        r = (h * share[:, None]).T @ h
        np.fill_diagonal(r, 0.0)
        push = r**7
        slope -= overlap * (h @ push - h * (push * r).sum(axis=0)) / spread * at.slope
    out: Array = (slope * weight[:, None]).astype(S.dtype)
    return out


def gibbs_sweep(
    rng: np.random.Generator,
    params: HarmoniumParams,
    units: str,
    layout: Layout,
    log_odds: Float[np.ndarray, " K"],
    chains: Float[np.ndarray, "S D"],
    totals: Float[np.ndarray, "S n_counted"],
) -> Float[np.ndarray, "S D"]:
    """One sweep of persistent chains: h~ ~ p(h~ | x), then x ~ p(x | h~)."""
    h = sample_hidden(rng, units, preactivation(params, chains), log_odds)
    a = h @ params.weights.T + params.visible_bias
    return sample_visible(rng, layout, a, totals).astype(chains.dtype)


class VoteGradient(NamedTuple):
    """Ascent direction of minus the labels' loss a row, by weights, hidden bias, votes, intercept and raw
    votes; the loss."""

    weights: Float[np.ndarray, "D K"]
    hidden_bias: Float[np.ndarray, " K"]
    votes: Float[np.ndarray, "C K"]
    intercept: Float[np.ndarray, " C"]
    raw: Float[np.ndarray, "rows columns"]
    loss: float


def vote_gradient(
    params: HarmoniumParams,
    units: str,
    log_odds: Float[np.ndarray, " K"],
    X: Any,
    weight: Float[np.ndarray, " B"],
    labels: Int[np.ndarray, " B"] | Float[np.ndarray, " B"],
    loss: VoteLoss,
    overlap: float = 0.0,
) -> VoteGradient:
    """Sub-gradient of the weighted sum of the labels' loss, X dense or CSR (B, D): of classes by f

        sum_d w_d (e_{y_d} - e_{rival of d}),

    of numbers sum_d w_d sign(y_d - f_d) outside the tube, and through f = mu' (E[h~] - 1/2) + b + rho' x by
    all else. `weight` as in `contrast`.
    """
    S = preactivation(params, X)
    at = respond(units, S, log_odds)
    each, slope = loss.at(scores(params, units, at.mean, X), labels)
    pull = -weight[:, None] * slope
    by_S = (pull @ params.votes) * at.slope + restraint_slope(0.0, overlap, S, at, weight)
    return VoteGradient(
        np.asarray(X.T @ by_S),
        by_S.sum(axis=0),
        pull.T @ centred(units, at.mean),
        pull.sum(axis=0),
        np.asarray(X.T @ pull).T if params.raw.size else np.zeros_like(params.raw),
        float(weight @ each),
    )


def with_dropout(rng: np.random.Generator, X: Any, share: float) -> Any:
    """X (B, D) with a `share` of its cells set to 0 at random, the others scaled up: its expectation is X."""
    if hasattr(X, "tocsr"):
        out = X.copy()
        out.data = out.data * (rng.random(len(out.data), dtype=np.float32) >= share) / np.float32(1 - share)
        return out
    return X * ((rng.random(X.shape, dtype=np.float32) >= share) / np.float32(1 - share))


def with_hidden_views(
    rng: np.random.Generator, layout: Layout, X: Any, share: float, means: Float[np.ndarray, " D"]
) -> Any:
    """X (B, D), dense, where a `share` of the rows have one view, drawn at random, at its `means`."""
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
        """Running means of the gradients, of their squares, and number of steps."""
        return self.means, self.squares, self.n_steps

    @memory.setter
    def memory(self, memory: tuple[list[Array], list[Array], int]) -> None:
        self.means, self.squares, self.n_steps = memory

    def step(self, arrays: tuple[Array, ...], gradients: tuple[Array, ...], rates: tuple[float, ...]) -> None:
        """Move each array along its gradient g: by rate m / (sqrt v + 1e-8), m and v the means of g and g^2.

        Both means are corrected for their start at 0.
        """
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


def update_sticks(on: Float[np.ndarray, " K"], n_rows: float, alpha: float) -> Float[np.ndarray, "K 2"]:
    """gamma (K, 2) that maximises the bound, given how many rows `on` (K,) have each feature.

    Coordinate ascent with the multinomial (NOTATION.md has the equations).
    """
    off = n_rows - on
    gamma = np.stack([alpha + on, 1.0 + off], axis=1)
    for _ in range(SWEEPS):
        _, q = multinomial_bound(gamma)
        after = np.cumsum(q[:, ::-1], axis=1)[:, ::-1] - q
        first = alpha + np.cumsum(on[::-1])[::-1] + (np.tril(after, -1) * off[:, None]).sum(axis=0)
        new = np.stack([first, 1.0 + off @ q], axis=1)
        moved = float(np.abs(new / gamma - 1.0).max())
        gamma = new
        if moved < 1e-6:
            break
    return gamma


def stick_log_odds(
    on: Float[np.ndarray, " K"], n_rows: float, alpha: float, accurate: bool = True
) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, "K 2"]]:
    """(E log pi - E log(1 - pi) (K,), gamma (K, 2)). Features must be in order, the most used first."""
    gamma = update_sticks(on, n_rows, alpha)
    rest = expected_log_rest(gamma) if accurate else multinomial_bound(gamma)[0]
    return expected_log_pi(gamma) - rest, gamma


def beta_log_odds(
    on: Float[np.ndarray, " K"], n_rows: float, alpha: float
) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, "K 2"]]:
    """(E log pi - E log(1 - pi) (K,), gamma (K, 2)) of the finite prior, which needs no bound.

    q(pi_k) = Beta(alpha / K + n_k, 1 + N - n_k), n_k the rows that have feature k.
    """
    gamma = np.stack([alpha / len(on) + on, 1.0 + n_rows - on], axis=1)
    return digamma(gamma[:, 0]) - digamma(gamma[:, 1]), gamma
