"""From a user's table to matrices, and the record that repeats it for new rows: four views of one table.

An input column becomes flat columns, each of numbers or of labels, as its kind says (see `tables.kinds`); a
`ColumnCode` stands for each. No view, and no model, needs to know kinds.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.records import persistable
from nongauss.tables.column import Column, listed
from nongauss.tables.column_code import UNRELATED, ColumnCode
from nongauss.tables.frame import InputTable, match_columns, read_input
from nongauss.tables.kinds import kind_of


@persistable("tables.TableEncoder", "nongauss.data.encoder:TableEncoder")
@dataclass(frozen=True)
class TableEncoder:
    """The encoding of a table, which `tables.learn` learns; its views repeat it for any rows.

    `feature_names`: names of the input columns, or None if there were none. `columns`: one record a flat
    column; an input column has one of them or more.

    The views take a table X of N rows. Frames are matched by column name, arrays by position. Each warns
    (unless `warn` is False) about labels not seen in fitting, of extra columns, and `as_scaled` about gaps in
    a column that had none. Each raises InputError for a missing column or unusable cells.
    """

    feature_names: tuple[str, ...] | None
    columns: tuple[ColumnCode, ...]

    def check_fields(self) -> None:
        """Raises ValueError for columns of no known kind, and for orders and names that are not theirs."""
        for code in self.columns:
            if code.kind:
                kind_of(code.kind)
            if code.ranks and sorted(code.ranks) != list(range(len(code.levels))):
                raise ValueError(f"column {code.name!r} has {len(code.levels)} levels in another order")
            if not np.isfinite([code.unit, code.mean, code.sd, code.share, code.origin]).all():
                raise ValueError(f"column {code.name!r} has a scale that is not a number")
            if code.unit <= 0.0:
                raise ValueError(f"column {code.name!r} is measured in units of {code.unit:g}")
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise ValueError("names of other columns")

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The number of the input column that each flat column comes from, in the order of these columns.

        An encoder of some of the columns counts its own input columns, in the order in which they come.
        """
        seen: dict[int, int] = {}
        return tuple(
            seen.setdefault(i if code.place < 0 else code.place, len(seen))
            for i, code in enumerate(self.columns)
        )

    @property
    def n_features(self) -> int:
        """Number of input columns."""
        return 1 + max(self.places, default=-1)

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of the D columns of `as_scaled`, such as "age", "age=missing", "colour=red"."""
        return tuple(name for code in self.columns for name in code.encoded_names)

    @property
    def one_hot_names(self) -> tuple[str, ...]:
        """Names of the columns of `as_one_hot`, such as "age", "colour=red"."""
        return tuple(name for code in self.columns for name in code.one_hot_names)

    @property
    def rank_names(self) -> tuple[str, ...]:
        """Names of the columns of `as_ranks`, such as "age", "size"."""
        return tuple(name for code in self.columns for name in code.rank_names)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Names of the flat columns that say nothing: constant, empty, or a different text in each row."""
        return tuple(code.name for code in self.columns if not code.encoded_names)

    @cached_property
    def kept(self) -> tuple[int, ...] | None:
        """The numbers of the input columns that are looked at where others are unrelated; None for all.

        New rows may lack the others.
        """
        if all(code.role != UNRELATED for code in self.columns):
            return None
        pairs = zip(self.places, self.columns, strict=True)
        return tuple(dict.fromkeys(place for place, code in pairs if code.encoded_names))

    @property
    def kept_names(self) -> tuple[str, ...] | None:
        """Names of the columns that are `kept`, x0, x1, ... of arrays; None for all."""
        if self.kept is None:
            return None
        names = self.feature_names
        return tuple(f"x{place}" if names is None else names[place] for place in self.kept)

    def with_columns(self, kept: Collection[int]) -> TableEncoder:
        """The same encoding, in which input columns other than those with these numbers are unrelated."""
        pairs = zip(self.places, self.columns, strict=True)
        columns = (code if place in kept else replace(code, role=UNRELATED) for place, code in pairs)
        return replace(self, columns=tuple(columns))

    def rows_kept(self, X: Any, estimator_name: str = "this estimator") -> InputTable:
        """The columns of new rows that are looked at, in the order of the fit; where none is, one of zeros.

        Raises InputError for one that is not there.
        """
        table, where = self._located(read_input(X, estimator_name), self.kept, estimator_name, [])
        if self.kept == ():
            return read_input(np.zeros((len(table), 1)))
        return table.select([where[place] for place in self.kept or range(self.n_features)])

    def aligned(self, table: InputTable, estimator_name: str = "this estimator") -> InputTable:
        """The table with the columns of the fit, in their order; unrelated ones may lack and are then empty.

        Raises InputError for one that is not there.
        """
        names, n_features = self.feature_names, self.n_features
        by_name = names is not None and table.names is not None
        lacks = set(names or ()) - set(table.names or ()) if by_name else len(table.labels) != n_features
        if self.kept is None or not lacks:
            return table.select(list(match_columns(table, names, n_features, estimator_name, [])))
        kept = self.rows_kept(table, estimator_name)
        frame = pd.DataFrame(np.nan, index=pd.RangeIndex(len(table)), columns=pd.RangeIndex(n_features))
        for number, place in enumerate(self.kept):
            frame[place] = np.asarray(kept.raw(number))
        labels = names or tuple(f"x{place}" for place in range(n_features))
        return InputTable(frame.set_axis(labels, axis=1), names, labels)

    def as_scaled(
        self, X: Any, estimator_name: str = "this estimator", warn: bool = True
    ) -> NDArray[np.float64]:
        """The matrix (N, D) float64 of standardised numbers, 0/1 columns of labels and of gaps.

        A missing number is the mean, 0. A missing label has 0 in all its columns, or the share of the second
        of two.
        """
        return self._scaled(X, estimator_name, "they are replaced by the mean", warn)[0]

    def as_scaled_with_gaps(
        self, X: Any, estimator_name: str = "this estimator", warn: bool = True
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """`as_scaled`, and which cells are missing, by the input columns that are encoded: (N, B)."""
        said = "predictions for such a row are averaged over their possible values"
        return self._scaled(X, estimator_name, said, warn)

    def _scaled(
        self, X: Any, estimator_name: str, said: str, warn: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        notes: list[str] = []
        chosen = [i for i, code in enumerate(self.columns) if code.encoded_names]
        n_rows, columns = self._read(X, estimator_name, chosen, notes)
        out = np.zeros((n_rows, len(self.encoded_names)))
        origin = self.places
        places = [origin[i] for i in chosen]
        number = {place: j for j, place in enumerate(dict.fromkeys(places))}
        missing = np.zeros((n_rows, len(number)), dtype=np.bool_)
        new: list[str] = []
        at = 0
        for place, (code, column) in zip(places, columns, strict=True):
            block = out[:, at : at + len(code.encoded_names)]
            gaps = _fill(code, column, block)
            missing[:, number[place]] |= gaps
            if code.role == "numeric" and not code.gaps and gaps.any():
                new.append(code.name)
            at += block.shape[1]
        if new:
            notes.append(f"Cells are missing in {listed(new)}, where there were none in training; {said}.")
        _say(notes, warn, 4)
        return out, missing

    def as_one_hot(
        self, X: Any, estimator_name: str = "this estimator", warn: bool = True
    ) -> NDArray[np.float64]:
        """The matrix (N, D) float64: numbers as they are, a label column as one 0/1 column a level.

        Two levels make one column; columns with one value are left out. NaN where a cell is missing or its
        label was not seen in fitting.
        """
        return self._cells(X, estimator_name, warn, by_rank=False)

    def as_ranks(
        self, X: Any, estimator_name: str = "this estimator", warn: bool = True
    ) -> NDArray[np.float64]:
        """As `as_one_hot`, but an ordered category is one column of whole numbers in its order.

        For models to which only the order of values counts.
        """
        return self._cells(X, estimator_name, warn, by_rank=True)

    def raw(
        self,
        X: Any,
        estimator_name: str = "this estimator",
        warn: bool = True,
        only: Sequence[int] | None = None,
    ) -> list[Column]:
        """The flat columns as they are: numbers with NaN, or codes of the levels of the fit, -1 if missing.

        `only`: numbers of some flat columns; then X may lack all input columns but those that they need, and
        an array has all of them or just these, in that order. A label that was not seen in fitting is a
        missing cell.
        """
        notes: list[str] = []
        chosen = range(len(self.columns)) if only is None else list(only)
        _, columns = self._read(X, estimator_name, chosen, notes, only is not None)
        out = [column for _, column in columns]
        _say(notes, warn)
        return out

    def _cells(self, X: Any, estimator_name: str, warn: bool, by_rank: bool) -> NDArray[np.float64]:
        notes: list[str] = []
        chosen = [i for i, code in enumerate(self.columns) if code.one_hot_names]
        n_rows, columns = self._read(X, estimator_name, chosen, notes)
        names = self.rank_names if by_rank else self.one_hot_names
        out = np.empty((n_rows, len(names)))
        at = 0
        for code, column in columns:
            width = len(code.rank_names if by_rank else code.one_hot_names)
            block = out[:, at : at + width]
            if column.values is not None:
                block[:, 0] = column.values
            else:
                assert column.codes is not None
                if by_rank and code.ranks:
                    block[:, 0] = np.array(code.ranks, dtype=np.float64)[column.codes]
                else:
                    block[:] = column.codes[:, None] == np.arange(len(code.levels) - width, len(code.levels))
                block[column.codes < 0] = np.nan
            at += width
        _say(notes, warn)
        return out

    def _read(
        self, X: Any, estimator_name: str, chosen: Sequence[int], notes: list[str], narrow: bool = False
    ) -> tuple[int, Iterator[tuple[ColumnCode, Column]]]:
        """Number of rows, and flat columns one after the other; what a warning should say goes to `notes`."""
        origin = self.places
        places = [origin[i] for i in chosen]
        needed = list(dict.fromkeys(places)) if narrow else self.kept
        table, where = self._located(read_input(X, estimator_name), needed, estimator_name, notes)

        def columns() -> Iterator[tuple[ColumnCode, Column]]:
            unseen: list[str] = []
            lost: list[str] = []
            pairs = list(zip(chosen, places, strict=True))
            for i, place in pairs:
                yield self.columns[i], self.columns[i].read(table.column(where[place]), unseen, lost)
            if unseen:
                notes.append(
                    f"Labels that did not occur in training are treated as missing: {', '.join(unseen)}."
                )
            if lost:
                notes.append(f"Cells without a value are treated as missing: {', '.join(lost)}.")
            notes.extend(_unknown([(table.column(where[p]), self.columns[i]) for i, p in pairs]))

        return table.n_rows, columns()

    def _located(
        self, table: InputTable, needed: Sequence[int] | None, estimator_name: str, notes: list[str]
    ) -> tuple[InputTable, dict[int, int] | list[int]]:
        """A table that may lack all input columns but those `needed`, and where each of these is in it.

        `needed`: None for all.
        """
        n_features, names = self.n_features, self.feature_names
        if needed is None:
            return table, match_columns(table, names, n_features, estimator_name, notes)
        if not needed:
            return table, {}
        if names is not None and table.names is not None:
            own = [names[place] for place in needed]
            other = set(names).difference(own)
            table = table.select([at for at, name in enumerate(table.names) if name not in other])
            found = match_columns(table, own, len(own), estimator_name, notes)
            return table, dict(zip(needed, found, strict=True))
        n_columns = len(table.labels)
        if n_columns == n_features:
            return table, match_columns(table, names, n_features, estimator_name, notes)
        if n_columns == len(needed):
            return table, {place: at for at, place in enumerate(needed)}
        raise InputError(
            f"X has {n_columns} features, but {estimator_name} is expecting {n_features} features as input"
            f"{'' if len(needed) == n_features else ' (or those of its rules)'}."
        )


def _fill(code: ColumnCode, column: Column, block: NDArray[Any]) -> NDArray[np.bool_]:
    """Fill the encoded columns of a flat column, all 0 so far, and tell which of its cells are missing (N,).

    Numbers are standardised, their gaps 0; then comes the flag of gaps.
    """
    missing = column.missing
    if code.role == "numeric":
        assert column.values is not None
        if code.sd != 0:
            block[:, 0] = code.scale.apply(column.values)
            block[missing, 0] = 0.0
    elif code.is_pair:
        assert column.codes is not None
        block[:, 0] = np.where(missing, code.share, column.codes)
    else:
        assert column.codes is not None
        rows = np.flatnonzero(~missing)
        block[rows, column.codes[rows]] = 1.0
    if code.flagged or (code.role == "numeric" and code.gaps):
        block[:, -1] = missing
    return missing


def _unknown(read: Sequence[tuple[Column, ColumnCode]]) -> list[str]:
    """What is to be said of values of new rows that the flat columns of an input column pass over."""
    parts: dict[tuple[str, str], list[str]] = {}
    columns = {column.name: column for column, _ in read}
    for column, code in read:
        if code.part:
            parts.setdefault((column.name, code.kind), []).append(code.part)
    found = ((name, kind_of(kind).unknown(columns[name], of)) for (name, kind), of in parts.items())
    said = [f"{value!r} in column {name!r}" for name, value in found if value]
    return [f"Choices that did not occur in training are ignored: {', '.join(said)}."] if said else []


def _say(notes: list[str], warn: bool, stacklevel: int = 3) -> None:
    """One warning of all that is to be said of a table, laid at the door of whoever asked for the view."""
    if notes and warn:
        warnings.warn(" ".join(notes), NongaussWarning, stacklevel=stacklevel)
