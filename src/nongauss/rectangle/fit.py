"""The course of a fit: EM from many starts while the bounds harden, the box step, and the printed rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nongauss.optimise import loop
from nongauss.optimise.course import FitResult, Rule, Run
from nongauss.rectangle.box_search import RankedColumns, hard_boxes, rank_columns
from nongauss.rectangle.config import CANDIDATES, COMPARED, STAGES, STEEPNESS, RectangleRecipe
from nongauss.rectangle.data import ColumnViews, FloatArray, IntArray, RawCells, RectangleRows
from nongauss.rectangle.objective import EMProblem, objective, slope_powers
from nongauss.rectangle.params import RectangleParams, StatedBound, box_prior
from nongauss.rectangle.predict import FittedRectangles, by_soft_box, soft_posterior
from nongauss.rectangle.rules import Rules, StatedRules, best_slopes, printed
from nongauss.rectangle.updates import (
    boxes_around,
    iterate,
    shares_from_rules,
    starting_shares,
    structure_around,
)

LastTwo = tuple[RectangleParams, RectangleParams]


class ClusterTask(NamedTuple):
    """What is fitted: distinct rows, scaled and in original units, and what was stated beforehand."""

    rows: RectangleRows
    cells: RawCells
    views: ColumnViews
    stated: StatedRules

    @property
    def views_overlap(self) -> bool:
        """Is some column both a rule and a structure column?"""
        return bool(set(self.views.rule.places) & set(self.views.structure.places))


class SoftClusters(NamedTuple):
    """The best start (S = 1), probabilities of its clusters (K, N), and their numbers in the prior (K,)."""

    params: RectangleParams
    share: FloatArray
    kept: IntArray

    def take(self, chosen: IntArray) -> SoftClusters:
        """Some of the clusters, or all in another order; their probabilities as they are."""
        return SoftClusters(self.params.clusters(chosen), self.share[chosen], self.kept[chosen])


def fit(task: ClusterTask, recipe: RectangleRecipe, run: Run) -> tuple[FitResult, FittedRectangles]:
    """Fit boxes and structure by EM, then find the hard boxes and print them.

    The hard boxes are sought for the clusters by `soft_posterior`; where rules may speak of no structure
    column, for those by the soft boxes, since no rule could tell the others. A cluster whose rule is the
    best of no row is left out, and the boxes are sought again. Named clusters come first, then the largest.
    The state of the result is that of the clusters left, in the order of the rules.
    """
    rows, margins = task.rows, task.stated.margins(task.cells)
    result, soft = fit_soft(rows, recipe, run, task.stated.bounds, margins)
    size = soft.share @ rows.weight
    soft = soft.take(np.lexsort((-size, np.minimum(soft.kept, len(task.stated.names)))))
    ranked = rank_columns(task.views.rule, task.cells, rows.X, rows.weight)
    while True:
        own = soft.share.argmax(axis=0) if task.views_overlap else by_soft_box(rows, soft.params.boxes)
        rules = _rules(task, ranked, soft, own, recipe)
        margins = rules.margins(task.cells)
        rules = rules._replace(slopes=best_slopes(margins, soft.share.T, rows.weight))
        left = np.unique(rules.claims(margins).argmax(axis=1))
        if len(left) == len(soft.kept):
            fitted = FittedRectangles(task.views, rules, soft.params.structure, recipe.structure)
            return replace(result, state=soft.params), fitted
        soft = keep_clusters(rows, soft, left, recipe.structure)


def _rules(
    task: ClusterTask, ranked: RankedColumns, soft: SoftClusters, own: IntArray, recipe: RectangleRecipe
) -> Rules:
    """The printed rules of clusters whose rows are `own` (N,), under the names that were stated for them."""
    stated, names = task.stated.of(soft.kept)
    boxes = hard_boxes(ranked, soft.params.boxes, own, recipe.rule_tolerance, stated)
    return printed(ranked, task.views.rule, boxes, names, recipe.rule_precision)


def fit_soft(
    rows: RectangleRows,
    recipe: RectangleRecipe,
    run: Run,
    stated: Sequence[StatedBound],
    margins: FloatArray | None,
) -> tuple[FitResult, SoftClusters]:
    """Maximise the objective. `margins` (N, J) are those of rules stated for the first J clusters.

    The trace is that of the last stage. Clusters that no row belongs to are left out.
    """
    problem, params = _best_start(rows, recipe, stated, margins)

    def step(number: int, last_two: LastTwo) -> tuple[LastTwo, dict[str, float]]:
        """The parameters whose objective is known, and those after them."""
        following, value = iterate(problem, last_two[1])
        return (last_two[1], following), {"bound": float(value[0])}

    tol = recipe.tol * float(rows.weight.sum())
    rule = Rule(recipe.max_iter, lambda _: tol, rises=True)
    result = loop.run(step, (params, params), run, rule, name="best start")
    result = replace(result, state=result.state[0])
    share = soft_posterior(rows, result.state, recipe.structure)
    everything = SoftClusters(result.state, share, np.arange(len(share)))
    return result, keep_clusters(rows, everything, np.unique(share.argmax(axis=0)), recipe.structure)


def _best_start(
    rows: RectangleRows,
    recipe: RectangleRecipe,
    stated: Sequence[StatedBound],
    margins: FloatArray | None,
) -> tuple[EMProblem, RectangleParams]:
    """The last stage's problem, of all rows at the steepest slope, and the best of the starts there."""
    prior = box_prior(recipe.n_clusters, rows.X.shape[1], rows.X_levels.shape[1], stated)
    order = np.random.default_rng(recipe.seed).permutation(len(rows))
    params = None
    for stage in STAGES:
        chosen = np.sort(order[: stage.most_rows])
        part = rows.take(chosen)
        problem = EMProblem(part, slope_powers(part, stage.slope), prior, recipe.structure)
        if params is None:
            params = _starts(problem, recipe, None if margins is None else margins[chosen])
        params = _iterated(problem, params, stage.n_iter, recipe.tol)
        params = _best(problem, params, max(1, round(stage.kept * recipe.n_init)))
    problem = EMProblem(rows, slope_powers(rows, STEEPNESS[-1]), prior, recipe.structure)
    assert params is not None
    return problem, _best(problem, _iterated(problem, params, COMPARED, recipe.tol), 1)


def _starts(problem: EMProblem, recipe: RectangleRecipe, margins: FloatArray | None) -> RectangleParams:
    """Boxes around, and structure of, partitions by k-means and mixtures, or by the stated rules."""
    rows, K, count = problem.rows, recipe.n_clusters, CANDIDATES * recipe.n_init
    if margins is None:
        share = starting_shares(rows, K, count, recipe.seed)
    else:
        share = shares_from_rules(rows, margins, K, count, recipe.seed)
    structure = structure_around(rows, share, recipe.structure)
    return RectangleParams(boxes_around(rows, share, problem.prior), structure)


def _iterated(problem: EMProblem, params: RectangleParams, n_iter: int, tol: float) -> RectangleParams:
    """The parameters after a few iterations of all starts, fewer if none gains."""
    former = None
    for _ in range(n_iter):
        params, value = iterate(problem, params)
        if former is not None and (value - former).max() < tol * problem.rows.weight.sum():
            break
        former = value
    return params


def _best(problem: EMProblem, params: RectangleParams, count: int) -> RectangleParams:
    """The starts with the best objective."""
    return params.starts(np.argsort(-objective(problem, params), kind="stable")[:count])


def keep_clusters(rows: RectangleRows, soft: SoftClusters, chosen: IntArray, kind: str) -> SoftClusters:
    """Some of the clusters; the rows of the others go to these."""
    if len(chosen) == len(soft.kept):
        return soft
    left = soft.take(chosen)
    return left._replace(share=soft_posterior(rows, left.params, kind))
