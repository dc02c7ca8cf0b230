"""Training rows that a predictor keeps to compare new ones with: a few as they came, more as encoded.

They are the first distinct rows in canonical order, a random sample that does not depend on the order of the
table. A model that has some says so: `holds_training_rows_`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Float64
from numpy.typing import NDArray
from scipy.sparse import issparse

from nongauss.core.records import persistable
from nongauss.tables import rows
from nongauss.tables.completion import DonorColumn, donor_columns
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.frame import InputTable, read_input
from nongauss.tables.learn import as_source, learn
from nongauss.tables.source import Encode, Source, sample_table

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

N_SHOWN = 16
"""Rows that are kept as they came, as the background of explanations."""

N_ENCODED, MOST_CELLS = 500, 500_000
"""Rows, and their cells, that are kept as encoded, to tell how unusual a new row is."""

N_NEAREST = 5
"""Nearest rows whose mean distance counts."""

_FEWEST_OF_A_RANGE, _FAR = 20, 0.5

FARTHEST = 1e100
"""Rows are taken to be no farther out than this: squares of distances are doubles."""

MOST_WHITENED = 500
"""Encoded columns whose correlations are heeded; of more columns each counts alone."""

_LEAST_SHARE = 0.01
"""Of the identity in the correlation matrix."""


@persistable("estimator.KnownRows")
@dataclass(frozen=True, eq=False)
class KnownRows:
    """`table`: rows as they came, those columns that the encoder reads, `weight` (B,) of each.

    It is None where so few rows would be read otherwise than in the whole table.

    `X` (n, D) encoded rows, their gaps filled, and the `shape` of their distribution.
    """

    encoder: TableEncoder
    table: pd.DataFrame | None
    weight: Float64[np.ndarray, " B"]
    X: Float[np.ndarray, "n D"]
    shape: KnownShape

    @classmethod
    def of(cls, source: Source, encoder: TableEncoder, name: str) -> KnownRows:
        """Of the rows of a source that this encoder reads."""
        n_rows = max(N_SHOWN, min(N_ENCODED, MOST_CELLS // max(1, len(encoder.encoded_names))))
        first = sample_table(source, Encode(encoder, estimator_name=name), n_rows)
        table = _aligned(read_input(first.table, name), encoder, name)
        encoded, missing = encoder.as_scaled_with_gaps(table, name, warn=False)
        encoded = np.clip(encoded, -rows.FARTHEST, rows.FARTHEST)
        shape = KnownShape.of(encoded, first.rows.weight)
        columns = donor_columns(encoder)
        for _ in range(2):  # the second time by correlations of rows that have no holes
            encoded = shape.filled(encoded, missing, columns)
            shape = KnownShape.of(encoded, first.rows.weight)
        n_shown = min(N_SHOWN, len(table))
        shown = table.take(np.arange(n_shown))
        kept = _plain(shown.as_frame().iloc[:, sorted(_read_places(encoder))])
        known = cls(encoder, kept, first.rows.weight[:n_shown], encoded.astype(np.float32), shape)
        return known if known._reads_as(shown, name) else replace(known, table=None)

    def _reads_as(self, shown: InputTable, name: str) -> bool:
        """Are the kept rows read as they were in the whole table, whose other cells tell kinds too?"""
        found, wanted = (
            self.encoder.as_scaled_with_gaps(table, name, warn=False)
            for table in (self.background(shown.labels), shown)
        )
        return np.allclose(found[0], wanted[0], atol=1e-9) and np.array_equal(found[1], wanted[1])

    @property
    def players(self) -> NDArray[np.intp]:
        """Numbers of the input columns of which anything is read, in order."""
        return np.array(sorted(_read_places(self.encoder)), dtype=np.intp)

    def background(self, labels: Any) -> InputTable:
        """The rows as they came, with all columns of the fit: those that are not read are empty."""
        assert self.table is not None
        frame = pd.DataFrame(np.nan, index=self.table.index, columns=pd.RangeIndex(len(labels)))
        for place, name in zip(self.players, self.table.columns, strict=True):
            frame[int(place)] = self.table[name]
        return InputTable(frame, None, tuple(labels))

    def novelty(self, X: Any, name: str) -> FloatArray:
        """The share of the kept rows that are less unusual than each row of X, in [0, 1]: (N,)."""
        table = _aligned(read_input(X, name), self.encoder, name)
        encoded, missing = self.encoder.as_scaled_with_gaps(table, name)
        filled = self.shape.filled(encoded, missing, donor_columns(self.encoder))
        known = self.shape.whitened(self.X.astype(np.float64))
        new = self.shape.whitened(filled)
        own = np.sort(_mean_distance(known, known, leave_one_out=True))
        found = _mean_distance(new, known)
        out = np.searchsorted(own, found * (1.0 - 1e-9), side="left") / len(own)
        out[self._has_unseen(table, missing)] = 1.0
        return out

    def far_outside(self, X: Any, name: str) -> dict[str, BoolArray]:
        """By name of each column of numbers, the rows (N,) that lie far outside the kept rows there.

        Far is half the range of the kept rows beyond it. None of so few kept rows that they have no range.
        """
        if len(self.X) < _FEWEST_OF_A_RANGE:
            return {}
        table = _aligned(read_input(X, name), self.encoder, name)
        encoded, _ = self.encoder.as_scaled_with_gaps(table, name, warn=False)
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        reach = _FAR * (high - low)
        out, place = {}, 0
        for code in self.encoder.columns:
            if code.role == "numeric" and code.sd != 0 and reach[place] > 0:
                cells = encoded[:, place]
                far = (cells < low[place] - reach[place]) | (cells > high[place] + reach[place])
                out[code.name] = far & ~np.isnan(cells)
            place += len(code.encoded_names)
        return out

    def _has_unseen(self, table: InputTable, missing: BoolArray) -> BoolArray:
        """Rows with a label, or a text among numbers, that no training row has: (N,)."""
        out = np.zeros(len(table), dtype=np.bool_)
        places = dict.fromkeys(
            place
            for place, code in zip(self.encoder.places, self.encoder.columns, strict=True)
            if code.encoded_names
        )
        for number, place in enumerate(places):
            out |= missing[:, number] & ~table.column(place).missing
        return out


@persistable("estimator.KnownShape")
@dataclass(frozen=True, eq=False)
class KnownShape:
    """Mean and deviation (D,) of encoded columns, and their correlations shrunk towards none, (D, D).

    R = (1 - a) R_n + a I, a = max(0.01, D / (n + D)); None: of more than `MOST_WHITENED` columns.
    """

    mean: Float64[np.ndarray, " D"]
    sd: Float64[np.ndarray, " D"]
    correlation: Float64[np.ndarray, "D D"] | None

    @classmethod
    def of(cls, X: FloatArray, weight: FloatArray) -> KnownShape:
        """Of encoded rows X (n, D) of these weights (n,)."""
        n, D = X.shape
        share = weight / weight.sum()
        mean = share @ X
        sd = np.sqrt(share @ (X - mean) ** 2)
        sd = np.where(sd > 1e-9, sd, 1.0)
        if D > MOST_WHITENED:
            return cls(mean, sd, None)
        z = (X - mean) / sd
        a = max(_LEAST_SHARE, D / (n + D))
        R = (1.0 - a) * (z * share[:, None]).T @ z
        R[np.diag_indices(D)] = 1.0
        return cls(mean, sd, R)

    def _standardised(self, X: FloatArray) -> FloatArray:
        """z = (x - mean) / sd of encoded rows (N, D), cut off where sums of squares would overflow."""
        with np.errstate(over="ignore"):
            out: FloatArray = np.clip((X - self.mean) / self.sd, -FARTHEST, FARTHEST)
        return out

    def whitened(self, X: FloatArray) -> FloatArray:
        """Encoded rows (N, D) as uncorrelated numbers of about variance 1: R^(-1/2) z."""
        z = self._standardised(X)
        if self.correlation is None:
            return z
        values, vectors = np.linalg.eigh(self.correlation)
        out: FloatArray = z @ (vectors / np.sqrt(values))
        return out

    def filled(self, X: FloatArray, missing: BoolArray, columns: tuple[DonorColumn, ...]) -> FloatArray:
        """Encoded rows (N, D) whose missing input columns (N, B) are expected from the others.

        E[z_m | z_k] = R_mk R_kk^-1 z_k, so that a gap makes no row unusual.
        """
        if self.correlation is None or not missing.any():
            return X
        z = self._standardised(X)
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            named = [place for b in np.flatnonzero(pattern) for place in columns[b].values]
            gone = np.array(named, dtype=np.intp)
            if not len(gone):
                continue
            rows = np.flatnonzero(which.ravel() == number)
            known = np.setdiff1d(np.arange(X.shape[1]), gone)
            R = self.correlation
            z[np.ix_(rows, gone)] = z[np.ix_(rows, known)] @ np.linalg.solve(
                R[np.ix_(known, known)], R[np.ix_(known, gone)]
            )
        out: FloatArray = self.mean + self.sd * z
        return out


def known_rows(source: Source, encoder: Any, name: str) -> KnownRows | None:
    """The rows of a source that a model keeps to compare new ones with; None of a sparse table."""
    return KnownRows.of(source, encoder, name) if isinstance(encoder, TableEncoder) else None


def rows_to_compare(X: Any, y: Any, sample_weight: Any, name: str) -> KnownRows | None:
    """`known_rows` of a table as a user gives it, for a model that has no `TableEncoder` of its own."""
    if issparse(X):
        return None
    source = as_source(X, y, sample_weight, estimator_name=name)
    return known_rows(source, learn(source, name, warn=False).encoder, name)


def _mean_distance(rows: FloatArray, known: FloatArray, leave_one_out: bool = False) -> FloatArray:
    """The mean distance of each row (N, D) from its nearest known ones (n, D): (N,)."""
    n = len(known) - leave_one_out
    k = min(N_NEAREST, n)
    out = np.zeros(len(rows))
    if k == 0:
        return out
    height = max(1, 4_000_000 // max(1, len(known)))
    squares = (known**2).sum(axis=1)
    for start in range(0, len(rows), height):
        own = np.clip(rows[start : start + height], -FARTHEST, FARTHEST)
        distance = (own**2).sum(axis=1)[:, None] - 2.0 * own @ known.T + squares
        if leave_one_out:
            at = np.arange(len(own))
            distance[at, start + at] = np.inf
        nearest = np.partition(distance, k - 1, axis=1)[:, :k]
        out[start : start + height] = np.sqrt(np.maximum(nearest, 0.0)).mean(axis=1)
    return out


def _read_places(encoder: TableEncoder) -> set[int]:
    """Numbers of the input columns of which anything is read."""
    return {
        place
        for place, code in zip(encoder.places, encoder.columns, strict=True)
        if code.role in ("numeric", "labels")
    }


def _aligned(table: InputTable, encoder: TableEncoder, name: str) -> InputTable:
    """A table with the columns of the fit, in their order. Raises InputError."""
    return encoder.aligned(table, name)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of numbers, texts and gaps, such as a file can hold; categories and all else become texts."""
    columns = {}
    for number in range(frame.shape[1]):
        cells = frame.iloc[:, number]
        if isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "iufbMm":
            columns[number] = cells.to_numpy()
        else:
            columns[number] = np.array([_plain_cell(cell) for cell in cells], dtype=object)
    out = pd.DataFrame(columns, index=pd.RangeIndex(len(frame)))
    out.columns = pd.Index([str(name) for name in frame.columns])
    return out


def _plain_cell(cell: Any) -> Any:
    """A number, a text, or None for a gap."""
    if pd.isna(cell):
        return None
    if isinstance(cell, bool | np.bool_):
        return bool(cell)
    if isinstance(cell, np.generic):
        cell = cell.item()
    return cell if type(cell) in (int, float, str) else str(cell)
