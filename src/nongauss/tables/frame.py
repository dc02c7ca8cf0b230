"""One view of any table a user passes (array, list, pandas, polars): columns of numbers or of labels."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from nongauss.core.errors import InputError

NUMBER_KINDS = ("floating", "integer", "mixed-integer-float", "decimal")


@dataclass(frozen=True)
class Column:
    """One column: either `values` (N,) float64 with NaN where missing, or labels.

    Labels are `codes` (N,) into `levels`, -1 where missing; a level may occur in no row. `ranks`: the place
    of each level in the order of an ordered category; empty for labels without an order.
    """

    name: str
    values: NDArray[np.float64] | None
    codes: NDArray[np.intp] | None = None
    levels: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing, (N,)."""
        if self.values is not None:
            return np.isnan(self.values)
        assert self.codes is not None
        return self.codes < 0

    def as_labels(self) -> Column:
        """The same column with its numbers read as labels: 1.0 becomes "1"."""
        if self.values is None:
            return self
        return _labelled(self.name, self.values, self.missing)

    def as_numbers(self) -> Column:
        """The same column as numbers; True and False become 1 and 0.

        Raises: InputError naming the first row that holds text.
        """
        if self.values is not None:
            return self
        assert self.codes is not None
        table = np.array([{"True": 1.0, "False": 0.0}.get(level, np.nan) for level in self.levels] + [np.nan])
        values = table[self.codes]
        text = np.isnan(values) & ~self.missing
        if text.any():
            row = int(np.argmax(text))
            raise InputError(
                f"Column {self.name!r} held numbers when the model was fitted, but holds the label "
                f"{self.levels[self.codes[row]]!r} in row {row} (counted from 0); give numbers there."
            )
        return Column(self.name, values)


@dataclass(frozen=True)
class InputTable:
    """A checked table. `names` is None unless it came as a frame whose column names are all strings."""

    source: pd.DataFrame | NDArray[Any]
    names: tuple[str, ...] | None
    labels: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.source)

    @property
    def is_frame(self) -> bool:
        """Did it come as a frame, with typed columns?"""
        return isinstance(self.source, pd.DataFrame)

    def column(self, index: int) -> Column:
        """Column number `index`, read as numbers or labels.

        Raises: InputError (TypeError for cells that are neither) naming the column and the first bad row.
        """
        name = self.labels[index]
        if isinstance(self.source, pd.DataFrame):
            column = _from_series(name, self.source.iloc[:, index])
        else:
            column = _from_array(name, self.source[:, index])
        if column.values is not None:
            infinite = np.isinf(column.values)
            if infinite.any():
                row = int(np.argmax(infinite))
                raise InputError(
                    f"X holds infinity ({column.values[row]}) in column {name!r}, row {row} "
                    "(counted from 0); replace it by a number or leave the cell missing."
                )
        return column


def read_input(X: Any, estimator_name: str = "this estimator") -> InputTable:
    """Check that `X` is a table with at least one row and one column, without reading its cells yet.

    Raises: InputError, or scikit-learn's own errors for sparse, complex, one-dimensional or empty arrays.
    """
    if isinstance(X, str | os.PathLike):
        raise InputError(
            f"X is the path {os.fspath(X)!r}, which only fit, predict and transform take; "
            "read its rows first, with pandas.read_parquet."
        )
    frame = as_pandas(X)
    if isinstance(frame, pd.DataFrame):
        labels = tuple(str(name) for name in frame.columns)
        names = _string_names(frame.columns)
        _check_size(frame.shape, estimator_name)
        return InputTable(frame, names, labels)
    array = check_array(
        _without_mask(_list_as_array(X)),
        dtype=None,
        ensure_all_finite=False,
        estimator=estimator_name,
        input_name="X",
    )
    return InputTable(array, None, tuple(f"x{j}" for j in range(array.shape[1])))


def as_pandas(data: Any) -> pd.DataFrame | pd.Series[Any] | None:
    """A pandas frame or series for any eager frame or series; None for whatever else.

    Raises: InputError for a lazy frame.
    """
    if isinstance(data, pd.DataFrame | pd.Series):
        return data
    native = nw.from_native(data, pass_through=True, allow_series=True)
    if isinstance(native, nw.LazyFrame):
        raise InputError("The table is lazy, its rows are not there yet; call its collect() or compute().")
    if isinstance(native, nw.DataFrame | nw.Series):
        converted: pd.DataFrame | pd.Series[Any] = native.to_pandas()
        return converted
    return None


def label_of(value: Any) -> str:
    """The text of one label: whole floats lose their point, so that 1, 1.0 and "1" are one label."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, float | np.floating) and math.isfinite(value) and float(value).is_integer():
        return str(int(value))
    return str(value)


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Distinct labels in order: numbers by size first, then text."""

    def place(label: str) -> tuple[int, float, str]:
        try:
            number = float(label)
        except ValueError:
            number = math.nan
        return (1, 0.0, label) if math.isnan(number) else (0, number, label)

    return tuple(sorted(set(labels), key=place))


def one_order(first: Sequence[Any], second: Sequence[Any]) -> Sequence[Any] | None:
    """Two orders as one: the longer, if the levels of the other stand in it in their order, else None."""
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    known = set(shorter)
    return longer if [level for level in longer if level in known] == list(shorter) else None


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


def _without_mask(X: Any) -> Any:
    """Masked cells of a masked array are missing cells."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    return np.ma.filled(X.astype(object if X.dtype.kind in "OUS" else np.float64), np.nan)


def _from_array(name: str, cells: NDArray[Any]) -> Column:
    if cells.dtype.kind in "biuf":
        return Column(name, cells.astype(np.float64))
    if cells.dtype.kind in "OUS":
        return _from_objects(name, cells.astype(object))
    raise _not_usable(name, str(cells.dtype))


def _from_series(name: str, series: pd.Series[Any]) -> Column:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = np.asarray(series.cat.codes, dtype=np.intp)
        return _recoded(name, codes, list(series.cat.categories), bool(dtype.ordered))
    if pd.api.types.is_complex_dtype(dtype):
        raise InputError(f"Complex data not supported: column {name!r} of X; split it into two real ones.")
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
        return Column(name, np.array(series.to_numpy(dtype=np.float64, na_value=np.nan)))
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        raise _not_usable(name, str(dtype))
    return _from_objects(name, series.to_numpy(dtype=object))


def _from_objects(name: str, cells: NDArray[np.object_]) -> Column:
    """A column of Python objects: numbers, or labels (text, True and False)."""
    missing = np.asarray(pd.isna(cells), dtype=np.bool_)
    kind = pd.api.types.infer_dtype(cells[~missing], skipna=False)
    if kind == "complex":
        raise InputError(f"Complex data not supported: column {name!r} of X; split it into two real ones.")
    if kind in ("string", "boolean", "bytes"):
        return _labelled(name, cells, missing)
    if kind not in (*NUMBER_KINDS, "empty"):
        _check_mixture(name, cells, missing, kind)
    values = np.full(len(cells), np.nan)
    values[~missing] = cells[~missing].astype(np.float64)
    return Column(name, values)


def _check_mixture(name: str, cells: NDArray[np.object_], missing: NDArray[np.bool_], kind: str) -> None:
    """Numbers beside True and False are numbers; all else is an error that names the first odd cell."""
    number = (bool, int, float, np.number, np.bool_)
    for row in np.flatnonzero(~missing):
        if isinstance(cells[row], number):
            continue
        if isinstance(cells[row], str | bytes) and kind.startswith("mixed"):
            raise InputError(
                f"Column {name!r} of X mixes numbers and text, first {cells[row]!r} in row {row} "
                "(counted from 0); make all of its cells numbers, or all of them text."
            )
        if kind.startswith("mixed"):
            raise TypeError(
                f"Column {name!r} of X, row {row} (counted from 0): argument must be a string or a number, "
                f"not {type(cells[row]).__name__!r}."
            )
        raise _not_usable(name, kind)


def _not_usable(name: str, kind: str) -> InputError:
    return InputError(
        f"Column {name!r} of X holds {kind} values, which have no meaning here; "
        "turn them into numbers (such as days since a start) or text, or drop the column."
    )


def _labelled(name: str, cells: NDArray[Any], missing: NDArray[np.bool_]) -> Column:
    codes, values = pd.factorize(cells)
    return _recoded(name, np.where(missing, -1, codes), list(values))


def _recoded(name: str, codes: NDArray[np.intp], values: list[Any], ordered: bool = False) -> Column:
    """Labels in sorted order, whatever order they came in."""
    texts = [label_of(value) for value in values]
    levels = sorted_labels(texts)
    place = {level: number for number, level in enumerate(levels)}
    lookup = np.array([*(place[text] for text in texts), -1], dtype=np.intp)
    ranks = tuple(texts.index(level) for level in levels) if ordered else ()
    return Column(name, None, lookup[codes], levels, ranks)
