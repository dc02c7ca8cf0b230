"""The mini-batch engine for rows that live in a `Source`: one iteration is one epoch over its blocks.

The step is that of `gradient.py`, and so are `local`, `update` and `finish`. Where a batch is to hold all
rows, `local` runs where the parts are and only its sums come here; else blocks of rows come here, a few parts
shuffled together, and are cut into batches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace as replaced
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from nongauss.core.device import double_precision, replace, split_named
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.loop import repeat
from nongauss.optimise.minibatch import GradientStep, Local, Rows, in_slices, pad_rows
from nongauss.optimise.result import Callback, FitResult, Status
from nongauss.tables.source import Source


class Batch(NamedTuple):
    """A part of the source: `data` is a tuple of arrays, each (N, ...), and weight (N,)."""

    data: tuple[Any, ...]
    weight: Any


def run(
    step: GradientStep,
    key: jax.Array,
    state: Any,
    source: Source,
    n_rows: int,
    held_out: Any = None,
    *,
    max_iter: int,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> FitResult:
    """Epochs over a source of `Batch` parts with `n_rows` rows in all; arguments and result as of `loop.run`.

    Epoch i depends on `state` and `fold_in(key, i)` alone, so a fit that goes on from its checkpoint ends as
    if it had not been interrupted. `max_iter` is a schedule, whose end is COMPLETED.
    """
    epoch = _Epoch(step, source, n_rows, held_out)

    def one(at: tuple[int, jax.Array, Any]) -> tuple[tuple[int, jax.Array, Any], Mapping[str, float]]:
        number, own, state = at
        state, info = epoch(jax.random.fold_in(own, number), state)
        return (number + 1, own, state), info

    result = repeat(
        one, (0, key, jax.tree.map(jax.device_put, state)), max_iter=max_iter, callbacks=callbacks,
        checkpoint=checkpoint, verbose=verbose,
    )  # fmt: skip
    early = result.status is Status.CONVERGED
    status = Status.EARLY_STOPPED if early else result.status
    return replaced(result, state=result.state[-1], status=status)


class _Epoch:
    """One epoch: every row once."""

    def __init__(self, step: GradientStep, source: Source, n_rows: int, held_out: Any) -> None:
        self.step, self.source, self.n_rows = step, source, n_rows
        self.batches = replaced(step, finish=None)
        self.held_out = jax.tree.map(jax.device_put, held_out)

    def __call__(self, key: jax.Array, state: Any) -> tuple[Any, dict[str, float]]:
        """The state after an epoch, and its info."""
        keys = split_named(key, "order", "local", "finish")
        size = self.step.batch_size
        if size is None or size >= self.n_rows:
            state, info = self._at_once(keys["local"], state)
        else:
            state, info = self._by_blocks(keys, state)
        if self.step.finish is not None:
            nothing = Rows(None, np.zeros(0), np.int32(0), self.held_out)  # type: ignore[arg-type]
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
def _moved(step: GradientStep, key: jax.Array, state: Any, rows: Rows) -> tuple[Any, dict[str, Any]]:
    return step(key, state, rows)


@partial(jax.jit, static_argnames="step")
def _finished(step: GradientStep, key: jax.Array, state: Any, rows: Rows) -> tuple[Any, Mapping[str, Any]]:
    assert step.finish is not None
    return step.finish(key, state, rows)


@partial(jax.jit, static_argnames="step")
def _updated(step: GradientStep, state: Any, stats: Any) -> tuple[Any, Mapping[str, Any]]:
    return step.update(state, stats, jax.numpy.ones(()))


def statistics(part: Batch, local: Local, key: np.ndarray, params: Any) -> Mapping[str, Any] | None:
    """`local` of a part, as host arrays; in double precision where the parameters are."""
    if not len(part.weight):
        return None
    is_double = any(leaf.dtype == np.float64 for leaf in jax.tree.leaves(params))
    with double_precision() if is_double else contextlib.nullcontext():
        own = jax.random.wrap_key_data(jax.numpy.asarray(key))
        found: Mapping[str, Any] = jax.tree.map(
            np.asarray, _local(local, own, params, pad_rows(part.data, part.weight))
        )
    return found


@partial(jax.jit, static_argnames="local")
def _local(local: Local, key: jax.Array, params: Any, rows: Rows) -> Mapping[str, Any]:
    return in_slices(local, key, params, rows)
