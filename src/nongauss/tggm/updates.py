"""How the model moves: the posterior of the hidden units, the gradient of a batch, one step of the optimiser.

`local` sums over the rows of a batch, `update` moves the parameters, `judge` looks at held-out rows: the
three functions that the mini-batch engine asks for (`nongauss.inference.gradient`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from nongauss.core.records import record, replace, value
from nongauss.inference.gradient import Rows
from nongauss.prob import truncnorm
from nongauss.tggm import objective
from nongauss.tggm.objective import Posterior
from nongauss.tggm.params import Array, Config, Params, constrain

WEIGHT_PRECISION = 1e-2
"""Precision of the Gaussian prior on all weights, standardised scale: next to nothing beyond a few rows."""

LARGEST_GRADIENT = 10.0
"""A member's mean gradient (over rows) is shortened to this length: one strange row cannot throw it off."""

SETTLED = 1e-4
"""Sweeps end when no posterior mean moves by more than this share of its standard deviation."""

_FINAL_RATE = 0.01
_WORST = -1e30


@record
class State:
    """What the next epoch reads. E members; `best*` are those of the epoch with the best held-out rows.

    `total` (E,): weight of the rows each member trains on. `n_steps`: optimiser steps of the schedule
    (a huge number: the learning rate stays). `patience`, `tol`: the rule for stopping early.
    """

    params: Params
    optimiser: Any
    step: Array
    n_steps: Array
    total: Array
    epoch: Array
    best: Params
    best_score: Array
    best_epoch: Array
    patience: Array
    tol: Array


def optimiser() -> optax.GradientTransformation:
    """RMSProp with momentum and bias correction (Adam); its learning rate is applied in `update`."""
    return optax.scale_by_adam(b1=0.9, b2=0.99)


def conditionals(params: Params, means: jax.Array, x: jax.Array, y: jax.Array) -> Posterior:
    """Each unit's best factor given the means (M,) of the others (eq. 20 to 22, variances corrected).

    Unit k is N_T(xi_k, v_k), v_k = 1 / (1/s0_k^2 + sum_p W1_pk^2/s1_p^2) and, with the residual
    e = y - b1 - W1 <h>, xi_k = v_k (c_k / s0_k^2 + sum_p W1_pk (e_p + W1_pk <h_k>) / s1_p^2).
    """
    precision = jnp.exp(-2.0 * params.log_sd1)
    prior = jnp.exp(-2.0 * params.log_sd0)
    own = precision @ params.W1**2
    variance = 1.0 / (prior + own)
    residual = y - params.b1 - params.W1 @ means
    pull = (residual * precision) @ params.W1 + own * means
    location, sd = variance * (prior * objective.drive(params, x) + pull), jnp.sqrt(variance)
    return Posterior(location, sd, *truncnorm.moments(location, sd))


def newton_sweep(params: Params, means: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Move all means (M,) towards the solution of means = conditionals(means).mean at once.

    At fixed variances the bound is strictly concave in the means, so the solution is unique. The Jacobian
    is diagonal plus rank P (units meet only through the residual): a sweep costs O(M P^2 + P^3) a row.
    Returns the new means and the gap (M,) in posterior standard deviations that was left before.
    """
    q = conditionals(params, means, x, y)
    noise = jnp.exp(2.0 * params.log_sd1)
    gap = q.mean - means
    keep = 1.0 - q.variance * ((1.0 / noise) @ params.W1**2)
    ratio = q.variance / keep
    pull = params.W1 @ (gap / keep)
    if y.shape[0] == 1:
        shared = pull / (noise + params.W1**2 @ ratio)
    else:
        shared = jnp.linalg.solve(jnp.diag(noise) + (params.W1 * ratio[None, :]) @ params.W1.T, pull)
    moved = means + gap / keep - ratio * (params.W1.T @ shared)
    return jnp.maximum(moved, 0.0), jnp.abs(gap) / q.sd


def mean_field(params: Params, x: jax.Array, y: jax.Array, n_sweeps: int) -> Posterior:
    """The factorised posterior of one row after at most `n_sweeps` sweeps, started at the prior means."""
    prior = truncnorm.mean(objective.drive(params, x), jnp.exp(params.log_sd0))

    def unsettled(carry: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        return (carry[0] < n_sweeps) & (carry[2] > SETTLED)

    def body(carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        means, gap = newton_sweep(params, carry[1], x, y)
        return carry[0] + 1, means, jnp.max(gap)

    first = (jnp.int32(0), prior, jnp.asarray(jnp.inf, prior.dtype))
    _, means, _ = jax.lax.while_loop(unsettled, body, first)
    return conditionals(params, means, x, y)


def row_bound(params: Params, config: Config, x: jax.Array, y: jax.Array) -> jax.Array:
    """The objective of one row as `config` chooses it, with the gradient that the fit follows.

    For the mean-field posterior the posterior is held while differentiating: by the envelope theorem that
    is the gradient of the optimised bound, the EM gradient of eq. 14 to 16.
    """
    if config.method == "bp":
        return objective.plug_in_log_likelihood(params, x, y)
    if config.posterior == "moments":
        return objective.moment_log_likelihood(params, x, y)
    q = mean_field(jax.lax.stop_gradient(params), x, y, config.n_sweeps)
    return objective.mean_field_bound(params, jax.lax.stop_gradient(q), x, y)


@value
class Local:
    """Sums over a batch: the bound, averaged over members, and each member's gradient.

    `batch.data` is (X (B, D), Y (B, P), fold (B,)); member e does not see the rows whose fold is e.
    """

    config: Config

    def __call__(self, key: jax.Array, params: Params, batch: Rows) -> dict[str, Any]:
        """Statistics of one batch; nothing here is random."""
        X, Y, fold = batch.data

        def member(one: Params, number: jax.Array) -> jax.Array:
            bounds = jax.vmap(partial(row_bound, one, self.config))(X, Y)
            return jnp.sum(jnp.where(fold == number, 0.0, batch.weight) * bounds)

        numbers = jnp.arange(params.b0.shape[0])
        bounds, gradient = jax.vmap(jax.value_and_grad(member))(params, numbers)
        return {"bound": jnp.mean(bounds), "gradient": gradient}


@value
class Update:
    """One step of gradient ascent on the mean bound a row, plus the log prior of the weights."""

    config: Config

    def __call__(self, state: State, stats: Any, scale: jax.Array) -> tuple[State, dict[str, jax.Array]]:
        """The state after the step; `scale * gradient` estimates the sum over all rows."""
        total = state.total

        def each(leaf: jax.Array, like: jax.Array) -> jax.Array:
            return leaf.reshape(leaf.shape + (1,) * (like.ndim - 1))

        gradient = jax.tree.map(lambda leaf: leaf * each(scale / total, leaf), stats["gradient"])
        pull = WEIGHT_PRECISION / total
        gradient = gradient._replace(
            W0=gradient.W0 - each(pull, gradient.W0) * state.params.W0,
            W1=gradient.W1 - each(pull, gradient.W1) * state.params.W1,
        )
        square = sum(jnp.sum(leaf**2, axis=tuple(range(1, leaf.ndim))) for leaf in gradient)
        short = jnp.minimum(1.0, LARGEST_GRADIENT / jnp.sqrt(square + 1e-30))
        gradient = jax.tree.map(lambda leaf: leaf * each(short, leaf), gradient)
        direction, moved = optimiser().update(gradient, state.optimiser)
        rate = self.config.learning_rate * decay(state.step / state.n_steps)
        params = jax.tree.map(lambda leaf, way: leaf + rate * way, state.params, direction)
        params = constrain(params, self.config)
        return replace(state, params=params, optimiser=moved, step=state.step + 1), {}


def decay(done: jax.Array) -> jax.Array:
    """Factor of the learning rate at this share of the schedule: a half cosine from 1 down to 0.01."""
    half = 0.5 * (1.0 + jnp.cos(jnp.pi * jnp.clip(done, 0.0, 1.0)))
    return _FINAL_RATE + (1.0 - _FINAL_RATE) * half


@value
class Judge:
    """After an epoch: score each member on its held-out rows, and remember its best parameters."""

    config: Config

    def __call__(self, key: jax.Array, state: State, rows: Rows) -> tuple[State, dict[str, jax.Array]]:
        """`rows.held_out` is (X (E, V, D), Y (E, V, P), weight (E, V)), or None: the last state is the best."""
        epoch = state.epoch + 1
        if rows.held_out is None:
            return replace(state, epoch=epoch, best=state.params), {}
        score = held_out_score(state.params, self.config, *rows.held_out)
        better = score > state.best_score + state.tol

        def choose(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(better.reshape((-1,) + (1,) * (new.ndim - 1)), new, old)

        state = replace(
            state,
            epoch=epoch,
            best=jax.tree.map(choose, state.params, state.best),
            best_score=choose(score, state.best_score),
            best_epoch=choose(jnp.full_like(state.best_epoch, epoch), state.best_epoch),
        )
        idle = jnp.min(epoch - state.best_epoch)
        return state, {"held_out": jnp.mean(score), "stop": idle >= state.patience}


def held_out_score(
    params: Params, config: Config, X: jax.Array, Y: jax.Array, weight: jax.Array
) -> jax.Array:
    """Mean predictive log-likelihood of each member on rows of its own, nats a row: (E,)."""

    def member(one: Params, x: jax.Array, y: jax.Array, w: jax.Array) -> jax.Array:
        scores = jax.vmap(partial(objective.predictive_log_likelihood, one, config))(x, y)
        return jnp.sum(w * scores) / jnp.sum(w)

    return jnp.maximum(jax.vmap(member)(params, X, Y, weight), _WORST)


def first_state(params: Params, total: Any, n_steps: float, patience: int, tol: float) -> State:
    """The state before the first epoch, as host arrays: nothing is compiled to make it."""
    n_members = params.b0.shape[0]
    shapes = jax.eval_shape(optimiser().init, params)
    return State(
        params=params,
        optimiser=jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes),
        step=np.float32(0),
        n_steps=np.float32(n_steps),
        total=np.asarray(total, np.float32),
        epoch=np.int32(0),
        best=params,
        best_score=np.full(n_members, _WORST, np.float32),
        best_epoch=np.zeros(n_members, np.int32),
        patience=np.int32(patience),
        tol=np.float32(tol),
    )
