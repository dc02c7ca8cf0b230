"""Rows in canonical form: rounded to float32, without weight-0 rows, equal rows merged, ordered by content.

After this a weight of 2 is the row twice, a weight of 0 is the row gone, and the order of the rows in the
user's table no longer matters, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nongauss.core.errors import InputError
from nongauss.tables.column import without_mask

if TYPE_CHECKING:
    import pandas as pd

CHUNK = 8192  # rows handled at once: small enough for the cache, large enough for vector speed


@dataclass(frozen=True)
class CanonicalRows:
    """Distinct rows. X (N, D) and Y (N, P) float32, weight (N,) float64 and positive.

    `order` has one entry for each original row: its index in X and Y, or -1 if its weight was 0. `checksum`
    is of the original rows and their weights, in any order; those of two tables add up modulo 2**64.
    """

    X: NDArray[np.float32]
    Y: NDArray[np.float32]
    weight: NDArray[np.float64]
    order: NDArray[np.int64]
    checksum: int


@dataclass(frozen=True)
class Counted:
    """Rows of weight above 0, their total weight, and whether all weights are whole numbers."""

    rows: int
    weight: float
    whole: bool

    @classmethod
    def of(cls, weight: NDArray[np.float64]) -> Counted:
        """The count of rows with these weights, (N,)."""
        above = weight[weight > 0]
        return cls(len(above), float(above.sum()), bool((above == np.round(above)).all()))

    def __add__(self, other: Counted) -> Counted:
        return Counted(self.rows + other.rows, self.weight + other.weight, self.whole and other.whole)

    @property
    def n_rows(self) -> float:
        """Number of rows, of which whole weights are repetitions."""
        return self.weight if self.whole else float(self.rows)


FARTHEST = 2.0**50
"""Standardised cells are taken to be no farther out than this: float32 has room for their products."""

LARGEST_WEIGHT = 1e100
"""Squares and sums of weights up to here are numbers in 64 bits."""


def validate_weight(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Weights as float64 (n_rows,): None gives ones, a single number is repeated.

    Raises: InputError for a wrong length or shape, NaN or infinity, a negative weight, one above 1e100, none
    above 1e-100.
    """
    weight = read_weight(sample_weight, n_rows)
    if 0.0 < weight.max(initial=0.0) < 1.0 / LARGEST_WEIGHT:
        raise InputError(
            f"The largest sample_weight is {weight.max():g}, whose square is not a number in 64 bits; give "
            f"all weights in larger units, so that the largest is at least {1.0 / LARGEST_WEIGHT:g}."
        )
    if not weight.any():
        raise InputError(
            "All entries of sample_weight are zero; sample weights must contain at least one non-zero number."
        )
    return weight


def read_weight(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Weights as `validate_weight`, but all may be zero: for one part of a table."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weight = np.array(without_mask(sample_weight), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"sample_weight must be numbers, one for each row: {error}.") from error
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        raise InputError(
            f"Sample weights must be 1D array or scalar, got {weight.ndim}D array; "
            f"give one weight for each of the {n_rows} rows."
        )
    if weight.shape != (n_rows,):
        raise InputError(
            f"sample_weight.shape == {weight.shape}, expected ({n_rows},)! Give one weight for each row."
        )
    too_large = weight > LARGEST_WEIGHT
    if np.isfinite(weight).all() and too_large.any():
        row = int(np.argmax(too_large))
        raise InputError(
            f"sample_weight is {weight[row]:g} in row {row} (rows counted from 0), whose square is not a "
            f"number in 64 bits with others; divide all weights so that they are at most {LARGEST_WEIGHT:g}."
        )
    for bad, what in ((~np.isfinite(weight), "NaN or infinite"), (weight < 0, "negative")):
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"sample_weight is {what} in row {row} ({weight[row]:g}, rows counted from 0); "
                "weights must be finite and at least 0."
            )
    return weight


def canonical_rows(X: NDArray[Any], Y: NDArray[Any], weight: NDArray[np.float64]) -> CanonicalRows:
    """Round X (N, D) and Y (N, P) to float32, drop weight-0 rows, merge equal rows, order them by content.

    float32 rounds away the noise of about 1e-15 which a change of units leaves in standardised values. The
    order is that of a 64-bit hash of the row, so it is arbitrary but the same for the same set of rows.
    """
    kept = np.flatnonzero(weight > 0)
    whole = len(kept) == len(weight)
    x, y = (rounded(block if whole else block[kept]) for block in (X, Y))
    kept_weight = np.asarray(weight, dtype=np.float64)[kept]
    hashes = content_hash(x, y)
    sort = np.lexsort((kept_weight, hashes))  # by weight inside equal rows: their sum is then repeatable
    sort, first = _settle_ties(sort, hashes[sort], x, y, kept_weight)
    group = np.cumsum(first) - 1
    order = np.full(len(weight), -1, dtype=np.int64)
    order[kept[sort]] = group
    chosen = sort[first]
    return CanonicalRows(
        X=x[chosen],
        Y=y[chosen],
        weight=np.bincount(group, weights=kept_weight[sort]).astype(np.float64),
        order=order,
        checksum=int((hashes * kept_weight.view(np.uint64)).sum()),
    )


def rounded(values: NDArray[Any]) -> NDArray[np.float32]:
    """A float32 copy in C order, with -0.0 turned into 0.0."""
    out = np.array(values, dtype=np.float32, order="C")
    out += np.float32(0.0)
    return out


_DIGITS = (9, 8, 7, 6)
"""Digits that tell all numbers in single precision apart, and fewer, down to those that it keeps of any."""


def widened(values: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as float64; one in single precision becomes the shortest decimal that it stands for.

    So a table of 0.1 and 0.7 is the same table in single precision, to the last bit, and so is a fit to it.
    """
    exact = np.asarray(values.astype(np.float64, copy=False))
    if values.dtype != np.float32:
        return exact
    out = exact.copy()
    broken = np.isfinite(exact) & (exact != np.rint(exact))
    exact, own = exact[broken], values[broken]
    order = np.floor(np.log10(np.abs(exact)))
    shortest = exact.copy()
    for n_digits in _DIGITS:
        up = 10.0 ** np.maximum(n_digits - 1 - order, 0.0)
        decimal = np.rint(exact * up) / up
        shortest = np.where(decimal.astype(np.float32) == own, decimal, shortest)
    out[broken] = shortest
    return out


def floats_of(series: pd.Series[Any]) -> NDArray[np.float64]:
    """The numbers of a typed series as float64, NaN where missing; see `widened`."""
    if isinstance(series.dtype, np.dtype):
        return widened(series.to_numpy())
    return np.array(series.to_numpy(dtype=np.float64, na_value=np.nan))


def bits_of(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The bits of numbers (N, D) as float32 columns (N, 2 D), -0.0 as 0.0; any size keeps all of them."""
    out = np.array(values, dtype=np.float64, order="C")
    out += 0.0
    return out.view(np.float32)


def content_hash(x: NDArray[np.float32], y: NDArray[np.float32]) -> NDArray[np.uint64]:
    """A 64-bit hash of each row's bits (the SplitMix64 finaliser, column after column), chunk by chunk."""
    out = np.empty(len(x), dtype=np.uint64)
    for start in range(0, len(x), CHUNK):
        part = slice(start, start + CHUNK)
        state = np.zeros(len(x[part]), dtype=np.uint64)
        for block in (x, y):
            for bits in np.ascontiguousarray(block[part].view(np.uint32).T):
                state ^= bits
                _mix(state)
        out[part] = state
    return out


def _settle_ties(
    sort: NDArray[np.int64],
    sorted_hash: NDArray[np.uint64],
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    weight: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Make equal rows neighbours even where different rows share a hash; flag the first row of each group."""
    new_hash = np.ones(len(sort), dtype=np.bool_)
    new_hash[1:] = sorted_hash[1:] != sorted_hash[:-1]
    first = new_hash | _differs_from_previous(sort, ~new_hash, x, y)
    clash = np.unique(np.cumsum(new_hash)[first & ~new_hash])
    if not len(clash):
        return sort, first
    sort = sort.copy()
    run = np.cumsum(new_hash)
    for number in clash:  # two different rows with one 64-bit hash: next to never
        where = np.flatnonzero(run == number)
        members = sort[where]
        columns = [*y[members].T[::-1], *x[members].T[::-1]]
        sort[where] = members[np.lexsort([weight[members], *columns])]
    return sort, new_hash | _differs_from_previous(sort, ~new_hash, x, y)


def _differs_from_previous(
    sort: NDArray[np.int64], ask: NDArray[np.bool_], x: NDArray[np.float32], y: NDArray[np.float32]
) -> NDArray[np.bool_]:
    """Where `ask` is set: is the row at this place of the order unlike the one before it?"""
    out = np.zeros(len(sort), dtype=np.bool_)
    places = np.flatnonzero(ask)
    for start in range(0, len(places), CHUNK):
        here = places[start : start + CHUNK]
        now, before = sort[here], sort[here - 1]
        out[here] = (x[now] != x[before]).any(axis=1) | (y[now] != y[before]).any(axis=1)
    return out


def canonical_sparse(
    X: Any, Y: NDArray[Any], weight: NDArray[np.float64]
) -> tuple[Any, NDArray[np.float32], NDArray[np.float64], NDArray[np.int64]]:
    """`canonical_rows` for a CSR matrix X (N, D): X, Y and weight of distinct rows, and their `order`.

    Rows are equal if their 64-bit hashes are: a sum over their non-zero cells, so that it needs no dense row.
    """
    X = X.astype(np.float32)
    X.sum_duplicates()
    X.eliminate_zeros()
    cells = mixed_bits(
        X.indices.astype(np.uint64) << np.uint64(32) | X.data.view(np.uint32).astype(np.uint64)
    )
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(cells, dtype=np.uint64)])
    y = rounded(Y)
    hashes = mixed_bits(sums[X.indptr[1:]] - sums[X.indptr[:-1]]) ^ content_hash(y[:, :0], y)
    kept = np.flatnonzero(weight > 0)
    sort = kept[np.lexsort((weight[kept], hashes[kept]))]
    first = np.ones(len(sort), dtype=np.bool_)
    first[1:] = hashes[sort][1:] != hashes[sort][:-1]
    group = np.cumsum(first) - 1
    order = np.full(len(weight), -1, dtype=np.int64)
    order[sort] = group
    chosen = sort[first]
    return X[chosen], y[chosen], np.bincount(group, weights=weight[sort]).astype(np.float64), order


def mixed_bits(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A mixed copy of 64-bit numbers."""
    state = bits.copy()
    _mix(state)
    return state


def _mix(state: NDArray[np.uint64]) -> None:
    """One step of SplitMix64 in place: the increment by the golden ratio, then its finaliser."""
    state += np.uint64(0x9E3779B97F4A7C15)
    state ^= state >> np.uint64(30)
    state *= np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(27)
    state *= np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
