"""The recipe of a fit: fold the rows, start an ensemble, run epochs, keep each member's best, calibrate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nongauss.core.device import key_from_seed, replace
from nongauss.core.errors import InputError
from nongauss.core.records import value
from nongauss.optimise import compiled as loop
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.minibatch import GradientStep, over_devices, pad_rows
from nongauss.optimise.result import Callback, FitResult, Status
from nongauss.tables.rows import canonical_rows
from nongauss.tables.sparse import SparseRows, joined
from nongauss.tggm import predict, updates
from nongauss.tggm.params import Config, Params, start
from nongauss.tggm.predict import Ensemble

FEWEST_TO_HOLD_OUT = 20
"""With fewer distinct rows none is held out: a tenth of them would say nothing."""

SKEWNESSES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Shares of the hidden variance that may keep their skewed shape; see `calibrated`."""

MOST_TO_CALIBRATE = 2000
"""Held-out rows of each member that are looked at for that."""

STEPS = (4000, 12_000)
"""Fewest and most optimiser steps of a fit whose number of epochs is left to it."""

SEEN = 1_024_000
"""Rows of which these steps are made, if that is between the two: a boundary of few rows takes longer."""

_NO_END = 1e30


@value
class Recipe:
    """How an ensemble is trained; see the parameters of `TGGMRegressor`."""

    n_members: int
    batch_size: int | None
    learning_rate: float
    max_epochs: int | None
    patience: int
    tol: float
    validation_fraction: float


HeldOut = tuple[jax.Array, jax.Array, jax.Array]


class Data(NamedTuple):
    """Canonical rows: X (N, D), Y (N, P) float32 and standardised, weight (N,) float64.

    X may be `SparseRows` of `n_columns` columns; of labels, Y holds the class numbers, (N, 1).
    """

    X: Any
    Y: NDArray[np.float32]
    weight: NDArray[Any]
    n_columns: int | None = None

    @property
    def n_inputs(self) -> int:
        """D, which sparse rows do not show."""
        return self.X.shape[1] if self.n_columns is None else self.n_columns


def fit(
    seed: int,
    data: Data,
    config: Config,
    recipe: Recipe,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> tuple[FitResult, Ensemble]:
    """Train the ensemble: the loop's result, and the calibrated members on the standardised scale."""
    n_rows = len(data.weight)
    group = like_inputs(data) if config.n_classes else np.arange(n_rows)
    fold = folds(int(group.max()) + 1, recipe)[group]
    size = batch_size(n_rows, recipe.batch_size)
    weight = _moderate(data.weight)
    held = held_out(data._replace(weight=weight), fold, recipe.n_members)
    rows = pad_rows((data.X, data.Y, fold), weight, held)
    rows = over_devices(rows) if size >= n_rows else rows
    params = start(np.random.default_rng(seed), config, recipe.n_members, data.n_inputs, data.Y)
    max_epochs = recipe.max_epochs or enough_epochs(n_rows, size)
    n_steps = max_epochs * math.ceil(n_rows / size)
    total, counted = (
        [part[fold != e].sum() for e in range(recipe.n_members)] for part in (weight, _counted(data, config))
    )
    state = begin(params, total, n_steps, recipe, counted)
    result = loop.run(
        make_step(config, size, n_rows),
        key_from_seed(seed),
        state,
        rows,
        max_iter=max_epochs,
        callbacks=callbacks,
        checkpoint=checkpoint,
        verbose=verbose,
    )
    return ended(result, config, held)


def go_on(
    seed: int, data: Data, config: Config, recipe: Recipe, former: FitResult | None
) -> tuple[FitResult, Ensemble]:
    """One more epoch over these rows for all members, with a learning rate that does not decay.

    `former` is the last result, its state as `leaves_of` gave it; None starts anew. No row is held out.
    Raises InputError if the network has another shape by now.
    """
    n_rows = len(data.weight)
    weight = _moderate(data.weight)
    rows = pad_rows((data.X, data.Y, np.full(n_rows, -1, np.int32)), weight)
    params = start(np.random.default_rng(seed), config, recipe.n_members, data.n_inputs, data.Y)
    total = np.full(recipe.n_members, weight.sum(), np.float32)
    counted = np.full(recipe.n_members, _counted(data, config).sum(), np.float32)
    state = begin(params, total, _NO_END, recipe, counted)
    if former is not None:
        leaves, structure = jax.tree.flatten(state)
        if [leaf.shape for leaf in leaves] != [leaf.shape for leaf in former.state]:
            raise InputError("The network's parameters have changed since the last call; call fit first.")
        state = replace(
            jax.tree.unflatten(structure, former.state),
            rate=state.rate,
            total=total,
            counted=counted,
            n_steps=state.n_steps,
        )
    step = make_step(config, batch_size(n_rows, recipe.batch_size), n_rows)
    n_done = 0 if former is None else former.n_iter
    result = loop.run(step, key_from_seed(seed), state, rows, max_iter=n_done + 1, start=former)
    return ended(result, config, None)


def begin(params: Params, total: Any, n_steps: float, recipe: Recipe, counted: Any) -> updates.State:
    """The state before the first epoch, by the recipe's learning rate and rule for stopping early."""
    return updates.first_state(
        params, total, n_steps, recipe.learning_rate, recipe.patience, recipe.tol, counted
    )


def ended(result: FitResult, config: Config, held: HeldOut | None) -> tuple[FitResult, Ensemble]:
    """The result, for which the last epoch of the schedule is a good end, and the calibrated best members."""
    if result.status is Status.MAX_ITER:
        result = FitResult(result.state, result.trace, Status.COMPLETED, result.n_iter)
    return result, calibrated(jax.tree.map(np.asarray, result.state.best), config, held)


def _moderate(weight: NDArray[Any]) -> NDArray[np.float32]:
    """Weights by a power of two near their mean: their unit is irrelevant, and none overflows."""
    return (weight / 2.0 ** round(math.log2(weight.mean()))).astype(np.float32)


def _counted(data: Data, config: Config) -> NDArray[Any]:
    """Weights as the prior sees them: of labels those of the user, for whom a merged row is many."""
    return data.weight if config.n_classes else _moderate(data.weight)


def make_step(config: Config, size: int, n_rows: int) -> GradientStep:
    """One epoch: mini-batches of `size` rows, or all `n_rows` at once, then the members are judged."""
    at_once = None if size >= n_rows else size
    return GradientStep(updates.Local(config), updates.Update(config), at_once, updates.Judge(config))


def batch_size(n_rows: int, asked: int | None) -> int:
    """Rows in a batch. By default a fiftieth of the rows, between 32 and 256."""
    return min(max(32, min(256, n_rows // 50)) if asked is None else asked, max(n_rows, 1))


def like_inputs(data: Data) -> NDArray[np.int64]:
    """One number for all rows with the same inputs (N,): labels of one input are held out together.

    Else a member would train on one label of an input, and be judged on the other.
    """
    X = joined(data.X) if isinstance(data.X, SparseRows) else data.X
    return canonical_rows(X, np.zeros((len(X), 0), np.float32), np.ones(len(X))).order


def enough_epochs(n_rows: int, size: int) -> int:
    """Epochs in which about `SEEN` rows make at least and at most `STEPS` steps, between 15 and 1000."""
    steps = np.clip(SEEN / size, *STEPS)
    return int(np.clip(math.ceil(steps * size / n_rows), 15, 1000))


def folds(n_rows: int, recipe: Recipe) -> NDArray[np.int32]:
    """For each row the member that does not train on it, or -1.

    Rows come in an order that depends on their content alone, so dealing them out in turn is a random but
    repeatable choice, which a row's weight or its place in the user's table does not change. Each member has
    other rows, so the share that it holds out is at most one over the number of members, and at most a half.
    """
    if recipe.validation_fraction == 0 or n_rows < max(FEWEST_TO_HOLD_OUT, recipe.n_members):
        return np.full(n_rows, -1, np.int32)
    n_folds = max(2, recipe.n_members, round(1.0 / recipe.validation_fraction))
    turn = np.arange(n_rows, dtype=np.int32) % n_folds
    return np.where(turn < recipe.n_members, turn, -1).astype(np.int32)


def held_out(data: Data, fold: NDArray[np.int32], n_members: int) -> HeldOut | None:
    """Each member's held-out rows, padded to one length by rows of weight 0: (E, V, ...) arrays."""
    if not (fold >= 0).any():
        return None
    parts = [np.flatnonzero(fold == e) for e in range(n_members)]
    length = max(len(part) for part in parts)
    length = -(-length // updates.TOGETHER) * updates.TOGETHER
    index = np.stack([np.pad(part, (0, length - len(part)), mode="edge") for part in parts])
    real = np.arange(length)[None, :] < np.array([[len(part)] for part in parts])
    weight = np.where(real, data.weight[index], 0.0).astype(np.float32)
    X = jax.tree.map(lambda array: array[index], data.X)
    return jax.device_put((X, data.Y[index], weight))


def calibrated(params: Params, config: Config, held: HeldOut | None) -> Ensemble:
    """The ensemble with its variance and its skewness set by the rows that the members did not train on.

    A member's held-out squared error is `a` times its variance on average. Averaging the members takes
    their spread, `b` times the variance, off the error: the inflation of each output is a - b, within
    [0.5, 3]. Then the share of skewness is that of `SKEWNESSES` with the highest held-out log density.
    Without held-out rows the model is taken at its word, and so are the probabilities of labels.
    """
    n_outputs = params.b1.shape[1]
    plain = Ensemble(params, config, np.ones(n_outputs), 1.0, np.zeros(n_outputs), np.ones(n_outputs))
    if held is None or config.n_classes:
        return plain
    X, Y, weight = (np.asarray(part)[:, :MOST_TO_CALIBRATE].astype(np.float64) for part in held)
    mean, variance = predict.member_moments_of(params, config, X.reshape(-1, X.shape[2]))
    shape = (len(X), *Y.shape)  # every member at every held-out row
    mean, variance = mean.reshape(shape), variance.reshape(shape)
    own = np.arange(len(X))
    square = (Y - mean[own, own]) ** 2 - mean.var(axis=0)
    ratio = (weight[..., None] * square / variance[own, own]).sum((0, 1)) / weight.sum()
    inflation = np.where((Y[:1, :1] == Y).all((0, 1)), 1.0, np.clip(ratio, 0.5, 3.0))  # constant: as it is
    if config.method == "bp":
        return plain._replace(inflation=inflation)
    parts = [_parts_of_one(params, config, e, X[e]) for e in range(len(X))]
    scores = [
        sum(_log_density(part, inflation, share, *rows) for part, *rows in zip(parts, Y, weight, strict=True))
        for share in SKEWNESSES
    ]
    return plain._replace(inflation=inflation, skewness=SKEWNESSES[int(np.argmax(scores))])


def _parts_of_one(params: Params, config: Config, member: int, X: NDArray[np.float64]) -> predict.Parts:
    one = jax.tree.map(lambda leaf: leaf[member : member + 1], params)
    return predict.parts_of(one, config, X)


def _log_density(
    parts: predict.Parts,
    inflation: NDArray[np.float64],
    skewness: float,
    Y: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> float:
    """Weighted sum of one member's log density at its held-out rows Y (V, P)."""
    means, variances = predict.mixture(parts, inflation, skewness)
    terms = -0.5 * (np.log(2.0 * np.pi * variances[0]) + (Y[:, None, :] - means[0]) ** 2 / variances[0])
    return float(weight @ (logsumexp(terms.sum(-1), axis=1) - np.log(terms.shape[1])))


def leaves_of(state: updates.State) -> tuple[NDArray[Any], ...]:
    """The arrays of a state, at the members' best parameters, in the order in which `go_on` takes them."""
    return tuple(np.asarray(leaf) for leaf in jax.tree.leaves(replace(state, params=state.best)))
