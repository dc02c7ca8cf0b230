"""L-BFGS on the host with the house's trace, stop rule, callbacks and ends. It knows no model.

For objectives whose gradient is written by hand in NumPy; SciPy's L-BFGS-B does the steps (Byrd, Lu, Nocedal
and Zhu 1995).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from nongauss.optimise.checkpoint import Checkpoint, Entry, Snapshot, entry_of
from nongauss.optimise.monitor import Watch
from nongauss.optimise.result import Callback, FitResult, Status

FloatArray = NDArray[np.float64]
Objective = Callable[[FloatArray], tuple[float, FloatArray, float]]

MEMORY = 50
"""Pairs of steps from which the curvature is estimated."""

_WALL = 1e3
"""How much worse than the last good point a point without a value looks to the line search."""


@runtime_checkable
class Remembers(Protocol):
    """An objective whose value at a point depends on where it has been before."""

    def snapshot(self) -> Any:
        """What it remembers, a pytree that stays as it is."""

    def restore(self, at: Any) -> None:
        """Remember that."""


Evaluation = tuple[np.uint64, float, float, FloatArray]


class Tried(NamedTuple):
    """Evaluations so far: a hash of each point (n,), value (n,), bound (n,) and gradient (n, D)."""

    point: NDArray[np.uint64]
    value: FloatArray
    bound: FloatArray
    gradient: FloatArray


def ascend(
    objective: Objective,
    x: FloatArray,
    bounds: Sequence[tuple[float | None, float | None]],
    *,
    max_iter: int,
    tol: float,
    patience: int = 20,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
    former: FitResult | None = None,
) -> FitResult:
    """Climb from `x` until `patience` iterations together gain less than `tol`, or something else ends it.

    Parameters
    ----------
    objective : x -> (value to maximise, its gradient, the bound for the trace). Where it raises LinAlgError
        or FloatingPointError, or is not finite, the line search turns back.
    bounds : one (low, high) for each element of x; None is open.
    checkpoint : where evaluations are kept. A fit that goes on takes the same steps through them again, which
        costs no evaluation and leaves the optimiser's own memory as it was.
    max_iter : most iterations of this call. former : a result whose trace and count this one continues.

    Returns
    -------
    FitResult whose state is the best x; NONFINITE with `x` itself if there is no value at the start.
    Raises KeyboardInterrupt if Ctrl-C comes before the first iteration is done; later it ends as STOPPED.
    """
    x = np.array(x, dtype=np.float64)
    watch = Watch(max_iter, callbacks, verbose, former)
    known = _Known(objective, entry_of(checkpoint), watch, len(x))
    climb = _Climb(known, x, max_iter, tol, patience, watch)
    if not climb.begin():
        return watch.result(climb.best, Status.NONFINITE)
    try:
        climb.run(bounds)
    except KeyboardInterrupt:
        if not watch.n_done:
            raise
        climb.status = Status.STOPPED
    known.end(climb.status)
    return watch.result(climb.best, climb.status)


class _Known:
    """An objective whose evaluations are kept: those that are on file are not computed again."""

    def __init__(self, objective: Objective, entry: Entry, watch: Watch, size: int) -> None:
        self.objective, self.entry, self.watch = objective, entry, watch
        self.warm = objective if isinstance(objective, Remembers) else None
        nothing = Tried(np.zeros(0, np.uint64), np.zeros(0), np.zeros(0), np.zeros((0, size)))
        memory = self._memory()
        found = entry.load(Snapshot((nothing, memory), [], 0, 0.0))
        self.tried: list[Evaluation] = []
        self.again: list[Evaluation] = []
        if found is not None:
            tried, memory = found.state
            self.again = list(zip(*tried, strict=True))
            if self.warm is not None:
                self.warm.restore(memory)
            watch.silent_until(found.n_iter, found.seconds)
        self.done: tuple[int, Any] = (0, memory)

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray, float]:
        """Value, gradient and bound at x; minus infinity where there is no value."""
        point, (done, memory) = _hash(x), self.done
        if done < len(self.again) and self.again[done][0] == point:
            one = self.again[done]
        else:
            self.again = []
            one, memory = (point, *self._evaluated(x)), self._memory()
        if self.entry.is_kept:
            self.tried.append(one)
            self.done = done + 1, memory
            if not self.again:
                self.entry.save(self._snapshot)
        _, value, bound, gradient = one
        return float(value), gradient, float(bound)

    def end(self, status: Status) -> None:
        """The climb is over. One that took no new step leaves the file, and later steps in it, alone."""
        if self.done[0] > len(self.again):
            self.entry.end(self._snapshot(), status)

    def _evaluated(self, x: FloatArray) -> tuple[float, float, FloatArray]:
        try:
            value, gradient, bound = self.objective(x)
        except (np.linalg.LinAlgError, FloatingPointError):
            return -np.inf, -np.inf, np.zeros_like(x)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return -np.inf, bound, gradient
        return float(value), float(bound), gradient

    def _memory(self) -> Any:
        return () if self.warm is None else self.warm.snapshot()

    def _snapshot(self) -> Snapshot:
        """With the memory of the last whole evaluation: one that is broken off is made again from there."""
        done, memory = self.done
        tried = Tried(*(np.stack(part) for part in zip(*self.tried[:done], strict=True)))
        return self.watch.snapshot((tried, memory))


def _hash(x: FloatArray) -> np.uint64:
    return np.frombuffer(hashlib.blake2b(x.tobytes(), digest_size=8).digest(), np.uint64)[0]


class _Climb:
    """One call of `ascend`: counts, remembers the best point, and decides to stop."""

    def __init__(
        self,
        objective: _Known,
        x: FloatArray,
        max_iter: int,
        tol: float,
        patience: int,
        watch: Watch,
    ) -> None:
        self.objective, self.best, self.max_iter = objective, x, max_iter
        self.tol, self.patience, self.watch = tol, patience, watch
        self.value = -np.inf
        self.bounds: dict[float, float] = {}
        self.values: list[float] = []
        self.status = Status.MAX_ITER

    def begin(self) -> bool:
        """Is there a value at the start?"""
        value, _, _ = self.objective(self.best)
        self.value = value
        self.values.append(value)
        return bool(np.isfinite(value))

    def run(self, bounds: Sequence[tuple[float | None, float | None]]) -> None:
        """L-BFGS, begun again once where a line search finds nothing although there was progress."""
        for _ in range(2):
            n_before = self.watch.n_done
            outcome = minimize(
                self._loss,
                self.best,
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                callback=self._after,
                options={
                    "maxcor": MEMORY, "maxiter": self.max_iter - self.watch.n_done,
                    "maxfun": 20 * self.max_iter + 100, "ftol": 0.0, "gtol": 1e-9, "maxls": 10,
                },
            )  # fmt: skip
            if self.status is not Status.MAX_ITER or self.watch.n_done >= self.max_iter:
                return
            if outcome.status == 0 or self.watch.n_done == n_before:
                break
        self.status = Status.CONVERGED

    def _loss(self, x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient, bound = self.objective(x)
        if not np.isfinite(value):
            size = _WALL * max(1.0, abs(self.value))
            away = x - self.best
            return -self.value + size, away * (size / max(float(away @ away), 1e-12))
        self.bounds[-value] = bound
        return -value, -gradient

    def _after(self, intermediate_result: Any) -> None:
        """After each iteration: remember, report, decide."""
        value = -float(intermediate_result.fun)
        bound = self.bounds.get(-value, value)
        self.bounds.clear()
        self.best, self.value = np.array(intermediate_result.x), value
        self.values.append(value)
        if self.watch.record(bound):
            self.status = Status.STOPPED
        elif len(self.values) > self.patience and value - self.values[-1 - self.patience] < self.tol:
            self.status = Status.CONVERGED
        if self.status is not Status.MAX_ITER:
            raise StopIteration
