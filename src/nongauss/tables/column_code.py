"""How one flat column of a table is encoded: the record that repeats for new rows what was learned of it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nongauss.core.records import persistable
from nongauss.tables.column import Column, ColumnSummary, tidy
from nongauss.tables.kinds import flat, kind_of
from nongauss.tables.kinds.label import FEW_ROWS, MOST_LEVELS
from nongauss.tables.kinds.number import Scale
from nongauss.tables.rows import Counted
from nongauss.tables.words import one_case, plain_label, said_alike

Role = Literal["numeric", "labels", "constant", "empty", "identifier", "unrelated"]

_MOST_UNSEEN = 5

NEARLY_ALL = 0.9
"""Labels are an identifier if there are at least this many for each cell that is not missing."""

UNRELATED: Role = "unrelated"
"""The role of a column of a wide table that a fit does not look at (see `screen`)."""


@persistable("tables.ColumnCode", "nongauss.data.encoder:ColumnCode")
@dataclass(frozen=True)
class ColumnCode:
    """How one flat column is encoded.

    `role`: "numeric", "labels", or why it is ignored ("constant", "empty", "identifier", "unrelated").
    `gaps`: it had missing cells when fitted. `unit`, `mean`, `sd`: see `Scale`; sd is 0 where only the gaps
    say anything. `levels`: the labels. `share`: the weighted share of the second of two levels. `ranks`: the
    place of each level, of an ordered category.

    `place`: the input column that it comes from, by its number; -1 is the one of its own number. `kind` is
    the name of that column's kind, `part` says which side of it this is ("" the whole), `origin` where its
    numbers begin. `flagged`: of a column of labels, whether its gaps have a 0/1 column of their own.
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
    place: int = -1
    kind: str = ""
    part: str = ""
    origin: float = 0.0
    flagged: bool = False

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of the columns that this one becomes in `as_scaled`."""
        if self.role == "numeric":
            return (self.name,) * (self.sd != 0) + (f"{self.name}=missing",) * self.gaps
        if self.role == "labels":
            shown = self.levels[1:] if self.is_pair else self.levels
            flag = (f"{self.name}=missing",) * self.flagged
            return tuple(f"{self.name}={level}" for level in shown) + flag
        return ()

    @property
    def one_hot_names(self) -> tuple[str, ...]:
        """Names of the columns that this one becomes in `as_one_hot`."""
        if self.role == "numeric":
            return (self.name,) * (self.sd != 0)
        if self.role == "labels" and len(self.levels) > 1:
            return tuple(f"{self.name}={level}" for level in self.levels[self._first_shown :])
        return ()

    @property
    def rank_names(self) -> tuple[str, ...]:
        """Names of the columns that this one becomes in `as_ranks`."""
        if self.role == "labels" and len(self.levels) > 1 and self.ranks:
            return (self.name,)
        return self.one_hot_names

    @property
    def is_pair(self) -> bool:
        """Two levels and no gaps: one 0/1 column says it all."""
        return len(self.levels) == 2 and not self.gaps

    @property
    def turns(self) -> tuple[float, ...]:
        """Of levels that come again and again, as hours, the place of each: a share of a turn. Else ()."""
        cycle = kind_of(self._kind).cycle(self.part) if self.role == "labels" else 0
        return tuple(rank / cycle for rank in self.ranks) if cycle else ()

    @property
    def scale(self) -> Scale:
        """How its numbers are standardised."""
        return Scale(self.unit, self.mean, self.sd)

    @property
    def _first_shown(self) -> int:
        """Number of the first level with a 0/1 column: of two levels the second has one, of more each."""
        return 1 if len(self.levels) == 2 else 0

    @property
    def _kind(self) -> str:
        """The kind's name, which older records do not have."""
        return self.kind or ("number" if self.role == "numeric" else "label")

    def read(self, column: Column, unseen: list[str], lost: list[str]) -> Column:
        """This flat column of new rows, from the input column; labels as codes into `levels`.

        The first label that is none of them is noted in `unseen`, texts that are no values in `lost`: both
        count as missing. A column that is ignored stays as it is. Raises InputError for cells that it cannot
        be.
        """
        if self.role not in ("numeric", "labels"):
            return column
        column = flat(column, self._kind, self.part, self.origin)
        if column.lost:
            lost.append(f"{column.lost} in column {column.name!r}")
        if self.role == "numeric":
            return column
        return Column(self.name, None, _known_codes(self, column, unseen), self.levels, self.ranks)

    def shown(self, value: Any) -> str:
        """A value of `raw` as text, in the words of its kind: 2.5, "red", 2024-03-01.

        For bounds of rules, ticks of plots, cells of reports.
        """
        return kind_of(self._kind).shown(value, self.part, self.origin)


def code_of(column: ColumnSummary, counted: Counted) -> ColumnCode:
    """How a flat column is encoded, from what all its rows tell."""
    origin: dict[str, Any] = {"kind": column.kind, "part": column.part, "origin": column.origin}
    code = replace(ColumnCode(column.name, "empty", place=column.place), **origin)
    gaps, levels = column.gaps, column.levels
    if column.numbers is not None:
        scale = column.numbers.scale()
        role: Role = "numeric" if scale.sd != 0 or gaps else "constant"
        return replace(code, role=role, gaps=gaps, unit=scale.unit, mean=scale.mean, sd=scale.sd)
    if levels is None:
        return code
    if len(levels) == 1 and not gaps:
        return replace(code, role="constant")
    if len(levels) > MOST_LEVELS or names_rows(column, counted):
        return replace(code, role="identifier")
    ranks = tuple(map(column.order.index, levels)) if column.order else ()
    mass = list(levels.values())
    share = mass[-1] / sum(mass)
    flagged = gaps and not column.part  # parts of a date are missing together: its number has the flag
    code = replace(code, role="labels", gaps=gaps, levels=tuple(levels), share=share, ranks=ranks)
    return replace(code, flagged=flagged)


def names_rows(column: ColumnSummary, counted: Counted) -> bool:
    """Is this flat column an identifier, by its labels: more than a few, nearly all of another row each?

    Of weights that are not whole, the rows that are not missing count by their share of the weight.
    """
    levels = column.levels or {}
    known = counted.n_rows * sum(levels.values()) / counted.weight
    return len(levels) > FEW_ROWS and len(levels) >= NEARLY_ALL * known


def _known_codes(code: ColumnCode, column: Column, unseen: list[str]) -> NDArray[np.intp]:
    """Codes in the levels of the fit, -1 for other labels, the first of which is noted."""
    assert column.codes is not None
    if column.levels == code.levels:
        return column.codes
    place = {tidy(level): number for number, level in enumerate(code.levels)}
    words = {word: place[tidy(level)] for level, word in one_case(code.levels).items()}
    alike = {label: place[tidy(level)] for label, level in said_alike(code.levels, column.levels).items()}
    cases = _by_case(place)
    found = (
        place.get(level, words.get(plain_label(level), alike.get(level, cases.get(level.casefold(), -1))))
        for level in column.levels
    )
    lookup = np.array([*found, -1], dtype=np.intp)
    codes = lookup[column.codes]
    strange = (codes < 0) & (column.codes >= 0)
    if strange.any():
        labels = list(dict.fromkeys(column.codes[strange].tolist()))
        shown = ", ".join(repr(column.levels[label]) for label in labels[:_MOST_UNSEEN])
        more = f" and {len(labels) - _MOST_UNSEEN} more" if len(labels) > _MOST_UNSEEN else ""
        n, row = int(strange.sum()), int(np.argmax(strange))
        rows = f", {n:,} rows" * (n > 1)
        unseen.append(f"{shown}{more} in column {code.name!r}{rows} (first in row {row})")
    return codes


def _by_case(place: dict[str, int]) -> dict[str, int]:
    """The places of labels by themselves without case, of those that no other label is alike to then."""
    times = Counter(level.casefold() for level in place)
    return {level.casefold(): at for level, at in place.items() if times[level.casefold()] == 1}


def told_of_far(column: ColumnSummary) -> str:
    """A sentence on a number beside which all others of a column look the same, "" where there is none."""
    far = column.numbers.hides if column.numbers and column.kind in ("number", "quantity") else math.nan
    if math.isnan(far):
        return ""
    return (
        f"Column {column.name!r} holds {far:.6g}, so far from all other values that they look the same "
        "beside it; correct or empty the cell."
    )
