"""From a user's table to a standardised matrix, and the record that repeats it for new rows.

Numeric columns are standardised by weighted mean and standard deviation, label columns become one 0/1 column
for each level (one column for two levels), missing numbers are imputed by the mean and flagged by an
indicator column.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.records import persistable
from nongauss.tables.frame import Column, read_input
from nongauss.tables.matching import listed, match_columns
from nongauss.tables.rows import Counted
from nongauss.tables.scaling import Scale, fit_scale

Role = Literal["numeric", "labels", "constant", "empty", "identifier"]
MOST_LEVELS = 255  # a label column with more levels is ignored
FEW_ROWS = 20  # up to so many rows, labels that all differ may still be levels


@persistable("tables.ColumnCode", "nongauss.data.encoder:ColumnCode")
@dataclass(frozen=True)
class ColumnCode:
    """How one input column is encoded.

    `role`: "numeric", "labels", or why it is ignored ("constant", "empty", "identifier").
    `gaps`: it had missing cells when fitted. `unit`, `mean`, `sd`: see `Scale`; sd is 0 where only the gaps
    say anything. `levels`: the labels. `share`: the weighted share of the second of two levels. `ranks`: the
    place of each level, of an ordered category.
    """

    name: str
    role: Role
    gaps: bool = False
    unit: float = 1.0
    mean: float = 0.0
    sd: float = 0.0
    levels: tuple[str, ...] = ()
    share: float = 0.0
    ranks: tuple[int, ...] = ()

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of the columns that this one becomes."""
        if self.role == "numeric":
            return (self.name,) * (self.sd != 0) + (f"{self.name}=missing",) * self.gaps
        if self.role == "labels":
            shown = self.levels[1:] if self.is_pair else self.levels
            return tuple(f"{self.name}={level}" for level in shown)
        return ()

    @property
    def is_pair(self) -> bool:
        """Two levels and no gaps: one 0/1 column says it all."""
        return len(self.levels) == 2 and not self.gaps


@persistable("tables.TableEncoder", "nongauss.data.encoder:TableEncoder")
@dataclass(frozen=True)
class TableEncoder:
    """The encoding of a table, learned by `fit` and repeated by `transform`.

    `feature_names`: the column names, or None if there were none. `columns`: one record an input column.
    """

    feature_names: tuple[str, ...] | None
    columns: tuple[ColumnCode, ...]

    @property
    def n_features(self) -> int:
        """Number of input columns."""
        return len(self.columns)

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of the D encoded columns, such as "age", "age=missing", "colour=red"."""
        return tuple(name for code in self.columns for name in code.encoded_names)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Names of the input columns that say nothing: constant, empty, or a different text in each row."""
        return tuple(code.name for code in self.columns if not code.encoded_names)

    @classmethod
    def fit(
        cls, X: Any, weight: NDArray[np.float64] | None = None, estimator_name: str = "this estimator"
    ) -> TableEncoder:
        """Learn the encoding of `X` (N rows), where `weight` (N,) counts rows as if they were repeated.

        Rows of weight 0 leave no trace. Warns about ignored columns (constant ones only if X is a frame).
        Raises: InputError for infinite or unusable cells, naming the column and the first bad row.
        """
        table = read_input(X, estimator_name)
        w = np.ones(table.n_rows) if weight is None else np.asarray(weight, dtype=np.float64)
        if w.shape != (table.n_rows,):
            raise InputError(
                f"weight has shape {w.shape}, but X has {table.n_rows} rows; give one weight a row."
            )
        codes = tuple(_fit_column(table.column(j), w) for j in range(len(table.labels)))
        warn_ignored(codes, table.is_frame)
        return cls(table.names, codes)

    def transform(
        self, X: Any, estimator_name: str = "this estimator", warn: bool = True
    ) -> NDArray[np.float64]:
        """The encoded matrix (N, D) float64 of `X`; frames are matched by column name, arrays by position.

        Warns (unless `warn` is False) about labels not seen in `fit`, about missing cells in a column that
        had none in `fit`, and about extra columns. Raises: InputError for a missing column or unusable cells.
        """
        table = read_input(X, estimator_name)
        notes: list[str] = []
        places = match_columns(table, self.feature_names, self.n_features, estimator_name, notes)
        out = np.zeros((table.n_rows, len(self.encoded_names)))
        at = 0
        unseen: list[str] = []
        imputed: list[str] = []
        for code, place in zip(self.columns, places, strict=True):
            width = len(code.encoded_names)
            if width:
                column = table.column(place)
                block = out[:, at : at + width]
                if code.role == "numeric":
                    _encode_numbers(code, column.as_numbers(), block, imputed)
                else:
                    _encode_labels(code, column.as_labels(), block, unseen)
                at += width
        notes += _note_unseen(unseen)
        if imputed:
            notes.append(
                f"Missing cells are replaced by the mean in {listed(imputed)}, where none was when fitting."
            )
        if notes and warn:
            warnings.warn(" ".join(notes), NongaussWarning, stacklevel=2)
        return out

    def read(self, X: Any, estimator_name: str = "this estimator", warn: bool = True) -> list[Column]:
        """The columns of `fit`, in its order, as they are: numbers with NaN, or codes of the levels of `fit`.

        A label that was not seen in `fit` is a missing cell. Warns and raises as `transform` does.
        """
        table = read_input(X, estimator_name)
        notes: list[str] = []
        unseen: list[str] = []
        out = []
        places = match_columns(table, self.feature_names, self.n_features, estimator_name, notes)
        for code, place in zip(self.columns, places, strict=True):
            column = table.column(place)
            if code.role == "labels":
                column = Column(code.name, None, _known_codes(code, column.as_labels(), unseen), code.levels)
            out.append(column.as_numbers() if code.role == "numeric" else column)
        notes += _note_unseen(unseen)
        if notes and warn:
            warnings.warn(" ".join(notes), NongaussWarning, stacklevel=2)
        return out


def _fit_column(column: Column, weight: NDArray[np.float64]) -> ColumnCode:
    counted = weight > 0
    present = counted & ~column.missing
    gaps = bool((counted & column.missing).any())
    if not present.any():
        return ColumnCode(column.name, "empty")
    if column.values is not None:
        return number_code(column.name, fit_scale(column.values[present], weight[present]), gaps)
    assert column.codes is not None
    mass = np.bincount(column.codes[present], weights=weight[present], minlength=len(column.levels))
    used = np.flatnonzero(mass > 0)
    levels = {column.levels[i]: float(mass[i]) for i in used}
    ranks = tuple(column.ranks[i] for i in used) if column.ranks else ()
    return label_code(column.name, levels, gaps, Counted.of(weight).n_rows, ranks)


def number_code(name: str, scale: Scale, gaps: bool) -> ColumnCode:
    """The code of a column of numbers."""
    role: Role = "numeric" if scale.sd != 0 or gaps else "constant"
    return ColumnCode(name, role, gaps, scale.unit, scale.mean, scale.sd)


def label_code(
    name: str, levels: Mapping[str, float], gaps: bool, n_rows: float, ranks: tuple[int, ...] = ()
) -> ColumnCode:
    """The code of a column of labels, in order, with their weights and ranks. `n_rows`: see `Counted`."""
    if len(levels) == 1 and not gaps:
        return ColumnCode(name, "constant")
    if len(levels) > MOST_LEVELS or (len(levels) > FEW_ROWS and len(levels) == n_rows):
        return ColumnCode(name, "identifier")
    mass = list(levels.values())
    return ColumnCode(name, "labels", gaps, levels=tuple(levels), share=mass[-1] / sum(mass), ranks=ranks)


def _encode_numbers(code: ColumnCode, column: Column, block: NDArray[np.float64], imputed: list[str]) -> None:
    assert column.values is not None
    missing = column.missing
    if code.sd != 0:
        block[:, 0] = Scale(code.unit, code.mean, code.sd).apply(column.values)
        block[missing, 0] = 0.0
    if code.gaps:
        block[:, -1] = missing
    elif missing.any():
        imputed.append(code.name)


def _known_codes(code: ColumnCode, column: Column, unseen: list[str]) -> NDArray[np.intp]:
    """Codes in the levels of `fit`, -1 for other labels, the first of which is noted."""
    assert column.codes is not None
    place = {level: number for number, level in enumerate(code.levels)}
    lookup = np.array([*(place.get(level, -1) for level in column.levels), -1], dtype=np.intp)
    codes = lookup[column.codes]
    strange = (codes < 0) & (column.codes >= 0)
    if strange.any():
        row = int(np.argmax(strange))
        unseen.append(f"{column.levels[column.codes[row]]!r} in column {code.name!r} (first in row {row})")
    return codes


def _note_unseen(unseen: list[str]) -> list[str]:
    if not unseen:
        return []
    return [f"Labels not seen when fitting are treated as missing: {', '.join(unseen)}."]


def _encode_labels(code: ColumnCode, column: Column, block: NDArray[np.float64], unseen: list[str]) -> None:
    codes = _known_codes(code, column, unseen)
    if code.is_pair:
        block[:, 0] = np.where(codes < 0, code.share, codes)
    else:
        rows = np.flatnonzero(codes >= 0)
        block[rows, codes[rows]] = 1.0


def warn_ignored(codes: tuple[ColumnCode, ...], is_frame: bool) -> None:
    """Say which columns of a table are left out, and why."""
    reasons = {
        "empty": "all cells are missing",
        "constant": "only one value",
        "identifier": f"text that differs from row to row, or more than {MOST_LEVELS} labels",
    }
    notes = []
    for role, reason in reasons.items():
        names = [code.name for code in codes if code.role == role]
        if names and (is_frame or role != "constant"):
            notes.append(f"{listed(names)} ({reason})")
    if notes:
        warnings.warn(f"X has columns that are ignored: {'; '.join(notes)}.", NongaussWarning, stacklevel=3)
