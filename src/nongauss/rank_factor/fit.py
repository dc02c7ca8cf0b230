"""The recipe of a fit: start, sweeps or training for prediction, calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from nongauss.optimise.loop import repeat
from nongauss.optimise.result import Callback, FitResult, Status
from nongauss.rank_factor import calibration, pairs
from nongauss.rank_factor.params import Config, FloatArray, Normal
from nongauss.rank_factor.predict import Draw, decisions, factors
from nongauss.rank_factor.rank_likelihood import Rows
from nongauss.rank_factor.start import start
from nongauss.rank_factor.updates import Labels, State, sweep
from nongauss.rank_factor.vb_and_gibbs import Draw as Gibbs
from nongauss.rank_factor.vb_and_gibbs import Expect, Way

LARGE = 2_000_000
"""From so many cells on they are held in 32 bits; all systems of equations stay in 64."""
N_WARM = 10
"""Sweeps of variational Bayes before draws, or before training for prediction."""


class Recipe(NamedTuple):
    """How long: at most `max_iter` sweeps (of a chain, or epochs), relative `tol`; chains, kept draws."""

    inference: str
    max_iter: int
    tol: float
    seed: int
    n_chains: int
    n_draws: int
    learning_rate: float


class Fitted(NamedTuple):
    """What came of it. chain (S,): of each draw; watched: numbers of every kept sweep, (chains, T, n)."""

    draws: tuple[Draw, ...]
    chain: np.ndarray
    watched: FloatArray
    calibration: calibration.Calibration | None


def cell_type(rows: Rows) -> Any:
    """32 bits for many cells."""
    return np.float32 if rows.shape[0] * rows.shape[1] >= LARGE else np.float64


def fit(
    rows: Rows, labels: Labels, config: Config, recipe: Recipe, callbacks: Sequence[Callback], verbose: int
) -> tuple[FitResult, Fitted]:
    """Fit to coded rows; the caller has put them in canonical order."""
    run = {"vb": _vb, "gibbs": _gibbs, "predictive": _predictive}[recipe.inference]
    result, draws, chain, watched = run(rows, labels, config, recipe, tuple(callbacks), verbose)
    calibrated = None
    if config.n_outputs:
        calibrated = _calibrated(result.state, draws, rows, labels, config, recipe)
    return result, Fitted(tuple(draws), chain, watched, calibrated)


def _calibrated(
    state: State, draws: list[Draw], rows: Rows, labels: Labels, config: Config, recipe: Recipe
) -> calibration.Calibration:
    """By rows held out; training for prediction is run once more without them."""
    dtype = cell_type(rows)
    chosen = calibration.chosen_rows(len(labels.weight), recipe.seed)
    if recipe.inference == "predictive":
        chosen = chosen[: max(1, len(labels.weight) // calibration.N_FOLDS)]
        kept = np.delete(np.arange(len(labels.weight)), chosen)
        part = kept if len(kept) else chosen
        others = Labels(labels.y[part], labels.weight[part])
        _, draws, _, _ = _predictive(calibration.taken(rows, part), others, config, recipe, (), 0)
        new = calibration.taken(rows, chosen)
        f = decisions(draws[0], factors(draws[0], new, config, dtype))
    else:
        f = calibration.judged(state, draws, rows, labels, config, dtype, chosen)
    return calibration.calibrate(f, labels.y[chosen], labels.weight[chosen])


Outcome = tuple[FitResult, list[Draw], np.ndarray, FloatArray]


def _vb(
    rows: Rows, labels: Labels, config: Config, recipe: Recipe, callbacks: Sequence[Callback], verbose: int
) -> Outcome:
    one_sweep = sweeper(rows, labels, config)
    way = Expect(cell_type(rows))
    result = repeat(
        lambda state: one_sweep(state, way),
        start(np.random.default_rng(recipe.seed), rows, labels, config),
        max_iter=recipe.max_iter, least_gain=lambda bound: recipe.tol * max(1.0, abs(bound)),
        callbacks=callbacks, verbose=verbose,
    )  # fmt: skip
    result = replace(result, state=compared(result.state, rows, config))
    return result, [summary(result.state)], np.zeros(1, np.intp), np.zeros((0, 0, 0))


def sweeper(
    rows: Rows, labels: Labels, config: Config
) -> Callable[[State, Way], tuple[State, dict[str, float]]]:
    """The sweep of the chosen rule."""
    if config.observation == "rank" and config.neighbours == "pairwise":
        assert rows.codes is not None
        found = pairs.find_pairs(rows.codes)
        return lambda state, way: pairs.sweep(state, found, labels, config, way)
    return lambda state, way: sweep(state, rows, labels, config, way)


def compared(state: State, rows: Rows, config: Config) -> State:
    """The state with what new rows are compared with."""
    if config.observation == "rank" and config.neighbours == "pairwise":
        assert rows.codes is not None
        return pairs.with_levels(state, rows.codes)
    return state


def summary(state: State) -> Draw:
    """The variational posterior, as a prediction needs it."""
    scale = state.scale
    beta = state.experts.beta
    return Draw(
        state.A.mean, state.A.covariance, scale.lower, scale.upper, scale.noise, scale.means,
        beta.mean, beta.covariance, state.experts.gate,
    )  # fmt: skip


def drawn(state: State) -> Draw:
    """A draw of the posterior, its loadings in 32 bits: there are many of them."""
    scale = state.scale
    return Draw(
        state.A.mean.astype(np.float32), None, scale.lower.astype(np.float32), scale.upper.astype(np.float32),
        scale.noise, None, state.experts.beta.mean, None, state.experts.gate,
    )  # fmt: skip


def _gibbs(
    rows: Rows, labels: Labels, config: Config, recipe: Recipe, callbacks: Sequence[Callback], verbose: int
) -> Outcome:
    """Several chains, each from a start of its own; the second half of each is kept, thinned.

    They run on whatever backend joblib was told, all at once, with the same result; by default, and where
    somebody watches, one after the other.
    """
    chains = Parallel(n_jobs=1 if callbacks else None, return_as="generator")(
        delayed(_chain)(number, rows, labels, config, recipe, callbacks, verbose)
        for number in range(recipe.n_chains)
    )
    draws: list[Draw] = []
    chain: list[int] = []
    trace: list[dict[str, float]] = []
    watched = []
    result: FitResult | None = None
    for number, (result, kept, numbers) in enumerate(chains):
        draws += kept
        chain += [number] * len(kept)
        watched.append(numbers)
        before = trace[-1]["seconds"] if trace else 0.0
        trace += [row | {"seconds": before + row["seconds"]} for row in result.trace]
        if result.status is not Status.COMPLETED:
            break
    assert result is not None
    shortest = min(len(each) for each in watched)
    result = replace(result, trace=trace)
    return result, draws, np.array(chain), np.array([each[:shortest] for each in watched])


def _chain(
    number: int,
    rows: Rows,
    labels: Labels,
    config: Config,
    recipe: Recipe,
    callbacks: Sequence[Callback],
    verbose: int,
) -> tuple[FitResult, list[Draw], list[FloatArray]]:
    """One chain, its iterations counted after those of the chains before it: draws, numbers to watch."""
    dtype = cell_type(rows)
    one_sweep = sweeper(rows, labels, config)
    rng = np.random.default_rng([recipe.seed, number])
    state = _warm(rng, one_sweep, start(rng, rows, labels, config), dtype)
    keep = _Keep(recipe, lambda state: compared(state, rows, config))
    result = repeat(
        partial(_kept_sweep, one_sweep, Gibbs(rng, dtype), keep),
        state, max_iter=recipe.max_iter, callbacks=callbacks, verbose=verbose,
        former=FitResult(None, [], Status.COMPLETED, number * recipe.max_iter),
        expected=recipe.n_chains * recipe.max_iter,
    )  # fmt: skip
    result = replace(result, state=compared(result.state, rows, config))
    return result, keep.draws or [drawn(result.state)], keep.watched


def _warm(
    rng: np.random.Generator, one_sweep: Callable[[State, Way], Any], state: State, dtype: Any
) -> State:
    """A few sweeps of variational Bayes and a draw of the loadings: chains start apart."""
    for _ in range(N_WARM):
        state, _ = one_sweep(state, Expect(dtype))
    jitter = rng.standard_normal(state.A.mean.shape) * np.sqrt(np.einsum("dkk->dk", state.A.covariance))
    return state._replace(A=Normal(state.A.mean + jitter, state.A.covariance))


def _kept_sweep(
    one_sweep: Callable[[State, Way], tuple[State, dict[str, float]]], way: Way, keep: _Keep, state: State
) -> tuple[State, dict[str, float]]:
    return keep(*one_sweep(state, way))


class _Keep:
    """Collects draws after the first half of a chain, and a few numbers of every sweep from there on."""

    def __init__(self, recipe: Recipe, compare: Callable[[State], State]) -> None:
        self.compare = compare
        self.n_sweeps, self.n_burn = recipe.max_iter, recipe.max_iter // 2
        self.n_kept = min(recipe.max_iter - self.n_burn, -(-recipe.n_draws // recipe.n_chains))
        self.done = 0
        self.draws: list[Draw] = []
        self.watched: list[FloatArray] = []

    def __call__(self, state: State, info: dict[str, float]) -> tuple[State, dict[str, float]]:
        """Looks at a state in passing."""
        self.done += 1
        if self.done > self.n_burn:
            square = (state.A.mean**2).sum()
            decided = (state.z.mean[:8] @ state.experts.beta.mean[0, :1, :-1].T).ravel()
            self.watched.append(np.array([info["bound"], square, *decided]))
            past, total = self.done - self.n_burn, self.n_sweeps - self.n_burn
            if past * self.n_kept // total > (past - 1) * self.n_kept // total:
                self.draws.append(drawn(self.compare(state)))
        return state, info


def _predictive(
    rows: Rows, labels: Labels, config: Config, recipe: Recipe, callbacks: Sequence[Callback], verbose: int
) -> Outcome:
    from nongauss.rank_factor import training

    rng = np.random.default_rng(recipe.seed)
    first = start(rng, rows, labels, config)
    state = _warm(rng, sweeper(rows, labels, config), first, cell_type(rows))
    result, draw = training.train(
        state, rows, labels, config, recipe.seed, recipe.max_iter, recipe.learning_rate, callbacks, verbose
    )
    return (
        FitResult(state, result.trace, result.status, result.n_iter),
        [draw],
        np.zeros(1, np.intp),
        np.zeros((0, 0, 0)),
    )
