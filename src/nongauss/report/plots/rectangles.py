"""Rules as rectangles over a scatter plot of two columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray
from nongauss.report.plots.rules import (
    cluster_colour,
    drawn_columns,
    half_step,
    number_columns,
    rule_ends,
    some_row_numbers,
    value_range,
    value_words,
    write_ticks,
)
from nongauss.report.plots.style import axes_or_new, figure_of, finish, key_above, tips

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class RectangleDisplay:
    """Rules as rectangles over a scatter plot of two columns.

    Parameters
    ----------
    x, y : (N,) values of two columns. labels : (N,) cluster numbers, -1 for none.
    rules : table with cluster, column, lower, upper. names : names of the clusters.
    columns : names of the two columns. A rule that also uses other columns is drawn with a broken line, one
        that uses neither is not drawn.
    shown : how the values of a column are written, by its name; other columns, or None: as numbers.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        labels: npt.ArrayLike,
        rules: pd.DataFrame,
        names: list[str],
        columns: tuple[str, str],
        shown: Mapping[str, Callable[[float], str]] | None = None,
    ) -> None:
        self.x, self.y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        self.labels, self.rules, self.names, self.columns = np.asarray(labels), rules, list(names), columns
        self.shown = dict(shown or {})

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        columns: tuple[str, str] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> RectangleDisplay:
        """Plot rows X with their clusters by rule; by default in the two columns that separate best."""
        frame = number_columns(drawn_columns(X, estimator))
        labels, names = estimator.predict(X), list(estimator.cluster_names_)
        chosen = columns if columns is not None else best_pairs(estimator.rules_, frame, labels, names)[0]
        absent = [name for name in chosen if name not in frame]
        if absent:
            raise InputError(f"X has no numeric column {absent[0]!r}; it has {', '.join(map(repr, frame))}.")
        display = cls(
            x=frame[chosen[0]],
            y=frame[chosen[1]],
            labels=labels,
            rules=estimator.rules_,
            names=names,
            columns=chosen,
            shown=value_words(estimator),
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> RectangleDisplay:
        """Draw on `ax`, or on a new figure; `kwargs` style the points."""
        from matplotlib.ticker import MaxNLocator

        ax = axes_or_new(ax)
        style = {"s": 14, "linewidth": 0, "alpha": 0.75, **kwargs}
        kept = some_row_numbers(len(self.labels))
        x, y = _spread(self.x), _spread(self.y)
        for k, name in enumerate([*self.names, "no rule"]):
            own = kept[self.labels[kept] == (k if k < len(self.names) else -1)]
            if len(own):
                points = ax.scatter(x[own], y[own], color=cluster_colour(k, self.names), label=name, **style)
                tips(points, [f"row {i + 1}: {name}" for i in own])
        limits = [_limits(self.x), _limits(self.y)]
        self._draw_rules(ax, limits)
        ax.set(xlim=limits[0], ylim=limits[1])
        for axis, values, column in zip((ax.xaxis, ax.yaxis), (self.x, self.y), self.columns, strict=True):
            if half_step(values):
                axis.set_major_locator(MaxNLocator(integer=True))
            write_ticks(axis, self.shown.get(column))
        finish(ax, "Rules, broken where other columns matter too", *self.columns)
        key_above(ax, 4)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _draw_rules(self, ax: Axes, limits: list[tuple[float, float]]) -> None:
        """A rectangle for each rule that speaks of a column shown, broken where it speaks of others too."""
        from matplotlib.patches import Rectangle

        for k, name in enumerate(self.names):
            own = self.rules[self.rules["cluster"] == name]
            if not set(own["column"]) & set(self.columns):
                continue
            (x0, x1), (y0, y1) = (
                rule_ends(own, column, ends, half_step(values), k)
                for column, ends, values in zip(self.columns, limits, (self.x, self.y), strict=True)
            )
            others = not set(own["column"]) <= set(self.columns)
            ax.add_patch(
                Rectangle(
                    (x0, y0),
                    x1 - x0,
                    y1 - y0,
                    fill=False,
                    linewidth=1.8,
                    edgecolor=cluster_colour(k, self.names),
                    linestyle=(0, (4, 3)) if others else "-",
                )
            )


def best_pairs(
    rules: pd.DataFrame, frame: pd.DataFrame, labels: npt.NDArray[Any], names: Sequence[str], count: int = 2
) -> list[tuple[str, str]]:
    """The pairs of columns whose bounds alone put most rows into the rule of their cluster and no other."""
    columns = [str(name) for name in frame]
    if len(columns) < 2:
        raise InputError(f"A scatter plot needs two numeric rule columns, got {len(columns)}.")
    held = {column: np.ones((len(frame), len(names)), dtype=np.bool_) for column in columns}
    for line in rules.to_dict("records"):
        if line["column"] in held:
            x = frame[line["column"]].to_numpy(float)
            outside = (x < line["lower"]) | (x > line["upper"])
            held[line["column"]][outside, list(names).index(line["cluster"])] = False
    own = np.asarray(labels)[:, None] == np.arange(len(names))
    spoken = [column for column in columns if not held[column].all()]
    pairs = list(combinations(spoken, 2)) or list(combinations([*spoken, *columns], 2))
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    parted = [((held[a] & held[b]) == own).all(axis=1).mean() for a, b in pairs]
    return [pairs[i] for i in np.argsort(-np.array(parted), kind="stable")[:count]]


def _limits(values: FloatArray) -> tuple[float, float]:
    low, high = value_range(values)
    margin = max(0.05 * (high - low), 1.5 * half_step(values))
    return low - margin, high + margin


def _spread(values: FloatArray) -> FloatArray:
    """Few whole numbers spread a little, so that equal ones do not hide each other."""
    golden = (np.arange(len(values)) * 0.6180339887) % 1.0 - 0.5
    spread: FloatArray = values + 1.2 * half_step(values) * golden
    return spread
