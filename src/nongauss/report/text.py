"""What was fitted, how it ended and how well it does on rows it has not seen: as text, and as JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nongauss.estimator.told import (
    LABELS,
    align,
    choice_lines,
    facts,
    format_figure,
    settings,
    text_table,
)

__all__ = [
    "align",
    "choice_lines",
    "facts",
    "for_readers",
    "model_record",
    "plain",
    "settings",
    "summary",
    "text_table",
    "to_json",
]

_OPTION = re.compile(r"(?<![\w-])--[a-z]")


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


def for_readers(sentence: str) -> str:
    """A sentence without what is typed on the command line: a reader of the report has none before him.

    Brackets that hold an option go, then clauses after a semicolon, colon or full stop; "" where nothing is
    left.
    """
    if not _OPTION.search(sentence):
        return sentence
    text = re.sub(r"\s*\([^()]*--[a-z][^()]*\)", "", sentence)
    clauses = re.split(r"(?<=[;.])\s+", text)
    kept = [clause for clause in clauses if not _OPTION.search(clause)]
    if not kept:
        return ""
    said = " ".join(kept).rstrip("; ")
    return said if said.endswith((".", "!", "?")) or not sentence.rstrip().endswith(".") else said + "."


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
