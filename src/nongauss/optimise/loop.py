"""The loop for iterations in NumPy on the host: trace, stop rule and ends of the house. It knows no model.

`loop.py` is the one for compiled steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from nongauss.optimise.checkpoint import Checkpoint, Snapshot, entry_of
from nongauss.optimise.monitor import Watch
from nongauss.optimise.result import Callback, FitResult, Status

Step = Callable[[Any], tuple[Any, Mapping[str, float]]]

FALL = 1e-9
"""A relative fall of a bound that cannot fall is no rounding error beyond this."""


def repeat(
    step: Step,
    state: Any,
    *,
    max_iter: int,
    least_gain: Callable[[float], float] | None = None,
    rises: bool = False,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
    former: FitResult | None = None,
    expected: int | None = None,
) -> FitResult:
    """Iterate `step(state) -> (state, info)` until a rule, a failure, a person or `max_iter` ends it.

    Parameters
    ----------
    step : info is a mapping of numbers for the trace; "bound" among them is maximised, and "stop" above 0
        says that the model has converged.
    max_iter : most iterations of this call.
    least_gain : of a bound, the gain at or below which it has converged; of an objective that may fall, the
        change. None: `max_iter` is a schedule, whose end is COMPLETED.
    rises : a bound that falls is an error of the model.
    checkpoint : where the state, a pytree, is kept; a step must depend on nothing else that changes.
    former : a result whose trace and count this one continues. expected : the last iteration, for progress.

    Returns
    -------
    FitResult with the last state whose numbers were finite and whose bound did not fall if it must not.
    Raises KeyboardInterrupt if Ctrl-C comes before the first iteration is done; later it ends as STOPPED.
    """
    entry, begin = entry_of(checkpoint), _begin(state, former)
    now = entry.load(begin) or begin
    if now.status is not None:
        return FitResult(now.state, now.trace, now.status, now.n_iter)
    last = -math.inf if now is begin else now.trace[-1]["bound"]
    to_do = max_iter + begin.n_iter - now.n_iter
    watch = Watch(to_do if expected is None else expected - now.n_iter, callbacks, verbose, now)
    status = Status.COMPLETED if least_gain is None else Status.MAX_ITER
    try:
        while watch.n_done < to_do:
            state, info = step(watch.done[1])
            if (failure := _failure(info, last, rises)) is not None:
                status = failure
                break
            asked = watch.record(info["bound"], info, state)
            if (enough := _is_enough(info, last, rises, least_gain)) or asked:
                status = Status.CONVERGED if enough else Status.STOPPED
                break
            last = float(info["bound"])
            entry.save(partial(watch.snapshot, state))
    except KeyboardInterrupt:
        if now is begin and not watch.n_done:
            raise
        status = Status.STOPPED
    state = watch.done[1]
    entry.end(watch.snapshot(state), status)
    return watch.result(state, status)


def _begin(state: Any, former: FitResult | None) -> Snapshot:
    return Snapshot(state, former.trace if former else [], former.n_iter if former else 0, 0.0)


def _is_enough(
    info: Mapping[str, float], last: float, rises: bool, least_gain: Callable[[float], float] | None
) -> bool:
    """Has it converged, by the model's word or by the rule?"""
    bound = float(info["bound"])
    gain = bound - last if rises else abs(bound - last)
    return info.get("stop", 0.0) > 0.0 or (least_gain is not None and gain <= least_gain(bound))


def _failure(info: Mapping[str, float], last: float, rises: bool) -> Status | None:
    if not all(math.isfinite(value) for value in info.values()):
        return Status.NONFINITE
    bound = info["bound"]
    return Status.BOUND_DECREASED if rises and bound < last - FALL * max(1.0, abs(bound)) else None


class InPlace(Protocol):
    """A model that changes in place."""

    def epoch(self, number: int) -> Mapping[str, float]:
        """Epoch 0, 1, ...; its info."""

    def snapshot(self) -> Any:
        """All that an epoch depends on, a pytree that stays as it is."""

    def restore(self, at: Any) -> None:
        """Be as a snapshot says."""


def run_epochs(
    model: InPlace,
    max_epochs: int,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> FitResult:
    """`repeat` for a model that changes in place, which is left at the last state that is kept."""

    now = model.snapshot()

    def step(state: tuple[int, Any]) -> tuple[tuple[int, Any], Mapping[str, float]]:
        nonlocal now
        number, before = state
        if before is not now:
            model.restore(before)
        info = model.epoch(number)
        now = model.snapshot()
        return (number + 1, now), info

    result = repeat(
        step, (0, now), max_iter=max_epochs, callbacks=callbacks, checkpoint=checkpoint,
        verbose=verbose,
    )  # fmt: skip
    model.restore(result.state[1])
    return result
