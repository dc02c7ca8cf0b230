"""Partitions of Dask collections whose tasks say for which of them they failed.

What fails before a partition is there fails in a task of its owner's, and Dask raises that task's error,
which knows nothing of partitions. So every such task is given the name of the partition that it is for.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nongauss.core.errors import InputError


def named(handles: Sequence[Any]) -> list[Any]:
    """The same delayed partitions, which raise InputError naming the partition where one cannot be computed.

    Tasks keep their keys and what they depend on, so they are shared with other collections as before. What
    several partitions need is left as it is.
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
    return [Delayed(handle.key, whole, layer=layer) for handle in handles]


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
            f"{name}: Dask cannot compute it ({told}); mend what it is made from, or leave it out."
        ) from error
