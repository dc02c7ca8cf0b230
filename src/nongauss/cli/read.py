"""A table made ready for a model: its target taken out and read, what no model can use left out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.cli.before import Before, grouped_notes, left_out_notes
from nongauss.cli.censoring import hints_of_limits
from nongauss.cli.choose import (
    REGRESSION,
    Choice,
    by_evidence,
    candidates,
    choose,
    closest,
    parse_settings,
)
from nongauss.cli.declared import (
    NOTHING,
    Declared,
    beside_of,
    spelled,
    spellings_of,
    taken_out,
    told_gaps,
    without_gap_values,
)
from nongauss.cli.target import check_likelihood, for_task, understood
from nongauss.core.errors import InputError
from nongauss.report.columns import fingerprint, gaps_of, typical_of
from nongauss.report.html import FrameInfo
from nongauss.report.leak import told_of_dates
from nongauss.tables.column import ColumnKind, TargetKind
from nongauss.tables.files import read_table
from nongauss.tables.frame import InputTable, read_input
from nongauss.tables.gap_values import gap_warnings
from nongauss.tables.hints import with_hints
from nongauss.tables.kinds import decode_target
from nongauss.tables.learn import told_once
from nongauss.tables.roles import ColumnRole, understand_columns
from nongauss.tables.target_kinds import NUMBERS, target_values

__all__ = ["NOTHING", "Declared", "Table", "load_table", "prepare"]

_MOST_SHOWN = 500  # columns of which a report says what they hold


@dataclass(frozen=True)
class Table:
    """Rows ready to fit: inputs, target `y` (N,), the choice of a model, and what was done to get there.

    The inputs are `rows`, each column of which is decoded once however many ask for it, and `X`, a frame.

    `y` holds numbers for a regression, else labels (grades of text are an ordered category); `levels` are the
    labels from lowest to highest where the task is ordinal. `before` is what is said before a fit: what each
    column and the target were taken for. `fit_params` are arrays (N,) that `fit` takes by name beside X and
    y, such as `exposure`. `groups` (N,) says which rows belong together, None without.
    `spellings`: see `About`. `row_numbers` (N,): places of the rows in the file, 0 the first below the names.
    `sides`: by label of the column that marks censored rows, what it says; see `Censoring`. `unit`: the form
    of the target's numbers, such as ".# ms", "" of those without.
    """

    rows: InputTable
    y: Any
    before: Before
    levels: npt.NDArray[Any] | None = None
    notes: Sequence[str] = ()
    fit_params: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    groups: npt.NDArray[Any] | None = None
    spellings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    row_numbers: npt.NDArray[np.intp] | None = None
    sides: Mapping[str, int] = field(default_factory=dict)
    unit: str = ""

    @property
    def source(self) -> str:
        """Where the rows came from."""
        return self.before.source

    @property
    def target(self) -> str:
        """The name of the target."""
        return self.before.target

    @property
    def understood(self) -> TargetKind:
        """What the target was taken for."""
        return self.before.understood

    @property
    def choice(self) -> Choice:
        """The model and its task."""
        return self.before.choice

    @property
    def kind(self) -> ColumnKind:
        """The kind of the target."""
        return self.understood.kind

    @property
    def ignored(self) -> list[tuple[str, str]]:
        """The columns that were left out, each with the reason."""
        return [(role.name, role.reason) for role in self.before.roles if not role.used]

    @cached_property
    def X(self) -> pd.DataFrame:
        """The inputs as a frame."""
        return self.rows.as_frame()

    def info(self, n_held_out: int = 0, notes: Sequence[str] = ()) -> FrameInfo:
        """The table as the report shows it."""
        used = [(role.name, _use_of(role)) for role in self.before.roles if role.used]
        used += [(name, what) for what, name in self.before.beside.items()]
        shown = [(place, str(name)) for place, name in enumerate(self.rows.labels[:_MOST_SHOWN])]
        return FrameInfo(
            source=self.source,
            target=self.target,
            n_rows=len(self.y),
            n_held_out=n_held_out,
            target_kind=f"{self.kind.value}. {self.understood.reason}",
            used=used,
            ignored=self.ignored,
            notes=[*self.notes[1:], *notes],  # the first is on the target's kind
            gaps={name: gaps_of(self.rows, place) for place, name in shown},
            typical={name: typical_of(self.rows, place) for place, name in shown} | self._typical_target(),
            fingerprint=fingerprint(self.X, self.y),
        )

    def _typical_target(self) -> dict[str, str]:
        """What the target holds, in the units of the table."""
        values = np.asarray(self.y)
        if self.choice.task == REGRESSION and self.kind in NUMBERS:
            values = values * self.understood.scale
        return {self.target: typical_of(read_input(pd.DataFrame({self.target: values})), 0)}


def _use_of(role: ColumnRole) -> str:
    """What a column is used as; the reason where it says more than what the column holds."""
    plain = role.role in ("number", "label") or not role.reason
    return role.role if plain else f"{role.role}: {role.reason}"


def load_table(
    path: str | Path,
    target: str,
    model: str = "auto",
    task: str = "auto",
    settings: Iterable[str] = (),
    declared: Declared = NOTHING,
    why_single: str = "",
) -> Table:
    """Read a table, take out its target, drop rows and columns that no model can use, choose the model.

    `model`, `task`, `settings` ("name=value") and what is `declared` go before what the target looks like.
    `why_single`: why one model is to be fitted where all could be weighed.
    Raises InputError where the target is not there, has no values, or has no model.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = read_table(path)
    read_so, source = [" ".join(str(item.message).split()) for item in caught], Path(path).name
    try:
        table = prepare(frame, target, model, task, settings, declared, source=source, why_single=why_single)
    except InputError as error:  # a name that is not there may have been decoded wrongly
        coded = [note for note in read_so if "is not UTF-8" in note and target not in frame.columns]
        raise InputError(" ".join((str(error), *coded))) from error
    before = replace(table.before, notes=[*read_so, *table.before.notes])
    return replace(table, before=before, notes=_said(before))


def prepare(
    frame: pd.DataFrame,
    target: str,
    model: str = "auto",
    task: str = "auto",
    settings: Iterable[str] = (),
    declared: Declared = NOTHING,
    *,
    source: str = "table",
    codes_as_labels: bool = True,
    why_single: str = "",
) -> Table:
    """As `load_table`, for a frame in memory.

    `codes_as_labels`: numbers that are codes become labels in `X`, words in several cases one label; not
    where other rows stay as they are.
    """
    _check_target(frame, target, source)
    frame, words, alike = _cells(frame, declared, target, codes_as_labels)
    column, (inputs, apart) = frame[target], taken_out(frame, declared, target, source)
    keep, unit = _rows_with_target(column, target, source)
    found = understood(column, target, declared, inputs, task)
    column, inputs, numbers = column[keep], inputs[keep], np.flatnonzero(keep)
    values, given = target_values(column, found, target), parse_settings(settings)
    beside = beside_of(apart, keep, declared, values)
    choice = _chosen(values, found, given, beside.fit_params, (model, task), why_single)
    y, levels, found = for_task(column, found, choice.task, target, tuple(declared.levels))
    check_likelihood(given.get("likelihood"), y, numbers, target)
    rows, roles, read_so = _inputs(inputs, y, (target, source), found, declared, codes_as_labels)
    said = [*_on_rows(rows, len(keep) - len(y), y, target, declared), *beside.notes]
    asked = {name for name, value in (("model", model), ("task", task)) if value != "auto"}
    before = Before(
        source=source,
        n_rows=len(y),
        n_dropped=len(keep) - len(y),
        target=target,
        understood=found,
        roles=roles,
        choice=choice,
        candidates=candidates(choice, found, values, beside.fit_params),
        beside={what: str(cells.name) for what, cells in apart.items()},
        asked=frozenset(asked | given.keys()),
        notes=[*alike, *found.notes, *said, *read_so, *grouped_notes(roles)],
    )
    return Table(rows, y, before, levels, _said(before), *beside.arrays, words, numbers, beside.sides, unit)


def _said(before: Before) -> tuple[str, ...]:
    """The sentences of a report on how the table was read."""
    return (*before.summary(), *left_out_notes(before.roles), *before.notes)


def _chosen(
    values: pd.Series[Any],
    found: TargetKind,
    given: Mapping[str, Any],
    fit_params: Mapping[str, Any],
    asked: tuple[str, str],
    why_single: str,
) -> Choice:
    """The model for these targets, by evidence where no model is asked for. `asked`: model and task."""
    choice = choose(values, found.kind, *asked, given, needs=fit_params)
    return choice if asked[0] != "auto" else by_evidence(choice, found, given, fit_params, why_single)


def _cells(
    frame: pd.DataFrame, declared: Declared, target: str, one_spelling: bool
) -> tuple[pd.DataFrame, dict[str, dict[str, str]], list[str]]:
    """The table with declared gaps and, for `one_spelling`, its target so; the spellings; notes."""
    said = told_gaps(frame, declared.missing)
    frame = without_gap_values(frame, declared.missing).reset_index(drop=True)
    spellings, notes = spellings_of(frame, target) if one_spelling else ({}, [])
    return spelled(frame, spellings), spellings, [*said, *notes]


def _check_target(frame: pd.DataFrame, target: str, source: str) -> None:
    """Raises InputError for a table without rows, with a name twice, or without the target."""
    if len(frame) == 0:
        raise InputError(f"{source} has no rows; give at least one.")
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(f"{source} has more than one column named {str(repeated[0])!r}; rename one.")
    if not target:
        raise InputError(f"Give --target, the column to predict; in {source}{closest('', frame.columns)}")
    if target not in frame.columns:
        raise InputError(f"{source} has no column {target!r};{closest(target, frame.columns)}")


def _rows_with_target(column: pd.Series, target: str, source: str) -> tuple[npt.NDArray[np.bool_], str]:
    """Which rows (N,) have a target, one at least; the form of its numbers, see `Table.unit`."""
    cells = decode_target(target, column)
    there = ~cells.missing
    if not there.any():
        raise InputError(f"The target {target!r} is missing in every row of {source}; choose another column.")
    if cells.values is not None and np.isinf(cells.values).any():
        row = int(np.argmax(np.isinf(cells.values)))
        raise InputError(
            f"The target {target!r} holds {cells.values[row]:g} in row {row + 1} below the names; correct "
            "the cell, or empty it."
        )
    return there, cells.unit if cells.kind == "quantity" else ""


def _inputs(
    frame: pd.DataFrame,
    y: Any,
    names: tuple[str, str],
    found: TargetKind,
    declared: Declared,
    codes_as_labels: bool,
) -> tuple[InputTable, tuple[ColumnRole, ...], list[str]]:
    """The columns that a model gets, what each column is for, those to be ignored at the end, and notes.

    `names`: of the target and of the table. Raises InputError where no column is left.
    """
    target, source = names
    asked = [name for name in declared.ignore if name in frame.columns]
    X = frame.drop(columns=asked).reset_index(drop=True)
    _check_some_left(X.shape[1] > 0, (), target, source)
    table = read_input(X)
    roles = understand_columns(table, target=y, target_name=target, use=declared.use)
    told = [what for what in ("group", "exposure", "split") if getattr(declared, what)]
    roles = with_hints(table, roles, found, told)
    used = [place for place, role in enumerate(roles) if role.used]
    _check_some_left(bool(used), roles, target, source)
    rows = table.select(used)
    for place, role in enumerate(role for role in roles if role.used):
        if role.role == "number" and rows.column(place).kind == "code":
            rows = rows.as_numbers(place)
        if role.as_label and codes_as_labels:
            column = rows.column(rows.labels.index(role.name)).as_labels()
            rows = rows.with_column(role.name, np.array([*column.levels, None], dtype=object)[column.codes])
    rows, read_so = told_once(rows)
    return rows, (*roles, *(ColumnRole(str(name), "ignored", False) for name in asked)), read_so


def _on_rows(rows: InputTable, n_dropped: int, y: Any, target: str, declared: Declared) -> list[str]:
    """What to say of the rows: dates that give the target away, those without one, values of it that seem to
    stand for a gap, limits."""
    out = told_of_dates(rows, y, target)
    if n_dropped:
        out.append(f"{n_dropped:,} of {len(y) + n_dropped:,} rows have no {target!r} and were dropped.")
    values = np.asarray(y)
    if values.dtype.kind in "iuf" and len(np.unique(values)) > 2:
        out += [sentence for _, sentence in gap_warnings(values.astype(np.float64), target)]
    return out if declared.censored else [*out, *hints_of_limits(rows, y, target)]


def _check_some_left(is_any: bool, roles: Sequence[ColumnRole], target: str, source: str) -> None:
    """Raises InputError where no column is left, with what was left out and why."""
    if is_any:
        return
    why = " ".join(left_out_notes(roles))
    remedy = "add inputs, or give --use NAME for one of them" if roles else "add inputs"
    raise InputError(f"No column is left in {source} to predict {target!r} from; {remedy}. {why}".strip())
