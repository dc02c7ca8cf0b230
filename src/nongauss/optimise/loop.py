"""THE loop: every fit is a step that is repeated here. It knows no model and no solver.

A step is a function `step(number, state) -> (state, info)`, or an adapter that drives a `Course` itself
because it takes several iterations at a time or has a solver's own control flow inside: `compiled.compiled`,
`minibatch.minibatch`, `lbfgs.lbfgs`, `in_place`. `info` is a mapping of numbers: "bound" (for the trace),
"objective" (what is maximised; the bound where it is not named), "stop" (above 0: the model says enough),
"finite" (the step's own word that its state is finite; else all numbers of the info must be), and others,
which go to the trace.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import nongauss
from nongauss.core.errors import InputError
from nongauss.core.files import target_of
from nongauss.optimise.checkpoint import Checkpoint, Entry, SetAside, computed_once
from nongauss.optimise.course import Course, FitResult, Info, Rule, Run, Snapshot, Status, say
from nongauss.optimise.fingerprint import fingerprint

__all__ = ["Adapter", "InPlace", "close_checkpoint", "in_place", "open_checkpoint", "run"]

Step = Callable[[int, Any], tuple[Any, Info]]


class Adapter(Protocol):
    """A step that drives the course itself."""

    replays: bool
    """Does it take its iterations again from the beginning when a fit goes on from a file?"""

    def begin(self, state: Any, key: Any) -> Any:
        """The state before the first iteration, as the adapter wants it."""

    def packed(self, state: Any) -> Any:
        """All that the next iteration depends on, as a tree of arrays on the host."""

    def unpacked(self, packed: Any, state: Any) -> Any:
        """The state that was packed, one like `state`. Raises ValueError if it is not like it."""

    def drive(self, course: Course) -> None:
        """Iterate and tell the course of it, until it says that this is the end."""

    def ended(self, state: Any) -> None:
        """The run is over, at this state."""


def run(
    step: Step | Adapter,
    state: Any,
    run: Run,
    rule: Rule,
    *,
    name: str,
    key: Any = None,
    former: FitResult | None = None,
    expected: int | None = None,
) -> FitResult:
    """Iterate `step` from `state` until the rule, a failure, a person or the model ends it.

    Parameters
    ----------
    step : a function of the number of the iteration (0, 1, ..., after those of `former`) and the state, which
        must depend on nothing else that changes; or an adapter. key : of an adapter that draws at random.
    run : who watches, and the checkpoint in which the state, a tree of arrays, is kept as `name` (one name
        a step of the fit). If it has been kept there, the fit goes on from it.
    former : a result whose trace and count this one continues. expected : the last iteration, for progress.

    Returns
    -------
    FitResult with the last state that was kept, or the best one where the objective has fallen from it by
    more than the rule's least gain. An iteration that ends non-finite, or lowers an objective that `rises`,
    is not kept; nothing is CONVERGED after a fall. Raises InputError for a checkpoint of another fit;
    KeyboardInterrupt if Ctrl-C comes before the first iteration is done (later, it ends as STOPPED).
    """
    adapter = cast(Adapter, step) if hasattr(step, "drive") else _Plain(step)
    entry = None if run.checkpoint is None else run.checkpoint.entry(name)
    state = adapter.begin(state, key)
    trace = list(former.trace) if former else []
    now = Snapshot(state, trace, former.n_iter if former else 0, trace[-1]["seconds"] if trace else 0.0)
    found = _found(entry, adapter, now)
    if found is not None and found.status is not None:
        adapter.ended(found.state)
        return FitResult(found.state, found.trace, found.status, found.n_iter)
    begin = now if found is None or adapter.replays else found
    course = Course(run, rule, entry, adapter, begin, now.n_iter, expected)
    if found is not None and adapter.replays:
        course.replay(found)
    try:
        adapter.drive(course)
    except KeyboardInterrupt:
        if begin is now and not course.n_done:
            raise
        course.end(Status.STOPPED)
    result = course.result()
    course.finish(result)
    adapter.ended(result.state)
    if run.verbose:
        say(f"iteration {result.n_iter}: {result.status.value}")
    return result


def _found(entry: Entry | None, adapter: Adapter, now: Snapshot) -> Snapshot | None:
    """What the file has of the run, with states as the adapter wants them."""
    found = None if entry is None else entry.load(now._replace(state=adapter.packed(now.state)))
    if entry is None or found is None:
        return None
    try:
        best = None if found.best is None else adapter.unpacked(found.best, now.state)
        return found._replace(state=adapter.unpacked(found.state, now.state), best=best)
    except ValueError as error:
        raise entry.refuse() from error


def open_checkpoint(
    path: str | os.PathLike[str] | None, seed: int, random_state: Any, arrays: Any, *settings: Any
) -> tuple[int, Checkpoint | None]:
    """The seed that a fit to these arrays (a pytree) with these settings began with, and where it is kept.

    A `random_state` that is no integer gives each call a seed of its own; a fit that goes on has that of its
    first call. Without a `path` there is nothing to go on from.
    Raises InputError where no file can be written, and for the file of another fit.
    """
    if path is None:
        return seed, None
    file = target_of(path)
    folder = file.parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise InputError(
            f"checkpoint cannot be written to {folder}: no such folder, or no right to write there."
        )
    begun_with = seed if isinstance(random_state, numbers.Integral) else "any"
    own = fingerprint(arrays, nongauss.__version__, begun_with, *settings)
    checkpoint = Checkpoint(file, own, sets_aside=isinstance(path, SetAside))
    return computed_once(checkpoint, "seed", lambda: seed, seed), checkpoint


def close_checkpoint(checkpoint: Checkpoint | None, status: Status) -> None:
    """A fit that may have a file has ended."""
    if checkpoint is not None:
        checkpoint.end(status)


class OnHost:
    """What adapters of steps on the host share: the state is a tree of arrays there, as a file takes it."""

    replays = False

    def packed(self, state: Any) -> Any:
        return state

    def unpacked(self, packed: Any, state: Any) -> Any:
        return packed


class _Plain(OnHost):
    """The adapter of a function on the host."""

    def __init__(self, step: Any) -> None:
        self.step: Step = step

    def begin(self, state: Any, key: Any) -> Any:
        if key is not None:
            raise TypeError("A step on the host gets the number of its iteration, not a key.")
        return state

    def drive(self, course: Course) -> None:
        while course.goes_on:
            course.record(*self.step(course.n_iter, course.state))

    def ended(self, state: Any) -> None:
        pass


class InPlace(Protocol):
    """A model that changes in place."""

    def epoch(self, number: int) -> Mapping[str, float]:
        """Epoch 0, 1, ...; its info."""

    def snapshot(self) -> Any:
        """All that an epoch depends on, a tree of arrays that stay as they are."""

    def restore(self, at: Any) -> None:
        """Take over what a snapshot says."""


def in_place(model: InPlace) -> Adapter:
    """The adapter of a model that changes in place, which is left at the last state that is kept.

    The state of the run is a snapshot; the one to begin with is the model's own (pass None).
    """
    return _InPlace(model)


class _InPlace(OnHost):
    """The model, and the snapshot at which it stands."""

    def __init__(self, model: InPlace) -> None:
        self.model, self.now = model, model.snapshot()

    def begin(self, state: Any, key: Any) -> Any:
        return self.now if state is None else state

    def drive(self, course: Course) -> None:
        if course.state is not self.now:
            self.model.restore(course.state)
        while course.goes_on:
            info = self.model.epoch(course.n_iter)
            course.record(self.model.snapshot(), info)

    def ended(self, state: Any) -> None:
        self.model.restore(state)
