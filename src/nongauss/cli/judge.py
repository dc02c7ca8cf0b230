"""A fit that is judged on rows it has not seen, beside the usual models on the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone

from nongauss.auto.base import Auto
from nongauss.cli.choose import CLASSIFICATION, MODELS, REGRESSION
from nongauss.cli.declared import spelled, without_gap_values
from nongauss.cli.read import Declared, Table, prepare
from nongauss.cli.split import LAST, RANDOM, HeldOut, Split, split_rows, time_order
from nongauss.cli.target import in_unit
from nongauss.core.errors import InputError
from nongauss.estimator.base import NongaussEstimator
from nongauss.report.evidence import Dependence
from nongauss.report.judgement import (
    JudgedRows,
    Judgement,
    Unseen,
    judge,
    pooled,
    scored,
    told_of_limits,
    unsaid,
)
from nongauss.report.leak import exact_pairs, leaking_columns, nearly_all, told_of_pairs, too_good
from nongauss.report.metrics import format_figure
from nongauss.report.scoring import NumberScores, Scores, fit_timed, raise_if_stopped
from nongauss.report.verdict import Setting, Verdict, no_verdict, verdict
from nongauss.tables.column import ColumnKind, listed
from nongauss.tables.files import read_table
from nongauss.tables.frame import read_input
from nongauss.tables.kinds import decode_target
from nongauss.tables.target_kinds import NUMBERS

MOST_CELLS_FOR_FOLDS = {
    "tggm": 200_000,
    "harmonium": 200_000,
    "sparse_gp": 60_000,
    "rank_factor": 60_000,
    "auto": 500,
}
"""Rows times columns of a table that a model is fitted to several times over; more are judged by one part."""
_MOST_ROWS_AGAIN = 50_000
_LAST_SHARE = 0.2
_JUMP = 1e-9  # a law has mass where its distribution function rises by more at one value
A_FIFTH = HeldOut()


@dataclass(frozen=True)
class Outcome:
    """A fit and its judgement: `judged` has not seen the held-out rows, `final` is the one to keep.

    `metrics` are figures by model, `scores` the model's of the held-out rows, None where there are none, and
    `unseen` these rows, each part with the fit that has not seen it.
    """

    final: Any
    judged: Any
    n_rows: int
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    scores: Scores | None = None
    verdict: Verdict = field(default_factory=Verdict)
    notes: list[str] = field(default_factory=list)
    unseen: Sequence[Unseen] = ()

    @property
    def n_held_out(self) -> int:
        """Number of rows that the model was judged by."""
        return 0 if self.scores is None else len(self.scores.y)


def fit_and_judge(
    model: Any,
    table: Table,
    *,
    held_out: HeldOut = A_FIFTH,
    seed: int = 0,
    refit: bool = True,
    checkpoint: Path | None = None,
    step: Callable[[str], object] = unsaid,
) -> Outcome:
    """Fit on a part of the rows, judge on the rest beside the usual models, then refit on all rows.

    See `split_rows` for which rows these are; those of a test file are judged by a fit on all. Without
    `refit` the model that was judged is kept. `checkpoint` is the file from which an interrupted fit of the
    kept model goes on; the fit that is only judged has its own beside it. `step` is told what is being done.
    """
    kept, whole = with_checkpoint(model, checkpoint), part_of(model, table)
    if held_out.test is not None:
        return _judge_on_file(kept, whole, table, held_out, seed, step)
    several = refit and checkpoint is None and _is_quick(table)
    plan = split_rows(table, held_out, seed, several=several)
    if not plan.folds:
        step("fitting all rows")
        final = _fitted(kept, whole)
        why = f"{plan.text[:-1]}, so there are no scores on held-out rows."
        return Outcome(final, final, len(table.y), verdict=no_verdict(plan.text), notes=[why])
    beside = None if checkpoint is None else checkpoint.with_name(checkpoint.name + ".held-out")
    found = _judge_folds(with_checkpoint(model, beside) if refit else kept, whole, plan, seed, step)
    forward, warnings = _forward_in_time(model, whole, table, held_out, found, step)
    step("fitting all rows" if refit else "evaluating")
    final = found.model
    if refit:
        again = isinstance(final, Auto) and len(plan.folds) == 1
        final = _fitted_again(final, whole) if again else _fitted(kept, whole)
    n_fitted = len(table.y) if refit else len(plan.folds[0][0])
    notes = [_how_judged(plan, len(table.y), refit)]
    return outcome_of(found, final, table, n_fitted, notes, plan.dependence, forward, warnings)


def _judge_on_file(
    model: Any, whole: JudgedRows, table: Table, held_out: HeldOut, seed: int, step: Callable[[str], object]
) -> Outcome:
    """The outcome of a fit on all rows that the rows of a file judge."""
    assert held_out.test is not None
    frame = read_table(held_out.test)
    test, groups = rows_like(table, frame, held_out.declared, held_out.test.name)
    found = judge(model, whole, replace(test, X=read_once(model, test.X)), seed=seed, step=step)
    note = f"Scores are on the {len(test.y)} rows of {held_out.test.name}; none of them was used for fitting."
    found = replace(found, parts=[replace(part, source=held_out.test.name) for part in found.parts])
    return outcome_of(found, found.model, table, len(table.y), [note], Dependence(groups))


def rows_like(
    table: Table, frame: pd.DataFrame, declared: Declared, source: str
) -> tuple[JudgedRows, npt.NDArray[Any] | None]:
    """The labelled rows of another frame with the columns, kinds and target of a table; and their groups.

    Raises InputError where a column is not there.
    """
    lacking = [name for name in table.X.columns if name not in frame.columns]
    if lacking:
        raise InputError(f"{source} lacks {listed(lacking)}, which {table.source} has; add it.")
    understood = table.understood
    kind = None if understood.kind is ColumnKind.CONSTANT else understood.kind.value
    declared = replace(declared, kind=kind, levels=understood.levels, sides=table.sides)
    frame = spelled(without_gap_values(frame, declared.missing), table.spellings)
    if table.target in frame.columns:
        frame[table.target] = in_unit(frame[table.target], table.target, table.unit)
    held = prepare(
        frame,
        table.target,
        table.choice.model,
        table.choice.task,
        declared=declared,
        source=source,
        codes_as_labels=False,
    )
    there = ~decode_target(table.target, frame[table.target]).missing
    X = frame.loc[there, list(table.X.columns)].reset_index(drop=True)
    return JudgedRows(X, held.y, held.fit_params), held.groups


def _is_quick(table: Table) -> bool:
    """Is a fit so small that it is done for each part? By sizes alone: no figure depends on a clock."""
    classes = len(pd.unique(np.asarray(table.y))) if table.choice.task == CLASSIFICATION else 1
    n_fits = classes if table.choice.model == "sparse_gp" and classes > 2 else 1
    n_cells = len(table.y) * table.rows.shape[1] * n_fits
    return n_cells <= MOST_CELLS_FOR_FOLDS[table.choice.model]


def _judge_folds(
    model: Any, whole: JudgedRows, plan: Split, seed: int, step: Callable[[str], object]
) -> Judgement:
    """The judgement of all folds as one."""
    found, n = [], len(plan.folds)

    def told(number: int, text: str) -> object:
        """The step of one fold, with its number where there are several."""
        return step(f"part {number} of {n}: {text}" if n > 1 else text)

    for number, (train, test) in enumerate(plan.folds, start=1):
        of_fold = partial(told, number)
        fold = judge(model, whole.take(train), whole.take(test), seed=seed, step=of_fold)
        found.append(replace(fold, parts=[replace(part, numbers=test) for part in fold.parts]))
    return pooled(found) if len(found) > 1 else found[0]


def outcome_of(
    found: Judgement,
    final: Any,
    table: Table,
    n_fitted: int,
    notes: list[str],
    dependence: Dependence,
    forward: dict[str, dict[str, float]] | None = None,
    warnings: Sequence[str] = (),
) -> Outcome:
    """Figures and verdict of a judgement; `forward` are further figures, of other rows."""
    scale = scale_of(table)
    rivals = {name: in_units_of_table(rival, scale) for name, rival in found.rivals.items()}
    found = replace(found, scores=in_units_of_table(found.scores, scale), rivals=rivals)
    metrics = found.figures(table.levels) | (forward or {})
    leaks: list[str] = []
    if found.constant in found.rivals and too_good(found.scores, found.rivals[found.constant]):
        leaks = leaking_columns(found.model, table.X, table.y)
    numbers, pairs = table.choice.task == REGRESSION, list[str]()
    if numbers and found.constant in found.rivals and nearly_all(found.scores, found.rivals[found.constant]):
        pairs = told_of_pairs(exact_pairs(table.rows, table.y), table.target)
    kept = getattr(final, "kept_columns_", None)
    setting = Setting(
        target=table.target,
        constant=found.constant,
        n_fitted=n_fitted,
        n_columns=table.X.shape[1],
        n_kept=None if kept is None else len(kept),
        dependence=dependence,
        leaks=leaks,
        other_models=_others(table),
        lowest=scale * float(np.min(table.y)) if numbers else -np.inf,
        warnings=[*pairs, *warnings],
        kind=table.understood.kind.value,
        all_weighed=table.choice.model == "auto",
        group_hints=[role.name for role in table.before.roles if "group" in dict(role.warnings)],
    )
    said = verdict(found.scores, found.rivals, setting)
    notes = [*notes, *found.notes, *told_of_limits(found.scores)]
    return Outcome(final, found.model, n_fitted, metrics, found.scores, said, notes, found.parts)


def _others(table: Table) -> list[str]:
    """Names of the models that a person may try instead; none where all were weighed."""
    own, task = table.choice.model, table.choice.task
    return [] if own == "auto" else [name for name, tasks in MODELS.items() if name != own and task in tasks]


def in_units_of_table(found: Scores, scale: float) -> Scores:
    """Scores of y / scale as those of y: p(y) = p(y / scale) / scale; a probability stays as it is."""
    if not isinstance(found, NumberScores) or scale == 1.0:
        return found
    names = ("y", "mean", "lower", "upper", "nearest", "crps")
    lengths = {name: scale * getattr(found, name) for name in names if getattr(found, name) is not None}
    density = (found.mass <= _JUMP) & (True if found.exact is None else found.exact)
    return replace(found, log_score=found.log_score - math.log(scale) * density, **lengths)


def _forward_in_time(
    model: Any,
    whole: JudgedRows,
    table: Table,
    held_out: HeldOut,
    found: Judgement,
    step: Callable[[str], object],
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """Where a column of dates is in order: figures of the last fifth, predicted from the rows before."""
    name = time_order(table) if held_out.how == RANDOM and table.groups is None else None
    if name is None:
        return {}, []
    warning = (
        f"Rows are in the order of the dates in {name!r}, and rows held out at random have neighbours "
        "in time among the training rows (to evaluate forecasts, give --split last)"
    )
    if len(table.y) > _MOST_ROWS_AGAIN:
        return {}, [f"{warning}."]
    ((train, test),) = split_rows(table, HeldOut(LAST, _LAST_SHARE), 0).folds
    part = whole.take(train)
    step("fitting for evaluation on the last fifth")
    if isinstance(found.model, Auto):
        fitted, seconds = _fitted_again(found.model, part), None
    else:
        fitted, seconds = fit_timed(model, part.X, part.y, part.taken_by(model.fit))
    scale = scale_of(table)
    last, at_random = (
        in_units_of_table(scores, scale) for scores in (scored(fitted, whole.take(test)), found.scores)
    )
    figures = last.figures(seconds, table.levels)
    told = _told(figures, at_random.figures(levels=table.levels))
    said = f"{warning}. The last fifth, predicted from the rows before it, has {told}."
    return {f"{type(model).__name__}, last fifth": figures}, [said]


def _told(figures: dict[str, float], at_random: dict[str, float]) -> str:
    """The plainest figures beside those of rows held out at random."""
    words = {"rmse": "RMSE", "log_loss": "log loss", "coverage_90": "coverage of 90 % intervals"}
    shown = {name: (figures[name], at_random[name]) for name in words if name in figures}
    return " and ".join(
        f"{words[name]} {format_figure(name, here)} instead of {format_figure(name, there)}"
        for name, (here, there) in shown.items()
    )


def _how_judged(plan: Split, n: int, refit: bool) -> str:
    """A sentence on the rows that the figures are of."""
    kept = f"the saved model was then fitted to all {n} rows." if refit else "the saved model is that fit."
    if len(plan.folds) > 1:
        return (
            f"Scores on held-out rows are from {len(plan.folds)} fits, each evaluated on rows that it "
            f"had not seen, {plan.text} ({sum(len(test) for _, test in plan.folds)} in all); {kept}"
        )
    ((train, test),) = plan.folds
    split = f"a fit to {len(train)} rows, evaluated on the other {len(test)}, {plan.text}"
    return f"Scores on held-out rows are from {split}; {kept}"


def _fitted(model: Any, whole: JudgedRows) -> Any:
    """The model fitted to all rows."""
    final = model.fit(whole.X, whole.y, **whole.taken_by(model.fit))
    raise_if_stopped(final)
    return final


def _fitted_again(chosen: Auto, whole: JudgedRows) -> Any:
    """The models that evidence has chosen, fitted to these rows without a second search."""
    return chosen.refit(whole.X, whole.y, **whole.taken_by(chosen.fit))


def scale_of(table: Table) -> float:
    """By what the numbers of the table were divided to be the target that is fitted: 100 of percent."""
    is_number = table.choice.task == REGRESSION and table.kind in NUMBERS
    return table.understood.scale if is_number else 1.0


def part_of(model: Any, table: Table) -> JudgedRows:
    """All rows of a table as a model takes them."""
    return JudgedRows(rows_for(model, table), table.y, table.fit_params)


def read_once(model: Any, frame: pd.DataFrame) -> Any:
    """A frame as a model takes it: ours share what was decoded between a fit, its figures and its plots."""
    return read_input(frame) if isinstance(model, NongaussEstimator) else frame


def rows_for(model: Any, table: Table) -> Any:
    """All rows of a table, as `read_once`."""
    return table.rows if isinstance(model, NongaussEstimator) else table.X


def with_checkpoint(model: Any, checkpoint: Path | None) -> Any:
    """A clone that keeps its state in the file `checkpoint`."""
    copy = clone(model)
    if checkpoint is None:
        return copy
    if "checkpoint" not in copy.get_params(deep=False):
        raise InputError(f"{type(model).__name__} cannot resume from a file; leave out --checkpoint.")
    return copy.set_params(checkpoint=str(checkpoint))
