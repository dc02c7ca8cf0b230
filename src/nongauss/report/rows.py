"""Held-out rows that are worth a look: the largest misses, and those most unlike the rows fitted to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.report.judgement import Unseen
from nongauss.report.metrics import in_digits
from nongauss.report.scoring import LabelScores, NumberScores, Scores
from nongauss.tables.column import label_of
from nongauss.tables.frame import InputTable, take_rows

_MOST_SHOWN, _MOST_ADDED = 5, 4
_MOST_COMPARED = 2_000
_UNUSUAL = 0.9
_MOST_PREDICTIONS = 20_000
_BACKGROUND = 16  # rows that a model keeps to compare with
_ROUNDING = 1e-9  # share of the prediction below which a contribution is rounding
_FEW_COLUMNS = 4  # so few that all sets of them are asked for


@dataclass(frozen=True)
class RowShown:
    """A row as the report shows it.

    `row` is its number in the file, the first below the names being 1. `figure`: of a miss the chance of it,
    of an unusual row how unusual it is. `adds`: what columns with their cells add to the prediction, the
    largest first; `base`: what it is without them; none where that would take long.
    """

    row: int
    observed: str
    predicted: str
    figure: str
    adds: Sequence[tuple[str, str]] = ()
    base: str = ""


@dataclass(frozen=True)
class RowsShown:
    """The rows of the report: `misses`, and `unusual` ones; `of` says where their numbers count."""

    misses: Sequence[RowShown] = ()
    unusual: Sequence[RowShown] = ()
    of: str = ""


def rows_shown(
    scores: Scores | None,
    parts: Sequence[Unseen],
    *,
    numbers: npt.NDArray[np.intp] | None = None,
    scale: float = 1.0,
) -> RowsShown:
    """The held-out rows to look at, from the scores of all and the parts that these are of, in their order.

    `numbers` (N,): places in the file of the table's rows, 0 the first. `scale`: what a model's numbers are
    multiplied by to be those of the table.
    """
    if scores is None or not parts:
        return RowsShown()
    surprise = _surprise(scores)
    unusual = np.concatenate([_novelty(part) for part in parts])
    chosen = [_largest(surprise), [i for i in _largest(unusual) if unusual[i] >= _UNUSUAL]]
    wanted = list(dict.fromkeys([*chosen[0], *chosen[1]]))
    told = _explained(scores, parts, wanted, scale)
    misses = [_shown(scores, parts, i, told[i], _chance(scores, i), numbers) for i in chosen[0]]
    odd = [
        _shown(scores, parts, i, told[i], f"{math.floor(1000 * unusual[i]) / 10:g} %", numbers)
        for i in chosen[1]
    ]
    return RowsShown(misses, odd, parts[0].source)


def _largest(values: npt.NDArray[np.float64]) -> list[int]:
    """The numbers of the largest, finite ones, the largest first."""
    order = np.argsort(-np.where(np.isfinite(values), values, -np.inf), kind="stable")[:_MOST_SHOWN]
    return [int(i) for i in order if np.isfinite(values[i])]


def _surprise(scores: Scores) -> npt.NDArray[np.float64]:
    """How far out each row is: minus the log of the chance of it, of numbers of one at least so far out."""
    if isinstance(scores, LabelScores):  # a right label is no miss, however unsure it was
        return np.where(scores.predicted != scores.y, -scores.log_score, -np.inf)
    tail = scores.chance
    spread = np.maximum(scores.upper - scores.lower, 1e-300)
    far = np.abs(scores.y - scores.mean) / spread  # parts those whose chance is 0 to all digits
    out: npt.NDArray[np.float64] = -np.log(np.maximum(tail, 1e-16)) + 1e-6 * np.minimum(far, 1e3)
    out = np.where(tail < 1.0, out, -np.inf)  # what was most expected is no miss
    return out if scores.exact is None else np.where(scores.exact, out, -np.inf)


def _chance(scores: Scores, i: int) -> str:
    """The chance of a row in words."""
    if isinstance(scores, LabelScores):
        return _percent(math.exp(float(scores.log_score[i])))
    return _percent(float(scores.chance[i]))


def _percent(chance: float) -> str:
    """A probability to two digits."""
    return "< 0.01 %" if chance < 1e-4 else f"{100 * chance:.2g} %"


def _novelty(part: Unseen) -> npt.NDArray[np.float64]:
    """How unlike its training rows each row of a part is, NaN where that is not known or they are many."""
    out = np.full(len(part.numbers), np.nan)
    if hasattr(part.model, "novelty") and len(out) <= _MOST_COMPARED:
        try:
            out[:] = part.model.novelty(part.rows.X)
        except InputError:  # a model that keeps no rows to compare with
            return out
    return out


def _place(parts: Sequence[Unseen], i: int) -> tuple[Unseen, int]:
    """The part that row i is of, and its place there."""
    for part in parts:
        if i < len(part.numbers):
            return part, i
        i -= len(part.numbers)
    raise IndexError(i)


def _shown(
    scores: Scores,
    parts: Sequence[Unseen],
    i: int,
    told: tuple[list[tuple[str, str]], str],
    figure: str,
    numbers: npt.NDArray[np.intp] | None,
) -> RowShown:
    """The texts that the report shows for a row."""
    part, at = _place(parts, i)
    row = int(part.numbers[at])
    if numbers is not None and not part.source:
        row = int(numbers[row])
    if isinstance(scores, NumberScores):
        limit = "" if scores.exact is None or scores.exact[i] else " (a limit)"
        observed = f"{in_digits(scores.y[i])}{limit}"
        low, high = in_digits(scores.lower[i]), in_digits(scores.upper[i])
        predicted = f"{in_digits(scores.mean[i])} (90 %: {low} to {high})"
    else:
        top = float(scores.probabilities[i].max())
        observed, predicted = (
            str(label_of(scores.y[i])),
            f"{label_of(scores.predicted[i])} ({100 * top:.0f} %)",
        )
    return RowShown(row + 1, observed, predicted, figure, *told)


def _explained(
    scores: Scores, parts: Sequence[Unseen], wanted: Sequence[int], scale: float
) -> dict[int, tuple[list[tuple[str, str]], str]]:
    """What columns add to the predictions of these rows, and the base; empty where that would take long."""
    n_columns = int(parts[0].rows.X.shape[1])
    orders = None if n_columns <= _FEW_COLUMNS else 2
    each = _BACKGROUND * (2**n_columns if orders is None else 2 * n_columns)
    out: dict[int, tuple[list[tuple[str, str]], str]] = {i: ([], "") for i in wanted}
    before = 0
    for part in parts:
        own = [i for i in wanted[: _MOST_PREDICTIONS // each] if before <= i < before + len(part.numbers)]
        at = np.array(own, dtype=np.intp) - before
        before += len(part.numbers)
        if not own or not hasattr(part.model, "explain"):
            continue
        rows = take_rows(part.rows.X, at)
        try:
            found = part.model.explain(rows, n_permutations=orders)
        except InputError:  # a model that keeps no rows to compare with
            continue
        cells = rows.as_frame() if isinstance(rows, InputTable) else pd.DataFrame(rows)
        exposure = part.rows.beside.get("exposure", np.ones(len(part.numbers)))[at]
        for place, i in enumerate(own):
            added = _of_figure(found, scores, i).iloc[place].astype(float)
            out[i] = _in_words(added, cells.iloc[place], scores, scale * float(exposure[place]))
    return out


def _of_figure(found: pd.DataFrame, scores: Scores, i: int) -> pd.DataFrame:
    """The part of an explanation that is of the mean, or of the class that was predicted for row i."""
    figure = "mean" if isinstance(scores, NumberScores) else scores.predicted[i]
    tops = list(dict.fromkeys(found.columns.get_level_values(0)))
    chosen: pd.DataFrame = found[next((name for name in tops if str(name) == str(figure)), tops[0])]
    return chosen


def _in_words(
    added: pd.Series[float], cells: pd.Series[Any], scores: Scores, scale: float
) -> tuple[list[tuple[str, str]], str]:
    """What the columns of one row add, the largest first, and the base they are added to."""
    is_number = isinstance(scores, NumberScores)
    base, added = float(added.iloc[-1]), added.iloc[:-1]
    order = np.argsort(-np.abs(added.to_numpy()), kind="stable")[:_MOST_ADDED]
    out = []
    none = _ROUNDING * max(abs(base), float(np.abs(added.to_numpy()).max(initial=0.0)))
    for k in order:
        name, said = added.index[k], _signed(float(added.iloc[k]), is_number, scale)
        if abs(added.iloc[k]) > none and said not in ("+0 %", "-0 %"):
            out.append((f"{name} = {_cell(cells[name])}", said))
    return out, in_digits(scale * base, 3) if is_number else f"{100 * base:.0f} %"


def _signed(value: float, is_number: bool, scale: float) -> str:
    """What a column adds, in units of the target or in points of per cent."""
    return in_digits(scale * value, 3, "+") if is_number else f"{100 * value:+.0f} %"


def _cell(value: Any) -> str:
    """A cell as a person reads it."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or value is pd.NaT:
        return "missing"
    return in_digits(float(value), 6) if isinstance(value, (float, np.floating)) else str(value)
