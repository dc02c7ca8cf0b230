"""How many threads small work is done by: one, since several mostly wait for each other."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

_MOST_CELLS = 200_000
"""Cells of a table on which a second thread of trees and of matrix products gains less than it costs."""


@contextmanager
def threads_for(table: Any) -> Iterator[None]:
    """In the block, BLAS and OpenMP work with one thread where the table is in memory and small.

    Threads that wait for their turn spin: on a machine that has other work a fit of trees to 800 rows took
    twenty times as long as with one thread.
    """
    shape = getattr(table, "shape", ())  # a file has none, and lazy tables have rows without a number
    is_known = len(shape) == 2 and all(isinstance(n, int) for n in shape)
    if not is_known or math.prod(shape) > _MOST_CELLS:
        yield
        return
    with _pools(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _pools(n_modules: int) -> ThreadpoolController:
    """The thread pools of all loaded libraries: looked for again where modules have been loaded since.

    It takes milliseconds, and some reports score thousands of small tables.
    """
    return ThreadpoolController()
