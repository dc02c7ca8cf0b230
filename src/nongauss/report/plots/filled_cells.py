"""Gaps that were filled: a column's cells before and after, and how sure each of the new ones is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nongauss.core.errors import InputError
from nongauss.predictive.cells import CellDistribution
from nongauss.predictive.distribution import FloatArray
from nongauss.report.filled import FilledColumn, filled_columns
from nongauss.report.plots.style import BLUE, GREY, axes_or_new, figure_of, finish, shortened, tips

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KNOWN, NEW = "known cells", "missing cells, as predicted"
POINT, MIDST = "value put in, with its 90 % interval", "90 % of the observed cells"
CHANCE, FREQUENT = "probability of the label put in", "share of the most frequent label"
_MOST_BARS, _BINS, _MOST_CELLS = 8, 18, 60
_SPAN = 50.0
"""Columns of positive numbers whose middle 90 % span more than this ratio have a logarithmic axis."""


class _ColumnDisplay(ABC):
    """A picture of one column whose gaps were filled."""

    ax_: Axes
    figure_: Figure

    def __init__(self, column: FilledColumn) -> None:
        self.column = column

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, column: str, *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Plot a column of a table X with gaps, as a fitted imputer fills it. Raises InputError."""
        return cls(_column_of(estimator, X, column)).plot(ax=ax, **kwargs)

    @abstractmethod
    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw on `ax`, or on a new figure."""


class FilledCellsDisplay(_ColumnDisplay):
    """Observed cells of a column and imputed cells, as shares of each.

    The missing cells are shown by their predictive distributions, not by the single values put in, which
    cluster in the middle. Parameters: `column`, what was filled.
    """

    @property
    def has_names(self) -> bool:
        """Are there few values, each with its name and a bar?"""
        margin = self.column.margin
        return bool(margin.labels) or (margin.is_whole and margin.n_values <= _MOST_BARS)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw on `ax`, or on a new figure: observed cells grey, imputed ones blue (`kwargs`)."""
        ax = axes_or_new(ax)
        (self._bars if self.has_names else self._histogram)(ax, kwargs)
        ax.plot([], [], color=BLUE, label=NEW)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _bars(self, ax: Axes, how: dict[str, Any]) -> None:
        """A grey bar for each value, and a blue mark where the missing cells are."""
        column = self.column
        values = np.unique(column.margin.edge)
        known = np.array([np.mean(column.known == value) for value in values])
        new = column.law.probabilities().mean(axis=0)
        order = np.arange(len(values)) if not column.is_label else np.argsort(-known, kind="stable")
        order = order[:_MOST_BARS] if column.is_label else order
        at = np.arange(len(order))
        ax.barh(at, 100 * known[order], height=0.7, color=GREY, alpha=0.35, label=KNOWN)
        marks = ax.scatter(100 * new[order], at, marker="|", s=160, linewidth=2.6, color=BLUE, **how)
        names = [shortened(column.shown(float(value)), 16) for value in values[order]]
        said = [
            f"{n}: {100 * k:.0f} % of the known, {100 * p:.0f} % of the missing"
            for n, k, p in zip(names, known[order], new[order], strict=True)
        ]
        tips(marks, said)
        finish(ax, column.name, "share of cells (%)", "")
        ax.set_yticks(at, names)
        ax.invert_yaxis()
        ax.set_xlim(left=0.0)
        ax.grid(visible=False, axis="y")

    def _histogram(self, ax: Axes, how: dict[str, Any]) -> None:
        """Grey bars for the known cells, a blue line for the missing ones."""
        column = self.column
        edges, is_log = _edges(column.known)
        known = np.histogram(np.clip(column.known, edges[0], edges[-1]), edges)[0] / len(column.known)
        assert isinstance(column.law, CellDistribution)
        up_to = np.stack([column.law.cdf(np.full(len(column.law), edge)) for edge in edges[1:-1]], axis=1)
        ends = np.zeros((len(up_to), 1)), np.ones((len(up_to), 1))
        new = np.diff(np.concatenate([ends[0], up_to, ends[1]], axis=1), axis=1).mean(axis=0)
        ax.bar(edges[:-1], 100 * known, np.diff(edges), align="edge", color=GREY, alpha=0.35, label=KNOWN)
        ax.stairs(100 * new, edges, color=BLUE, linewidth=1.8, baseline=None, **how)
        middle = np.sqrt(edges[1:] * edges[:-1]) if is_log else 0.5 * (edges[1:] + edges[:-1])
        marks = ax.scatter(middle, 100 * new, s=90, color=GREY, alpha=0.0, linewidth=0, zorder=5)
        said = (
            f"{column.shown(low)} to {column.shown(high)}: {100 * k:.1f} % of the known, "
            f"{100 * p:.1f} % of the missing"
            for low, high, k, p in zip(edges[:-1], edges[1:], known, new, strict=True)
        )
        tips(marks, list(said))
        finish(ax, "", shortened(column.name, 40), "share of cells (%)")
        if is_log:
            ax.set_xscale("log")
        _label_axis(ax.xaxis, column, is_log)
        ax.set_ylim(bottom=0.0)


class CellSpreadDisplay(_ColumnDisplay):
    """Uncertainty of each imputed cell of a column, in the order of the values put in.

    For numbers, dates and grades each cell's 90 % interval beside that of the column, for labels the
    probability of the label put in beside the share of the most frequent one. Of more than 60 cells an even
    selection is drawn. Parameters: `column`, what was filled.
    """

    @property
    def has_names(self) -> bool:
        """Are there names or days along the axis of cells, and the column's name above?"""
        return bool(self.column.margin.labels) or self.column.code.kind == "date"

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw on `ax`, or on a new figure; `kwargs` go to the points."""
        ax = axes_or_new(ax)
        (self._labels if self.column.is_label else self._intervals)(ax, kwargs)
        ax.set_xticks([])
        ax.grid(visible=False, axis="x")
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _intervals(self, ax: Axes, how: dict[str, Any]) -> None:
        """A line for each cell, over the band of the known ones."""
        column, point = self.column, self.column.point
        low, high = column.interval
        shown = _some(np.argsort(point, kind="stable"))
        at = np.arange(len(shown))
        ends = column.alone.interval(0.9)[0]
        ax.axhspan(ends[0], ends[1], color=GREY, alpha=0.16, linewidth=0, label=MIDST)
        ax.vlines(at, low[shown], high[shown], color=BLUE, linewidth=1.4, alpha=0.6)
        marks = ax.scatter(at, point[shown], s=14, color=BLUE, zorder=3, label=POINT, **how)
        said = [
            f"row {column.rows[k] + 1}: {column.shown(point[k])}, 90 % from {column.shown(low[k])} to "
            f"{column.shown(high[k])}"
            for k in shown
        ]
        tips(marks, said)
        names = column.margin.labels
        title, ylabel = (column.name, "") if self.has_names else ("", shortened(column.name))
        finish(ax, title, _axis_of(len(shown), len(point), "from low to high"), ylabel)
        is_log = _is_wide(column.known) and not names
        if is_log:
            ax.set_yscale("log")
        if names:
            ax.set_yticks(np.arange(len(names)), [shortened(name, 12) for name in names])
        else:
            _label_axis(ax.yaxis, column, is_log)

    def _labels(self, ax: Axes, how: dict[str, Any]) -> None:
        """A point for each cell: the probability of its label."""
        column = self.column
        shown = _some(np.argsort(column.sureness, kind="stable"))
        at, point = np.arange(len(shown)), column.point
        ax.axhline(100 * column.most_frequent, color=GREY, linestyle="--", linewidth=1.2, label=FREQUENT)
        marks = ax.scatter(at, 100 * column.sureness[shown], s=14, color=BLUE, label=CHANCE, zorder=3, **how)
        said = [
            f"row {column.rows[k] + 1}: {column.shown(point[k])}, {100 * column.sureness[k]:.0f} %"
            for k in shown
        ]
        tips(marks, said)
        finish(
            ax, column.name, _axis_of(len(shown), len(point), "from least to most sure"), "probability (%)"
        )
        ax.set_ylim(0.0, 104.0)


def _column_of(estimator: Any, X: Any, name: str) -> FilledColumn:
    """The column of this name, as an imputer fills it. Raises InputError where it has no gaps to fill."""
    columns = {c.name: c for c in filled_columns(estimator, estimator.impute_distribution(X), X)}
    if name not in columns:
        raise InputError(
            f"Column {name!r} has no gaps that were filled; those that have are {list(columns)}."
        )
    return columns[name]


def _is_wide(known: FloatArray) -> bool:
    """Do positive numbers span so many powers of ten that their logarithms are drawn?"""
    low, high = np.quantile(known, [0.05, 0.95])
    return bool(known.min() > 0 and high > _SPAN * low)


def _edges(known: FloatArray) -> tuple[FloatArray, bool]:
    """Ends of the bins of a histogram of the known cells, and whether they are even in the logarithm."""
    low, high = np.quantile(known, [0.005, 0.995])
    if high <= low:
        low, high = known.min(), known.max()
    if high <= low:
        low, high = low - 0.5, high + 0.5
    if _is_wide(known):
        return np.geomspace(low, high, _BINS + 1), True
    return np.linspace(low, high, _BINS + 1), False


def _some(order: Any) -> Any:
    """At most `_MOST_CELLS` of the cells, evenly over their order."""
    if len(order) <= _MOST_CELLS:
        return order
    return order[np.linspace(0, len(order) - 1, _MOST_CELLS).round().astype(int)]


def _axis_of(n_shown: int, n_all: int, order: str) -> str:
    """The label of the axis below the cells."""
    which = f"{n_shown} of {n_all:,} cells" if n_shown < n_all else f"{n_all} cell{'s' * (n_all != 1)}"
    return f"{which}, {order}"


def _label_axis(axis: Any, column: FilledColumn, is_log: bool) -> None:
    """Few numbers along an axis; days as the column's kind writes them."""
    from matplotlib.ticker import MaxNLocator

    if column.code.kind == "date":
        axis.set_major_locator(MaxNLocator(3))
        axis.set_major_formatter(lambda value, _: column.shown(float(value)))
    elif not is_log:
        axis.set_major_locator(MaxNLocator(5))
