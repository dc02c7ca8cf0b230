"""How the model moves: the gradient of a batch, one step of the optimiser, the judgement of an epoch.

`GradientSums` adds up over the rows of a batch, `GradientAscent` moves the parameters, `HeldOutJudge` looks
at held-out rows: `local`, `update` and `finish` of a mini-batch step (`nongauss.optimise.minibatch`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, Shaped

from nongauss.core.device import replace
from nongauss.core.records import value
from nongauss.optimise.minibatch import PaddedRows
from nongauss.tables.sparse import SparseRows
from nongauss.tggm import mean_field, objective
from nongauss.tggm.config import NetworkConfig
from nongauss.tggm.data import TOGETHER, filled, thinned
from nongauss.tggm.params import (
    WORST,
    NetworkParams,
    TrainingState,
    constrain,
    optimiser,
    ravelled,
    unravelled,
    weight_precision,
)

INFLATIONS, INFLATIONS_IN_DEPTH = (0.5, 3.0), (0.5, 1000.0)
"""Least and largest factor by which held-out rows correct the variances; of a deep factorised prior, whose
variances may be a hundred times too small while its means are good."""

FEWEST_TO_JUDGE = 25
"""Held-out rows from which on a member's own say which epoch is its best; below, those of all do."""

LARGEST_GRADIENT = 10.0
"""A member's mean gradient (over rows) is shortened to this length: one strange row cannot throw it off."""

FINAL_RATE = 0.01


def row_objective(
    params: NetworkParams, config: NetworkConfig, x: Float[Array, " D"], y: Float[Array, " Y"]
) -> Float[Array, ""]:
    """The objective of one row as `config` chooses it, with the gradient that the fit follows."""
    if config.method == "ml" and config.posterior == "mean_field":
        return mean_field.row_bound(params, x, y, config.n_classes, config.n_sweeps)
    return objective.predictive_log_likelihood(params, config, x, y)


@value
class GradientSums:
    """Sums over a batch: the bound, averaged over members, and each member's gradient.

    `batch.data` is (X (B, D) or `SparseRows`, Y (B, P), fold (B,)); member e does not see the rows whose
    fold is e.
    """

    config: NetworkConfig

    def __call__(self, key: Key[Array, ""], params: NetworkParams, batch: PaddedRows) -> dict[str, Any]:
        """Statistics of one batch; all that is random is which cells are left out."""
        X, Y, fold = batch.data
        X = filled(thinned(key, X, self.config.dropout), params.W0.shape[-1])

        def member(one: NetworkParams, number: jax.Array) -> jax.Array:  # sum_n w_n [fold_n != e] bound_n
            bounds = jax.vmap(partial(row_objective, one, self.config))(X, Y)
            return jnp.sum(jnp.where(fold == number, 0.0, batch.weight) * bounds)

        numbers = jnp.arange(params.b0.shape[0])
        bounds, gradient = jax.vmap(jax.value_and_grad(member))(params, numbers)
        return {"bound": jnp.mean(bounds), "gradient": gradient}


def each(number: Shaped[Array, " E"], like: Shaped[Array, "E ..."]) -> Shaped[Array, "E ..."]:
    """A number a member, with axes added so that it is broadcast against arrays of as many axes as `like`."""
    return number.reshape(number.shape + (1,) * (like.ndim - 1))


def toward_zero(
    gradient: NetworkParams,
    params: NetworkParams,
    config: NetworkConfig,
    counted: Float[Array, " E"],
    of_inputs: Float[Array, ""],
) -> NetworkParams:
    """The gradient a row with that of the log prior of the weights, N(W; 0, 1 / precision), shared among the
    `counted` rows: dL/dW - precision W / counted. `of_inputs`: the precision of weights that inputs feed.
    """

    def pulled(slope: jax.Array, weights: jax.Array, precision: Any = None) -> jax.Array:
        if precision is None:
            precision = weight_precision(config, weights.shape[-1])
        return slope - each(precision / counted, slope) * weights

    return gradient._replace(
        W0=pulled(gradient.W0, params.W0, of_inputs),
        W1=pulled(gradient.W1, params.W1),
        deeper=tuple(
            slope._replace(W=pulled(slope.W, layer.W))
            for slope, layer in zip(gradient.deeper, params.deeper, strict=True)
        ),
        gate=tuple(
            slope._replace(W=pulled(slope.W, gate.W))
            for slope, gate in zip(gradient.gate, params.gate, strict=True)
        ),
        skip=tuple(
            pulled(slope, weights, of_inputs)
            for slope, weights in zip(gradient.skip, params.skip, strict=True)
        ),
    )


@value
class GradientAscent:
    """One step of gradient ascent on the mean bound a row, plus the log prior of the weights."""

    config: NetworkConfig

    def __call__(
        self, state: TrainingState, stats: Any, scale: Float[Array, ""]
    ) -> tuple[TrainingState, dict[str, Array]]:
        """The state after the step; `scale * gradient` estimates the sum over all rows.

        With g the mean gradient a row, shortened to at most `LARGEST_GRADIENT`, and d its direction by Adam,
        the parameters become params + rate decay(step / n_steps) d, put back within their limits.
        """
        gradient = jax.tree.map(lambda leaf: leaf * each(scale / state.total, leaf), stats["gradient"])
        gradient = toward_zero(gradient, state.params, self.config, state.counted, state.precision)
        slope = ravelled(gradient)
        short = jnp.minimum(1.0, LARGEST_GRADIENT / jnp.sqrt(jnp.sum(slope**2, axis=1) + 1e-30))
        direction, moved = optimiser(self.config).update(slope * each(short, slope), state.optimiser)
        rate = state.rate * decay(state.step / state.n_steps)
        moves = unravelled(direction, state.params)
        params = jax.tree.map(lambda leaf, move: leaf + rate * move, state.params, moves)
        params = constrain(params, self.config)
        params = params._replace(log_sd1=jnp.maximum(params.log_sd1, state.least_noise[None, :]))
        return replace(state, params=params, optimiser=moved, step=state.step + 1), {}


def decay(done: Float[Array, ""]) -> Float[Array, ""]:
    """Factor of the learning rate at this share of the schedule: a half cosine from 1 down to 0.01."""
    half = 0.5 * (1.0 + jnp.cos(jnp.pi * jnp.clip(done, 0.0, 1.0)))
    return FINAL_RATE + (1.0 - FINAL_RATE) * half


@value
class HeldOutJudge:
    """After an epoch: score each member on its held-out rows, and remember its best parameters."""

    config: NetworkConfig

    def __call__(
        self, key: Key[Array, ""], state: TrainingState, rows: PaddedRows
    ) -> tuple[TrainingState, dict[str, Array]]:
        """`rows.held_out` is (X (E, V, D), Y (E, V, P), weight (E, V)), or None: the last is best."""
        epoch = state.epoch + 1
        if rows.held_out is None:
            return replace(state, epoch=epoch, best=state.params), {}
        score = held_out_score(state.params, self.config, *rows.held_out)
        if not self.config.n_classes:  # of labels no variance is calibrated
            score = jnp.where(few_held_out(rows.held_out[2]), jnp.mean(score), score)
        better = score > state.best_score + state.tol

        def choose(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(each(better, new), new, old)

        state = replace(
            state,
            epoch=epoch,
            best=jax.tree.map(choose, state.params, state.best),
            best_score=choose(score, state.best_score),
            best_epoch=choose(jnp.full_like(state.best_epoch, epoch), state.best_epoch),
        )
        idle = jnp.min(epoch - state.best_epoch)
        return state, {"held_out": jnp.mean(score), "stop": idle >= state.patience}


def few_held_out(weight: Any) -> Any:
    """Are there fewer than `FEWEST_TO_JUDGE` held-out rows of each member, of these weights (E, V)?

    The best of many epochs by ten rows is best for these ten: squared errors of others are twice theirs.
    """
    return (weight > 0).sum(axis=1).max() < FEWEST_TO_JUDGE


def held_out_score(
    params: NetworkParams,
    config: NetworkConfig,
    X: Any,
    Y: Float[Array, "E V Y"],
    weight: Float[Array, "E V"],
) -> Float[Array, " E"]:
    """Mean predictive log-likelihood of each member on rows of its own, nats a row.

    Sparse rows (V a multiple of `TOGETHER`) are filled a few at a time.
    """

    def member(one: NetworkParams, x: Any, y: jax.Array, w: jax.Array) -> jax.Array:
        def scores(some: tuple[Any, jax.Array]) -> jax.Array:
            rows = filled(some[0], params.W0.shape[-1])
            return jax.vmap(partial(objective.predictive_log_likelihood, one, config))(rows, some[1])

        if config.prior == "mean_field" and not config.n_classes:
            return _inflated_score(one, config, x, y, w)
        if not isinstance(x, SparseRows):
            return jnp.sum(w * scores((x, y))) / jnp.sum(w)
        few = jax.tree.map(lambda array: array.reshape(-1, TOGETHER, *array.shape[1:]), (x, y))
        return jnp.sum(w * jax.lax.map(scores, few).reshape(-1)) / jnp.sum(w)

    return jnp.maximum(jax.vmap(member)(params, X, Y, weight), WORST)


def _inflated_score(
    one: NetworkParams,
    config: NetworkConfig,
    X: Float[Array, "V D"],
    Y: Float[Array, "V P"],
    weight: Float[Array, " V"],
) -> Float[Array, ""]:
    """Mean log-likelihood of a member with the factor of its variances that the calibration would give it.

    A deep factorised prior has means worth keeping long before its variances are right, which the calibration
    mends: with a = mean of d^2 / P within `INFLATIONS_IN_DEPTH`,
    log N(y; m, a C) = peak - (P log a + d^2 / a) / 2.
    """
    share = weight / jnp.sum(weight)
    peak, distance = jax.vmap(partial(objective.peak_and_distance, one, config))(X, Y)
    n_outputs = Y.shape[1]
    factor = jnp.clip(jnp.sum(share * distance) / n_outputs, *INFLATIONS_IN_DEPTH)
    return jnp.sum(share * (peak - 0.5 * (n_outputs * jnp.log(factor) + distance / factor)))
