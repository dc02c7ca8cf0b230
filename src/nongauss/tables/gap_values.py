"""Numbers of a column that seem to stand for a missing cell: 999, -1, 99 beside answers from 1 to 5."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nongauss.tables.words import typed

FloatArray = NDArray[np.float64]

ROUND = (
    {float(10**k - 1) for k in range(2, 10)} | {float(10**k) for k in range(6, 13)} | {99.9, 999.9, 9999.9}
)
"""Sizes of numbers by which gaps are written: 99, 999, ..., and 1e6 to 1e12."""

NO_ANSWER = {1.0, 66.0, 77.0, 88.0} | {
    float(f"{nines}{digit}") for nines in ("", "9", "99", "999") for digit in "789"
}
"""Sizes of numbers by which surveys write that there is no answer: -1, -7 to -9, 97 to 99, 997 to 999, 88."""

_FEW_TIMES, _ONE_CELL = 3, 1000.0
_NEAR, _NEIGHBOURS = 0.25, 5.0
_LOOK = 200
_FEW_LEVELS = 10
_FEWEST_STEPS, _MOST_STEPS, _TWO_DIGITS = 3, 11, 10.0


def gap_warnings(values: FloatArray, name: str) -> tuple[tuple[str, str], ...]:
    """A warning of the lowest and of the highest value, if they lie apart as values for a gap do.

    Far out: the empty stretch beside them is as long as the range of all other values, and they occur three
    times, or are written as gaps are (999); or it is 1,000 times as long. What is written as gaps are and
    occurs three times (-1 beside numbers that are not negative, 0, 99) need be no farther than `_is_code`.
    Beside a few steps, as 1 to 5, see `no_answers`.
    """
    codes = no_answers(values)
    if codes:
        steps = values[~np.isin(values, codes)]
        counts = [int((values == code).sum()) for code in codes]
        shown = " and ".join(f"{code:g} in {_rows(count)}" for code, count in zip(codes, counts, strict=True))
        give = " ".join(f"--missing {typed(name, f'{code:g}')}" for code in codes)
        text = f"Column {name!r} holds {shown} beside steps from {steps.min():g} to {steps.max():g}: "
        return (
            (
                "gap",
                f"{text}if {'they stand' if len(codes) > 1 else 'it stands'} for no answer, give {give}.",
            ),
        )
    out = []
    for end, rest_of in ((values.min(), values > values.min()), (values.max(), values < values.max())):
        rest = values[rest_of]
        low, high = float(rest.min()), float(rest.max())
        gap = min(abs(low - end), abs(high - end))
        count = len(values) - len(rest)
        spread = high - low
        often = (count >= _FEW_TIMES and len(np.unique(rest[:_LOOK])) > _FEW_LEVELS) or abs(end) in ROUND
        is_far = gap >= spread * (1.0 if often else _ONE_CELL) or _is_code(end, count, rest)
        if spread <= 0 or count > 0.5 * len(values) or not is_far:
            continue
        out.append(
            (
                "gap",
                f"Column {name!r} holds {end:.12g} in {_rows(count)}, far from all others "
                f"({low:.6g} to {high:.6g}): if it stands for a gap, give --missing "
                f"{typed(name, f'{end:.12g}')}.",
            )
        )
    return tuple(out)


def _rows(count: int) -> str:
    return f"{count} rows" if count > 1 else "one row"


def no_answers(values: FloatArray) -> list[float]:
    """The numbers (N,) beside a few steps by which surveys say that there is no answer, in order, if any.

    The steps are all whole numbers from 0 or 1 on, three to eleven of them, in half the rows at least. Codes
    of one digit are negative, beside steps from 1: 7, 8 and 9 may be counts.
    """
    if len(np.unique(values[:_LOOK])) > _MOST_STEPS + len(NO_ANSWER):
        return []
    levels, times = np.unique(values, return_counts=True)
    first = int(np.searchsorted(levels, 0.0))
    run = np.append(np.diff(levels[first:]) != 1, True)
    steps = levels[first : first + int(np.argmax(run)) + 1] if first < len(levels) else levels[:0]
    if not (_FEWEST_STEPS <= len(steps) <= _MOST_STEPS and steps[0] in (0.0, 1.0)):
        return []
    outside = ~np.isin(levels, steps)
    sizes = np.abs(levels[outside])
    is_negative = (levels[outside] < 0) & (steps[0] == 1)
    known = np.isin(sizes, list(NO_ANSWER)) & ((sizes >= _TWO_DIGITS) | is_negative)
    return levels[outside].tolist() if known.all() and 2 * times[outside].sum() <= len(values) else []


def _is_code(end: float, count: int, rest: FloatArray) -> bool:
    """Is a value beyond all others (R,) written as gaps are, repeated, and not the next of them?

    A round negative one beside numbers that are none; else 0 or nines, a quarter of the range of the others
    away, and five times as far as any two neighbours of these are apart.
    """
    levels = np.unique(rest)
    if count < _FEW_TIMES or len(levels) <= _FEW_LEVELS:
        return False
    if end < 0 <= levels[0]:
        return -end in ROUND or end in (-1.0, -9.0)
    if end != 0 and abs(end) not in ROUND:
        return False
    gap = min(abs(levels[0] - end), abs(levels[-1] - end))
    return bool(gap >= max(_NEAR * (levels[-1] - levels[0]), _NEIGHBOURS * np.diff(levels).max()))
