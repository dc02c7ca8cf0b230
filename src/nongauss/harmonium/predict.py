"""What a fitted harmonium says about rows: hidden units, missing cells, reconstructions, views from views."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nongauss.core.records import persistable
from nongauss.harmonium.data import VisibleRows, unlabelled
from nongauss.harmonium.exponential_families import Array, Layout, mean_of, respond
from nongauss.harmonium.impute import Filler
from nongauss.harmonium.params import FeaturePrior, HarmoniumParams
from nongauss.harmonium.posterior import infer_features
from nongauss.harmonium.updates import filled_by_mean_field, preactivation

SWEEPS = 20
"""Mean-field sweeps for new rows with missing cells."""

CELLS = 2**22
"""Cells of rows that are worked on at once."""


@persistable("harmonium.Machine", "nongauss.harmonium.predict:Machine")
class Machine(NamedTuple):
    """A fitted harmonium: parameters and prior, what the units are, and `totals`: see `mean_totals`.

    `reading`, its normalisation: "global", where hidden units are independent given a row (and scales are 1),
    or "chain", where they are not.
    `filler` says what missing cells are taken for; where it is empty they are integrated out.
    """

    params: HarmoniumParams
    prior: FeaturePrior
    layout: Layout
    units: str
    reading: str
    totals: Array
    filler: Filler

    def hidden(self, X: Any, missing: Array | None = None) -> Array:
        """E[z h | x] (N, K) for encoded rows; missing cells are integrated out, or filled."""
        out = np.empty((X.shape[0], self.params.n_components))
        for place, rows in unlabelled(X, missing).blocks(CELLS):
            with np.errstate(under="ignore", over="ignore"):
                out[place] = self._hidden(rows)
        return out

    def _hidden(self, rows: VisibleRows) -> Array:
        """E[z h | x] (B, K), all rows at once."""
        if self.reading == "chain":
            return infer_features(self.params, self.layout, self.prior, rows, SWEEPS)
        if self.filler.means.size:
            rows = self.filler.filled(self.layout, rows)
        if rows.missing is None:
            return self._given_all_cells(rows.X)
        out = np.empty((len(rows.weight), self.params.n_components))
        has_gaps = rows.missing.any(axis=1)
        out[~has_gaps] = self._given_all_cells(rows.X[~has_gaps])
        if has_gaps.any():
            X, missing, odds = rows.X[has_gaps], rows.missing[has_gaps], self.prior.log_odds
            complete = filled_by_mean_field(
                self.params, self.units, self.layout, odds, X, missing, self.totals, SWEEPS
            )
            out[has_gaps] = self._given_all_cells(complete)
        return out

    def _given_all_cells(self, X: Any) -> Array:
        """E[z h | x] (B, K) of the globally normalised model, exact where no cell is missing."""
        return respond(self.units, preactivation(self.params, X), self.prior.log_odds).mean

    def visible(self, hidden: Array) -> Array:
        """Expected encoded rows (N, D) given hidden means (N, K)."""
        a = hidden @ self.params.weights.T + self.params.visible_bias
        totals = np.tile(self.totals, (len(a), 1))
        return mean_of(self.layout, a, totals) / self.params.scale
