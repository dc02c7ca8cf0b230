"""What every loop on the host does after an iteration: a row of the trace, and word to who watches."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from nongauss.optimise.checkpoint import Snapshot
from nongauss.optimise.result import Callback, FitResult, Progress, Status, say

SAY_SECONDS = 0.5
"""Least time between two printed lines."""


NO_FIGURES = ("bound", "stop")
"""Entries of a step's info that have a place of their own."""


class Watch:
    """The trace of one run, going on from that of `former`, and its observers.

    `done` are the iterations of this run and the state after them: one value, so that Ctrl-C, wherever it
    comes, finds them together.
    """

    def __init__(
        self,
        max_iter: int,
        callbacks: Sequence[Callback],
        verbose: int,
        former: FitResult | Snapshot | None = None,
    ) -> None:
        self.max_iter, self.callbacks, self.verbose = max_iter, callbacks, verbose
        self.rows: list[dict[str, float]] = list(former.trace) if former else []
        self.n_rows, self.offset = len(self.rows), former.n_iter if former else 0
        self.before = self.rows[-1]["seconds"] if self.rows else 0.0
        self.began = self.printed = time.perf_counter()
        self.done: tuple[int, Any] = (0, former.state if former else None)
        self.silent = 0

    @property
    def n_done(self) -> int:
        """Iterations of this run."""
        return self.done[0]

    @property
    def trace(self) -> list[dict[str, float]]:
        """The rows of all iterations that are done."""
        return self.rows[: self.n_rows + self.n_done]

    def silent_until(self, number: int, seconds: float) -> None:
        """Nobody is told again of the iterations up to `number`, which took so many seconds before."""
        self.silent, self.before = number, seconds

    def record(self, bound: float, others: Mapping[str, float] | None = None, state: Any = None) -> bool:
        """One more iteration of this run: its bound, other numbers and state. Does a callback ask to stop?"""
        n_done, now = self.n_done + 1, time.perf_counter()
        number, seconds = self.offset + n_done, self._seconds()
        info = {name: float(value) for name, value in (others or {}).items() if name not in NO_FIGURES}
        self.rows.append({"iteration": number, "bound": float(bound), "seconds": seconds} | info)
        self.done = n_done, state
        if number <= self.silent:
            return False
        progress = Progress(number, self.offset + self.max_iter, float(bound), seconds, info)
        if self.verbose and now - self.printed > SAY_SECONDS:
            self.printed = now
            say(progress)
        asked = [bool(callback(progress)) for callback in self.callbacks]  # every one is told
        return any(asked)

    def snapshot(self, state: Any) -> Snapshot:
        """Where the run stands, at this state."""
        return Snapshot(state, self.trace, self.offset + self.n_done, self._seconds())

    def result(self, state: Any, status: Status) -> FitResult:
        """What came of the run."""
        n_iter = self.offset + self.n_done
        if self.verbose:
            say(f"iteration {n_iter}: {status.value}")
        return FitResult(state, self.trace, status, n_iter)

    def _seconds(self) -> float:
        return self.before + time.perf_counter() - self.began
