"""One model from rows to printed rules, and how well its rules explain what the clusters look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.result import Callback, FitResult
from nongauss.rectangle.columns import Cells, View
from nongauss.rectangle.fit import Fitted, Recipe, blocks, by_soft_rule, fit, without_others
from nongauss.rectangle.params import Boxes, FloatArray, Rows, Structure
from nongauss.rectangle.printing import Sheet, hard_boxes, printed, sheet
from nongauss.rectangle.priors import Prior
from nongauss.rectangle.rules import Rules, best_slopes
from nongauss.rectangle.structure import log_density


class Task(NamedTuple):
    """What is fitted: distinct rows, scaled and in original units, and what was stated beforehand.

    `shared`: some column is both a rule and a structure column.
    """

    rows: Rows
    cells: Cells
    view: View
    prior: Prior
    shared: bool


class Wording(NamedTuple):
    """How rules are printed: digits, and the share of rows that fewer conditions may cost."""

    precision: str | int | None
    tolerance: float


class Solution(NamedTuple):
    """How the fit went, the rules, boxes and structure (S = 1), the clusters' probabilities (K, N)."""

    result: FitResult
    rules: Rules
    boxes: Boxes
    structure: Structure
    share: FloatArray


def solve(
    task: Task,
    recipe: Recipe,
    wording: Wording,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> Solution:
    """Fit, then find the boxes and print them.

    The boxes are sought for the clusters by all columns; where rules may speak of no structure column, for
    those by the soft rules, since no rule could tell the others. A cluster whose rule is the best of no row
    is left out, and the boxes are sought again. Named clusters come first, then the largest.
    """
    known = task.prior.margins(task.cells)
    result, fitted = fit(
        task.rows, recipe, task.prior.stated, known, callbacks=callbacks, checkpoint=checkpoint,
        verbose=verbose,
    )  # fmt: skip
    size = fitted.share @ task.rows.weight
    fitted = fitted.take(np.lexsort((-size, np.minimum(fitted.kept, len(task.prior.names)))))
    rows = task.rows
    at = sheet(task.view, task.cells, rows.X, rows.weight)
    while True:
        own = fitted.share.argmax(axis=0) if task.shared else by_soft_rule(rows, fitted.boxes)
        rules = _rules(task, at, fitted, own, wording)
        margins = rules.margins(task.cells)
        rules = rules._replace(slopes=best_slopes(margins, fitted.share.T, rows.weight))
        alive = np.unique(rules.claims(margins).argmax(axis=1))
        if len(alive) == len(fitted.kept):
            return Solution(result, rules, fitted.boxes, fitted.structure, fitted.share)
        fitted = without_others(rows, fitted, alive, recipe.structure)


def _rules(task: Task, at: Sheet, fitted: Fitted, own: np.ndarray, wording: Wording) -> Rules:
    """The printed rules, under the names that were stated for them."""
    stated, names = task.prior.of(fitted.kept)
    boxes = hard_boxes(at, fitted.boxes, own, wording.tolerance, stated)
    return printed(at, task.view, boxes, names, wording.precision)


def joint_posterior(rules: Rules, structure: Structure, cells: Cells, rows: Rows, kind: str) -> FloatArray:
    """log p(cluster, structure columns | rule columns), (N, K): rule probabilities times densities."""
    out = np.empty((len(rows), len(rules.names)))
    for block in blocks(len(rows)):
        proba = rules.proba(rules.margins(_take(cells, block)))
        log_p = log_density(rows.take(block), structure, kind)[0][0].T
        with np.errstate(divide="ignore"):
            out[block] = np.log(proba) + log_p
    return out


def conditional_likelihood(solution: Solution, task: Task, kind: str) -> float:
    """Sum over rows of log p(structure columns | rule columns), by the printed rules."""
    log_p = joint_posterior(solution.rules, solution.structure, task.cells, task.rows, kind)
    return float(logsumexp(log_p, axis=1) @ task.rows.weight)


def _take(cells: Cells, rows: np.ndarray) -> Cells:
    return Cells(cells.numbers[rows], cells.labels.take(rows))
