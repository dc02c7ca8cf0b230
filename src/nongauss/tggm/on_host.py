"""Epochs of a small table on the host: the step of `updates` by the closed gradient, without compiling it.

On a table of a few hundred rows compiling a fit takes several times as long as running it; above some
thousands the compiled step is the faster one. Both follow one rule: `updates.GradientSums`,
`updates.GradientAscent` and `updates.HeldOutJudge` are what is done here, in their order; only the random
order of the rows is another one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float32, Int32

from nongauss.core.device import replace
from nongauss.core.threads import threads_for
from nongauss.optimise.course import Course, Info, Status
from nongauss.optimise.loop import OnHost
from nongauss.tggm.closed_form import HostParams, value_and_gradient
from nongauss.tggm.config import NetworkConfig
from nongauss.tggm.data import TrainingTable
from nongauss.tggm.params import WEIGHT_PRECISION, WORST, limits, turned
from nongauss.tggm.updates import FINAL_RATE, LARGEST_GRADIENT, few_held_out

MOST_ROWS = 1_500
"""Rows up to which fits run here: beyond, compiled steps make up for their compilation."""

MOST_WEIGHTS = 10_000
"""Weights of a member's first layer up to which they do."""

MEAN_KEPT, SQUARE_KEPT, TINY = 0.9, 0.99, 1e-8
"""Adam's b1, b2 and epsilon, as in `params.optimiser`."""

Flat = Float32[np.ndarray, "E K"]


def may_run(config: NetworkConfig, table: TrainingTable) -> bool:
    """Is the gradient closed, and the table in memory and small?"""
    if config.method != "ml" or config.posterior not in ("moments", "exact") or len(config.layers) != 1:
        return False
    if config.n_classes or config.preset or (config.directions and config.skip):
        return False
    if table.n_rows > MOST_ROWS or not hasattr(table.rows, "data"):
        return False
    X, Y, _ = table.rows.data
    return bool(Y.shape[1] == 1 and X.shape[1] * config.layers[0] <= MOST_WEIGHTS)


class _Rows(NamedTuple):
    """Rows X (..., B, D + 1), the last column of ones, targets y (..., B), weights (E, B) of each member."""

    X: Float32[np.ndarray, "*E B D1"]
    y: Float32[np.ndarray, "*E B"]
    weight: Float32[np.ndarray, "E B"]

    def some(self, at: Int32[np.ndarray, " B"]) -> _Rows:
        """The rows of these numbers."""
        return _Rows(self.X[at], self.y[at], self.weight[:, at])


HostState = Any
"""`TrainingState` whose arrays are NumPy's."""


class HostEpochs(OnHost):
    """The adapter whose iterations are epochs: batches of `size` rows, then the members are judged."""

    def __init__(self, seed: int, config: NetworkConfig, size: int, table: TrainingTable) -> None:
        self.seed, self.config, self.size = seed, config, size
        X, Y, fold = (np.asarray(part)[: table.n_rows] for part in table.rows.data)
        weight = np.asarray(table.rows.weight)[: table.n_rows]
        own = fold[None, :] != np.arange(len(table.total))[:, None]
        self.rows = _Rows(_with_ones(X), Y[:, 0], np.where(own, weight, 0.0).astype(np.float32))
        self.held = None
        if table.held is not None:
            X, Y, weight = map(np.asarray, table.held)
            self.held = _Rows(_with_ones(X), Y[..., 0], weight)

    def begin(self, state: HostState, key: Any) -> HostState:
        """The state with its arrays on the host."""
        return jax.tree.map(np.asarray, state)

    def packed(self, state: HostState) -> Any:
        """Its arrays."""
        return tuple(jax.tree.leaves(state))

    def unpacked(self, packed: Any, state: HostState) -> HostState:
        """The state of these arrays. Raises ValueError for other shapes."""
        leaves, structure = jax.tree.flatten(state)
        if [np.shape(leaf) for leaf in leaves] != [array.shape for array in packed]:
            raise ValueError("The arrays have other shapes.")
        return jax.tree.unflatten(structure, packed)

    def drive(self, course: Course) -> None:
        """Epoch after epoch."""
        course.says_enough = Status.EARLY_STOPPED
        with threads_for(self.rows.X[:1]):  # batches are small; and one thread always rounds alike
            while course.goes_on:
                course.record(*self.epoch(course.n_iter, course.state))

    def ended(self, state: HostState) -> None:
        """Nothing is left behind."""

    def epoch(self, number: int, state: HostState) -> tuple[HostState, Info]:
        """The state after an epoch, which is left as it was, and its info."""
        with np.errstate(all="ignore"):  # a step that is not finite is found by the loop
            state, bound = self._trained(number, state)
            state, info = self._judged(state)
        finite = bool(np.isfinite(state.optimiser.nu).all() and np.isfinite(_flat(state.params)).all())
        return state, {"bound": bound, "finite": finite, **info}

    def _trained(self, number: int, state: HostState) -> tuple[HostState, float]:
        """All rows once, in a random order that is of this epoch alone; and the sum of the bounds."""
        n_rows, bound = len(self.rows.y), 0.0
        numbers, moments = _flat(state.params), state.optimiser
        at = _Ascent(numbers, moments.mu.copy(), moments.nu.copy(), int(moments.count), float(state.step))
        params, order = _shaped(numbers, state.params), np.arange(n_rows)
        if self.size < n_rows:
            order = np.random.default_rng([self.seed, number]).permutation(n_rows)
        pull = _flat(_precisions(params)) / state.counted[:, None]
        for first in range(0, n_rows, self.size):
            batch = self.rows.some(order[first : first + self.size])
            found, gradient = value_and_gradient(params, self.config, *batch)
            bound += float((batch.weight * found).sum(axis=1).mean())
            scale = n_rows / len(batch.y) / state.total
            at.move(_flat(gradient) * scale[:, None].astype(np.float32) - pull * numbers, state)
            self._constrain(params)
            np.maximum(params.log_sd1, state.least_noise, out=params.log_sd1)
        moved = moments._replace(count=np.asarray(at.count, moments.count.dtype), mu=at.mean, nu=at.square)
        moved_to = {"params": params, "optimiser": moved, "step": np.float32(at.step)}
        return replace(state, **moved_to), bound

    def _constrain(self, params: HostParams) -> None:
        """Put parameters back within their limits, in place: as `params.constrain` does."""
        first, noise = limits(params, self.config)
        for logs, (least, most) in ((params.log_sd0, first), (params.log_sd1, noise)):
            np.maximum(logs, least, out=logs)  # np.clip takes five times as long
            np.minimum(logs, most, out=logs)
        if self.config.directions:
            params.W0[...] = turned(params, self.config, lambda weights: np.maximum(weights, 0.0))

    def _judged(self, state: HostState) -> tuple[HostState, dict[str, float]]:
        """With each member's best parameters; the score of the held-out rows, and whether it is enough."""
        epoch = state.epoch + np.int32(1)
        if self.held is None:
            return replace(state, epoch=epoch, best=state.params), {}
        found = value_and_gradient(state.params, self.config, *self.held[:2], None)[0]
        weight = self.held.weight
        score = np.maximum((weight * found).sum(axis=1) / weight.sum(axis=1), np.float32(WORST))
        score = np.where(np.isnan(score), np.float32(WORST), score).astype(np.float32)
        if few_held_out(weight):  # of numbers, as all tables here
            score = np.full_like(score, score.mean())
        better = score > state.best_score + state.tol
        best = np.where(better[:, None], _flat(state.params), _flat(state.best))
        since = np.where(better, epoch, state.best_epoch)
        judged = replace(
            state,
            epoch=epoch,
            best=_shaped(best, state.params),
            best_score=np.where(better, score, state.best_score),
            best_epoch=since,
        )
        enough = float((epoch - since).min() >= state.patience)
        return judged, {"held_out": float(score.mean()), "stop": enough}


class _Ascent:
    """Numbers of the members (E, K), which move in place, and what Adam remembers of their gradients."""

    def __init__(self, numbers: Flat, mean: Flat, square: Flat, count: int, step: float) -> None:
        self.numbers, self.mean, self.square, self.count, self.step = numbers, mean, square, count, step

    def move(self, slope: Flat, state: HostState) -> None:
        """One step up the mean gradient a row: `updates.GradientAscent` has the equations."""
        length = np.sqrt((slope * slope).sum(axis=1) + 1e-30)
        slope *= np.minimum(1.0, LARGEST_GRADIENT / length)[:, None].astype(np.float32)
        self.count += 1
        self.mean *= MEAN_KEPT
        self.mean += (1.0 - MEAN_KEPT) * slope
        self.square *= SQUARE_KEPT
        slope *= slope
        slope *= 1.0 - SQUARE_KEPT
        self.square += slope
        done = min(self.step / float(state.n_steps), 1.0)
        rate = float(state.rate) * (FINAL_RATE + (1.0 - FINAL_RATE) * 0.5 * (1.0 + math.cos(math.pi * done)))
        size = np.sqrt(self.square / np.float32(1.0 - SQUARE_KEPT**self.count))
        size += np.float32(TINY)
        np.divide(self.mean, size, out=size)
        size *= np.float32(rate / (1.0 - MEAN_KEPT**self.count))
        self.numbers += size
        self.step += 1.0


def _with_ones(X: Any) -> Float32[np.ndarray, "*E B D1"]:
    """The rows with a last column of ones."""
    return np.concatenate([X, np.ones((*X.shape[:-1], 1), np.float32)], axis=-1)


def _precisions(params: HostParams) -> HostParams:
    """The precision of the prior of each number: that of weights, 0 of all others."""
    free = jax.tree.map(np.zeros_like, params)

    def bound(weights: Any) -> Any:
        return np.full_like(weights, WEIGHT_PRECISION)

    return free._replace(
        W0=bound(params.W0),
        W1=bound(params.W1),
        gate=tuple(gate._replace(W=bound(gate.W)) for gate in free.gate),
        skip=tuple(map(bound, params.skip)),
    )


def _flat(params: HostParams) -> Flat:
    """`params.ravelled` on the host."""
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in jax.tree.leaves(params)], axis=1)


def _shaped(numbers: Flat, like: HostParams) -> HostParams:
    """`params.unravelled` on the host: the arrays are views of the numbers."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([leaf[0].size for leaf in leaves])
    parts = np.split(numbers, ends[:-1], axis=1)
    shaped = [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)
