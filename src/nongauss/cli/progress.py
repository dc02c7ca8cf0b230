"""What a person sees of work under way, on stderr: a bar on a terminal, else a line every few seconds."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nongauss.optimise.course import Progress

FIRST_LINE = 2.0
"""Seconds of silence in a log before the first line."""

NEXT_LINE = 5.0
"""Seconds between the lines of a log after it, where there is something new to say."""

SAME_LINE = 30.0
"""Seconds between lines that only tell that the command is alive."""


class Silent:
    """Shows nothing: with --json and --quiet."""

    def step(self, name: str) -> None:
        """The command begins a step, such as "reading data.csv"."""

    def at(self, done: int, total: int | None, said: str) -> None:
        """`done` of `total` iterations, folds or parts of the step are over; `said` is what else there is."""

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Text may be printed in the block."""
        yield

    def close(self) -> None:
        """End the display with the command."""


class Log(Silent):
    """Lines such as "12 s  fitting: iteration 30 of 400, objective -123.4": at each step, and between steps.

    A command that is over within `FIRST_LINE` seconds prints nothing. The lines between steps come from a
    thread, so that they come while a file is read, too.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._began = time.perf_counter()
        self._step, self._detail, self._printed = "starting", "", False
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="nongauss progress")
        self._thread.start()

    def step(self, name: str) -> None:
        """A line at once, if there was one before."""
        with self._lock:
            self._step, self._detail = name, ""
            if self._printed:
                self._print()

    def at(self, done: int, total: int | None, said: str) -> None:
        """Set the text of the next line."""
        count = f"{done} of {total}" if total else str(done)
        with self._lock:
            self._detail = f": {count}, {said}" if said else f": {count}"

    def close(self) -> None:
        """Print no more lines."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        wait, silent, said = FIRST_LINE, SAME_LINE, ""
        while not self._over.wait(wait):
            with self._lock:
                now = f"{self._step}{self._detail}"
                if now != said or silent >= SAME_LINE:
                    self._print()
                    silent, said = 0.0, now
            wait = NEXT_LINE
            silent += wait

    def _print(self) -> None:
        seconds = time.perf_counter() - self._began
        self._printed = True
        try:
            self._stream.write(f"{seconds:.0f} s  {self._step}{self._detail}\n")
            self._stream.flush()
        except (OSError, ValueError):  # nobody reads it any more
            self._over.set()


class Bar(Silent):
    """A bar of the step under way, which goes when the command is over."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(),
        )
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("starting", total=None, said="")
        self._bar.start()

    def step(self, name: str) -> None:
        """Start the bar anew for the next step."""
        self._bar.reset(self._task, total=None, description=name, said="")

    def at(self, done: int, total: int | None, said: str) -> None:
        """A fit that starts again from a lower iteration starts the bar again."""
        self._bar.update(self._task, completed=done, total=total, said=said)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the bar while something else is printed."""
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()

    def close(self) -> None:
        """Remove the bar."""
        self._bar.stop()


def display(*, silent: bool) -> Silent:
    """What shows progress here: nothing on request, a bar on a terminal, lines of a log in a pipe."""
    if silent:
        return Silent()
    return Bar() if sys.stderr.isatty() else Log(sys.stderr)


def of_fit(
    shown: Silent, check: Callable[[], bool | None] = lambda: None, what: str = "objective {:.6g}"
) -> Callable[[Progress], bool]:
    """A callback for an estimator, which is stopped by what `check` raises, or ends where it is True.

    `what` is said of the objective so far, once there is one. It is a plain function, since cloning an
    estimator copies its callbacks, and a bar cannot be copied.
    """

    def move(progress: Progress) -> bool:
        is_to_end = check() is True
        known = math.isfinite(progress.bound)
        shown.at(progress.iteration, progress.max_iter, what.format(progress.bound) if known else "")
        return is_to_end

    return move
