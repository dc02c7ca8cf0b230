"""L-BFGS on the host with the house's trace, stop rule, callbacks and ends. It knows no model.

For objectives whose gradient is written by hand in NumPy; SciPy's L-BFGS-B does the steps (Byrd, Lu, Nocedal
and Zhu 1995).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from nongauss.core.contracts import Callback, FitResult, Status
from nongauss.inference.watch import Watch

FloatArray = NDArray[np.float64]
Objective = Callable[[FloatArray], tuple[float, FloatArray, Mapping[str, float]]]

MEMORY = 50
"""Pairs of steps from which the curvature is estimated."""

_WALL = 1e3
"""How much worse than the last good point a point without a value looks to the line search."""


def ascend(
    objective: Objective,
    x: FloatArray,
    bounds: Sequence[tuple[float | None, float | None]],
    *,
    max_iter: int,
    tol: float,
    patience: int = 20,
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
    former: FitResult | None = None,
) -> FitResult:
    """Climb from `x` until `patience` iterations together gain less than `tol`, or something else ends it.

    Parameters
    ----------
    objective : x -> (value to maximise, its gradient, info with "bound" and other numbers for the trace).
        Where it raises LinAlgError or FloatingPointError, or is not finite, the line search turns back.
    bounds : one (low, high) for each element of x; None is open.
    max_iter : most iterations of this call. former : a result whose trace and count this one continues.

    Returns
    -------
    FitResult whose state is the best x; NONFINITE with `x` itself if there is no value at the start.
    Raises KeyboardInterrupt if Ctrl-C comes before the first iteration is done; later it ends as STOPPED.
    """
    watch = Watch(max_iter, callbacks, verbose, former)
    climb = _Climb(objective, np.array(x, dtype=np.float64), max_iter, tol, patience, watch)
    if not climb.begin():
        return watch.result(climb.best, Status.NONFINITE)
    try:
        climb.run(bounds)
    except KeyboardInterrupt:
        if not watch.n_done:
            raise
        climb.status = Status.STOPPED
    return watch.result(climb.best, climb.status)


class _Climb:
    """One call of `ascend`: counts, remembers the best point, and decides to stop."""

    def __init__(
        self,
        objective: Objective,
        x: FloatArray,
        max_iter: int,
        tol: float,
        patience: int,
        watch: Watch,
    ) -> None:
        self.objective, self.best, self.max_iter = objective, x, max_iter
        self.tol, self.patience, self.watch = tol, patience, watch
        self.value = -np.inf
        self.infos: dict[float, Mapping[str, float]] = {}
        self.values: list[float] = []
        self.status = Status.MAX_ITER

    def begin(self) -> bool:
        """Is there a value at the start?"""
        value, _, _ = self._tried(self.best)
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
        value, gradient, info = self._tried(x)
        if not np.isfinite(value):
            size = _WALL * max(1.0, abs(self.value))
            away = x - self.best
            return -self.value + size, away * (size / max(float(away @ away), 1e-12))
        self.infos[-value] = info
        return -value, -gradient

    def _tried(self, x: FloatArray) -> tuple[float, FloatArray, Mapping[str, float]]:
        try:
            value, gradient, info = self.objective(x)
        except (np.linalg.LinAlgError, FloatingPointError):
            return -np.inf, np.zeros_like(x), {}
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return -np.inf, gradient, info
        return float(value), gradient, info

    def _after(self, intermediate_result: Any) -> None:
        """After each iteration: remember, report, decide."""
        value = -float(intermediate_result.fun)
        info = self.infos.get(-value, {})
        self.infos.clear()
        self.best, self.value = np.array(intermediate_result.x), value
        self.values.append(value)
        others = {name: number for name, number in info.items() if name != "bound"}
        asked = self.watch.record(info.get("bound", value), others)
        if asked:
            self.status = Status.STOPPED
        elif len(self.values) > self.patience and value - self.values[-1 - self.patience] < self.tol:
            self.status = Status.CONVERGED
        if self.status is not Status.MAX_ITER:
            raise StopIteration
