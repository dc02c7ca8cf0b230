"""Which values a target of each kind can take, and what to say of one that it cannot."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError

FloatArray = NDArray[np.float64]

SUPPORTS: dict[str, tuple[str, Callable[[FloatArray], NDArray[np.bool_]]]] = {
    "real": ("that is finite", lambda y: ~np.isfinite(y)),
    "positive": ("above 0", lambda y: ~((y > 0) & (y < np.inf))),
    "unit": ("strictly between 0 and 1", lambda y: ~((y > 0) & (y < 1))),
    "count": (
        "that is a whole number of at least 0",
        lambda y: ~((y >= 0) & (y < np.inf) & (y == np.round(y))),
    ),
    "whole": ("that is a whole number", lambda y: ~(np.isfinite(y) & (y == np.round(y)))),
}
"""For each support of y: the rule, and where numbers break it."""


def room_for(y: FloatArray) -> str:
    """Likelihoods in whose support all of y is, in words, for a target that another one has no room for."""
    if (y < 0).any():
        whole = ", for whole numbers 'discretised'" if (y == np.round(y)).all() else ""
        return f"for numbers below 0 take likelihood='gaussian' or 'student_t'{whole}"
    share = "for shares with exact 0 or 1 'zero_one_beta'"
    if (y == 0).any():
        amount = "for amounts with exact zeros take likelihood='hurdle_gamma' or 'hurdle_log_normal'"
        return f"{amount}, {share}" if (y <= 1).all() else amount
    if (y <= 1).all():
        return share.replace("1 '", "1 take likelihood='")
    return "for numbers above 0 take likelihood='gamma' or 'log_normal'; percentages may be divided by 100"


def first_bad(y: FloatArray, bad: NDArray[np.bool_], name: str, rule: str, remedy: str) -> None:
    """Raises InputError for the first row where `bad`; nothing where there is none."""
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"The {name} likelihood needs y {rule}, got {y[row]:g} in row {row} (counted from 0); {remedy}."
        )
