"""How good a saved model is on a table whose target is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import is_classifier, is_regressor

from nongauss.cli.censoring import censoring_as_fitted, read_censoring, said_of
from nongauss.cli.choose import closest
from nongauss.cli.declared import column_named
from nongauss.cli.judge import in_units_of_table, read_once
from nongauss.cli.predict import as_fitted, beside_of, inputs_of
from nongauss.cli.target import in_unit
from nongauss.core.errors import InputError
from nongauss.estimator.about import About, Marginal
from nongauss.report.baselines import MEAN, SHARES, baselines
from nongauss.report.censored import CensoredRegressor
from nongauss.report.judgement import JudgedRows, masses, scored
from nongauss.report.metrics import LABELS, format_figure
from nongauss.report.scoring import NumberScores, Scores, score
from nongauss.report.text import text_table
from nongauss.report.verdict import Setting, Verdict, verdict
from nongauss.tables.column import ColumnKind, label_of
from nongauss.tables.files import read_table
from nongauss.tables.kinds import decode, decode_target
from nongauss.tables.target_kinds import target_values, understand_target

_BLOCKS, _MOST_VALUES = 50, 5


@dataclass(frozen=True)
class ScoreSheet:
    """Figures of a model on labelled rows, their standard errors, and what these say of its worth."""

    target: str
    figures: dict[str, float]
    standard_errors: dict[str, float]
    verdict: Verdict
    notes: list[str]

    def record(self) -> dict[str, Any]:
        """The scores for `--json`."""
        return {
            "target": self.target,
            "rows": int(self.figures["n_rows"]),
            "figures": self.figures,
            "standard_errors": self.standard_errors,
            "verdict": self.verdict.record(),
        }

    def text(self) -> str:
        """The scores as text."""
        rows = [
            (LABELS[name], format_figure(name, value), self._error(name))
            for name, value in self.figures.items()
            if name in LABELS
        ]
        table = text_table(("Figure", "value", "standard error"), rows)
        return f"{table}\n\nVerdict\n" + "\n".join(f"  {line}" for line in self.verdict.sentences)

    def _error(self, name: str) -> str:
        error = self.standard_errors.get(name)
        return "" if error is None else format_figure(name, error)


def score_table(model: Any, data: Path, target: str | None = None, censored: str | None = None) -> ScoreSheet:
    """Score a model on the rows of a table that have a target.

    A row that a column marks as censored counts with the log probability of a target beyond its limit. That
    column is the one of the fit, read as there, or `censored`: "COLUMN" or "COLUMN=VALUE". The baseline is
    what is known of the training target; without that, of the target scored. Raises InputError for a model
    that predicts no target, a table without it, and a target that is not known.
    """
    if not (is_classifier(model) or is_regressor(model)):
        raise InputError(f"{type(model).__name__} predicts no target, so there is nothing to score.")
    if censored and is_classifier(model):
        raise InputError(f"{type(model).__name__} predicts labels, which are not censored; omit --censored.")
    about = getattr(model, "about_", None) or About()
    frame = as_fitted(model, read_table(data))
    name = _target_name(target or about.target, frame, data)
    missing = decode_target(name, frame[name]).missing
    if missing.all():
        raise InputError(
            f"The target {name!r} is missing in every row of {data.name}; give rows that have it."
        )
    notes = (
        [f"{missing.sum()} of {len(frame)} rows have no {name!r} and were left out."] if missing.any() else []
    )
    if data.name == about.source:
        notes.append(f"{data.name} has the name of the training table; scores on training rows are too good.")
    rows = frame[~missing].reset_index(drop=True)
    y = _observed(model, in_unit(rows[name], name, about.unit), name, about)
    aside = [column_named(censored, rows)] if censored else []
    X = read_once(model, inputs_of(model, rows.drop(columns=[name]), aside))
    limits, said = limits_of(about, rows, y, censored, data.name)
    notes += said
    found = scored(model, JudgedRows(X, y, {**beside_of(model, rows), **limits}))
    if about.marginal is None or (limits and not about.marginal.beside):
        notes.append(
            "The distribution of the training target is not in the file; the baseline was fitted to "
            "the rows that are scored."
        )
    constant, other = _constant(model, found, about.marginal, limits)
    setting = Setting(name, constant, about.n_rows or len(y), rows.shape[1] - 1, judges="rows of the file")
    found, other = (in_units_of_table(scores, about.scale) for scores in (found, other))
    notes += _on_impossible(found, name, about.kind)
    return ScoreSheet(
        name, found.figures(), standard_errors(found), verdict(found, {constant: other}, setting), notes
    )


def _on_impossible(found: Scores, name: str, kind: str | None) -> list[str]:
    """A note on targets that the model takes for impossible, and what to do about them."""
    if not isinstance(found, NumberScores) or not np.isneginf(found.log_score).any():
        return []
    rows = np.isneginf(found.log_score)
    n, values = int(rows.sum()), np.unique(found.y[rows])
    shown = ", ".join(f"{value:g}" for value in values[:_MOST_VALUES]) + ", …" * (len(values) > _MOST_VALUES)
    remedy = "--set likelihood=zero_one_beta" if kind == ColumnKind.SHARE.value else "--kind real"
    return [
        f"The model gives no probability to the {name!r} of {n} row{'s' * (n > 1)} ({shown}), so the "
        f"log density is -inf. Fit again with rows that hold such values, or with {remedy}."
    ]


def _target_name(target: str | None, frame: pd.DataFrame, data: Path) -> str:
    if target is None:
        there = closest("", [str(name) for name in frame.columns])
        raise InputError(
            f"The model file does not contain the name of the target; give --target: in {data.name}{there}"
        )
    if target not in frame.columns:
        raise InputError(
            f"{data.name} has no column {target!r}, the target, so there is nothing to score;"
            f"{closest(target, frame.columns)}"
        )
    return target


def _observed(model: Any, column: pd.Series, name: str, about: About) -> Any:
    """The target as the model takes it: numbers over the scale of the training table, or its own labels."""
    if is_classifier(model):
        found = understand_target(column, name, kind=ColumnKind.LABEL)
        y = np.asarray(target_values(column, found, name))
        known = {label_of(label): label for label in model.classes_.tolist()}
        same = [known.get(label_of(label), label) for label in y.tolist()]
        return np.array(same, dtype=model.classes_.dtype if set(same) <= set(known.values()) else object)
    known_kind = about.kind not in (None, ColumnKind.CONSTANT.value)
    found = understand_target(column, name, kind=about.kind if known_kind else ColumnKind.REAL)
    return target_values(column, replace(found, scale=about.scale), name)


def limits_of(
    about: About, rows: pd.DataFrame, y: Any, censored: str | None, source: str
) -> tuple[dict[str, npt.NDArray[Any]], list[str]]:
    """What says of which targets y (N,) of these rows only a limit is known, and notes on it.

    Raises InputError for a column that is not there or does not say it.
    """
    text = censored or about.beside.get("censored")
    if text is None:
        return {}, []
    name = column_named(text, rows)
    if name not in rows.columns:
        if censored:
            raise InputError(f"{source} has no column {name!r};{closest(name, rows.columns)}")
        said = f"{source} has no column {name!r}, which marked censored rows in training; every target is"
        return {}, [f"{said} treated as exact."]
    column = decode(name, rows[name])
    known = about.marginal.beside if about.marginal else {}
    if censored is None and (about.sides or "y_upper" in known):
        found = censoring_as_fitted(column, about.sides)
    else:
        found = read_censoring(column, text[len(name) + 1 :], y)
    return {found.name: found.cells}, [said_of(found, name, y)]


def _constant(
    model: Any, found: Scores, marginal: Marginal | None, limits: Mapping[str, Any]
) -> tuple[str, Scores]:
    """The model that looks at no column, fitted to the law of the training target, on the same rows."""
    if limits:
        known = marginal is not None and marginal.beside
        y, beside = (marginal.values, marginal.beside) if marginal and known else (found.y, limits)
        usual = CensoredRegressor(view="none").fit(np.zeros((len(y), 1)), y, **beside)
        return MEAN, score(usual, np.zeros((len(found.y), 1)), found.y, limits)
    classify = is_classifier(model)
    sample = (marginal or Marginal.of(found.y, labels=classify)).sample()
    if isinstance(found, NumberScores):
        counts, atoms = masses(found, np.asarray(sample, dtype=np.float64))
        name, usual = MEAN, baselines(counts=counts, atoms=atoms, reach=found.reach)[MEAN]
    else:
        name, usual = SHARES, baselines(classify=True)[SHARES]
        sample = _as_classes(sample, found.classes)
    fitted = usual.fit(np.zeros((len(sample), 1)), sample)
    return name, score(fitted, np.zeros((len(found.y), 1)), found.y)


def _as_classes(sample: Any, classes: Any) -> Any:
    """Labels in the type of the model's classes."""
    known = {label_of(label): label for label in classes.tolist()}
    return np.array([known.get(label_of(label), label) for label in sample.tolist()], dtype=classes.dtype)


def standard_errors(found: Scores) -> dict[str, float]:
    """Of each figure, by leaving out one of up to 50 blocks of rows drawn at random (the jackknife).

    se^2 = (g - 1) / g sum_b (theta_(b) - mean theta)^2 over g blocks.
    """
    n = len(found.y)
    g = min(n, _BLOCKS)
    if g < 2:
        return {}
    block = np.random.default_rng(0).permutation(n) % g
    parts = [_rows_of(found, block != b).figures() for b in range(g)]
    out = {}
    for name in parts[0]:
        values = np.array([part.get(name, np.nan) for part in parts])
        if name not in ("n_rows", "seconds") and np.isfinite(values).all():
            out[name] = math.sqrt((g - 1) / g * float(((values - values.mean()) ** 2).sum()))
    return out


def _rows_of(found: Any, rows: Any) -> Scores:
    """The scores of a part of the rows."""
    own = {field.name: getattr(found, field.name) for field in fields(found)}
    taken: Scores = replace(
        found, **{n: v if v is None else v[rows] for n, v in own.items() if n != "classes"}
    )
    return taken
