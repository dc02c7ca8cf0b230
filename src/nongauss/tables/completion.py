"""What missing cells may be: draws from rows of the training table that are alike in what is known.

A row of the training table is completed once, given its target as well; a new row several times, without.
Several gaps of a row are drawn in turn, each given the others as they stand (chained equations, van Buuren
2018, chapter 4), from the laws of `donor_law`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import NDArray

from nongauss.core.records import persistable
from nongauss.tables.donor_law import ColumnLaw, columns_of, most_correlated, standardised
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.kinds.number import power_of_two
from nongauss.tables.rows import FARTHEST, content_hash, mixed_bits, rounded
from nongauss.tables.source import Encoded, Source, sample

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

MOST_DONORS = 1000
"""Training rows that are kept for their cells."""

MOST_CELLS = 2_000_000
"""Cells of these rows: of wide tables fewer rows are kept."""

N_COMPLETIONS = 20
"""Times that a row with gaps is completed for a prediction."""

N_SWEEPS, FEW_SWEEPS = 4, 2
"""Rounds over the gaps of a row that has several, and those where there are many columns."""

N_TREES, MANY_COLUMNS, FEW_TREES = 10, 100, 1
"""Trees for each column, and those where there are many columns, which see the prediction alone."""


@persistable("tables.DonorColumn")
class DonorColumn(NamedTuple):
    """The encoded columns that one input column becomes: its numbers `values`, and the `flag` of its gaps.

    `flag` is -1 where there is none. `is_number`: a single number, no label and no date.
    """

    values: tuple[int, ...]
    flag: int
    is_number: bool


def donor_columns(encoder: TableEncoder, view: str = "encoded_names") -> tuple[DonorColumn, ...]:
    """The encoded input columns, in the order of `as_scaled_with_gaps`.

    `view`: what names the columns of another view: "rank_names", "one_hot_names", which have no flags.
    """
    found: dict[int, DonorColumn] = {}
    at = 0
    for place, code in zip(encoder.places, encoder.columns, strict=True):
        width = len(getattr(code, view))
        has_flag = view == "encoded_names" and (code.flagged or (code.role == "numeric" and code.gaps))
        values = tuple(range(at, at + width - has_flag))
        flag = at + width - 1 if has_flag else -1
        at += width
        if width and place in found:
            former = found[place]
            found[place] = DonorColumn(former.values + values, max(former.flag, flag), False)
        elif width:
            is_number = code.role == "numeric" or (view == "rank_names" and bool(code.ranks))
            found[place] = DonorColumn(values, flag, is_number)
    return tuple(found.values())


@persistable("tables.Donors")
@dataclass(frozen=True, eq=False)
class Donors:
    """Rows of the training table whose cells stand in for missing ones, and how they are encoded.

    X (n, D) encoded rows without gaps (the flags say where there were some), Y (n, P) their targets, weight
    (n,), and the input columns. `units` (D,): powers of two by which the cells were divided, None for 1.
    """

    X: Float[np.ndarray, "n D"]
    Y: Float[np.ndarray, "n P"]
    weight: Float64[np.ndarray, " n"]
    columns: tuple[DonorColumn, ...]
    units: Float64[np.ndarray, " D"] | None = None

    def check_fields(self) -> None:
        """Raises ValueError for columns of cells that are not there."""
        of_cells = [place for column in self.columns for place in (*column.values, max(column.flag, 0))]
        if not all(0 <= place < self.X.shape[1] for place in of_cells) or not len(self.X):
            raise ValueError("donors of other columns")

    @classmethod
    def of(cls, encoder: Any, rows: Encoded) -> Donors | None:
        """The first of these rows, which are in canonical order, a random one; None for a sparse table."""
        if not isinstance(encoder, TableEncoder):
            return None
        most = max(1, min(MOST_DONORS, MOST_CELLS // max(1, rows.X.shape[1])))
        X, Y, weight = rows.X[:most].copy(), _finite(rows.Y[:most]), rows.weight[:most].copy()
        return cls(X, Y, weight, donor_columns(encoder))

    @classmethod
    def of_cells(
        cls,
        columns: tuple[DonorColumn, ...],
        cells: FloatArray,
        labels: FloatArray,
        weight: FloatArray,
    ) -> Donors:
        """Donors from cells (N, D) with NaN for gaps, which are drawn given the labels (N,) as well.

        Cells may be of any finite size. The rows are chosen by their content: their order in the table is
        irrelevant.
        """
        units = units_of(cells)
        cells = cells / units
        known, Y = rounded(np.nan_to_num(cells)), rounded(labels[:, None])
        order = np.argsort(np.where(weight > 0, _hashes(known, Y), np.uint64(2**64 - 1)), kind="stable")
        most = max(1, min(MOST_DONORS, MOST_CELLS // max(1, cells.shape[1]), int((weight > 0).sum())))
        first = order[:most]
        own = cls(np.nan_to_num(cells[first]), Y[first], weight[first], columns, units)
        return own.settled(own.missing_of(cells[first]))

    def missing_of(self, cells: FloatArray) -> BoolArray:
        """Where cells (N, D) that are NaN for gaps have some, by input column: (N, B)."""
        gaps = [np.isnan(cells[:, list(column.values)]).any(axis=1) for column in self.columns]
        return np.stack(gaps, axis=1) if gaps else np.zeros((len(cells), 0), dtype=np.bool_)

    def completions(self, X: FloatArray, missing: BoolArray, n: int = N_COMPLETIONS) -> FloatArray:
        """Rows X (N, D) whose cells `missing` (N, B) are drawn n times given the others: (n, N, D)."""
        units = 1.0 if self.units is None else self.units
        with np.errstate(over="ignore"):
            own = X / units
        far = np.abs(own) > FARTHEST
        drawn = _drawn(
            self._laws, self.X, self.weight, np.clip(own, -FARTHEST, FARTHEST), missing, X[:, :0], n
        )
        return np.where(far, X, units * drawn) if far.any() else units * drawn

    def completed(self, rows: Encoded) -> Encoded:
        """Training rows whose gaps, told by their flags, are drawn once, given the target as well."""
        missing = self.gaps_of(rows.X)
        some = np.flatnonzero(missing.any(axis=1))
        if not len(some):
            return rows
        X, Y = rows.X.copy(), _finite(rows.Y[some]).astype(np.float64)
        laws, own = self._laws_given_target, rows.X[some].astype(np.float64)
        X[some] = rounded(_drawn(laws, self.X, self.weight, own, missing[some], Y, 1)[0])
        return rows._replace(X=X)

    def settled(self, missing: BoolArray | None = None) -> Donors:
        """These donors, whose own gaps are only filled by the mean as yet, with draws in their places.

        `missing` (n, B): these gaps; None: those that are flagged.
        """
        missing = self.gaps_of(self.X) if missing is None else missing
        hashes = _hashes(rounded(self.X), self.Y)
        numbers = np.flatnonzero(missing.any(axis=0))
        now, Y = self.X.astype(np.float64), self.Y.astype(np.float64)
        for sweep in range(1 if len(numbers) == 1 else self.n_sweeps - 1):
            for j in numbers:
                law = self._law(int(j), now, ~missing[:, j], given_target=True, n_trees=1)
                if law is None:
                    continue
                rows = np.flatnonzero(missing[:, j])
                uniform = _uniform(hashes[rows], int(j), sweep)
                Z = columns_of(now, Y, rows, law.given)
                now[np.ix_(rows, law.values)] = law.draw(Z, np.zeros(len(rows), np.intp), uniform)
        return replace(self, X=now.astype(self.X.dtype))

    def gaps_of(self, X: NDArray[Any]) -> BoolArray:
        """Where training rows X (N, D) have gaps, by their flags: (N, B)."""
        out = np.zeros((len(X), len(self.columns)), dtype=np.bool_)
        for j, column in enumerate(self.columns):
            if column.flag >= 0:
                out[:, j] = X[:, column.flag] > 0
        return out

    @property
    def has_many(self) -> bool:
        """Are there so many columns that each may cost only a little?"""
        return len(self.columns) > MANY_COLUMNS

    @property
    def n_sweeps(self) -> int:
        """Rounds over the gaps of a row that has several."""
        return FEW_SWEEPS if self.has_many else N_SWEEPS

    @cached_property
    def _standard(self) -> NDArray[np.float32]:
        """All columns and the targets, standardised: what is most correlated is looked for there."""
        return standardised(np.hstack([self.X, self.Y]).astype(np.float64), self.weight)

    @cached_property
    def _laws(self) -> _Laws:
        return _Laws(self, given_target=False)

    @cached_property
    def _laws_given_target(self) -> _Laws:
        return _Laws(self, given_target=True)

    def _law(
        self, number: int, X: NDArray[Any], known: BoolArray, given_target: bool, n_trees: int
    ) -> ColumnLaw | None:
        """The law of one column given the others, from those donors X whose cell is `known` (n,)."""
        column = self.columns[number]
        if not column.values or not known.any():
            return None
        own = [*column.values] + ([column.flag] if given_target and column.flag >= 0 else [])
        Y = self.Y if given_target else self.Y[:, :0]
        values = np.array(column.values, dtype=np.intp)
        given = np.setdiff1d(np.arange(X.shape[1] + Y.shape[1]), own)
        given = most_correlated(self._standard[:, : X.shape[1] + Y.shape[1]], values, given, Y.shape[1])
        rows = np.flatnonzero(known)
        Z, cells = columns_of(X, Y, rows, given), X[np.ix_(rows, values)].astype(np.float64)
        return ColumnLaw.learn(
            Z, cells, self.weight[rows], values, column.is_number, given, n_trees, not self.has_many
        )

    def __getstate__(self) -> dict[str, Any]:
        """The record itself, without what is learned from it when it is first needed."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


class _Laws:
    """The laws of the columns of some donors, each learned when it is first asked for."""

    def __init__(self, donors: Donors, given_target: bool) -> None:
        self._donors, self._given_target = donors, given_target
        self._n_trees = FEW_TREES if donors.has_many else N_TREES
        self.n_sweeps = donors.n_sweeps
        self._known: dict[int, ColumnLaw | None] = {}

    def __getitem__(self, number: int) -> ColumnLaw | None:
        if number not in self._known:
            self._known[number] = self._learned(number)
        return self._known[number]

    def _learned(self, number: int) -> ColumnLaw | None:
        """With the target, only donors tell whose cell was there; without, the flag tells the kinds apart."""
        donors, known = self._donors, np.ones(len(self._donors.X), dtype=np.bool_)
        flag = donors.columns[number].flag
        if self._given_target and flag >= 0:
            known = ~(donors.X[:, flag] > 0)
        return donors._law(number, donors.X, known, self._given_target, self._n_trees)

    @property
    def columns(self) -> tuple[DonorColumn, ...]:
        """All columns."""
        return self._donors.columns

    @property
    def n_trees(self) -> int:
        """The number of trees of each conditional distribution."""
        return self._n_trees


def completed_rows(encoder: Any, rows: Source) -> Source:
    """Rows of a training table, in each of which the gaps are drawn given the row's target and other cells.

    A table without gaps is given back as it is. A row's draws depend on the row, and on the donors alone.
    """
    if not isinstance(encoder, TableEncoder) or all(c.flag < 0 for c in donor_columns(encoder)):
        return rows
    first = sample(rows, MOST_DONORS)
    donors = Donors.of(encoder, first.rows)
    assert donors is not None
    return rows.map(_complete, donors.settled())


def units_of(cells: FloatArray) -> FloatArray:
    """The power of two next to the largest absolute value of each column of cells (N, D): (D,)."""
    known = np.where(np.isfinite(cells), cells, 0.0)
    sizes = zip(known.min(axis=0, initial=0.0), known.max(axis=0, initial=0.0), strict=True)
    return np.array([power_of_two(float(low), float(high)) for low, high in sizes])


def _finite(Y: NDArray[np.float32]) -> NDArray[np.float32]:
    """Targets as columns to predict from: an open end of a censored one says nothing, which is 0."""
    return np.nan_to_num(Y, nan=0.0, posinf=0.0, neginf=0.0)


def _complete(part: Encoded, donors: Donors) -> Encoded:
    return donors.completed(part)


def _drawn(
    laws: _Laws,
    donors: NDArray[Any],
    weight: FloatArray,
    X: FloatArray,
    missing: BoolArray,
    Y: FloatArray,
    n: int,
) -> FloatArray:
    """Rows X (N, D) whose missing cells (N, B) are drawn n times: (n, N, D). Y (N, P) is given as well.

    The first draw of a row with several gaps is a whole donor; then its gaps are drawn one after the other.
    """
    n_rows = len(X)
    now = np.tile(X, (n, 1))
    hashes = _hashes(rounded(X), rounded(Y))
    several = missing.sum(axis=1) > 1
    number = np.repeat(np.arange(n), n_rows)  # of the completion
    repeated = np.tile(Y, (n, 1))
    trees = laws.n_trees
    first = 0 if n >= trees else np.tile((hashes % np.uint64(trees)).astype(np.intp), n)
    tree = (number + first) % trees
    _begin_with_donors(
        laws.columns, donors, weight, now, np.tile(missing, (n, 1)), np.tile(several, n), hashes
    )
    for sweep in range(laws.n_sweeps if several.any() else 1):
        for j in np.flatnonzero(missing.any(axis=0)):
            rows = np.flatnonzero(missing[:, j] & (several | (sweep == 0)))
            law = laws[int(j)]
            if law is None or not len(rows):
                continue
            uniform = _even(hashes[rows], int(j), sweep, n).ravel()
            own = (np.arange(n)[:, None] * n_rows + rows).ravel()
            given = columns_of(now, repeated, own, law.given)
            drawn = law.draw(given, tree[own], uniform)
            now[np.ix_(own, law.values)] = drawn
    return now.reshape(n, n_rows, X.shape[1])


def _begin_with_donors(
    columns: Sequence[DonorColumn],
    donors: NDArray[Any],
    weight: FloatArray,
    now: FloatArray,
    missing: BoolArray,
    several: BoolArray,
    hashes: NDArray[np.uint64],
) -> None:
    """Fill the gaps of rows that have several by the cells of one donor for each, by its weight."""
    rows = np.flatnonzero(several)
    if not len(rows):
        return
    n = len(now) // len(hashes)
    number = rows // len(hashes)
    uniform = (number + _uniform(hashes[rows % len(hashes)], -1, 0)) / n
    mass = np.cumsum(weight)
    donor = np.minimum(np.searchsorted(mass, uniform * mass[-1], side="right"), len(donors) - 1)
    for j, column in enumerate(columns):
        own = missing[rows, j]
        if own.any() and column.values:
            now[np.ix_(rows[own], column.values)] = donors[np.ix_(donor[own], column.values)]


def _even(hashes: NDArray[np.uint64], column: int, sweep: int, n: int) -> FloatArray:
    """n numbers in [0, 1) for each row, one in each n-th of it, in random order: (n, R)."""
    order = np.argsort([_uniform(hashes, column, (i + 1) * 1_000 + sweep) for i in range(n)], axis=0)
    return (order + _uniform(hashes, column, sweep)) / n


def _hashes(X: NDArray[np.float32], Y: NDArray[np.float32]) -> NDArray[np.uint64]:
    """A number for each row that depends on its content alone: its draws depend on no other row."""
    return content_hash(np.ascontiguousarray(X), np.ascontiguousarray(Y))


def _uniform(hashes: NDArray[np.uint64], column: int, sweep: int) -> FloatArray:
    """Numbers in [0, 1) that follow from a row's hash, the number of a column and that of a sweep."""
    salt = np.uint64((int(column) + 2) * 1_000_003 + sweep * 7_919)
    out: FloatArray = mixed_bits(hashes ^ mixed_bits(np.full(1, salt))).astype(np.float64) / 2.0**64
    return np.minimum(out, 1.0 - 2.0**-53)
