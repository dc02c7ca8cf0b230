"""What one pass over a table in parts tells of its columns: enough for the encoders, scales and classes.

Summaries add up. The encoder of a sum is that of all the rows, to the rounding of sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.encoder import (
    MOST_LEVELS,
    ColumnCode,
    TableEncoder,
    label_code,
    number_code,
    warn_ignored,
)
from nongauss.tables.frame import Column, one_order, read_input, sorted_labels
from nongauss.tables.matching import listed
from nongauss.tables.parquet import Part, n_rows_of
from nongauss.tables.rows import Counted, read_weight
from nongauss.tables.scaling import Moments, Scale


@dataclass(frozen=True)
class ColumnSummary:
    """One column: `numbers`, or the weight of each of its `levels`; neither where every cell is missing.

    `levels` holds one more than `MOST_LEVELS` at most. `seen_in`: the part whose cells told the kind.
    `order`: all levels of an ordered category, lowest first; None without an order, or with several.
    """

    name: str
    gaps: bool = False
    numbers: Moments | None = None
    levels: dict[str, float] | None = None
    seen_in: str = ""
    order: tuple[str, ...] | None = None

    @classmethod
    def of(cls, column: Column, weight: NDArray[np.float64], part: str) -> ColumnSummary:
        """Of the rows of weight above 0."""
        present = (weight > 0) & ~column.missing
        gaps = bool(((weight > 0) & column.missing).any())
        if not present.any():
            return cls(column.name, gaps)
        if column.values is not None:
            return cls(column.name, gaps, Moments.of(column.values[present], weight[present]), None, part)
        assert column.codes is not None
        mass = np.bincount(column.codes[present], weights=weight[present], minlength=len(column.levels))
        levels = {level: float(m) for level, m in zip(column.levels, mass, strict=True) if m > 0}
        order = tuple(column.levels[i] for i in np.argsort(column.ranks)) if column.ranks else None
        return cls(column.name, gaps, None, _fewer(levels), part, order)

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        gaps = self.gaps or other.gaps
        if not (self.seen_in and other.seen_in):
            return replace(self if self.seen_in else other, gaps=gaps)
        if (self.levels is None) != (other.levels is None):
            texts, numbers = (other, self) if self.levels is None else (self, other)
            raise InputError(
                f"Column {self.name!r} holds text in {texts.seen_in} but numbers in {numbers.seen_in}; "
                "make it one kind in all parts."
            )
        if self.numbers is not None and other.numbers is not None:
            return replace(self, gaps=gaps, numbers=self.numbers + other.numbers)
        mine, its = self.levels or {}, other.levels or {}
        levels = {name: mine.get(name, 0.0) + its.get(name, 0.0) for name in {**mine, **its}}
        order = one_order(self.order, other.order) if self.order and other.order else None
        return replace(self, gaps=gaps, levels=_fewer(levels), order=None if order is None else tuple(order))

    def code(self, counted: Counted) -> ColumnCode:
        """How the column is encoded."""
        if self.numbers is not None:
            return number_code(self.name, self.numbers.scale(), self.gaps)
        if self.levels is None:
            return ColumnCode(self.name, "empty")
        names = sorted_labels(self.levels)
        ranks = tuple(map(self.order.index, names)) if self.order else ()
        levels = {name: self.levels[name] for name in names}
        return label_code(self.name, levels, self.gaps, counted.n_rows, ranks)


def _fewer(levels: dict[str, float]) -> dict[str, float]:
    """As many levels as tell that there are too many."""
    if len(levels) <= MOST_LEVELS + 1:
        return levels
    return {name: levels[name] for name in sorted(levels)[: MOST_LEVELS + 1]}


@dataclass(frozen=True)
class Summary:
    """What is known of a table after some of its parts."""

    names: tuple[str, ...] | None
    columns: tuple[ColumnSummary, ...]
    counted: Counted
    is_frame: bool
    part: str

    def __add__(self, other: Summary) -> Summary:
        mine, its = ([column.name for column in s.columns] for s in (self, other))
        odd = sorted(set(mine) ^ set(its))
        if self.names is None:  # then their places count
            odd = odd or [a for a, b in zip(mine, its, strict=True) if a != b]
        if odd:
            raise InputError(
                f"{self.part} and {other.part} differ in {listed(odd)}; give all parts the same columns."
            )
        found = dict(zip(its, other.columns, strict=True))
        columns = tuple(column + found[column.name] for column in self.columns)
        return replace(self, columns=columns, counted=self.counted + other.counted)

    def encoder(self) -> TableEncoder:
        """As `TableEncoder.fit` learns it from all the rows. Warns about ignored columns."""
        codes = tuple(column.code(self.counted) for column in self.columns)
        warn_ignored(codes, self.is_frame)
        return TableEncoder(self.names, codes)

    def extremes(self, encoder: TableEncoder) -> NDArray[np.float64]:
        """The largest absolute value of each encoded column, (D,)."""
        out: list[float] = []
        for code, column in zip(encoder.columns, self.columns, strict=True):
            width = len(code.encoded_names)
            if width and code.role == "numeric" and code.sd != 0:
                assert column.numbers is not None
                ends = np.array([column.numbers.low, column.numbers.high])
                out.append(float(np.abs(Scale(code.unit, code.mean, code.sd).apply(ends)).max()))
                width -= 1
            out += [1.0] * width
        return np.array(out)


def summarise(part: Part, estimator_name: str) -> Summary | None:
    """The summary of a part, None of one without rows. Raises InputError naming the part."""
    if not n_rows_of(part.X):
        return None
    table = read_input(part.X, estimator_name)
    weight = weight_of(part)
    columns = tuple(ColumnSummary.of(table.column(j), weight, part.name) for j in range(len(table.labels)))
    return Summary(table.names, columns, Counted.of(weight), table.is_frame, part.name)


def weight_of(part: Part) -> NDArray[np.float64]:
    """The weights of a part's rows, all of which may be 0. Raises InputError."""
    return read_weight(part.weight, n_rows_of(part.X))
