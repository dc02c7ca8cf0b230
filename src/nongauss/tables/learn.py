"""The one way in for a table, and the one pass that learns its kinds, scales, levels, classes and gaps.

What a part tells adds up over parts. Of one part in memory it is what the rows say, to the last bit; of
several, to the rounding of sums.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables.column import Column, ColumnSummary, listed
from nongauss.tables.column_code import UNRELATED, ColumnCode, code_of, told_of_far
from nongauss.tables.dask_source import dask_source
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.frame import InputTable, n_rows_of, read_input
from nongauss.tables.kinds import kind_of
from nongauss.tables.kinds.label import MOST_LEVELS
from nongauss.tables.parquet import ParquetParts, parquet_source
from nongauss.tables.rows import Counted, validate_weight
from nongauss.tables.source import Part, Source, Stream, is_dask, naming, weight_of
from nongauss.tables.sparse import SparseTable

OfTarget = Callable[[Part, NDArray[np.float64]], Any]


def as_source(
    X: Any,
    y: Any = None,
    weight: Any = None,
    *,
    estimator_name: str = "this estimator",
    accept_sparse: bool = False,
    **beside: Any,
) -> Source:
    """Any table as a source of `Part`s: one of a table in memory, many of Parquet files or a Dask collection.

    X: whatever `read_input` takes (and a SciPy matrix with `accept_sparse`), a path, `ParquetParts`, or a
    Dask frame or array. y (N,) or (N, P), weight (N,) and what is `beside` have one entry a row; of a table
    in parts they are names of columns, which are taken out of it, or Dask collections partitioned alike.
    Weights of a table in memory are checked here, its target is not. Raises InputError.
    """
    if is_dask(X):
        return dask_source(X, y, weight, beside)
    if is_parted(X):
        return parquet_source(X, y, weight, beside)
    if accept_sparse and issparse(X):
        table: Any = SparseTable(X.tocsr())
    else:
        table = read_input(X, estimator_name)
    own = {name: given for name, given in beside.items() if given is not None}
    return Stream([Part("", table, y, validate_weight(weight, len(table)), own)], in_memory=True)


def is_parted(X: Any) -> bool:
    """Is this a table in parts: a path, Parquet files, or a Dask collection?"""
    return isinstance(X, str | os.PathLike | ParquetParts) or is_dask(X)


def check_in_memory(X: Any, method: str) -> None:
    """Raises InputError where a method that takes rows in memory is given a table in parts."""
    if is_parted(X):
        raise InputError(
            f"{method} needs a batch of rows in memory, got a {type(X).__name__}; "
            "call fit, which reads tables in parts."
        )


_WORDS_OF_TEXT = 4  # words from which labels are sentences


def _why_ignored(code: ColumnCode, column: ColumnSummary) -> str:
    """Why a column is left out."""
    if code.role == "empty":
        return "all cells are missing"
    if code.role == "constant":
        return "only one value"
    levels = column.levels or {}
    if sum(len(level.split()) for level in levels) >= _WORDS_OF_TEXT * len(levels):
        return "free text, which no model here can use"
    return (
        f"text that is different in every row or nearly so, or more than {MOST_LEVELS} labels; to keep it, "
        "group its labels into fewer"
    )


def _warn_ignored(codes: Sequence[ColumnCode], columns: Sequence[ColumnSummary], is_frame: bool) -> None:
    """Say which flat columns of a table are left out, and why."""
    names: dict[str, list[str]] = {}
    for role in ("empty", "constant", "identifier") if is_frame else ("empty", "identifier"):
        for code, column in zip(codes, columns, strict=True):
            if code.role == role:
                names.setdefault(_why_ignored(code, column), []).append(code.name)
    notes = [f"{listed(found)} ({reason})" for reason, found in names.items()]
    if notes:
        warnings.warn(f"X has columns that are ignored: {'; '.join(notes)}.", NongaussWarning, stacklevel=5)


def told_once(table: InputTable) -> tuple[InputTable, list[str]]:
    """The table without notes on its columns and with texts among values as missing cells, and these notes.

    So they are told once, of the whole column, and no part of it has too many such texts to be values.
    """
    said = []
    for place in range(len(table.labels)):
        column = table.column(place)
        if column.note:
            said.append(f"Column {column.name!r} {column.note}.")
            table = table.without_note(place)
        if not column.lost:
            continue
        cells = np.array(table.raw(place), dtype=object)
        cells[column.missing] = None
        table = table.with_column(place, cells)
        said.append(f"Column {column.name!r} {lost_note(column)}.")
    return table, said


def lost_note(column: Column) -> str:
    """What is to be said of the texts of a column that count as missing, "" where there are none."""
    return f"has cells without a value, which count as missing: {column.lost}" if column.lost else ""


LABEL = "label"
"""The kind that any column of texts can be."""


def _note_of(column: Column) -> str:
    """What is to be said of how a column was read, "" for nothing."""
    return "; ".join(filter(None, (column.note, lost_note(column))))


def _sum_or_none(first: Any, second: Any) -> Any:
    """The sum of two facts, None unless both are there."""
    return None if first is None or second is None else first + second


@dataclass(frozen=True)
class InputSummary:
    """What some rows tell of one input column. `facts` are what its kind's `summarise` gives.

    `seen_in`: the first part in which the column has a cell. Where every cell is missing there is neither a
    kind nor facts. `note`: see `Column`. `texts`: the facts of the same cells as labels, where texts were
    taken for values, as dates are: other parts may show that they are labels.
    """

    name: str
    gaps: bool = False
    kind: str = ""
    facts: Any = None
    seen_in: str = ""
    note: str = ""
    texts: Any = None

    @classmethod
    def of(cls, column: Column, weight: NDArray[np.float64], part: str) -> InputSummary:
        """What a part's rows of weight above 0 tell of one column; `weight` (N,) has all its rows."""
        counted, missing = weight > 0, column.missing
        present = counted & ~missing
        gaps = bool((counted & missing).any())
        if not present.any():
            return cls(column.name, gaps)
        whole = bool(present.all())
        cells, heavy = (column, weight) if whole else (column.take(present), weight[present])
        facts = kind_of(column.kind).summarise(cells, heavy)
        texts = None
        if cells.codes is not None and column.kind != LABEL:
            texts = kind_of(LABEL).summarise(kind_of(column.kind).plain(cells), heavy)
        return cls(column.name, gaps, column.kind, facts, part, _note_of(column), texts)

    def __add__(self, other: InputSummary) -> InputSummary:
        gaps = self.gaps or other.gaps
        if not (self.kind and other.kind):
            return replace(self if self.kind else other, gaps=gaps)
        for one, two in ((self, other), (other, self)):
            as_other = None if one.kind == two.kind else kind_of(one.kind).facts_as(one.facts, two.kind)
            if as_other is not None:
                return replace(two, gaps=gaps, facts=as_other + two.facts, texts=None)
        labels = _sum_or_none(self._as_labels(), other._as_labels())
        if self.kind != other.kind and labels is not None:
            return replace(self, gaps=gaps, kind=LABEL, facts=labels, note="", texts=None)
        if self.kind != other.kind:
            first, second = sorted((self, other), key=lambda s: kind_of(s.kind).plural, reverse=True)
            raise InputError(
                f"Column {self.name!r} holds {kind_of(first.kind).plural} in {first.seen_in} but "
                f"{kind_of(second.kind).plural} in {second.seen_in}; make it one kind in all parts."
            )
        note = self.note if other.note in self.note else "; ".join(filter(None, (self.note, other.note)))
        texts = _sum_or_none(self.texts, other.texts)
        return replace(self, gaps=gaps, facts=self.facts + other.facts, note=note, texts=texts)

    def _as_labels(self) -> Any:
        """The facts of the column as labels, None where its cells are no texts."""
        return self.facts if self.kind == LABEL else self.texts

    def columns(self, place: int) -> tuple[ColumnSummary, ...]:
        """The flat columns that it becomes."""
        if not self.kind:
            return (ColumnSummary(self.name, self.gaps, place=place),)
        found = kind_of(self.kind).columns(self.name, self.facts, self.gaps)
        return tuple(replace(column, place=place) for column in found)


@dataclass(frozen=True)
class Summary:
    """What is known of a table after some of its parts; two of them add to one."""

    names: tuple[str, ...] | None
    inputs: tuple[InputSummary, ...]
    counted: Counted
    is_frame: bool
    part: str

    def __add__(self, other: Summary) -> Summary:
        mine, its = ([column.name for column in s.inputs] for s in (self, other))
        odd = sorted(set(mine) ^ set(its))
        if self.names is None:  # then their places count
            odd = odd or [a for a, b in zip(mine, its, strict=True) if a != b]
        if odd:
            raise InputError(
                f"{self.part} and {other.part} differ in {listed(odd)}; give all parts the same columns."
            )
        found = dict(zip(its, other.inputs, strict=True))
        inputs = tuple(column + found[column.name] for column in self.inputs)
        return replace(self, inputs=inputs, counted=self.counted + other.counted)

    @cached_property
    def columns(self) -> tuple[ColumnSummary, ...]:
        """What is known of each flat column; one that a kind adds has a name that no input column has."""
        taken = {column.name for column in self.inputs}

        def named(flat: ColumnSummary, of: str) -> ColumnSummary:
            while flat.name != of and flat.name in taken:
                flat = replace(flat, name=f"{flat.name[:-1]} of the {flat.kind})")
            return flat

        return tuple(
            named(flat, column.name)
            for place, column in enumerate(self.inputs)
            for flat in column.columns(place)
        )

    @cached_property
    def encoder(self) -> TableEncoder:
        """The encoder of all the rows."""
        return TableEncoder(self.names, tuple(code_of(column, self.counted) for column in self.columns))

    def warn(self, scaled: bool = True) -> None:
        """Warn about columns that the encoder ignores, how others were read, and numbers that hide others."""
        _warn_ignored(self.encoder.columns, self.columns, self.is_frame)
        notes = [f"Column {column.name!r} {column.note}." for column in self.inputs if column.note]
        notes += filter(None, map(told_of_far, self.columns if scaled else ()))
        if notes:
            warnings.warn(" ".join(notes), NongaussWarning, stacklevel=4)

    @property
    def extremes(self) -> NDArray[np.float64]:
        """The largest absolute value of each column of `as_scaled`, (D,)."""
        out: list[float] = []
        for code, column in zip(self.encoder.columns, self.columns, strict=True):
            width = len(code.encoded_names)
            if width and code.role == "numeric" and code.sd != 0:
                assert column.numbers is not None
                ends = np.array([column.numbers.low, column.numbers.high])
                out.append(float(np.abs(code.scale.apply(ends)).max()))
                width -= 1
            out += [1.0] * width
        return np.array(out)


@dataclass(frozen=True)
class Learned:
    """What one pass over a table tells: of its columns, and of its target (`target`, None without).

    `columns` has what is known of each flat column (see `ColumnSummary`), in the order of
    `encoder.columns`; `counted` the rows of weight above 0. `kept`: the numbers of the input columns that are
    looked at, None for all (see `screen`).
    """

    summary: Summary = field(repr=False)
    target: Any = None
    kept: frozenset[int] | None = None

    @cached_property
    def encoder(self) -> TableEncoder:
        """How the table is encoded: four views of any rows."""
        encoder = self.summary.encoder
        return encoder if self.kept is None else encoder.with_columns(self.kept)

    @property
    def columns(self) -> tuple[ColumnSummary, ...]:
        """What is known of each flat column."""
        return self.summary.columns

    @property
    def counted(self) -> Counted:
        """Rows of weight above 0, and their weight."""
        return self.summary.counted

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the input columns, None for arrays."""
        return self.summary.names

    @property
    def is_frame(self) -> bool:
        """Did the table come as a frame?"""
        return self.summary.is_frame

    @property
    def gaps(self) -> bool:
        """Has any column a missing cell?"""
        return any(column.gaps for column in self.summary.inputs)

    @property
    def extremes(self) -> NDArray[np.float64]:
        """The largest absolute value of each column of `encoder.as_scaled`, (D,)."""
        shown = [code.role != UNRELATED for code in self.encoder.columns]
        widths = [len(code.encoded_names) for code in self.summary.encoder.columns]
        out: NDArray[np.float64] = self.summary.extremes[np.repeat(shown, widths)]
        return out


def learn(
    source: Source,
    estimator_name: str = "this estimator",
    of_target: OfTarget | None = None,
    warn: bool = True,
    scaled: bool = True,
) -> Learned:
    """One pass over a table, with the sum of `of_target(part, weight)` over its parts.

    Rows of weight 0 leave no trace. Warns (unless `warn` is False) about ignored columns, of arrays not about
    constant ones, and of how columns were read where a person should know; where numbers are `scaled`, about
    one that hides all others. Raises: InputError for infinite or unusable cells, naming part, column and row.
    """
    found = source.sum(_summary_of_part, estimator_name, of_target)
    if found is None:
        raise InputError("No part of the table has a row; give at least one.")
    learned = Learned(*found)
    if not learned.counted.rows:
        raise InputError("All weights are zero; give at least one row a weight above 0.")
    if warn:
        learned.summary.warn(scaled)
    return learned


def _summary_of_part(
    part: Part, estimator_name: str, of_target: OfTarget | None
) -> tuple[Summary, Any] | None:
    """The summaries of a part's columns and of its target, None of one without rows; errors name the part."""
    found: tuple[Summary, Any] | None = naming(
        part, partial(_columns_and_target, part, estimator_name, of_target)
    )
    return found


def _columns_and_target(
    part: Part, estimator_name: str, of_target: OfTarget | None
) -> tuple[Summary, Any] | None:
    summary = summarise(part, estimator_name)
    if summary is None:
        return None
    target = None
    if of_target is not None and summary.counted.rows:
        target = of_target(part, weight_of(part))
    return summary, target


def summarise(part: Part, estimator_name: str) -> Summary | None:
    """The summary of a part, None of one without rows. Raises InputError."""
    if not n_rows_of(part.X):
        return None
    weight = weight_of(part)
    if isinstance(part.X, SparseTable):
        numbers = part.X.moments(weight)
        inputs = tuple(
            InputSummary(name, False, "number", moments, part.name)
            for name, moments in zip(part.X.labels, numbers, strict=True)
        )
        return Summary(None, inputs, Counted.of(weight), False, part.name)
    table = read_input(part.X, estimator_name)
    inputs = tuple(InputSummary.of(table.column(j), weight, part.name) for j in range(len(table.labels)))
    return Summary(table.names, inputs, Counted.of(weight), table.is_frame, part.name)
