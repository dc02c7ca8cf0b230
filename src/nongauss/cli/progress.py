"""What a person sees of work under way: bars on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nongauss.optimise.course import Progress


@contextmanager
def fit_progress(*, enabled: bool | None = None) -> Iterator[list[Callable[[Progress], None]]]:
    """Callbacks for an estimator that move a bar on stderr; none where stderr is no terminal.

    A fit that starts again from a lower iteration starts the bar again. Plain functions are given, since
    cloning an estimator copies its callbacks and a bar cannot be copied.
    """
    if not _wanted(enabled):
        yield []
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("fitting"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("bound {task.fields[bound]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("fit", total=None, bound="…")

        def move(progress: Progress) -> None:
            bar.update(
                task, completed=progress.iteration, total=progress.max_iter, bound=f"{progress.bound:.5g}"
            )

        yield [move]


@contextmanager
def count_progress(*, enabled: bool | None = None) -> Iterator[Callable[[int, int, str], None]]:
    """A function (done, total, name) that moves a bar on stderr; without a terminal it does nothing."""
    if not _wanted(enabled):
        yield lambda done, total, name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def move(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=name)

        yield move


def _wanted(enabled: bool | None) -> bool:
    return sys.stderr.isatty() if enabled is None else enabled
