"""Mini-batches: one step is one epoch, in which every row is used once, in random order.

The model gives `local(key, params, batch) -> stats`, a pytree that is a SUM over the rows of the batch (its
gradients or sufficient statistics, each row times its weight) with "bound" among its entries, and
`update(state, stats, scale) -> (state, info)`, where `scale * stats` estimates the sum over all rows.
`Epoch` does this for rows in memory and is a step for `compiled`; `minibatch` is the adapter for
rows that live in a `Source`. There, where a batch is to hold all rows, `local` runs where the parts are and
only its sums come here; else blocks of rows come here, a few parts shuffled together, and are cut into
batches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from nongauss.core.device import double_precision, record, replace, split_named
from nongauss.core.errors import InputError
from nongauss.core.records import value
from nongauss.optimise.compiled import OnDevice
from nongauss.optimise.course import Course, Status
from nongauss.optimise.loop import Adapter
from nongauss.tables.source import Source

SLICE = 8192
"""Rows that `local` is given at once on a device: what it needs for a row it needs for so many."""

_SMALLEST = 64
_MULTIPLE = 8


@record
class PaddedRows:
    """N_padded rows, of which the first `n_rows` are real; the others have weight 0.

    data : pytree of arrays, each (N_padded, ...)
    weight : (N_padded,)
    n_rows : scalar; a number, not a shape, so that another one does not recompile
    held_out : any pytree that `finish` may look at; never cut into batches
    n_all : where these are only some of the rows, how many there are in all
    """

    data: Any
    weight: jax.Array
    n_rows: jax.Array
    held_out: Any = None
    n_all: Any = None


Local = Callable[[jax.Array, Any, PaddedRows], Mapping[str, Any]]
Update = Callable[[Any, Mapping[str, Any], jax.Array], tuple[Any, Mapping[str, jax.Array]]]
Finish = Callable[[jax.Array, Any, PaddedRows], tuple[Any, Mapping[str, jax.Array]]]


@value
class Epoch:
    """A step for the loop that runs one epoch; `local`, `update`, `finish` are hashable values or functions.

    The state must have `.params`. A batch is a `PaddedRows` with `batch_size` rows, the last one of the epoch
    filled up with rows of weight 0 that repeat a real row. If all rows fit in one batch they are used in
    their order. `batch_size=None` is all rows.

    The epoch's info: "bound" is the sum of the batches' bounds (each at the parameters it met), any other
    entry the mean over the batches of what `update` reports. `finish(key, state, rows)` sees the state after
    the last batch and may change it; its info (a bound of its own, "stop") replaces or joins the epoch's.

    More than `SLICE` rows at once are summed in slices, all rows of a table on every device its own.
    """

    local: Local
    update: Update
    batch_size: int | None
    finish: Finish | None = None

    def __call__(self, key: jax.Array, state: Any, rows: PaddedRows) -> tuple[Any, dict[str, jax.Array]]:
        """One epoch: the step of the loop."""
        keys = split_named(key, "order", "local", "finish")
        n_padded = rows.weight.shape[0]
        if self.batch_size is None or self.batch_size >= n_padded:
            real, n_devices = jnp.arange(n_padded) < rows.n_rows, _n_sharing(n_padded)
            state, info = self._batch(keys["local"], state, rows, real, n_devices)
        else:
            state, info = self._epoch(keys, state, rows, self.batch_size)
        if self.finish is not None:
            state, more = self.finish(keys["finish"], state, rows)
            info = info | dict(more)
        return state, info

    def _batch(
        self, key: jax.Array, state: Any, batch: PaddedRows, real: jax.Array, n_devices: int = 1
    ) -> tuple[Any, dict[str, jax.Array]]:
        """One update from one batch; `real` (B,) says which of its rows count."""
        n_batch = real.sum(dtype=jnp.int32)
        weight = jnp.where(real, batch.weight, 0.0)
        counted = replace(batch, weight=weight, n_rows=n_batch, held_out=None)
        is_large = n_devices > 1 and weight.shape[0] > SLICE
        stats = (_on_devices if is_large else in_slices)(self.local, key, state.params, counted)
        n_all = batch.n_rows if batch.n_all is None else batch.n_all
        state, info = self.update(state, stats, n_all.astype(weight.dtype) / n_batch)
        return state, {**info, "bound": stats["bound"]}

    def _epoch(
        self, keys: dict[str, jax.Array], state: Any, rows: PaddedRows, size: int
    ) -> tuple[Any, dict[str, jax.Array]]:
        """Batches of `size` rows from a random order of the real rows; their number is not compiled in."""
        order = jnp.pad(_random_order(keys["order"], rows), (0, size))
        n_batches = (rows.n_rows + size - 1) // size

        @jax.jit  # traced once, although it is used for the shapes and for the loop
        def batch(i: jax.Array, state: Any) -> tuple[Any, dict[str, jax.Array]]:
            real = i * size + jnp.arange(size) < rows.n_rows
            taken = jnp.where(real, jax.lax.dynamic_slice(order, (i * size,), (size,)), 0)
            data, weight = jax.tree.map(lambda array: array[taken], (rows.data, rows.weight))
            picked = replace(rows, data=data, weight=weight)
            state, info = self._batch(jax.random.fold_in(keys["local"], i), state, picked, real)
            return state, {name: jnp.asarray(number, dtype) for name, number in info.items()}

        def body(i: jax.Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            state, total = carry
            state, info = batch(i, state)
            return state, jax.tree.map(jnp.add, total, info)

        dtype = jnp.result_type(rows.weight)
        shapes = jax.eval_shape(batch, jnp.int32(0), state)[1]
        total = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
        state, total = jax.lax.fori_loop(jnp.int32(0), n_batches, body, (state, total))
        return state, {name: sum_ if name == "bound" else sum_ / n_batches for name, sum_ in total.items()}


def pad_rows(data: Any, weight: np.ndarray, held_out: Any = None) -> PaddedRows:
    """`PaddedRows` of host arrays (N, ...), padded up to a bucket: data sets of about one size compile once.

    Padding repeats the first row (legal values, weight 0) and adds at most an eighth of N, or what lacks to
    64 rows. Raises InputError for no rows, or arrays of unequal length.
    """
    n_rows = len(weight)
    lengths = {len(array) for array in jax.tree.leaves(data)} | {n_rows}
    if len(lengths) != 1 or n_rows == 0:
        raise InputError(f"Rows need arrays of one positive length, got lengths {sorted(lengths)}.")
    extra = bucket(n_rows) - n_rows

    def pad(array: Any) -> np.ndarray:
        array = np.asarray(array)
        return np.concatenate([array, np.repeat(array[:1], extra, axis=0)])

    padded = np.concatenate([np.asarray(weight), np.zeros(extra, np.asarray(weight).dtype)])
    return PaddedRows(
        jax.tree.map(lambda array: jax.device_put(pad(array)), data),
        jax.device_put(padded),
        jax.device_put(np.int32(n_rows)),
        held_out,
    )


def over_devices(rows: PaddedRows) -> PaddedRows:
    """The rows shared out evenly over all devices of the process, so that a sum over them is one of sums.

    A step that takes all rows at once then runs on all devices, and the compiler adds the sums up. With one
    device the rows are as they were.
    """
    if _n_sharing(rows.weight.shape[0]) == 1:
        return rows
    by_rows = NamedSharding(_devices(), PartitionSpec("rows"))  # type: ignore[no-untyped-call]
    data, weight = jax.device_put((rows.data, rows.weight), by_rows)
    return replace(rows, data=data, weight=weight)


def _n_sharing(n_padded: int) -> int:
    """How many devices share so many rows: all, or one if that does not go evenly."""
    return jax.device_count() if n_padded % jax.device_count() == 0 else 1


def _devices() -> Mesh:
    return Mesh(np.asarray(jax.devices()), ("rows",))


def _on_devices(local: Local, key: jax.Array, params: Any, batch: PaddedRows) -> Mapping[str, Any]:
    """`local` of a batch, each device going over its own rows, which the compiler does not see to."""

    def own(key: jax.Array, params: Any, rows: PaddedRows) -> Any:
        key = jax.random.fold_in(key, jax.lax.axis_index("rows"))
        return jax.lax.psum(in_slices(local, key, params, rows), "rows")  # type: ignore[no-untyped-call]

    here, everywhere = PartitionSpec("rows"), PartitionSpec()  # type: ignore[no-untyped-call]
    split = PaddedRows(here, here, everywhere, n_all=everywhere)  # type: ignore[arg-type]
    shared = jax.shard_map(
        own, mesh=_devices(), in_specs=(everywhere, everywhere, split), out_specs=everywhere, check_vma=False
    )
    return shared(key, params, batch)  # type: ignore[no-any-return]


def in_slices(local: Local, key: jax.Array, params: Any, batch: PaddedRows) -> Mapping[str, Any]:
    """`local` of a batch; of one over `SLICE` rows, the sum over slices of it, with a key each.

    Slices are of one shape: the last one begins early, and its rows that were met before have weight 0.
    """
    n_batch = batch.weight.shape[0]
    if n_batch <= SLICE:
        return local(key, params, batch)

    @jax.jit  # traced once, although it is used for the shapes and for the loop
    def one(i: jax.Array) -> Mapping[str, Any]:
        first = jnp.minimum(i * SLICE, n_batch - SLICE)
        data, weight = jax.tree.map(
            lambda array: jax.lax.dynamic_slice_in_dim(array, first, SLICE), (batch.data, batch.weight)
        )
        weight = jnp.where(first + jnp.arange(SLICE) >= i * SLICE, weight, 0.0)
        return local(jax.random.fold_in(key, i), params, replace(batch, data=data, weight=weight))

    def body(i: jax.Array, total: Any) -> Any:
        return jax.tree.map(jnp.add, total, one(i))

    shapes = jax.eval_shape(one, jnp.int32(0))
    zeros = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    total: Mapping[str, Any] = jax.lax.fori_loop(jnp.int32(0), jnp.int32(-(-n_batch // SLICE)), body, zeros)
    return total


def bucket(n: int) -> int:
    """The smallest size >= n of the series 64, 72, ... that grows by at most an eighth, in multiples of 8."""
    size = _SMALLEST
    while size < n:
        size += size // (8 * _MULTIPLE) * _MULTIPLE
    return size


def _random_order(key: jax.Array, rows: PaddedRows) -> jax.Array:
    """(N_padded,) indices: the real rows in random order, then the padding.

    Random bits and index share one 64-bit number: sorting one array is many times faster than sorting pairs.
    """
    n_padded = rows.weight.shape[0]
    bits = jax.random.bits(key, (n_padded,), jnp.uint32)
    with double_precision():
        index = jnp.arange(n_padded, dtype=jnp.uint64)
        last = (index >= rows.n_rows.astype(jnp.uint64)).astype(jnp.uint64) << 63
        packed = last | (bits.astype(jnp.uint64) >> 1 << 32) | index
        return jnp.sort(packed).astype(jnp.uint32).astype(jnp.int32)


class Batch(NamedTuple):
    """A part of a source: `data` is a tuple of arrays, each (N, ...), and weight (N,)."""

    data: tuple[Any, ...]
    weight: Any


def minibatch(step: Epoch, source: Source, n_rows: int, held_out: Any = None) -> Adapter:
    """The adapter of epochs over a source of `Batch` parts with `n_rows` rows in all.

    Epoch i depends on the state and `fold_in(key, i)` alone, so a fit that goes on from its checkpoint ends
    as if it had not been interrupted. The model's "stop" ends the run as EARLY_STOPPED.
    """
    return _OverSource(step, source, n_rows, held_out)


class _OverSource(OnDevice):
    """Epochs in which every row of the source is used once."""

    def __init__(self, step: Epoch, source: Source, n_rows: int, held_out: Any) -> None:
        self.step, self.source, self.n_rows = step, source, n_rows
        self.batches = replace(step, finish=None)
        self.held_out = jax.tree.map(jax.device_put, held_out)

    def drive(self, course: Course) -> None:
        """Run one epoch after the other until the course says stop."""
        course.says_enough = Status.EARLY_STOPPED
        while course.goes_on:
            course.record(*self.epoch(jax.random.fold_in(self.key, course.n_iter), course.state))

    def epoch(self, key: jax.Array, state: Any) -> tuple[Any, dict[str, float]]:
        """The state after an epoch, and its info."""
        keys = split_named(key, "order", "local", "finish")
        size = self.step.batch_size
        if size is None or size >= self.n_rows:
            state, info = self._at_once(keys["local"], state)
        else:
            state, info = self._by_blocks(keys, state)
        if self.step.finish is not None:
            nothing = PaddedRows(None, np.zeros(0), np.int32(0), self.held_out)  # type: ignore[arg-type]
            state, more = _finished(self.step, keys["finish"], state, nothing)
            info = info | dict(more)
        return state, {name: float(value) for name, value in info.items()}

    def _at_once(self, key: jax.Array, state: Any) -> tuple[Any, dict[str, Any]]:
        params = jax.tree.map(np.asarray, state.params)
        stats = self.source.sum(statistics, self.step.local, np.asarray(jax.random.key_data(key)), params)
        state, info = _updated(self.step, state, stats)
        return state, {**info, "bound": stats["bound"]}

    def _by_blocks(self, keys: Mapping[str, jax.Array], state: Any) -> tuple[Any, dict[str, Any]]:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(keys["order"])))
        total: dict[str, Any] = {}
        n_blocks = 0
        for block in self.source.blocks(rng):
            if not len(block.weight):
                continue
            rows = replace(pad_rows(block.data, block.weight), n_all=np.int32(self.n_rows))
            state, info = _moved(self.batches, jax.random.fold_in(keys["local"], n_blocks), state, rows)
            total = {name: total.get(name, 0.0) + value for name, value in info.items()}
            n_blocks += 1
        return state, {name: sum_ if name == "bound" else sum_ / n_blocks for name, sum_ in total.items()}


@partial(jax.jit, static_argnames="step")
def _moved(step: Epoch, key: jax.Array, state: Any, rows: PaddedRows) -> tuple[Any, dict[str, Any]]:
    return step(key, state, rows)


@partial(jax.jit, static_argnames="step")
def _finished(step: Epoch, key: jax.Array, state: Any, rows: PaddedRows) -> tuple[Any, Mapping[str, Any]]:
    assert step.finish is not None
    return step.finish(key, state, rows)


@partial(jax.jit, static_argnames="step")
def _updated(step: Epoch, state: Any, stats: Any) -> tuple[Any, Mapping[str, Any]]:
    return step.update(state, stats, jnp.ones(()))


def statistics(part: Batch, local: Local, key: np.ndarray, params: Any) -> Mapping[str, Any] | None:
    """`local` of a part, as host arrays; in double precision where the parameters are."""
    if not len(part.weight):
        return None
    is_double = any(leaf.dtype == np.float64 for leaf in jax.tree.leaves(params))
    with double_precision() if is_double else contextlib.nullcontext():
        own = jax.random.wrap_key_data(jnp.asarray(key))
        found: Mapping[str, Any] = jax.tree.map(
            np.asarray, _local(local, own, params, pad_rows(part.data, part.weight))
        )
    return found


@partial(jax.jit, static_argnames="local")
def _local(local: Local, key: jax.Array, params: Any, rows: PaddedRows) -> Mapping[str, Any]:
    return in_slices(local, key, params, rows)
