"""What a mixture says about rows: clusters by rules alone, by rules and structure, by soft boxes; in words.

Two posteriors: `FittedRectangles.posterior` is that of the printed rules and the structure, which a user
sees; `soft_posterior` is that of the soft boxes, which EM maximises, and the structure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from nongauss.core.records import persistable
from nongauss.rectangle.config import STEEPNESS
from nongauss.rectangle.data import (
    ColumnViews,
    FloatArray,
    IntArray,
    LevelCodes,
    RawCells,
    RectangleRows,
)
from nongauss.rectangle.objective import log_density, log_inside, log_odds, posterior, slope_powers
from nongauss.rectangle.params import ClusterStructure, RectangleParams, SoftBoxes
from nongauss.rectangle.rules import Rules
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.frame import n_rows_of
from nongauss.tables.source import Part, weight_of

_BLOCK = 2**15  # rows judged at once


@persistable("rectangle.Fitted")
class FittedRectangles(NamedTuple):
    """How a table is read, the rules, and what the clusters look like (S = 1) by which kind of structure.

    `soft` boxes (S = 1), of the paper's setting alone, decide in the place of the printed rules.
    """

    views: ColumnViews
    rules: Rules
    structure: ClusterStructure
    kind: str
    soft: SoftBoxes | None = None
    slope: float = STEEPNESS[-1]

    def claims(self, cells: RawCells) -> FloatArray:
        """How much each rule claims each row, (N, K); soft boxes by log G - log(1 - G), 0 where G is 1/2."""
        if self.soft is None:
            return self.rules.claims(self.rules.margins(cells))
        X, nothing = (
            self.views.rule.scaled(cells.numbers),
            LevelCodes(np.zeros((len(cells.numbers), 0), int), ()),
        )
        out = np.empty((len(X), len(self.rules.names)))
        rows = RectangleRows(X, cells.labels, np.zeros((len(X), 0)), nothing, np.ones(len(X)))
        for block in blocks(len(X)):
            powers = slope_powers(rows.take(block), self.slope)
            out[block] = log_odds(log_inside(powers, self.soft))[0].T
        return out

    def labels(self, cells: RawCells, outliers: bool) -> IntArray:
        """The cluster of each row by the rules, (N,); with `outliers`, -1 for rows that no rule holds."""
        claims = self.claims(cells)
        labels = claims.argmax(axis=1)
        return np.where(claims.max(axis=1) < 0, -1, labels) if outliers else labels

    def inside(self, cells: RawCells) -> np.ndarray:
        """Which rules hold each row, (N, K) booleans."""
        return self.rules.margins(cells) >= 0

    def proba(self, cells: RawCells) -> FloatArray:
        """p(cluster | rule columns), softmax of the claims (N, K)."""
        proba: FloatArray = softmax(self.claims(cells), axis=1)
        return proba

    def posterior(self, cells: RawCells, rows: RectangleRows) -> FloatArray:
        """p(cluster | rule columns, structure columns) by the printed rules and the structure, (N, K)."""
        proba: FloatArray = softmax(self.log_joint(cells, rows), axis=1)
        return proba

    def log_joint(self, cells: RawCells, rows: RectangleRows) -> FloatArray:
        """log p(cluster, structure columns | rule columns) = log p(k | rules) + log p(y | k), (N, K)."""
        out = np.empty((len(rows), len(self.rules.names)))
        for block in blocks(len(rows)):
            proba = self.proba(cells.take(block))
            log_p = log_density(rows.take(block), self.structure, self.kind)[0][0].T
            with np.errstate(divide="ignore"):
                out[block] = np.log(proba) + log_p
        return out

    def log_conditional(self, cells: RawCells, rows: RectangleRows) -> float:
        """Sum over rows of their weight times log p(structure columns | rule columns)."""
        return float(logsumexp(self.log_joint(cells, rows), axis=1) @ rows.weight)


def blocks(n_rows: int) -> list[IntArray]:
    """Numbers of rows that are judged at once, block after block."""
    return [np.arange(start, min(start + _BLOCK, n_rows)) for start in range(0, n_rows, _BLOCK)]


def soft_posterior(
    rows: RectangleRows, params: RectangleParams, kind: str, slope: float = STEEPNESS[-1]
) -> FloatArray:
    """Posterior probability of each cluster for each row (K, N), by soft boxes and structure (S = 1)."""
    out = np.empty((params.boxes.lower.shape[1], len(rows)))
    for block in blocks(len(rows)):
        part = rows.take(block)
        log_G = log_inside(slope_powers(part, slope), params.boxes)
        out[:, block] = posterior(log_G, log_density(part, params.structure, kind)[0])[0]
    return out


def by_soft_box(rows: RectangleRows, boxes: SoftBoxes, slope: float = STEEPNESS[-1]) -> IntArray:
    """The cluster of each row by the soft boxes alone, (N,)."""
    parts = [
        log_inside(slope_powers(rows.take(block), slope), boxes)[0].argmax(axis=0)
        for block in blocks(len(rows))
    ]
    return np.concatenate(parts)


class RuleTally(NamedTuple):
    """Weights of rows, which add up over parts: in all, and inside exactly one rule; of each cluster (K,)
    those that its rule claims, that are inside it, that belong to it by `soft_posterior`, and both.
    """

    total: float
    inside_one: float
    claimed: FloatArray
    inside: FloatArray
    own: FloatArray
    both: FloatArray

    @classmethod
    def of(cls, claims: FloatArray, inside: np.ndarray, share: FloatArray, weight: FloatArray) -> RuleTally:
        """The tally of rows with these claims, inside these rules (N, K), and `soft_posterior` (K, N)."""
        which = np.arange(claims.shape[1])
        belongs = share.argmax(axis=0)[:, None] == which
        return cls(
            float(weight.sum()),
            float(weight @ (inside.sum(axis=1) == 1)),
            weight @ (claims.argmax(axis=1)[:, None] == which),
            weight @ inside,
            weight @ belongs,
            weight @ (inside & belongs),
        )


def tally_of(
    part: Part, whole: TableEncoder, name: str, fitted: FittedRectangles, params: RectangleParams
) -> RuleTally | None:
    """The tally of a part's rows: what rules, soft boxes and structure, fixed by now, say of them."""
    if not n_rows_of(part.X):
        return None
    cells, rows = fitted.views.read(part.X, whole, name, warn=False)
    share = soft_posterior(rows, params, fitted.kind, fitted.slope)
    return RuleTally.of(fitted.claims(cells), fitted.inside(cells), share, weight_of(part))
