"""Rows on the workers of a Dask cluster: arguments go out, sums come back in a tree.

Parts are made once by `map` and stay where they are. Whatever a worker held when it died is made again from
its own recipe by another one, so a fit that loses workers ends with the same numbers: pairs are added in
the order of the parts, whoever finishes first.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from nongauss.core.memory import keep_freed_memory
from nongauss.tables.source import MIXED, Local, itself, joined, total, with_arguments

GRACE = 60.0
"""Seconds without any worker after which a pass is given up."""

BRANCHES = 8
"""Records that are added at once."""

_LOOK = 1.0  # seconds between two looks at a pass that is under way


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
        return Cluster(self.client, self._begun(*self._graph(function, args, self.handles)))

    def sum(self, local: Local, *args: Any) -> Any:
        """The sum of `local(part, *args)` over all parts, added up on the workers."""
        graph, records = self._graph(local, args, self.handles)
        while len(records) > 1:
            groups = [records[i : i + BRANCHES] for i in range(0, len(records), BRANCHES)]
            records = _keys("total", len(groups))
            graph |= {key: (total, group) for key, group in zip(records, groups, strict=True)}
        return self._result(self._begun(graph, records)[0])

    def each(self, local: Local, *args: Any) -> Iterator[Any]:
        """`local(part, *args)` of one part after the other; only that comes over the wire."""
        return self._ahead(local, args, self.handles)

    def blocks(self, rng: np.random.Generator, mixed: int = MIXED) -> Iterator[Any]:
        """All rows once, some parts at a time, brought here while the former ones are computed on."""
        order = rng.permutation(len(self.handles))
        parts = self._ahead(itself, (), [self.handles[i] for i in order])
        while some := list(islice(parts, mixed)):
            yield joined(some)

    def _graph(
        self, function: Local, args: tuple[Any, ...], handles: Sequence[Any]
    ) -> tuple[dict[Any, Any], list[Any]]:
        """A Dask graph with one task a part, and the keys of these.

        Function and arguments are one node of it: sent once, and never lost with a worker.
        """
        (given,) = _keys(f"given-{_name(function)}", 1)
        graph, keys = self._tasks(_name(function), given, handles)
        return {given: with_arguments(function, args), **graph}, keys

    def _tasks(self, name: str, work: Any, handles: Sequence[Any]) -> tuple[dict[Any, Any], list[Any]]:
        """The same where the work is a node of the graph, or a future."""
        from dask import is_dask_collection
        from dask.core import quote
        from dask.highlevelgraph import HighLevelGraph

        lazy = [handle for handle in handles if is_dask_collection(handle)]
        graph: dict[Any, Any] = HighLevelGraph.merge(*(handle.dask for handle in lazy)).to_dict()
        keys = _keys(name, len(handles))
        for key, handle in zip(keys, handles, strict=True):
            graph[key] = (_of_part, work, handle.key if is_dask_collection(handle) else quote(handle))
        return graph, keys

    def _ahead(self, function: Local, args: tuple[Any, ...], handles: Sequence[Any]) -> Iterator[Any]:
        """Results in order; the next ones are made meanwhile. Function and arguments are sent once."""
        (given,) = _keys(f"given-{_name(function)}", 1)
        (work,) = self._begun({given: with_arguments(function, args)}, [given])
        tasks = (self._begun(*self._tasks(_name(function), work, [handle]))[0] for handle in handles)
        begun = list(islice(tasks, MIXED + 1))
        while begun:
            result = self._result(begun.pop(0))
            begun += islice(tasks, 1)
            yield result

    def _begun(self, graph: dict[Any, Any], keys: list[Any]) -> list[Any]:
        """The futures of some keys of a graph."""
        from distributed.client import ClosedClientError

        try:
            futures: list[Any] = self.client.get(graph, keys, sync=False)
        except (ClosedClientError, OSError) as error:
            raise _gone(error) from error
        return futures

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
                    if future.status == "error":  # the task's own, which may be of the same kind
                        raise future.exception() from None
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


def _of_part(work: Callable[[Any], Any], part: Any) -> Any:
    keep_freed_memory()
    return work(part)


def _name(function: Local) -> str:
    """What the dashboard calls it."""
    return getattr(function, "__name__", type(function).__name__)


def _keys(name: str, n: int) -> list[tuple[str, int]]:
    """The keys of `n` tasks that Dask takes for one group."""
    unique = f"{name}-{uuid.uuid4().hex}"
    return [(unique, number) for number in range(n)]


def _gone(error: Exception) -> ConnectionError:
    return ConnectionError(f"The Dask scheduler is gone ({type(error).__name__}); start the cluster again.")
