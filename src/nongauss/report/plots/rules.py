"""Plots of clusters with rules: rectangles over scatter plots, parallel coordinates, a profile of each
cluster.

They read what a fitted clusterer with rules has: `rules_`, `labels_`, `cluster_names_`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray
from nongauss.report.plots.style import GREY, axes_or_new, figure_of, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
"""Okabe and Ito's colours, in an order in which neighbours differ; used again from the ninth cluster on."""

_MOST_ROWS = 5000
_MOST_COLUMNS = 10
_FEW = 20  # so many levels are shown, and so many whole numbers as steps


class RectangleDisplay:
    """Rules as rectangles over a scatter plot of two columns.

    Parameters
    ----------
    x, y : (N,) values of two columns. labels : (N,) cluster numbers, -1 for none.
    rules : table with cluster, column, lower, upper. names : names of the clusters.
    columns : names of the two columns. A rule that speaks of other columns too is drawn with a broken
        line, one that speaks of neither is not drawn.
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
        frame = _numbers(_named(X))
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
        from matplotlib.ticker import MaxNLocator

        ax = axes_or_new(ax)
        style = {"s": 14, "linewidth": 0, "alpha": 0.75, **kwargs}
        kept = _some(len(self.labels))
        x, y = _spread(self.x), _spread(self.y)
        for k, name in enumerate([*self.names, "no rule"]):
            own = kept[self.labels[kept] == (k if k < len(self.names) else -1)]
            if len(own):
                ax.scatter(x[own], y[own], color=_colour(k, self.names), label=name, **style)
        limits = [_limits(self.x), _limits(self.y)]
        for k, name in enumerate(self.names):
            own = self.rules[self.rules["cluster"] == name]
            if not set(own["column"]) & set(self.columns):
                continue
            (x0, x1), (y0, y1) = (
                _ends(own, column, ends, _half_step(values), k)
                for column, ends, values in zip(self.columns, limits, (self.x, self.y), strict=True)
            )
            others = not set(own["column"]) <= set(self.columns)
            ax.add_patch(
                Rectangle(
                    (x0, y0), x1 - x0, y1 - y0, fill=False, linewidth=1.8, edgecolor=_colour(k, self.names),
                    linestyle=(0, (4, 3)) if others else "-",
                )
            )  # fmt: skip
        ax.set(xlim=limits[0], ylim=limits[1])
        for axis, values in ((ax.xaxis, self.x), (ax.yaxis, self.y)):
            if _half_step(values):
                axis.set_major_locator(MaxNLocator(integer=True))
        finish(ax, "Rules, broken where other columns matter too", *self.columns)
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


class ParallelRulesDisplay:
    """Every rule as bars through the columns that any rule speaks of, with the rows as thin lines.

    Parameters
    ----------
    values : table of the rows. labels : (N,) cluster numbers. rules, names : as in `RectangleDisplay`; where
    a column holds labels, `rules` has their `levels`.
    Each column runs from its least to its greatest value, or through its levels in alphabetical order.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self, *, values: pd.DataFrame, labels: npt.ArrayLike, rules: pd.DataFrame, names: list[str]
    ) -> None:
        used = [c for c in values if c in set(rules["column"])] or list(values)
        self.values, self.levels = _coded(values[used[:_MOST_COLUMNS]])
        self.labels, self.rules, self.names = np.asarray(labels), rules, list(names)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> ParallelRulesDisplay:
        """Plot rows X with their clusters by rule."""
        display = cls(
            values=_named(X), labels=estimator.predict(X), rules=estimator.rules_,
            names=estimator.cluster_names_,
        )  # fmt: skip
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ParallelRulesDisplay:
        """Draw on `ax`, or on a new figure; `kwargs` style the lines of the rows."""
        ax = axes_or_new(ax)
        columns = [str(c) for c in self.values]
        values = self.values.to_numpy(float)
        half = [_half_step(x) for x in values.T]
        ends = np.array([_range(x) for x in values.T]) + np.outer(half, [-1.0, 1.0])
        scaled = (values - ends[:, 0]) / (ends[:, 1] - ends[:, 0])
        place = np.arange(len(columns), dtype=float)
        style = {"linewidth": 0.6, "alpha": 0.25, **kwargs}
        kept = _some(len(scaled), 400)
        for k, name in enumerate(self.names):
            own = kept[self.labels[kept] == k]
            ax.plot(place, scaled[own].T, color=_colour(k, self.names), **style)
            ax.plot([], [], color=_colour(k, self.names), linewidth=5, label=name)
        width = 0.7 / len(self.names)
        for k, at in product(range(len(self.names)), range(len(columns))):
            for low, high in self._bars(k, columns[at], tuple(ends[at]), half[at]):
                start, end = ends[at]
                ax.bar(
                    at + (k + 0.5) * width - 0.35, (high - low) / (end - start), width * 0.8,
                    (low - start) / (end - start), alpha=0.85, color=_colour(k, self.names),
                )  # fmt: skip
        plate = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}
        for at, column in enumerate(columns):
            for code, level in enumerate(self.levels.get(column, ())):
                height = (code - ends[at, 0]) / (ends[at, 1] - ends[at, 0])
                ax.text(at, height, f" {level}", fontsize="x-small", va="center", bbox=plate)
        _slant(ax, columns)
        ax.set_ylim(-0.03, 1.03)
        finish(ax, "Rules (bars) and rows (lines)", "", "share of the column's range")
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _bars(self, k: int, column: str, ends: tuple[float, float], half: float) -> list[tuple[float, float]]:
        """Where a rule lets rows in, in the units of the column: one interval, or one a level."""
        own = self.rules[(self.rules["cluster"] == self.names[k]) & (self.rules["column"] == column)]
        if not len(own):
            return []
        if column not in self.levels:
            return [_ends(own, column, ends, half)]
        allowed = own["levels"].iloc[0]
        return [(i - 0.4, i + 0.4) for i, level in enumerate(self.levels[column]) if level in allowed]


class ClusterProfileDisplay:
    """Mean of each column in each cluster, in standard deviations from the mean of all rows.

    Parameters
    ----------
    values : table of the rows. labels : (N,) cluster numbers. names : names of the clusters.
    The columns in which the clusters differ most come first; a label column is shown level by level.
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, *, values: pd.DataFrame, labels: npt.ArrayLike, names: list[str]) -> None:
        labels, values = np.asarray(labels), _by_level(values)
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
        display = cls(values=_named(X), labels=estimator.predict(X), names=estimator.cluster_names_)
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
        _slant(ax, list(self.profile.columns), 0.5)
        ax.invert_yaxis()
        finish(ax, "Profile: mean of each cluster, in standard deviations", "", "")
        ax.grid(visible=False)
        figure_of(ax).colorbar(mesh, ax=ax, shrink=0.8)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


def rule_figures(estimator: Any, X: Any) -> list[tuple[str, Figure]]:
    """The report's plots of clusters with rules: (caption, figure). Labels make no scatter plot."""
    from matplotlib.figure import Figure

    frame = _numbers(_named(X))
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


def _named(X: Any) -> pd.DataFrame:
    """The columns of X under the names of the rules; of label columns those with few levels, as text."""
    frame = pd.DataFrame(X)
    if not all(isinstance(name, str) for name in frame.columns):
        frame.columns = pd.Index([f"x{i}" for i in range(frame.shape[1])])
    numbers = set(_numbers(frame))
    kept = [c for c in frame if c in numbers or 1 < frame[c].nunique() <= _FEW]
    return pd.DataFrame(
        {c: frame[c].astype(float) if c in numbers else frame[c].map(str, na_action="ignore") for c in kept}
    )


def _numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that hold numbers."""
    return frame.select_dtypes("number")


def _coded(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Levels as numbers 0, 1, ... (NaN where missing), and the levels of each label column."""
    numbers = set(_numbers(frame))
    levels = {str(c): sorted(frame[c].dropna().unique()) for c in frame if c not in numbers}
    coded = {c: frame[c].map({v: float(i) for i, v in enumerate(own)}) for c, own in levels.items()}
    return frame.assign(**coded), levels


def _by_level(frame: pd.DataFrame) -> pd.DataFrame:
    """Each level as a 0/1 column "column = level"; of two levels one."""
    parts = []
    for c in frame:
        if c in set(_numbers(frame)):
            parts.append(frame[c])
            continue
        levels = sorted(frame[c].dropna().unique())
        present = frame[c].where(frame[c].notna())
        parts += [
            (present == level).where(present.notna()).astype(float).rename(f"{c} = {level}")
            for level in levels[: len(levels) - (len(levels) == 2)]
        ]
    return pd.concat(parts, axis=1)


def _slant(ax: Axes, names: list[str], offset: float = 0.0) -> None:
    """Names below a plot, slanted where they would not fit side by side."""
    long = sum(len(name) for name in names) > 45
    place = np.arange(len(names)) + offset
    ax.set_xticks(place, names, rotation=25 * long, ha="right" if long else "center")


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
    margin = max(0.05 * (high - low), 1.5 * _half_step(values))
    return low - margin, high + margin


def _half_step(values: FloatArray) -> float:
    """Half of one where a column holds few whole numbers: then a bound is drawn beside its value."""
    distinct = np.unique(values[np.isfinite(values)])
    return 0.5 * float(len(distinct) <= _FEW and bool((distinct == np.round(distinct)).all()))


def _spread(values: FloatArray) -> FloatArray:
    """Few whole numbers spread a little, so that equal ones do not hide each other."""
    golden = (np.arange(len(values)) * 0.6180339887) % 1.0 - 0.5
    spread: FloatArray = values + 1.2 * _half_step(values) * golden
    return spread


def _ends(
    rules: pd.DataFrame, column: str, limits: tuple[float, float], half: float, k: int = 0
) -> tuple[float, float]:
    """Where a rule begins and ends in a column; at the limits of a plot, rules end side by side."""
    own = rules[rules["column"] == column]
    inset = (0.01 + 0.006 * k) * (limits[1] - limits[0])
    low = max(own["lower"].max() - half if len(own) else -np.inf, limits[0] + inset)
    high = min(own["upper"].min() + half if len(own) else np.inf, limits[1] - inset)
    return float(low), float(high)
