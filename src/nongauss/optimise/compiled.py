"""The adapter of steps that JAX compiles: chunks of many iterations, between which the loop comes up for air.

A compiled step is a frozen value that compares by content (`nongauss.core.records.value`), callable as

    step(key, state, rows) -> (state, info)

`state` is a pytree whose floating leaves are finite; `info` is a flat dict of scalars with "bound" (it is
maximised), perhaps "stop" (a boolean: the model's own rule says enough) and others that go to the trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nongauss.optimise.course import Course, Status
from nongauss.optimise.loop import Adapter

Step = Callable[[jax.Array, Any, Any], tuple[Any, Mapping[str, jax.Array]]]

CHUNK = 32
"""Most iterations that run without coming up for air."""

AIR_SECONDS = 0.5
"""The loop aims to reach the host about this often."""


class _Chunk(NamedTuple):
    """What a chunk carries and returns: iterations so far, whether the last asks to end it, and all infos."""

    done: jax.Array
    ends: jax.Array
    state: Any
    infos: dict[str, jax.Array]


def compiled(step: Step, rows: Any, air_seconds: float = AIR_SECONDS) -> Adapter:
    """The adapter of a compiled step on these rows.

    Iteration i gets the key `fold_in(key, i)`: how iterations are cut into chunks changes no result. A chunk
    ends early where a step says "stop" or is not finite; where the loop's own rule ends inside a chunk, the
    chunk is run again up to there, to the same bits. The model's "stop" ends the run as EARLY_STOPPED. Raises
    TypeError, when it runs, for a step that breaks its contract.
    """
    return _Compiled(step, rows, air_seconds)


class OnDevice:
    """What adapters of JAX steps share: the state and key on the device, and both on the host for a file."""

    replays = False
    key: jax.Array

    def begin(self, state: Any, key: Any) -> Any:
        """The state as arrays on the device."""
        self.key = key
        return jax.tree.map(_strong, state)

    def packed(self, state: Any) -> Any:
        """Leaves and key as host arrays."""
        return tuple(map(_on_host, jax.tree.leaves((state, self.key))))

    def unpacked(self, packed: Any, state: Any) -> Any:
        """The state on the device; the key is that with which the fit began."""
        leaves, structure = jax.tree.flatten((state, self.key))
        if [_shape(leaf) for leaf in leaves] != [array.shape for array in packed]:
            raise ValueError("The arrays have other shapes.")
        device = [_as_it_was(array, leaf) for array, leaf in zip(packed, leaves, strict=True)]
        state, self.key = jax.tree.unflatten(structure, device)
        return state

    def ended(self, state: Any) -> None:
        """Nothing is left behind."""


class _Compiled(OnDevice):
    """One step on its rows."""

    def __init__(self, step: Step, rows: Any, air_seconds: float) -> None:
        self.step, self.rows, self.air_seconds = step, jax.tree.map(_strong, rows), air_seconds

    def drive(self, course: Course) -> None:
        """Chunk after chunk, each as long as the time to the next breath allows."""
        course.says_enough, length = Status.EARLY_STOPPED, 1
        while course.goes_on:
            began, first, state = time.perf_counter(), course.n_iter, course.state
            length = min(length, course.n_left)
            chunk = self._chunk(state, first, length)
            done, infos = jax.device_get((chunk.done, chunk.infos))
            spent = time.perf_counter() - began
            again = partial(self._state_after, state, first, int(done), chunk.state)
            course.take([{name: part[i] for name, part in infos.items()} for i in range(int(done))], again)
            fitting = int(self.air_seconds * length / max(spent, 1e-9))
            length = max(1, min(fitting, 2 * length, CHUNK))

    def _state_after(self, state: Any, first: int, done: int, last: Any, n: int) -> Any:
        """The state after n iterations of a chunk from `state`, which came to `last` after `done`."""
        return last if n == done else self._chunk(state, first, n).state

    def _chunk(self, state: Any, first: int, length: int) -> _Chunk:
        chunk: _Chunk = _advance(self.step, self.key, state, self.rows, first, length)
        return chunk


@partial(jax.jit, static_argnames="step")
def _advance(step: Step, key: jax.Array, state: Any, rows: Any, first: int, length: int) -> _Chunk:
    """Up to `length` (a traced number <= CHUNK) iterations, fewer if one of them has a reason to end."""
    one = jax.jit(step)  # traced once, although it is used for the shapes and for the loop

    def body(chunk: _Chunk) -> _Chunk:
        state, info = one(jax.random.fold_in(key, first + chunk.done), chunk.state, rows)
        info = {**info, "finite": _is_finite(state, info["bound"])}
        infos = {name: buffer.at[chunk.done].set(info[name]) for name, buffer in chunk.infos.items()}
        ends = ~info["finite"] | (info.get("stop", False) > 0)
        return _Chunk(chunk.done + 1, ends, state, infos)

    outcome = jax.eval_shape(one, key, state, rows)
    _check_contract(state, outcome)
    kinds = {name: info.dtype for name, info in outcome[1].items()} | {"finite": bool}
    infos = {name: jnp.zeros(CHUNK, kind) for name, kind in kinds.items()}
    begin = _Chunk(jnp.int32(0), jnp.bool_(False), state, infos)
    return jax.lax.while_loop(lambda chunk: (chunk.done < length) & ~chunk.ends, body, begin)


def _is_finite(state: Any, bound: jax.Array) -> jax.Array:
    """Are the bound and all floating leaves finite?"""
    floats = [leaf.ravel() for leaf in jax.tree.leaves(state) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return jnp.isfinite(jnp.concatenate([bound.ravel(), *floats])).all()


_OWN = ("iteration", "seconds", "finite")


def _check_contract(state: Any, outcome: tuple[Any, Any]) -> None:
    """Refuse, while compiling, a step whose state changes shape or type or whose info is not flat scalars."""
    new, info = outcome
    structure: Any = jax.tree.structure(new)
    if structure != jax.tree.structure(state):
        raise TypeError(f"The step returned a state of another structure: {structure}.")
    pairs = zip(jax.tree_util.tree_leaves_with_path(state), jax.tree.leaves(new), strict=True)
    for (path, old), leaf in pairs:
        if (old.shape, old.dtype) != (leaf.shape, leaf.dtype):
            got = f"{leaf.dtype}{list(leaf.shape)}, was {old.dtype}{list(old.shape)}"
            name = jax.tree_util.keystr(path)
            raise TypeError(f"The step returned state{name} as {got}; keep shape and type.")
    if "bound" not in info or not jnp.issubdtype(info["bound"].dtype, jnp.floating):
        raise TypeError('The info of a step needs a floating-point "bound".')
    bad = [name for name, leaf in info.items() if leaf.shape != () or name in _OWN]
    if bad:
        raise TypeError(
            f"The info of a step must be scalars, and {', '.join(_OWN)} are the loop's own; see {bad}."
        )


def _strong(leaf: Any) -> jax.Array:
    """The leaf as an array on the device with a type of its own: a Python number would recompile later."""
    array = jax.device_put(leaf)  # unlike jnp.asarray, this compiles nothing
    weak = getattr(array, "weak_type", False)  # an array of keys does not have the word
    return jax.lax.convert_element_type(array, array.dtype) if weak else array


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _on_host(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _shape(leaf: Any) -> tuple[int, ...]:
    return tuple(jax.random.key_data(leaf).shape if _is_key(leaf) else np.shape(leaf))


def _as_it_was(array: np.ndarray, leaf: Any) -> jax.Array:
    """The array on the device, as a key where the leaf is one."""
    device: jax.Array = jax.device_put(array)
    return jax.random.wrap_key_data(device, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else device
