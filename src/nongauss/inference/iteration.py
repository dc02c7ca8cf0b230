"""The loop for iterations that run on the host in NumPy: the trace, stop rule and ends of the house. No model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from nongauss.core.contracts import Callback, FitResult, Progress, Status, say

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

    `step` takes a state to the next one and gives the bound *where it began*. The result's state is the last one
    whose bound is known, with one row of the trace for each. A bound that falls or is not finite ends the climb
    at the state before. Ctrl-C after the first iteration ends as STOPPED.
    """
    began = printed = time.perf_counter()
    trace: list[dict[str, float]] = []
    best, status = state, Status.MAX_ITER
    try:
        for number in range(1, max_iter + 1):
            following, bound = step(state)
            if not np.isfinite(bound):
                status = Status.NONFINITE
                break
            gain = bound - trace[-1]["bound"] if trace else np.inf
            if gain < -FALL * max(1.0, abs(bound)):
                status = Status.BOUND_DECREASED
                break
            now = time.perf_counter()
            trace.append({"iteration": number, "bound": float(bound), "seconds": now - began})
            best, state = state, following
            progress = Progress(number, max_iter, float(bound), now - began)
            if verbose and now - printed > 0.5:
                printed = now
                say(progress)
            if any([bool(callback(progress)) for callback in callbacks]):
                status = Status.STOPPED
                break
            if gain < tol:
                status = Status.CONVERGED
                break
    except KeyboardInterrupt:
        if not trace:
            raise
        status = Status.STOPPED
    if verbose:
        say(f"iteration {len(trace)}: {status.value}")
    return FitResult(best, trace, status, len(trace))
