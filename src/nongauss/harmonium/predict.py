"""What a fitted harmonium says about rows: hidden units, missing cells, reconstructions, views from views.

A filler takes missing cells for what the other cells of their row tell, by probabilistic principal components
(Tipping and Bishop 1999): a row of standardised columns is L u + e, u standard normal, e with variance
`noise`; a missing cell is at its mean given the seen ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from nongauss.core.records import persistable
from nongauss.harmonium.chain_graph import ACTIVE, ALIKE, DUPLICATE
from nongauss.harmonium.data import (
    HarmoniumTable,
    VisibleRows,
    column_means,
    column_spreads,
    scaled,
    unlabelled,
)
from nongauss.harmonium.enumeration import MOST_ENUMERATED, feature_sets, log_joint_of_sets
from nongauss.harmonium.exponential_families import RANGES, Array, Layout, dense, mean_of, respond
from nongauss.harmonium.objective import scores
from nongauss.harmonium.params import FeaturePrior, HarmoniumParams
from nongauss.harmonium.posterior import infer_features
from nongauss.harmonium.updates import filled_by_mean_field, preactivation
from nongauss.harmonium.visible_units import UnitCoder
from nongauss.tables.completion import MANY_COLUMNS, DonorColumn, Donors

MOST_ROWS, MOST_FACTORS = 1000, 200
"""Rows that the components are learned from, and number of components."""

LEAST_NOISE = 0.03
"""Share of a column's variance that is never explained: rows are fewer than columns."""

ROUNDS = 3
"""Times that training rows with gaps are filled and learned from; first they are at their columns' means."""


@persistable("harmonium.Filler", "nongauss.harmonium.gaps:Filler")
class Filler(NamedTuple):
    """Mean and spread of the columns (D,), loadings L (D, R), noise; for encoded rows."""

    means: Float[np.ndarray, " D"]
    spreads: Float[np.ndarray, " D"]
    loadings: Float[np.ndarray, "D R"]
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


SWEEPS = 20
"""Mean-field sweeps for new rows with missing cells."""

CELLS = 2**22
"""Cells of rows that are worked on at once."""


@persistable("harmonium.Machine", "nongauss.harmonium.predict:Machine")
class Machine(NamedTuple):
    """A fitted harmonium: parameters and prior, what the units are, and `totals`: see `mean_totals`.

    `reading`, its normalisation: "global", where hidden units are independent given a row,
    or "chain", where they are not.
    `filler` says what missing cells are taken for; where it is empty they are integrated out, exactly where
    features are few, else by mean field.
    """

    params: HarmoniumParams
    prior: FeaturePrior
    layout: Layout
    units: str
    reading: str
    totals: Array
    filler: Filler

    @property
    def is_summed(self) -> bool:
        """Are sets of features few enough to be summed, where features are not independent given a row?"""
        return self.units == "binary" and self.params.n_components <= MOST_ENUMERATED

    def log_joint(self, rows: VisibleRows) -> Array:
        """log p(z, x) of each of the S sets of features and seen cells of rows, (B, S); see `is_summed`."""
        is_chain, odds = self.reading == "chain", self.prior.log_odds
        return log_joint_of_sets(self.params, self.layout, odds, is_chain, rows, self.totals)

    def set_shares(self, rows: VisibleRows) -> Array:
        """P(z | x) of the S sets of features given the seen cells of rows, (B, S); see `is_summed`."""
        shares: Array = softmax(self.log_joint(rows), axis=1)
        return shares

    def blocks(self, X: Any, missing: Array | None) -> Iterator[tuple[slice, VisibleRows]]:
        """Encoded rows, as many at a time as are worked on at once, with their place."""
        D, wide = X.shape[1], 2**self.params.n_components if self.is_summed else 1
        yield from unlabelled(X, missing).blocks(CELLS * D // max(D, wide))

    def hidden(self, X: Any, missing: Array | None = None) -> Array:
        """E[z h | x] (N, K) for encoded rows; missing cells are integrated out, or filled."""
        out = np.empty((X.shape[0], self.params.n_components))
        for place, rows in self.blocks(X, missing):
            with np.errstate(under="ignore", over="ignore"):
                out[place] = self._hidden(rows)
        return out

    def scores(self, X: Any, missing: Array | None = None) -> Array:
        """Scores (N, C) of encoded rows, one a class, C = 1 for a number; missing cells as in `hidden`."""
        out = np.empty((X.shape[0], len(self.params.votes)))
        for place, rows in self.blocks(X, missing):
            if self.filler.means.size:
                rows = self.filler.filled(self.layout, rows)
            with np.errstate(under="ignore", over="ignore"):
                out[place] = scores(self.params, self.units, self._hidden(rows), rows.X)
        return out

    def _hidden(self, rows: VisibleRows) -> Array:
        """E[z h | x] (B, K), all rows at once."""
        if self.filler.means.size:
            rows = self.filler.filled(self.layout, rows)
        if self.is_summed and (self.reading == "chain" or rows.missing is not None):
            summed: Array = self.set_shares(rows) @ feature_sets(self.params.n_components)
            return summed
        if self.reading == "chain":
            return infer_features(self.params, self.layout, self.prior, rows)
        if (self.params.scale != 1.0).any():
            rows = rows._replace(X=scaled(rows.X, self.params.scale))
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
        means: Array = mean_of(self.layout, a, totals) / self.params.scale
        return means

    def expected(self, X: Array, missing: Array | None) -> Array:
        """E[x] (N, D) given the seen cells of encoded rows, as encoded: over sets of features where these are
        summed, else at their means."""
        if self.filler.means.size or not self.is_summed:
            return self.visible(self.hidden(X, missing))
        out, of_sets = np.empty(X.shape), self.visible(feature_sets(self.params.n_components))
        for place, rows in self.blocks(X, missing):
            out[place] = self.set_shares(rows) @ of_sets
        return out


SATURATED = 0.8
"""Share of saturated activations from which a fit is reported."""

OFF = "almost no row has it"
ON = "almost every row has it"


def component_status(hidden: Array, weight: Array, units: str = "binary") -> tuple[str, ...]:
    """For each unit "active", or why it says nothing, from its activations (N, K) on the training rows.

    Real units have a size of either sign: they are out of use only where it is the same in all rows.
    """
    share = weight / weight.sum()
    use = share @ hidden
    spread = np.sqrt(np.maximum(share @ (hidden * hidden) - use * use, 0.0))
    rows = weight.sum()
    out = []
    centred = (hidden - use) * np.sqrt(share)[:, None]
    alike = np.abs(centred.T @ centred) / np.maximum(np.outer(spread, spread), 1e-12)
    for k in range(hidden.shape[1]):
        rare = units == "binary" and min(use[k], 1.0 - use[k]) * rows < 1.0
        if rare or spread[k] < 1e-3:
            out.append(OFF if use[k] < 0.5 else ON)
        elif any(alike[k, j] > ALIKE and out[j] == ACTIVE for j in range(k)):
            out.append(DUPLICATE)
        else:
            out.append(ACTIVE)
    return tuple(out)


def top_columns(weights: Array, spread: Array, names: tuple[str, ...], k: int) -> list[list[str]]:
    """Names of the k visible units that each feature raises most, in standard deviations."""
    lift = weights * spread[:, None]
    order = np.argsort(-lift, axis=0, kind="stable")[:k]
    return [[names[d] for d in column if lift[d, j] > 0] for j, column in enumerate(order.T)]


def class_means(hidden: Array, weight: Array, labels: Array, n_classes: int) -> tuple[Array, Array]:
    """Mean and standard deviation of each feature in the rows of each class: twice (C, K)."""
    mean, spread = np.zeros((n_classes, hidden.shape[1])), np.zeros((n_classes, hidden.shape[1]))
    for c in range(n_classes):
        chosen = labels == c
        if chosen.any():
            share = weight[chosen] / weight[chosen].sum()
            mean[c] = share @ hidden[chosen]
            spread[c] = np.sqrt(share @ (hidden[chosen] - mean[c]) ** 2)
    return mean, spread


def description(
    status: tuple[str, ...], use: Array, tops: list[list[str]], classes: list[str] | None, most: int = 40
) -> str:
    """How many features are in use and why others are not, then each: mean, class that has it most, columns.

    `use` (K,), `tops` K lists of names, `classes` K names or None. At most `most` features are listed.
    """
    lines = [f"{status.count(ACTIVE)} features in use"]
    lines += [f"{number} not in use: {why}" for why, number in Counter(status).items() if why != ACTIVE]
    for k in range(min(len(use), most)):
        of_class = "" if classes is None else f"  most in {classes[k]}"
        lines.append(f"F{k}  mean {use[k]:.2f}{of_class}  raises {', '.join(tops[k]) or 'nothing'}")
    if len(use) > most:
        lines.append(f"and {len(use) - most} more")
    return "\n".join(lines)


def cell_donors(coder: UnitCoder, rows: VisibleRows, n_views: int) -> Donors | None:
    """Training rows whose cells stand in for missing ones; None of sparse rows, many columns, several views.

    There missing cells, often those of a whole view, are filled by what the others let expect.
    """
    if n_views > 1:
        return None
    by_place: dict[int, list[int]] = {}
    for d, unit in enumerate(coder.units):
        by_place.setdefault(coder.table.places[unit.column], []).append(d)
    if not isinstance(rows.X, np.ndarray) or len(by_place) > MANY_COLUMNS or rows.labels is None:
        return None
    columns = tuple(
        DonorColumn(tuple(own), -1, len(own) == 1 and coder.units[own[0]].kind != "binary")
        for own in by_place.values()
    )
    X = rows.X.astype(np.float64)
    cells = X if rows.missing is None else np.where(rows.missing, np.nan, X)
    return Donors.of_cells(columns, cells, rows.labels.astype(np.float64), rows.weight.astype(np.float64))
