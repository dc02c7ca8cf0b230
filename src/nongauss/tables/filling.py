"""Cells put into the gaps of a user's table, which keeps its type, columns and all that was there."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.cell_style import SAMPLE, date_writer, number_writer
from nongauss.tables.column import Column, as_pandas, label_of, tidy
from nongauss.tables.column_code import ColumnCode
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.frame import InputTable, match_columns, read_input
from nongauss.tables.kinds import kind_of
from nongauss.tables.learn_margins import cells_of
from nongauss.tables.margins import Margin

FloatArray = NDArray[np.float64]

_DAY = 86_400_000_000_000  # nanoseconds


@dataclass(frozen=True)
class Gaps:
    """A table to be filled: as it came, its columns, the margins' cells (N, J), which are missing.

    `places` (J,): the number of the table's column of each margin. A cell with a label that the fit did not
    know is no gap: it says nothing to the model, and stays as it is.
    """

    source: Any
    table: InputTable
    places: tuple[int, ...]
    cells: FloatArray
    missing: NDArray[np.bool_]


def find_gaps(encoder: TableEncoder, margins: tuple[Margin, ...], X: Any, name: str) -> Gaps:
    """The gaps of a table X. Warns as the encoder does. Raises InputError."""
    table = read_input(X, name)
    columns = encoder.raw(table, name)
    where = match_columns(table, encoder.feature_names, encoder.n_features, name, [])
    places = tuple(where[encoder.places[margin.flat]] for margin in margins)
    cells = cells_of(margins, columns) if margins else np.zeros((len(table), 0))
    missing = np.zeros(cells.shape, dtype=np.bool_)
    for j, place in enumerate(places):
        missing[:, j] = table.column(place).missing
    return Gaps(X, table, places, cells, missing)


def left_open(encoder: TableEncoder, margins: tuple[Margin, ...], gaps: Gaps, name: str) -> list[str]:
    """Names of columns with missing cells that no margin can fill: empty ones, and texts that nearly all
    differ (see `learn_margins.learn_margins`).
    """
    where = match_columns(gaps.table, encoder.feature_names, encoder.n_features, name, [])
    known = {encoder.places[margin.flat] for margin in margins}
    others = [place for number, place in enumerate(where) if number not in known]
    return [gaps.table.labels[place] for place in others if gaps.table.column(place).missing.any()]


def filled(
    encoder: TableEncoder,
    margins: tuple[Margin, ...],
    gaps: Gaps,
    values: Sequence[tuple[int, NDArray[np.intp], FloatArray]],
) -> Any:
    """The table with some cells filled, of the type it came as.

    `values`: of each column the number of its margin, the rows (R,), and what stands there (R,).
    """
    source = gaps.source
    frame: Any = source.as_frame() if isinstance(source, InputTable) else as_pandas(source)
    changed: dict[int, Any] = {}
    for j, rows, numbers in values:
        margin, place, series = margins[j], gaps.places[j], _series(gaps, j)
        code = encoder.columns[margin.flat]
        cells = _native(series, code, margin, numbers, gaps.cells[:, j])
        changed[place] = _with_cells(series, rows, cells)
    if frame is None:
        out = np.array(gaps.table.source, copy=True)
        for place, series in changed.items():
            out[:, place] = series.to_numpy(dtype=out.dtype)
        return out
    if isinstance(source, pd.DataFrame | InputTable):
        result = frame.copy()
        for place, series in changed.items():
            result.isetitem(place, series.set_axis(result.index))
        return result
    return _as_it_came(source, changed)


def own_terms(
    encoder: TableEncoder, margins: tuple[Margin, ...], gaps: Gaps, j: int
) -> Callable[[FloatArray], list[Any]] | None:
    """What turns numbers of margin j into cells as the table has them: words, dates, durations, times of day.

    None where the cells are numbers, also such as are written with a unit.
    """
    margin, series = margins[j], _series(gaps, j)
    code, present = encoder.columns[margin.flat], series[~series.isna()]
    is_of_time = getattr(series.dtype, "kind", "") == "m" or (
        len(present) > 0 and isinstance(present.iloc[0], dt.timedelta | dt.time)
    )
    if not margin.labels and not is_of_time and code.kind not in ("date", "clock"):
        return None
    return partial(_native, series, code, margin, known=gaps.cells[:, j])


def _series(gaps: Gaps, j: int) -> pd.Series[Any]:
    """The table's column of margin j, as it came; texts where its categories are those of these rows only."""
    column = gaps.table.raw(gaps.places[j])
    series = column if isinstance(column, pd.Series) else pd.Series(column)
    is_category = isinstance(series.dtype, pd.CategoricalDtype)
    return series.astype(object) if is_category and _is_open(gaps.source, gaps.places[j]) else series


def _is_open(source: Any, place: int) -> bool:
    """Does a column of categories take any others: of polars unless it is an Enum, of pyarrow?"""
    if isinstance(source, pd.DataFrame | InputTable):
        return False
    frame = nw.from_native(source, eager_only=True)
    return bool(frame[frame.columns[place]].dtype == nw.Categorical)


def _with_cells(series: pd.Series[Any], rows: NDArray[np.intp], cells: Any) -> pd.Series[Any]:
    """A series with some of its cells replaced, of the same type."""
    out = series.copy()
    if out.dtype == object:
        array = out.to_numpy(dtype=object, copy=True)
        for row, cell in zip(rows, cells, strict=True):
            array[row] = cell
        return pd.Series(array, index=out.index, dtype=object)
    out.iloc[rows] = pd.array(cells, dtype=out.dtype)
    return out


def _as_it_came(source: Any, changed: dict[int, pd.Series[Any]]) -> Any:
    """A frame of another library than pandas with some of its columns replaced, of the same types."""
    frame = nw.from_native(source, eager_only=True)
    names = frame.columns
    columns = []
    for place, series in changed.items():
        name = names[place]
        cells: list[Any] = [None if pd.isna(cell) else cell for cell in series.tolist()]
        own = frame[name]
        plain: list[Any] = [
            cell.to_pydatetime() if isinstance(cell, pd.Timestamp) else cell for cell in cells
        ]
        if own.dtype.is_integer():
            plain = [None if cell is None else int(cell) for cell in plain]
        columns.append(nw.new_series(name, plain, dtype=own.dtype, backend=frame.implementation))
    result = nw.to_native(frame.with_columns(*columns))
    return result.cast(source.schema) if frame.implementation.is_pyarrow() else result


def _native(
    series: pd.Series[Any], code: ColumnCode, margin: Margin, numbers: FloatArray, known: FloatArray
) -> list[Any]:
    """Numbers of a margin as cells of the type of a series: labels, dates, whole numbers, texts.

    `known` (N,): the numbers of the cells that are there, by which texts are written as these are.
    """
    if margin.labels:
        return _labels(series, [margin.labels[int(number)] for number in numbers])
    if code.kind == "date":
        return _dates(series, code, numbers, known)
    if getattr(series.dtype, "kind", "") == "m":
        return list(pd.to_timedelta(np.round(numbers * _DAY).astype(np.int64), unit="ns"))
    if pd.api.types.is_numeric_dtype(series.dtype):
        is_whole = pd.api.types.is_integer_dtype(series.dtype) or pd.api.types.is_bool_dtype(series.dtype)
        return [round(float(x)) for x in numbers] if is_whole else [float(x) for x in numbers]
    present = series[~series.isna()]
    if series.dtype == object and len(present) and not isinstance(present.iloc[0], str):
        first = present.iloc[0]
        if isinstance(first, dt.timedelta):
            return list(pd.to_timedelta(np.round(numbers * _DAY).astype(np.int64), unit="ns"))
        if isinstance(first, dt.time):
            return [dt.time.fromisoformat(code.shown(x)) for x in numbers]
        return [int(x) if isinstance(first, int) and float(x).is_integer() else float(x) for x in numbers]
    write = number_writer(*_examples(series, known)) if code.kind in ("", "number", "quantity") else None
    shown = kind_of(code.kind or "number").shown
    return [shown(x, code.part, 0.0) if write is None else write(x) for x in numbers.tolist()]


def _examples(series: pd.Series[Any], numbers: FloatArray) -> tuple[list[str], FloatArray]:
    """Texts of a series, and their numbers, of cells that have both."""
    rows = np.flatnonzero(series.notna().to_numpy() & ~np.isnan(numbers))[:SAMPLE]
    return [str(cell) for cell in series.iloc[rows]], numbers[rows]


def _labels(series: pd.Series[Any], texts: list[str]) -> list[Any]:
    """The objects of a series, or of its categories, that have these texts; else the texts."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        known = {tidy(label_of(value)): value for value in series.cat.categories}
        strange = [text for text in texts if text not in known]
        if strange:
            raise InputError(
                f"Column {series.name!r} would be filled with {strange[0]!r}, which is not a category; "
                "add it to them, or give the column as text."
            )
        return [known[text] for text in texts]
    if pd.api.types.is_bool_dtype(series.dtype):
        return [text == "True" for text in texts]
    present = series[~series.isna()]
    known = {tidy(label_of(value)): value for value in present.unique()} if len(present) else {}
    truth = {"True": True, "False": False} if any(isinstance(v, bool) for v in known.values()) else {}
    return [known.get(text, truth.get(text, text)) for text in texts]


def _dates(series: pd.Series[Any], code: ColumnCode, days: FloatArray, own: FloatArray) -> list[Any]:
    """Days since 1970, on the clock of the fit, as cells of a series: stamps, periods, numbers, texts."""
    form = code.part.partition("|")[2]
    if pd.api.types.is_numeric_dtype(series.dtype):
        plain = kind_of("date").plain(Column(code.name, days, kind="date", unit=form))
        assert plain.values is not None
        is_whole = pd.api.types.is_integer_dtype(series.dtype) or form.startswith("yyyy")
        return [round(x) if is_whole else float(x) for x in plain.values]
    stamps = pd.to_datetime(np.round(days * 86_400.0).astype(np.int64), unit="s")
    if isinstance(series.dtype, pd.PeriodDtype):
        return list(stamps.to_period(str(series.dtype.freq.freqstr)))
    if getattr(series.dtype, "kind", "") == "M":
        zone = getattr(series.dt, "tz", None)
        return list(
            stamps if zone is None else stamps.tz_localize(zone, ambiguous=True, nonexistent="shift_forward")
        )
    known = series[~series.isna()]
    first = known.iloc[0] if len(known) else ""
    if isinstance(first, str):
        write = date_writer(*_examples(series, own))
        return [code.shown(day - code.origin) if write is None else write(day) for day in days.tolist()]
    if isinstance(first, pd.Period):
        return list(stamps.to_period(str(first.freq.freqstr)))
    if isinstance(first, dt.datetime):
        return [stamp.to_pydatetime().replace(tzinfo=first.tzinfo) for stamp in stamps]
    return [stamp.date() for stamp in stamps] if isinstance(first, dt.date) else list(stamps)
