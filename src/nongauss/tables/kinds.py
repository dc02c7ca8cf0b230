"""What kind of values a column holds, with the reason in words."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.tables.frame import as_pandas, label_of

MOST_GRADES = 10  # consecutive whole numbers up to so many levels are grades
LARGEST_COUNT = 10_000  # whole numbers beyond are amounts (prices, metres) rather than counts
CLEAR_SKEW = 1.0  # skewness from which positive numbers call for a positive likelihood
FEW_TEXTS = 10  # up to so many different texts are categories even if none repeats


class ColumnKind(enum.Enum):
    """The kind of a column; the value is the word for it in messages."""

    REAL = "real"
    POSITIVE = "positive"
    COUNT = "count"
    ORDINAL = "ordinal"
    BINARY = "binary"
    CATEGORICAL = "categorical"
    TEXT = "text"
    CONSTANT = "constant"


def column_kind(series: Any) -> ColumnKind:
    """The kind of one column (series, array or list); see `target_kind` for the rules."""
    return target_kind(series)[0]


def target_kind(series: Any) -> tuple[ColumnKind, str]:
    """The kind of one column and a sentence that says why. Missing cells are left out.

    The first rule that applies: at most one value: constant. An ordered categorical: ordinal. Text, unordered
    categories, True/False: binary with two values, text if no value repeats (more than 10 of them), else
    categorical. Numbers: two whole numbers: binary; 3 to 10 consecutive whole numbers, each twice on average:
    ordinal; whole numbers from 0 to 10,000: count; positive with skewness above 1: positive; else real.

    Raises: InputError for a table with several columns, dates, or mixed cells.
    """
    column = as_pandas(series)
    if isinstance(column, pd.DataFrame):
        if column.shape[1] != 1:
            raise InputError(
                f"One column is needed to tell its kind, got {column.shape[1]}; pass one of them."
            )
        column = column.iloc[:, 0]
    if column is None:
        if not isinstance(series, pd.api.extensions.ExtensionArray):
            values = np.asarray(series)
            series = values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values
        column = pd.Series(series)
    column = column.dropna()
    dtype = column.dtype
    numeric = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    if not numeric and not isinstance(dtype, pd.CategoricalDtype):
        numeric = pd.api.types.infer_dtype(column, skipna=True) in (
            "integer",
            "floating",
            "mixed-integer-float",
        )
    distinct = column.nunique()
    if distinct <= 1:
        only = f"only the value {label_of(column.iloc[0])}" if distinct else "no value at all"
        return ColumnKind.CONSTANT, f"It holds {only}."
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        return ColumnKind.ORDINAL, f"It is an ordered category with {distinct} levels in use."
    if not numeric:
        return _label_kind(column, distinct)
    return _number_kind(column.to_numpy(dtype=np.float64))


def _label_kind(column: pd.Series[Any], distinct: int) -> tuple[ColumnKind, str]:
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind.startswith(("date", "time", "period", "interval", "complex")):
        raise InputError(f"The column holds {kind} values, which have no kind here; turn them into numbers.")
    if distinct == 2:
        first, second = sorted(label_of(value) for value in column.unique())
        return ColumnKind.BINARY, f"It holds two different labels ({first} and {second})."
    if distinct == len(column) and distinct > FEW_TEXTS:
        return ColumnKind.TEXT, f"It holds {distinct} texts of which none occurs twice."
    return ColumnKind.CATEGORICAL, f"It holds {distinct} different labels without an order."


def _number_kind(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[ColumnKind, str]:
    levels = np.unique(values)
    low, high = levels[0], levels[-1]
    if bool(np.isfinite(values).all()) and bool((levels == np.round(levels)).all()):
        if len(levels) == 2:
            return ColumnKind.BINARY, f"It holds two different whole numbers ({low:g} and {high:g})."
        consecutive = high - low == len(levels) - 1
        if consecutive and len(levels) <= MOST_GRADES and len(values) >= 2 * len(levels):
            return (
                ColumnKind.ORDINAL,
                f"It holds the {len(levels)} consecutive whole numbers {low:g} to {high:g}.",
            )
        if low >= 0 and high <= LARGEST_COUNT:
            return ColumnKind.COUNT, f"It holds whole numbers from {low:g} to {high:g}, none negative."
    if low > 0:
        skew = _skewness(values)
        if skew > CLEAR_SKEW:
            return (
                ColumnKind.POSITIVE,
                f"It holds positive numbers with a long tail to the right (skewness {skew:.1f}).",
            )
    return ColumnKind.REAL, f"It holds numbers from {low:.4g} to {high:.4g}."


def _skewness(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    z = values / np.abs(values).max()
    z = z - z.mean()
    spread = float(np.sqrt((z * z).mean()))
    return float(((z / spread) ** 3).mean()) if spread > 0 else 0.0
