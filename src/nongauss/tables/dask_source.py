"""Rows on the workers of a Dask cluster: arguments go out, sums come back in a tree.

Parts are made once by `map` and stay where they are. Whatever a worker held when it died is made again from
its own recipe by another one, so a fit that loses workers ends with the same numbers: pairs are added in
the order of the parts, whoever finishes first.
"""

from __future__ import annotations

import ctypes
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.tables.frame import n_rows_of
from nongauss.tables.parquet import split_off
from nongauss.tables.source import MIXED, Local, Part, Stream, is_dask, itself, joined, total, with_arguments

GRACE = 60.0
"""Seconds without any worker after which a pass is given up."""

BRANCHES = 8
"""Records that are added at once."""

_LOOK = 1.0  # seconds between two looks at a pass that is under way

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
"""Names of parameters of malloc in malloc.h."""

LARGEST_KEPT = 2**25
"""Largest size of an array whose memory a worker keeps when it is freed, 32 MiB."""


class Cluster:
    """Parts on the workers of a `distributed.Client`. A handle is a future, a Dask delayed or a value."""

    in_memory = False

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
        """One task for each handle, where the work is a node of the graph or a future; and their keys."""
        from dask.base import is_dask_collection
        from dask.core import quote
        from dask.highlevelgraph import HighLevelGraph

        lazy = [handle for handle in handles if is_dask_collection(handle)]
        graph: dict[Any, Any] = HighLevelGraph.merge(*(handle.dask for handle in lazy)).to_dict()
        keys = _keys(name, len(handles))
        for key, handle in zip(keys, handles, strict=True):
            graph[key] = (_of_part, work, handle.key if is_dask_collection(handle) else quote(handle))  # type: ignore[no-untyped-call]
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


def keep_freed_memory() -> bool:
    """Have the GNU C library keep freed arrays of up to `LARGEST_KEPT` bytes for the next ones. Does it?

    It gives them back to the system, to be cleared and mapped again, until one of their size was freed, and
    in Dask's workers, which set MALLOC_TRIM_THRESHOLD_, always; that took a third of a pass or evaluation
    (mallopt(3), M_MMAP_THRESHOLD). Other C libraries have no such choice.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST_KEPT) and mallopt(_TRIM_THRESHOLD, 2 * LARGEST_KEPT))


def _of_part(work: Callable[[Any], Any], part: Any) -> Any:
    keep_freed_memory()
    return work(part)


def _name(function: Local) -> str:
    """The name that the dashboard shows."""
    return getattr(function, "__name__", type(function).__name__)


def _keys(name: str, n: int) -> list[tuple[str, int]]:
    """The keys of `n` tasks that Dask takes for one group."""
    unique = f"{name}-{uuid.uuid4().hex}"
    return [(unique, number) for number in range(n)]


def _gone(error: Exception) -> ConnectionError:
    return ConnectionError(f"The Dask scheduler is gone ({type(error).__name__}); start the cluster again.")


def dask_source(X: Any, y: Any, weight: Any, beside: Mapping[str, Any]) -> Stream | Cluster:
    """The partitions of a Dask collection, on the workers of the running cluster if there is one.

    Target, weights and what is beside are names of columns, or collections that are partitioned alike.
    Raises InputError.
    """
    handles = _parts(X, {"y": y, "sample_weight": weight, **beside})
    client = _client()
    return Stream(handles, _computed) if client is None else Cluster(client, handles)


def lazily(work: Callable[[Part], Any], X: Any) -> Any:
    """`work` of each partition of a Dask collection, one below the other, as a Dask array.

    Its kind and width are told by two rows of gaps.
    """
    import dask.array as da
    from dask.delayed import delayed

    gaps: Any = np.full((2, X.shape[1]), np.nan)
    is_array = not hasattr(X, "columns")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        like = work(Part("X", gaps if is_array else pd.DataFrame(gaps, columns=X.columns)))
    handles = _delayed(X)
    lengths = X.chunks[0] if is_array else (np.nan,) * len(handles)
    of: Any = da.from_delayed
    task, given = delayed(_of_partition, pure=False), delayed(work, pure=False, traverse=False)
    parts = [
        of(task(given, like[:0], number, rows), (length, *like.shape[1:]), meta=like[:0])
        for number, (rows, length) in enumerate(zip(handles, lengths, strict=True))
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)  # type: ignore[no-untyped-call]


def _of_partition(work: Callable[[Part], Any], nothing: Any, number: int, X: Any) -> Any:
    return work(Part(f"partition {number}", X)) if n_rows_of(X) else nothing


def _client() -> Any:
    """The client of the running cluster, if there is one."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None


def _computed(handle: Any) -> Part:
    part: Part = handle.compute(scheduler="synchronous")
    return part


def _parts(X: Any, others: Mapping[str, Any]) -> list[Any]:
    """One delayed `Part` a partition."""
    from dask.delayed import delayed

    tables = _delayed(X)
    columns = {}
    for what, given in others.items():
        columns[what] = [given] * len(tables)
        if given is not None and not isinstance(given, str):
            if not is_dask(given):
                raise InputError(
                    f"{what} must be in parts like X: got {type(given).__name__}; "
                    "pass the name of a column, or a Dask series or array."
                )
            columns[what] = _delayed(given)
        if len(columns[what]) != len(tables):
            raise InputError(
                f"X has {len(tables)} partitions and {what} has {len(columns[what])}; partition both alike."
            )
    made = delayed(_assembled, pure=False)
    rows = zip(tables, *columns.values(), strict=True)
    return [made(f"partition {number}", list(columns), *row) for number, row in enumerate(rows)]


def _delayed(collection: Any) -> list[Any]:
    """The partitions of a collection as its owner counts them: blocks of whole rows, `named`.

    Of a frame the optimiser would read several as one, each column in its own way.
    """
    if hasattr(collection, "simplify"):
        return named(collection.simplify().to_delayed(optimize_graph=False))
    if collection.ndim > 1:
        collection = collection.rechunk({1: -1})
    return named(collection.to_delayed().ravel())


def _assembled(name: str, what: list[str], X: Any, *others: Any) -> Part:
    given = dict(zip(what, others, strict=True))
    names = {key: column for key, column in given.items() if isinstance(column, str)}
    target, weight = names.pop("y", None), names.pop("sample_weight", None)
    part = split_off(name, X, target, weight, names)
    y, heavy = given.pop("y"), given.pop("sample_weight")
    beside = {key: column for key, column in given.items() if column is not None and key not in names}
    return part._replace(
        y=y if target is None else part.y,
        weight=heavy if weight is None else part.weight,
        beside={**part.beside, **beside},
    )


def named(handles: Sequence[Any]) -> list[Any]:
    """Delayed partitions like the given ones, which raise InputError naming one that cannot be computed.

    What fails before a partition is there fails in a task of its owner's, and Dask raises that task's error,
    which knows nothing of partitions. So every such task is told the name of the partition that it is for.
    Tasks keep their keys and what they depend on, so they are shared with other collections as before. What
    several partitions need is left as it is. `Task` is the class of Dask's written specification of graphs
    (docs.dask.org, "Specification"), though it has no public place to import it from yet.
    """
    from dask._task_spec import Task, TaskRef, convert_legacy_graph
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    graph: dict[Any, Any] = HighLevelGraph.merge(*(handle.dask for handle in handles)).to_dict()
    tasks = convert_legacy_graph(graph)
    for key, number in _owners(tasks, [handle.key for handle in handles]).items():
        task = tasks[key]
        if number is not None and type(task) is Task:  # kinds of their own mean something to the scheduler
            needed = sorted(task.dependencies, key=str)
            attempt = partial(_attempt, f"partition {number}", task, needed)
            graph[key] = Task(key, attempt, *map(TaskRef, needed), _data_producer=task.data_producer)
    layer = f"partitions-{uuid.uuid4().hex}"
    whole = HighLevelGraph.from_collections(layer, graph, dependencies=())
    return [Delayed(handle.key, whole, layer=layer) for handle in handles]  # type: ignore[no-untyped-call]


def _owners(tasks: Mapping[Any, Any], ends: Sequence[Any]) -> dict[Any, int | None]:
    """The one partition that each task is for, partition i being `ends[i]`; None of what several need."""
    owner: dict[Any, int | None] = {}
    for number, end in enumerate(ends):
        waiting = [end]
        while waiting:
            key = waiting.pop()
            if key not in tasks or owner.get(key, -1) in (number, None):
                continue
            owner[key] = None if key in owner else number
            waiting += tasks[key].dependencies
    return owner


def _attempt(name: str, task: Callable[[Mapping[Any, Any]], Any], needed: Sequence[Any], *values: Any) -> Any:
    """The task's result. InputErrors, memory that is short and what tells Dask's scheduler something pass."""
    try:
        return task(dict(zip(needed, values, strict=True)))
    except (InputError, MemoryError):
        raise
    except Exception as error:
        if type(error).__module__.split(".")[0] == "distributed":
            raise
        lines = str(error).splitlines()
        told = ": ".join([type(error).__name__, *lines[:1]]).rstrip(".")
        raise InputError(
            f"{name}: Dask cannot compute it ({told}); correct its source, or leave it out."
        ) from error
