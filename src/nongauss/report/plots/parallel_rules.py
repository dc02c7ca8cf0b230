"""Every rule through all the columns that rules speak of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.report.metrics import FloatArray
from nongauss.report.plots.rules import (
    cluster_colour,
    drawn_columns,
    half_step,
    number_columns,
    rule_ends,
    slant_names,
    some_row_numbers,
    value_range,
    value_words,
)
from nongauss.report.plots.style import SMALL, axes_or_new, figure_of, finish, key_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MOST_COLUMNS = 10


class ParallelRulesDisplay:
    """Every rule as bars on the columns that are used by some rule, with the rows as thin lines.

    Parameters
    ----------
    values : table of the rows.
    labels : (N,) cluster numbers.
    rules, names : as in `RectangleDisplay`; for a categorical column, `rules` has its `levels`.
    shown : how the values of a column are written, by its name; other columns have no marks.

    Notes
    -----
    Each column runs from its smallest to its largest value, or through its levels in alphabetical order. Of
    more than ten columns, those in most rules are drawn, with a note.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        values: pd.DataFrame,
        labels: npt.ArrayLike,
        rules: pd.DataFrame,
        names: list[str],
        shown: Mapping[str, Callable[[float], str]] | None = None,
    ) -> None:
        used = [c for c in values if c in set(rules["column"])]
        self.left_out = _left_out(len(used), values.shape[1])
        if len(used) > _MOST_COLUMNS:
            times = rules.groupby("column")["cluster"].nunique().reindex(used)
            most = set(times.sort_values(ascending=False, kind="stable").index[:_MOST_COLUMNS])
            used = [c for c in used if c in most]
        self.values, self.levels = _coded(values[(used or list(values))[:_MOST_COLUMNS]])
        self.labels, self.rules, self.names = np.asarray(labels), rules, list(names)
        self.shown = dict(shown or {})

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> ParallelRulesDisplay:
        """Plot rows X with their clusters by rule."""
        display = cls(
            values=drawn_columns(X, estimator),
            labels=estimator.predict(X),
            rules=estimator.rules_,
            names=estimator.cluster_names_,
            shown=value_words(estimator),
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ParallelRulesDisplay:
        """Draw on `ax`, or on a new figure; `kwargs` style the lines of the rows."""
        ax = axes_or_new(ax)
        columns = [str(c) for c in self.values]
        values = self.values.to_numpy(float)
        half = [half_step(x) for x in values.T]
        ends = np.array([value_range(x) for x in values.T]) + np.outer(half, [-1.0, 1.0])
        scaled = (values - ends[:, 0]) / (ends[:, 1] - ends[:, 0])
        place = np.arange(len(columns), dtype=float)
        style = {"linewidth": 0.6, "alpha": 0.25, **kwargs}
        kept = some_row_numbers(len(scaled), 400)
        for k, name in enumerate(self.names):
            own = kept[self.labels[kept] == k]
            ax.plot(place, scaled[own].T, color=cluster_colour(k, self.names), **style)
            ax.plot([], [], color=cluster_colour(k, self.names), linewidth=5, label=name)
        width = 0.7 / len(self.names)
        for k, at in product(range(len(self.names)), range(len(columns))):
            for low, high in self._bars(k, columns[at], tuple(ends[at]), half[at]):
                start, end = ends[at]
                ax.bar(
                    at + (k + 0.5) * width - 0.35,
                    (high - low) / (end - start),
                    width * 0.8,
                    (low - start) / (end - start),
                    alpha=0.85,
                    color=cluster_colour(k, self.names),
                )
        plate = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}
        for at, column in enumerate(columns):
            for code, level in enumerate(self.levels.get(column, ())):
                height = (code - ends[at, 0]) / (ends[at, 1] - ends[at, 0])
                ax.text(at, height, f" {level}", fontsize=SMALL, va="center", bbox=plate)
        self._write_ends(ax, columns, values, ends, plate)
        slant_names(ax, columns)
        ax.set_ylim(-0.03, 1.03)
        finish(ax, "Rules (bars) and rows (lines)", self.left_out, "share of the column's range")
        key_above(ax, 4)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _write_ends(
        self, ax: Axes, columns: list[str], values: FloatArray, ends: FloatArray, plate: dict[str, Any]
    ) -> None:
        """The least and greatest value of columns that have words for them, such as dates, where they lie."""
        for at, column in enumerate(columns):
            if column in self.shown:
                for value in value_range(values[:, at]):
                    height = (value - ends[at, 0]) / (ends[at, 1] - ends[at, 0])
                    text = f" {self.shown[column](value)}"
                    ax.text(at, height, text, fontsize=SMALL, va="center", bbox=plate)

    def _bars(self, k: int, column: str, ends: tuple[float, float], half: float) -> list[tuple[float, float]]:
        """Where a rule lets rows in, in the units of the column: one interval, or one a level."""
        own = self.rules[(self.rules["cluster"] == self.names[k]) & (self.rules["column"] == column)]
        if not len(own):
            return []
        if column not in self.levels:
            return [rule_ends(own, column, ends, half)]
        allowed = own["levels"].iloc[0]
        return [(i - 0.4, i + 0.4) for i, level in enumerate(self.levels[column]) if level in allowed]


def _left_out(n_used: int, n_columns: int) -> str:
    """What is said of columns that are not drawn: of those in rules, or of all where no rule has any."""
    if n_used > _MOST_COLUMNS:
        return f"the {_MOST_COLUMNS} columns in most rules, of {n_used} in rules"
    if not n_used and n_columns > _MOST_COLUMNS:
        return f"no column is in a rule: the first {_MOST_COLUMNS} of {n_columns}"
    return ""


def _coded(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Levels as numbers 0, 1, ... (NaN where missing), and the levels of each label column."""
    numbers = set(number_columns(frame))
    levels = {str(c): sorted(frame[c].dropna().unique()) for c in frame if c not in numbers}
    coded = {c: frame[c].map({v: float(i) for i, v in enumerate(own)}) for c, own in levels.items()}
    return frame.assign(**coded), levels
