"""The loop for epochs that run on the host, with the house's trace, callbacks and ends. It knows no model.

For mini-batches whose gradient is written by hand in NumPy; `loop.py` is the one for compiled steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nongauss.core.contracts import Callback, FitResult, Progress, Status, say

Epoch = Callable[[int], Mapping[str, float]]


def run_epochs(
    epoch: Epoch,
    snapshot: Callable[[], Any],
    max_epochs: int,
    *,
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
    former: FitResult | None = None,
) -> FitResult:
    """Run `epoch(number)` for number 0, 1, ... until `max_epochs` are done or something ends it.

    Parameters
    ----------
    epoch : does one epoch and returns numbers for the trace, "bound" among them. "stop" above 0 says that it
        has converged.
    snapshot : a copy of the state after the last epoch.
    former : a result whose trace and count this one continues.

    Returns
    -------
    FitResult with the last state whose bound was finite: COMPLETED after the schedule, CONVERGED, STOPPED or
    NONFINITE. Raises KeyboardInterrupt if Ctrl-C comes before the first epoch is done.
    """
    run = _Run(max_epochs, callbacks, verbose, former)
    state, status = snapshot(), Status.COMPLETED
    try:
        for number in range(max_epochs):
            info = dict(epoch(number))
            stop = info.pop("stop", 0.0)
            if not all(np.isfinite(value) for value in info.values()):
                status = Status.NONFINITE
                break
            state = snapshot()
            asked = run.record(info)
            if asked or stop:
                status = Status.STOPPED if asked else Status.CONVERGED
                break
    except KeyboardInterrupt:
        if not run.done:
            raise
        status = Status.STOPPED
    if verbose:
        say(f"iteration {run.offset + run.done}: {status.value}")
    return FitResult(state, run.trace, status, run.offset + run.done)


class _Run:
    """The trace of one call of `run_epochs`, and who hears of it."""

    def __init__(
        self, max_epochs: int, callbacks: Sequence[Callback], verbose: int, former: FitResult | None
    ) -> None:
        self.max_epochs, self.callbacks, self.verbose = max_epochs, callbacks, verbose
        self.trace = list(former.trace) if former else []
        self.offset = former.n_iter if former else 0
        self.before = self.trace[-1]["seconds"] if self.trace else 0.0
        self.began = self.printed = time.perf_counter()
        self.done = 0

    def record(self, info: dict[str, float]) -> bool:
        """One more epoch; does a callback ask to stop?"""
        self.done += 1
        now = time.perf_counter()
        seconds, bound = self.before + now - self.began, float(info.pop("bound"))
        others = {name: float(value) for name, value in info.items()}
        number = self.offset + self.done
        self.trace.append({"iteration": number, "bound": bound, "seconds": seconds} | others)
        progress = Progress(number, self.offset + self.max_epochs, bound, seconds, others)
        if self.verbose and now - self.printed > 0.5:
            self.printed = now
            say(progress)
        asked = [bool(callback(progress)) for callback in self.callbacks]  # every one is told
        return any(asked)
