"""Where every fit begins: the problem, the state before the first sweep, and a few sweeps from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nongauss.optimise.course import FitResult
from nongauss.rank_factor import pairs, svm_mixture
from nongauss.rank_factor.config import RankConfig, RankRecipe
from nongauss.rank_factor.data import CodedTable, FloatArray, RankRows, n_levels_of, one_against_rest
from nongauss.rank_factor.inference import Inference, VariationalBayes
from nongauss.rank_factor.params import (
    NeighbourScores,
    Normal,
    RankState,
    WeightedLabels,
    first_experts,
    first_factors,
    first_shrinkage,
)
from nongauss.rank_factor.predict import PosteriorDraw
from nongauss.rank_factor.rank_likelihood import level_scores, mean_by_level, neighbour_extremes
from nongauss.rank_factor.updates import sweep

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


def warm(rng: np.random.Generator, one_sweep: Sweep, state: RankState, dtype: Any) -> RankState:
    """A few sweeps of variational Bayes and a draw of the loadings: chains start apart."""
    state = settled(one_sweep, state, dtype)
    jitter = rng.standard_normal(state.A.mean.shape) * np.sqrt(np.einsum("dkk->dk", state.A.covariance))
    return state._replace(A=Normal(state.A.mean + jitter, state.A.covariance))


def settled(one_sweep: Sweep, state: RankState, dtype: Any) -> RankState:
    """The state after a few sweeps of variational Bayes."""
    for _ in range(N_WARM):
        state, _ = one_sweep(state, VariationalBayes(dtype))
    return state
