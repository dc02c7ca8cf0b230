"""Plots of clusters with rules: rectangles over scatter plots, parallel coordinates, a profile of each
cluster.

They read what a fitted clusterer with rules has: `rules_`, `labels_`, `cluster_names_`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.core.contracts import InputError
from nongauss.report.metrics import FloatArray
from nongauss.report.style import GREY, axes_or_new, figure_of, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
"""Okabe and Ito's colours, in an order in which neighbours differ; used again from the ninth cluster on."""

_MOST_ROWS = 5000
_MOST_COLUMNS = 10


class RectangleDisplay:
    """Rules as rectangles over a scatter plot of two columns.

    Parameters
    ----------
    x, y : (N,) values of two columns. labels : (N,) cluster numbers, -1 for none.
    rules : table with cluster, column, lower, upper. names : names of the clusters.
    columns : names of the two columns. A rule that speaks of other columns too is drawn with a broken line.
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
    ) -> None:
        self.x, self.y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        self.labels, self.rules, self.names, self.columns = np.asarray(labels), rules, list(names), columns

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
        """Plot rows X with their clusters by rule; by default the two numeric columns that part them best."""
        frame = _numeric_frame(estimator, X)
        labels, names = estimator.predict(X), list(estimator.cluster_names_)
        chosen = columns if columns is not None else best_pairs(estimator.rules_, frame, labels, names)[0]
        absent = [name for name in chosen if name not in frame]
        if absent:
            raise InputError(f"X has no numeric column {absent[0]!r}; it has {', '.join(map(repr, frame))}.")
        display = cls(
            x=frame[chosen[0]], y=frame[chosen[1]], labels=labels, rules=estimator.rules_,
            names=names, columns=chosen,
        )  # fmt: skip
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> RectangleDisplay:
        """Draw on `ax`, or on a new figure; `kwargs` style the points."""
        from matplotlib.patches import Rectangle

        ax = axes_or_new(ax)
        style = {"s": 14, "linewidth": 0, "alpha": 0.75, **kwargs}
        kept = _some(len(self.labels))
        for k, name in enumerate([*self.names, "no rule"]):
            own = kept[self.labels[kept] == (k if k < len(self.names) else -1)]
            if len(own):
                ax.scatter(self.x[own], self.y[own], color=_colour(k, self.names), label=name, **style)
        limits = [_limits(self.x), _limits(self.y)]
        for k, name in enumerate(self.names):
            own = self.rules[self.rules["cluster"] == name]
            (x0, x1), (y0, y1) = (
                _ends(own, column, ends) for column, ends in zip(self.columns, limits, strict=True)
            )
            others = not set(own["column"]) <= set(self.columns)
            ax.add_patch(
                Rectangle(
                    (x0, y0), x1 - x0, y1 - y0, fill=False, linewidth=1.8, edgecolor=_colour(k, self.names),
                    linestyle=(0, (4, 3)) if others else "-",
                )
            )  # fmt: skip
        ax.set(xlim=limits[0], ylim=limits[1])
        finish(ax, "Rules, broken where other columns matter too", *self.columns)
        ax.legend(frameon=False, fontsize="small", loc="best")
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


class ParallelRulesDisplay:
    """Every rule as a band through the columns that any rule speaks of, with the rows as thin lines.

    Parameters
    ----------
    values : table of the rows. labels : (N,) cluster numbers. rules, names : as in `RectangleDisplay`.
    Each column runs from its least to its greatest value.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self, *, values: pd.DataFrame, labels: npt.ArrayLike, rules: pd.DataFrame, names: list[str]
    ) -> None:
        used = [c for c in values if c in set(rules["column"])] or list(values)
        self.values, self.labels = values[used[:_MOST_COLUMNS]], np.asarray(labels)
        self.rules, self.names = rules, list(names)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> ParallelRulesDisplay:
        """Plot rows X with their clusters by rule."""
        display = cls(
            values=_numeric_frame(estimator, X), labels=estimator.predict(X), rules=estimator.rules_,
            names=estimator.cluster_names_,
        )  # fmt: skip
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ParallelRulesDisplay:
        """Draw on `ax`, or on a new figure; `kwargs` style the lines of the rows."""
        ax = axes_or_new(ax)
        columns = [str(c) for c in self.values]
        ends = np.array([_range(self.values[c].to_numpy(float)) for c in columns])
        scaled = (self.values.to_numpy(float) - ends[:, 0]) / (ends[:, 1] - ends[:, 0])
        place = np.arange(len(columns), dtype=float)
        style = {"linewidth": 0.6, "alpha": 0.25, **kwargs}
        kept = _some(len(scaled), 400)
        for k, _ in enumerate(self.names):
            own = kept[self.labels[kept] == k]
            ax.plot(place, scaled[own].T, color=_colour(k, self.names), **style)
        width = 0.7 / len(self.names)
        for k, name in enumerate(self.names):
            own = self.rules[self.rules["cluster"] == name]
            for at, (column, end) in enumerate(zip(columns, ends, strict=True)):
                if column not in set(own["column"]):
                    continue
                low, high = ((at_end - end[0]) / (end[1] - end[0]) for at_end in _ends(own, column, end))
                ax.bar(
                    at + (k + 0.5) * width - 0.35, high - low, width * 0.8, low, alpha=0.85,
                    color=_colour(k, self.names),
                )  # fmt: skip
            ax.plot([], [], color=_colour(k, self.names), linewidth=5, label=name)
        rotated = sum(len(str(c)) for c in columns) > 45
        ax.set_xticks(
            place, [str(c) for c in columns], rotation=25 * rotated, ha="right" if rotated else "center"
        )
        finish(ax, "Rules (bars) and rows (lines)", "", "share of the column's range")
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


class ClusterProfileDisplay:
    """Mean of each column in each cluster, in standard deviations from the mean of all rows.

    Parameters
    ----------
    values : table of the rows. labels : (N,) cluster numbers. names : names of the clusters.
    The columns in which the clusters differ most come first.
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, *, values: pd.DataFrame, labels: npt.ArrayLike, names: list[str]) -> None:
        labels = np.asarray(labels)
        spread = values.std(ddof=0).replace(0.0, np.nan)
        standard = (values - values.mean()) / spread
        profile = pd.DataFrame(
            {name: standard[labels == k].mean() for k, name in enumerate(names) if (labels == k).any()}
        )
        difference = profile.max(axis=1) - profile.min(axis=1)
        self.profile = profile.loc[difference.sort_values(ascending=False).index[:_MOST_COLUMNS]]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> ClusterProfileDisplay:
        """Plot the profile of rows X by their clusters by rule."""
        display = cls(
            values=_numeric_frame(estimator, X), labels=estimator.predict(X), names=estimator.cluster_names_
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ClusterProfileDisplay:
        """Draw on `ax`, or on a new figure; `kwargs` go to `pcolormesh`."""
        ax = axes_or_new(ax)
        values = self.profile.to_numpy(float)
        most = max(1.0, float(np.nanmax(np.abs(values), initial=0.0)))
        mesh = ax.pcolormesh(values, **{"cmap": "RdBu_r", "vmin": -most, "vmax": most, **kwargs})
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                ax.text(
                    j + 0.5, i + 0.5, f"{value:+.1f}", ha="center", va="center", fontsize="small",
                    color="white" if abs(value) > 0.6 * most else "black",
                )  # fmt: skip
        ax.set_yticks(np.arange(len(self.profile)) + 0.5, [str(c) for c in self.profile.index])
        ax.set_xticks(np.arange(values.shape[1]) + 0.5, list(self.profile.columns))
        ax.invert_yaxis()
        finish(ax, "Profile: mean of each cluster, in standard deviations", "", "")
        ax.grid(visible=False)
        figure_of(ax).colorbar(mesh, ax=ax, shrink=0.8)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


def rule_figures(estimator: Any, X: Any) -> list[tuple[str, Figure]]:
    """The report's plots of clusters with rules: (caption, figure). What X cannot show is left out."""
    from matplotlib.figure import Figure

    try:
        frame = _numeric_frame(estimator, X)
    except InputError:
        return []
    figures = []

    def drawn(caption: str, display: Any, **kwargs: Any) -> None:
        figure = Figure(figsize=(6.4, 4.6), layout="constrained")
        display.from_estimator(estimator, X, ax=figure.subplots(), **kwargs)
        figures.append((caption, figure))

    if frame.shape[1] >= 2:
        labels, names = estimator.predict(X), list(estimator.cluster_names_)
        for pair in best_pairs(estimator.rules_, frame, labels, names):
            drawn(f"Rules over {pair[0]} and {pair[1]}.", RectangleDisplay, columns=pair)
    drawn("Each rule's bounds, and the rows of its cluster.", ParallelRulesDisplay)
    drawn("What the clusters look like; columns that differ most first.", ClusterProfileDisplay)
    return figures


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


def _numeric_frame(estimator: Any, X: Any) -> pd.DataFrame:
    """The numeric columns of X under the names of the rules."""
    frame = pd.DataFrame(X)
    if not all(isinstance(name, str) for name in frame.columns):
        frame.columns = [f"x{i}" for i in range(frame.shape[1])]
    numbers = frame.select_dtypes("number").astype(float)
    if not numbers.shape[1]:
        raise InputError(f"{type(estimator).__name__} has no numeric column to plot; X holds labels only.")
    return numbers


def _colour(k: int, names: list[str]) -> str:
    return PALETTE[k % len(PALETTE)] if k < len(names) else GREY


def _some(n_rows: int, most: int = _MOST_ROWS) -> npt.NDArray[np.intp]:
    """Row numbers at equal steps, not too many for a plot."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.intp))


def _range(values: FloatArray) -> tuple[float, float]:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _limits(values: FloatArray) -> tuple[float, float]:
    low, high = _range(values)
    return low - 0.05 * (high - low), high + 0.05 * (high - low)


def _ends(rules: pd.DataFrame, column: str, limits: Any) -> tuple[float, float]:
    """Where a rule begins and ends in a column, inside the limits of a plot."""
    own = rules[rules["column"] == column]
    inset = 0.01 * (limits[1] - limits[0])
    low = max(own["lower"].max() if len(own) else -np.inf, limits[0] + inset)
    high = min(own["upper"].min() if len(own) else np.inf, limits[1] - inset)
    return float(low), float(high)
