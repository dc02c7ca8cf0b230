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
    trace = list(former.trace) if former else []
    offset, before = (former.n_iter, trace[-1]["seconds"]) if former and trace else (0, 0.0)
    began = printed = time.perf_counter()
    state, status, done = snapshot(), Status.COMPLETED, 0
    try:
        for number in range(max_epochs):
            info = dict(epoch(number))
            stop = info.pop("stop", 0.0)
            if not all(np.isfinite(value) for value in info.values()):
                status = Status.NONFINITE
                break
            state, done = snapshot(), number + 1
            now = time.perf_counter()
            row = {
                "iteration": offset + done,
                "bound": float(info.pop("bound")),
                "seconds": before + now - began,
            }
            trace.append(row | {name: float(value) for name, value in info.items()})
            progress = Progress(offset + done, offset + max_epochs, row["bound"], row["seconds"], info)
            if verbose and now - printed > 0.5:
                printed = now
                say(progress)
            asked = [bool(callback(progress)) for callback in callbacks]
            if any(asked) or stop:
                status = Status.STOPPED if any(asked) else Status.CONVERGED
                break
    except KeyboardInterrupt:
        if not done:
            raise
        status = Status.STOPPED
    if verbose:
        say(f"iteration {offset + done}: {status.value}")
    return FitResult(state, trace, status, offset + done)
