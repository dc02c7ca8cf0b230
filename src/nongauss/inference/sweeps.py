"""The loop of models that sweep on the host: trace, stop rule, callbacks and Ctrl-C as in `loop.py`, no
JAX.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nongauss.core.contracts import Callback, FitResult, Progress, Status, say

Sweep = Callable[[Any], tuple[Any, Mapping[str, float]]]


def sweep_until(
    sweep: Sweep,
    state: Any,
    *,
    max_iter: int,
    tol: float | None = None,
    patience: int = 1,
    check_decrease: bool = False,
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
    tol, patience : converged when `patience` iterations together gain no more than `tol * max(1,
    abs(bound))`.
        None: never; then all iterations are the schedule, and the end is COMPLETED.
    check_decrease : the bound cannot fall; a relative fall beyond 1e-9 ends the fit.
    former : a result whose trace and count this one continues. expected : the last iteration, for progress.

    Returns
    -------
    FitResult; after a bound that is not finite, with the state before it. Raises KeyboardInterrupt if Ctrl-C
    comes before the first iteration is done; later it ends as STOPPED.
    """
    trace, n_before = (list(former.trace), former.n_iter) if former else ([], 0)
    seconds = trace[-1]["seconds"] if trace else 0.0
    last = expected or n_before + max_iter
    status = Status.MAX_ITER if tol is not None else Status.COMPLETED
    began = printed = time.perf_counter()
    bounds: list[float] = []
    for done in range(1, max_iter + 1):
        state, info, stop = _one(sweep, state, is_first=not bounds)
        if stop is not None:
            status = stop
            break
        bound, now = float(info["bound"]), time.perf_counter()
        others = {name: float(number) for name, number in info.items() if name != "bound"}
        progress = Progress(n_before + done, last, bound, seconds + now - began, others)
        trace.append({"iteration": n_before + done, "bound": bound, "seconds": progress.seconds} | others)
        bounds.append(bound)
        if verbose and now - printed > 0.5:
            printed = now
            say(progress)
        asked = [bool(callback(progress)) for callback in callbacks]
        stop = Status.STOPPED if any(asked) else _rule(bounds, tol, patience, check_decrease)
        if stop is not None:
            status = stop
            break
    if verbose:
        say(f"iteration {n_before + len(bounds)}: {status.value}")
    return FitResult(state, trace, status, n_before + len(bounds))


def _one(sweep: Sweep, state: Any, is_first: bool) -> tuple[Any, Mapping[str, float], Status | None]:
    """The state after a sweep; or the state before it, and why it ended the fit."""
    try:
        after, info = sweep(state)
    except KeyboardInterrupt:
        if is_first:
            raise
        return state, {}, Status.STOPPED
    if not math.isfinite(info["bound"]):
        return state, {}, Status.NONFINITE
    return after, info, None


def _rule(bounds: list[float], tol: float | None, patience: int, check_decrease: bool) -> Status | None:
    """What the last bounds say."""
    now = bounds[-1]
    size = max(1.0, abs(now))
    if check_decrease and len(bounds) > 1 and bounds[-2] - now > 1e-9 * size:
        return Status.BOUND_DECREASED
    if tol is not None and len(bounds) > patience and now - bounds[-1 - patience] <= tol * size:
        return Status.CONVERGED
    return None
