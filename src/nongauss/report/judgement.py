"""A model beside the usual ones: all fitted to the same rows, all scored on the same others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier

from nongauss.report.baselines import LOG_LINEAR, LOGISTIC, MEAN, RIDGE, SHARES, TREES, baselines
from nongauss.report.censored import CensoredRegressor
from nongauss.report.scoring import MOST_CRPS, NumberScores, Scores, fit_timed, joined, score
from nongauss.tables.frame import n_rows_of, take_rows

_FEWEST_ROWS_FOR_TREES = 400
_MOST_CELLS = 20_000_000
"""Rows times columns (times classes) that a usual model is fitted to; of more, a sample of the rows."""
_FEWEST_SAMPLED = 1_000
_MOST_ATOMS = 10
_JUMP = 1e-6


@dataclass(frozen=True)
class JudgedRows:
    """Some rows of a table: inputs X, target y (N,), and arrays (N,) that `fit` takes by name (exposure)."""

    X: Any
    y: Any
    beside: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def take(self, rows: npt.NDArray[np.intp]) -> JudgedRows:
        """Some of these rows, by their numbers."""
        y = self.y.iloc[rows] if hasattr(self.y, "iloc") else np.asarray(self.y)[rows]
        return JudgedRows(
            take_rows(self.X, rows), y, {name: cells[rows] for name, cells in self.beside.items()}
        )

    def taken_by(self, method: Any) -> dict[str, Any]:
        """Those of the arrays beside that a method takes."""
        known = inspect.signature(method).parameters
        return {name: cells for name, cells in self.beside.items() if name in known}


@dataclass(frozen=True)
class Unseen:
    """Held-out rows and the fitted model that has not seen them.

    `numbers` (N,): their places among the rows of the table.
    `source`: the file that the rows are of, "" where they are of the table that was fitted.
    """

    model: Any
    rows: JudgedRows
    numbers: npt.NDArray[np.intp]
    source: str = ""


@dataclass(frozen=True)
class Judgement:
    """A fitted model, what it says of held-out rows, what the usual models say of them, and notes on these.

    `seconds` of the fits by name; "" is the model's own. `constant`: the usual model that looks at no column.
    `parts`: the held-out rows in the order of the scores, each part with the fit that judges it.
    """

    model: Any
    scores: Scores
    rivals: Mapping[str, Scores]
    constant: str
    seconds: Mapping[str, float]
    notes: Sequence[str] = ()
    parts: Sequence[Unseen] = ()

    def figures(self, levels: Any = None) -> dict[str, dict[str, float]]:
        """The figures by model, the model first under the name of its class."""
        table = {type(self.model).__name__: self.scores.figures(self.seconds.get(""), levels)}
        for name, scores in self.rivals.items():
            table[name] = scores.figures(self.seconds.get(name), levels)
        return table


def unsaid(step: str) -> None:
    """A progress callback that shows nothing."""


def judge(
    model: Any, train: JudgedRows, test: JudgedRows, *, seed: int = 0, step: Callable[[str], object] = unsaid
) -> Judgement:
    """Fit a clone of the model to `train`, and judge it on `test` beside the usual models.

    `step` is told what is being done.
    """
    step("fitting for evaluation")
    fitted, seconds = fit_timed(model, train.X, train.y, train.taken_by(model.fit))
    return beside_usual(fitted, train, test, seconds=seconds, seed=seed, step=step)


def beside_usual(
    fitted: Any,
    train: JudgedRows,
    test: JudgedRows,
    *,
    seconds: float | None = None,
    seed: int = 0,
    step: Callable[[str], object] = unsaid,
) -> Judgement:
    """Judge a fitted model on `test` beside usual models that are fitted to `train`."""
    scores = scored(fitted, test)
    estimators, constant = usual_models(fitted, scores, train, seed)
    rivals: dict[str, Scores] = {}
    taken: dict[str, float] = {} if seconds is None else {"": seconds}
    notes = []
    for name, estimator in estimators.items():
        step(f"for comparison: {name}")
        rows = _affordable(train, fitted)
        if len(rows) < min(len(train.y), _FEWEST_SAMPLED) and name != constant:
            notes.append(f"The table is too wide for {name}, which was left out.")
            continue
        own = train if len(rows) == len(train.y) or name == constant else train.take(rows)
        if own is not train:
            notes.append(f"{name.capitalize()} was fitted to {len(rows)} of the {len(train.y)} rows.")
        try:
            rival, taken[name] = fit_timed(estimator, own.X, own.y, own.taken_by(estimator.fit))
            rivals[name] = scored(rival, test)
        except Exception as error:  # noqa: BLE001 (a baseline that fails must not end the fit that it is for)
            cause = " ".join(str(error).split())
            notes.append(f"{name.capitalize()} could not be fitted: {type(error).__name__}: {cause}")
    if isinstance(scores, NumberScores) and scores.crps is not None and len(scores.y) > MOST_CRPS:
        notes.append(f"The CRPS is for {MOST_CRPS} of the {len(scores.y)} rows.")
    parts = [Unseen(fitted, test, np.arange(len(test.y)))]
    return Judgement(fitted, scores, rivals, constant, taken, notes, parts)


def told_of_limits(scores: Scores) -> list[str]:
    """A note on how censored rows count in each score; nothing where there are none."""
    if not isinstance(scores, NumberScores) or scores.exact is None:
        return []
    n, n_limits = len(scores.exact), int((~scores.exact).sum())
    return [
        f"Of the {n} held-out rows, {n_limits} have only a limit for a target. Log density and coverage are "
        "of all rows, where such a row counts by its probability beyond the limit; RMSE, MAE, R², CRPS and "
        f"interval scores are of the {n - n_limits} known targets. In the paired squared errors a prediction "
        "beyond the limit has no error, another the distance from the limit."
    ]


def scored(model: Any, test: JudgedRows) -> Scores:
    """The scores of a fitted model on these rows."""
    return score(model, test.X, test.y, test.beside)


def usual_models(fitted: Any, scores: Scores, train: JudgedRows, seed: int) -> tuple[dict[str, Any], str]:
    """The constant model, the linear one, from 400 rows on boosted trees; and the name of the constant one.

    Their laws have mass where that of the fitted model has some: on all whole numbers or at a few values.
    Where some targets are only limits there are the first two.
    """
    if isinstance(scores, NumberScores) and scores.exact is not None:
        return {MEAN: CensoredRegressor(view="none"), RIDGE: CensoredRegressor()}, MEAN
    if isinstance(scores, NumberScores):
        counts, atoms = masses(scores, np.asarray(train.y, dtype=np.float64))
        every = baselines(counts=counts, atoms=atoms, reach=scores.reach, random_state=seed)
        constant, linear = MEAN, LOG_LINEAR if counts else RIDGE
    else:
        every, constant, linear = baselines(classify=True, random_state=seed), SHARES, LOGISTIC
    names = [constant, linear, *([TREES] if len(train.y) >= _FEWEST_ROWS_FOR_TREES else [])]
    return {name: every[name] for name in names}, constant


def masses(scores: NumberScores, y: npt.NDArray[np.float64]) -> tuple[bool, tuple[float, ...]]:
    """Where predictive laws have mass, seen at held-out values: on counts, or at a few values (at most 10).

    `y` are the values that were fitted to.
    """
    heavy = scores.mass > _JUMP
    if heavy.all() and (y >= 0).all() and (y == np.round(y)).all() and len(np.unique(y)) > 1:
        return True, ()
    values = np.unique(scores.y[heavy])
    return False, tuple(values.tolist()) if len(values) <= _MOST_ATOMS else ()


def _affordable(train: JudgedRows, fitted: Any) -> npt.NDArray[np.intp]:
    """Numbers of the rows to which a usual model is fitted: all, or so many that it is done soon."""
    n, width = n_rows_of(train.X), max(1, int(train.X.shape[1]))
    times = len(fitted.classes_) if is_classifier(fitted) else 1
    most = _MOST_CELLS // (width * times)
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def pooled(folds: Sequence[Judgement]) -> Judgement:
    """The judgements of the folds of a cross-validation as one; models that failed in a fold are left out."""
    first = folds[0]
    names = [name for name in first.rivals if all(name in fold.rivals for fold in folds)]
    rivals = {name: joined([fold.rivals[name] for fold in folds]) for name in names}
    seconds = {
        name: float(np.mean([f.seconds[name] for f in folds if name in f.seconds])) for name in first.seconds
    }
    notes = list(dict.fromkeys(note for fold in folds for note in fold.notes))
    scores = joined([fold.scores for fold in folds])
    parts = [part for fold in folds for part in fold.parts]
    return Judgement(first.model, scores, rivals, first.constant, seconds, notes, parts)
