"""What is kept of a fit with its model, and what `nongauss describe` says of a model file."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier, is_regressor

import nongauss
from nongauss.cli.choose import REGRESSION
from nongauss.cli.judge import Outcome, scale_of
from nongauss.cli.read import NOTHING, Declared, Table
from nongauss.estimator.about import About, Marginal
from nongauss.report.metrics import metric_table
from nongauss.report.text import align, facts, model_record, settings, text_table
from nongauss.tables.column import label_of

_TOLD_ELSEWHERE = {
    "n_features_in_",
    "feature_names_in_",
    "encoded_names_",
    "kept_columns_",
    "holds_training_rows_",
    "n_iter_",
    "converged_",
    "stop_reason_",
    "trace_",
    "about_",
    "classes_",
    "weights_",
    "labels_",
}
_MOST_NUMBERS = 20
_MOST_NAMED = 20


def about_of(outcome: Outcome, table: Table, asked: str, declared: Declared = NOTHING) -> About:
    """The facts that are saved with the model of this fit. `asked`: the requested model, maybe "auto"."""
    return About(
        target=table.target,
        kind=table.kind.value,
        task=table.choice.task,
        levels=table.understood.levels,
        scale=scale_of(table),
        beside=table.before.beside,
        sides=dict(table.sides),
        asked=asked,
        became=type(outcome.final).__name__,
        source=table.source,
        n_rows=outcome.n_rows,
        n_held_out=outcome.n_held_out,
        columns=[(role.name, role.role) for role in table.before.roles if role.used],
        ignored=table.ignored,
        figures=outcome.metrics,
        verdict=list(outcome.verdict.sentences),
        missing=declared.missing,
        spellings=table.spellings,
        marginal=Marginal.of(table.y, labels=table.choice.task != REGRESSION, beside=table.fit_params),
        fitted_at=now(),
        version=nongauss.__version__,
        unit=table.unit,
    )


def about_clusters(frame: pd.DataFrame, source: str) -> About:
    """The facts that are saved with clusters of these rows."""
    return About(source=source, n_rows=len(frame), fitted_at=now(), version=nongauss.__version__)


def now() -> str:
    """The time, or that of SOURCE_DATE_EPOCH where it is set, for files that are to be the same again."""
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def model_description(model: Any, path: Path) -> dict[str, Any]:
    """All that is known of a model from a file, for JSON."""
    from nongauss.estimator.model_file import manifest_of

    manifest = manifest_of(path)
    about = model.about_ or About()
    known = {name: value for name, value in asdict(about).items() if name != "marginal"}
    classes = getattr(model, "classes_", None)
    return {
        "file": path,
        "format_version": manifest["format_version"],
        "package_version": manifest["package_version"],
        "sha256": manifest.get("sha256"),
        **known,
        **model_record(model),
        "classes": None if classes is None else [label_of(label) for label in classes.tolist()],
        "columns_used": [list(pair) for pair in about.columns],
        "auto_became": _became(model),
        "fitted": fitted_values(model),
    }


def _is_fitted(model: Any) -> bool:
    """Is the estimator fitted?"""
    return any(name.endswith("_") and not name.startswith("_") for name in vars(model))


def _became(model: Any) -> dict[str, Any]:
    """The values that the fit chose for parameters that leave the choice to it."""
    return model._became() if _is_fitted(model) else {}


def fitted_values(model: Any) -> dict[str, Any]:
    """The readable results of a fit by name: numbers, texts, a few together; of large arrays the shape."""
    found = {}
    for name, value in vars(model).items():
        if not name.endswith("_") or name.startswith("_") or name in _TOLD_ELSEWHERE:
            continue
        if isinstance(value, np.ndarray) and value.size > _MOST_NUMBERS:
            found[name] = "array of " + " x ".join(str(n) for n in value.shape)
        elif isinstance(value, (bool, int, float, str, np.generic, np.ndarray)) or _is_plain(value):
            found[name] = value
    return found


def _is_plain(value: Any) -> bool:
    """Is it a short mapping or sequence of numbers and texts?"""
    items = value.values() if isinstance(value, Mapping) else value
    if isinstance(items, (str, pd.DataFrame)) or not hasattr(items, "__len__"):
        return False
    return all(isinstance(item, (bool, int, float, str, np.generic)) for item in items)


def description_text(model: Any, path: Path) -> str:
    """The description as text."""
    from nongauss.estimator.model_file import manifest_of

    manifest, about = manifest_of(path), model.about_ or About()
    head = [("File", f"{path}, format {manifest['format_version']}, nongauss {manifest['package_version']}")]
    head.append(("Checksum", f"SHA-256 {manifest.get('sha256', 'none: of an older version')}"))
    sections = [align([*head, *_about_lines(model, about), *facts(model), *_class_line(model)])]
    sections += _column_sections(model, about)
    became = _became(model)
    changed = [(n, f"{v}, which became {became[n]}" if n in became else v) for n, v in settings(model)]
    sections.append("Settings\n" + align(changed, indent="  "))
    values = [(name.rstrip("_"), _short(value)) for name, value in fitted_values(model).items()]
    if values:
        sections.append("Fitted\n" + align(values, indent="  "))
    if hasattr(model, "describe") and _is_fitted(model):
        sections.append(model.describe())
    if about.figures:
        sections.append("Held-out rows\n" + text_table(*metric_table(about.figures)))
    return "\n\n".join([*sections, *(["\n".join(about.verdict)] if about.verdict else [])])


def _about_lines(model: Any, about: About) -> list[tuple[str, str]]:
    """What the model was fitted to, as pairs of label and text."""
    if about.target is None and about.source is not None:
        return [("Table", f"{about.source}, {about.n_rows} rows"), ("Fitted at", str(about.fitted_at))]
    if not _is_fitted(model):
        return [("State", "not fitted: only settings are in the file")]
    if about.target is None:
        if not (is_classifier(model) or is_regressor(model)):
            return []
        return [("Target", "not known: the model was saved from Python, or by an older version")]
    held = f", evaluated on {about.n_held_out} held-out rows" if about.n_held_out else ", no rows held out"
    model = f"auto, which chose {about.became}" if about.asked == "auto" else f"{about.asked}, as asked"
    levels = f", levels {' < '.join(about.levels)}" if about.levels else ""
    limits = ", ".join(label for label, side in about.sides.items() if side)
    marked = {"censored": f" ({limits})"} if limits else {}
    beside = [(what.capitalize(), column + marked.get(what, "")) for what, column in about.beside.items()]
    return [
        ("Target", f"{about.target} ({about.kind}), {about.task}{levels}"),
        *beside,
        ("Table", f"{about.source}, {about.n_rows} rows{held}"),
        ("Fitted at", str(about.fitted_at)),
        ("Asked for", model),
    ]


def _class_line(model: Any) -> list[tuple[str, str]]:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return []
    return [("Classes", _few([label_of(label) for label in classes.tolist()]))]


def _column_sections(model: Any, about: About) -> list[str]:
    """The columns by kind, and those that were left out, where it is known; else their names."""
    if not about.columns:
        names = getattr(model, "feature_names_in_", None)
        return [] if names is None else [f"Columns: {_few(names)}"]
    kinds: dict[str, list[str]] = {}
    for name, kind in about.columns:
        kinds.setdefault(kind, []).append(name)
    lines = [(f"{kind} ({len(names)})", _few(names)) for kind, names in kinds.items()]
    lines += [("left out", f"{name}: {reason}") for name, reason in about.ignored[:_MOST_NAMED]]
    if len(about.ignored) > _MOST_NAMED:
        lines.append(("left out", f"… ({len(about.ignored)})"))
    return ["Columns\n" + align(lines, indent="  ")]


def _few(names: Sequence[str]) -> str:
    """Names with commas; of many the first, and how many there are."""
    more = f", … ({len(names)})" if len(names) > _MOST_NAMED else ""
    return ", ".join(str(name) for name in names[:_MOST_NAMED]) + more


def _short(value: Any) -> str:
    """A fitted value on a line, numbers to four digits."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_short(item)}" for name, item in value.items())
    if isinstance(value, np.ndarray):
        return _short(value.tolist())
    if isinstance(value, (list, tuple)):
        return ", ".join(_short(item) for item in value)
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
