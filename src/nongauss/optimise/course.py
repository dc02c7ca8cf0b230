"""A run of the loop under way: one trace, one stop rule, one finite check. Importing this loads no JAX."""

from __future__ import annotations

import enum
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from nongauss.optimise.checkpoint import Checkpoint, Entry
    from nongauss.optimise.loop import Adapter

Info = Mapping[str, Any]

FALL = 1e-9
"""A relative fall of a bound that cannot fall is no rounding error beyond this."""

SAY_SECONDS = 0.5
"""Least time between two printed lines."""

COLUMNS = ("iteration", "bound", "objective", "seconds")
"""What each row of a trace has."""

NO_FIGURES = ("bound", "objective", "stop", "finite")
"""Entries of an info that have a place of their own."""


class Status(enum.Enum):
    """How a fit ended. The value is the sentence that the user reads: cause and remedy."""

    CONVERGED = "Converged: the objective no longer improves by more than `tol`."
    EARLY_STOPPED = "Stopped early: rows held out from training no longer improve; the best state is kept."
    COMPLETED = (
        "Completed its schedule of steps or sweeps; raise `max_epochs` (or `max_iter`) for a longer one."
    )
    MAX_ITER = (
        "Reached the largest number of iterations before converging; "
        "raise `max_iter` (or `max_epochs`) or loosen `tol`."
    )
    NONFINITE = (
        "The objective became infinite or not a number; the last finite state is kept. "
        "Lower the learning rate, or look for extreme values in the data."
    )
    BOUND_DECREASED = (
        "The bound fell although this method cannot lower it; the last good state is kept. "
        "Please report this with the data that caused it."
    )
    STALLED = (
        "The line search found no better point although the objective has a slope there: points without a "
        "finite value, or jumps, bar its way; the best state is kept. Look for extreme values in the data, "
        "rescale the target, or choose another likelihood."
    )
    NO_BETTER = (
        "Worse than the same distribution for all rows, which is kept instead. Lower the learning rate or "
        "raise `max_epochs`; else the inputs may say nothing about the target."
    )
    STOPPED = "Stopped on request (Ctrl-C or a callback); the last state is kept."

    @property
    def converged(self) -> bool:
        """Did the fit come to the end that it was meant to have?"""
        return self in (Status.CONVERGED, Status.EARLY_STOPPED, Status.COMPLETED)


@dataclass(frozen=True)
class Progress:
    """What a callback sees each time the loop comes up for air. Returning True from it stops the fit."""

    iteration: int
    max_iter: int
    bound: float
    seconds: float
    info: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """One line, as `verbose` prints it."""
        extras = "".join(f"  {name} {number:.6g}" for name, number in self.info.items())
        where = f"iteration {self.iteration}/{self.max_iter}"
        return f"{where}  bound {self.bound:.8g}{extras}  {self.seconds:.1f} s"


def say(what: object) -> None:
    """Print a line at once, as `verbose` asks; in a notebook in place of the line of progress before."""
    global _shown
    if not in_notebook():
        print(what, flush=True)  # noqa: T201
        return
    text, goes_on = str(what), isinstance(what, Progress)
    print("\r" + text.ljust(_shown), end="" if goes_on else "\n", flush=True)  # noqa: T201
    _shown = len(text) if goes_on else 0


_shown = 0  # characters of the line of progress that stands in a notebook


def in_notebook() -> bool:
    """Does the kernel of a notebook run this, which shows a line anew after a carriage return?"""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


Callback = Callable[[Progress], "bool | None"]


@dataclass(frozen=True)
class Run:
    """Who watches a fit and where it is kept: one value for all loops of the fit.

    `within` gives the run of a part of the fit (a member of an ensemble, a label), in which the names of
    steps are its own.
    """

    callbacks: tuple[Callback, ...] = ()
    checkpoint: Checkpoint | None = None
    verbose: int = 0

    def within(self, part: str) -> Run:
        """This run with step names prefixed by `part`."""
        return self if self.checkpoint is None else replace(self, checkpoint=self.checkpoint.within(part))


NOBODY = Run()
"""The run of a fit that nobody watches and nothing keeps."""


@dataclass(frozen=True)
class FitResult:
    """What the loop returns: `trace` has a mapping for each iteration, with the `COLUMNS`."""

    state: Any
    trace: list[dict[str, float]]
    status: Status
    n_iter: int


class Snapshot(NamedTuple):
    """Where a step stands: its state, the rows of its trace, iterations, seconds, and how it ended if it has.

    States are trees of arrays on the host. `best` is the best state where that is not the last one.
    """

    state: Any
    trace: list[dict[str, float]]
    n_iter: int
    seconds: float
    best: Any = None
    status: Status | None = None


@dataclass(frozen=True)
class Rule:
    """When a fit ends, if neither a failure nor a person nor the model ends it.

    max_iter : most iterations of this call of `run`.
    least_gain : gain at or below which the objective has converged; a fall of more than this is a fall. None:
        `max_iter` is a schedule, whose end is COMPLETED.
    patience : over how many iterations the gain is taken.
    rises : an objective that falls is an error of the model.
    climbs : the step seeks a higher objective. If not, the number is only watched: the fit has converged when
        it changes by no more than `least_gain`, wherever it stands, and the last state is the result.
    """

    max_iter: int
    least_gain: Callable[[float], float] | None = None
    patience: int = 1
    rises: bool = False
    climbs: bool = True


class _Best(NamedTuple):
    """The state with the highest objective so far."""

    objective: float
    state: Any


class Course:
    """A run under way: its trace, its state, its rule, and all who are told of it.

    `done` are the iterations of this call, the state after them and the best state: one value, so that
    Ctrl-C, wherever it comes, finds them together. Before them the fit has had `offset` iterations, which
    took `seconds_before`; their rows are the first `n_former` of `trace_rows`. `objectives` begins with that
    of the first state (minus infinity where it is unknown) and `n_own` of this run from before this call.
    `replayed_until` is where the file stands, if its iterations are taken again to get there.
    """

    says_enough = Status.CONVERGED
    """What an iteration means that says "stop"."""

    def __init__(
        self,
        run: Run,
        rule: Rule,
        entry: Entry | None,
        adapter: Adapter,
        now: Snapshot,
        first: int,
        total: int | None,
    ) -> None:
        self.run, self.rule, self.entry, self.adapter = run, rule, entry, adapter
        self.trace_rows: list[dict[str, float]] = list(now.trace)
        self.n_former, self.offset, self.seconds_before = len(self.trace_rows), now.n_iter, now.seconds
        self.n_todo = rule.max_iter + first - now.n_iter
        self.total = now.n_iter + self.n_todo if total is None else total
        # objectives of this run's own iterations, former results left out
        own = [row["objective"] for row in self.trace_rows[self.n_former - (now.n_iter - first) :]]
        self.objectives, self.n_own = [-math.inf, *own], len(own)
        self.highest = max(self.objectives)
        best = now.state if now.best is None else now.best
        self.done: tuple[int, Any, _Best] = 0, now.state, _Best(self.highest, best)
        self.began = self.printed = time.perf_counter()
        self.seconds_at_last_keep, self.replayed_until = self.seconds_before, Snapshot(None, [], 0, 0.0)
        self.status: Status | None = self._schedule_ended() if self.n_todo <= 0 else None

    @property
    def goes_on(self) -> bool:
        """Is there an iteration to do?"""
        return self.status is None

    @property
    def state(self) -> Any:
        """The state after the last iteration."""
        return self.done[1]

    @property
    def n_done(self) -> int:
        """Iterations of this call."""
        return self.done[0]

    @property
    def n_iter(self) -> int:
        """Iterations in all: the number of the next one."""
        return self.offset + self.n_done

    @property
    def n_left(self) -> int:
        """Iterations that may still be done."""
        return self.n_todo - self.n_done

    def begin_at(self, objective: float) -> None:
        """The objective of the state before the first iteration is known."""
        self.objectives[0] = self.highest = objective
        self.done = self.n_done, self.state, _Best(objective, self.state)

    def replay(self, found: Snapshot) -> None:
        """The iterations up to those of `found` are taken again: nobody is told of them a second time."""
        self.replayed_until, self.seconds_before = found, found.seconds

    def record(self, state: Any, info: Info) -> bool:
        """One more iteration. Does the run go on?"""
        return self.take([info], lambda n: state)

    def take(self, infos: Sequence[Info], state_after: Callable[[int], Any]) -> bool:
        """Several iterations; `state_after(n)` is the state after the first n. Does the run go on?"""
        n_kept, status = 0, None
        for info in infos:
            status, is_kept = self._judged(info)
            if is_kept:
                n_kept += 1
                self.objectives.append(_objective(info))
                self.highest = max(self.highest, self.objectives[-1])
            if status is not None:
                break
        if n_kept:
            self._keep(infos[:n_kept], state_after)
            asked = self._tell()
            status = status or (Status.STOPPED if asked else None)
        if status is None and self.n_left <= 0:
            status = self._schedule_ended()
        self.status = status
        if status is None:
            self.save()
        return status is None

    def end(self, status: Status) -> None:
        """The adapter's own solver has come to an end."""
        self.status = status

    def save(self) -> None:
        """Write where the run stands, if it is time to."""
        if self.entry is not None and self.n_iter >= self.replayed_until.n_iter:
            self.entry.save(self.snapshot)

    def finish(self, result: FitResult) -> None:
        """The run is over: the file gets its result or, if it was stopped, all that it goes on from."""
        if self.entry is None or self.n_iter < self.replayed_until.n_iter:
            return
        now = self.snapshot()
        if result.status is not Status.STOPPED:
            now = now._replace(state=self.adapter.packed(result.state), best=None)
        self.entry.end(now, result.status)

    def snapshot(self) -> Snapshot:
        """Where the run stands, as the file has it."""
        n_done, state, best = self.done
        trace, packed = self.trace_rows[: self.n_former + n_done], self.adapter.packed(state)
        other = None if best.state is state else self.adapter.packed(best.state)
        return Snapshot(packed, trace, self.offset + n_done, self._seconds(), other)

    def result(self) -> FitResult:
        """What came of the run: the last state, or the best one where the objective has fallen from it."""
        n_done, state, best = self.done
        assert self.status is not None
        if best.objective - self.objectives[self.n_own + n_done] > self._slack(best.objective):
            state = best.state
        return FitResult(state, self.trace_rows[: self.n_former + n_done], self.status, self.offset + n_done)

    def _slack(self, objective: float) -> float:
        """The fall from the best objective that does not count: any, of a schedule or a number watched."""
        rule = self.rule
        return math.inf if rule.least_gain is None or not rule.climbs else rule.least_gain(objective)

    def _judged(self, info: Info) -> tuple[Status | None, bool]:
        """Why the run should end after this iteration, if it should, and whether the iteration is kept."""
        rule, objective, last = self.rule, _objective(info), self.objectives[-1]
        if not _is_finite(info):
            return Status.NONFINITE, False
        if rule.rises and objective < last - _rounding(info["bound"]) * max(1.0, abs(objective)):
            return Status.BOUND_DECREASED, False
        if info.get("stop", 0.0) > 0.0:
            return self.says_enough, True
        if rule.least_gain is None or len(self.objectives) < rule.patience:
            return None, True
        gain, least = objective - self.objectives[-rule.patience], rule.least_gain(objective)
        is_still = (gain if rule.rises else abs(gain)) <= least
        has_fallen = self.highest - objective > self._slack(objective)
        return (Status.CONVERGED if is_still and not has_fallen else None), True

    def _keep(self, infos: Sequence[Info], state_after: Callable[[int], Any]) -> None:
        """Take iterations over into trace and state."""
        n_done, now = self.n_done, self._seconds()
        for i, info in enumerate(infos, start=1):
            row = {"iteration": self.offset + n_done + i, "bound": float(info["bound"])}
            row["objective"] = _objective(info)
            row["seconds"] = self.seconds_at_last_keep + (now - self.seconds_at_last_keep) * i / len(infos)
            n_ahead = self.replayed_until.n_iter - int(row["iteration"])
            if n_ahead >= 0:
                row["seconds"] = self.replayed_until.trace[-1 - n_ahead]["seconds"]
            others = {name: float(number) for name, number in info.items() if name not in NO_FIGURES}
            self.trace_rows.append(row | others)
        state = state_after(len(infos))
        self.done = n_done + len(infos), state, self._best_of(infos, state, state_after)
        self.seconds_at_last_keep = now

    def _best_of(self, infos: Sequence[Info], state: Any, state_after: Callable[[int], Any]) -> _Best:
        """The best state so far: the last, unless the objective has fallen to it by more than the slack.

        Of a schedule, or a number that is only watched, it is always the last.
        """
        last, former = _objective(infos[-1]), self.done[2]
        if math.isinf(self._slack(last)):
            return _Best(last, state)
        objectives = [_objective(info) for info in infos]
        highest = max(objectives)
        if max(former.objective, highest) - last <= self._slack(last):
            return _Best(max(former.objective, highest), state)
        if highest > former.objective:
            return _Best(highest, state_after(1 + objectives.index(highest)))
        return former

    def _tell(self) -> bool:
        """Word to everyone of the last iteration. Does anyone ask to stop?"""
        row, now = self.trace_rows[self.n_former + self.n_done - 1], time.perf_counter()
        if self.n_iter <= self.replayed_until.n_iter:
            return False
        others = {name: number for name, number in row.items() if name not in COLUMNS}
        progress = Progress(self.n_iter, self.total, row["bound"], row["seconds"], others)
        if self.run.verbose and now - self.printed > SAY_SECONDS:
            self.printed = now
            say(progress)
        asked = [bool(callback(progress)) for callback in self.run.callbacks]  # every one is told
        return any(asked)

    def _schedule_ended(self) -> Status:
        return Status.COMPLETED if self.rule.least_gain is None else Status.MAX_ITER

    def _seconds(self) -> float:
        return self.seconds_before + time.perf_counter() - self.began


def _objective(info: Info) -> float:
    return float(info.get("objective", info["bound"]))


def _is_finite(info: Info) -> bool:
    """The one finite check: the step's own word of its state, and its numbers."""
    if "finite" in info:
        return bool(info["finite"]) and math.isfinite(info["bound"]) and math.isfinite(_objective(info))
    return all(math.isfinite(number) for number in info.values())


def _rounding(bound: Any) -> float:
    """The relative fall that a number of this precision may take by rounding."""
    return max(FALL, 10.0 * float(np.finfo(bound.dtype).eps)) if isinstance(bound, np.floating) else FALL
