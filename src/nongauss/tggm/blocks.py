"""What is computed of rows block by block, in float64: few rows on the host, more on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Float64

from nongauss.core.device import double_precision
from nongauss.core.threads import threads_for
from nongauss.optimise.minibatch import bucket
from nongauss.tables.sparse import SparseRows
from nongauss.tggm.params import NetworkParams

N_FINE = 64
"""Points of the grid for the probabilities of labels."""

BLOCK, SMALL_BLOCK = 8192, 512
"""Rows that are computed at once: blocks are padded to one of two sizes, so that little is compiled."""

_HOST_BLOCK, _MOST_ON_HOST = 128, 5_000_000
"""Rows that are computed at once on the host; rows times units of all members up to which they are."""

_MOST_NUMBERS = 2**24
"""Numbers that rows computed at once may need: wider rows, or ones of many classes, go in small blocks."""

OfMember = Callable[[NetworkParams, Any], tuple[Any, ...]]
"""What is computed of one member at a block of rows: arrays with one entry a row."""


def _block(X: Any, first: int, n_rows: int, size: int) -> Any:
    """Rows from `first` on, floats in float64, padded by zeros to `size`, sparse ones to a usual width."""

    def cut(array: np.ndarray) -> np.ndarray:
        block = array[first : first + n_rows]
        dtype = np.float64 if block.dtype.kind == "f" else block.dtype
        wider = bucket(block.shape[1]) - block.shape[1] if isinstance(X, SparseRows) else 0
        return np.pad(block.astype(dtype), ((0, size - n_rows), (0, wider)))

    return jax.device_put(jax.tree.map(cut, X))


def in_blocks(
    compute: OfMember, most: int, params: NetworkParams, X: Any, stays: bool = True
) -> list[Float64[np.ndarray, "E N ..."]]:
    """`compute` of each member on blocks of rows in float64.

    Few rows stay on the host, if there is one hidden layer and `compute` may run there (`stays`); else blocks
    are padded to one of two sizes.
    """
    blocks: list[list[np.ndarray]] = []
    if stays and _stay_on_host(params, X):
        members = [_in_double(params, e) for e in range(len(params.b1))]
        with threads_for(X[:1]):
            for first in range(0, len(X), _HOST_BLOCK):
                rows = np.asarray(X[first : first + _HOST_BLOCK], np.float64)
                out = zip(*(compute(member, rows) for member in members), strict=True)
                blocks.append([np.stack(part) for part in out])
        return [np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)]
    if (params.W0.shape[-1] + N_FINE * params.b1.shape[-1]) * most > _MOST_NUMBERS:
        most = SMALL_BLOCK
    with double_precision():
        exact = [_alone(params, e) for e in range(len(params.b1))]
        for first in range(0, len(X), most):
            n_rows = min(most, len(X) - first)
            size = min(most, SMALL_BLOCK) if n_rows <= SMALL_BLOCK else most
            rows = _block(X, first, n_rows, size)
            out = zip(*(compute(member, rows) for member in exact), strict=True)
            blocks.append([np.stack([np.asarray(one)[:n_rows] for one in part]) for part in out])
    return [np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)]


def _stay_on_host(params: NetworkParams, X: Any) -> bool:
    """Are the units of so few rows computed before a function for them would be compiled?"""
    few = isinstance(X, np.ndarray) and 0 < len(X) * params.b0.size <= _MOST_ON_HOST
    return few and not params.deeper


def _in_double(params: NetworkParams, number: int) -> NetworkParams:
    """The parameters of one member without the member axis, in float64."""
    one: NetworkParams = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64)[number], params)
    return one


def _alone(params: NetworkParams, number: int) -> NetworkParams:
    """The same on the device."""
    one: NetworkParams = jax.tree.map(jax.device_put, _in_double(params, number))
    return one
