"""The report of a fit as one HTML file that needs nothing else: plots, styles and their script are inside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from sklearn.base import is_classifier, is_clusterer, is_regressor

from nongauss.core.files import atomic_path
from nongauss.core.printable import printable
from nongauss.report.evidence import Coverage, Difference
from nongauss.report.metrics import in_digits, metric_table
from nongauss.report.pictures import CURVE_CAPTION, Part, Picture
from nongauss.report.plots.class_features import feature_names
from nongauss.report.plots.feature_columns import shown_features
from nongauss.report.rows import RowsShown
from nongauss.report.svg import colours_of, svg_of
from nongauss.report.text import choice_lines, facts, for_readers, settings
from nongauss.report.verdict import Verdict

if TYPE_CHECKING:
    import jinja2

DENSITY_NOTE = (
    "Log density is the mean log of the predicted density at the observed values, in nats a row: higher is "
    "better, and a difference of 0.1 means about 10 % more density at the observed values. It "
    "depends on the unit "
    "of the target, so compare it only between models of the same target. Coverage should be close to 90 %; "
    "among models that reach it, a narrower interval says more."
)
LOG_LOSS_NOTE = (
    "Log loss is the mean of minus the log of the probability given to the class observed, in nats a row: "
    "lower is better, and 0.69 is a coin toss between two classes. Accuracy is the share of rows whose class "
    "was predicted, balanced accuracy its mean over classes, rare ones counted like frequent ones. The Brier "
    "score is the squared distance of the probabilities from the observed outcome (0 or 1): lower is better."
)
_MOST_LINES, _MOST_NAMED, _MOST_LISTED = 40, 5, 100


@dataclass(frozen=True)
class FrameInfo:
    """Information on the table for the report: its source and which columns were used.

    `used` holds pairs (column, kind of its values), `ignored` pairs (column, why). `gaps` and `typical` are
    texts by column: how many cells are missing, and what it holds. `fingerprint` tells the table from others.
    """

    source: str
    target: str
    n_rows: int
    n_held_out: int = 0
    target_kind: str = ""
    used: Sequence[tuple[str, str]] = ()
    ignored: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = field(default=())
    gaps: Mapping[str, str] = field(default_factory=dict)
    typical: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str = ""


def write_report(
    path: str | Path,
    *,
    title: str,
    estimator: Any,
    frame_info: FrameInfo,
    verdict: Verdict | None = None,
    metrics: Mapping[str, Mapping[str, float]] | None = None,
    figures: Iterable[Any] = (),
    learned: Iterable[Any] = (),
    model_path: str | Path | None = None,
    rules: Sequence[Sequence[str]] = (),
    features: Sequence[Sequence[str]] = (),
    rows: RowsShown | None = None,
) -> Path:
    """Write the report of a fitted estimator to `path`, completely or not at all; return the path.

    Parameters
    ----------
    estimator : the fitted model that the reader will use.
    frame_info : the table and its columns.
    verdict : the verdict, which comes first.
    metrics : held-out figures by model name, from `regression_metrics` or `classification_metrics`; none
        where nothing was held out.
    figures : pictures, see `report_figures`, or pairs (caption, figure); they are embedded as SVG.
    learned : the same, about the columns, see `learned_figures`.
    model_path : where the model was saved, for the lines that load it again.
    rules : of clusters, (cluster, rows, precision, recall, stability, rule) each, where figures would stand.
    features : of latent features, (feature, use, class, columns, rows) each, see `feature_lines`.
    rows : held-out rows to look at, see `report.rows.rows_shown`.

    Raises
    ------
    OSError
        Where the file cannot be written.
    """
    header, lines = metric_table({_breakable(name): row for name, row in (metrics or {}).items()})
    pictures = drawn(given := [Picture(*picture) for picture in [*figures, *learned]])
    page = template("report.html").render(
        title=title,
        verdict=verdict,
        **_of_verdict(verdict),
        info=frame_info,
        notes_on_table=[text for note in frame_info.notes if (text := for_readers(note))],
        columns=_columns_shown(frame_info, getattr(estimator, "kept_columns_", None)),
        **_of_model(estimator, frame_info),
        header=header,
        rows=lines,
        notes=[note for name, note in _NOTES.items() if name in header],
        rules=rules,
        features=features,
        pictures=pictures,
        colours=colours_of(svg for part in pictures.values() for _, svg in part),
        curve_caption=CURVE_CAPTION,
        key=next((picture.key for picture in given if picture.key), ()),
        look=rows or RowsShown(),
        model_name=None if model_path is None else repr(Path(model_path).name),
    )
    return written(path, page)


def _breakable(name: str) -> str:
    """A name that may be broken between its words, which a phone has to."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "\u200b", name)


def _of_model(estimator: Any, info: FrameInfo) -> dict[str, Any]:
    """What the page says of a fitted model alone."""
    return {
        "about_labels": is_classifier(estimator),
        "facts": [(a, b.replace("`", "")) for a, b in facts(estimator, target=info.target or None)],
        "about": _about(estimator, info),
        "settings": settings(estimator),
        "why": getattr(estimator, "why_", ""),
        "choice": choice_lines(estimator),
        "usage": _usage(estimator),
    }


def written(path: str | Path, page: str) -> Path:
    """The file with a page, whole or not at all."""
    with atomic_path(path) as temporary:
        Path(temporary).write_text(printable(page), encoding="utf-8")
    return Path(path)


def _of_verdict(verdict: Verdict | None) -> dict[str, list[Any]]:
    """What the page says of a verdict: sentences, advice, differences and coverage, each in lines."""
    if verdict is None:
        return {"says": [], "advice": [], "differences": [], "coverage": []}
    return {
        "says": [text for sentence in verdict.sentences if (text := for_readers(sentence))],
        "advice": [text for sentence in verdict.advice if (text := for_readers(sentence))],
        "differences": difference_lines(verdict.differences),
        "coverage": coverage_lines(verdict.coverage),
    }


def template(name: str) -> jinja2.Template:
    """A page that is filled in, by the name of its file in this folder."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
    )
    return environment.get_template(name)


def drawn(pictures: Sequence[Picture]) -> dict[str, list[tuple[str, str]]]:
    """Captions and SVG texts by the part of the page."""
    parts: dict[str, list[tuple[str, str]]] = {part: [] for part in get_args(Part)}
    for number, picture in enumerate(pictures):
        svg = svg_of(picture.figure, picture.caption, number)
        parts[picture.part].append((picture.caption, svg))
    return parts


@dataclass(frozen=True)
class DifferenceLine:
    """A paired difference as the report shows it; the ends of its 95 % interval on a scale from 0 to 100.

    `zero`: where no difference lies on that scale.
    """

    baseline: str
    measure: str
    text: str
    interval: str
    word: str
    low: float
    middle: float
    high: float
    zero: float


_MEASURES = {
    "log score": "log score (nats a row)",
    "squared error": "squared error",
    "wrong labels": "share of wrong labels",
    "CRPS": "CRPS (units of the target)",
    "interval score": "90 % interval score (units of the target)",
}
_GAIN = {1: "better", 0: "no significant difference", -1: "worse"}


def difference_lines(differences: Sequence[Difference]) -> list[DifferenceLine]:
    """Paired differences on the same held-out rows, those of one measure together and on one scale."""
    out = []
    for measure in dict.fromkeys(item.measure for item in differences):
        own = [item for item in differences if item.measure == measure]
        most = max((abs(end) for item in own if item.is_finite for end in item.interval), default=0.0) or 1.0
        out += [_difference_line(item, most) for item in own]
    return out


def _difference_line(item: Difference, most: float) -> DifferenceLine:
    """One of them; `most` is at the right end of the scale, minus that at the left."""
    what, word = _MEASURES.get(item.measure, item.measure), _GAIN[item.sign]
    if not item.is_finite:
        said = f"zero probability was given to {item.impossible} of the observed values"
        return DifferenceLine(item.baseline, what, said, "", word, 0.0, 0.0, 0.0, 50.0)
    low, high = item.interval
    left, middle, right = (50.0 + 46.0 * value / most for value in (low, item.mean, high))
    text = f"{in_digits(item.mean, 3, '+')} ± {in_digits(item.se, 2)}"
    ends = f"{in_digits(low, 3, '+')} to {in_digits(high, 3, '+')}"
    return DifferenceLine(item.baseline, what, text, ends, word, left, middle, right, 50.0)


def coverage_lines(coverage: Sequence[Coverage]) -> list[tuple[str, str, str, str]]:
    """Of each interval what it should hold, what it held, what chance explains, and the verdict on it."""
    words = {-1: "held too few", 0: "as expected", 1: "held too many"}
    return [
        (
            f"{100 * c.level:.3g} %",
            f"{100 * c.held:.1f} %",
            f"{100 * c.low:.0f} to {100 * c.high:.0f} %",
            words[c.sign],
        )
        for c in coverage
    ]


def _columns_shown(info: FrameInfo, kept: Sequence[str] | None) -> list[tuple[str, str, str, str]]:
    """(column, what it is used for, gaps, what it holds), used ones first; of many the first, and how many.

    `kept`: the columns of a wide table that are looked at, None for all.
    """
    used = [(name, f"used: {kind}" if kind else "used") for name, kind in info.used]
    others: list[tuple[str, str]] = []
    if kept is not None:
        looked_at = set(kept)
        others = [
            (f"{len(used) - len(kept):,} more", "not used: not significantly associated with the target")
        ]
        used = [pair for pair in used if pair[0] in looked_at]
    ignored = [(name, f"left out: {for_readers(why) or 'as asked'}") for name, why in info.ignored]
    shown = [*_first(used, "used"), *others, *_first(ignored, "left out")]
    return [(name, use, info.gaps.get(name, ""), info.typical.get(name, "")) for name, use in shown]


def _first(pairs: Sequence[tuple[str, str]], use: str) -> list[tuple[str, str]]:
    """The first pairs, and the number of others."""
    rest = len(pairs) - _MOST_LISTED
    return [*pairs[:_MOST_LISTED], *([(f"{rest:,} more", use)] if rest > 0 else [])]


def _about(estimator: Any, info: FrameInfo) -> list[tuple[str, str]]:
    """Where the fit came from: version, date, seed, fingerprint of the table, as far as it is known."""
    import nongauss

    about = getattr(estimator, "about_", None)
    seed = getattr(estimator, "random_state", None)
    pairs = [
        ("Version", f"nongauss {(about.version if about else None) or nongauss.__version__}"),
        ("Fitted at", (about.fitted_at if about else None) or ""),
        ("Seed", "" if seed is None else str(seed)),
        ("Fingerprint of the data", f"SHA-256 {info.fingerprint}…" if info.fingerprint else ""),
    ]
    return [(name, text) for name, text in pairs if text]


def feature_lines(estimator: Any, X: Any) -> list[tuple[str, str, str, str, str]]:
    """A line for each feature: name, how much rows X have it, class, columns that it raises, top rows.

    Rows are numbered from 0. The class is that of the largest mean, "" without classes. At most 40 features.
    """
    import numpy as np

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
