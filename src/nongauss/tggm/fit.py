"""The recipe of a fit: fold the rows, start an ensemble, run epochs, keep each member's best, calibrate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from nongauss.core.contracts import Callback, FitResult, Status
from nongauss.core.records import replace, value
from nongauss.core.rng import key_from_seed, split_named
from nongauss.inference import loop
from nongauss.inference.checkpoint import Checkpoint
from nongauss.inference.gradient import GradientStep, pad_rows
from nongauss.tggm import predict, updates
from nongauss.tggm.params import Config, Params, constrain, start

FEWEST_TO_HOLD_OUT = 20
"""With fewer distinct rows none is held out: a tenth of them would say nothing."""

_NO_END = 1e30


@value
class Recipe:
    """How an ensemble is trained; see the parameters of `TGGMRegressor`."""

    n_members: int
    batch_size: int | None
    max_epochs: int
    patience: int
    tol: float
    validation_fraction: float


class Data(NamedTuple):
    """Canonical rows: X (N, D), Y (N, P) float32 and standardised, weight (N,) float64."""

    X: NDArray[np.float32]
    Y: NDArray[np.float32]
    weight: NDArray[np.float64]


def fit(
    seed: int,
    data: Data,
    config: Config,
    recipe: Recipe,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> tuple[FitResult, Params, NDArray[np.float64]]:
    """Train the ensemble: the loop's result, the members' parameters, and the calibration (E, P)."""
    keys = split_named(key_from_seed(seed), "start", "loop")
    n_rows = len(data.weight)
    fold = folds(n_rows, recipe)
    size = batch_size(n_rows, recipe.batch_size)
    weight = data.weight.astype(np.float32)
    held = held_out(data._replace(weight=weight), fold, recipe.n_members)
    rows = pad_rows((data.X, data.Y, fold), weight, held)
    params = start(keys["start"], config, recipe.n_members, data.X.shape[1], data.Y.shape[1])
    n_steps = recipe.max_epochs * math.ceil(n_rows / size)
    total = jnp.asarray([weight[fold != e].sum() for e in range(recipe.n_members)])
    params = constrain(_flat_where_constant(params, data.Y), config)
    state = updates.first_state(params, total, n_steps, recipe.patience, recipe.tol)
    result = loop.run(
        make_step(config, size),
        keys["loop"],
        state,
        rows,
        max_iter=recipe.max_epochs,
        callbacks=callbacks,
        checkpoint=checkpoint,
        verbose=verbose,
    )
    if result.status is Status.MAX_ITER:
        result = FitResult(result.state, result.trace, Status.COMPLETED, result.n_iter)
    best = jax.tree.map(np.asarray, result.state.best)
    return result, best, calibration(best, config, held)


def _flat_where_constant(params: Params, Y: NDArray[np.float32]) -> Params:
    """No weights into an output that never varies: from there its gradient keeps them at exactly 0."""
    varies = (Y != Y[:1]).any(axis=0)
    return params._replace(W1=params.W1 * jnp.asarray(varies, jnp.float32)[None, :, None])


def go_on(
    seed: int, data: Data, config: Config, recipe: Recipe, former: tuple[FitResult, Any] | None
) -> tuple[FitResult, Params]:
    """One more epoch over these rows for all members, with a learning rate that does not decay.

    `former` is the last result and its state's leaves; None starts anew. No row is held out.
    """
    keys = split_named(key_from_seed(seed), "start", "loop")
    n_rows = len(data.weight)
    weight = data.weight.astype(np.float32)
    rows = pad_rows((data.X, data.Y, np.full(n_rows, -1, np.int32)), weight)
    params = start(keys["start"], config, recipe.n_members, data.X.shape[1], data.Y.shape[1])
    params = constrain(_flat_where_constant(params, data.Y), config) if former is None else params
    total = jnp.full(recipe.n_members, weight.sum())
    state = updates.first_state(params, total, _NO_END, recipe.max_epochs, recipe.tol)
    result = None
    if former is not None:
        result, leaves = former
        state = jax.tree.unflatten(jax.tree.structure(state), [jnp.asarray(leaf) for leaf in leaves])
        state = replace(state, total=total)
    step = make_step(config, batch_size(n_rows, recipe.batch_size))
    n_done = 0 if result is None else result.n_iter
    result = loop.run(step, keys["loop"], state, rows, max_iter=n_done + 1, start=result)
    if result.status is Status.MAX_ITER:
        result = FitResult(result.state, result.trace, Status.COMPLETED, result.n_iter)
    return result, jax.tree.map(np.asarray, result.state.best)


def make_step(config: Config, size: int) -> GradientStep:
    """One epoch: mini-batches of `size` rows, then the members are judged."""
    return GradientStep(updates.Local(config), updates.Update(config), size, updates.Judge(config))


def batch_size(n_rows: int, asked: int | None) -> int:
    """Rows in a batch. By default a fiftieth of the rows, between 32 and 256."""
    return min(max(32, min(256, n_rows // 50)) if asked is None else asked, max(n_rows, 1))


def folds(n_rows: int, recipe: Recipe) -> NDArray[np.int32]:
    """For each row the member that does not train on it, or -1.

    Rows come in an order that depends on their content alone, so dealing them out in turn is a random but
    repeatable choice, which a row's weight or its place in the user's table does not change.
    """
    if recipe.validation_fraction == 0 or n_rows < FEWEST_TO_HOLD_OUT:
        return np.full(n_rows, -1, np.int32)
    n_folds = max(recipe.n_members, round(1.0 / recipe.validation_fraction))
    turn = np.arange(n_rows, dtype=np.int32) % n_folds
    return np.where(turn < recipe.n_members, turn, -1).astype(np.int32)


def held_out(
    data: Data, fold: NDArray[np.int32], n_members: int
) -> tuple[jax.Array, jax.Array, jax.Array] | None:
    """Each member's held-out rows, padded to one length by rows of weight 0: (E, V, ...) arrays."""
    if not (fold >= 0).any():
        return None
    parts = [np.flatnonzero(fold == e) for e in range(n_members)]
    length = max(len(part) for part in parts)
    length = -(-length // 16) * 16
    index = np.stack([np.pad(part, (0, length - len(part)), mode="edge") for part in parts])
    real = np.arange(length)[None, :] < np.array([[len(part)] for part in parts])
    weight = np.where(real, data.weight[index], 0.0).astype(np.float32)
    return jnp.asarray(data.X[index]), jnp.asarray(data.Y[index]), jnp.asarray(weight)


def calibration(
    params: Params, config: Config, held: tuple[jax.Array, jax.Array, jax.Array] | None
) -> NDArray[np.float64]:
    """Factor of each member's predictive variance (E, P), from the rows that it did not train on.

    A member's held-out squared error is `factor * variance` on average. The mean of an ensemble errs less
    than its members, by the members' spread, and the mixture adds that spread once more: so twice the
    spread is taken off. The one factor of all members is kept between 0.5 and 2.
    """
    n_members, n_outputs = params.b1.shape
    if held is None:
        return np.ones((n_members, n_outputs))
    X, Y, weight = (np.asarray(part) for part in held)
    mean, variance = predict.member_moments_of(params, config, X.reshape(-1, X.shape[2]))
    shape = (n_members, *Y.shape)  # every member at every held-out row
    mean, variance = mean.reshape(shape), variance.reshape(shape)
    own = np.arange(n_members)
    spread = mean.var(axis=0) / variance[own, own]
    ratio = (Y - mean[own, own]) ** 2 / variance[own, own] - 2.0 * spread
    factor = (weight[..., None] * ratio).sum((0, 1)) / weight.sum()
    return np.broadcast_to(np.clip(factor, 0.5, 2.0), (n_members, n_outputs)).copy()


def leaves_of(state: updates.State) -> tuple[NDArray[Any], ...]:
    """The arrays of a state, in the order in which `go_on` takes them back."""
    return tuple(np.asarray(leaf) for leaf in jax.tree.leaves(state))
