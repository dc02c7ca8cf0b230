"""What was fitted, how it ended and how well it does on rows it has not seen: as text, and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nongauss.report.metrics import LABELS, format_figure

_MOST_NAMED = 12
_HOUSEKEEPING = {"callbacks", "random_state", "verbose", "checkpoint", "n_jobs"}


def summary(
    estimator: Any,
    *,
    metrics: Mapping[str, float] | None = None,
    target: str | None = None,
    n_rows: int | None = None,
) -> str:
    """What was fitted, its settings, how the fit ended and the held-out figures, as aligned plain text.

    Parameters
    ----------
    estimator : fitted estimator with scikit-learn's conventions.
    metrics : what `regression_metrics` returned for rows not used in the fit.
    target : name of the predicted column.
    n_rows : number of rows fitted.

    Notes
    -----
    An attribute that the estimator lacks leaves its line out.
    """
    sections = [align(facts(estimator, target=target, n_rows=n_rows))]
    changed = settings(estimator)
    if changed:
        sections.append("Settings\n" + align(changed, indent="  "))
    if metrics:
        lines = [(label, format_figure(name, metrics.get(name))) for name, label in LABELS.items()]
        sections.append("Held-out figures\n" + align([line for line in lines if line[1]], indent="  "))
    return "\n\n".join(sections)


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
        return ", of which none goes with the target beyond chance; none is looked at"
    more = f" and {len(kept) - _MOST_NAMED:,} more" if len(kept) > _MOST_NAMED else ""
    shown = ", ".join(kept[:_MOST_NAMED])
    return f", of which {len(kept):,} go with the target beyond chance and are looked at: {shown}{more}"


def settings(estimator: Any) -> list[tuple[str, str]]:
    """Parameters of the estimator that shape the model, in the order of its signature."""
    if not hasattr(estimator, "get_params"):
        return []
    values = estimator.get_params(deep=False)
    return [(name, _brief(value)) for name, value in values.items() if name not in _HOUSEKEEPING]


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


def to_json(record: Mapping[str, Any]) -> str:
    """The record as one JSON object on one line."""
    return json.dumps(plain(record), allow_nan=False, ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value with only JSON's types in it."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, pd.DataFrame):
        name = str(value.index.name or "index")
        return [{name: plain(key), **plain(row)} for key, row in value.T.to_dict().items()]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value) if isinstance(value, Path) else repr(value)


def model_record(estimator: Any) -> dict[str, Any]:
    """What a fitted estimator says of itself: class, columns, settings, how the fit ended."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "model": type(estimator).__name__,
        "n_features": getattr(estimator, "n_features_in_", None),
        "columns": None if names is None else [str(name) for name in names],
        "kept_columns": getattr(estimator, "kept_columns_", None),
        "n_iter": getattr(estimator, "n_iter_", None),
        "converged": getattr(estimator, "converged_", None),
        "stop_reason": getattr(estimator, "stop_reason_", None),
        "holds_training_rows": getattr(estimator, "holds_training_rows_", None),
        "settings": dict(settings(estimator)),
    }


def _brief(value: Any, limit: int = 60) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def choice_lines(estimator: Any) -> list[tuple[str, str, str, str, str]]:
    """Of a model chosen by evidence what was weighed: law, nats a row, error, share, why it was left out."""
    board = getattr(estimator, "leaderboard_", None)
    if board is None:
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
