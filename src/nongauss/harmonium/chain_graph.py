r"""The chain graph, equation (5): p(v) prod_d p(z_d | v) p(x_d | z_d), each p(x | z) normalised.

Variational Bayes: q(z) = prod Bernoulli(nu), weights of a unit in a view normal with a precision of their
own that is found by empirical Bayes (automatic relevance determination), sticks as in `objective.py`.
The log partition of a visible unit is replaced by a quadratic (`posterior.py`), so that no step size is
needed. Here p(x | z) charges a feature for existing: one that does not pay for its weights, its stick and its
entropy is removed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from nongauss.harmonium.config import FIRST_SCALE, GROWTH, LARGEST_SCALE
from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.exponential_families import Array, Layout, softplus
from nongauss.harmonium.params import FeaturePrior, HarmoniumParams
from nongauss.harmonium.posterior import (
    DenseBlock,
    dense_blocks,
    masked,
    mean_field_sweeps,
    natural_moments,
    surrogate,
)
from nongauss.harmonium.updates import beta_log_odds, stick_log_odds

WARM = 10
"""Iterations before the first unit may be removed."""

CALM = 8
"""Iterations without a removal after which the number of units has settled."""

STILL = 1e-5
"""An iteration that raises the bound by a smaller share of itself changes nothing any more."""

WHOLE_SWEEPS = (1.0, 1.0)
"""Sweeps over the features of the rows in an iteration, each with all of the likelihood."""

ALIKE = 0.95
"""Units whose use correlates beyond this are duplicates."""

BIAS_PRECISION = 1e-3

ACTIVE = "active"
UNUSED = "fewer than two rows have it"
DUPLICATE = "duplicate of another feature"
IDLE = "what it explains does not pay for its weights"
LONE = "one column alone goes with it"
REASONS = (ACTIVE, UNUSED, DUPLICATE, IDLE, LONE)


class ChainState(NamedTuple):
    """Where the fit of a chain graph stands.

    `on` (N, K): P(z = 1) under q; `precision` (views, K): of the weights; `ids` (K,): the numbers that the
    units had at the start; `fates` (T,): of all T units of the start a place in `REASONS`.
    """

    params: HarmoniumParams
    on: Array
    precision: Array
    prior: FeaturePrior
    ids: Array
    fates: NDArray[np.intp]

    @property
    def reasons(self) -> tuple[str, ...]:
        """For each unit that there was: is it active, or why was it removed?"""
        return tuple(REASONS[fate] for fate in self.fates)

    def with_lone(self, is_lone: NDArray[np.bool_]) -> ChainState:
        """The state where some of its units (K,) are known to tell of one column alone."""
        fates = self.fates.copy()
        fates[self.ids[is_lone]] = REASONS.index(LONE)
        return self._replace(fates=fates)


class RowSums(NamedTuple):
    """Weighted sums over rows of what the updates of weights and scales need, nu being P(z = 1).

    `slope` (D, K + 1): slopes times (nu, 1); `own` (D, K): curvature times nu (1 - nu); `second`
    (K + 1, K + 1): E[(z, 1) (z, 1)']; `curvature` (D,) and `curved` (D, K + 1): curvature alone and times
    (nu, 1); `squares` and `present` (D,): E (x - a)^2 of real cells that are seen, and their weight;
    `likelihood`: lower bound of the expected log p(x | z), nats.
    """

    slope: Array
    own: Array
    second: Array
    curvature: Array
    squares: Array
    present: Array
    curved: Array
    likelihood: float


def _row_sums(params: HarmoniumParams, layout: Layout, rows: VisibleRows, on: Array) -> RowSums:
    """One pass over the rows, `on` (N, K)."""
    D, K = params.weights.shape
    slope, own, second = np.zeros((D, K + 1)), np.zeros((D, K)), np.zeros((K + 1, K + 1))
    curved = np.zeros((D, K + 1))
    curvature, squares, present, likelihood = np.zeros(D), np.zeros(D), np.zeros(D), 0.0
    for block in dense_blocks(layout, rows, params.scale):
        nu, w = on[block.place], block.weight
        a, variance = natural_moments(params, nu)
        near = surrogate(layout, block.x, a, variance, block.totals, block.seen)
        spread, full = nu * (1.0 - nu), np.hstack([nu, np.ones((len(nu), 1))])
        curved += near.curvature.T @ (w[:, None] * full).astype(np.float32)
        slope += near.slope.T @ (w[:, None] * full).astype(np.float32)
        own += near.curvature.T @ (w[:, None] * spread).astype(np.float32)
        second += full.T @ (w[:, None] * full) + np.diag(np.append(w @ spread, 0.0))
        curvature += w.astype(np.float32) @ near.curvature
        for at in (part.place for part in layout if part.kind == "real"):
            seen = np.ones_like(a[:, at]) if block.seen is None else block.seen[:, at]
            squares[at] += w @ (((block.x[:, at] - a[:, at]) ** 2 + variance[:, at]) * seen)
            present[at] += w @ seen
        likelihood += _likelihood(layout, block, params.scale, a, variance)
    return RowSums(slope, own, second, curvature, squares, present, curved, likelihood)


def _likelihood(layout: Layout, block: DenseBlock, scale: Array, a: Array, variance: Array) -> float:
    """Lower bound of the expected log p(x | z) of the seen cells of a block, weighted, in encoded units.

    E[x a] less, for binary units, log(1 + e^xi) - (xi - E a) / 2 with xi^2 = E[a^2]; for real ones the normal
    law's terms; for counts n log sum_d exp E a_d + n sum_d Var a_d p_d / 2.
    """
    cells, rows = block.x * a, np.zeros(len(a))
    for part in layout:
        at = part.place
        x, mean, var = block.x[:, at], a[:, at], variance[:, at]
        if part.kind == "binary":
            xi = np.sqrt(mean * mean + var)
            cells[:, at] += 0.5 * (xi - mean) - softplus(xi)
        elif part.kind == "real":
            base = np.log(scale[at]) - 0.5 * np.log(2.0 * np.pi)
            cells[:, at] += base - 0.5 * (x * x + mean * mean + var)
        else:
            mean = masked(a, block.seen)[:, at]
            cells[:, at] -= 0.5 * var * x.sum(axis=1, keepdims=True) * softmax(mean, axis=1)
            rows += x.sum(axis=1) * logsumexp(mean, axis=1)
    cells = cells if block.seen is None else cells * block.seen
    return float(block.weight @ (cells.sum(axis=1) - rows))


class ChainLearner:
    """Coordinate ascent; `epoch` is one iteration over all rows. States are replaced, never changed.

    Units that do not pay are removed, unless `trials` is 0: see `_tries_fewer`.
    """

    def __init__(
        self,
        layout: Layout,
        rows: VisibleRows,
        state: ChainState,
        alpha: float,
        trials: int,
        has_beta: bool = False,
    ) -> None:
        self.layout, self.rows, self.state = layout, rows, state
        self.alpha, self.trials, self.tried, self.has_beta = alpha, trials, 0, has_beta
        self.n_rows = float(rows.weight.sum())
        self.n_calm, self.last = 0, -np.inf
        self.best: tuple[float, ChainState, Array] = (-np.inf, state, np.zeros(0))
        names = sorted({block.view for block in layout})
        self.views = np.concatenate([np.full(b.stop - b.start, names.index(b.view)) for b in layout])

    def epoch(self, number: int) -> dict[str, float]:
        """One iteration: q(z), weights, scales, precisions; units that do not pay go; then the sticks."""
        logits = self._update_features()
        sums = _row_sums(self.state.params, self.layout, self.rows, self.state.on)
        variance, spent = self._update_weights(sums)
        self._update_scales(sums, variance, spent, min(FIRST_SCALE * GROWTH**number, LARGEST_SCALE))
        kl = self._update_precisions(variance)
        rest = softplus(self.state.prior.log_odds)
        gain = self.rows.weight @ softplus(logits) - self.n_rows * rest
        bound = sums.likelihood + self._latent_bound(rest) - float(kl.sum())
        worth = gain - kl - 0.5 * np.log(self.n_rows)
        removed = self._prune(worth) if self.trials and number >= WARM else 0
        self.n_calm = 0 if removed else self.n_calm + 1
        still = self.n_calm >= CALM and bound - self.last < STILL * abs(bound)
        self.last = bound
        stop = still and not (self.trials and self._tries_fewer(bound, worth))
        self._order_and_update_sticks()
        return {"bound": bound, "n_active": float(self.state.on.shape[1]), "stop": float(stop)}

    def _tries_fewer(self, bound: float, worth: Array) -> bool:
        """All has settled: go on from the best state without its least useful unit, or if that was worse
        without the next; after `trials` in vain, end there.

        A unit that looks worth its cost while the others stand still may not be once they have adapted.
        """
        if bound > self.best[0]:
            self.best, self.tried = (bound, self.state, worth), 0
        else:
            self.tried += 1
        _, self.state, worth = self.best
        if self.tried == min(self.trials, len(worth)):
            return False
        self.n_calm = 0
        self._remove(np.array([int(np.argsort(worth)[self.tried])]), np.zeros(0, int))
        return True

    def snapshot(self) -> tuple[Any, ...]:
        """All that an epoch depends on."""
        return self.state, self.n_calm, self.last, self.best, self.tried

    def restore(self, at: tuple[Any, ...]) -> None:
        """Go on from what `snapshot` returned."""
        self.state, self.n_calm, self.last, self.best, self.tried = at

    def result(self) -> ChainState:
        """The best state of those that had settled; where none has, the present one."""
        return self.best[1] if np.isfinite(self.best[0]) else self.state

    def _update_features(self) -> Array:
        """Two mean-field sweeps of q(z) of all rows; returns its logits (N, K)."""
        state = self.state
        on, logits = np.empty_like(state.on), np.empty_like(state.on)
        for block in dense_blocks(self.layout, self.rows, state.params.scale):
            at = block.place
            on[at], logits[at] = mean_field_sweeps(
                state.params, self.layout, state.prior.log_odds, block, state.on[at], WHOLE_SWEEPS
            )
        self.state = state._replace(on=on)
        return logits

    def _latent_bound(self, rest: Array) -> float:
        """E log p(z) + H(q(z)) summed over rows, nats: nu log odds - log(1 + odds) - nu log nu - ...

        `rest` (K,): log(1 + odds).
        """
        nu = np.clip(self.state.on, 1e-12, 1.0 - 1e-12)
        entropy = -(nu * np.log(nu) + (1.0 - nu) * np.log1p(-nu))
        return float(self.rows.weight @ (nu @ self.state.prior.log_odds - rest.sum() + entropy.sum(axis=1)))

    def _update_weights(self, sums: RowSums) -> tuple[Array, Array]:
        """Maximise the surrogate over weights and biases; returns their posterior variance (D, K) and, for
        each visible unit, how much of its squared error the uncertainty of its weights adds (D,).

        W_d += H_d^-1 gradient_d, H_d = diag(precision) + curvature_d E[(z, 1) (z, 1)'], all D inverses by one
        eigendecomposition, with the curvature of a unit at its mean over rows.
        """
        params, precision = self.state.params, self.state.precision
        K = params.n_components
        W = np.hstack([params.weights, params.visible_bias[:, None]])
        variance, spent = np.empty((len(W), K)), np.empty(len(W))
        for block in self.layout:
            at = block.place
            prior = np.append(precision[self.views[block.start]], BIAS_PRECISION)
            root = 1.0 / np.sqrt(prior)
            values, vectors = np.linalg.eigh(sums.second * root[:, None] * root[None, :])
            vectors *= root[:, None]
            mean_curvature = sums.curvature[at] / self.n_rows
            if block.kind == "counts":  # steepest in the rows that have what raises the count
                usual = np.outer(mean_curvature, np.diag(sums.second))
                mean_curvature *= (sums.curved[at] / np.maximum(usual, 1e-12)).max(axis=1)
            gradient = sums.slope[at] - prior * W[at]
            gradient[:, :K] -= sums.own[at] * W[at, :K]
            shrink = 1.0 / (1.0 + np.outer(mean_curvature, np.maximum(values, 0.0)))
            W[at] += ((gradient @ vectors) * shrink) @ vectors.T
            variance[at] = (shrink @ (vectors * vectors).T)[:, :K]
            spent[at] = shrink @ values
        self.state = self.state._replace(
            params=params._replace(weights=W[:, :K].copy(), visible_bias=W[:, K].copy())
        )
        return variance, spent

    def _update_scales(self, sums: RowSums, variance: Array, spent: Array, largest: float) -> None:
        """Scale real columns so that what the features leave has variance 1, up to `largest`."""
        params = self.state.params
        factor = np.ones(len(params.scale))
        for block in self.layout:
            if block.kind == "real":
                at = block.place
                seen = np.maximum(sums.present[at], 1e-12)
                left = np.where(seen > 1e-12, np.maximum((sums.squares[at] + spent[at]) / seen, 1e-8), 1.0)
                factor[at] = np.minimum(1.0 / np.sqrt(left), largest / params.scale[at])
        variance *= factor[:, None] ** 2
        self.state = self.state._replace(
            params=params._replace(
                weights=params.weights * factor[:, None],
                visible_bias=params.visible_bias * factor,
                scale=params.scale * factor,
            )
        )

    def _update_precisions(self, variance: Array) -> Array:
        """Set precisions lambda = D_v / E|W_k|^2 by empirical Bayes; returns KL(q(W_k) || p), nats (K,)."""
        weights, kl = self.state.params.weights, np.zeros(self.state.params.n_components)
        precision = np.empty_like(self.state.precision)
        for view in range(len(precision)):
            own = self.views == view
            square = (weights[own] ** 2 + variance[own]).sum(axis=0)
            precision[view] = own.sum() / np.maximum(square, 1e-12)
            kl -= 0.5 * np.log(precision[view] * np.maximum(variance[own], 1e-300)).sum(axis=0)
        self.state = self.state._replace(precision=precision)
        return kl

    def _prune(self, worth: Array) -> int:
        """Remove units that no row has, and the worst tenth of those that do not pay; returns how many."""
        state = self.state
        use = self.rows.weight @ state.on
        unused = np.flatnonzero(np.minimum(use, self.n_rows - use) < 2.0)
        poor = np.flatnonzero(worth < 0.0)
        poor = poor[np.argsort(worth[poor])][: max(1, len(worth) // 10)]
        gone = np.union1d(unused, poor).astype(int)
        if len(gone):
            self._remove(gone, unused)
        return len(gone)

    def _remove(self, gone: Array, unused: Array) -> None:
        """Remove the units `gone`; what they add on average goes to the biases."""
        state = self.state
        fates = state.fates.copy()
        for unit in gone:
            fates[state.ids[unit]] = REASONS.index(self._reason(unit, unused, gone))
        kept = np.setdiff1d(np.arange(state.on.shape[1]), gone)
        mean = state.on[:, gone].T @ self.rows.weight / self.n_rows
        bias = state.params.visible_bias + state.params.weights[:, gone] @ mean
        params, ids = state.params._replace(visible_bias=bias).keep(kept), state.ids[kept]
        prior = FeaturePrior(state.prior.log_odds[kept], state.prior.gamma[kept])
        self.state = ChainState(params, state.on[:, kept], state.precision[:, kept], prior, ids, fates)

    def _reason(self, unit: int, unused: Array, gone: Array) -> str:
        """Why a unit of those `gone` is removed."""
        if unit in unused:
            return UNUSED
        others = np.setdiff1d(np.arange(self.state.on.shape[1]), gone)
        centred = self.state.on - self.state.on.mean(axis=0)
        norms = np.sqrt((centred * centred).sum(axis=0)) + 1e-12
        alike = np.abs(centred[:, others].T @ centred[:, unit]) / (norms[others] * norms[unit])
        return DUPLICATE if len(alike) and alike.max() > ALIKE else IDLE

    def _order_and_update_sticks(self) -> None:
        """A feature that most rows have becomes its opposite; features go by use; the sticks follow."""
        state = self.state
        flip = self.rows.weight @ state.on > 0.5 * self.n_rows
        sign = np.where(flip, -1.0, 1.0)
        bias = state.params.visible_bias + state.params.weights[:, flip].sum(axis=1)
        on = np.where(flip, 1.0 - state.on, state.on)
        use = self.rows.weight @ on
        order = np.argsort(-use, kind="stable")
        params = state.params._replace(weights=state.params.weights * sign, visible_bias=bias).keep(order)
        odds, gamma = use, np.zeros((0, 2))
        if len(order):
            prior = beta_log_odds if self.has_beta else stick_log_odds
            odds, gamma = prior(use[order], self.n_rows, self.alpha)
        precision, ids = state.precision[:, order], state.ids[order]
        self.state = ChainState(params, on[:, order], precision, FeaturePrior(odds, gamma), ids, state.fates)


def start_chain(
    layout: Layout, rows: VisibleRows, params: HarmoniumParams, on: Array, alpha: float
) -> ChainState:
    """The state that begins with features of the globally normalised model, P(z = 1) `on` (N, K)."""
    order = np.argsort(-(rows.weight @ on), kind="stable")
    params = params.keep(order)
    params = HarmoniumParams(*(np.asarray(part, dtype=np.float64) for part in params))
    on = on[:, order].astype(np.float64)
    odds, gamma = stick_log_odds(rows.weight @ on, float(rows.weight.sum()), alpha)
    n_views, n_units = len({block.view for block in layout}), on.shape[1]
    precision = np.ones((n_views, n_units))
    return ChainState(
        params, on, precision, FeaturePrior(odds, gamma), np.arange(n_units), np.zeros(n_units, np.intp)
    )
