"""Texts among values that are none: when they count as missing, and how they are told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ENOUGH = 0.95
"""The share of a column's cells that must be values, so that the others count as missing."""

_MOSTLY, _MOST_NAMED = 2 / 3, 5


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
        f"is taken for labels, though {share:.0%} of its cells are {what}: {named_cells(texts, count, odd)} "
        "are not; correct or empty these cells",
    )
