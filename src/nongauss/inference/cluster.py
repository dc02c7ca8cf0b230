"""Rows on the workers of a Dask cluster: arguments go out, sums come back in a tree.

Parts are made once by `map` and stay where they are. Whatever a worker held when it died is made again from
its own recipe by another one, so a fit that loses workers ends with the same numbers: pairs are added in
the order of the parts, whoever finishes first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np

from nongauss.inference.sources import MIXED, Local, called, itself, joined, total

GRACE = 60.0
"""Seconds without any worker after which a pass is given up."""

BRANCHES = 8
"""Records that are added at once."""

_LOOK = 1.0  # seconds between two looks at a pass that is under way

_TRIM = "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_"


@contextmanager
def local_cluster(n_workers: int | None = None) -> Iterator[Any]:
    """A `distributed.LocalCluster` of single-threaded workers, one a core unless told.

    Dask has glibc give memory back early, which makes every large temporary array fresh pages: a pass over a
    Gaussian process's rows then takes half as long again. These workers keep what they freed.
    """
    import dask
    from distributed import LocalCluster

    with (
        dask.config.set({_TRIM: None}),
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as local,
    ):
        yield local


class Cluster:
    """Parts on the workers of a `distributed.Client`. A handle is a future, a Dask delayed or a value."""

    def __init__(self, client: Any, handles: Sequence[Any]) -> None:
        self.client, self.handles = client, handles

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.handles)

    def map(self, function: Local, *args: Any) -> Cluster:
        """The parts `function(part, *args)`, begun to be made and kept on the workers."""
        return Cluster(self.client, self._begun(self._tasks(function, args)))

    def sum(self, local: Local, *args: Any) -> Any:
        """The sum of `local(part, *args)` over all parts, added up on the workers."""
        from dask import delayed

        records = self._tasks(local, args)
        while len(records) > 1:
            groups = [records[i : i + BRANCHES] for i in range(0, len(records), BRANCHES)]
            records = [delayed(total, pure=False)(group) for group in groups]
        return self._result(self._begun(records[0]))

    def each(self, local: Local, *args: Any) -> Iterator[Any]:
        """`local(part, *args)` of one part after the other; only that comes over the wire."""
        return self._ahead(self._tasks(local, args))

    def blocks(self, rng: np.random.Generator, mixed: int = MIXED) -> Iterator[Any]:
        """All rows once, some parts at a time, brought here while the former ones are computed on."""
        order = rng.permutation(len(self.handles))
        tasks = self._tasks(itself, ())
        parts = self._ahead([tasks[i] for i in order])
        while some := list(islice(parts, mixed)):
            yield joined(some)

    def _tasks(self, function: Local, args: tuple[Any, ...]) -> list[Any]:
        """One task a part. Arguments are one node of the graph: sent once, and never lost with a worker."""
        from dask import delayed

        given = delayed(args, traverse=False, pure=False)
        task = delayed(called, pure=False, traverse=False)
        return [task(function, given, handle) for handle in self.handles]

    def _ahead(self, tasks: Sequence[Any]) -> Iterator[Any]:
        """Results in order; the next one is made meanwhile."""
        begun = [self._begun(task) for task in tasks[: MIXED + 1]]
        for number in range(len(tasks)):
            result = self._result(begun.pop(0))
            if number + MIXED + 1 < len(tasks):
                begun.append(self._begun(tasks[number + MIXED + 1]))
            yield result

    def _begun(self, tasks: Any) -> Any:
        """The future of a task, or a list of them."""
        from distributed.client import ClosedClientError

        try:
            return self.client.compute(tasks)
        except (ClosedClientError, OSError) as error:
            raise _gone(error) from error

    def _result(self, future: Any) -> Any:
        """Wait for a result. Raises what a task raised; ConnectionError where no worker is left."""
        from distributed import TimeoutError as Waiting
        from distributed.client import ClosedClientError, FutureCancelledError
        from distributed.scheduler import KilledWorker

        alone_since = None
        try:
            while True:
                try:
                    return future.result(timeout=_LOOK)
                except Waiting:
                    alone = not self.client.nthreads()
                    alone_since = (alone_since or time.monotonic()) if alone else None
                if alone_since is not None and time.monotonic() - alone_since > GRACE:
                    break
        except KilledWorker as error:
            raise ConnectionError(
                f"A part of the table ended every worker that tried it ({error.last_worker.address} last); "
                "give workers more memory, or the table smaller parts."
            ) from error
        except (FutureCancelledError, ClosedClientError, OSError) as error:
            if future.status == "error":  # the task's own
                raise
            raise _gone(error) from error
        raise ConnectionError(
            f"No worker has been left on the Dask cluster {self.client.scheduler.address} for {GRACE:.0f} "
            "seconds; start workers and fit again."
        )


def _gone(error: Exception) -> ConnectionError:
    return ConnectionError(f"The Dask scheduler is gone ({type(error).__name__}); start the cluster again.")
