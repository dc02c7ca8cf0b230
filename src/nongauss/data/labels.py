"""The target of a classification: checked, and as class numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from nongauss.core.contracts import InputError
from nongauss.core.registry import persistable
from nongauss.data.table import as_pandas


@persistable
@dataclass(frozen=True)
class LabelCoder:
    """The classes of a target in order; `encode` turns labels into their numbers 0..C-1."""

    classes: NDArray[Any]

    @classmethod
    def fit(
        cls, y: Any, weight: NDArray[np.float64], estimator_name: str, ordered: bool = False
    ) -> LabelCoder:
        """Learn the classes from labels `y` (N,); rows of weight 0 leave no trace.

        They are sorted; but with `ordered`, an ordered categorical keeps its own order and the levels that it
        declares without using them. Raises InputError for one class, gaps, numbers that are no labels.
        """
        declared = _declared(y) if ordered else None
        labels = _labels(y, len(weight), estimator_name)
        check_classification_targets(labels)
        seen = np.unique(labels[weight > 0])
        if len(seen) < 2:
            raise InputError(
                f"{estimator_name} needs at least two classes in y, got 1 class: {seen[0]!r}; "
                "give rows of another class."
            )
        return cls(seen if declared is None else declared)

    def encode(self, y: Any, n_rows: int, estimator_name: str) -> NDArray[np.float64]:
        """Class numbers (N,). Raises InputError for a label that `fit` did not see."""
        labels = _labels(y, n_rows, estimator_name)
        place = {label: number for number, label in enumerate(self.classes.tolist())}
        numbers = np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.float64)
        if (numbers < 0).any():
            row = int(np.argmax(numbers < 0))
            raise InputError(
                f"y has the label {labels[row]!r} in row {row} (counted from 0), which is none of the classes "
                f"{', '.join(map(repr, self.classes.tolist()))}."
            )
        return numbers


def _declared(y: Any) -> NDArray[Any] | None:
    """The levels of an ordered categorical, else None."""
    series = as_pandas(y)
    dtype = getattr(series, "dtype", getattr(y, "dtype", None))
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        return np.asarray(dtype.categories)
    return None


def _labels(y: Any, n_rows: int, estimator_name: str) -> NDArray[Any]:
    """Labels (N,) without gaps."""
    if y is None:
        raise InputError(f"{estimator_name} requires y to be passed, but the target y is None.")
    frame = as_pandas(y)
    array = np.asarray(y if frame is None else frame)
    if array.ndim == 2 and array.shape[1] == 1:
        array = column_or_1d(array, warn=True)
    if array.ndim != 1:
        raise InputError(f"y must hold one label a row, shape (n_rows,), got {array.shape}.")
    if len(array) != n_rows:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"y has {len(array)}; give one y for each row of X."
        )
    missing = np.asarray(pd.isna(array), dtype=np.bool_)
    if missing.any():
        row = int(np.argmax(missing))
        raise InputError(
            f"Input y contains NaN (a missing label) in row {row} (counted from 0); drop the row."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError("Input y contains infinity; labels must be finite.")
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: y must hold labels.")
    return _plain(array)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """An object array that holds only texts, only integers, only bools or only floats as an array of that kind."""
    if array.dtype.kind != "O":
        return array
    kinds = {type(label) for label in array.tolist()}
    if kinds == {str} or len(kinds) == 1 and kinds <= {int, bool, float}:
        return np.array(array.tolist(), dtype=object if kinds == {str} else None)
    if all(isinstance(label, str) for label in array.tolist()) or not kinds & {str}:
        return np.array(array.tolist())
    raise InputError("Unknown label type: y mixes texts with numbers; make all labels of one kind.")
