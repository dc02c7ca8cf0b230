r"""What each column adds to a prediction: Shapley values against a background of training rows.

With v(S) the mean, over the background's rows, of the prediction of a row whose columns in S are its own and
whose others are the background row's, column j adds

    phi_j = sum over S without j of |S|! (D - |S| - 1)! / D! (v(S with j) - v(S)),

and sum_j phi_j = prediction - base, base = v({}) (Shapley 1953; Strumbelj and Kononenko, Knowledge and
Information Systems 41, 2014). Of few columns all S are visited. Of more, columns change over in random
orders, forwards and backwards, for each row of the background, or for some drawn where that would take too
long: the sum stays exact, and each phi_j has an error that the orders, or the draws, tell. Predictions on the
way may then be `roughly` those of the model, since many of them are averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.tables.column import Column
from nongauss.tables.frame import InputTable

if TYPE_CHECKING:
    from nongauss.predictive.distribution import FloatArray

MOST_EXACT = 10
"""Columns of which all sets may be visited."""

MOST_PREDICTIONS = 500_000
"""Predictions that visiting all sets may take, of a model that predicts fast; of more, orders are drawn."""

WITH_GAPS = 5
"""Predictions of a row without gaps that one of a row with some counts for."""

MOST_IN_ORDERS = 50_000
"""Predictions of orders for every row of the background ; of more, each row has some."""

FEWEST_DRAWN = 2
"""Rows of the background that each row is compared with at least: two tell how much they differ."""

_CHUNK = 20_000
"""Rows that are predicted at once."""

Say = Callable[[InputTable], "FloatArray"]
"""Predictions (n, K) of the rows of a table."""

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]


class Explanation(NamedTuple):
    """Base (K,), prediction (N, K), what each column adds (N, D, K), its error, how it was found."""

    base: FloatArray
    prediction: FloatArray
    adds: FloatArray
    error: FloatArray
    method: str


class _Mixer(NamedTuple):
    """A table whose first `n_rows` rows are to be explained and whose others are the background's (B,).

    `players`: numbers of the columns that a prediction may depend on. `weight` (B,) sums to 1.
    """

    table: InputTable
    n_rows: int
    weight: FloatArray
    players: IntArray
    say: Say

    def predicted(self, row: IntArray, other: IntArray, own: BoolArray) -> FloatArray:
        """Predictions (n, K) of rows `row` (n,) with all columns not `own` (n, players) of rows `other`."""
        found = []
        for start in range(0, len(row), _CHUNK):
            some = slice(start, start + _CHUNK)
            places = np.repeat(row[some, None], self.table.shape[1], axis=1)
            there = (self.n_rows + other[some])[:, None]
            places[:, self.players] = np.where(own[some], places[:, self.players], there)
            found.append(self.say(dealt(self.table, places)))
        return np.concatenate(found)


def explained(
    say: Say, table: InputTable, background: InputTable, weight: FloatArray, players: IntArray, **how: Any
) -> Explanation:
    """What the columns `players` add to `say` of each row of a table, against those of a background.

    `n_permutations`: orders for each row and row of the background, None: all sets of few columns, or two.
    `seed`: of the orders. `roughly`: predictions that come fast and are right on average, for those that
    orders visit on the way; None: `say`. `cost`: of a prediction, in those of a model that predicts fast.
    """
    mixer = _Mixer(joined(table, background), len(table), weight / weight.sum(), players, say)
    n, D, B = len(table), len(players), len(weight)
    prediction = say(table)
    every = np.zeros(B, dtype=np.intp)
    by_other = mixer.predicted(every, np.arange(B), np.zeros((B, D), dtype=np.bool_))
    base = mixer.weight @ by_other
    asked, on_the_way = how["n_permutations"], mixer._replace(say=how.get("roughly") or say)
    few = D <= MOST_EXACT and n * B * 2**D * how.get("cost", 1) <= MOST_PREDICTIONS
    if asked is None and (few or D <= 2):
        adds, error = _over_sets(mixer, prediction, base), np.zeros((n, D, prediction.shape[1]))
        method = f"exact: all sets of {D} columns, {B} rows of background"
    elif asked is None and (few_drawn := _n_drawn(n, D)) < B:
        adds, error = _over_draws(on_the_way, prediction, by_other, few_drawn, how["seed"])
        method = (
            f"{2 * few_drawn} orders of {D} columns for each row, by {few_drawn} rows of background drawn"
        )
    else:
        pairs = 1 if asked is None else -(-int(asked) // 2)
        adds, error = _over_orders(on_the_way, prediction, by_other, pairs, how["seed"])
        method = f"{2 * pairs} orders of {D} columns for each of {B} rows of background"
    return Explanation(base, prediction, adds, error, method)


def _over_sets(mixer: _Mixer, prediction: FloatArray, base: FloatArray) -> FloatArray:
    """phi (N, D, K) by all sets S of columns, whose bits are their numbers."""
    n, K = prediction.shape
    D, B = len(mixer.players), len(mixer.weight)
    sets = np.arange(2**D)
    own = (sets[:, None] >> np.arange(D)) & 1 == 1
    inner = np.arange(1, 2**D - 1)
    out = np.zeros((n, D, K))
    size = own.sum(axis=1)
    height = max(1, _CHUNK // max(1, B * len(inner)))
    for start in range(0, n, height):
        rows = np.arange(start, min(start + height, n))
        value = np.empty((len(rows), 2**D, K))
        value[:, 0], value[:, -1] = base, prediction[rows]
        if len(inner):
            shape = len(rows), len(inner), B
            row, which, other = (part.ravel() for part in np.indices(shape))
            found = mixer.predicted(rows[row], other, own[inner[which]]).reshape(*shape, K)
            value[:, inner] = np.einsum("nsbk,b->nsk", found, mixer.weight)
        for j in range(D):
            without = np.flatnonzero(~own[:, j])
            share = np.array([1.0 / (D * comb(D - 1, int(s))) for s in size[without]])
            out[rows, j] = np.einsum("s,nsk->nk", share, value[:, without | (1 << j)] - value[:, without])
    return out


def _over_orders(
    mixer: _Mixer, prediction: FloatArray, by_other: FloatArray, pairs: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """phi and its standard error (N, D, K) by random orders and their reverses, for each background row.

    Of a pair of orders with the contributions a and b the mean is taken; (a - b)^2 / 4 is its variance where
    a and b are independent, and more than that where, as here, they make up for each other.
    """
    rng = np.random.default_rng(seed)
    n, K = prediction.shape
    D = len(mixer.players)
    adds, variance = np.zeros((n, D, K)), np.zeros((n, D, K))
    for b, share in enumerate(mixer.weight):
        for _ in range(pairs):
            order = rng.permutation(D)
            first, second = (_along(mixer, prediction, by_other[b], b, way) for way in (order, order[::-1]))
            adds += share / pairs * 0.5 * (first + second)
            variance += (share / pairs) ** 2 * 0.25 * (first - second) ** 2
    return adds, np.sqrt(variance)


def _n_drawn(n: int, D: int) -> int:
    """Rows of the background with which each of n rows of D columns is compared."""
    return max(FEWEST_DRAWN, MOST_IN_ORDERS // max(1, n * 2 * (D - 1)))


def _over_draws(
    mixer: _Mixer, prediction: FloatArray, by_other: FloatArray, n_drawn: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """phi and its standard error (N, D, K) by a few rows of the background, drawn for each row by weight.

    What column j of row n adds against background row b is a_nj + beta_bj plus what the two do together. The
    differences of a row's draws give beta by least squares, which is taken off each draw and its mean over
    the background added. So what does not depend on both is exact, and so is the sum over columns, which is
    the prediction of n less that of b. The error is that of a mean of independent draws of the rest.
    """
    rng = np.random.default_rng(seed)
    n, K = prediction.shape
    D, B = len(mixer.players), len(mixer.weight)
    adds, is_other = np.empty((n_drawn, n, D * K)), np.zeros((n_drawn, n, B))
    for number in range(n_drawn):
        other = rng.choice(B, size=n, p=mixer.weight)
        order = rng.permutation(D)
        ways = [_along(mixer, prediction, by_other[other], other, way) for way in (order, order[::-1])]
        adds[number] = 0.5 * (ways[0] + ways[1]).reshape(n, D * K)
        is_other[number, np.arange(n), other] = 1.0
    design, wanted = (part - part.mean(axis=0) for part in (is_other, adds))
    beta = np.linalg.lstsq(design.reshape(-1, B), wanted.reshape(-1, D * K), rcond=None)[0]
    adds -= is_other @ (beta - mixer.weight @ beta)
    error: FloatArray = adds.std(axis=0, ddof=1) / np.sqrt(n_drawn)
    return adds.mean(axis=0).reshape(n, D, K), error.reshape(n, D, K)


def _along(
    mixer: _Mixer, prediction: FloatArray, from_: FloatArray, b: int | IntArray, order: IntArray
) -> FloatArray:
    """What each column adds (N, D, K) when the columns change over in this order from background row b.

    b: of all rows, or of each (N,).
    """
    n, K = prediction.shape
    D = len(order)
    value = np.empty((n, D + 1, K))
    value[:, 0], value[:, D] = from_, prediction
    if D > 1:
        own = np.zeros((D - 1, D), dtype=np.bool_)
        for step in range(1, D):
            own[step - 1, order[:step]] = True
        row, taken = np.repeat(np.arange(n), D - 1), np.tile(np.arange(D - 1), n)
        found = mixer.predicted(row, np.broadcast_to(b, n)[row], own[taken])
        value[:, 1:D] = found.reshape(n, D - 1, K)
    out = np.empty((n, D, K))
    out[:, order] = np.diff(value, axis=1)
    return out


# ------------------------------------------------------------ tables


def dealt(table: InputTable, rows: IntArray) -> InputTable:
    """A table whose column j has the cells of the rows `rows[:, j]` of this one; nothing is decoded again."""
    columns = {place: table.column(place).take(rows[:, place]) for place in range(table.shape[1])}
    nothing = np.broadcast_to(np.array(np.nan), rows.shape)
    return InputTable(nothing, table.names, table.labels, {}, columns)


def joined(first: InputTable, second: InputTable) -> InputTable:
    """The rows of two tables with the same columns, decoded, one table below the other."""
    columns = {place: _below(first.column(place), second.column(place)) for place in range(first.shape[1])}
    nothing = np.broadcast_to(np.array(np.nan), (len(first) + len(second), first.shape[1]))
    return InputTable(nothing, first.names, first.labels, {}, columns)


def _below(first: Column, second: Column) -> Column:
    """The cells of two columns as one; a column without a cell takes the other's kind."""
    if first.missing.all():
        first = _empty_like(second, first.n_rows)
    elif second.missing.all():
        second = _empty_like(first, second.n_rows)
    if (first.values is None) != (second.values is None) or first.kind != second.kind:
        first, second = first.as_labels(), second.as_labels()
    values = codes = None
    levels = first.levels
    if first.values is not None and second.values is not None:
        values = np.concatenate([first.values, second.values])
    if first.codes is not None and second.codes is not None:
        levels = tuple(dict.fromkeys(first.levels + second.levels))
        place = {level: number for number, level in enumerate(levels)}
        lookup = np.array([*(place[level] for level in second.levels), -1], dtype=np.intp)
        codes = np.concatenate([first.codes, lookup[second.codes]])
    ranks = first.ranks if levels == first.levels else ()
    return replace(first, values=values, codes=codes, levels=levels if codes is not None else (), ranks=ranks)


def _empty_like(column: Column, n_rows: int) -> Column:
    """A column of gaps of the same kind."""
    values = None if column.values is None else np.full(n_rows, np.nan)
    codes = None if column.codes is None else np.full(n_rows, -1, dtype=np.intp)
    return replace(column, values=values, codes=codes)
