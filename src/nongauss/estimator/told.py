"""What a fitted estimator says of itself: facts, settings, figures and verdict, as text and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

_MOST_NAMED = 12
_HOUSEKEEPING = {"callbacks", "random_state", "verbose", "checkpoint", "n_jobs"}
_MOST_CANDIDATES, _MOST_SHOWN = 8, 25

#: How each figure is called where a person reads it, in the order of display.
LABELS: dict[str, str] = {
    "n_rows": "Rows",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "log_density": "Log predictive density (nats a row)",
    "crps": "CRPS (continuous ranked probability score)",
    "coverage_90": "Coverage of the 90 % interval",
    "width_90": "Mean width of the 90 % interval",
    "interval_score_90": "Interval score of the 90 % interval",
    "log_loss": "Log loss (nats a row)",
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "brier": "Brier score",
    "level_error": "Mean absolute error in levels",
    "log_score_behind": "Behind the best in log score (nats a row)",
    "crps_behind": "Behind the best in CRPS",
    "seconds": "Seconds to fit",
}

#: The same, short enough for the head of a table.
SHORT_LABELS: dict[str, str] = {
    "n_rows": "rows",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "log_density": "log density",
    "crps": "CRPS",
    "coverage_90": "90 % coverage",
    "width_90": "90 % width",
    "interval_score_90": "90 % interval score",
    "log_loss": "log loss",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced acc.",
    "brier": "Brier",
    "level_error": "level error",
    "log_score_behind": "nats behind",
    "crps_behind": "CRPS behind",
    "seconds": "fit seconds",
}


def format_figure(name: str, value: float | None) -> str:
    """One figure as a person reads it: percent for coverage, an integer for rows, blank where undefined."""
    if value is None or math.isnan(value):
        return ""
    if name == "n_rows":
        return f"{value:.0f}"
    if name.startswith("coverage") or name.endswith("accuracy"):
        return f"{100 * value:.1f} %"
    if name == "r2":
        return f"{value:.3f}"
    if name == "seconds":
        return f"{value:.2f}"
    return in_digits(value)


def in_digits(value: float, digits: int = 4, sign: str = "") -> str:
    """A number to some digits, with commas between thousands in the place of an exponent below 10^9.

    `sign`: "+" to write that of positive numbers, too.
    """
    rounded = float(f"{value:.{digits}g}")
    return format(rounded, f"{sign},.15g" if 10.0 <= abs(rounded) < _MANY else f"{sign}.{digits}g")


_MANY = 1e9
"""From here on a number has an exponent: its digits would not fit beside others."""


def metric_table(metrics: Mapping[str, Mapping[str, float]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of text for figures by model; a column appears if any model has the figure."""
    names = [name for name in LABELS if any(name in row for row in metrics.values())]
    header = ["model", *(SHORT_LABELS[name] for name in names)]
    rows = [[model, *(format_figure(n, row.get(n)) for n in names)] for model, row in metrics.items()]
    return header, rows


def facts(estimator: Any, *, target: str | None = None, n_rows: int | None = None) -> list[tuple[str, str]]:
    """Pairs (label, text) about a fitted estimator: model, target, columns, iterations, reason to stop."""
    pairs = [("Model", type(estimator).__name__)]
    if target is not None:
        pairs.append(("Target", str(target)))
    if n_rows is not None:
        pairs.append(("Rows", str(n_rows)))
    for label, attribute in (
        ("Columns", "n_features_in_"),
        ("Targets", "n_outputs_"),
        ("Clusters", "n_clusters_"),
        ("Iterations", "n_iter_"),
    ):
        value = getattr(estimator, attribute, None)
        if value is not None and np.ndim(value) == 0:
            pairs.append((label, f"{value}{_kept(estimator) if label == 'Columns' else ''}"))
    trace = getattr(estimator, "trace_", None)
    if trace is not None and len(trace) and "bound" in trace:
        pairs.append(("Final objective", f"{float(trace['bound'].iloc[-1]):.6g}"))
    holds_rows = getattr(estimator, "holds_training_rows_", None)
    if holds_rows is not None:
        pairs.append(("Holds training rows", "yes" if holds_rows else "no"))
    if getattr(estimator, "stop_reason_", None):
        pairs.append(("Why it stopped", str(estimator.stop_reason_)))
    return pairs


def _kept(estimator: Any) -> str:
    """Which columns of a wide table are looked at, "" where all are."""
    kept = getattr(estimator, "kept_columns_", None)
    if kept is None:
        return ""
    if not kept:
        return ", of which none is significantly associated with the target; none is used"
    more = f" and {len(kept) - _MOST_NAMED:,} more" if len(kept) > _MOST_NAMED else ""
    shown = ", ".join(kept[:_MOST_NAMED])
    return f", of which {len(kept):,} are significantly associated with the target and used: {shown}{more}"


def settings(estimator: Any) -> list[tuple[str, str]]:
    """Parameters of the estimator that shape the model, in the order of its signature."""
    if not hasattr(estimator, "get_params"):
        return []
    values = estimator.get_params(deep=False)
    return [(name, _brief(value)) for name, value in values.items() if name not in _HOUSEKEEPING]


def changed_settings(estimator: Any) -> list[tuple[str, str]]:
    """Pairs (parameter, value) of an estimator whose values are not the defaults of its class."""
    try:
        usual = dict(settings(type(estimator)()))
    except TypeError:  # a parameter without a default
        usual = {}
    return [(name, text) for name, text in settings(estimator) if usual.get(name) != text]


def align(pairs: Sequence[tuple[str, str]], *, indent: str = "") -> str:
    """Pairs as lines with the second column aligned."""
    width = max((len(label) for label, _ in pairs), default=0)
    return "\n".join(f"{indent}{label.ljust(width)}  {text}".rstrip() for label, text in pairs)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as text: first column to the left, figures to the right, two spaces between."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    shown = []
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        shown.append("  ".join(cells).rstrip())
    shown.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(shown)


def _brief(value: Any, limit: int = 60) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def choice_lines(estimator: Any) -> list[tuple[str, str, str, str, str]]:
    """The lines of a leaderboard of laws: name, nats a row, error, share, and why it was left out.

    Estimators without one, or whose leaderboard has other figures (as for missing cells), have no such lines.
    """
    board = getattr(estimator, "leaderboard_", None)
    if board is None or "log_density" not in board:
        return []
    names = ("candidate", "log_density", "standard_error", "weight", "why_left_out")
    return [
        (
            str(law),
            f"{value:.3f}" if value == value else "",
            f"{error:.3f}" if error == error else "",
            f"{share:.2f}" if share else "",
            str(why),
        )
        for law, value, error, share, why in zip(*(board[name] for name in names), strict=True)
    ]


def told(
    estimator: Any,
    *,
    target: str | None = None,
    n_rows: int | None = None,
    figures: Mapping[str, Mapping[str, float]] | None = None,
    verdict: Sequence[str] = (),
) -> str:
    """All that is to be said of a fitted estimator, as text: facts, settings, figures, choice, verdict.

    `figures` of held-out rows by model; `verdict`: its sentences.
    """
    texts = [align(facts(estimator, target=target, n_rows=n_rows))]
    changed = changed_settings(estimator)
    if changed:
        texts.append("Settings that are not the defaults\n" + align(changed, indent="  "))
    if figures:
        texts.append("Held-out rows\n" + text_table(*metric_table(figures)))
    if hasattr(estimator, "describe"):
        texts.append(estimator.describe())
    if verdict:
        texts.append("Verdict\n" + "\n".join(f"  {line}" for line in verdict))
    return "\n\n".join(texts)


def summary_of(estimator: Any) -> str:
    """`told` of an estimator, with what its `about_` knows of target, rows, figures and verdict."""
    about = getattr(estimator, "about_", None)
    if about is None:
        return told(estimator)
    return told(
        estimator,
        target=about.target,
        n_rows=about.n_rows,
        figures=about.figures,
        verdict=about.verdict,
    )


def html_of(estimator: Any) -> str:
    """A block for a notebook: the verdict where it is known, what was learned, and the summary folded."""
    about = getattr(estimator, "about_", None)
    first = about.verdict[0] if about is not None and about.verdict else getattr(estimator, "why_", "")
    known = {} if about is None else {"target": about.target, "n_rows": about.n_rows}
    pairs = [pair for pair in facts(estimator, **known) if pair[0] != "Model"]
    said = " · ".join(f"{escape(name)}: <b>{escape(text)}</b>" for name, text in pairs)
    board = board_html(choice_lines(estimator)[:_MOST_CANDIDATES])
    return (
        '<div class="nongauss-told" style="max-width: 60em; margin: .4em 0; line-height: 1.5">'
        + (f"<div><b>{escape(str(first))}</b></div>" if first else "")
        + f"<div>{said}</div>{board}"
        + f"<details><summary>Summary</summary><pre>{escape(summary_of(estimator))}</pre></details></div>"
    )


def board_html(lines: Sequence[Sequence[str]]) -> str:
    """What was weighed as a table of HTML: law, nats a row, error, share, why it was left out; "" of none."""
    if not lines:
        return ""
    heads = ("law", "nats a row", "error", "share", "left out, since")
    head = "".join(f"<th>{name}</th>" for name in heads)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


class Leaderboard(pd.DataFrame):
    """What was weighed, a row a candidate; in a notebook, figures of three digits and blanks for what is not.

    Rows or columns of it are plain frames.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _repr_html_(self) -> str:
        shown = self.head(_MOST_SHOWN)
        table = shown.to_html(index=False, na_rep="", border=0, float_format=lambda value: f"{value:.3f}")
        left = len(self) - len(shown)
        return table + (f"<p>and {left} more, which are behind or were out of reach</p>" if left > 0 else "")


def documentation_of(name: str) -> str:
    """The address of the reference of a class, from the package's own metadata; "" where it has none."""
    try:
        urls = metadata("nongauss").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    known = dict(tuple(part.strip() for part in url.split(",", 1)) for url in urls)
    base = known.get("Documentation", "").rstrip("/")
    return f"{base}/reference/#nongauss.{name}" if base else ""


class ToldMixin:
    """`summary`, and what a notebook shows, of an estimator; it stands before scikit-learn's base."""

    def summary(self) -> str:
        """What was fitted, how the fit ended, and, if known, how good it is, as one block of text.

        It is what `nongauss fit` prints. Raises NotFittedError.
        """
        check_is_fitted(self)
        return summary_of(self)

    def _repr_html_inner(self) -> str:
        """scikit-learn's box, and below it what was learned."""
        return str(super()._repr_html_inner()) + self._told_html()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """The same for notebooks, which ask for all forms at once."""
        output: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in output:
            output["text/html"] += self._told_html()
        return output

    def _told_html(self) -> str:
        """The block below the box, "" before the fit."""
        return html_of(self) if hasattr(self, "stop_reason_") else ""

    def _get_doc_link(self) -> str:
        """Where the box's question mark leads."""
        return documentation_of(type(self).__name__)
