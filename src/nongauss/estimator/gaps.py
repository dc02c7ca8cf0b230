"""What a model says of rows with missing cells: the mixture over what the cells may be, given the others.

The law of y given what is known of a row is p(y | known) = integral of p(y | row) p(missing | known). It is
taken over `N_COMPLETIONS` draws of the missing cells (see `tables.completion`), whether or not their columns
had gaps in training; within `completed_often` over as many as it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.predictive.combined import by_rows, mixture
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.tables.completion import N_COMPLETIONS, Donors

_CELLS = 2**22
"""Cells of completed rows that are worked on at once."""

_N_DRAWS: ContextVar[int] = ContextVar("n_draws", default=N_COMPLETIONS)


@contextmanager
def completed_often(n_draws: int) -> Iterator[None]:
    """Within, rows with gaps are completed by so many draws instead of `N_COMPLETIONS`.

    For what averages over many rows: means stay without bias, spreads lose a part of that of the draws.
    """
    former = _N_DRAWS.set(n_draws)
    try:
        yield
    finally:
        _N_DRAWS.reset(former)


def over_gaps(
    donors: Donors,
    rows: NDArray[np.float64],
    missing: NDArray[np.bool_],
    say: Callable[..., Any],
    beside: Sequence[NDArray[Any]] = (),
    average: Callable[[NDArray[Any]], NDArray[Any]] = lambda each: each.mean(axis=0),
) -> Any:
    """`say` of rows (N, D), and of those with `missing` cells (N, B) the mixture, or the mean.

    `say(rows, *beside)` gives a law or an array (N, ...); `beside` are arrays with an entry a row. `average`
    makes one of the arrays of all completions, (S, N, ...).
    """
    has_gaps = missing.any(axis=1)
    if not has_gaps.any():
        return say(rows, *beside)
    n_draws = _N_DRAWS.get()
    height = max(1, _CELLS // (n_draws * max(1, rows.shape[1])))
    places = [np.flatnonzero(~has_gaps)] if not has_gaps.all() else []
    said = [say(rows[own], *(part[own] for part in beside)) for own in places]
    with_gaps = np.flatnonzero(has_gaps)
    for first in range(0, len(with_gaps), height):
        own = with_gaps[first : first + height]
        completed = donors.completions(rows[own], missing[own], n_draws).reshape(-1, rows.shape[1])
        repeated = (np.tile(part[own], (n_draws, *(1,) * (part.ndim - 1))) for part in beside)
        places.append(own)
        said.append(_averaged(say(completed, *repeated), len(own), average))
    return _in_their_places(said, places)


def labelled_as(X: Any, said: Any) -> Any:
    """What was said of the rows of a table; a law gets their labels, where it is a frame."""
    frame = getattr(X, "source", X)
    if isinstance(said, PredictiveDistribution) and isinstance(frame, pd.DataFrame):
        said.index = frame.index
    return said


def _averaged(said: Any, n_rows: int, average: Callable[[NDArray[Any]], NDArray[Any]]) -> Any:
    """The mixture of laws, or the average of arrays, over the completions of each row."""
    if isinstance(said, PredictiveDistribution):
        return mixture([said], n_rows=n_rows)
    return average(said.reshape(-1, n_rows, *said.shape[1:]))


def _in_their_places(said: Sequence[Any], places: Sequence[NDArray[np.intp]]) -> Any:
    """What was said of some rows after others, in the order of the table."""
    if isinstance(said[0], PredictiveDistribution):
        return by_rows(said, places)
    out = np.empty((sum(map(len, places)), *said[0].shape[1:]))
    for part, own in zip(said, places, strict=True):
        out[own] = part
    return out
