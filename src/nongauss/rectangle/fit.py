"""The recipe of a fit: many starts at a gentle slope, few at a steeper one, the best to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.loop import repeat
from nongauss.optimise.result import Callback, FitResult
from nongauss.rectangle import starts
from nongauss.rectangle.objective import cells, log_inside, posterior
from nongauss.rectangle.objective import objective as objective_of
from nongauss.rectangle.params import (
    STEEPNESS,
    Boxes,
    FloatArray,
    IntArray,
    Rows,
    Stated,
    Structure,
    box_prior,
)
from nongauss.rectangle.structure import log_density
from nongauss.rectangle.updates import Problem, State, iterate

CANDIDATES = 4
"""Starts that are looked at for each one that is begun with."""


class Stage(NamedTuple):
    """A part of the course: slope, most iterations, most rows, and the share of `n_init` kept at its end."""

    slope: float
    n_iter: int
    most_rows: int
    kept: float


STAGES = (
    Stage(STEEPNESS[0], 3, 500, 1.0),
    Stage(STEEPNESS[0], 8, 1000, 0.4),
    Stage(STEEPNESS[1], 8, 2000, 0.2),
)
"""What the starts go through before the best of them is brought to its end."""

_BLOCK = 2**15  # rows judged at once


class Recipe(NamedTuple):
    """How a model is fitted; see the parameters of `RectangleMixture`."""

    n_clusters: int
    structure: str
    n_init: int
    max_iter: int
    tol: float
    seed: int


class Fitted(NamedTuple):
    """Soft boxes and structure of the best start (S = 1), its clusters' probabilities (K, N), and which of
    the clusters that were asked for these are (K,)."""

    boxes: Boxes
    structure: Structure
    share: FloatArray
    kept: IntArray

    def take(self, chosen: IntArray) -> Fitted:
        """Some of the clusters, or all in another order; their probabilities as they are."""
        boxes = Boxes(*(part[:, chosen] for part in self.boxes))
        structure = Structure(*(part[:, chosen] for part in self.structure))
        return Fitted(boxes, structure, self.share[chosen], self.kept[chosen])


def fit(
    rows: Rows,
    recipe: Recipe,
    stated: Sequence[Stated] = (),
    margins: FloatArray | None = None,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> tuple[FitResult, Fitted]:
    """Maximise the objective. `margins` (N, J) are those of rules stated for the first J clusters.

    The trace is that of the last stage. Clusters that no row belongs to are left out.
    """
    prior = box_prior(recipe.n_clusters, rows.X.shape[1], rows.X_levels.shape[1], stated)
    order = np.random.default_rng(recipe.seed).permutation(len(rows))
    state = None
    for stage in STAGES:
        chosen = np.sort(order[: stage.most_rows])
        part = rows.take(chosen)
        problem = Problem(part, cells(part, stage.slope), prior, recipe.structure)
        if state is None:
            state = _begin(problem, recipe, None if margins is None else margins[chosen])
        state = _settle(problem, state, stage.n_iter, recipe.tol)
        state = _best(problem, state, max(1, round(stage.kept * recipe.n_init)))
    problem = Problem(rows, cells(rows, STEEPNESS[-1]), prior, recipe.structure)
    assert state is not None
    state = _best(problem, _settle(problem, state, 8, recipe.tol), 1)

    def step(states: tuple[State, State]) -> tuple[tuple[State, State], dict[str, float]]:
        """The state whose bound is known, and the one after it."""
        following, value = iterate(problem, states[1])
        return (states[1], following), {"bound": float(value[0])}

    tol = recipe.tol * float(rows.weight.sum())
    result = repeat(
        step, (state, state), max_iter=recipe.max_iter, least_gain=lambda _: tol, rises=True,
        callbacks=callbacks, checkpoint=checkpoint, verbose=verbose,
    )  # fmt: skip
    result = replace(result, state=result.state[0])
    return result, _alive(rows, result.state, recipe.structure)


def _begin(problem: Problem, recipe: Recipe, margins: FloatArray | None) -> State:
    rows, K, count = problem.rows, recipe.n_clusters, CANDIDATES * recipe.n_init
    if margins is None:
        share = starts.shares(rows, K, count, recipe.seed)
    else:
        share = starts.shares_from_rules(rows, margins, K, count, recipe.seed)
    structure = starts.structure_of(rows, share, recipe.structure)
    return State(starts.boxes_around(rows, share, problem.prior), structure)


def _settle(problem: Problem, state: State, n_iter: int, tol: float) -> State:
    """A few iterations of all starts, until none gains."""
    former = None
    for _ in range(n_iter):
        state, value = iterate(problem, state)
        if former is not None and (value - former).max() < tol * problem.rows.weight.sum():
            break
        former = value
    return state


def _best(problem: Problem, state: State, count: int) -> State:
    """The starts with the best objective."""
    value = objective_of(problem.rows, problem.at, state.boxes, state.structure, problem.prior, problem.kind)
    chosen = np.argsort(-value, kind="stable")[:count]
    return State(
        Boxes(*(part[chosen] for part in state.boxes)), Structure(*(part[chosen] for part in state.structure))
    )


def _alive(rows: Rows, state: State, kind: str) -> Fitted:
    """The clusters that some row belongs to."""
    share = share_of(rows, state, kind)
    everything = Fitted(state.boxes, state.structure, share, np.arange(len(share)))
    return without_others(rows, everything, np.unique(share.argmax(axis=0)), kind)


def without_others(rows: Rows, fitted: Fitted, chosen: IntArray, kind: str) -> Fitted:
    """Some of the clusters; the rows of the others go to these."""
    if len(chosen) == len(fitted.kept):
        return fitted
    left = fitted.take(chosen)
    return left._replace(share=share_of(rows, State(left.boxes, left.structure), kind))


def share_of(rows: Rows, state: State, kind: str) -> FloatArray:
    """Posterior probability of each cluster for each row (K, N), block by block."""
    out = np.empty((state.boxes.lower.shape[1], len(rows)))
    for block in blocks(len(rows)):
        part = rows.take(block)
        log_G = log_inside(cells(part, STEEPNESS[-1]), state.boxes)
        out[:, block] = posterior(log_G, log_density(part, state.structure, kind)[0])[0]
    return out


def by_soft_rule(rows: Rows, boxes: Boxes) -> IntArray:
    """The cluster of each row by the soft boxes alone, (N,)."""
    parts = [
        log_inside(cells(rows.take(block), STEEPNESS[-1]), boxes)[0].argmax(axis=0)
        for block in blocks(len(rows))
    ]
    return np.concatenate(parts)


def blocks(n_rows: int) -> list[IntArray]:
    """Row numbers in blocks."""
    return [np.arange(start, min(start + _BLOCK, n_rows)) for start in range(0, n_rows, _BLOCK)]
