"""The order in which a fit is run: deal out the rows, start an ensemble, run epochs, keep each member's best,
calibrate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from nongauss.core.device import key_from_seed, replace
from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.optimise import loop
from nongauss.optimise.compiled import compiled
from nongauss.optimise.course import NOBODY, FitResult, Rule, Run, Status
from nongauss.optimise.minibatch import Epoch, minibatch
from nongauss.tables.source import Source
from nongauss.tggm import constant, on_host, updates
from nongauss.tggm.calibration import CalibratedEnsemble, calibrated
from nongauss.tggm.config import DEEP, PLAIN, NetworkConfig, TrainingRecipe
from nongauss.tggm.data import NetworkRows, TrainingTable, streamed_table, table_without_holdout, whole_table
from nongauss.tggm.params import (
    NO_LEAST,
    SMALLEST_LOG_SD,
    WORST,
    NetworkParams,
    TrainingState,
    first_state,
    start,
    with_heads,
)
from nongauss.tggm.predict import Ensemble

FURTHER = 0.5
"""Epochs of each further way, and those without improvement that end it, as a share of those by moments; of
`DEEP` layers as many as they had."""

SHORTER = 0.3
"""Epochs of `DEEP` layers as a share of those of `PLAIN`: they learn in fewer, each of which takes longer."""

STEPS_OF_DEEP = 3_000
"""Steps that they have at least, unless the schedule of `PLAIN` is shorter: fewer teach them little."""

ROWS_OF_DEEP = 3_000
"""Rows from which on `DEEP` layers are tried: few rows seldom tell which is better."""

N_HEADS = 3
"""Heads of a fit that is free to have some."""

FEWEST_VALUES = 0.25
"""Distinct targets, as a share of the rows, from which on it has: a head would close in on whole numbers."""

LEAST_GAIN, LEAST_NATS = 0.01, 5.0
"""Nats a row, and of all rows together, by which held-out rows must prefer heads or larger layers: one output
and few units are simpler to look at, and a few rows can prefer others by chance."""

FAR_BELOW = 0.1
"""Nats a row: heads that are farther below one output after half of the epochs are left."""

LEAST_NOISE = 0.5
"""Least noise of a further fit by the exact likelihood, as a share of the spread of the members' means: where
noise has an edge, the rows below it are all that a member sees of it, and it would be drawn up to these."""

EXACT_EPOCHS, HEADS_EPOCHS = "epochs of the exact likelihood", "epochs of heads"
MORE_HEADS_EPOCHS, DEEP_EPOCHS = "more epochs of heads", "epochs of two layers"
MORE_EPOCHS = "more epochs of one layer"
SKIP_EPOCHS = "epochs with a linear skip"
"""Their names in a checkpoint."""

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
    """A state to go on from: the best parameters, and what the optimiser remembers, if it is known."""

    params: NetworkParams
    momenta: Momenta | None


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
    holds all. The epochs are a schedule, which early stopping may cut short. With `posterior="auto"` the
    members are fitted by moments, then anew with `N_HEADS` heads, half of the epochs first; and, if errors of
    rows that they did not train on are so skewed that it may gain, by the exact likelihood from the first.
    These rows choose. Before, they choose between `PLAIN` and `DEEP` layers after the epochs of `DEEP`, where
    the sizes are left to the fit and rows are many, and then whether there is a skip, where that is.
    """
    trainer = _Trainer.of(seed, sample, recipe, all_rows, run, config.n_classes > 0)
    max_epochs = trainer.max_epochs
    is_free, n_heads = config.posterior == "auto", config.n_heads or 1
    posterior, layers = "moments" if is_free else config.posterior, config.layers or PLAIN
    plain = replace(config, posterior=posterior, n_heads=n_heads, layers=layers, skip=bool(config.skip))
    best, last = _shaped(trainer, plain, config)
    plain = best.found.ensemble.config
    may_go_on = is_free and config.method == "ml" and n_heads == 1 and last.may_be_compared
    if may_go_on:
        tries_heads = config.n_heads is None and may_have_heads(config, sample.Y)
        epochs = min(best.epochs, math.ceil(FURTHER * max_epochs))
        best = _further(trainer.attempt, best, plain, epochs, tries_heads)
    return constant.better_of(best.result, best.found, sample, trainer.table.held)


class _Trainer(NamedTuple):
    """What all ways to fit the members have in common: the rows, how they are dealt out, and the recipe."""

    seed: int
    sample: NetworkRows
    table: TrainingTable
    in_memory: bool
    recipe: TrainingRecipe
    run: Run

    @classmethod
    def of(
        cls,
        seed: int,
        sample: NetworkRows,
        recipe: TrainingRecipe,
        all_rows: Source | None,
        run: Run,
        are_labels: bool,
    ) -> _Trainer:
        table = table_of(sample, all_rows, recipe, are_labels)
        return cls(seed, sample, table, all_rows is None, recipe, run)

    @property
    def max_epochs(self) -> int:
        """Epochs of the whole schedule."""
        return self.recipe.n_epochs(self.table.n_rows)

    @property
    def steps_an_epoch(self) -> int:
        """Batches that the rows make."""
        return math.ceil(self.table.n_rows / self.recipe.rows_a_batch(self.table.n_rows))

    @property
    def epochs_of_deep(self) -> int:
        """Epochs of `DEEP` layers: `SHORTER`, but so many that they can learn, if the schedule has them."""
        enough = math.ceil(STEPS_OF_DEEP / self.steps_an_epoch)
        return min(self.max_epochs, max(math.ceil(SHORTER * self.max_epochs), enough))

    def attempt(
        self, config: NetworkConfig, name: str, epochs: int, after: Attempt | None = None, anew: bool = True
    ) -> Attempt:
        """Members trained by `config` for so many epochs, anew or from the best of an attempt before."""
        recipe, table = self.recipe, self.table
        size = recipe.rows_a_batch(table.n_rows)
        former = None if after is None else after.result
        if former is None or anew:
            params = started(self.seed, config, recipe, self.sample)
        else:
            params = best_of(former)
        n_steps = _NO_END if config.preset else float(epochs * self.steps_an_epoch)
        patience = math.ceil(recipe.n_iter_no_change * epochs / self.max_epochs)
        patient = replace(recipe, n_iter_no_change=patience)
        least = _least_noise(config, None if anew else after)
        state = first_state(
            params, table.total, n_steps, patient, config, table.counted, least, self.sample.n_counted
        )
        step, key = _adapter(self.seed, config, size, table, self.in_memory)
        result = loop.run(step, state, self.run, Rule(epochs), key=key, name=name, former=former)
        found = _judged(result, calibrated(best_of(result), config, table.held), config.n_classes > 0)
        return Attempt(result, found, epochs)


def _shaped(trainer: _Trainer, plain: NetworkConfig, config: NetworkConfig) -> tuple[Attempt, Attempt]:
    """The best of the fits with layers and skip as `config` leaves them to held-out rows; and the last."""
    if trainer.table.held is not None and may_be_deep(config, trainer.table.n_rows):
        best, last = _layered(trainer, plain)
    else:
        best = last = trainer.attempt(plain, "epochs", trainer.max_epochs)
    if config.skip is None and last.may_be_compared:
        skipped = replace(best.found.ensemble.config, skip=True)
        last = trainer.attempt(skipped, SKIP_EPOCHS, best.epochs, last)
        best = best.or_better(last)
    return best, last


def _layered(trainer: _Trainer, plain: NetworkConfig) -> tuple[Attempt, Attempt]:
    """The better of `PLAIN` and `DEEP` layers; and the last fit.

    Both have the epochs of `DEEP`. The others are for `PLAIN` if it is the better one. If it still learns
    after the first, it has a whole schedule more before: the short steps at their end came too early.
    """
    few, all_ = trainer.epochs_of_deep, trainer.max_epochs

    def further(first: Attempt, epochs: int) -> Attempt:
        """What `PLAIN` comes to with so many more."""
        return trainer.attempt(plain, MORE_EPOCHS, epochs, first, anew=False)

    best = last = one = trainer.attempt(plain, "epochs", few)
    if few < all_ and one.still_learns:
        last = further(one, all_)
        best = one = one.or_better(last)._replace(epochs=all_)
    if last.may_be_compared:
        last = trainer.attempt(replace(plain, layers=DEEP), DEEP_EPOCHS, few, one)
        best = one.or_better(last, one.surely)
    if last.may_be_compared and best is one and one.epochs < all_:
        last = further(one, all_ - few)
        best = one.or_better(last)._replace(epochs=all_)
    return best, last


def _further(
    attempt: Callable[..., Attempt], first: Attempt, plain: NetworkConfig, epochs: int, tries_heads: bool
) -> Attempt:
    """The best of the fit by moments, with heads where `tries_heads`, and by the exact likelihood.

    `attempt(config, name, epochs, after, anew)` trains an ensemble; `plain` is the settings of the first.
    """
    best = last = first
    if tries_heads:
        headed = replace(plain, n_heads=N_HEADS)
        heads = last = attempt(headed, HEADS_EPOCHS, epochs, first)
        if last.may_be_compared and last.found.log_density > first.found.log_density - FAR_BELOW:
            last = attempt(headed, MORE_HEADS_EPOCHS, epochs, last, anew=False)
            heads = heads.or_better(last)
        best = first.or_better(heads, first.surely)
    gained = best.found.log_density - first.found.log_density
    if last.may_be_compared and first.found.skewed > first.surely + gained:
        last = attempt(replace(plain, posterior="exact"), EXACT_EPOCHS, epochs, first, anew=False)
        best = best.or_better(last)
    return best


def _least_noise(config: NetworkConfig, after: Attempt | None) -> np.ndarray | float:
    """Log of the least noise sd (P,): the place of an edge is known no better than the mean is."""
    if after is None or config.posterior != "exact" or config.noise_variance is not None:
        return NO_LEAST
    spread = np.asarray(after.found.spread)
    least: np.ndarray = np.log(np.maximum(LEAST_NOISE * spread, math.exp(SMALLEST_LOG_SD)))
    return least


def _judged(result: FitResult, found: CalibratedEnsemble, are_labels: bool) -> CalibratedEnsemble:
    """With the log density of held-out rows; labels need no calibration, their members' scores say it."""
    scores = np.asarray(result.state.best_score)
    if not are_labels or not (scores > WORST).all():
        return found
    return found._replace(log_density=float(scores.mean()))


def table_of(
    sample: NetworkRows, all_rows: Source | None, recipe: TrainingRecipe, are_labels: bool
) -> TrainingTable:
    """What the fit trains on: rows in memory, or a source of which `sample` holds some."""
    if all_rows is None:
        return whole_table(sample, recipe, are_labels)
    return streamed_table(all_rows, sample, recipe, are_labels)


class Attempt(NamedTuple):
    """A way to fit the members: how it went, what held-out rows say of them, and its schedules' epochs."""

    result: FitResult
    found: CalibratedEnsemble
    epochs: int

    @property
    def may_be_compared(self) -> bool:
        """Did it come to its end, with rows held out?"""
        return self.result.status.converged and self.found.log_density > -math.inf

    @property
    def still_learns(self) -> bool:
        """Are most members best at the end of the schedule, in its last tenth, with rows held out?"""
        return self.may_be_compared and float(np.median(self.result.state.best_epoch)) > 0.9 * self.epochs

    @property
    def surely(self) -> float:
        """Nats a row by which held-out rows must prefer what is less simple."""
        return max(LEAST_GAIN, LEAST_NATS / max(self.found.n_rows, 1))

    def or_better(self, other: Attempt, least: float = 0.0) -> Attempt:
        """The one under which held-out rows are more probable, the other by at least so many nats a row.

        That the other was stopped is said of both.
        """
        better = other if other.found.log_density > self.found.log_density + least else self
        if other.result.status is not Status.STOPPED:
            return better
        return better._replace(result=replace(better.result, status=Status.STOPPED))


def started(seed: int, config: NetworkConfig, recipe: TrainingRecipe, rows: NetworkRows) -> NetworkParams:
    """Starting values of the members for these rows."""
    rng = np.random.default_rng(seed)
    params = start(rng, config, recipe.n_members, rows.n_inputs, rows.Y)
    n_heads = config.n_heads or 1
    return with_heads(rng, params, n_heads, rows.Y[:, 0]) if n_heads > 1 else params


def may_be_deep(config: NetworkConfig, n_rows: int) -> bool:
    """Are the layers left to held-out rows, of a table and of settings in which two layers may gain?"""
    is_free = not config.layers and not config.directions and config.posterior != "mean_field"
    return is_free and n_rows >= ROWS_OF_DEEP


def may_have_heads(config: NetworkConfig, Y: np.ndarray) -> bool:
    """Is there one output, of many different values, without a direction in which it may only go?"""
    if config.directions or config.n_classes or Y.shape[1] != 1:
        return False
    return len(np.unique(Y)) > FEWEST_VALUES * len(Y)


def _adapter(
    seed: int, config: NetworkConfig, size: int, table: TrainingTable, in_memory: bool
) -> tuple[loop.Adapter, Any]:
    """The step of the loop that goes over the rows of a table once, and its key where it is compiled."""
    if in_memory and on_host.may_run(config, table):
        return on_host.HostEpochs(seed, config, size, table), None
    epoch, key = epoch_of(config, size, table.n_rows), key_from_seed(seed)
    if in_memory:
        return compiled(epoch, table.rows), key
    return minibatch(epoch, table.rows, table.n_rows, table.held), key


def go_on(
    seed: int, data: NetworkRows, config: NetworkConfig, recipe: TrainingRecipe, former: FitResult | None
) -> tuple[FitResult, Ensemble]:
    """One more epoch over these rows for all members, with a learning rate that does not decay.

    `former` is the last result, its state a `FormerState`; None starts anew. No row is held out.
    Raises InputError if the network has another shape by now.
    """
    table = table_without_holdout(data, recipe.n_members, config.n_classes > 0)
    params = started(seed, config, recipe, data)
    state = first_state(params, table.total, _NO_END, recipe, config, table.counted, n_counted=data.n_counted)
    if former is not None:
        state = _continued(state, former.state)
    step, key = _adapter(seed, config, recipe.rows_a_batch(table.n_rows), table, True)
    result = loop.run(step, state, NOBODY, Rule(1), name="epoch", key=key, former=former)
    return result, calibrated(best_of(result), config, None).ensemble


def _continued(state: TrainingState, former: FormerState) -> TrainingState:
    """The former state, with the rate, the schedule and the weights of this one. Raises InputError."""
    pairs = zip(jax.tree.leaves(state.params), jax.tree.leaves(former.params), strict=False)
    structure: Any = jax.tree.structure(state.params)
    same_parts = structure == jax.tree.structure(former.params)
    if not same_parts or any(own.shape != its.shape for own, its in pairs):
        raise InputError("The network's parameters have changed since the last call; call fit first.")
    state = replace(state, params=former.params, best=former.params)
    if former.momenta is None:
        return state
    moments = jax.tree.unflatten(jax.tree.structure(state.optimiser), former.momenta.optimiser)
    return replace(state, optimiser=moments, step=former.momenta.step, epoch=former.momenta.epoch)


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


def momenta_of(state: TrainingState) -> Momenta:
    """What `go_on` needs of the last state beside the best parameters, on the host."""
    optimiser = tuple(np.asarray(leaf) for leaf in jax.tree.leaves(state.optimiser))
    return Momenta(optimiser, np.asarray(state.step), np.asarray(state.epoch))


def former_state(params: NetworkParams, kept: Any) -> FormerState:
    """The state that `go_on` takes, from the best parameters and what an estimator kept beside them.

    `kept` may be no `Momenta`: in models of version 0.1.0 it was all leaves of the training state, under
    another name, of which nothing is needed.
    """
    return FormerState(params, kept if isinstance(kept, Momenta) else None)
