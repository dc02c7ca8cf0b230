"""The columns of a table as a report shows them: gaps and typical cells; and a fingerprint of all cells."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd

from nongauss.report.metrics import in_digits
from nongauss.tables.frame import InputTable

_MOST_LABELS = 3


def gaps_of(rows: InputTable, place: int) -> str:
    """How many cells of a column are missing, "" for none."""
    missing = rows.column(place).missing
    n = int(missing.sum())
    return f"{n:,} ({percent(n / max(len(missing), 1))})" if n else ""


def percent(share: float) -> str:
    """A share as per cent, to two digits that say something."""
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.2g} %"


def typical_of(rows: InputTable, place: int) -> str:
    """What a column holds: of numbers and dates the least, greatest and median, of labels the frequent."""
    column = rows.column(place)
    if column.values is None:
        assert column.codes is not None
        counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
        return _frequent([str(level) for level in column.levels], counts)
    known = np.flatnonzero(~column.missing)
    if not len(known):
        return ""
    order = known[np.argsort(column.values[known], kind="stable")]
    raw = pd.Series(rows.raw(place)).iloc
    low, median, high = (_cell(raw[order[i]]) for i in (0, (len(order) - 1) // 2, -1))
    return low if low == high else f"{low} to {high}, median {median}"


def _frequent(levels: list[str], counts: Any) -> str:
    """The most frequent labels with their share, and how many there are."""
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    total = max(int(counts.sum()), 1)
    shown = ", ".join(f"{levels[i]} {100 * counts[i] / total:.0f} %" for i in order[:_MOST_LABELS])
    return shown + (f" and {len(order) - _MOST_LABELS} more" if len(order) > _MOST_LABELS else "")


def _cell(value: Any) -> str:
    return in_digits(float(value), 6) if isinstance(value, (float, np.floating)) else str(value)


def fingerprint(frame: pd.DataFrame, y: Any = None) -> str:
    """The first 16 digits of a SHA-256 of names and cells, which tells whether a table is the same."""
    digest = hashlib.sha256(repr([str(name) for name in frame.columns]).encode())
    for name in frame.columns:
        digest.update(_bytes(frame[name]))
    if y is not None:
        digest.update(_bytes(pd.Series(np.asarray(y))))
    return digest.hexdigest()[:16]


def _bytes(cells: pd.Series[Any]) -> bytes:
    """Equal bytes for equal cells; those of several types are told by their text."""
    try:
        return pd.util.hash_pandas_object(cells, index=False).to_numpy().tobytes()
    except TypeError:
        return pd.util.hash_pandas_object(cells.map(str), index=False).to_numpy().tobytes()
