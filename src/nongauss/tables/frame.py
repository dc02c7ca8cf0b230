"""One view of any table a user passes (array, list, pandas, polars): columns, each decoded once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from nongauss.core.errors import InputError
from nongauss.tables.column import Column, as_pandas, listed, without_mask
from nongauss.tables.kinds import decode
from nongauss.tables.words import plain_label


@dataclass(frozen=True)
class InputTable:
    """A checked table, each column of which is decoded when it is first asked for, and then kept.

    `names` is None unless it came as a frame whose column names are all strings; `labels` are what messages
    call the columns. Whatever takes a table takes an `InputTable`: fits, predictions, views of an encoder.
    `source`: the table as it came, a frame of pandas or an array; `changed`: columns put in the place of its.
    """

    source: pd.DataFrame | NDArray[Any]
    names: tuple[str, ...] | None
    labels: tuple[str, ...]
    changed: dict[int, Any] = field(default_factory=dict, compare=False, repr=False)
    _decoded: dict[int, Column] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.source)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.source), len(self.labels)

    @property
    def is_frame(self) -> bool:
        """Did it come as a frame, with typed columns?"""
        return isinstance(self.source, pd.DataFrame)

    def column(self, index: int) -> Column:
        """Column number `index`, decoded by the kind that takes it.

        Raises: InputError (TypeError for cells of no kind) naming the column and the first bad row.
        """
        known = self._decoded.get(index)
        if known is not None:
            return known
        column = decode(self.labels[index], self.raw(index))
        if column.values is not None:
            infinite = np.isinf(column.values)
            if infinite.any():
                row = int(np.argmax(infinite))
                raise InputError(
                    f"X holds infinity ({column.values[row]}) in column {column.name!r}, row {row} "
                    "(counted from 0); replace it by a number or leave the cell missing."
                )
        self._decoded[index] = column
        return column

    def raw(self, index: int) -> Any:
        """The cells of column number `index` as they came: a series, or an array (N,)."""
        if index in self.changed:
            return self.changed[index]
        if isinstance(self.source, pd.DataFrame):
            named = self.names is not None  # by name is much the faster of wide tables
            return self.source[self.names[index]] if named else self.source.iloc[:, index]  # type: ignore[index]
        return self.source[:, index]

    def with_column(self, column: str | int, values: Any) -> InputTable:
        """This table with one column, by name or number, in the place of its own; the others are shared.

        `values`: one cell for each row (series, array, list), or a single cell for all rows. Raises
        InputError for a column that is not there and for another number of cells.
        """
        at = self._place(column)
        cells = _cells(values, self.n_rows, self.raw(at))
        if len(cells) != self.n_rows:
            raise InputError(
                f"Column {self.labels[at]!r} would get {len(cells)} cells, but X has {self.n_rows} rows; "
                "give one cell for each row."
            )
        kept = {place: column for place, column in self._decoded.items() if place != at}
        return replace(self, changed={**self.changed, at: cells}, _decoded=kept)

    def without_note(self, place: int) -> InputTable:
        """This table with a column of which nothing is to be said, because it has been."""
        return replace(self, _decoded={**self._decoded, place: replace(self.column(place), note="")})

    def as_numbers(self, place: int) -> InputTable:
        """This table with a column of numbers that are no codes, whatever its name says."""
        column = replace(self.column(place), kind="number", note="")
        return replace(self, _decoded={**self._decoded, place: column})

    def as_labels(self, name: str | int) -> InputTable:
        """This table with a column, by name or number, whose numbers are labels: ids, codes of shops.

        Raises InputError for a column that is not there.
        """
        place = self._place(name)
        column = replace(self.column(place).as_labels(), kind="label", note="")
        return replace(self, _decoded={**self._decoded, place: column})

    def permuted(self, columns: str | int | Sequence[int], order: NDArray[np.intp]) -> InputTable:
        """This table with the cells of a column, or of several together, in another order (N,) of the rows.

        What is decoded already is not decoded again.
        """
        several = [columns] if isinstance(columns, str | int) else columns
        at = {self._place(column) for column in several}
        kept = {place: held.take(order) if place in at else held for place, held in self._decoded.items()}
        dealt = {place: take_rows(self.raw(place), order) for place in sorted(at)}
        return replace(self, changed={**self.changed, **dealt}, _decoded=kept)

    def take(self, rows: Any) -> InputTable:
        """Some rows, by their numbers (N,) or a mask; what is decoded already is not decoded again."""
        rows = np.asarray(rows)
        is_frame = isinstance(self.source, pd.DataFrame)
        source: Any = self.source.iloc[rows] if is_frame else self.source[rows]  # type: ignore[union-attr]
        changed = {place: take_rows(cells, rows) for place, cells in self.changed.items()}
        kept = {place: column.take(rows) for place, column in self._decoded.items()}
        return replace(self, source=source, changed=changed, _decoded=kept)

    def select(self, columns: Sequence[str | int]) -> InputTable:
        """Some columns, by name or number, in that order."""
        places = [self._place(column) for column in columns]
        is_frame = isinstance(self.source, pd.DataFrame)
        source: Any = self.source.iloc[:, places] if is_frame else self.source[:, places]  # type: ignore[union-attr]
        names = None if self.names is None else tuple(self.names[place] for place in places)
        changed, kept = (
            {new: held[old] for new, old in enumerate(places) if old in held}
            for held in (self.changed, self._decoded)
        )
        return InputTable(source, names, tuple(self.labels[place] for place in places), changed, kept)

    def as_frame(self) -> pd.DataFrame:
        """The table as a frame of pandas, changed columns in their places."""
        frame = pd.DataFrame(self.source, copy=False)
        if not isinstance(self.source, pd.DataFrame):
            frame.columns = pd.Index(self.labels)
        if not self.changed:
            return frame
        frame = frame.copy(deep=False)
        for place, cells in self.changed.items():
            frame.isetitem(place, np.asarray(cells) if isinstance(cells, pd.Series) else cells)
        return frame

    def _place(self, column: str | int) -> int:
        if isinstance(column, str):
            if column not in self.labels:
                raise InputError(f"X has no column {column!r}; it has {listed(self.labels)}.")
            return self.labels.index(column)
        if not -len(self.labels) <= column < len(self.labels):
            raise InputError(f"X has no column number {column}; it has {len(self.labels)}, from 0 on.")
        return range(len(self.labels))[column]


def read_input(X: Any, estimator_name: str = "this estimator") -> InputTable:
    """Check that `X` is a table with at least one row and one column, without reading its cells yet.

    An `InputTable` is given back as it is. Raises: InputError, or scikit-learn's own errors for sparse,
    complex, one-dimensional or empty arrays.
    """
    if isinstance(X, InputTable):
        return X
    if isinstance(X, str | os.PathLike):
        raise InputError(
            f"X is the path {os.fspath(X)!r}, which only fit, predict and transform accept; read its "
            "rows first, with pandas.read_parquet."
        )
    frame = as_pandas(X)
    if isinstance(frame, pd.DataFrame):
        labels = tuple(str(name) for name in frame.columns)
        names = _string_names(frame.columns)
        _check_size(frame.shape, estimator_name)
        return InputTable(frame, names, labels)
    refuse_records(X, "X")
    array = check_array(
        without_mask(_list_as_array(X)),
        dtype=None,
        ensure_all_finite=False,
        estimator=estimator_name,
        input_name="X",
    )
    return InputTable(array, None, tuple(f"x{j}" for j in range(array.shape[1])))


def refuse_records(array: Any, what: str) -> None:
    """Raises InputError for a structured array, a dict of columns, and a list of dicts."""
    names = getattr(getattr(array, "dtype", None), "names", None)
    kind = "a structured array"
    if isinstance(array, Mapping):
        names, kind = tuple(array), "a dict"
    elif isinstance(array, list) and array and isinstance(array[0], Mapping):
        names, kind = tuple(array[0]), "a list of dicts"
    if names:
        raise InputError(
            f"{what} is {kind} with the fields {', '.join(map(repr, names[:5]))}; "
            f"make a frame of it: pandas.DataFrame({what})."
        )


def match_columns(
    table: InputTable,
    feature_names: Sequence[str] | None,
    n_features: int,
    estimator_name: str,
    notes: list[str],
) -> list[int]:
    """For each of the `n_features` columns of the fit, its position in `table`.

    Adds to `notes` what a warning should say. Raises InputError where a column is absent.
    """
    if feature_names is not None and table.names is not None:
        place = {name: j for j, name in enumerate(table.names)}
        absent = [name for name in feature_names if name not in place]
        if absent:
            raise InputError(
                f"X lacks {listed(absent)}, which {estimator_name} was fitted with; "
                f"add it, or leave its cells missing. X has {listed(table.names)}"
                f"{_meant(absent, table.names)}."
            )
        known = set(feature_names)
        extra = [name for name in table.names if name not in known]
        if extra:
            notes.append(f"Columns that did not exist in training are ignored: {listed(extra)}.")
        return [place[name] for name in feature_names]
    check_width(len(table.labels), n_features, estimator_name)
    if feature_names is not None:
        notes.append(
            f"X does not have valid feature names, but {estimator_name} was fitted with feature names."
        )
    elif table.names is not None:
        notes.append(f"X has feature names, but {estimator_name} was fitted without feature names.")
    return list(range(n_features))


def _meant(absent: Sequence[str], there: Sequence[str]) -> str:
    """Pairs of names that differ by case, blanks and signs alone: a column may have been renamed."""
    plain = {plain_label(name): name for name in there if name not in absent}
    pairs = [(name, plain.get(plain_label(name))) for name in absent]
    found = " and ".join(f"{other!r} for {name!r}" for name, other in pairs if other)
    return f"; did you mean {found}? Then rename it" if found else ""


def check_width(n_columns: int, n_features: int, estimator_name: str) -> None:
    """Raises InputError, in scikit-learn's words, unless X has as many columns as the fit."""
    if n_columns != n_features:
        raise InputError(
            f"X has {n_columns} features, but {estimator_name} is expecting {n_features} features as input."
        )


def _string_names(columns: pd.Index[Any]) -> tuple[str, ...] | None:
    """All names if all are strings, None if none is."""
    if not columns.is_unique:
        twice = ", ".join(repr(name) for name in columns[columns.duplicated()].unique()[:5])
        raise InputError(f"X has more than one column named {twice}; give every column a name of its own.")
    strings = [isinstance(name, str) for name in columns]
    if any(strings) and not all(strings):
        odd = columns[strings.index(False)]
        raise InputError(
            f"Some column names of X are text and some are not (such as {odd!r}); "
            "make all of them strings: X.columns = X.columns.astype(str)."
        )
    return tuple(columns) if any(strings) else None


def _check_size(shape: tuple[int, ...], estimator_name: str) -> None:
    for count, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if count == 0:
            raise InputError(
                f"Found array with 0 {what} (shape={shape}) "
                f"while a minimum of 1 is required by {estimator_name}."
            )


def _list_as_array(X: Any) -> Any:
    """Lists of rows with text in them become object arrays, so that their numbers stay numbers."""
    if not isinstance(X, Sequence) or isinstance(X, str | bytes):
        return X
    lengths = [len(row) for row in X if isinstance(row, Sequence | np.ndarray) and not isinstance(row, str)]
    if len(lengths) == len(X) and len(set(lengths)) > 1:
        row = next(i for i, length in enumerate(lengths) if length != lengths[0])
        raise InputError(
            f"The rows of X differ in length: row 0 has {lengths[0]} values, row {row} has {lengths[row]}; "
            "give every row the same number of values."
        )
    array = np.asarray(X)
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def take_rows(X: Any, rows: NDArray[Any]) -> Any:
    """Some rows of a table, or entries of a list: a frame of pandas, an `InputTable`, or an array."""
    if isinstance(X, InputTable):
        return X.take(rows)
    frame = as_pandas(X)
    return np.asarray(X)[rows] if frame is None else frame.iloc[rows]


def n_rows_of(X: Any) -> int:
    """Number of rows of a table."""
    if hasattr(X, "shape"):
        return int(X.shape[0])
    frame = as_pandas(X)
    return len(X if frame is None else frame)


def _cells(values: Any, n_rows: int, former: Any) -> Any:
    """New cells of a column, of the type of the former ones where they are a category."""
    given = as_pandas(values)
    cells = values if given is None else given
    if not hasattr(cells, "__len__") or isinstance(cells, str | bytes) or np.ndim(cells) == 0:
        cells = [cells] * n_rows
    if isinstance(former, pd.Series):
        dtype = getattr(cells, "dtype", None)
        if isinstance(former.dtype, pd.CategoricalDtype) and not isinstance(dtype, pd.CategoricalDtype):
            return pd.Series(pd.Categorical(list(cells), dtype=former.dtype))
        return cells if isinstance(cells, pd.Series) else pd.Series(cells)
    array = cells if isinstance(cells, np.ndarray) else np.asarray(_list_as_array(list(cells)))
    return array.astype(object) if array.dtype.kind in "US" else array
