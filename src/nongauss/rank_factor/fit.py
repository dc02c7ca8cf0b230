"""The order of a fit: start, sweeps or training for prediction, calibration, factors in one order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from nongauss.optimise import loop
from nongauss.optimise.course import Rule
from nongauss.optimise.result import FitResult, Run, Status
from nongauss.rank_factor import pairs, svm_mixture
from nongauss.rank_factor.calibration import N_FOLDS, calibrate, chosen_rows, judged
from nongauss.rank_factor.config import RankConfig, RankRecipe
from nongauss.rank_factor.data import CodedTable, FloatArray, RankRows, n_levels_of, one_against_rest
from nongauss.rank_factor.params import (
    NeighbourScores,
    Normal,
    RankState,
    WeightedLabels,
    first_experts,
    first_factors,
    first_shrinkage,
)
from nongauss.rank_factor.predict import Calibration, FittedFactors, PosteriorDraw, decisions, factors
from nongauss.rank_factor.rank_likelihood import level_scores, mean_by_level, neighbour_extremes
from nongauss.rank_factor.rotate import aligned
from nongauss.rank_factor.updates import sweep
from nongauss.rank_factor.vb_and_gibbs import Gibbs, Inference, VariationalBayes

LARGE = 2_000_000
"""From so many cells on they are held in 32 bits; all systems of equations stay in 64."""
N_WARM = 10
"""Sweeps of variational Bayes before draws, or before training for prediction."""

Sweep = Callable[[RankState, Inference], tuple[RankState, dict[str, float]]]


class Problem(NamedTuple):
    """What stays fixed while a model is fitted."""

    rows: RankRows
    labels: WeightedLabels
    config: RankConfig
    recipe: RankRecipe


class Outcome(NamedTuple):
    """What came of the sweeps: draws (S,), the chain of each, numbers of every kept sweep, (chains, T, n)."""

    result: FitResult
    draws: list[PosteriorDraw]
    chain: np.ndarray = np.zeros(1, np.intp)
    watched: FloatArray = np.zeros((0, 0, 0))


def fit(
    table: CodedTable, config: RankConfig, recipe: RankRecipe, run: Run
) -> tuple[FitResult, FittedFactors]:
    """Fit to coded rows in canonical order."""
    labels = WeightedLabels(one_against_rest(table.classes, config.n_outputs), table.weight)
    problem = Problem(table.rows, labels, config, recipe)
    fitted_by = {"vb": _vb, "gibbs": _gibbs, "predictive": _predictive}[recipe.inference]
    found = fitted_by(problem, run)
    curve = _calibrated(found, problem) if config.n_outputs else None
    cells = np.dtype(cell_type(table.rows)).name
    draws = aligned(tuple(found.draws))
    return found.result, FittedFactors(table.coding, config, draws, found.chain, found.watched, curve, cells)


def cell_type(rows: RankRows) -> Any:
    """The precision in which cells are held: 32 bits for many of them."""
    return np.float32 if rows.shape[0] * rows.shape[1] >= LARGE else np.float64


def _calibrated(found: Outcome, problem: Problem) -> Calibration:
    """The classifier's curves, by rows held out; training for prediction is run once more without them."""
    rows, labels, config, recipe = problem
    chosen = chosen_rows(len(labels.weight), recipe.seed)
    if recipe.inference == "predictive":
        chosen = chosen[: max(1, len(labels.weight) // N_FOLDS)]
        f = _held_out(problem, chosen)
    else:
        f = judged(found.result.state, found.draws, rows, labels, config, cell_type(rows), chosen)
    return calibrate(f, labels.y[chosen], labels.weight[chosen])


def _held_out(problem: Problem, chosen: np.ndarray) -> FloatArray:
    """Decision values (V, C) of the chosen rows by training for prediction on the others."""
    rows, labels, config, _ = problem
    kept = np.delete(np.arange(len(labels.weight)), chosen)
    part = kept if len(kept) else chosen
    others = WeightedLabels(labels.y[part], labels.weight[part])
    draw = _predictive(problem._replace(rows=rows.take(part), labels=others), Run()).draws[0]
    return decisions(draw, factors(draw, rows.take(chosen), config, cell_type(rows)))


def first_state(
    rng: np.random.Generator, rows: RankRows, labels: WeightedLabels, config: RankConfig
) -> RankState:
    """The state before the first sweep."""
    z, A = first_factors(rng, rows, labels.weight, config.n_factors)
    experts = first_experts(config)
    if config.n_experts > 1:
        gate = svm_mixture.first_gate(rng, z, labels.weight, config.n_experts)
        experts = experts._replace(gate=gate)
    scale = _first_scale(A, z, rows, labels, config)
    return RankState(A, first_shrinkage(A.mean.shape), z, scale, experts)


def _first_scale(
    A: Normal, z: Normal, rows: RankRows, labels: WeightedLabels, config: RankConfig
) -> NeighbourScores:
    """With what cells are compared in the first sweep: neighbours' scores, or noise of variance 1 / 2."""
    if rows.codes is None:
        none = np.zeros((len(A.mean), 0))
        return NeighbourScores(none, none, np.full(len(A.mean), 0.5))
    n_levels = n_levels_of(rows.codes)
    if config.neighbours == "extremes":
        return neighbour_extremes(A, z, rows.codes, n_levels)
    return level_scores(A, mean_by_level(rows.codes, z.mean, labels.weight, n_levels))


def sweep_of(problem: Problem) -> Sweep:
    """The sweep of the chosen rule."""
    rows, labels, config, _ = problem
    if config.is_pairwise:
        assert rows.codes is not None
        found = pairs.find_pairs(rows.codes)
        return lambda state, inference: pairs.sweep(state, found, labels, config, inference)
    return lambda state, inference: sweep(state, rows, labels, config, inference)


def _compared(state: RankState, problem: Problem) -> RankState:
    """The state with what new rows are compared with: of pairs, mean factors of groups of equal values."""
    rows, labels, config, _ = problem
    if not config.is_pairwise:
        return state
    assert rows.codes is not None
    means = mean_by_level(rows.codes, state.z.mean, labels.weight, n_levels_of(rows.codes))
    return state._replace(scale=level_scores(state.A, means))


def summary(state: RankState) -> PosteriorDraw:
    """The variational posterior, as a prediction needs it."""
    A, scale, beta = state.A, state.scale, state.experts.beta
    levels = scale.lower, scale.upper, scale.noise, scale.means
    return PosteriorDraw(A.mean, A.covariance, *levels, beta.mean, beta.covariance, state.experts.gate)


def drawn(state: RankState) -> PosteriorDraw:
    """A draw of the posterior, its loadings in 32 bits: there are many of them."""
    scale = state.scale
    A, lower, upper = (part.astype(np.float32) for part in (state.A.mean, scale.lower, scale.upper))
    beta, gate = state.experts.beta.mean, state.experts.gate
    return PosteriorDraw(A, None, lower, upper, scale.noise, None, beta, None, gate)


def _vb(problem: Problem, run: Run) -> Outcome:
    """Variational Bayes to convergence."""
    rows, labels, config, recipe = problem
    one_sweep, inference = sweep_of(problem), VariationalBayes(cell_type(rows))
    result = loop.run(
        lambda number, state: one_sweep(state, inference),
        first_state(np.random.default_rng(recipe.seed), rows, labels, config),
        run,
        Rule(recipe.max_iter, lambda bound: recipe.tol * max(1.0, abs(bound))),
        name="variational Bayes",
    )
    result = replace(result, state=_compared(result.state, problem))
    return Outcome(result, [summary(result.state)])


def _gibbs(problem: Problem, run: Run) -> Outcome:
    """Several chains, each from a start of its own; the second half of each is kept, thinned.

    They run on whatever backend joblib was told, all at once, with the same result; by default, and where
    somebody watches, one after the other.
    """
    chains = Parallel(n_jobs=1 if run.callbacks else None, return_as="generator")(
        delayed(_chain)(number, problem, run) for number in range(problem.recipe.n_chains)
    )
    draws: list[PosteriorDraw] = []
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
    numbers_kept = np.array([each[:shortest] for each in watched])
    return Outcome(replace(result, trace=trace), draws, np.array(chain), numbers_kept)


def _chain(
    number: int, problem: Problem, run: Run
) -> tuple[FitResult, list[PosteriorDraw], list[FloatArray]]:
    """One chain, its iterations counted after those of the chains before it: draws, numbers to watch."""
    rows, labels, config, recipe = problem
    one_sweep = sweep_of(problem)
    rng = np.random.default_rng([recipe.seed, number])
    state = _warm(rng, one_sweep, first_state(rng, rows, labels, config), cell_type(rows))
    gibbs = Gibbs(rng, cell_type(rows))
    keep = _Keep(problem)
    result = loop.run(
        lambda number, state: keep(*one_sweep(state, gibbs)),
        state,
        run,
        Rule(recipe.max_iter),
        name=f"chain {number}",
        former=FitResult(None, [], Status.COMPLETED, number * recipe.max_iter),
        expected=recipe.n_chains * recipe.max_iter,
    )
    result = replace(result, state=_compared(result.state, problem))
    return result, keep.draws or [drawn(result.state)], keep.watched


def _warm(rng: np.random.Generator, one_sweep: Sweep, state: RankState, dtype: Any) -> RankState:
    """A few sweeps of variational Bayes and a draw of the loadings: chains start apart."""
    for _ in range(N_WARM):
        state, _ = one_sweep(state, VariationalBayes(dtype))
    jitter = rng.standard_normal(state.A.mean.shape) * np.sqrt(np.einsum("dkk->dk", state.A.covariance))
    return state._replace(A=Normal(state.A.mean + jitter, state.A.covariance))


class _Keep:
    """Collects draws after the first half of a chain, and a few numbers of every sweep from there on."""

    def __init__(self, problem: Problem) -> None:
        recipe = problem.recipe
        self.problem = problem
        self.n_sweeps, self.n_burn = recipe.max_iter, recipe.max_iter // 2
        self.n_kept = min(recipe.max_iter - self.n_burn, -(-recipe.n_draws // recipe.n_chains))
        self.done = 0
        self.draws: list[PosteriorDraw] = []
        self.watched: list[FloatArray] = []

    def __call__(self, state: RankState, info: dict[str, float]) -> tuple[RankState, dict[str, float]]:
        """Looks at a state in passing."""
        self.done += 1
        if self.done > self.n_burn:
            square = (state.A.mean**2).sum()
            decided = (state.z.mean[:8] @ state.experts.beta.mean[0, :1, :-1].T).ravel()
            self.watched.append(np.array([info["bound"], square, *decided]))
            past, total = self.done - self.n_burn, self.n_sweeps - self.n_burn
            if past * self.n_kept // total > (past - 1) * self.n_kept // total:
                self.draws.append(drawn(_compared(state, self.problem)))
        return state, info


def _predictive(problem: Problem, run: Run) -> Outcome:
    """A few sweeps of variational Bayes, then training for prediction, which is JAX."""
    from nongauss.rank_factor import unrolled_factors

    rows, labels, config, recipe = problem
    rng = np.random.default_rng(recipe.seed)
    first = first_state(rng, rows, labels, config)
    state = _warm(rng, sweep_of(problem), first, cell_type(rows))
    result, draw = unrolled_factors.train(state, rows, labels, config, recipe, run)
    return Outcome(replace(result, state=state), [draw])
