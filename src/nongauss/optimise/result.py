"""How a fit ended, and what is told of it on the way. Plain Python: importing this loads no JAX."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nongauss.optimise.checkpoint import Checkpoint


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
        "finite value bar its way; the best state is kept. Look for extreme values in the data, rescale the "
        "target, or choose another likelihood."
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
    """Print a line at once: what `verbose` asks for."""
    print(what, flush=True)  # noqa: T201


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
    """What the loop returns: `trace` has a mapping for each iteration, with the `COLUMNS` of `course`."""

    state: Any
    trace: list[dict[str, float]]
    status: Status
    n_iter: int
