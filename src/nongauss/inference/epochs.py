"""The loop for epochs that run on the host, with the house's trace, callbacks and ends. It knows no model.

For mini-batches whose gradient is written by hand in NumPy; `loop.py` is the one for compiled steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nongauss.core.contracts import Callback, FitResult, Status
from nongauss.inference.watch import Watch

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
    watch = Watch(max_epochs, callbacks, verbose, former)
    state, status = snapshot(), Status.COMPLETED
    try:
        for number in range(max_epochs):
            info = dict(epoch(number))
            stop = info.pop("stop", 0.0)
            if not all(np.isfinite(value) for value in info.values()):
                status = Status.NONFINITE
                break
            state = snapshot()
            asked = watch.record(info.pop("bound"), info)
            if asked or stop:
                status = Status.STOPPED if asked else Status.CONVERGED
                break
    except KeyboardInterrupt:
        if not watch.n_done:
            raise
        status = Status.STOPPED
    return watch.result(state, status)
