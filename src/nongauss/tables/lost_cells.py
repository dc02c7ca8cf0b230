"""Texts among values that are none: when they count as missing, and how they are told."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nongauss.tables.number_text import MISSING_WORDS
from nongauss.tables.scales import NO_ANSWER
from nongauss.tables.words import is_of_a_scale, known_order

ENOUGH = 0.95
"""The share of a column's cells that must be values, so that the others count as missing."""

_MOSTLY, _MOST_NAMED = 2 / 3, 5
_FEWEST_STEPS = 3
_LEAST = 0.5  # the share of values below which words for a gap may be labels like others

_GAP_WORDS = MISSING_WORDS - {"no", "none", "nil"}
"""Words that say that a value is not known, and not that there is nothing of it."""

BARE_MARKS = frozenset(word for word in MISSING_WORDS if not any(sign.isalnum() for sign in word)) - {""}
"""Signs that stand for a gap also among labels: "-", "?", "."."""

_NO_DATE = re.compile(r"0000-00-00.*|00[./-]00[./-]0000|9999-12-31.*|(31[./-]12|12[./-]31)[./-]9999")
"""Dates that programs write where there is none."""


def are_values(
    texts: Sequence[str], count: NDArray[np.intp], odd: NDArray[np.bool_], n_more: int = 0
) -> bool:
    """Are texts (L,), that occur so often, values but for few and for words that say that one is not known?

    `odd` (L,): texts that are no values. `n_more`: cells of the column that are no texts, but values;
    beside these, words have no such right.
    """
    n_values, n_cells = int(count[~odd].sum()) + n_more, int(count.sum()) + n_more
    if n_more or n_values >= ENOUGH * n_cells:
        return n_values >= ENOUGH * n_cells
    gaps = sum(int(count[place]) for place in np.flatnonzero(odd).tolist() if _is_gap(texts[place]))
    return n_values >= max(ENOUGH * (n_cells - gaps), _LEAST * n_cells, 1)


def _is_gap(text: str) -> bool:
    """Does the text say that a value is not known?"""
    text = text.strip().casefold()
    return text in _GAP_WORDS or _NO_DATE.fullmatch(text) is not None


def marks_of_gaps(levels: Sequence[str]) -> NDArray[np.bool_]:
    """Which labels (L,) are bare signs that stand for a gap, or say that there is no answer beside a scale.

    "-" beside "+" is a label, and so it is beside a single other label, where it may say that there is none;
    "?" says nothing there either. "Don't know" is a label but where the others are a scale without it; such
    answers that scales have as their middle are a step of it where they can be.
    """
    gone = _bare_marks(levels)
    answers = np.array([level.casefold() in NO_ANSWER for level in levels], dtype=np.bool_)
    if not (answers & ~gone).any():
        return gone
    known = np.array([is_of_a_scale(level) for level in levels], dtype=np.bool_)
    for out in (gone, gone | (answers & ~known), gone | answers):
        rest = [level for level, is_out in zip(levels, out, strict=True) if not is_out]
        if len(rest) >= _FEWEST_STEPS and (order := known_order(rest)):
            return gone if order[1].startswith("number") else out
    return gone


def _bare_marks(levels: Sequence[str]) -> NDArray[np.bool_]:
    """Which labels (L,) are bare signs that stand for a gap, see `marks_of_gaps`."""
    nothing = np.zeros(len(levels), dtype=np.bool_)
    if BARE_MARKS.isdisjoint(levels):
        return nothing
    is_bare = np.array([level in BARE_MARKS for level in levels], dtype=np.bool_)
    others = [level for level, bare in zip(levels, is_bare, strict=True) if not bare]
    if not others or any(not any(map(str.isalnum, level)) for level in others):
        return nothing
    if len(others) > 1:
        return is_bare
    return np.array([level in ("?", "??") for level in levels], dtype=np.bool_)


def named_cells(texts: Sequence[str], count: NDArray[np.intp], which: NDArray[np.bool_]) -> str:
    """Some of the texts (L,) with the number of their cells, the most frequent first; "" for none."""
    places = sorted(np.flatnonzero(which & (count > 0)).tolist(), key=lambda i: (-count[i], texts[i]))
    shown = [f"{texts[i]!r} ({count[i]} cell{'s' if count[i] > 1 else ''})" for i in places[:_MOST_NAMED]]
    more = int(count[places[_MOST_NAMED:]].sum())
    return ", ".join(shown) + (f" and {more} cells more" if more else "")


def mostly(
    texts: Sequence[str], count: NDArray[np.intp], odd: NDArray[np.bool_], what: str
) -> tuple[str, ...]:
    """The note on a column of texts (L,) that are mostly, but not nearly always, values: `odd` are not."""
    share = float(count[~odd].sum() / max(count.sum(), 1))
    if share < _MOSTLY:
        return ()
    return (
        f"is treated as labels, although {share:.0%} of its cells are {what}: "
        f"{named_cells(texts, count, odd)} "
        "are not; correct or empty these cells",
    )
