"""Shares of candidates in the mixture of what they say of missing cells, by hidden cells of the table.

Numbers and grades are judged by the continuous ranked probability score, labels by the log-loss, each
relative to that of the column alone. Both are convex in the shares, so that one mixture is the best (Yao,
Vehtari, Simpson and Gelman, Bayesian Analysis 13, 2018).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from nongauss.auto.hidden_cells import LEAST_CHANCE, Told, ToldColumn, told_by_mixture, yardsticks
from nongauss.estimator.imputation import MissingLaws
from nongauss.predictive.cells import mixed_law
from nongauss.predictive.distribution import FloatArray
from nongauss.tables.margins import Margin, MixedCells, RowNoise

LEAST_SHARE = 0.05
"""A candidate that has less than this of either kind of column is left out, which saves its fit."""
PRIOR = 0.1
"""How much -log of each share counts, where a hidden cell told by its column alone counts 1."""
CLEAR = 1.0
"""Standard errors by which the mixture has to be better than columns alone."""
SALT = 7_919
"""Added to the seed, so that which candidate a row is drawn from does not depend on the values drawn."""


class HiddenColumn(NamedTuple):
    """The numbers by which mixtures of C candidates are scored on the R hidden cells of one column.

    `told`: of labels the probabilities (C, R) of the true ones; of numbers and grades the T (C, C) with which
    the mean score of the mixture with shares w is w' T w. `part` (R,): how much of the mean each cell is.
    `weight`: R over the score of the column alone.
    """

    is_label: bool
    told: FloatArray
    part: FloatArray
    weight: float

    def loss(self, share: FloatArray) -> tuple[float, FloatArray]:
        """The sum over cells of scores over that of the column alone, and its slopes by the shares (C,)."""
        if not self.is_label:
            slope = self.told @ share
            return self.weight * float(share @ slope), 2.0 * self.weight * slope
        chance = np.maximum(share @ self.told, LEAST_CHANCE)
        value, slope = -np.log(chance) @ self.part, -(self.told / chance) @ self.part
        return self.weight * float(value), self.weight * slope


def shares_by_kind(told: Sequence[Told], usual: Told, alone: int | None) -> dict[bool, FloatArray]:
    """The shares (C,) of candidates for columns of numbers and grades (False) and of labels (True).

    `alone`: which candidate is the columns alone; it has the whole of a kind where the mixture is not ahead.
    A kind without hidden cells has the shares of the other. Empty where no cell of a column of more than one
    value was hidden.
    """
    alone_score, only = yardsticks(usual), np.eye(len(told))
    cells = [cell for cell in usual if all(cell in own for own in told) and cell[1] in alone_score]
    found: dict[bool, FloatArray] = {}
    for kind in (False, True):
        own = [cell for cell in cells if usual[cell].is_label is kind]
        if not own:
            continue
        share = best_shares(
            [hidden_column([each[cell] for each in told], usual[cell], alone_score[cell[1]]) for cell in own]
        )
        mixture = told_by_mixture(told, {False: share, True: share})
        triples = [(mixture[cell], usual[cell], alone_score[cell[1]]) for cell in own]
        found[kind] = share if alone is None or is_ahead(triples) else only[alone]
    if len(found) == 1:
        (share,) = found.values()
        return {False: share, True: share}
    return found


def is_ahead(triples: Sequence[tuple[ToldColumn, ToldColumn, float]]) -> bool:
    """Are the scores of the first ones below those of the columns alone by `CLEAR` standard errors?

    The gain is the mean over cells, each relative to the third of its triple, the score of its column.
    """
    gain = np.concatenate([(usual.scores - own.scores) / score for own, usual, score in triples])
    part = np.concatenate([usual.weight for _, usual, _ in triples])
    part = part / part.sum()
    mean = float(part @ gain)
    variance = float(part**2 @ (gain - mean) ** 2) * len(gain) / max(len(gain) - 1, 1)
    return len(gain) > 1 and mean > CLEAR * np.sqrt(variance)


def hidden_column(each: Sequence[ToldColumn], usual: ToldColumn, alone_score: float) -> HiddenColumn:
    """The hidden cells of one column, of which each candidate says something, and the column alone."""
    true, C = usual.true, len(each)
    part, weight = usual.weight / usual.weight.sum(), len(true) / alone_score
    if usual.is_label:
        return HiddenColumn(True, np.exp([own.law.log_prob(true) for own in each]), part, weight)
    told = np.diag([own.score for own in each])
    for a in range(C):
        for b in range(a):  # the mixture of two in equal parts has (T_aa + T_bb + 2 T_ab) / 4
            both = mixed_law(usual.margin, [each[a].law, each[b].law], np.full(2, 0.5))
            half = 2.0 * usual._replace(law=both).score
            told[a, b] = told[b, a] = half - 0.5 * (told[a, a] + told[b, b])
    return HiddenColumn(False, told, part, weight)


def best_shares(columns: Sequence[HiddenColumn]) -> FloatArray:
    """The shares (C,) with the least sum of scores and of `PRIOR` times -log w_c of each candidate.

    That prior, of a tenth of a cell, settles shares that no cell tells apart.
    """

    def loss(logit: FloatArray) -> tuple[float, FloatArray]:
        """The sum, and its slopes by the logits of the shares."""
        share = softmax(logit)
        least = np.maximum(share, 1e-300)
        value, slope = -PRIOR * float(np.log(least).sum()), -PRIOR / least
        for column in columns:
            own, by_share = column.loss(share)
            value, slope = value + own, slope + by_share
        return value, share * (slope - share @ slope)

    begin = np.zeros(len(columns[0].told))
    found: FloatArray = softmax(minimize(loss, begin, jac=True, method="L-BFGS-B").x)
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
