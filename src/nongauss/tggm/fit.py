"""The order in which a fit is run: deal out the rows, start an ensemble, run epochs, keep each member's best,
calibrate."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float64
from scipy.special import logsumexp

from nongauss.core.device import key_from_seed, replace
from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.optimise import loop
from nongauss.optimise.compiled import compiled
from nongauss.optimise.course import NOBODY, FitResult, Rule, Run
from nongauss.optimise.minibatch import Epoch, minibatch
from nongauss.tables.source import Source
from nongauss.tggm import predict, updates
from nongauss.tggm.config import NetworkConfig, TrainingRecipe
from nongauss.tggm.data import HeldOut, NetworkRows, streamed_table, table_without_holdout, whole_table
from nongauss.tggm.params import NetworkParams, TrainingState, first_state, start
from nongauss.tggm.predict import Ensemble

SKEWNESSES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Shares of the hidden variance that may keep their skewed shape; see `calibrated`."""

MOST_TO_CALIBRATE = 2000
"""Held-out rows of each member that are looked at for that."""
"""A fit that nobody watches and that is not kept."""

_NO_END = 1e30


@persistable("tggm.Momenta")
class Momenta(NamedTuple):
    """What the optimiser remembers after a fit: the averages of gradients and of their squares (E, K) with
    their count, and the steps and epochs done.
    """

    optimiser: tuple[np.ndarray, ...]
    step: Any
    epoch: Any


class FormerState(NamedTuple):
    """A state to go on from: the best parameters, and what the optimiser remembers."""

    params: NetworkParams
    momenta: Momenta


def fit(
    seed: int,
    sample: NetworkRows,
    config: NetworkConfig,
    recipe: TrainingRecipe,
    all_rows: Source | None = None,
    run: Run = NOBODY,
) -> tuple[FitResult, Ensemble]:
    """Train the ensemble: the loop's result, and the calibrated members on the standardised scale.

    `all_rows` is a source of `Encoded` rows, of which `sample` holds some in memory; None where `sample`
    holds all. The epochs are a schedule, which early stopping may cut short.
    """
    are_labels = config.n_classes > 0
    if all_rows is None:
        table = whole_table(sample, recipe, are_labels)
    else:
        table = streamed_table(all_rows, sample, recipe, are_labels)
    size, max_epochs = recipe.rows_a_batch(table.n_rows), recipe.n_epochs(table.n_rows)
    params = start(np.random.default_rng(seed), config, recipe.n_members, sample.n_inputs, sample.Y)
    n_steps = float(max_epochs * math.ceil(table.n_rows / size))
    state = first_state(params, table.total, n_steps, recipe, table.counted)
    epoch = epoch_of(config, size, table.n_rows)
    if all_rows is None:
        step = compiled(epoch, table.rows)
    else:
        step = minibatch(epoch, table.rows, table.n_rows, table.held)
    key = key_from_seed(seed)
    result = loop.run(step, state, run, Rule(max_epochs), name="epochs", key=key)
    return result, calibrated(best_of(result), config, table.held)


def go_on(
    seed: int, data: NetworkRows, config: NetworkConfig, recipe: TrainingRecipe, former: FitResult | None
) -> tuple[FitResult, Ensemble]:
    """One more epoch over these rows for all members, with a learning rate that does not decay.

    `former` is the last result, its state a `FormerState`; None starts anew. No row is held out.
    Raises InputError if the network has another shape by now.
    """
    table = table_without_holdout(data, recipe.n_members, config.n_classes > 0)
    params = start(np.random.default_rng(seed), config, recipe.n_members, data.n_inputs, data.Y)
    state = first_state(params, table.total, _NO_END, recipe, table.counted)
    if former is not None:
        state = _continued(state, former.state)
    epoch = epoch_of(config, recipe.rows_a_batch(table.n_rows), table.n_rows)
    step, key = compiled(epoch, table.rows), key_from_seed(seed)
    result = loop.run(step, state, NOBODY, Rule(1), name="epoch", key=key, former=former)
    return result, calibrated(best_of(result), config, None)


def _continued(state: TrainingState, former: FormerState) -> TrainingState:
    """The former state, with the rate, the schedule and the weights of this one. Raises InputError."""
    pairs = zip(jax.tree.leaves(state.params), jax.tree.leaves(former.params), strict=False)
    same_depth = len(state.params.deeper) == len(former.params.deeper)
    if not same_depth or any(own.shape != its.shape for own, its in pairs):
        raise InputError("The network's parameters have changed since the last call; call fit first.")
    moments = jax.tree.unflatten(jax.tree.structure(state.optimiser), former.momenta.optimiser)
    return replace(
        state,
        params=former.params,
        best=former.params,
        optimiser=moments,
        step=former.momenta.step,
        epoch=former.momenta.epoch,
    )


def epoch_of(config: NetworkConfig, size: int, n_rows: int) -> Epoch:
    """One epoch: mini-batches of `size` rows, or all `n_rows` at once, then the members are judged."""
    at_once = None if size >= n_rows else size
    return Epoch(
        updates.GradientSums(config), updates.GradientAscent(config), at_once, updates.HeldOutJudge(config)
    )


def best_of(result: FitResult) -> NetworkParams:
    """Each member's best parameters, on the host."""
    best: NetworkParams = jax.tree.map(np.asarray, result.state.best)
    return best


def calibrated(params: NetworkParams, config: NetworkConfig, held: HeldOut | None) -> Ensemble:
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
    mean, variance = predict.member_moments_of(params, config, X.reshape(X.shape[0] * X.shape[1], X.shape[2]))
    shape = (len(X), *Y.shape)  # every member at every held-out row
    mean, variance = mean.reshape(shape), variance.reshape(shape)
    own = np.arange(len(X))
    square = (Y - mean[own, own]) ** 2 - mean.var(axis=0)
    # a - b = sum_en w_en [(y_en - m_e(x_en))^2 - var_e'(m_e'(x_en))] / V_e(x_en) / sum_en w_en
    ratio = (weight[..., None] * square / variance[own, own]).sum((0, 1)) / weight.sum()
    inflation = np.where((Y[:1, :1] == Y).all((0, 1)), 1.0, np.clip(ratio, 0.5, 3.0))  # constant: as it is
    if config.method == "bp":
        return plain._replace(inflation=inflation)
    parts = [predict.decomposed(predict.member_of(params, e), config, X[e]) for e in range(len(X))]
    scores = [
        sum(_log_density(part, inflation, share, *rows) for part, *rows in zip(parts, Y, weight, strict=True))
        for share in SKEWNESSES
    ]
    return plain._replace(inflation=inflation, skewness=SKEWNESSES[int(np.argmax(scores))])


def _log_density(
    parts: predict.Decomposition,
    inflation: Float64[np.ndarray, " P"],
    skewness: float,
    Y: Float64[np.ndarray, "V P"],
    weight: Float64[np.ndarray, " V"],
) -> float:
    """Weighted sum of the log density of one member at its held-out rows.

    log p(y) = log (1 / S) sum_s prod_p N(y_p; m_sp, v_sp), the mixture of `predict.mixture`.
    """
    means, variances = predict.mixture(parts, inflation, skewness)
    terms = -0.5 * (np.log(2.0 * np.pi * variances[0]) + (Y[:, None, :] - means[0]) ** 2 / variances[0])
    return float(weight @ (logsumexp(terms.sum(-1), axis=1) - np.log(terms.shape[1])))


def momenta_of(state: TrainingState) -> Momenta:
    """What `go_on` needs of the last state beside the best parameters, on the host."""
    optimiser = tuple(np.asarray(leaf) for leaf in jax.tree.leaves(state.optimiser))
    return Momenta(optimiser, np.asarray(state.step), np.asarray(state.epoch))


def former_state(params: NetworkParams, kept: Any) -> FormerState:
    """The state that `go_on` takes, from the best parameters and what an estimator kept beside them.

    Models of version 0.1.0 kept all leaves of the training state: the parameters, three leaves of the
    optimiser, `step`, four numbers of the schedule, `epoch`, and more.
    """
    if isinstance(kept, Momenta):
        return FormerState(params, kept)
    n = len(jax.tree.leaves(params))
    return FormerState(params, Momenta(tuple(kept[n : n + 3]), kept[n + 3], kept[n + 8]))
