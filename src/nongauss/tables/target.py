"""The target of a regression: checked, as a matrix, and standardised."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.records import persistable
from nongauss.tables.column import as_pandas, without_mask
from nongauss.tables.frame import refuse_records
from nongauss.tables.kinds import decode
from nongauss.tables.kinds.number import Moments, Scale, as_doubles
from nongauss.tables.rows import floats_of, widened
from nongauss.tables.source import Part

_SMALLEST_SPREAD, _LARGEST_SPREAD = 1e-150, 1e100


@persistable("tables.TargetScaler", "nongauss.data.target:TargetScaler")
@dataclass(frozen=True)
class TargetScaler:
    """Standardises P outputs: `z = (y - centre) / scale`.

    `centre` and `scale` (P,) are the weighted mean and population standard deviation; `scale` is negative for
    an output with negative skew, which is mirrored (a standard deviation in original units is
    `abs(scale) * sd`). A constant output has its value as centre, the size of that value (1 if it is 0) as
    scale, and True in `constant`.
    """

    centre: Float64[np.ndarray, " P"]
    scale: Float64[np.ndarray, " P"]
    constant: tuple[bool, ...]

    @classmethod
    def fit(cls, Y: NDArray[np.float64], weight: NDArray[np.float64] | None = None) -> TargetScaler:
        """Learn centre and scale from finite `Y` (N, P); weights (N,) count like repetitions.

        Raises: InputError for a spread of which squares of predictions far out are no numbers any more.
        """
        w = np.ones(len(Y)) if weight is None else np.asarray(weight, dtype=np.float64)
        counted = w > 0
        return cls.of_scales([Moments.of(y[counted], w[counted]).scale() for y in Y.T])

    @classmethod
    def of_scales(cls, scales: Sequence[Scale]) -> TargetScaler:
        """From the scale of each output."""
        scale = np.array([s.step if s.sd != 0 else abs(s.centre) or 1.0 for s in scales])
        size = np.abs(scale)
        if not ((size > _SMALLEST_SPREAD) & (size < _LARGEST_SPREAD)).all():
            raise InputError(
                f"y has a spread of {size.max():.3g}, beyond what can be squared in 64 bits; "
                "change its units."
            )
        centre = np.array([s.centre for s in scales])
        return cls(centre, scale, tuple(s.sd == 0 for s in scales))

    def transform(self, Y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standardised `Y` (N, P)."""
        z: NDArray[np.float64] = (Y - self.centre) / self.scale
        return z

    def inverse_mean(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (..., P) on the standardised scale back in original units."""
        y: NDArray[np.float64] = self.centre + self.scale * Z
        return y


@dataclass(frozen=True)
class TargetSummary:
    """What some rows tell of a target of numbers: moments of each output. They add up over parts.

    `dims` (1 or 2) is that of the target as it was given.
    """

    outputs: tuple[Moments, ...]
    dims: int

    @classmethod
    def of(cls, y: Any, weight: NDArray[np.float64], estimator_name: str) -> TargetSummary:
        """Moments of y (N,) or (N, P) over the rows of weight above 0, one at least. Raises InputError."""
        Y, was_1d = validate_target(y, len(weight), estimator_name)
        counted = weight > 0
        outputs = tuple(Moments.of(column[counted], weight[counted]) for column in Y.T)
        return cls(outputs, 1 if was_1d else 2)

    def __add__(self, other: TargetSummary) -> TargetSummary:
        outputs = tuple(a + b for a, b in zip(self.outputs, other.outputs, strict=True))
        return TargetSummary(outputs, self.dims)

    def scaler(self) -> TargetScaler:
        """As `TargetScaler.fit` learns it from all the rows."""
        return TargetScaler.of_scales([moments.scale() for moments in self.outputs])


def warn_if_constant(scaler: TargetScaler, stacklevel: int) -> None:
    """Warn of a target with one value, at the line of this level that called."""
    if any(scaler.constant):
        warnings.warn(
            "The target is constant: that value is predicted everywhere, with a spread that the data "
            "cannot tell.",
            NongaussWarning,
            stacklevel=stacklevel,
        )


def warn_if_far(target: TargetSummary, stacklevel: int) -> None:
    """Warn of a single value beside which all others look the same, at the line of this level that called."""
    for moments in target.outputs:
        if not np.isnan(moments.hides):
            warnings.warn(
                f"The target holds {moments.hides:.6g}, so far from all other values that they look the same "
                "beside it, and all intervals are as wide; correct it, or drop its row.",
                NongaussWarning,
                stacklevel=stacklevel,
            )


def target_of(estimator_name: str, part: Part, weight: NDArray[np.float64]) -> TargetSummary:
    """What a part tells of a target of numbers: `learn(source, name, partial(target_of, name))`."""
    return TargetSummary.of(part.y, weight, estimator_name)


def scaled_target(
    scaler: TargetScaler, estimator_name: str, part: Part, weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A part's standardised target (N, P): `Encode(encoder, partial(scaled_target, scaler, name), name)`.

    Raises: InputError for numbers that are none.
    """
    Y, _ = validate_target(part.y, len(weight), estimator_name, warn=False)
    return scaler.transform(Y)


def validate_target(
    y: Any, n_rows: int | None = None, estimator_name: str = "this estimator", warn: bool = True
) -> tuple[NDArray[np.float64], bool]:
    """`y` as a finite float64 matrix (N, P), and whether it was one column (so predictions are (N,)).

    Lists, arrays, series and frames are accepted; (N, 1) warns as in scikit-learn (unless `warn` is False)
    and counts as one column.
    `n_rows` is the number of rows of X (None: not compared).

    Raises: InputError for None, text, complex or infinite numbers, missing cells, or a wrong number of rows.
    """
    check_given(y, estimator_name)
    array, names = _as_array(y)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise InputError(
            f"y must have shape (n_rows,) or (n_rows, n_outputs), got {array.shape}; reshape it."
        )
    if n_rows is not None:
        check_length(n_rows, len(array))
    values = _as_floats(array, warn)
    if values.ndim == 2 and values.shape[1] == 1:
        values = column_or_1d(values, warn=warn)
    was_1d = values.ndim == 1
    matrix = values.reshape(len(values), -1) if len(values) else np.empty((0, 1))
    _check_finite(matrix, names)
    return matrix, was_1d


def check_given(y: Any, estimator_name: str) -> None:
    """Raises InputError, in scikit-learn's words, without a target, and TypeError for a sparse one."""
    if y is None:
        raise InputError(f"{estimator_name} requires y to be passed, but the target y is None.")
    if hasattr(y, "toarray") and as_pandas(y) is None:
        raise TypeError("y is sparse, but a dense target is required; use y.toarray().")


def check_length(n_rows: int, n_targets: int) -> None:
    """Raises InputError, in scikit-learn's words, unless a target has one entry for each row of X."""
    if n_targets != n_rows:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"y has {n_targets}; give one y for each row of X."
        )


def _as_array(y: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
    """An array (missing cells NaN or None) and the names of its outputs, if any."""
    frame = as_pandas(y)
    if isinstance(frame, pd.DataFrame):
        columns = [_series_array(frame.iloc[:, j]) for j in range(frame.shape[1])]
        stacked = np.column_stack(columns) if columns else np.empty((len(frame), 0))
        return stacked, tuple(str(name) for name in frame.columns)
    if isinstance(frame, pd.Series):
        return _series_array(frame), ()
    refuse_records(y, "y")
    try:
        return np.asarray(without_mask(y)), ()
    except ValueError as error:
        raise InputError(f"y is not a table of numbers ({error}); give every row as many values.") from error


def _series_array(series: pd.Series[Any]) -> NDArray[Any]:
    """The cells of a series: numbers as float64 with NaN for gaps, dates as they are, others as objects."""
    if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_complex_dtype(series.dtype):
        return floats_of(series)
    if pd.api.types.is_datetime64_any_dtype(series.dtype) or pd.api.types.is_timedelta64_dtype(series.dtype):
        return np.asarray(series.to_numpy())
    return series.to_numpy(dtype=object)


def _as_floats(array: NDArray[Any], warn: bool) -> NDArray[np.float64]:
    """A target's cells as float64, gaps as NaN. Raises InputError for what is no real number."""
    kind = array.dtype.kind
    if kind == "c":
        raise InputError("Complex data not supported: y must be real numbers.")
    if kind in "mM":
        raise InputError(f"y holds {array.dtype} values; turn them into numbers, such as days since a start.")
    if kind != "O" and kind not in "US":
        return np.array(widened(array))
    matrix = array.reshape(len(array), -1)
    columns = [_column_of_texts(matrix[:, at], warn) for at in range(matrix.shape[1])]
    return np.stack(columns, axis=1).reshape(array.shape) if columns else np.empty(array.shape)


def _column_of_texts(cells: NDArray[Any], warn: bool) -> NDArray[np.float64]:
    """Objects or texts (N,) as numbers: those that are, and texts as people write them ("$1,200").

    Raises InputError naming the first that is none.
    """
    objects = cells.astype(object)
    missing = np.asarray(pd.isna(objects), dtype=np.bool_)
    out = np.full(len(objects), np.nan)
    for at in np.flatnonzero(~missing):
        if isinstance(objects[at], complex | np.complexfloating):
            raise InputError("Complex data not supported: y must be real numbers.")
        try:
            out[at] = as_doubles(objects[at : at + 1])[0]
        except (TypeError, ValueError):
            break
    else:
        return out
    odd = int(at)
    try:
        column = decode("y", objects)
        if column.values is not None and column.kind in ("number", "quantity"):
            lost = np.flatnonzero(column.missing & ~missing)
            if not len(lost):
                if column.note and warn:
                    warnings.warn(f"The target {column.note}.", NongaussWarning, stacklevel=2)
                return column.values
            odd = int(lost[0])
    except (InputError, TypeError):
        pass
    raise InputError(
        f"y holds {objects[odd]!r} in row {odd} (counted from 0), which is not a number; "
        "a regression needs numbers, for labels use a classifier."
    )


def _check_finite(matrix: NDArray[np.float64], names: tuple[str, ...]) -> None:
    """Raises InputError naming the first row and output of a target (N, P) that is NaN or infinite."""
    bad = ~np.isfinite(matrix)
    if bad.any():
        row = int(np.argmax(bad.any(axis=1)))
        output = int(np.argmax(bad[row]))
        name = repr(names[output]) if names else str(output)
        where = f"row {row}, output {name}" if matrix.shape[1] > 1 else f"row {row}"
        what = "NaN (a missing value)" if np.isnan(matrix[row, output]) else "infinity"
        raise InputError(
            f"Input y contains {what} in {where} (counted from 0); drop the row or give a value."
        )
