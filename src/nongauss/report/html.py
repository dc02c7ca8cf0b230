"""The report of a fit as one HTML file that needs nothing else: plots and styles are inside it."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from sklearn.base import is_classifier, is_clusterer, is_regressor

from nongauss.core.files import atomic_path
from nongauss.report.metrics import metric_table
from nongauss.report.plots.dependence import DependenceDisplay
from nongauss.report.plots.labels import ReliabilityDisplay, draw_confusion
from nongauss.report.plots.predictions import CalibrationDisplay, PredictiveDisplay, TraceDisplay
from nongauss.report.plots.relevance import RelevanceDisplay
from nongauss.report.text import facts, settings

if TYPE_CHECKING:
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
    metrics : held-out figures by model name, from `regression_metrics` or `classification_metrics`; none
        where nothing was held out.
    figures : pairs (caption, figure), see `report_figures`; they are embedded as PNG.
    learned : the same, about the columns, see `learned_figures`.
    model_path : where the model was saved, for the lines that load it again.
    rules : of clusters, (cluster, rows, precision, recall, rule) each; they stand where figures would.
    features : of latent features, (feature, use, class, columns, rows) each, see `feature_lines`.

    Raises OSError where the file cannot be written.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    header, rows = metric_table(metrics or {})
    page = environment.from_string(_TEMPLATE).render(
        title=title,
        info=frame_info,
        facts=facts(estimator, target=frame_info.target or None),
        settings=settings(estimator),
        header=header,
        rows=rows,
        notes=[note for name, note in _NOTES.items() if name in header],
        rules=rules,
        features=features,
        usage=_usage(estimator),
        figures=[(caption, _png(figure)) for caption, figure in figures],
        learned=[(caption, _png(figure)) for caption, figure in learned],
        model_name=None if model_path is None else repr(Path(model_path).name),
    )
    with atomic_path(path) as temporary:
        Path(temporary).write_text(page, encoding="utf-8")
    return Path(path)


def report_figures(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    target: str | None = None,
    traced: Any = None,
) -> list[tuple[str, Figure]]:
    """The report's plots: predictions and calibration on held-out rows, and the course of the fit.

    `X`, `y` are rows that `estimator` has not seen; without them only the trace is drawn. `traced` is the
    estimator whose trace is shown, `estimator` itself by default. What the model cannot give is left out.
    """
    figures: list[tuple[str, Figure]] = []
    if X is not None and y is not None:
        if is_classifier(estimator):
            figures += _label_figures(estimator, X, y)
        else:
            figures += _number_figures(estimator, X, y, target)
    shown = estimator if traced is None else traced
    trace = getattr(shown, "trace_", None)
    if trace is not None and len(trace) and "bound" in trace:
        figure, ax = _figure()
        TraceDisplay.from_estimator(shown, ax=ax)
        figures.append(("The objective over the iterations of the fit.", figure))
    return figures


def learned_figures(estimator: Any, X: Any, *, target: str | None = None) -> list[tuple[str, Figure]]:
    """What the model has made of its columns: which matter, and how predictions change along the first six.

    X (N, D) are rows like those of the fit, of which a few hundred are looked at.
    """
    from matplotlib.figure import Figure

    figure, ax = _figure()
    n_repeats = int(np.clip(_MOST_SHUFFLES // X.shape[1], 1, 5))
    relevance = RelevanceDisplay.from_estimator(estimator, X, n_repeats=n_repeats, ax=ax)
    figures = [(RELEVANCE_CAPTION, figure)]
    shown = [j for j in relevance.top(_MOST_PANELS) if relevance.share[j] > 0]
    if not shown:
        return figures
    wide = min(3, len(shown))
    high = -(-len(shown) // wide)
    figure = Figure(figsize=(3.7 * wide, 3.1 * high), layout="constrained")
    panels = figure.subplots(high, wide, sharey=True, squeeze=False).ravel()
    for number, (panel, j) in enumerate(zip(panels, shown, strict=False)):
        DependenceDisplay.from_estimator(estimator, X, relevance.columns[j], target=target, ax=panel)
        if number % wide:
            panel.set_ylabel("")
        if panel.get_legend():
            panel.get_legend().remove()
    handles, labels = panels[0].get_legend_handles_labels()
    if labels:
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    for panel in panels[len(shown) :]:
        panel.remove()
    return [*figures, (DEPENDENCE_CAPTION, figure)]


def _number_figures(estimator: Any, X: Any, y: Any, target: str | None) -> list[tuple[str, Figure]]:
    figure, ax = _figure()
    PredictiveDisplay.from_estimator(estimator, X, y, target=target, ax=ax)
    figures = [("Held-out rows: what was observed against what was predicted.", figure)]
    if hasattr(estimator, "predict_distribution"):
        figure, ax = _figure()
        coverage = CalibrationDisplay.from_predictions(y, estimator.predict_distribution(X), ax=ax)
        figures.append(("Held-out rows: a calibrated model stays near the diagonal.", figure))
        figure, ax = _figure()
        coverage.plot(ax=ax, kind="pit")
        figures.append(("Held-out rows: the PIT values of a calibrated model are flat.", figure))
    return figures


def _label_figures(estimator: Any, X: Any, y: Any) -> list[tuple[str, Figure]]:
    figure, ax = _figure()
    draw_confusion(y, estimator.predict(X), estimator.classes_, ax)
    figures = [("Held-out rows: which class was predicted for which.", figure)]
    if hasattr(estimator, "predict_proba"):
        figure, ax = _figure()
        ReliabilityDisplay.from_estimator(estimator, X, y, ax=ax)
        figures.append(("Held-out rows: what was given 70 % should have happened in 70 %.", figure))
    return figures


def _figure() -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 4.2), layout="constrained")
    return figure, figure.subplots()


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144, facecolor="white")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


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

_TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; max-width: 60rem;
       margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { padding: .35rem .7rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
td, dd, li { overflow-wrap: anywhere; }
.figures td, .figures th { text-align: right; white-space: nowrap; }
.figures td:first-child, .figures th:first-child { text-align: left; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .25rem 1rem; }
dt { color: #555; } dd { margin: 0; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
figure { margin: 0; } img { width: 100%; height: auto; }
figcaption, .small { font-size: .88rem; color: #555; }
pre { background: #f4f4f4; padding: .8rem; overflow-x: auto; }
details summary { cursor: pointer; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
<h2>What was fitted</h2>
<dl>
{% for label, text in facts %}
<dt>{{ label }}</dt><dd>{{ text }}</dd>
{% endfor %}
<dt>Data</dt><dd>{{ info.source }}</dd>
<dt>Rows</dt><dd>{{ info.n_rows }}{% if info.n_held_out %}, of which {{ info.n_held_out }} held out to judge
the model{% endif %}</dd>
{% if info.target_kind %}
<dt>Kind of target</dt><dd>{{ info.target_kind }}</dd>
{% endif %}
</dl>
{% if info.notes %}
<ul>
{% for note in info.notes %}
<li>{{ note }}</li>
{% endfor %}
</ul>
{% endif %}
{% if settings %}
<details><summary>Settings</summary>
<dl>
{% for name, value in settings %}
<dt>{{ name }}</dt><dd>{{ value }}</dd>
{% endfor %}
</dl>
</details>
{% endif %}
{% if rules %}
<h2>Rules</h2>
<div class="scroll"><table>
<thead><tr><th scope="col">cluster</th><th scope="col">rows</th><th scope="col">precision</th>
<th scope="col">recall</th><th scope="col">rule</th></tr></thead>
<tbody>
{% for line in rules %}
<tr>{% for cell in line %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table></div>
<p class="small">Precision is the share of the rows inside a rule that belong to its cluster by all columns,
recall the share of the cluster's rows that are inside.</p>
{% elif info.target %}
<h2>Held-out figures</h2>
{% endif %}
{% if rows %}
<div class="scroll"><table class="figures">
<thead><tr>{% for cell in header %}<th scope="col">{{ cell }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in rows %}
<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table></div>
{% for note in notes %}
<p class="small">{{ note }}</p>
{% endfor %}
{% elif info.target %}
<p>No rows were held out, so nothing is known yet about predictions on new rows.</p>
{% endif %}
{% if figures %}
<h2>Plots</h2>
<div class="plots">
{% for caption, image in figures %}
<figure><img src="data:image/png;base64,{{ image }}" alt="{{ caption }}">
<figcaption>{{ caption }}</figcaption></figure>
{% endfor %}
</div>
{% endif %}
{% if learned or features %}
<h2>What the model has learned</h2>
{% endif %}
{% if features %}
<div class="scroll"><table>
<thead><tr><th scope="col">feature</th><th scope="col">use</th><th scope="col">class</th>
<th scope="col">raises</th><th scope="col">rows that have it most</th></tr></thead>
<tbody>
{% for line in features %}
<tr>{% for cell in line %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table></div>
<p class="small">Use is the mean of the feature over all rows, class the one that has it most. Rows are
numbered from 0.</p>
{% endif %}
{% if learned %}
{% for caption, image in learned %}
<figure class="learned"><img src="data:image/png;base64,{{ image }}" alt="{{ caption }}">
<figcaption>{{ caption }}</figcaption></figure>
{% endfor %}
{% endif %}
<h2>Columns</h2>
<div class="scroll"><table>
<thead><tr><th scope="col">column</th><th scope="col">use</th></tr></thead>
<tbody>
{% if info.target %}
<tr><td>{{ info.target }}</td><td>target</td></tr>
{% endif %}
{% for name, kind in info.used %}
<tr><td>{{ name }}</td><td>used{% if kind %}: {{ kind }}{% endif %}</td></tr>
{% endfor %}
{% for name, why in info.ignored %}
<tr><td>{{ name }}</td><td>ignored: {{ why }}</td></tr>
{% endfor %}
</tbody>
</table></div>
{% if model_name %}
<h2>Use the model again</h2>
<pre>import nongauss

model = nongauss.load({{ model_name }})
{{ usage }}</pre>
<p class="small">Or on the command line: nongauss predict MODEL DATA.csv --out PRED.csv</p>
{% endif %}
</body>
</html>
"""
