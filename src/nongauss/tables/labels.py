"""The target of a classification: checked, its classes in order, and as class numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.records import persistable
from nongauss.tables.column import as_pandas, one_order, without_mask
from nongauss.tables.frame import refuse_records
from nongauss.tables.source import Part
from nongauss.tables.target import check_given, check_length
from nongauss.tables.words import known_order, one_case

_MOST_SHOWN, _FEW_STEPS, _MOST_STEPS = 10, 12, 50


@persistable("tables.LabelCoder", "nongauss.data.labels:LabelCoder")
@dataclass(frozen=True)
class LabelCoder:
    """The classes of a target in order, (C,); `encode` turns labels into their numbers 0..C-1.

    Classes keep the type of the labels: text, whole numbers, True and False.
    """

    classes: NDArray[Any]

    @classmethod
    def fit(
        cls,
        y: Any,
        weight: NDArray[np.float64],
        estimator_name: str = "this estimator",
        ordered: bool = False,
        levels: Sequence[Any] | None = None,
    ) -> LabelCoder:
        """Learn the classes from labels `y` (N,): array, list, series or categorical.

        Those that occur in rows of `weight` (N,) above 0, sorted; but with `ordered`, an ordered categorical
        keeps its own order and the levels that it declares without using them, texts have the order that is
        known of them (numbers by size, scales of words) or else one that is guessed, which is warned of, and
        numbers may have fractions if there are few different ones. `levels` gives all classes in order
        instead; then one of them, or none, may occur. An (N, 1) target warns as in scikit-learn.

        Raises: InputError for None, gaps, a wrong number of rows, one class, repeated `levels`; ValueError
        (scikit-learn's) for numbers that are no labels.
        """
        summary = LabelSummary.of(y, weight, estimator_name, "y", ordered)
        return cls(_distinct(levels)) if levels is not None else summary.coder(estimator_name, ordered)

    def encode(
        self,
        y: Any,
        n_rows: int,
        estimator_name: str = "this estimator",
        weight: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Class numbers (N,); a row of `weight` 0 may have any label, which then counts as class 0.

        Raises: InputError naming the first row with a label that is none of the classes.
        """
        labels = _valid_labels(y, n_rows, estimator_name, warn=False)
        numbers = pd.Index(self.classes).get_indexer(pd.Index(labels))
        strange = (numbers < 0) if weight is None else (numbers < 0) & (weight > 0)
        if strange.any():
            row = int(np.argmax(strange))
            raise InputError(
                f"y holds the label {labels.tolist()[row]!r} in row {row} (counted from 0), which is none of "
                f"the classes of {estimator_name} ({_listed(self.classes)}); correct it or drop the row."
            )
        found: NDArray[np.float64] = np.maximum(numbers, 0).astype(np.float64)
        return found


@dataclass(frozen=True)
class LabelSummary:
    """The labels of some rows in order, with their weights (C,); they add up over parts.

    `declared`: the levels of an ordered categorical; `listed`: those of one without an order. `seen_in`: the
    part that the labels are of.
    """

    labels: NDArray[Any]
    mass: NDArray[np.float64]
    declared: NDArray[Any] | None
    listed: NDArray[Any] | None
    seen_in: str

    @classmethod
    def of(
        cls, y: Any, weight: NDArray[np.float64], estimator_name: str, part: str, ordered: bool = False
    ) -> LabelSummary:
        """The weight of each label of y (N,) in rows of weight above 0. Raises InputError.

        `ordered`: numbers with fractions are labels too, if few different ones occur (12, or 50 twice each).
        """
        labels = _valid_labels(y, len(weight), estimator_name, warn=True)
        if not (ordered and _are_steps(labels)):
            if ordered and labels.dtype.kind == "f" and np.mod(labels, 1.0).any():
                raise _too_many_steps(labels, estimator_name)
            check_classification_targets(labels)
        distinct, which = np.unique(labels[weight > 0], return_inverse=True)
        mass = np.bincount(which.ravel(), weights=weight[weight > 0], minlength=len(distinct))
        levels, is_ordered = _levels_of(y)
        declared, listed = (levels, None) if is_ordered else (None, levels)
        return cls(distinct, mass.astype(np.float64), declared, listed, part)

    def __add__(self, other: LabelSummary) -> LabelSummary:
        if not (len(self.labels) and len(other.labels)):
            return self if len(self.labels) else other
        text = [any(isinstance(label, str) for label in s.labels.tolist()) for s in (self, other)]
        if text[0] != text[1]:
            raise InputError(
                f"Unknown label type: y holds texts in one of {self.seen_in} and {other.seen_in} but not in "
                "the other; make all of its labels one kind."
            )
        both = np.concatenate([self.labels, other.labels])
        labels, which = np.unique(both, return_inverse=True)
        mass = np.bincount(which.ravel(), weights=np.concatenate([self.mass, other.mass]))
        return LabelSummary(labels, mass.astype(np.float64), self._order(other), self.listed, self.seen_in)

    def _order(self, other: LabelSummary) -> NDArray[Any] | None:
        """The levels of both, in one order. Raises InputError where there is none."""
        if self.declared is None or other.declared is None:
            return None
        order = one_order(self.declared.tolist(), other.declared.tolist())
        if order is None:
            raise InputError(
                f"y is ordered as {_listed(self.declared)} in {self.seen_in} but as "
                f"{_listed(other.declared)} in {other.seen_in}; declare one order in all parts."
            )
        return self.declared if len(order) == len(self.declared) else other.declared

    def coder(self, estimator_name: str, ordered: bool = False) -> LabelCoder:
        """The classes of all the rows, by the rules of `LabelCoder.fit`. Raises InputError for one class."""
        if len(self.labels) < 2:
            raise InputError(
                f"{estimator_name} needs at least two classes in y, got 1 class: "
                f"{self.labels.tolist()[0]!r}; "
                "give rows of another class."
            )
        self._warn_of_alike(estimator_name)
        if not ordered:
            return LabelCoder(self.labels)
        return LabelCoder(self.declared if self.declared is not None else self._guessed(estimator_name))

    def _warn_of_alike(self, estimator_name: str) -> None:
        """Warn of words in several cases or with blanks around them, which stay classes of their own."""
        labels = self.labels.tolist()
        if not isinstance(labels[0], str) or len(labels) > _MOST_STEPS:
            return
        first: dict[str, str] = {}
        pairs = [(first.setdefault(word, label), label) for label, word in one_case(labels).items()]
        alike = [f"{one!r} and {other!r}" for one, other in pairs if one != other]
        if alike:
            warnings.warn(
                f"{estimator_name} treats {', '.join(alike[:3])} in y as different classes; spell "
                "them in one way if they are the same.",
                NongaussWarning,
                stacklevel=5,
            )

    def _guessed(self, estimator_name: str) -> NDArray[Any]:
        """The labels in the order that is known of them, else in one that is warned of."""
        labels = self.labels.tolist()
        if not isinstance(labels[0], str):
            return self.labels
        known = known_order(labels)
        if known is not None:
            return np.array(known[0], dtype=self.labels.dtype)
        listed = [] if self.listed is None else [level for level in self.listed.tolist() if level in labels]
        order, what = (
            (listed, "the order in which the category lists them")
            if listed
            else (labels, "alphabetical order")
        )
        shown = " < ".join(order[:_MOST_SHOWN]) + (" < …" if len(order) > _MOST_SHOWN else "")
        warnings.warn(
            f"{estimator_name} orders the classes as {shown}, which is a guess ({what}); to "
            "state the order, give an ordered category: pandas.Categorical(y, categories=[...], "
            "ordered=True).",
            NongaussWarning,
            stacklevel=4,
        )
        return np.array(order, dtype=self.labels.dtype)


def labels_of(
    estimator_name: str, part: Part, weight: NDArray[np.float64], *, ordered: bool = False
) -> LabelSummary:
    """What a part tells of the labels of a classifier: `learn(source, name, partial(labels_of, name))`.

    `ordered`: of one whose classes are grades, see `LabelSummary.of`.
    """
    return LabelSummary.of(part.y, weight, estimator_name, part.name, ordered)


def class_target(
    coder: LabelCoder, estimator_name: str, part: Part, weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A part's labels as class numbers (N, 1): `Encode(encoder, partial(class_target, coder, name), name)`.

    Raises: InputError naming the first row with a label that is none of the classes.
    """
    return coder.encode(part.y, len(weight), estimator_name, weight)[:, None]


def _levels_of(y: Any) -> tuple[NDArray[Any] | None, bool]:
    """The levels of a categorical, and whether they are ordered; None of others.

    Without an order only those of pandas are given: elsewhere they stand as they came up in the rows.
    """
    series = as_pandas(y)
    if isinstance(series, pd.DataFrame) and series.shape[1] == 1:
        series = series.iloc[:, 0]
    dtype = getattr(y if series is None else series, "dtype", None)
    own = isinstance(y, pd.Series | pd.DataFrame | pd.Categorical | pd.Index)
    if isinstance(dtype, pd.CategoricalDtype) and (own or dtype.ordered):
        return _plain(np.asarray(dtype.categories)), bool(dtype.ordered)
    return None, False


def _are_steps(labels: NDArray[Any]) -> bool:
    """Are these numbers with fractions of which few different ones occur: 3.5 stars?"""
    return labels.dtype.kind == "f" and are_few(labels)


def are_few(numbers: NDArray[Any]) -> bool:
    """Do so few different numbers occur that they may be labels: twelve, or fifty that occur twice each?"""
    n_different = len(np.unique(numbers))
    return n_different <= _FEW_STEPS < len(numbers) or n_different <= min(_MOST_STEPS, len(numbers) / 2)


def _too_many_steps(labels: NDArray[Any], estimator_name: str) -> InputError:
    """The error for numbers with fractions that are too many for levels."""
    return InputError(
        f"Unknown label type: continuous. y holds {len(np.unique(labels))} different numbers, not whole, in "
        f"{len(labels)} rows, too many for the ordered classes of {estimator_name}; round them, or use a "
        "regressor."
    )


def _distinct(levels: Sequence[Any] | ArrayLike) -> NDArray[Any]:
    """Classes that the user names, (C,). Raises InputError unless there are two or more, each named once."""
    classes = _plain(np.asarray(levels))
    if classes.ndim != 1 or len(classes) < 2 or len(pd.unique(classes)) < len(classes):
        raise InputError(
            f"The classes must be given as two or more different labels in order, got {levels!r}; "
            "name each of them once."
        )
    return classes


def _valid_labels(y: Any, n_rows: int, estimator_name: str, warn: bool) -> NDArray[Any]:
    """A target y as labels (N,) of one type, without gaps. Raises InputError."""
    check_given(y, estimator_name)
    array = _as_array(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = column_or_1d(array, warn=warn)
    if array.ndim != 1:
        raise InputError(f"y must hold one label a row, shape (n_rows,), got {array.shape}; reshape it.")
    check_length(n_rows, len(array))
    _check_present(array)
    return _plain(array)


def _as_array(y: Any) -> NDArray[Any]:
    """An array; of lists with text in them an object array, so that gaps and numbers do not become text."""
    frame = as_pandas(y)
    refuse_records(y, "y")
    array = np.asarray(without_mask(y) if frame is None else frame)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    is_list = frame is None and not hasattr(y, "dtype")
    return np.asarray(y, dtype=object) if is_list and array.dtype.kind == "U" else array


def _check_present(array: NDArray[Any]) -> None:
    """Every cell has a label, and the array is of a type that labels can have."""
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: y must hold labels.")
    missing = np.asarray(pd.isna(array), dtype=np.bool_)
    infinite = np.isinf(array) if array.dtype.kind == "f" else np.zeros(len(array), dtype=np.bool_)
    for bad, what in ((missing, "NaN (a missing label)"), (infinite, "infinity")):
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"Input y contains {what} in row {row} (counted from 0); drop the row or give its label."
            )


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Python objects of one type as an array of that type; text stays as it is.

    Raises: InputError for texts beside numbers, and for other objects, such as intervals.
    """
    if array.dtype.kind != "O":
        return array
    labels = array.tolist()
    is_text = np.fromiter((isinstance(label, str) for label in labels), np.bool_, len(labels))
    if is_text.all():
        return array
    if is_text.any():
        row = int(np.argmax(is_text != is_text[0]))
        raise InputError(
            f"Unknown label type: y mixes texts with others ({labels[0]!r} in row 0, {labels[row]!r} in "
            f"row {row}); make all of its labels one kind."
        )
    plain = np.array(labels)
    if plain.dtype.kind == "O":
        raise InputError(
            f"Unknown label type: y holds objects of type {type(labels[0]).__name__} ({labels[0]!r} in row "
            "0). Make texts of them: y.astype(str), or y.cat.rename_categories(str), which keeps an order."
        )
    return plain


def _listed(classes: NDArray[Any]) -> str:
    """The first ten classes as a message shows them."""
    shown = ", ".join(map(repr, classes[:_MOST_SHOWN].tolist()))
    return shown + (", …" if len(classes) > _MOST_SHOWN else "")
