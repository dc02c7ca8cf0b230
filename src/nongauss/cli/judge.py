"""A fit that is judged on rows it has not seen: how rows are held out, fitted and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone

from nongauss.cli.choose import REGRESSION
from nongauss.cli.read import Table
from nongauss.core.errors import InputError
from nongauss.estimator.base import NongaussEstimator
from nongauss.report.metrics import fit_and_score, raise_if_stopped
from nongauss.tables.frame import read_input

_FEWEST_ROWS_TO_SPLIT = 10


@dataclass(frozen=True)
class Outcome:
    """A fit and its judgement: `judged` has not seen the held-out rows, `final` is the one to keep."""

    final: Any
    judged: Any
    n_rows: int
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    held_out: tuple[Any, Any] | None = None
    notes: list[str] = field(default_factory=list)


def fit_and_judge(
    model: Any,
    table: Table,
    *,
    test_size: float = 0.2,
    seed: int = 0,
    refit: bool = True,
    rivals: Mapping[str, Any] | None = None,
    checkpoint: Path | None = None,
) -> Outcome:
    """Fit on a random part of the rows, judge on the rest, then refit on all rows.

    Labels are held out in proportion, but never all rows of one. With fewer than 10 rows, or `test_size` 0,
    nothing is held out and there are no figures. `rivals` are fitted and judged on the same rows.
    `checkpoint` is the file from which an interrupted fit of the kept model goes on; the fit that is only
    judged has its own beside it. Raises InputError for a `test_size` outside [0, 1).
    """
    check_share(test_size)
    n = len(table.y)
    kept = with_checkpoint(model, checkpoint)
    train, test = _split(table, test_size, seed)
    if len(test) == 0:
        final = kept.fit(rows_for(model, table), table.y)
        raise_if_stopped(final)
        why = "No rows were held out" if test_size == 0 else f"{n} rows{_too_few(n)}"
        return Outcome(final, final, n, notes=[f"{why}, so there are no held-out figures."])
    own = [read_once(model, table.X.iloc[rows]) for rows in (train, test)]
    parts = own[0], table.y[train], own[1], table.y[test]
    beside = None if checkpoint is None else checkpoint.with_name(checkpoint.name + ".held-out")
    first = with_checkpoint(model, beside) if refit else kept
    judged, figures = fit_and_score(first, *parts, levels=table.levels)
    metrics = {type(model).__name__: figures}
    for name, rival in (rivals or {}).items():
        theirs = table.X.iloc[train], table.y[train], table.X.iloc[test], table.y[test]
        metrics[name] = fit_and_score(rival, *theirs, levels=table.levels)[1]
    final = kept.fit(rows_for(model, table), table.y) if refit else judged
    raise_if_stopped(final)
    note = f"Held-out figures are from a fit on {len(train)} rows, judged on the other {len(test)}; "
    note += f"the saved model was then fitted on all {n}." if refit else "the saved model is that fit."
    notes = [note]
    if rivals and table.choice.task == REGRESSION:
        names = ", ".join(rivals)
        notes.append(f"For {names}, the predicted spread is one width, taken from out-of-fold residuals.")
    n_fitted = n if refit else len(train)
    return Outcome(final, judged, n_fitted, metrics, held_out=(parts[2], parts[3]), notes=notes)


def read_once(model: Any, frame: pd.DataFrame) -> Any:
    """A frame as a model takes it: ours share what was decoded between a fit, its figures and its plots."""
    return read_input(frame) if isinstance(model, NongaussEstimator) else frame


def rows_for(model: Any, table: Table) -> Any:
    """All rows of a table, as `read_once`."""
    return table.rows if isinstance(model, NongaussEstimator) else table.X


def _too_few(n: int) -> str:
    """Why none of n rows could be held out."""
    if n < _FEWEST_ROWS_TO_SPLIT:
        return f" are too few to hold any out ({_FEWEST_ROWS_TO_SPLIT} are needed)"
    return " with no label twice leave none to hold out"


def _split(table: Table, test_size: float, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Sorted row numbers to fit on (at least 2, and one of each class) and to hold out (none of few rows)."""
    n = len(table.y)
    order = np.random.default_rng(seed).permutation(n)
    n_test = min(max(1, round(test_size * n)), n - 2) if test_size > 0 and n >= _FEWEST_ROWS_TO_SPLIT else 0
    if table.choice.task == REGRESSION:
        test = order[:n_test]
    else:
        # Equal steps through the rows in order of class, the first of each class left out.
        label = pd.factorize(np.asarray(table.y))[0][order]
        by_class = np.argsort(label, kind="stable")
        spare = order[by_class[1:][np.diff(label[by_class]) == 0]]
        n_test = min(n_test, len(spare))
        test = spare[((np.arange(n_test) + 0.5) * len(spare) / max(n_test, 1)).astype(np.intp)]
    return np.setdiff1d(np.arange(n), test), np.sort(test)


def check_share(test_size: float) -> None:
    """Raises InputError for a held-out share that is none."""
    if not 0 <= test_size < 1:
        raise InputError(f"The held-out share must be at least 0 and below 1, got {test_size}.")


def with_checkpoint(model: Any, checkpoint: Path | None) -> Any:
    """A clone that keeps its state in the file `checkpoint`."""
    copy = clone(model)
    if checkpoint is None:
        return copy
    if "checkpoint" not in copy.get_params(deep=False):
        raise InputError(f"{type(model).__name__} cannot go on from a file; leave out --checkpoint.")
    return copy.set_params(checkpoint=str(checkpoint))
