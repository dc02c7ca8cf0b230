"""The loop for iterations in NumPy on the host: trace, stop rule and ends of the house. It knows no model."""

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

    `step` takes a state to the next one and gives the bound *where it began*. The result's state is the
    last one whose bound is known, with one row of the trace for each. A bound that falls or is not finite
    ends the climb at the state before. Ctrl-C after the first iteration ends as STOPPED.
    """
    run = _Run(max_iter, tol, callbacks, verbose)
    best, status = state, Status.MAX_ITER
    try:
        while len(run.trace) < max_iter:
            following, bound = step(state)
            bad = run.refused(bound)
            if bad is not None:
                status = bad
                break
            best, state = state, following
            ending = run.record(bound)
            if ending is not None:
                status = ending
                break
    except KeyboardInterrupt:
        if not run.trace:
            raise
        status = Status.STOPPED
    if verbose:
        say(f"iteration {len(run.trace)}: {status.value}")
    return FitResult(best, run.trace, status, len(run.trace))


class _Run:
    """The trace of one climb, and the rules by which it ends."""

    def __init__(self, max_iter: int, tol: float, callbacks: Sequence[Callback], verbose: int) -> None:
        self.max_iter, self.tol, self.callbacks, self.verbose = max_iter, tol, callbacks, verbose
        self.began = self.printed = time.perf_counter()
        self.trace: list[dict[str, float]] = []
        self.bound = -np.inf

    def refused(self, bound: float) -> Status | None:
        """Why an iteration cannot be kept."""
        if not np.isfinite(bound):
            return Status.NONFINITE
        fell = bound < self.bound - FALL * max(1.0, abs(bound))
        return Status.BOUND_DECREASED if fell else None

    def record(self, bound: float) -> Status | None:
        """Note an iteration and tell who watches; a reason to end, if there is one."""
        gain, self.bound = bound - self.bound, bound
        now = time.perf_counter()
        number, seconds = len(self.trace) + 1, now - self.began
        self.trace.append({"iteration": number, "bound": float(bound), "seconds": seconds})
        progress = Progress(number, self.max_iter, float(bound), seconds)
        if self.verbose and now - self.printed > 0.5:
            self.printed = now
            say(progress)
        asked = [bool(callback(progress)) for callback in self.callbacks]
        if any(asked):
            return Status.STOPPED
        return Status.CONVERGED if gain < self.tol else None
