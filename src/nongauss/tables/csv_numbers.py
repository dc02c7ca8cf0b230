"""One style of numbers for a whole CSV file: which columns are decimal commas, and all of them as points.

Columns that say it themselves are read as they say; those of two readings ("1,234") follow the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray

from nongauss.tables.column import distinct_texts
from nongauss.tables.number_text import (
    COMMA,
    MARK,
    POINT,
    NumberTexts,
    Votes,
    percent_style,
    plain_number,
    read_numbers,
    two_readings,
)

AsText = Callable[[Sequence[int]], pd.DataFrame]
"""Columns of a file, by their places, as texts."""

_MOSTLY = 0.5  # the share of cells that must be numbers for a column to have a vote
_ENOUGH = 0.95


@dataclass(frozen=True)
class NumberColumn:
    """A column of texts of which most are numbers: `codes` (N,) into `distinct` (L,), -1 where missing."""

    place: int
    codes: NDArray[np.intp]
    distinct: Any
    found: NumberTexts

    @cached_property
    def texts(self) -> list[str]:
        """The different texts, (L,)."""
        texts: list[str] = self.distinct.to_pylist()
        return texts

    @cached_property
    def count(self) -> NDArray[np.intp]:
        """Cells of each text, (L,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.distinct))

    @cached_property
    def votes(self) -> Votes:
        """How many cells speak for each style of numbers."""
        return Votes.of(self.found, self.count)

    @property
    def is_numbers(self) -> bool:
        """Are most of its cells numbers in some style?"""
        some = ~np.isnan(self.found.point) | ~np.isnan(self.found.comma)
        return bool(self.count[some].sum() >= _MOSTLY * self.count.sum() > 0)

    def in_style(self, style: str) -> Any:
        """Its cells (N,): floats if all are bare numbers, else texts with points and without thousands."""
        values = self.found.of_style(style)
        is_number = ~np.isnan(values)
        if (is_number & (self.found.patterns == MARK)).all():
            return np.append(values, np.nan)[self.codes]
        texts = [
            plain_number(text, style) if good else text
            for text, good in zip(self.texts, is_number, strict=True)
        ]
        return np.array([*texts, None], dtype=object)[self.codes]


def one_style(frame: pd.DataFrame, as_text: AsText, separator: str, file: str, notes: list[str]) -> None:
    """Put columns of numbers that are not in plain point style in their place in `frame`.

    A column in two styles stays as it is, which is said.
    """
    columns = [found for found in map(_of_texts, *_text_columns(frame)) if found is not None]
    has_two = any(column.votes.comma or column.votes.open for column in columns)
    if not has_two and separator != ";":
        return
    suspects = [place for place in range(frame.shape[1]) if _is_float(frame.iloc[:, place])]
    if not has_two:
        suspects = [place for place in suspects if _in_thousandths(frame.iloc[:, place])]
    if suspects:
        texts = as_text(suspects)
        more = (_of_texts(place, texts.iloc[:, at]) for at, place in enumerate(suspects))
        columns += [column for column in more if column is not None]
    odd = {column.place: said for column in columns if (said := _in_both_styles(column))}
    notes += [f"Column {str(frame.columns[place])!r} {said}." for place, said in odd.items()]
    columns = [column for column in columns if column.place not in odd]
    total = sum((column.votes for column in columns), Votes())
    style = total.style(COMMA if separator == ";" and total.comma else POINT)
    for column in columns:
        name = str(frame.columns[column.place])
        percent = percent_style(column.found) if total.open else ""
        own = (column.votes.style("") if column.votes.point or column.votes.comma else "") or percent or style
        if total.open and column.votes.either and not percent:
            notes.append(f"Column {name!r} {two_readings(column.texts, column.found, own)}.")
        if own == POINT and column.place in suspects:
            continue
        if own == COMMA or column.votes.either:
            frame.isetitem(column.place, column.in_style(own))
    if total.point and total.comma:
        notes.append(
            f"{file} has decimal commas in some columns and decimal points in others; each was read as it is."
        )


def _text_columns(frame: pd.DataFrame) -> tuple[list[int], list[pd.Series[Any]]]:
    """Places and cells of the columns of texts."""
    places = [place for place, dtype in enumerate(frame.dtypes) if pd.api.types.is_string_dtype(dtype)]
    return places, [frame.iloc[:, place] for place in places]


def _of_texts(place: int, cells: pd.Series[Any]) -> NumberColumn | None:
    """A column of texts, None where hardly any is a number with a mark in it."""
    codes, texts = distinct_texts(cells)
    if not pc.any(pc.match_substring_regex(texts, pattern="[0-9][.,][0-9]")).as_py():
        return None
    some = read_numbers(texts.take(np.arange(0, len(texts), max(len(texts) // 200, 1))))
    if not (~np.isnan(some.point) | ~np.isnan(some.comma)).any():
        return None
    column = NumberColumn(place, codes, texts, read_numbers(texts))
    return column if column.is_numbers else None


def _is_float(cells: pd.Series[Any]) -> bool:
    """Was it read as numbers with a point?"""
    return cells.dtype == np.float64 and not cells.isna().all()


def _in_thousandths(cells: pd.Series[Any]) -> bool:
    """May its points stand between thousands: three digits behind each, and a group in front?"""
    values = cells.dropna().to_numpy()
    odd = values[values != np.round(values)]
    return bool(
        len(odd) and (np.abs(odd) >= 1).all() and np.allclose(odd * 1e3, np.round(odd * 1e3), atol=1e-6)
    )


def _in_both_styles(column: NumberColumn) -> str:
    """What is to be said of a column that writes decimals with commas and with points, "" of others."""
    point, comma = column.votes.point, column.votes.comma
    if not (point and comma and max(point, comma) < _ENOUGH * (point + comma)):
        return ""
    only = ~np.isnan(column.found.comma) & np.isnan(column.found.point)
    row = int(np.argmax(np.append(only, False)[column.codes]))
    text = column.texts[column.codes[row]]
    return (
        f"mixes decimal commas and decimal points (the first comma is in {text!r}, row {row + 1} below the "
        "names), and its cells stay texts; use one of them"
    )
