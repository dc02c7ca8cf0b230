"""The loop for iterations in NumPy on the host: trace, stop rule and ends of the house. It knows no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from nongauss.core.contracts import Callback, FitResult, Status
from nongauss.inference.watch import Watch

State = TypeVar("State")

FALL = 1e-9
"""A relative fall of the bound beyond this is no rounding error."""


def climb(
    step: Callable[[State], tuple[State, float]],
    state: State,
    *,
    max_iter: int,
    tol: float,
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
) -> FitResult:
    """Repeat `step` until an iteration gains less than `tol`, or something else ends it.

    `step` takes a state to the next one and gives the bound *where it began*. The result's state is the
    last one whose bound is known, with one row of the trace for each. A bound that falls or is not finite
    ends the climb at the state before. Ctrl-C after the first iteration ends as STOPPED.
    """
    watch = Watch(max_iter, callbacks, verbose)
    best, highest, status = state, -np.inf, Status.MAX_ITER
    try:
        while watch.n_done < max_iter:
            following, bound = step(state)
            if not np.isfinite(bound):
                status = Status.NONFINITE
                break
            if bound < highest - FALL * max(1.0, abs(bound)):
                status = Status.BOUND_DECREASED
                break
            gain, highest = bound - highest, bound
            best, state = state, following
            asked = watch.record(bound)
            if asked or gain < tol:
                status = Status.STOPPED if asked else Status.CONVERGED
                break
    except KeyboardInterrupt:
        if not watch.n_done:
            raise
        status = Status.STOPPED
    return watch.result(best, status)
