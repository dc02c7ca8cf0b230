"""The pictures of a report: which plots there are, in which part of the page, and what stands under them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from nongauss.core.threads import threads_for
from nongauss.report.filled import FilledColumn
from nongauss.report.plots.calibration import CalibrationDisplay
from nongauss.report.plots.class_features import MOST_CLASSES, ClassFeaturesDisplay
from nongauss.report.plots.cluster_profile import ClusterProfileDisplay
from nongauss.report.plots.confusion import draw_confusion
from nongauss.report.plots.dependence import DependenceDisplay, most_changing
from nongauss.report.plots.feature_columns import MOST_COLUMNS, FeatureColumnsDisplay
from nongauss.report.plots.filled_cells import CellSpreadDisplay, FilledCellsDisplay
from nongauss.report.plots.grid import parts_of
from nongauss.report.plots.parallel_rules import ParallelRulesDisplay
from nongauss.report.plots.predictive import PredictiveDisplay
from nongauss.report.plots.rectangles import RectangleDisplay, best_pairs
from nongauss.report.plots.relevance import MOST_SINGLE, RelevanceDisplay, some_rows, with_typical_cells
from nongauss.report.plots.reliability import ReliabilityDisplay
from nongauss.report.plots.rules import drawn_columns, number_columns
from nongauss.report.plots.style import PANEL_SIZE, SIZE
from nongauss.report.plots.trace import TraceDisplay
from nongauss.report.scoring import LabelScores, NumberScores, Scores, score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Part = Literal[
    "figures", "calibration", "columns", "change", "features", "clusters", "course", "before", "cells"
]
"""The parts of the page that have pictures, in their order."""

RELEVANCE_CAPTION = (
    "The share of the variance of the prediction that is lost when the cells of a column are "
    "permuted among the rows: its total effect. An interaction counts for each of its columns, and "
    "permuting one of several correlated columns can cost more than all the variance there was, so "
    "the figures need not add up to 100 %."
)
CURVE_CAPTION = (
    "Each curve is the mean prediction over rows in which the other columns keep their values; ticks "
    "on the axis are "
    "deciles of the column."
)
_MOST_PANELS, _MOST_SHUFFLES, _MOST_POINTS, _MOST_BARS = 6, 60, 300, 15
_MOST_SHUFFLED, _MOST_AVERAGED, _MOST_OF_FITS = 200, 50, 30
"""Rows that are shuffled, and averaged over: some laws take a millisecond a row, a figure asks thousands."""


class Picture(NamedTuple):
    """A caption and a figure, and the part of the page where they stand.

    `key`: what colours mean where several figures share one key, (text, #rrggbb, opacity) each.
    """

    caption: str
    figure: Figure
    part: Part = "figures"
    key: Sequence[tuple[str, str, float]] = ()


def report_figures(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    scores: Scores | None = None,
    target: str | None = None,
    traced: Any = None,
) -> list[Picture]:
    """The report's plots: predictions and calibration on held-out rows, and the course of the fit.

    `X`, `y` are rows that `estimator` has not seen, or `scores` what it said of them; without either only the
    trace is drawn. `traced` is the estimator whose trace is shown, `estimator` itself by default.
    """
    if scores is None and X is not None and y is not None:
        scores = score(estimator, X, y)
    pictures: list[Picture] = []
    if isinstance(scores, LabelScores):
        pictures += _label_pictures(scores)
    elif scores is not None:
        pictures += _number_pictures(scores, target)
    return pictures + _course_of(estimator if traced is None else traced)


def _course_of(estimator: Any) -> list[Picture]:
    """The course of a fit: by rows held out from it where its trace has them, else by its objective."""
    trace = getattr(estimator, "trace_", None)
    if trace is None or len(trace) < 2 or "bound" not in trace:
        return []
    by_rows = "held_out" in trace and bool(np.isfinite(trace["held_out"]).any())
    figure, ax = _plain_figure()
    TraceDisplay.from_estimator(estimator, quantity="held_out" if by_rows else "bound", ax=ax)
    if hasattr(estimator, "leaderboard_"):
        caption = "The best candidate so far, on rows that were left out of its fit; higher is better."
    elif by_rows:
        caption = "Rows that the fit itself held out, over its iterations; higher is better."
    else:
        caption = "The objective over the iterations of the fit, on the training rows; higher is better."
    return [Picture(caption, figure, "course")]


def learned_figures(
    estimator: Any,
    X: Any,
    *,
    target: str | None = None,
    fits: Sequence[Any] = (),
    ordered: bool = False,
) -> list[Picture]:
    """What the model has made of its columns: which matter, and how predictions change along the first six.

    X (N, D) are rows like those of the fit, of which a few hundred are looked at; of more than 200 columns
    missing cells are taken as typical ones. `fits`: the same model fitted without each of several parts of
    the rows, for the band of each curve; `ordered`: its classes are grades.
    """
    if getattr(estimator, "kept_columns_", None) == ():
        return []
    rows = some_rows(estimator, X, len(X), 0, fits)
    if rows.shape[1] > MOST_SINGLE:
        rows = with_typical_cells(rows)
    how: dict[str, Any] = {"max_rows": _MOST_SHUFFLED}
    how["n_repeats"] = int(np.clip(_MOST_SHUFFLES // X.shape[1], 1, 3))
    with threads_for(rows):
        figure, ax = _bars_figure(min(rows.shape[1], _MOST_BARS))
        relevance = RelevanceDisplay.from_estimator(estimator, rows, ax=ax, **how)
        if relevance.share.size <= _MOST_BARS:
            ax.set_title("", loc="left")  # the heading of the page says it
        pictures = [Picture(RELEVANCE_CAPTION, figure, "columns")]
        shown = [relevance.columns[j] for j in relevance.top(_MOST_PANELS) if relevance.share[j] > 0]
        pictures += _panels(estimator, rows, shown, target, fits, ordered)
    return pictures


def _panels(
    estimator: Any,
    rows: Any,
    columns: Sequence[str],
    target: str | None,
    fits: Sequence[Any],
    ordered: bool,
) -> list[Picture]:
    """A panel for each of these columns, all with one range of predictions.

    A column of dates has one more for its weekdays, months or hours, where these come again.
    """
    how: dict[str, Any] = {"fits": fits, "ordered": ordered}
    how["max_rows"] = _MOST_OF_FITS if len(fits) > 1 else _MOST_AVERAGED
    asked = [(name, part) for name in columns for part in ("", *parts_of(rows, rows.labels.index(name)))]
    drawn = [DependenceDisplay.measured(estimator, rows, name, part=part, **how) for name, part in asked]
    if not drawn:
        return []
    shown = most_changing(drawn)
    for display in drawn:
        _, ax = _plain_figure(PANEL_SIZE, display.depth)
        display.drawn = shown
        display.plot(ax=ax, target=target)
        if display.observed is not None and display.shown is None:
            ax.locator_params(axis="x", nbins=5)
    ends = [display.ax_.get_ylim() for display in drawn]
    for display in drawn:
        display.ax_.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
    key = _shared_key([display.ax_ for display in drawn])
    left = 0 if ordered else len(drawn[0].average) - len(shown)
    if left > 0:
        key.append((f"{left} more, which change less, are not drawn", "#6b6b6b", 0.0))
    return [Picture(display.column, display.figure_, "change", key) for display in drawn]


def _shared_key(panels: Sequence[Axes]) -> list[tuple[str, str, float]]:
    """What the colours of several panels mean, each once; the panels lose their own keys."""
    from matplotlib.colors import to_hex

    key: dict[str, tuple[str, str, float]] = {}
    for ax in panels:
        handles: Any = ax.get_legend_handles_labels()
        for item, label in zip(*handles, strict=True):
            handle: Any = next(iter(item), item) if isinstance(item, tuple) else item  # bars are a tuple
            colour = handle.get_color() if hasattr(handle, "get_color") else handle.get_facecolor()
            shade = (
                np.atleast_2d(np.asarray(colour, dtype=object))[0] if not isinstance(colour, str) else colour
            )
            key.setdefault(label, (label, to_hex(shade), float(handle.get_alpha() or 1.0)))
        legend = ax.get_legend()
        if legend is not None:
            legend.remove()
    return list(key.values())


def _number_pictures(scores: NumberScores, target: str | None) -> list[Picture]:
    """Predictions against observations, and both views of the calibration."""
    known = np.ones(len(scores.y), dtype=np.bool_) if scores.exact is None else scores.exact
    pictures = []
    if known.any():
        figure, ax = _plain_figure()
        y, mean, *interval = (v[known] for v in (scores.y, scores.mean, scores.lower, scores.upper))
        display = PredictiveDisplay.from_predictions(
            y, mean, interval=tuple(interval), target=target, max_rows=_MOST_POINTS, ax=ax
        )
        caption = "Held-out rows: each point is a row, its line the 90 % interval of its prediction."
        left_out = len(known) - int(known.sum())
        caption += f" Not drawn: {left_out} rows of which only a limit is known." if left_out else ""
        pictures.append(Picture(caption, display.figure_))
    coverage = CalibrationDisplay(pit=scores.pit)
    figure, ax = _plain_figure()
    coverage.plot(ax=ax)
    caption = "Coverage of intervals at every level: a calibrated model stays near the dashed line."
    pictures.append(Picture(caption, figure, "calibration"))
    figure, ax = _plain_figure()
    coverage.plot(ax=ax, kind="pit")
    caption = (
        "For a calibrated model, all bars have the same height. A hump means that intervals are too "
        "wide, a trough that they are too narrow, a slope that predictions are too low or too high."
    )
    return [*pictures, Picture(caption, figure, "calibration")]


def _label_pictures(scores: LabelScores) -> list[Picture]:
    """Which class was taken for which, and how far probabilities can be relied on."""
    figure, ax = _laid_out(SIZE)
    draw_confusion(scores.y, scores.predicted, scores.classes, ax)
    pictures = [Picture("Held-out rows: observed against predicted classes.", figure)]
    figure, ax = _plain_figure()
    ReliabilityDisplay.from_predictions(scores.y, scores.probabilities, scores.classes, ax=ax)
    caption = (
        "Held-out rows: an event with a predicted probability of 70 % should occur in 70 % of the "
        "rows, near the dashed line."
    )
    return [*pictures, Picture(caption, figure, "calibration")]


def feature_figures(estimator: Any) -> list[Picture]:
    """The report's plots of a fitted harmonium."""
    pictures: list[Picture] = []

    def drawn(caption: str, display: Any, height: float) -> None:
        figure, ax = _laid_out((6.4, height))
        display.from_estimator(estimator, ax=ax)
        pictures.append(Picture(caption, figure, "features"))

    if not len(estimator.components_):
        return pictures
    if hasattr(estimator, "class_means_"):
        caption = (
            "Features by class: bars are means over the rows of a class, lines one standard "
            "deviation. Features in which classes differ most come first."
        )
        drawn(caption, ClassFeaturesDisplay, 1.4 + 0.27 * min(len(estimator.classes_), MOST_CLASSES))
    n_columns = min(len(estimator.encoded_names_), MOST_COLUMNS)
    caption = "Blue columns are higher in rows that have the feature, orange ones lower."
    drawn(caption, FeatureColumnsDisplay, 1.4 + 0.22 * n_columns)
    return pictures


def rule_figures(estimator: Any, X: Any) -> list[Picture]:
    """The report's plots of clusters with rules. Labels make no scatter plot."""
    frame = number_columns(drawn_columns(X, estimator))
    pictures: list[Picture] = []

    def drawn(caption: str, display: Any, **kwargs: Any) -> None:
        figure, ax = _laid_out(SIZE)
        display.from_estimator(estimator, X, ax=ax, **kwargs)
        pictures.append(Picture(caption, figure, "clusters"))

    if frame.shape[1] >= 2:
        labels, names = estimator.predict(X), list(estimator.cluster_names_)
        for pair in best_pairs(estimator.rules_, frame, labels, names):
            caption = (
                f"Rows and rules over {pair[0]} and {pair[1]}; a broken line where other columns matter too."
            )
            drawn(caption, RectangleDisplay, columns=pair)
    if estimator.rules_["column"].nunique() > 1:
        drawn("Each rule's bounds (bars), and the rows of its cluster (lines).", ParallelRulesDisplay)
    drawn("Means of the clusters; columns that differ most come first.", ClusterProfileDisplay)
    return pictures


def gap_figures(columns: Sequence[FilledColumn]) -> list[Picture]:
    """The report's plots of filled gaps: of each column its cells before and after, and how sure each is."""
    pictures: list[Picture] = []
    kinds: tuple[tuple[Any, Part], ...] = ((FilledCellsDisplay, "before"), (CellSpreadDisplay, "cells"))
    for kind, part in kinds:
        for column in columns:
            display = kind(column)
            figure, ax = (_laid_out if display.has_names else _plain_figure)(PANEL_SIZE)
            display.plot(ax=ax)
            pictures.append(Picture(column.name, figure, part, _shared_key([ax])))
    return pictures


def _laid_out(size: tuple[float, float]) -> tuple[Figure, Axes]:
    """A figure of one panel, laid out by what it holds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def _plain_figure(size: tuple[float, float] = SIZE, below: float = 0.0) -> tuple[Figure, Axes]:
    """A figure of one panel with room for numbers and a key at its sides, which is drawn in half the time.

    `below`: inches more below the axes, which the figure is higher.
    """
    from matplotlib.figure import Figure

    width, height = size[0], size[1] + below
    figure = Figure(figsize=(width, height))
    left, bottom, top = 0.62 / width, (0.5 + below) / height, (0.62 if size == SIZE else 0.1) / height
    return figure, figure.add_axes((left, bottom, 1.0 - left - 0.12 / width, 1.0 - bottom - top))


def _bars_figure(n_bars: int) -> tuple[Figure, Axes]:
    """A figure of bars with names beside them, as high as there are bars."""
    return _laid_out((SIZE[0], 0.8 + 0.25 * max(n_bars, 5)))
