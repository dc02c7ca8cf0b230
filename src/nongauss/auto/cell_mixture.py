"""Shares of candidates in the mixture of what they say of missing cells, by hidden cells of the table.

Numbers and grades are judged by the continuous ranked probability score, labels by the log-loss, each
relative to that of the column alone. Both are convex in the shares, so that one mixture is the best (Yao,
Vehtari, Simpson and Gelman, Bayesian Analysis 13, 2018).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from nongauss.auto.hidden_cells import LEAST_CHANCE, LEAST_SCORE, Told, ToldColumn
from nongauss.estimator.imputation import MissingLaws
from nongauss.predictive.cells import LabelDistribution, mixed_law
from nongauss.predictive.distribution import FloatArray
from nongauss.tables.margins import Margin, MixedCells, RowNoise

LEAST_SHARE = 0.05
"""A candidate that has less than this of either kind of column is left out, which saves its fit."""
SALT = 7_919
"""What is added to the seed of the draws for the candidate that each row's draw is of."""


class HiddenColumn(NamedTuple):
    """What C candidates say of the R hidden cells of one column, as far as mixtures of them are judged by it.

    `told`: of labels the probabilities (C, R) of the true ones; of numbers and grades the T (C, C) with which
    the mean score of the mixture with shares w is w' T w. `weight`: R over the score of the column alone.
    """

    is_label: bool
    told: FloatArray
    weight: float

    def loss(self, share: FloatArray) -> tuple[float, FloatArray]:
        """The sum over cells of scores over that of the column alone, and its slopes by the shares (C,)."""
        if not self.is_label:
            slope = self.told @ share
            return self.weight * float(share @ slope), 2.0 * self.weight * slope
        chance = np.maximum(share @ self.told, LEAST_CHANCE)
        return self.weight * float(-np.log(chance).mean()), -self.weight * (self.told / chance).mean(axis=1)


def shares_by_kind(told: Sequence[Told], usual: Told, is_model: NDArray[np.bool_]) -> dict[bool, FloatArray]:
    """The shares (C,) of candidates for columns of numbers and grades (False) and of labels (True).

    `is_model` (C,): which candidates are not the columns alone. A kind without hidden cells has the shares of
    the other. Empty where no cell was hidden.
    """
    columns = [
        hidden_column([own[name] for own in told], usual[name])
        for name in told[0]
        if all(name in own for own in [*told, usual])
    ]
    found = {}
    for kind in (False, True):
        if own := [column for column in columns if column.is_label is kind]:
            found[kind] = best_shares(own, is_model)
    if len(found) == 1:
        (only,) = found.values()
        return {False: only, True: only}
    return found


def hidden_column(each: Sequence[ToldColumn], usual: ToldColumn) -> HiddenColumn:
    """The hidden cells of one column, of which each candidate says something, and the column alone."""
    true, C = usual.true, len(each)
    weight = len(true) / max(float(usual.scores.mean()), LEAST_SCORE)
    if isinstance(usual.law, LabelDistribution):
        return HiddenColumn(True, np.exp([own.law.log_prob(true) for own in each]), weight)
    told = np.diag([float(own.scores.mean()) for own in each])
    for a in range(C):
        for b in range(a):  # the mixture of two in equal parts has (T_aa + T_bb + 2 T_ab) / 4
            both = mixed_law(usual.margin, [each[a].law, each[b].law], np.full(2, 0.5))
            half = 2.0 * float(ToldColumn(usual.margin, both, true).scores.mean())
            told[a, b] = told[b, a] = half - 0.5 * (told[a, a] + told[b, b])
    return HiddenColumn(False, told, weight)


def best_shares(columns: Sequence[HiddenColumn], is_model: NDArray[np.bool_]) -> FloatArray:
    """The shares (C,) with the least sum of scores and of -log w_c of each candidate that is a model.

    That prior, as weak as a cell or two, keeps all of them in mixtures that few cells tell apart.
    """

    def loss(logit: FloatArray) -> tuple[float, FloatArray]:
        """The sum, and its slopes by the logits of the shares."""
        share = softmax(logit)
        value = float(-np.log(np.maximum(share[is_model], 1e-300)).sum())
        slope = np.where(is_model, -1.0 / np.maximum(share, 1e-300), 0.0)
        for column in columns:
            own, by_share = column.loss(share)
            value, slope = value + own, slope + by_share
        return value, share * (slope - share @ slope)

    found: FloatArray = softmax(minimize(loss, np.zeros(len(is_model)), jac=True, method="L-BFGS-B").x)
    return found


def kept_shares(shares: Mapping[bool, FloatArray]) -> dict[bool, FloatArray]:
    """The shares without those of candidates that have little of either kind; nothing of nothing."""
    if not shares:
        return {}
    most = np.max([*shares.values()], axis=0)
    keeps = (most >= LEAST_SHARE) | (most == most.max())
    return {kind: np.where(keeps, own, 0.0) / own[keeps].sum() for kind, own in shares.items()}


def mixed_cells(
    each: Sequence[tuple[tuple[Margin, ...], MissingLaws]],
    shares: Mapping[bool, FloatArray],
    noise: RowNoise,
) -> MissingLaws:
    """The mixtures of what C models say of missing cells of each margin, with the joint draws of one of them.

    A number of each row and draw says whose draw it is: that of one model as far as the shares of numbers
    and labels are alike.
    """
    n = min((len(cells.draw) for _, laws in each for cells in laws), default=1)
    place = np.stack([noise.uniform(1)[:, 0] for _ in range(n)])
    edges = {kind: np.cumsum(share)[:-1] for kind, share in shares.items()}
    out: list[MixedCells] = []
    for j, margin in enumerate(each[0][0]):
        rows = each[0][1][j].rows
        parts = tuple((margins[j], laws[j]) for margins, laws in each)
        part = np.searchsorted(edges[margin.is_label], place[:, rows], side="right")
        out.append(MixedCells(rows, parts, shares[margin.is_label], part))
    return out
