"""What a mixture says about rows: clusters by the rules alone, by rules and structure, and by soft boxes.

Two posteriors: `FittedRectangles.posterior` is that of the printed rules and the structure, which a user
sees; `soft_posterior` is that of the soft boxes, which EM maximises, and the structure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from nongauss.core.records import persistable
from nongauss.rectangle.config import STEEPNESS
from nongauss.rectangle.data import ColumnViews, FloatArray, IntArray, RawCells, RectangleRows
from nongauss.rectangle.objective import log_inside, posterior, slope_powers
from nongauss.rectangle.params import ClusterStructure, RectangleParams, SoftBoxes
from nongauss.rectangle.rules import Rules
from nongauss.rectangle.structure import log_density

_BLOCK = 2**15  # rows judged at once


@persistable("rectangle.Fitted")
class FittedRectangles(NamedTuple):
    """How a table is read, the rules, and what the clusters look like (S = 1) by which kind of structure."""

    views: ColumnViews
    rules: Rules
    structure: ClusterStructure
    kind: str

    def labels(self, cells: RawCells, outliers: bool) -> IntArray:
        """The cluster of each row by the rules, (N,); with `outliers`, -1 for rows that no rule holds."""
        claims = self.rules.claims(self.rules.margins(cells))
        labels = claims.argmax(axis=1)
        return np.where(claims.max(axis=1) < 0, -1, labels) if outliers else labels

    def inside(self, cells: RawCells) -> np.ndarray:
        """Which rules hold each row, (N, K) booleans."""
        return self.rules.margins(cells) >= 0

    def proba(self, cells: RawCells) -> FloatArray:
        """p(cluster | rule columns), (N, K)."""
        return self.rules.proba(self.rules.margins(cells))

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


def soft_posterior(rows: RectangleRows, params: RectangleParams, kind: str) -> FloatArray:
    """Posterior probability of each cluster for each row (K, N), by soft boxes and structure (S = 1)."""
    out = np.empty((params.boxes.lower.shape[1], len(rows)))
    for block in blocks(len(rows)):
        part = rows.take(block)
        log_G = log_inside(slope_powers(part, STEEPNESS[-1]), params.boxes)
        out[:, block] = posterior(log_G, log_density(part, params.structure, kind)[0])[0]
    return out


def by_soft_box(rows: RectangleRows, boxes: SoftBoxes) -> IntArray:
    """The cluster of each row by the soft boxes alone, (N,)."""
    parts = [
        log_inside(slope_powers(rows.take(block), STEEPNESS[-1]), boxes)[0].argmax(axis=0)
        for block in blocks(len(rows))
    ]
    return np.concatenate(parts)
