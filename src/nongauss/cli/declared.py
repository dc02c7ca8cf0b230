"""What a person declares of a table, and the columns beside the inputs that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.cli.censoring import censoring_as_fitted, read_censoring, said_of
from nongauss.cli.choose import closest
from nongauss.core.errors import InputError
from nongauss.tables.column import Column, label_of
from nongauss.tables.kinds import decode
from nongauss.tables.roles import with_gaps
from nongauss.tables.words import is_mark, one_case, plain_label


@dataclass(frozen=True)
class Declared:
    """What a person says of a table; it goes before what the table looks like.

    `kind`: of the target, a word of `ColumnKind`. `levels`: of a target of grades, from lowest to highest.
    `exposure`, `censored`, `group`: columns that are no inputs: the time or size that each count is of; which
    rows have a target that is only a bound ("COLUMN", or "COLUMN=VALUE" with the value that says so); rows
    that belong together and are held out together. `ignore`: columns to leave out; `use`: columns that are
    inputs whatever they look like. `missing`: cells that stand for a gap, "COLUMN=VALUE", or "VALUE" for all
    columns. `sides`: how labels of the column of `censored` were read of another table, see `Censoring`.
    `split`: "last", "test" or "folds" where which rows are held out is settled, "" where not.
    """

    kind: str | None = None
    levels: tuple[str, ...] = ()
    exposure: str | None = None
    censored: str | None = None
    group: str | None = None
    ignore: tuple[str, ...] = ()
    use: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    split: str = ""
    sides: Mapping[str, int] = field(default_factory=dict)


_MOST_SPELLINGS, _LOOK, _FEW = 50, 100, 0.2
NOTHING = Declared()


@dataclass(frozen=True)
class Beside:
    """Columns that are no inputs: `fit_params` (N,) that `fit` takes by name, `groups` (N,), and notes.

    `sides`: by label of the column that marks censored rows, what it says; see `Censoring`.
    """

    fit_params: dict[str, NDArray[Any]]
    groups: NDArray[Any] | None
    notes: tuple[str, ...] = ()
    sides: Mapping[str, int] = field(default_factory=dict)

    @property
    def arrays(self) -> tuple[dict[str, NDArray[Any]], NDArray[Any] | None]:
        """`fit_params` and `groups`."""
        return self.fit_params, self.groups


EMPTY = "(empty)"
"""The label of a cell with nothing in it where others hold a mark."""


def spellings_of(frame: pd.DataFrame, target: str) -> tuple[dict[str, dict[str, str]], list[str]]:
    """How words of the target are spelled and empty cells beside marks are called, by column; notes on it.

    Words for yes and no, of a sex and of known scales that differ by case alone are spelled as the most
    frequent of them. Where all cells of a column that hold anything hold the same mark ("x", "yes", "1"),
    answer ("Phone", which the name of the column ends with), or text in at most a fifth of the rows, the
    others say no, and are not missing; for these "" is spelled `EMPTY`.
    """
    found, notes = _words_of_target(frame[target])
    for name in frame.columns[frame.isna().any().to_numpy()]:
        mark = _only_mark(frame[name], is_target=str(name) == target)
        if mark:
            found[str(name)] = {**found.get(str(name), {}), "": EMPTY}
            said = f"holds {mark!r} or nothing: an empty cell is the label {EMPTY!r}"
            notes.append(f"Column {str(name)!r} {said}.")
    return found, notes


def _words_of_target(target: pd.Series) -> tuple[dict[str, dict[str, str]], list[str]]:
    """The spelling of the words of a target, by its name, and a note where there were several."""
    counts = target.value_counts() if _holds_texts(target) else pd.Series(dtype=np.int64)
    if not 0 < len(counts) <= _MOST_SPELLINGS:
        return {}, []
    of_word: dict[str, list[str]] = {}
    labels = sorted(map(str, counts.index), key=lambda label: (-counts[label], label))
    keys = one_case(labels)
    for label, word in keys.items():
        of_word.setdefault(word, []).append(label.strip())
    several = [list(dict.fromkeys(found)) for found in of_word.values()]
    alike = ", ".join("/".join(found) for found in several if len(found) > 1)
    by_case = all(len({label.casefold() for label in found}) == 1 for found in several)
    how = " in upper and lower case" * by_case
    notes = [f"Column {str(target.name)!r}: {alike} are treated as the same label{how}."]
    spelling = {plain_label(label): of_word[word][0] for label, word in keys.items()}
    return ({str(target.name): spelling} if spelling else {}), notes if alike else []


def _only_mark(column: pd.Series, is_target: bool) -> str:
    """The mark, answer that its name holds, or text of few rows that is all of a column; "" of others.

    Rows without a target that is such a text have none.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return ""
    there = column.dropna()
    if not len(there) or (there.iloc[:_LOOK] != there.iloc[0]).any() or there.nunique() > 1:
        return ""
    label = label_of(there.iloc[0])
    ticked = isinstance(there.iloc[0], str) and plain_label(label) in plain_label(str(column.name))
    is_note = isinstance(there.iloc[0], str) and 1 < len(there) <= _FEW * len(column) and not is_target
    return label if is_mark(label) or ticked or is_note else ""


def spelled(frame: pd.DataFrame, spellings: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """The table with the words of these columns spelled as they were in training."""
    out = frame.copy(deep=False)
    for name, known in spellings.items():
        if name not in frame.columns:
            continue
        if "" in known:
            there = frame[name].notna()
            cells = frame[name].astype(object)
            out[name] = cells.where(there, known[""]).map(label_of)
        elif _holds_texts(frame[name]):
            labels = {cell: known.get(plain_label(cell), cell) for cell in _texts_in(frame[name])}
            changed = {cell: label for cell, label in labels.items() if cell != label}
            if changed:
                out[name] = frame[name].replace(changed)
    return out


def _holds_texts(column: pd.Series) -> bool:
    """May the cells be texts, and are they of no category?"""
    return pd.api.types.is_string_dtype(column.dtype) and all(
        isinstance(cell, str) for cell in column.dropna().head(_LOOK)
    )


def _texts_in(column: pd.Series) -> list[str]:
    return [cell for cell in column.dropna().unique() if isinstance(cell, str)]


def without_gap_values(frame: pd.DataFrame, missing_cells: Sequence[str]) -> pd.DataFrame:
    """The table with the cells that were declared to stand for a gap as gaps."""
    missing: dict[str, list[str]] = {}
    for text in missing_cells:
        name, sign, value = text.rpartition("=")
        if sign and name not in frame.columns:
            raise InputError(f"--missing names the column {name!r};{closest(name, frame.columns)}")
        missing.setdefault(name if sign else "", []).append(value.strip())
    return with_gaps(frame, missing) if missing else frame


def told_gaps(frame: pd.DataFrame, missing_cells: Sequence[str]) -> list[str]:
    """A note on how many cells hold each value that was declared to stand for a missing cell."""
    there, out = int(frame.isna().to_numpy().sum()), []
    for text in missing_cells:
        n = int(without_gap_values(frame, [text]).isna().to_numpy().sum()) - there
        said = (
            f"{n:,} cell{'s' * (n != 1)} count{'s' * (n == 1)} as missing"
            if n
            else "no cell holds that value"
        )
        out.append(f"--missing {text}: {said}.")
    return out


def taken_out(
    frame: pd.DataFrame, declared: Declared, target: str, source: str
) -> tuple[pd.DataFrame, dict[str, pd.Series]]:
    """A table in two: the inputs, and the columns that are declared to be something else, by what they are.

    Raises InputError for names that are not there.
    """
    places = {"exposure": declared.exposure, "censored": declared.censored, "group": declared.group}
    named = {what: column_named(name, frame) for what, name in places.items() if name}
    for name in (*named.values(), *declared.ignore, *declared.use):
        if name == target:
            raise InputError(
                f"Column {name!r} is the target and cannot have a second role; name another column."
            )
        if name not in frame.columns:
            raise InputError(f"{source} has no column {name!r};{closest(name, frame.columns)}")
    inputs = frame.drop(columns=list({target, *named.values()}))
    return inputs, {what: frame[name] for what, name in named.items()}


def column_named(text: str, frame: pd.DataFrame) -> str:
    """The column that "COLUMN" or "COLUMN=VALUE" names."""
    return text if text in frame.columns else text.partition("=")[0]


def beside_of(
    columns: Mapping[str, pd.Series], keep: NDArray[np.bool_], declared: Declared, y: Any
) -> Beside:
    """What columns beside the inputs say of the rows `keep`, whose target is y. Raises InputError."""
    params: dict[str, NDArray[Any]] = {}
    notes: list[str] = []
    groups = None
    sides: Mapping[str, int] = {}
    read = {what: decode(str(cells.name), cells[keep]) for what, cells in columns.items()}
    if "exposure" in read:
        params["exposure"] = _exposure(read["exposure"])
    if "censored" in read:
        column = read["censored"]
        value = (declared.censored or "")[len(column.name) + 1 :]
        known = declared.sides
        limits = censoring_as_fitted(column, known) if known else read_censoring(column, value, y)
        params[limits.name] = limits.cells
        sides = limits.sides
        notes.append(said_of(limits, column.name, y))
    if "group" in read:
        column = read["group"].as_labels()
        groups = column.codes
        if column.missing.any():
            notes.append(f"Rows without {column.name!r} are treated as one group.")
    return Beside(params, groups, tuple(notes), sides)


def _exposure(column: Column) -> NDArray[np.float64]:
    """An exposure (N,), all above 0. Raises InputError naming the first that is not."""
    if column.values is None:
        raise InputError(f"The exposure {column.name!r} must be numbers; it holds text.")
    bad = ~(np.isfinite(column.values) & (column.values > 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"The exposure {column.name!r} must be above 0 in every row, but is {column.values[row]:g} in "
            f"row {row + 1} of those with a target; correct or drop such rows ({int(bad.sum())})."
        )
    return column.values
