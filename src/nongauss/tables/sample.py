"""Encoded rows, and samples of them in canonical order that do not depend on where the rows are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.tables.frame import n_rows_of, take_rows
from nongauss.tables.rows import canonical_rows
from nongauss.tables.source import Part, Source, naming, weight_of
from nongauss.tables.sparse import SparseRows, SparseTable, joined


class Encoded(NamedTuple):
    """Rows as models take them: X (N, D) and Y (N, P) float32, weight (N,) float64 and positive."""

    X: NDArray[np.float32]
    Y: NDArray[np.float32]
    weight: NDArray[np.float64]


ReadPart = Callable[[Part, NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class Encode:
    """A `Part` as `Encoded` rows: the step of a source that a model learns from.

    `encoder`: a `TableEncoder` (whose `as_scaled` is taken) or a `SparseEncoder` (rows `joined`), or any
    other with `encoded_names` whose `as_scaled(X, estimator_name, warn)` gives a matrix. `read(part, weight)`
    gives the target as numbers (N, P), P being `n_targets`; None: no target. `factors` (D,) of the encoded
    columns. Rows of weight 0 are left out.
    """

    encoder: Any
    read: ReadPart | None = None
    estimator_name: str = "this estimator"
    factors: NDArray[np.float64] | None = None
    n_targets: int = 1

    def __call__(self, part: Part) -> Encoded:
        """The rows. Raises InputError naming the part."""
        found: Encoded = naming(part, partial(self._rows, part))
        return found

    def _rows(self, part: Part) -> Encoded:
        n_rows = n_rows_of(part.X)
        if not n_rows:
            widths = len(self.encoder.encoded_names), 0 if self.read is None else self.n_targets
            nothing = [np.zeros((0, width), np.float32) for width in widths]
            return Encoded(nothing[0], nothing[1], np.zeros(0))
        weight = weight_of(part)
        X = self._cells(part.X)
        Y = np.zeros((n_rows, 0)) if self.read is None else self.read(part, weight)
        kept = weight > 0
        if not kept.all():
            X, Y, weight = X[kept], Y[kept], weight[kept]
        return Encoded(_rounded(X), _rounded(Y), weight)

    def _cells(self, X: Any) -> NDArray[Any]:
        """The encoded matrix (N, D), in float32 where nothing more is computed from it."""
        table = X.matrix if isinstance(X, SparseTable) else X
        found = self.encoder.as_scaled(table, self.estimator_name, warn=False)
        if isinstance(found, SparseRows):
            return joined(found)
        out: NDArray[Any] = found if self.factors is None else found * self.factors
        return out


def _rounded(values: NDArray[Any]) -> NDArray[np.float32]:
    """A float32 copy, with -0.0 turned into 0.0."""
    out = np.array(values, dtype=np.float32, order="C")
    out += np.float32(0.0)
    return out


@dataclass(frozen=True)
class Sample:
    """The first `most` distinct rows in canonical order (None: all), weights added up; two add to one.

    That order is by a hash of the row's content: these rows are a random sample, and the same wherever the
    rows are and however they are cut into parts. `table`, if not None, has the same rows as they came.
    `checksum` is of all rows, these and the others. `order`: for each encoded row its number among all
    distinct rows; it is there for a sample of one part.
    """

    rows: Encoded
    most: int | None
    table: Any = None
    checksum: int = 0
    order: NDArray[np.int64] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, rows: Encoded, most: int | None, table: Any = None) -> Sample:
        """Of some rows."""
        found = canonical_rows(rows.X, rows.Y, rows.weight)
        if table is not None:
            kept = np.flatnonzero(found.order >= 0)
            first = kept[np.unique(found.order[kept], return_index=True)[1]][:most]
            table = take_rows(table, first)
        own = Encoded(found.X[:most], found.Y[:most], found.weight[:most])
        return cls(own, most, table, found.checksum, found.order)

    def __add__(self, other: Sample) -> Sample:
        mine, its = self.rows, other.rows
        X, Y = np.concatenate([mine.X, its.X]), np.concatenate([mine.Y, its.Y])
        both = Encoded(X, Y, np.concatenate([mine.weight, its.weight]))
        table: Any = None
        if self.table is not None:
            tables: list[Any] = [self.table, other.table]
            table = pd.concat(tables) if hasattr(self.table, "iloc") else np.concatenate(tables)
        checksum = (self.checksum + other.checksum) % 2**64
        return replace(Sample.of(both, self.most, table), checksum=checksum, order=None)

    @property
    def is_all(self) -> bool:
        """Is no row of the table left out?"""
        return self.most is None or len(self.rows.weight) < self.most

    def places(self, weight: NDArray[np.float64]) -> NDArray[np.int64]:
        """For each row of a table in memory, its number among the distinct rows; -1 for those of weight 0.

        `weight` (N,) are the weights of the table's rows.
        """
        assert self.order is not None
        out = np.full(len(weight), -1, dtype=np.int64)
        out[weight > 0] = self.order
        return out


def first_rows(part: Encoded, most: int | None) -> Sample | None:
    """`Sample` of a part; None of one without rows."""
    return Sample.of(part, most) if len(part.weight) else None


def sample(rows: Source, most: int | None) -> Sample:
    """The first `most` distinct rows in canonical order of a source of `Encoded` rows; see `Sample`.

    A table in memory is its own sample, however many rows it has.
    """
    found: Sample = rows.sum(first_rows, None if rows.in_memory else most)
    return found


def sample_table(source: Source, encode: Encode, most: int | None) -> Sample:
    """The same of the rows as they came, told apart by their encoding, in memory as well: `table`.

    `rows.weight` are their weights; the table is an `InputTable` or a frame of pandas.
    """
    found: Sample = source.sum(_first_of_table, encode, most)
    return found


def _first_of_table(part: Part, encode: Encode, most: int | None) -> Sample | None:
    if not n_rows_of(part.X):
        return None
    kept = np.flatnonzero(weight_of(part) > 0)
    return Sample.of(encode(part), most, take_rows(part.X, kept))
