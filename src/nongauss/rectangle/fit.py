"""The course of a fit: EM from many starts while the bounds harden, the box step, and the printed rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from nongauss.core.errors import InputError
from nongauss.optimise import loop
from nongauss.optimise.course import NOBODY, FitResult, Rule, Run
from nongauss.rectangle.box_search import RankedColumns, further_box, hard_boxes, rank_columns
from nongauss.rectangle.config import CANDIDATES, COMPARED, STAGES, RectangleRecipe
from nongauss.rectangle.data import (
    ColumnViews,
    FloatArray,
    IntArray,
    RawCells,
    RectangleRows,
    n_distinct,
)
from nongauss.rectangle.objective import EMProblem, log_density, objective, slope_powers
from nongauss.rectangle.params import REACH, RectangleParams, SoftBoxes, StatedBound, box_prior
from nongauss.rectangle.predict import FittedRectangles, by_soft_box, soft_posterior
from nongauss.rectangle.rules import Rules, best_slopes, printed, soft_rules
from nongauss.rectangle.stated import NOTHING_STATED, StatedRules
from nongauss.rectangle.updates import (
    boxes_around,
    iterate,
    mixture,
    shares_from_rules,
    starting_shares,
    structure_around,
)

LastTwo = tuple[RectangleParams, RectangleParams]

MOST_WORK, FEWEST_STARTS = 2e8, 3
"""Products that one factorisation of the covariances of all clusters of all starts may take, so that a table
of hundreds of columns has fewer starts; and the fewest starts."""


class ClusterTask(NamedTuple):
    """What is fitted: distinct rows, scaled and in original units, and what was stated beforehand.

    `starts`: partitions (S, K, n) of the rows of the first stage to start from, None where they are to be
    made.
    """

    rows: RectangleRows
    cells: RawCells
    views: ColumnViews
    stated: StatedRules
    starts: FloatArray | None = None

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
    Where a cluster may have several boxes, those of the structure alone are tried as well.
    The state of the result is that of the clusters left, in the order of the rules. In the paper's setting
    the soft boxes are the rules.
    """
    rows, margins = task.rows, task.stated.margins(task.cells)
    result, soft = fit_soft(rows, recipe, run, task.stated.bounds, margins, task.starts)
    size = soft.share @ rows.weight
    soft = soft.take(np.lexsort((-size, np.minimum(soft.kept, len(task.stated.names)))))
    if recipe.preset:
        _, names = task.stated.of(soft.kept)
        rules, boxes = soft_rules(task.views.rule, soft.params.boxes, rows, names), soft.params.boxes
        structure = soft.params.structure
        fitted = FittedRectangles(task.views, rules, structure, recipe.kind, boxes, recipe.steepness)
        return replace(result, state=soft.params), fitted
    ranked = rank_columns(task.views.rule, task.cells, rows.X, rows.weight)
    found = _with_rules(task, recipe, ranked, result, soft)
    if recipe.max_boxes == 1 or recipe.n_clusters == 1 or task.stated.names:
        return found
    rival = _with_rules(task, recipe, ranked, result, structure_clusters(task, recipe))
    return max((found, rival), key=lambda one: _worth(task, one[1]))


def _with_rules(
    task: ClusterTask, recipe: RectangleRecipe, ranked: RankedColumns, result: FitResult, soft: SoftClusters
) -> tuple[FitResult, FittedRectangles]:
    """Soft clusters with their rules; those whose rule is the best of no row are left out."""
    rows = task.rows
    while True:
        own = soft.share.argmax(axis=0)
        if not task.views_overlap and recipe.max_boxes == 1:
            own = by_soft_box(rows, soft.params.boxes, recipe.steepness)
        rules = _rules(task, ranked, soft, own, recipe)
        margins = rules.margins(task.cells)
        rules = rules._replace(slopes=best_slopes(margins, soft.share.T, rows.weight))
        left = np.unique(rules.claims(margins).argmax(axis=1))
        if len(left) == len(soft.kept):
            structure = soft.params.structure
            fitted = FittedRectangles(task.views, rules, structure, recipe.kind, slope=recipe.steepness)
            return replace(result, state=soft.params), fitted
        soft = keep_clusters(rows, soft, left, recipe)


def structure_clusters(task: ClusterTask, recipe: RectangleRecipe) -> SoftClusters:
    """Clusters of the structure alone, the likeliest of the starts; their soft boxes hold every row.

    A soft box is one box, so EM would cut a cluster apart that only several boxes hold.
    """
    rows, part = task.rows, drawn(task.rows, recipe.seed, STAGES[0].most_rows)
    starts = first_starts(rows, recipe) if task.starts is None else task.starts
    starts, value = mixture(part, starts, recipe.kind, COMPARED)
    structure = structure_around(part, starts[[int(value.argmax())]], recipe.kind)
    share = softmax(log_density(rows, structure, recipe.kind)[0], axis=1)
    share, _ = mixture(rows, share, recipe.kind, recipe.max_iter)
    kept = np.unique(share[0].argmax(axis=0))
    share = share[:, kept] / share[:, kept].sum(axis=1, keepdims=True)
    structure = structure_around(rows, share, recipe.kind)
    n_columns, n_levels = rows.X.shape[1], rows.X_levels.shape[1]
    far = np.full((1, len(kept), n_columns), REACH)
    boxes = SoftBoxes(-far, far, np.full((1, len(kept), n_levels), REACH))
    soft = SoftClusters(RectangleParams(boxes, structure), share[0], kept)
    return soft.take(np.argsort(-(share[0] @ rows.weight), kind="stable"))


def _worth(task: ClusterTask, fitted: FittedRectangles) -> float:
    """What rules explain of the structure columns, less half the log of N for each bound, in nats."""
    bounds = sum(condition.n_bounds for rule in fitted.rules.conditions for condition in rule)
    price = 0.5 * float(np.log(task.rows.weight.sum())) * bounds
    return fitted.log_conditional(task.cells, task.rows) - price


def _rules(
    task: ClusterTask, ranked: RankedColumns, soft: SoftClusters, own: IntArray, recipe: RectangleRecipe
) -> Rules:
    """The printed rules of clusters whose rows are `own` (N,), under the names that were stated for them."""
    stated, names = task.stated.of(soft.kept)
    boxes = hard_boxes(ranked, soft.params.boxes, own, recipe.rule_tolerance, stated)
    owners = list(range(len(boxes)))
    price = recipe.rule_tolerance * float(ranked.grid.weight.sum())
    for k in range(len(names)):
        mine = [boxes[k]]
        while len(mine) < recipe.max_boxes:
            more = further_box(ranked.grid, own == k, mine, price)
            if more is None:
                break
            mine.append(more)
        boxes, owners = [*boxes, *mine[1:]], [*owners, *[k] * (len(mine) - 1)]
    rules = printed(ranked, task.views.rule, boxes, names, recipe.rule_precision)
    return rules._replace(owners=tuple(owners) if recipe.max_boxes > 1 else ())


def fit_soft(
    rows: RectangleRows,
    recipe: RectangleRecipe,
    run: Run,
    stated: Sequence[StatedBound],
    margins: FloatArray | None,
    starts: FloatArray | None = None,
) -> tuple[FitResult, SoftClusters]:
    """Maximise the objective. `margins` (N, J) are those of rules stated for the first J clusters.

    `starts` (S, K, n): partitions of the first stage's rows to start from. The trace is that of the last
    stage. Clusters that no row belongs to are left out.
    """
    problem, params = _best_start(rows, recipe, stated, margins, starts)

    def step(number: int, last_two: LastTwo) -> tuple[LastTwo, dict[str, float]]:
        """The parameters whose objective is known, and those after them."""
        following, value = iterate(problem, last_two[1])
        return (last_two[1], following), {"bound": float(value[0])}

    tol = recipe.tol * float(rows.weight.sum())
    rule = Rule(recipe.max_iter, lambda _: tol, rises=True)
    result = loop.run(step, (params, params), run, rule, name="best start")
    result = replace(result, state=result.state[0])
    share = soft_posterior(rows, result.state, recipe.kind, recipe.steepness)
    everything = SoftClusters(result.state, share, np.arange(len(share)))
    return result, keep_clusters(rows, everything, np.unique(share.argmax(axis=0)), recipe)


def _best_start(
    rows: RectangleRows,
    recipe: RectangleRecipe,
    stated: Sequence[StatedBound],
    margins: FloatArray | None,
    starts: FloatArray | None,
) -> tuple[EMProblem, RectangleParams]:
    """The last stage's problem, of all rows at the steepest slope, and the best of the starts there."""
    shape = recipe.n_clusters, rows.X.shape[1], rows.X_levels.shape[1]
    prior = box_prior(*shape, stated, recipe.alpha, recipe.beta)
    params = None
    for stage in STAGES:
        part = drawn(rows, recipe.seed, stage.most_rows)
        problem = EMProblem(part, slope_powers(part, recipe.slope_at(stage)), prior, recipe.kind)
        if params is None:
            if margins is not None:
                told = margins[rows_drawn(len(rows), recipe.seed, stage.most_rows)]
                starts = shares_from_rules(
                    part, told, recipe.n_clusters, CANDIDATES * recipe.n_init, recipe.seed
                )
            elif starts is None:
                starts = first_starts(rows, recipe)
            boxes = boxes_around(part, starts, prior)
            params = RectangleParams(boxes, structure_around(part, starts, recipe.kind))
        params = _iterated(problem, params, stage.n_iter, recipe.tol)
        params = _best(problem, params, max(1, round(stage.kept * recipe.n_init)))
    problem = EMProblem(rows, slope_powers(rows, recipe.steepness), prior, recipe.kind)
    assert params is not None
    return problem, _best(problem, _iterated(problem, params, COMPARED, recipe.tol), 1)


def rows_drawn(n_rows: int, seed: int, most: int) -> IntArray:
    """Row numbers of the sample that a stage sees, in order; that of a stage with more rows holds it."""
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:most])


def drawn(rows: RectangleRows, seed: int, most: int) -> RectangleRows:
    """The sample of the rows that a stage sees."""
    return rows.take(rows_drawn(len(rows), seed, most))


def first_starts(rows: RectangleRows, recipe: RectangleRecipe) -> FloatArray:
    """Partitions (S, K, n) of the first stage's rows by k-means and mixtures."""
    part = drawn(rows, recipe.seed, STAGES[0].most_rows)
    n_starts = min(CANDIDATES * recipe.n_init, most_starts(recipe.n_clusters, rows.Y.shape[1]))
    return starting_shares(part, recipe.n_clusters, n_starts, recipe.seed)


def most_starts(n_clusters: int, n_columns: int) -> int:
    """Most starts of a table of so many columns: the covariances of all together take `MOST_WORK`."""
    return max(FEWEST_STARTS, int(MOST_WORK / (n_clusters * max(n_columns, 1) ** 3)))


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


def keep_clusters(
    rows: RectangleRows, soft: SoftClusters, chosen: IntArray, recipe: RectangleRecipe
) -> SoftClusters:
    """Some of the clusters; the rows of the others go to these."""
    if len(chosen) == len(soft.kept):
        return soft
    left = soft.take(chosen)
    return left._replace(share=soft_posterior(rows, left.params, recipe.kind, recipe.steepness))


def check_number(K: int, task: ClusterTask, n_samples: int) -> None:
    """Refuse more clusters than there are different rows, or fewer than have names."""
    rows = task.rows
    if len(task.stated.names) > K:
        raise InputError(
            f"prior_rules names {len(task.stated.names)} clusters, but n_clusters is {K}; raise n_clusters."
        )
    for what, distinct in (
        ("rule columns", n_distinct(rows.X, rows.X_labels)),
        ("structure columns", n_distinct(rows.Y, rows.Y_labels)),
    ):
        if distinct < K:
            raise InputError(
                f"n_clusters={K} is more than the {distinct} different rows that the {what} have "
                f"(n_samples={n_samples}); lower n_clusters or add rows."
            )


MOST_RESAMPLED = 500
"""Most rows that clusters are sought in again and again."""

RESAMPLED_STARTS = 1
"""Starts of each of these fits."""


def rule_stability(
    fitted: FittedRectangles, cells: RawCells, rows: RectangleRows, recipe: RectangleRecipe, n_resamples: int
) -> FloatArray:
    """Mean Jaccard similarity of each rule's rows with those of the nearest rule of resampled rows, (K,).

    Of so few rows that fewer are drawn than there are clusters, there are as many clusters as rows drawn.
    """
    rng = np.random.default_rng(recipe.seed)
    kept = np.sort(rng.permutation(len(rows))[:MOST_RESAMPLED])
    cells, rows = cells.take(kept), rows.take(kept)
    before = fitted.inside(cells)
    total = np.zeros(before.shape[1])
    for seed in range(n_resamples):
        count = np.bincount(rng.integers(len(rows), size=len(rows)), minlength=len(rows))
        drawn = np.flatnonzero(count)
        part = rows.take(drawn)
        part.weight = count[drawn].astype(np.float64)
        task = ClusterTask(part, cells.take(drawn), fitted.views, NOTHING_STATED)
        K = min(recipe.n_clusters, len(drawn))
        again = recipe._replace(n_init=RESAMPLED_STARTS, seed=seed, n_clusters=K)
        after = fit(task, again, NOBODY)[1].inside(cells)
        both = (before[:, :, None] & after[:, None]).sum(axis=0)
        either = (before[:, :, None] | after[:, None]).sum(axis=0)
        total += np.where(either, both / np.maximum(either, 1), 1.0).max(axis=1)
    return total / n_resamples
