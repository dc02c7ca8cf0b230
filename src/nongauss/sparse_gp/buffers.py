"""Large arrays of a fit that are used again, and freed with the fit.

Each evaluation of the bound makes a dozen matrices of the size of K_zx and drops them. The C library gives
such memory back to the system, which clears it before it hands it out again; that takes up to half of a small
evaluation. Within `recycled()` an array from `empty` comes from a pool: one that nobody refers to any more,
if there is one of about its size. Outside it is a new one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

SMALLEST = 2**12
"""Numbers below which an array is not worth a place in the pool."""

_UNUSED = 3  # references to an array of the pool that no view has: the list's, the loop's, and the question's

_POOL: ContextVar[list[NDArray[np.float64]] | None] = ContextVar("pool", default=None)


@contextmanager
def recycled() -> Iterator[None]:
    """In this block, `empty` uses arrays again that are no longer referred to; inner blocks share them."""
    if _POOL.get() is not None:
        yield
        return
    token = _POOL.set([])
    try:
        yield
    finally:
        _POOL.reset(token)


def empty(*shape: int) -> NDArray[np.float64]:
    """An array of this shape, C order, with anything in it."""
    pool, size = _POOL.get(), math.prod(shape)
    if pool is None or size < SMALLEST:
        return np.empty(shape)
    for base in pool:
        if size <= base.size <= 2 * size and sys.getrefcount(base) == _UNUSED:
            return base[:size].reshape(shape)
    pool.append(np.empty(size))
    return pool[-1][:size].reshape(shape)


def product(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """A @ B in an array of the pool."""
    return np.matmul(A, B, out=empty(len(A), B.shape[1]))


def times(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """A * B, in the shape of A, in an array of the pool."""
    return np.multiply(A, B, out=empty(*A.shape))
