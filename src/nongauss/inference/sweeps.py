"""The loop of models that sweep on the host, with the trace, stop rule and ends of the house."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nongauss.core.contracts import Callback, FitResult, Status
from nongauss.inference.watch import Watch

Sweep = Callable[[Any], tuple[Any, Mapping[str, float]]]


def sweep_until(
    sweep: Sweep,
    state: Any,
    *,
    max_iter: int,
    tol: float | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
    former: FitResult | None = None,
    expected: int | None = None,
) -> FitResult:
    """Iterate `sweep(state) -> (state, info)` until a rule, a failure, a person or `max_iter` ends it.

    Parameters
    ----------
    sweep : info is a mapping of numbers with "bound", which is maximised.
    max_iter : most iterations of this call.
    tol : converged when an iteration gains no more than `tol * max(1, abs(bound))`. None: never; then all
        iterations are the schedule, and the end is COMPLETED.
    former : a result whose trace and count this one continues. expected : the last iteration, for progress.

    Returns
    -------
    FitResult; after a bound that is not finite, with the state before it. Raises KeyboardInterrupt if Ctrl-C
    comes before the first iteration is done; later it ends as STOPPED.
    """
    to_come = max_iter if expected is None else expected - (former.n_iter if former else 0)
    watch = Watch(to_come, callbacks, verbose, former)
    status = Status.COMPLETED if tol is None else Status.MAX_ITER
    last = -math.inf
    try:
        while watch.n_done < max_iter:
            following, info = sweep(state)
            bound = float(info["bound"])
            if not math.isfinite(bound):
                status = Status.NONFINITE
                break
            state = following
            asked = watch.record(bound, {name: value for name, value in info.items() if name != "bound"})
            settled = tol is not None and bound - last <= tol * max(1.0, abs(bound))
            last = bound
            if asked or settled:
                status = Status.STOPPED if asked else Status.CONVERGED
                break
    except KeyboardInterrupt:
        if not watch.n_done:
            raise
        status = Status.STOPPED
    return watch.result(state, status)
