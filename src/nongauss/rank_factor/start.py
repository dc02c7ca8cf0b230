"""Where every fit begins: the problem, the state before the first sweep, and a few sweeps from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nongauss.optimise.course import FitResult
from nongauss.rank_factor import pairs, svm_mixture
from nongauss.rank_factor.config import MARGIN, MOST_COUNTED, RankConfig, RankRecipe
from nongauss.rank_factor.data import (
    CodedTable,
    FloatArray,
    Neighbours,
    RankRows,
    n_levels_of,
    one_against_rest,
)
from nongauss.rank_factor.inference import Gibbs, Inference, VariationalBayes
from nongauss.rank_factor.params import (
    NeighbourScores,
    Normal,
    RankState,
    WeightedLabels,
    first_experts,
    first_factors,
    first_shrinkage,
    point,
    standardised_ranks,
)
from nongauss.rank_factor.predict import PosteriorDraw
from nongauss.rank_factor.rank_likelihood import cell_sums, level_scores, mean_by_level, neighbour_extremes
from nongauss.rank_factor.updates import level_loadings, sweep

LARGE = 2_000_000
"""From so many cells on they are held in 32 bits; all systems of equations stay in 64."""
N_WARM = 10
"""Sweeps of variational Bayes before draws, or before training for prediction."""
N_NARROW, N_WIDENING = 150, 10
"""Sweeps of a chain over some columns of a wide table, then draws of the loadings of all."""

Sweep = Callable[[RankState, Inference], tuple[RankState, dict[str, float]]]


class Problem(NamedTuple):
    """What stays fixed while a model is fitted."""

    rows: RankRows
    labels: WeightedLabels
    config: RankConfig
    recipe: RankRecipe


class FactorOutcome(NamedTuple):
    """What came of the sweeps: draws (S,), the chain of each, numbers of every kept sweep, (chains, T, n)."""

    result: FitResult
    draws: list[PosteriorDraw]
    chain: np.ndarray = np.zeros(1, np.intp)
    watched: FloatArray = np.zeros((0, 0, 0))


def problem_of(table: CodedTable, config: RankConfig, recipe: RankRecipe) -> Problem:
    """Coded rows and their labels, one against the rest, with what a user chose."""
    labels = WeightedLabels(one_against_rest(table.classes, config.n_outputs), table.weight)
    return Problem(table.rows, labels, config, recipe)


def cell_type(rows: RankRows) -> Any:
    """The precision in which cells are held: 32 bits for many of them."""
    return np.float32 if rows.shape[0] * rows.shape[1] >= LARGE else np.float64


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


def chain_start(rng: np.random.Generator, problem: Problem) -> RankState:
    """Where a chain begins. Of a wide table: where one over MOST_COUNTED of its columns has come.

    Over few columns factors soon come to the rows that they describe; over all it takes hundreds of sweeps.
    """
    rows, labels, config, _ = problem
    n_columns = rows.shape[1]
    if not config.is_level or n_columns <= MOST_COUNTED:
        return warm(rng, problem)
    assert rows.cells is not None
    assert rows.codes is not None
    some = np.linspace(0, n_columns - 1, MOST_COUNTED).astype(np.intp)
    cells = Neighbours(*(side[:, some] for side in rows.cells))
    few = problem._replace(
        rows=RankRows(cells, None, rows.codes[:, some]), config=config._replace(eps=MARGIN)
    )
    state, one_sweep, inference = warm(rng, few), sweep_of(few), Gibbs(rng, cell_type(rows))
    for _ in range(N_NARROW):
        state, _ = one_sweep(state, inference)
    return widened(rng, state, rows, labels, config)


def widened(
    rng: np.random.Generator, state: RankState, rows: RankRows, labels: WeightedLabels, config: RankConfig
) -> RankState:
    """A state of some columns as one of all: the same factors, loadings drawn given them, from regression."""
    z, inference = state.z.mean, Gibbs(rng, cell_type(rows))
    assert rows.codes is not None
    n_levels = n_levels_of(rows.codes)
    ranks = standardised_ranks(rows, labels.weight)
    A = point(np.linalg.solve(z.T @ z + np.eye(config.n_factors), z.T @ ranks).T)
    scale = level_scores(A, mean_by_level(rows.codes, z, labels.weight, n_levels))
    first = first_shrinkage(A.mean.shape)
    shrink = first._replace(scale=state.shrink.scale, hyper=state.shrink.hyper)
    for _ in range(N_WIDENING):
        at = inference.quadratics(state.z, inference.loading_moments(A, scale), rows, config)
        sums = cell_sums(at, state.z, rows, labels.weight, n_levels)
        A, scale = level_loadings(sums, shrink.precision, config, inference)
        shrink = inference.shrink(shrink, A, config.prior)
    return RankState(A, shrink, state.z, scale, state.experts)


def warm(rng: np.random.Generator, problem: Problem) -> RankState:
    """A few sweeps of variational Bayes and a draw of the loadings: chains start apart."""
    rows, labels, config, _ = problem
    state = settled(sweep_of(problem), first_state(rng, rows, labels, config), cell_type(rows))
    jitter = rng.standard_normal(state.A.mean.shape) * np.sqrt(np.einsum("dkk->dk", state.A.covariance))
    return state._replace(A=Normal(state.A.mean + jitter, state.A.covariance))


def settled(one_sweep: Sweep, state: RankState, dtype: Any) -> RankState:
    """The state after a few sweeps of variational Bayes."""
    for _ in range(N_WARM):
        state, _ = one_sweep(state, VariationalBayes(dtype))
    return state
