"""The report of a fit as one HTML file that needs nothing else: plots and styles are inside it."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier, is_clusterer, is_regressor

from nongauss.core.files import atomic_path
from nongauss.core.printable import printable
from nongauss.core.threads import threads_for
from nongauss.report.metrics import metric_table
from nongauss.report.plots.calibration import CalibrationDisplay
from nongauss.report.plots.class_features import MOST_CLASSES, ClassFeaturesDisplay, feature_names
from nongauss.report.plots.cluster_profile import ClusterProfileDisplay
from nongauss.report.plots.confusion import draw_confusion
from nongauss.report.plots.dependence import DependenceDisplay
from nongauss.report.plots.feature_columns import MOST_COLUMNS, FeatureColumnsDisplay, shown_features
from nongauss.report.plots.parallel_rules import ParallelRulesDisplay
from nongauss.report.plots.predictive import PredictiveDisplay
from nongauss.report.plots.rectangles import RectangleDisplay, best_pairs
from nongauss.report.plots.relevance import (
    MOST_SINGLE,
    RelevanceDisplay,
    some_rows,
    with_typical_cells,
)
from nongauss.report.plots.reliability import ReliabilityDisplay
from nongauss.report.plots.rules import drawn_columns, number_columns
from nongauss.report.plots.trace import TraceDisplay
from nongauss.report.scoring import LabelScores, NumberScores, Scores, score
from nongauss.report.text import choice_lines, facts, settings
from nongauss.report.verdict import Verdict

if TYPE_CHECKING:
    import jinja2
    from matplotlib.figure import Figure

DENSITY_NOTE = (
    "Log density is the mean log of the predicted density at the observed values, in nats a row: higher is "
    "better, and a difference of 0.1 means about 10 % more density at what happened. It depends on the unit "
    "of the target, so compare it only between models of the same target. Coverage should be close to 90 %; "
    "among models that reach it, a narrower interval says more."
)
LOG_LOSS_NOTE = (
    "Log loss is the mean of minus the log of the probability given to the class observed, in nats a row: "
    "lower is better, and 0.69 is a coin toss between two classes. Accuracy is the share of rows whose class "
    "was predicted, balanced accuracy its mean over classes, rare ones counted like frequent ones. The Brier "
    "score is the squared distance of the probabilities from what happened: lower is better."
)

RELEVANCE_CAPTION = (
    "Which columns matter: the share of the variance of the prediction that is lost when the cells of a "
    "column are dealt to other rows. Columns that act together count for each."
)
DEPENDENCE_CAPTION = (
    "How the prediction changes along the columns that matter most: its mean over rows in which all else "
    "stays. Ticks on the axis are deciles of the column."
)
_TEMPLATE = Path(__file__).with_name("report.html")
_MOST_LINES, _MOST_NAMED, _MOST_LISTED = 40, 5, 100
_MOST_PANELS, _MOST_SHUFFLES = 6, 100


@dataclass(frozen=True)
class FrameInfo:
    """What the report says about the table: where it came from and which columns were used.

    `used` holds pairs (column, kind of its values), `ignored` pairs (column, why).
    """

    source: str
    target: str
    n_rows: int
    n_held_out: int = 0
    target_kind: str = ""
    used: Sequence[tuple[str, str]] = ()
    ignored: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = field(default=())


def write_report(
    path: str | Path,
    *,
    title: str,
    estimator: Any,
    frame_info: FrameInfo,
    verdict: Verdict | None = None,
    metrics: Mapping[str, Mapping[str, float]] | None = None,
    figures: Sequence[tuple[str, Figure]] = (),
    learned: Sequence[tuple[str, Figure]] = (),
    model_path: str | Path | None = None,
    rules: Sequence[Sequence[str]] = (),
    features: Sequence[Sequence[str]] = (),
) -> Path:
    """Write the report of a fitted estimator to `path`, whole or not at all; return the path.

    Parameters
    ----------
    estimator : the fitted model that the reader will use.
    frame_info : the table and its columns.
    verdict : what the model is worth; it stands first.
    metrics : held-out figures by model name, from `regression_metrics` or `classification_metrics`; none
        where nothing was held out.
    figures : pairs (caption, figure), see `report_figures`; they are embedded as PNG.
    learned : the same, about the columns, see `learned_figures`.
    model_path : where the model was saved, for the lines that load it again.
    rules : of clusters, (cluster, rows, precision, recall, stability, rule) each, where figures would stand.
    features : of latent features, (feature, use, class, columns, rows) each, see `feature_lines`.

    Raises
    ------
    OSError
        Where the file cannot be written.
    """
    header, rows = metric_table(metrics or {})
    page = _template().render(
        title=title,
        verdict=verdict,
        info=frame_info,
        columns=_columns_shown(frame_info, getattr(estimator, "kept_columns_", None)),
        facts=facts(estimator, target=frame_info.target or None),
        settings=settings(estimator),
        why=getattr(estimator, "why_", ""),
        choice=choice_lines(estimator),
        header=header,
        rows=rows,
        notes=[note for name, note in _NOTES.items() if name in header],
        rules=rules,
        features=features,
        usage=_usage(estimator),
        figures=[(caption, _png(figure), _is_wide(figure)) for caption, figure in figures],
        learned=[(caption, _png(figure)) for caption, figure in learned],
        model_name=None if model_path is None else repr(Path(model_path).name),
    )
    with atomic_path(path) as temporary:
        Path(temporary).write_text(printable(page), encoding="utf-8")
    return Path(path)


def _template() -> jinja2.Template:
    """The page that is filled in."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))


def _columns_shown(info: FrameInfo, kept: Sequence[str] | None) -> list[tuple[str, str]]:
    """Pairs (column, what it is used for), used ones first; of many the first and the number of others.

    `kept`: the columns of a wide table that are looked at, None for all.
    """
    used = [(name, f"used: {kind}" if kind else "used") for name, kind in info.used]
    others: list[tuple[str, str]] = []
    if kept is not None:
        looked_at = set(kept)
        others = [(f"{len(used) - len(kept):,} more", "not looked at: they do not go with the target")]
        used = [pair for pair in used if pair[0] in looked_at]
    ignored = [(name, f"ignored: {why}") for name, why in info.ignored]
    return [*_first(used, "used"), *others, *_first(ignored, "ignored")]


def _first(pairs: Sequence[tuple[str, str]], use: str) -> list[tuple[str, str]]:
    """The first pairs, and the number of others."""
    rest = len(pairs) - _MOST_LISTED
    return [*pairs[:_MOST_LISTED], *([(f"{rest:,} more", use)] if rest > 0 else [])]


def report_figures(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    scores: Scores | None = None,
    target: str | None = None,
    traced: Any = None,
) -> list[tuple[str, Figure]]:
    """The report's plots: predictions and calibration on held-out rows, and the course of the fit.

    `X`, `y` are rows that `estimator` has not seen, or `scores` what it said of them; without either only the
    trace is drawn. `traced` is the estimator whose trace is shown, `estimator` itself by default.
    """
    if scores is None and X is not None and y is not None:
        scores = score(estimator, X, y)
    figures: list[tuple[str, Figure]] = []
    if isinstance(scores, LabelScores):
        figures += _label_figures(scores)
    elif scores is not None:
        figures += _number_figures(scores, target)
    shown = estimator if traced is None else traced
    trace = getattr(shown, "trace_", None)
    if trace is not None and len(trace) and "bound" in trace:
        figure, ax = _plain_figure()
        TraceDisplay.from_estimator(shown, ax=ax)
        figures.append(("The objective over the iterations of the fit.", figure))
    return figures


def learned_figures(estimator: Any, X: Any, *, target: str | None = None) -> list[tuple[str, Figure]]:
    """What the model has made of its columns: which matter, and how predictions change along the first six.

    X (N, D) are rows like those of the fit, of which a few hundred are looked at; of more than 200 columns
    missing cells are taken as typical ones.
    """
    if getattr(estimator, "kept_columns_", None) == ():
        return []
    rows = some_rows(estimator, X, len(X), 0)
    if rows.shape[1] > MOST_SINGLE:
        rows = with_typical_cells(rows)
    figure, ax = _figure()
    n_repeats = int(np.clip(_MOST_SHUFFLES // X.shape[1], 1, 5))
    with threads_for(rows):
        relevance = RelevanceDisplay.from_estimator(estimator, rows, n_repeats=n_repeats, ax=ax)
        figures = [(RELEVANCE_CAPTION, figure)]
        shown = [relevance.columns[j] for j in relevance.top(_MOST_PANELS) if relevance.share[j] > 0]
        if shown:
            figures.append((DEPENDENCE_CAPTION, _dependence_figure(estimator, rows, shown, target)))
    return figures


def _dependence_figure(estimator: Any, rows: Any, columns: Sequence[str], target: str | None) -> Figure:
    """A panel for each of these columns, with one legend for all."""
    from matplotlib.figure import Figure

    wide = min(3, len(columns))
    high = -(-len(columns) // wide)
    figure = Figure(figsize=(3.7 * wide, 3.1 * high), layout="constrained")
    panels = figure.subplots(high, wide, sharey=True, squeeze=False).ravel()
    for number, (panel, column) in enumerate(zip(panels, columns, strict=False)):
        DependenceDisplay.from_estimator(estimator, rows, column, target=target, ax=panel)
        if number % wide:
            panel.set_ylabel("")
        if panel.get_legend():
            panel.get_legend().remove()
    handles, labels = panels[0].get_legend_handles_labels()
    if labels:
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    for panel in panels[len(columns) :]:
        panel.remove()
    return figure


def feature_figures(estimator: Any) -> list[tuple[str, Figure]]:
    """The report's plots of a fitted harmonium: (caption, figure)."""
    from matplotlib.figure import Figure

    figures = []

    def drawn(caption: str, display: Any, height: float) -> None:
        figure = Figure(figsize=(8.4, height), layout="constrained")
        display.from_estimator(estimator, ax=figure.subplots())
        figures.append((caption, figure))

    if not len(estimator.components_):
        return figures
    if hasattr(estimator, "class_means_"):
        caption = (
            "Which class has which feature: bars are means over the rows of a class, lines one standard "
            "deviation. Features in which classes differ most come first."
        )
        drawn(caption, ClassFeaturesDisplay, 1.4 + 0.27 * min(len(estimator.classes_), MOST_CLASSES))
    n_columns = min(len(estimator.encoded_names_), MOST_COLUMNS)
    caption = "Red columns are raised where a row has the feature, blue ones lowered."
    drawn(caption, FeatureColumnsDisplay, 1.4 + 0.22 * n_columns)
    return figures


def feature_lines(estimator: Any, X: Any) -> list[tuple[str, str, str, str, str]]:
    """A line for each feature: name, how much rows X have it, class, columns that it raises, top rows.

    Rows are numbered from 0. The class is that of the largest mean, "" without classes. At most 40 features.
    """
    if not len(estimator.components_):
        return []
    hidden = estimator.transform(X)
    use, names = hidden.mean(axis=0), feature_names(hidden.shape[1])
    columns = estimator.top_features(_MOST_NAMED)
    rows = np.argsort(-hidden, axis=0, kind="stable")[:_MOST_NAMED].T
    most = np.full(len(names), "", dtype=object)
    if hasattr(estimator, "class_means_"):
        most = np.asarray(estimator.classes_)[estimator.class_means_.argmax(axis=0)]
    return [
        (names[k], f"{use[k]:.2f}", str(most[k]), ", ".join(columns[k]), ", ".join(map(str, rows[k])))
        for k in shown_features(estimator)[:_MOST_LINES]
    ]


def rule_figures(estimator: Any, X: Any) -> list[tuple[str, Figure]]:
    """The report's plots of clusters with rules: (caption, figure). Labels make no scatter plot."""
    from matplotlib.figure import Figure

    frame = number_columns(drawn_columns(X, estimator))
    figures = []

    def drawn(caption: str, display: Any, **kwargs: Any) -> None:
        figure = Figure(figsize=(6.4, 4.6), layout="constrained")
        display.from_estimator(estimator, X, ax=figure.subplots(), **kwargs)
        figures.append((caption, figure))

    if frame.shape[1] >= 2:
        labels, names = estimator.predict(X), list(estimator.cluster_names_)
        for pair in best_pairs(estimator.rules_, frame, labels, names):
            drawn(f"Rules over {pair[0]} and {pair[1]}.", RectangleDisplay, columns=pair)
    if estimator.rules_["column"].nunique() > 1:
        drawn("Each rule's bounds, and the rows of its cluster.", ParallelRulesDisplay)
    drawn("What the clusters look like; columns that differ most first.", ClusterProfileDisplay)
    return figures


def _number_figures(scores: NumberScores, target: str | None) -> list[tuple[str, Figure]]:
    figure, ax = _plain_figure()
    interval = scores.lower, scores.upper
    PredictiveDisplay.from_predictions(scores.y, scores.mean, interval=interval, target=target, ax=ax)
    figures = [("Held-out rows: what was observed against what was predicted.", figure)]
    coverage = CalibrationDisplay(pit=scores.pit)
    figure, ax = _plain_figure()
    coverage.plot(ax=ax)
    figures.append(("Held-out rows: a calibrated model stays near the diagonal.", figure))
    figure, ax = _plain_figure()
    coverage.plot(ax=ax, kind="pit")
    figures.append(("Held-out rows: the PIT values of a calibrated model are flat.", figure))
    return figures


def _label_figures(scores: LabelScores) -> list[tuple[str, Figure]]:
    figure, ax = _figure()
    draw_confusion(scores.y, scores.predicted, scores.classes, ax)
    figures = [("Held-out rows: which class was predicted for which.", figure)]
    figure, ax = _figure()
    ReliabilityDisplay.from_predictions(scores.y, scores.probabilities, scores.classes, ax=ax)
    figures.append(("Held-out rows: what was given 70 % should have happened in 70 %.", figure))
    return figures


def _figure() -> tuple[Figure, Any]:
    """A figure of one panel, laid out by what it holds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 4.2), layout="constrained")
    return figure, figure.subplots()


def _plain_figure() -> tuple[Figure, Any]:
    """A figure of one panel with room for numbers at its sides, which is drawn in half the time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 4.2))
    return figure, figure.add_axes((0.17, 0.14, 0.8, 0.77))


def _png(figure: Figure) -> str:
    """The figure as PNG in base64, drawn once: `savefig` draws one that has a layout twice."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(144)
    figure.set_facecolor("white")
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)  # type: ignore[no-untyped-call]
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _is_wide(figure: Figure) -> bool:
    """Does a figure of several panels take the width of the page?"""
    width, height = figure.get_size_inches()
    return bool(width > 2 * height)


def _usage(estimator: Any) -> str:
    if is_clusterer(estimator):
        return _RULE_USAGE
    if is_classifier(estimator):
        return _LABEL_USAGE
    return _USAGE if is_regressor(estimator) else _FEATURE_USAGE


_NOTES = {"log density": DENSITY_NOTE, "log loss": LOG_LOSS_NOTE}

_USAGE = """distribution = model.predict_distribution(new_rows)  # a frame with the columns above
distribution.mean, distribution.interval(0.9)"""
_LABEL_USAGE = """model.predict(new_rows)  # a frame with the columns above
model.predict_proba(new_rows)  # one column a class, in the order of model.classes_"""

_RULE_USAGE = """model.predict(new_rows)  # a frame with the columns that the rules speak of
model.rule_text_"""

_FEATURE_USAGE = """model.transform(new_rows)  # a frame with the columns above; one column a feature
model.top_features(5)"""
