"""The adapter of L-BFGS on the host, for objectives with gradients in NumPy. It knows no model.

SciPy's L-BFGS-B does the steps (Byrd, Lu, Nocedal and Zhu 1995); the course of the run judges its iterates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from nongauss.optimise.course import Course, Status
from nongauss.optimise.loop import Adapter

FloatArray = NDArray[np.float64]
Objective = Callable[[FloatArray], tuple[float, FloatArray, float]]
Bounds = Sequence[tuple[float | None, float | None]]

MEMORY = 50
"""Pairs of steps from which the curvature is estimated."""

PATIENCE = 20
"""Iterations that together gain too little before a climb has converged."""

FLAT = 1e-5
"""Largest element of the projected gradient, as a share of the objective's size, at the top of a climb."""

SHORT = 1e-3
"""At a top a step this short, along the slope, gains less than what counts as a gain."""

CRAWL = (1e-1, 1e-2, 1e-3)
"""Lengths of steps up the slope where a line search has found nothing."""

MOST_RESCUES = 5
"""Such steps in one run: each has to bring what counts as a gain, and costs a line search more."""

_WALL = 1e3
"""How much worse than the last good point a point without a value looks to the line search."""


@runtime_checkable
class Remembers(Protocol):
    """An objective whose value at a point depends on where it has been before."""

    def snapshot(self) -> Any:
        """What it remembers, a pytree that stays as it is."""

    def restore(self, at: Any) -> None:
        """Go back to what `snapshot` gave."""


Evaluation = tuple[np.uint64, float, float, FloatArray]


class Tried(NamedTuple):
    """Evaluations so far: a hash of each point (n,), value (n,), bound (n,) and gradient (n, D)."""

    point: NDArray[np.uint64]
    value: FloatArray
    bound: FloatArray
    gradient: FloatArray


def lbfgs(objective: Objective, bounds: Bounds) -> Adapter:
    """The adapter of a climb of `objective` within `bounds`; the state of the run is the point x.

    objective : x -> (value to maximise, its gradient, the bound for the trace). Where it raises LinAlgError
        or FloatingPointError, or is not finite, the line search turns back.
    bounds : one (low, high) for each element of x; None is open.

    The trace has the value as "objective". An iterate is accepted only if it has a value and that is no fall;
    from another one the climb begins again at the best point, with a fresh memory. The run ends as CONVERGED
    by the rule (choose a patience of several iterations, `PATIENCE`), where the gradient is flat, or where no
    step gains within the precision of the objective; as STALLED where points without a value, or jumps, bar
    the way; as NONFINITE if there is no value at the start.

    A checkpoint keeps the evaluations. A fit that goes on takes the same steps through them again, which
    costs no evaluation and leaves the optimiser's own memory as it was.
    """
    return _Lbfgs(objective, bounds)


class _Lbfgs:
    """One climb: the objective with its kept evaluations, and SciPy's iterates as they are judged."""

    replays = True

    def __init__(self, objective: Objective, bounds: Bounds) -> None:
        self.known, self.bounds = _Known(objective), bounds

    def begin(self, state: Any, key: Any) -> FloatArray:
        if key is not None:
            raise TypeError("L-BFGS draws nothing at random: it takes no key.")
        return np.array(state, dtype=np.float64)

    def packed(self, state: FloatArray) -> Any:
        return state, *self.known.packed(len(state))

    def unpacked(self, packed: Any, state: FloatArray) -> FloatArray:
        x, tried, memory, rest = packed
        if x.shape != state.shape:
            raise ValueError("The point has another length.")
        self.known.remember(tried, memory, rest)
        return np.asarray(x)

    def ended(self, state: Any) -> None:
        pass

    def drive(self, course: Course) -> None:
        """L-BFGS, begun again where a line search finds nothing although there was progress."""
        self.course, self.x = course, course.state
        self.known.save = course.save if course.entry is not None else None
        self.value, self.slope, _ = self.known(self.x)
        if not np.isfinite(self.value):
            course.end(Status.NONFINITE)
            return
        course.begin_at(self.value)
        self.known.accept()
        n_rounds = self.n_rescues = 0
        while course.goes_on:
            n_before, before = course.n_done, self.value
            self.tried: dict[bytes, tuple[float, FloatArray, float]] = {}
            how = self._climb()
            n_rounds += 1
            if not course.goes_on:
                return
            if how == _EXHAUSTED:
                course.end(Status.MAX_ITER)
            elif (
                how == _NO_MORE
                or course.n_done == n_before
                or (n_rounds > 1 and self.value - before <= self._least())
            ):
                if not self._found_another_way():
                    course.end(self._no_way())
            else:
                self.known.back()

    def _climb(self) -> int:
        """One call of SciPy's from the best point: SciPy's word for how it ended."""
        return int(
            minimize(
                self._loss,
                self.x,
                jac=True,
                method="L-BFGS-B",
                bounds=self.bounds,
                callback=self._after,
                options={
                    "maxcor": MEMORY,
                    "maxiter": self.course.n_left,
                    "maxfun": 20 * self.course.n_todo + 100,
                    "ftol": 0.0,
                    "gtol": 1e-9,
                    "maxls": 10,
                },
            ).status
        )

    def _loss(self, x: FloatArray) -> tuple[float, FloatArray]:
        """What SciPy minimises; a point without a value looks like a wall around the last good one."""
        value, gradient, bound = self.known(x)
        self.tried[x.tobytes()] = value, gradient, bound
        if not np.isfinite(value):
            size = _WALL * max(1.0, abs(self.value))
            away = x - self.x
            return -self.value + size, away * (size / max(float(away @ away), 1e-12))
        return -value, -gradient

    def _after(self, intermediate_result: Any) -> None:
        """After each iteration of SciPy's: is it one of the climb, and does the climb go on?"""
        x = np.array(intermediate_result.x)
        value, gradient, bound = self.tried.get(x.tobytes(), (-np.inf, self.slope, -np.inf))
        if not value >= self.value:
            raise StopIteration
        if value > self.value:
            self.tried.clear()
        self.x, self.value, self.slope = x, value, gradient
        self.known.accept()
        if not self.course.record(x, {"bound": bound, "objective": value}):
            raise StopIteration

    def _found_another_way(self) -> bool:
        """Is a point higher that a failed line search has passed by, or one a little way up the slope?

        A line search wants a gradient that suits the values. Where an objective is known up to an error only,
        as one with an optimum inside that is found by steps, there may be none although the way goes on.
        """
        if self.n_rescues >= MOST_RESCUES:
            return False
        self.n_rescues += 1
        enough = max(self._least(), np.finfo(float).eps * abs(self.value))
        passed = max(self.tried, key=lambda x: self.tried[x][0], default=None)
        ways = [self.x + way * self._uphill() for way in CRAWL]
        if passed is not None and self.tried[passed][0] > self.value + enough:
            ways.insert(0, np.frombuffer(passed))
        for x in ways:
            self.known.back()
            value, gradient, bound = self.known(x)
            if value > self.value + enough:
                self.x, self.value, self.slope = x.copy(), value, gradient
                self.known.accept()
                self.course.record(self.x, {"bound": bound, "objective": value})
                return True
        return False

    def _uphill(self) -> FloatArray:
        """The slope within the bounds, its largest element 1."""
        low = np.array([-np.inf if low is None else low for low, _ in self.bounds])
        high = np.array([np.inf if high is None else high for _, high in self.bounds])
        reach = np.clip(self.x + self.slope, low, high) - self.x
        steep: FloatArray = reach / max(float(np.abs(reach).max(initial=0.0)), 1e-300)
        return steep

    def _least(self) -> float:
        gain = self.course.rule.least_gain
        return 0.0 if gain is None else gain(self.value)

    def _is_barred(self) -> bool:
        """Have points without a value been met since the last gain?"""
        return any(not np.isfinite(value) for value, _, _ in self.tried.values())

    def _no_way(self) -> Status:
        """No step from here gains: is that the top, to the objective's precision, or a barred slope?"""
        low = np.array([-np.inf if low is None else low for low, _ in self.bounds])
        high = np.array([np.inf if high is None else high for _, high in self.bounds])
        uphill = np.clip(self.x + self.slope, low, high) - self.x
        slope = np.abs(uphill).max(initial=0.0)
        size = max(1.0, abs(self.value))
        is_flat = slope <= FLAT * size
        is_steep = SHORT * slope > max(self._least(), SHORT * SHORT * size)
        return Status.STALLED if (self._is_barred() and not is_flat) or is_steep else Status.CONVERGED


_NO_MORE, _EXHAUSTED = 0, 1
"""SciPy's words: flat or without any gain; out of evaluations. Otherwise a line search found no step."""


class _Known:
    """An objective whose evaluations are kept: those that are on file are not computed again.

    `done` are the evaluations so far and what the objective remembers after them, `rest` what it remembers at
    the best point, to which it goes back from a point without a value.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.save: Callable[[], None] | None = None
        self.warm = objective if isinstance(objective, Remembers) else None
        self.tried: list[Evaluation] = []
        self.again: list[Evaluation] = []
        self.done: tuple[int, Any] = (0, self._memory())
        self.rest = self.done[1]

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray, float]:
        """Value, gradient and bound at x; minus infinity where there is no value."""
        done, memory = self.done
        point = np.uint64(0) if self.save is None else _hash(x)
        if done < len(self.again) and self.again[done][0] == point:
            one = self.again[done]
        else:
            self.again = []
            one = (point, *self._evaluated(x))
            if self.warm is not None and not np.isfinite(one[1]):
                self.warm.restore(self.rest)
            memory = self._memory()
        if self.save is not None:
            self.tried.append(one)
        self.done = done + 1, memory
        if self.save is not None and not self.again:
            self.save()
        _, value, bound, gradient = one
        return float(value), gradient, float(bound)

    def accept(self) -> None:
        """The last point is the best one."""
        if self.done[0] >= len(self.again):  # else what is remembered is that of later evaluations
            self.rest = self.done[1]

    def back(self) -> None:
        """Begin again at the best point."""
        if self.warm is not None and self.done[0] >= len(self.again):
            self.warm.restore(self.rest)
            self.done = self.done[0], self.rest

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

    def packed(self, size: int) -> tuple[Tried, Any, Any]:
        """With the memory of the last whole evaluation: one that is broken off is made again from there."""
        done, memory = self.done
        nothing = Tried(np.zeros(0, np.uint64), np.zeros(0), np.zeros(0), np.zeros((0, size)))
        tried = zip(*self.tried[:done], strict=True)
        return (Tried(*(np.stack(part) for part in tried)) if done else nothing), memory, self.rest

    def remember(self, tried: Tried, memory: Any, rest: Any) -> None:
        """These evaluations were made before, and this is what the objective remembers of them."""
        self.again = list(zip(*tried, strict=True))
        if self.warm is not None:
            self.warm.restore(memory)
        self.done, self.rest = (0, memory), rest


def _hash(x: FloatArray) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(x.tobytes(), digest_size=8).digest(), "little"))
