"""How the model moves: the posterior of the hidden units, the gradient of a batch, one step of the optimiser.

`local` sums over the rows of a batch, `update` moves the parameters, `judge` looks at held-out rows: the
three functions that the mini-batch engine asks for (`nongauss.inference.gradient`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from nongauss.core.records import record, replace, value
from nongauss.inference.gradient import Rows
from nongauss.prob import truncnorm
from nongauss.tggm import objective
from nongauss.tggm.objective import Posterior
from nongauss.tggm.params import Config, Params, constrain

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
    step: jax.Array
    n_steps: jax.Array
    total: jax.Array
    epoch: jax.Array
    best: Params
    best_score: jax.Array
    best_epoch: jax.Array
    patience: jax.Array
    tol: jax.Array


def optimiser() -> optax.GradientTransformation:
    """RMSProp with momentum and bias correction (Adam); its learning rate is applied in `update`."""
    return optax.scale_by_adam(b1=0.9, b2=0.99)


def factor_sd(params: Params) -> jax.Array:
    """Sd (M,) of the posterior's factors before truncation: v_k = 1 / (1/s0_k^2 + sum_p W1_pk^2/s1_p^2)."""
    own = jnp.exp(-2.0 * params.log_sd1) @ params.W1**2
    return 1.0 / jnp.sqrt(jnp.exp(-2.0 * params.log_sd0) + own)


def best_locations(params: Params, means: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Location (M,) of each unit's best factor given the means (M,) of the others (eq. 20 to 22, corrected).

    With the residual e = y - b1 - W1 <h>, unit k is N_T(xi_k, v_k),
    xi_k = v_k (c_k / s0_k^2 + sum_p W1_pk (e_p + W1_pk <h_k>) / s1_p^2).
    """
    precision = jnp.exp(-2.0 * params.log_sd1)
    residual = y - params.b1 - params.W1 @ means
    pull = (residual * precision) @ params.W1 + (precision @ params.W1**2) * means
    return factor_sd(params) ** 2 * (jnp.exp(-2.0 * params.log_sd0) * objective.drive(params, x) + pull)


class Climb(NamedTuple):
    """A posterior on its way up: `slope` (M,) is the gradient of the bound in the means, `step` <= 1."""

    q: Posterior
    slope: jax.Array
    step: jax.Array


def stand(params: Params, location: jax.Array, step: jax.Array, x: jax.Array, y: jax.Array) -> Climb:
    """The posterior at these locations (M,), with the slope of the bound there."""
    sd = factor_sd(params)
    q = Posterior(location, sd, *truncnorm.moments(location, sd))
    return Climb(q, (best_locations(params, q.mean, x, y) - location) / sd**2, step)


def sweep(params: Params, now: Climb, x: jax.Array, y: jax.Array) -> Climb:
    """One damped Newton step of all means at once.

    At fixed variances the bound is strictly concave in the means <h>, with Hessian -(diag D + W1' W1 / s1^2),
    D = 1/var - sum_p W1_pk^2 / s1_p^2 > 0: diagonal plus rank P (units meet only through the residual), so a
    step costs O(M P^2 + P^3) a row. A step after which the bound falls again faster than half as it rose
    before went too far: it is not taken, and the next one is shorter.
    """
    noise, q = jnp.exp(2.0 * params.log_sd1), now.q
    own = (1.0 / noise) @ params.W1**2
    ratio = 1.0 / jnp.maximum(1.0 / q.variance - own, jnp.exp(-2.0 * params.log_sd0))
    pull = params.W1 @ (ratio * now.slope)
    if y.shape[0] == 1:
        shared = pull / (noise + params.W1**2 @ ratio)
    else:
        shared = jnp.linalg.solve(jnp.diag(noise) + (params.W1 * ratio[None, :]) @ params.W1.T, pull)
    way = ratio * (now.slope - params.W1.T @ shared)
    tried = stand(params, q.location + now.step * way * q.sd**2 / q.variance, now.step, x, y)
    moved = tried.q.mean - q.mean
    before, after = now.slope @ moved, tried.slope @ moved
    taken = (before >= 0.0) & (after >= -0.5 * before)
    chosen = jax.tree.map(lambda new, old: jnp.where(taken, new, old), tried, now)
    return chosen._replace(step=jnp.where(taken, jnp.minimum(2.0 * now.step, 1.0), 0.25 * now.step))


def mean_field(params: Params, x: jax.Array, y: jax.Array, n_sweeps: int) -> Posterior:
    """The factorised posterior of one row after at most `n_sweeps` sweeps, started at the prior locations."""
    location = objective.drive(params, x)

    def unsettled(carry: tuple[jax.Array, Climb]) -> jax.Array:
        done, now = carry
        gap = jnp.abs(now.slope) * now.q.variance / now.q.sd
        return (done < n_sweeps) & (jnp.max(gap) > SETTLED)

    def body(carry: tuple[jax.Array, Climb]) -> tuple[jax.Array, Climb]:
        return carry[0] + 1, sweep(params, carry[1], x, y)

    first = stand(params, location, jnp.ones((), location.dtype), x, y)
    return jax.lax.while_loop(unsettled, body, (jnp.int32(0), first))[1].q


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
        """`rows.held_out` is (X (E, V, D), Y (E, V, P), weight (E, V)), or None: the last is best."""
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
    host: Any = np  # host arrays where the record says jax.Array: they become that at the first step
    shapes = jax.eval_shape(optimiser().init, params)
    return State(
        params=params,
        optimiser=jax.tree.map(lambda leaf: host.zeros(leaf.shape, leaf.dtype), shapes),
        step=host.float32(0),
        n_steps=host.float32(n_steps),
        total=host.asarray(total, host.float32),
        epoch=host.int32(0),
        best=params,
        best_score=host.full(n_members, _WORST, host.float32),
        best_epoch=host.zeros(n_members, host.int32),
        patience=host.int32(patience),
        tol=host.float32(tol),
    )
