"""What a fitted harmonium says about rows: hidden units, missing cells, reconstructions, views from views."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nongauss.core.records import persistable
from nongauss.harmonium.exponential_families import Array, Layout, mean_of, respond
from nongauss.harmonium.impute import Filler
from nongauss.harmonium.params import Params, Prior, Rows
from nongauss.harmonium.posterior import infer
from nongauss.harmonium.updates import drive_of, filled

SWEEPS = 20
"""Mean-field sweeps for new rows with missing cells."""

CELLS = 2**22
"""Cells of rows that are worked on at once."""


@persistable("harmonium.Machine", "nongauss.harmonium.predict:Machine")
class Machine(NamedTuple):
    """Parameters and prior, what the units are, and `totals`: see `usual_totals`.

    `reading`: "global", where hidden units are independent given a row (and scales are 1), or "chain", where
    they are not.
    `filler` says what missing cells are taken for; where it is empty they are integrated out.
    """

    params: Params
    prior: Prior
    layout: Layout
    units: str
    reading: str
    totals: Array
    filler: Filler

    def hidden(self, X: Any, missing: Array | None = None) -> Array:
        """E[z h | x] (N, K) for encoded rows; missing cells are integrated out, or filled."""
        out = np.empty((X.shape[0], self.params.n_components))
        size = max(1, CELLS // X.shape[1])
        for start in range(0, X.shape[0], size):
            at = slice(start, start + size)
            part = None if missing is None else missing[at]
            with np.errstate(under="ignore", over="ignore"):
                out[at] = self._hidden(X[at], part)
        return out

    def _hidden(self, X: Any, missing: Array | None) -> Array:
        if self.reading == "chain":
            rows = Rows(X, missing, np.ones(X.shape[0]), None)
            return infer(self.params, self.layout, self.prior, rows, SWEEPS)
        if missing is not None and self.filler.means.size:
            X, missing = self.filler.fill(self.layout, X, missing), None
        odds = self.prior.log_odds
        if missing is None:
            return respond(self.units, drive_of(self.params, X), odds).mean
        out = np.empty((X.shape[0], self.params.n_components))
        gaps = missing.any(axis=1)
        out[~gaps] = respond(self.units, drive_of(self.params, X[~gaps]), odds).mean
        if gaps.any():
            whole = filled(
                self.params, self.units, self.layout, odds, X[gaps], missing[gaps], self.totals, SWEEPS
            )
            out[gaps] = respond(self.units, drive_of(self.params, whole), odds).mean
        return out

    def visible(self, hidden: Array) -> Array:
        """Expected encoded rows (N, D) given hidden means (N, K)."""
        a = hidden @ self.params.weights.T + self.params.visible_bias
        totals = np.tile(self.totals, (len(a), 1))
        return mean_of(self.layout, a, totals) / self.params.scale
