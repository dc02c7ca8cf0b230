"""What missing cells would hold, as the other cells of their row tell: principal components of all columns.

Probabilistic principal components (Tipping and Bishop 1999): a row of standardised columns is L u + e, u
standard normal, e with variance `noise`; a missing cell is at its mean given the seen ones.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from nongauss.core.records import persistable
from nongauss.harmonium.data import HarmoniumTable, VisibleRows, column_means, column_spreads
from nongauss.harmonium.exponential_families import RANGES, Array, Layout, dense

MOST_ROWS, MOST_FACTORS = 1000, 200
"""Rows that the components are learned from, and number of components."""

LEAST_NOISE = 0.03
"""Share of a column's variance that is never explained: rows are fewer than columns."""

ROUNDS = 3
"""Times that training rows with gaps are filled and learned from; first they are at their columns' means."""


@persistable("harmonium.Filler", "nongauss.harmonium.gaps:Filler")
class Filler(NamedTuple):
    """Mean and spread of the columns (D,), loadings L (D, R), noise; for encoded rows."""

    means: Array
    spreads: Array
    loadings: Array
    noise: float

    def fill(self, layout: Layout, X: Array, missing: Array) -> Array:
        """X (N, D) with its missing cells filled, float32.

        Each distinct set of gaps is solved for once: .2 ms with 30 columns, 2 ms with 784.
        """
        out = np.array(X, dtype=np.float32)
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        which = which.reshape(-1)
        for number, gone in enumerate(patterns):
            if gone.any():
                rows = np.flatnonzero(which == number)
                out[np.ix_(rows, gone)] = self._expected(out[np.ix_(rows, ~gone)], gone)
        for block in layout:
            out[:, block.place] = np.clip(out[:, block.place], *RANGES[block.kind])
        return out

    def filled(self, layout: Layout, rows: VisibleRows) -> VisibleRows:
        """The rows with their missing cells filled."""
        if rows.missing is None:
            return rows
        return rows._replace(X=self.fill(layout, rows.X, rows.missing), missing=None)

    def filled_table(self, table: HarmoniumTable) -> HarmoniumTable:
        """The table with the missing cells of all its rows filled, wherever they are."""
        all_rows, layout = table.all_rows, table.coder.layout
        if all_rows is not None:
            all_rows = all_rows._replace(source=all_rows.source.map(partial(self.filled, layout)))
        return table._replace(rows=self.filled(layout, table.rows), all_rows=all_rows)

    def _expected(self, seen: Array, gone: Array) -> Array:
        """Means of the columns `gone` (D,) of some rows, given their other columns `seen` (n, seen columns).

        u = (L' L + noise I)^-1 L' z with the rows of L that are seen; then mean + spread L_gone u.
        """
        L = self.loadings[~gone]
        z = (seen - self.means[~gone]) / self.spreads[~gone]
        u = np.linalg.solve(L.T @ L + self.noise * np.eye(L.shape[1]), L.T @ z.T).T
        expected: Array = self.means[gone] + self.spreads[gone] * (u @ self.loadings[gone].T)
        return expected


NO_FILLER = Filler(np.zeros(0), np.zeros(0), np.zeros((0, 0)), 1.0)


def learn_filler(layout: Layout, rows: VisibleRows, seed: int) -> Filler:
    """Principal components of the standardised columns, from at most `MOST_ROWS` of the rows.

    Rows with gaps are filled and learned from in turn.
    """
    n_rows, D = rows.X.shape
    chosen = np.arange(n_rows)
    if n_rows > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(seed).choice(n_rows, MOST_ROWS, replace=False))
    means, spreads = column_means(rows), np.maximum(column_spreads(rows), 1e-6)
    some = rows.take(chosen)
    x = dense(some.X)
    share = some.weight / some.weight.sum()
    filler = Filler(means, spreads, np.zeros((D, 0)), 1.0)
    for _ in range(1 if some.missing is None else ROUNDS):
        x = x if some.missing is None else filler.fill(layout, x, some.missing)
        loadings, noise = _components((x - means) / spreads * np.sqrt(share)[:, None])
        filler = filler._replace(loadings=loadings, noise=noise)
    return filler


def _components(z: Array) -> tuple[Array, float]:
    """Loadings L (D, R) and noise of rows z (N, D) whose squares sum to the columns' variances.

    L_r = axis_r sqrt(value_r - noise), the noise being what the R components leave, per direction.
    """
    wide = z.shape[0] < z.shape[1]
    values, axes = np.linalg.eigh(z @ z.T if wide else z.T @ z)
    values, axes = values[::-1][:MOST_FACTORS], axes[:, ::-1][:, :MOST_FACTORS]
    if wide:
        axes = z.T @ (axes / np.sqrt(np.maximum(values, 1e-12)))
    left = float((z * z).sum() - values.sum()) / max(z.shape[1] - len(values), 1)
    noise = max(left, LEAST_NOISE)
    return (axes * np.sqrt(np.maximum(values - noise, 0.0))).astype(np.float32), noise
