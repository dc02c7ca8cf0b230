"""What a fitted mixture says about rows: clusters by the rules alone, and by rules and structure together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from nongauss.core.records import persistable
from nongauss.rectangle.data import ColumnViews, FloatArray, IntArray, RawCells, RectangleRows
from nongauss.rectangle.params import ClusterStructure
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
        """p(cluster | rule columns, structure columns), (N, K)."""
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
