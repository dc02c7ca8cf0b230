"""A table made ready for a model: its target taken out and read, what no model can use left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.cli.choose import ORDINAL, REGRESSION, Choice, choose, closest, parse_settings
from nongauss.core.errors import InputError
from nongauss.report.html import FrameInfo
from nongauss.tables.column import ColumnKind, TargetKind, label_of
from nongauss.tables.files import read_table
from nongauss.tables.frame import InputTable, read_input
from nongauss.tables.kinds import decode
from nongauss.tables.labels import LabelCoder
from nongauss.tables.roles import names_rows
from nongauss.tables.target_kinds import NUMBERS, column_kind, target_values, understand_target

_ID_REASON = "a different text in every row (an id)"
_MOST_LEVELS_SHOWN = 10


@dataclass(frozen=True)
class Declared:
    """What a person says of a table; it goes before what the table looks like.

    `kind`: of the target, a word of `ColumnKind`. `levels`: of a target of grades, from lowest to highest.
    `exposure`, `censored`, `group`: columns that are no inputs: the time or size that each count is of; which
    rows have a target that is only a bound ("COLUMN", or "COLUMN=VALUE" with the value that says so); rows
    that belong together and are held out together. `ignore`: columns to leave out; `use`: columns that are
    inputs whatever they look like. `missing`: cells that stand for a gap, "COLUMN=VALUE" each.
    """

    kind: str | None = None
    levels: tuple[str, ...] = ()
    exposure: str | None = None
    censored: str | None = None
    group: str | None = None
    ignore: tuple[str, ...] = ()
    use: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


NOTHING = Declared()


@dataclass(frozen=True)
class Table:
    """Rows ready to fit: inputs `X`, target `y` (N,), the choice of a model, and what was done to get there.

    `y` holds numbers for a regression, else labels (an ordered category keeps its type); `levels` are
    the labels from lowest to highest where the task is ordinal. `fit_params` are arrays (N,) that `fit` takes
    by name beside X and y, such as `exposure`. `groups` (N,) says which rows belong together, None without.
    """

    source: str
    target: str
    X: pd.DataFrame
    y: Any
    understood: TargetKind
    choice: Choice
    levels: npt.NDArray[Any] | None = None
    ignored: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    fit_params: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    groups: npt.NDArray[Any] | None = None

    @property
    def kind(self) -> ColumnKind:
        """The kind of the target."""
        return self.understood.kind

    @cached_property
    def rows(self) -> InputTable:
        """The inputs with each column decoded once, however many ask for it."""
        return read_input(self.X)

    def info(self, n_held_out: int = 0, notes: Sequence[str] = ()) -> FrameInfo:
        """The table as the report shows it."""
        kinds = [(str(name), _kind_word(self.X[name])) for name in self.X.columns]
        constant = ColumnKind.CONSTANT.value
        used = [pair for pair in kinds if pair[1] != constant]
        ignored = [(name, "the same value in every row") for name, kind in kinds if kind == constant]
        return FrameInfo(
            source=self.source,
            target=self.target,
            n_rows=len(self.y),
            n_held_out=n_held_out,
            target_kind=self.kind.value,
            used=used,
            ignored=[*self.ignored, *ignored],
            notes=[*self.notes, *notes],
        )


def load_table(
    path: str | Path,
    target: str,
    model: str = "auto",
    task: str = "auto",
    settings: Iterable[str] = (),
    declared: Declared = NOTHING,
) -> Table:
    """Read a table, take out its target, drop rows and columns that no model can use, choose the model.

    `model`, `task`, `settings` ("name=value") and what is `declared` go before what the target looks like.
    Raises InputError where the target is not there, has no values, or has no model.
    """
    return prepare(read_table(path), target, model, task, settings, declared, source=Path(path).name)


def prepare(
    frame: pd.DataFrame,
    target: str,
    model: str = "auto",
    task: str = "auto",
    settings: Iterable[str] = (),
    declared: Declared = NOTHING,
    *,
    source: str = "table",
) -> Table:
    """As `load_table`, for a frame in memory."""
    found = _understood(_target_column(frame, target, source), target, declared)
    _check_is_target(found, target, task)
    frame, column, notes = _with_target(frame, target, source)
    frame, beside = _taken_out(frame, declared, target, source)
    X = frame.drop(columns=[target]).reset_index(drop=True)
    values = target_values(column, found, target)
    choice = choose(values, found.kind, model, task, parse_settings(settings))
    y, levels, found = _for_task(column, found, choice.task, target)
    notes = [_on_target(found, target, choice, levels, (model, task)), *found.notes, *notes]
    ids = [name for name in X.columns if names_rows(X[name])]
    notes += [f"Column {str(name)!r} holds {_ID_REASON} and was ignored." for name in ids]
    X = X.drop(columns=ids)
    if X.shape[1] == 0:
        raise InputError(f"No column is left in {source} to predict {target!r} from; add inputs.")
    return Table(
        source=source,
        target=target,
        X=X,
        y=y,
        understood=found,
        choice=choice,
        levels=levels,
        ignored=[(str(name), _ID_REASON) for name in ids],
        notes=notes,
        fit_params={name: beside[name] for name in ("exposure",) if name in beside},
        groups=beside.get("group"),
    )


def _understood(column: pd.Series, target: str, declared: Declared) -> TargetKind:
    """What the target is, as it looks or as it was declared."""
    return understand_target(
        column,
        target,
        kind=declared.kind,
        levels=declared.levels,
        counted=declared.exposure is not None,
        censored=declared.censored is not None,
    )


def _check_is_target(found: TargetKind, target: str, task: str) -> None:
    """Raises InputError for a target that no model predicts, unless it was asked to be labels."""
    if task not in ("auto", REGRESSION) or found.kind not in (ColumnKind.TEXT, ColumnKind.DATE):
        return
    what = f"The target {target!r} cannot be predicted as it is. {found.reason}"
    if found.kind is ColumnKind.DATE:
        raise InputError(f"{what} Give the days since a start, or the length of time, as a number instead.")
    raise InputError(
        f"{what} Correct or empty the cells, choose another column, or give --kind label if it holds classes."
    )


def _for_task(
    column: pd.Series, found: TargetKind, task: str, target: str
) -> tuple[Any, npt.NDArray[Any] | None, TargetKind]:
    """The target as a task takes it, its levels in order where it is ordinal, and what it was taken for."""
    if task == REGRESSION:
        if found.kind in NUMBERS or found.kind is ColumnKind.CONSTANT:
            return target_values(column, found, target), None, found
        return _numbers(column, target, found.kind), None, found
    if task != ORDINAL:
        return target_values(column, replace(found, kind=ColumnKind.LABEL), target), None, found
    if found.kind is not ColumnKind.GRADE:
        found = understand_target(column, target, kind=ColumnKind.GRADE)
    y = target_values(column, found, target)
    coder = LabelCoder.fit(y, np.ones(len(y)), f"The target {target!r}", ordered=True)
    return y, coder.classes, found


def _taken_out(
    frame: pd.DataFrame, declared: Declared, target: str, source: str
) -> tuple[pd.DataFrame, dict[str, npt.NDArray[Any]]]:
    """The table without the columns that are declared to be no inputs, and these by what they are for."""
    places = {"exposure": declared.exposure, "censored": declared.censored, "group": declared.group}
    named = {what: (name or "").split("=")[0] for what, name in places.items() if name}
    for name in (*named.values(), *declared.ignore):
        if name == target:
            raise InputError(f"Column {name!r} is the target and cannot be something else too; name another.")
        if name not in frame.columns:
            raise InputError(f"{source} has no column {name!r};{closest(name, frame.columns)}")
    beside = {what: frame[name].to_numpy() for what, name in named.items()}
    return frame.drop(columns=list({*named.values(), *declared.ignore})), beside


def demo_table(settings: Iterable[str] = ()) -> Table:
    """The diabetes study that ships with scikit-learn, in its original units: 442 rows, 10 columns."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(as_frame=True, scaled=False)
    target = "disease progression"
    frame = bunch.data.assign(**{target: bunch.target})
    return prepare(frame, target, "tggm", REGRESSION, settings, source="diabetes data of scikit-learn")


def _with_target(frame: pd.DataFrame, target: str, source: str) -> tuple[pd.DataFrame, pd.Series, list[str]]:
    """The rows that have a target, their targets, and a note on those that have none."""
    column = frame[target]
    missing = pd.Series(decode(target, column).missing, index=column.index)
    if missing.all():
        raise InputError(f"The target {target!r} is missing in every row of {source}; choose another column.")
    if not missing.any():
        return frame, column, []
    note = f"{int(missing.sum())} of {len(column)} rows have no {target!r} and were dropped."
    return frame[~missing], column[~missing], [note]


def _target_column(frame: pd.DataFrame, target: str, source: str) -> pd.Series:
    if len(frame) == 0:
        raise InputError(f"{source} has no rows; give at least one.")
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(f"{source} has more than one column named {str(repeated[0])!r}; rename one.")
    if not target:
        raise InputError(f"Give --target, the column to predict; in {source}{closest('', frame.columns)}")
    if target not in frame.columns:
        raise InputError(f"{source} has no column {target!r};{closest(target, frame.columns)}")
    return frame[target]


def _on_target(
    found: TargetKind,
    target: str,
    choice: Choice,
    levels: npt.NDArray[Any] | None,
    asked: tuple[str, str],
) -> str:
    """The note on the target: what it was taken for and why, the model, and how to overrule both."""
    why = found.reason[:1].lower() + found.reason[1:].rstrip(".")
    return f"Target {target!r} was taken for {found.kind.value} ({why}); {_chosen(choice, levels, asked)}"


def _chosen(choice: Choice, levels: npt.NDArray[Any] | None, asked: tuple[str, str]) -> str:
    """The end of the note on the target: the model, and how to overrule what was not asked for."""
    what = f"the model is {choice.model!r} for {choice.task}{' classification' * (choice.task == ORDINAL)}"
    options = [
        f"--{name} NAME" for name, value in zip(("model", "task"), asked, strict=True) if value == "auto"
    ]
    if "likelihood" in choice.settings:
        what += f" with likelihood={choice.settings['likelihood']}"
        options.append("--set likelihood=NAME")
    if levels is not None:
        shown = " < ".join(label_of(level) for level in levels[:_MOST_LEVELS_SHOWN].tolist())
        what += f", levels {shown}" + (" < …" if len(levels) > _MOST_LEVELS_SHOWN else "")
    return f"{what}; give {' or '.join(options)} to overrule." if options else f"{what}, as asked."


def _numbers(column: pd.Series, target: str, kind: ColumnKind) -> npt.NDArray[np.float64]:
    """The numbers of a target that is none of numbers, as it was asked: 0 and 1, grades."""
    cells = decode(target, column).as_labels()
    try:
        values = [float({"True": "1", "False": "0"}.get(level, level)) for level in cells.levels]
    except ValueError:
        raise InputError(
            f"The target {target!r} was taken for {kind.value} and has values that are no numbers, "
            f"such as {cells.levels[-1]!r}; choose a numeric column, or give --task classification."
        ) from None
    assert cells.codes is not None
    return np.asarray(values)[cells.codes]


def _kind_word(column: pd.Series) -> str:
    """The kind of a column in a word; the name of its type where it has no kind (dates)."""
    try:
        return column_kind(column).value
    except InputError:
        return str(column.dtype)
