"""How many threads small work is done by: one, since several mostly wait for each other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

_MOST_CELLS = 200_000
"""Cells of a table on which a second thread of trees and of matrix products gains less than it costs."""


@contextmanager
def threads_for(n_cells: int) -> Iterator[None]:
    """In the block, BLAS and OpenMP work with one thread where the table, rows times columns, is small.

    Threads that wait for their turn spin: on a machine that has other work a fit of trees to 800 rows took
    twenty times as long as with one thread.
    """
    if n_cells > _MOST_CELLS:
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
