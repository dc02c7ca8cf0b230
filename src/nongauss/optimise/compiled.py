"""THE loop: runs any step in compiled chunks and comes up for air between them.

A step is a frozen value that compares by content (`nongauss.core.records.value`), callable as

    step(key, state, rows) -> (state, info)

`state` is a pytree whose floating leaves are finite; `info` is a flat dict of scalars with "bound" (it is
maximised), perhaps "stop" (a boolean: the model's own rule says enough) and others that go to the trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nongauss.optimise.checkpoint import Checkpoint, Entry, Snapshot, entry_of
from nongauss.optimise.result import Callback, FitResult, Progress, Status, say

Step = Callable[[jax.Array, Any, Any], tuple[Any, Mapping[str, jax.Array]]]

CHUNK = 32
"""Most iterations that run without coming up for air."""

_FALL = 1e-9
"""A relative fall of the bound beyond this is no rounding error."""

_RUNNING, _EARLY, _CONVERGED, _NONFINITE, _DECREASED = range(5)
_ENDINGS = {
    _EARLY: Status.EARLY_STOPPED,
    _CONVERGED: Status.CONVERGED,
    _NONFINITE: Status.NONFINITE,
    _DECREASED: Status.BOUND_DECREASED,
}


class _Memory(NamedTuple):
    """What the stop rules remember: the last bound, the last bound that was progress, iterations since it."""

    previous: jax.Array
    reference: jax.Array
    idle: jax.Array


class _Rules(NamedTuple):
    """Numbers of the stop rules; infinite ones never fire. Traced, so that other numbers do not recompile."""

    tol: float
    patience: int
    fall: float


class _Chunk(NamedTuple):
    """What a chunk carries and returns: `done` iterations were kept, `code` says why it stopped.

    `before` is the state before the last iteration, which stands where that one is not kept: two states cost
    less than choosing between them, array by array, inside the loop.
    """

    done: jax.Array
    code: jax.Array
    before: Any
    state: Any
    memory: _Memory
    infos: dict[str, jax.Array]


def run(
    step: Step,
    key: jax.Array,
    state: Any,
    rows: Any,
    *,
    max_iter: int,
    tol: float | None = None,
    patience: int = 1,
    check_decrease: bool = False,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
    start: FitResult | None = None,
    air_seconds: float = 0.5,
) -> FitResult:
    """Iterate `step` from `state` on `rows` until a rule, a failure, a person or `max_iter` ends it.

    Iteration i gets the key `fold_in(key, i)`: how iterations are cut into chunks changes no result.

    Parameters
    ----------
    max_iter : largest number of iterations, those of `start` included.
    tol, patience : converged when `patience` iterations together did not raise the bound by more than
        `tol * max(1, abs(bound))`. None: never. (For a noisy bound choose a patience of several.)
    check_decrease : the bound of this step cannot fall; a relative fall beyond 1e-9 ends the fit.
    callbacks : called with a `Progress` each time the loop comes up for air; True from one stops the fit.
    checkpoint : written now and then; if its file exists the fit goes on from there, with the key stored in
        it. Brought up to date when the fit is stopped.
    verbose : above 0, a line about every `air_seconds`.
    start : a former result whose trace and iteration count are continued; pass its state as `state`.
    air_seconds : the loop aims to reach the host about this often.

    Returns
    -------
    FitResult whose `trace` has a row for each of the `n_iter` iterations kept, and whose `state` is that
    of the last row. An iteration that ends non-finite, or lowers the bound against `check_decrease`, is
    not kept.

    Raises
    ------
    InputError for a checkpoint of another fit; TypeError for a step that breaks its contract;
    KeyboardInterrupt if Ctrl-C comes before the first iteration is done (later, it ends as STOPPED).
    """
    rules = _Rules(-jnp.inf if tol is None else tol, patience, _FALL if check_decrease else jnp.inf)
    state, rows = jax.tree.map(_strong, (state, rows))
    fit = _Fit(step, rows, rules, max_iter, air_seconds, _begin(key, state, start), entry_of(checkpoint))
    now = fit.now
    if now.status is not None:
        return FitResult(now.state, now.trace, now.status, now.n_iter)
    try:
        status = fit.drive(callbacks, verbose)
    except KeyboardInterrupt:
        if fit.now.n_iter == 0:
            raise
        status = Status.STOPPED
    now = fit.now
    fit.entry.end(now, status)
    if verbose:
        say(f"iteration {now.n_iter}: {status.value}")
    return FitResult(now.state, now.trace, status, now.n_iter)


class _Fit:
    """The host's side of one fit. `now` is replaced in one assignment, so an interrupt finds it whole."""

    def __init__(
        self,
        step: Step,
        rows: Any,
        rules: _Rules,
        max_iter: int,
        air_seconds: float,
        now: Snapshot,
        entry: Entry,
    ) -> None:
        self.step, self.rows, self.rules = step, rows, rules
        self.max_iter, self.air_seconds = max_iter, air_seconds
        self.entry = entry
        self.now = entry.load(now) or now
        self.length = 1

    def drive(self, callbacks: Sequence[Callback], verbose: int) -> Status:
        """Chunk after chunk until one has a reason to end."""
        printed = time.perf_counter()
        while self.now.n_iter < self.max_iter:
            before = self.now.n_iter
            status = self.advance()
            if self.now.n_iter > before:
                progress = self.progress()
                if verbose and time.perf_counter() - printed >= self.air_seconds:
                    say(progress)
                    printed = time.perf_counter()
                asked = [bool(callback(progress)) for callback in callbacks]
                status = status or (Status.STOPPED if any(asked) else None)
            if status is not None:
                return status
            self.entry.save(lambda: self.now)
        return Status.MAX_ITER

    def advance(self) -> Status | None:
        """Run one chunk, take over what it kept, and choose the length of the next."""
        now, began = self.now, time.perf_counter()
        length = min(self.length, self.max_iter - now.n_iter)
        chunk = _advance(self.step, now.key, now.state, self.rows, now.memory, self.rules, now.n_iter, length)
        done, code, infos = jax.device_get((chunk.done, chunk.code, chunk.infos))
        spent, done, code = time.perf_counter() - began, int(done), int(code)
        trace = list(now.trace)
        for i in range(done):
            row = {"iteration": now.n_iter + i + 1, "bound": float(infos["bound"][i])}
            row["seconds"] = now.seconds + spent * (i + 1) / done
            trace.append(row | {name: float(values[i]) for name, values in infos.items() if name not in row})
        self.now = now._replace(
            state=chunk.state if code < _NONFINITE else chunk.before,
            memory=chunk.memory,
            trace=trace,
            n_iter=now.n_iter + done,
            seconds=now.seconds + spent,
        )
        fitting = int(self.air_seconds * length / max(spent, 1e-9))
        self.length = max(1, min(fitting, 2 * length, CHUNK))
        return _ENDINGS.get(code)

    def progress(self) -> Progress:
        """The last row of the trace, as callbacks see it."""
        last = self.now.trace[-1]
        info = {name: last[name] for name in last if name not in ("iteration", "bound", "seconds")}
        return Progress(self.now.n_iter, self.max_iter, last["bound"], last["seconds"], info)


@partial(jax.jit, static_argnames="step")
def _advance(
    step: Step,
    key: jax.Array,
    state: Any,
    rows: Any,
    memory: _Memory,
    rules: _Rules,
    first: int,
    length: int,
) -> _Chunk:
    """Up to `length` (a traced number <= CHUNK) iterations, fewer if one of them has a reason to end."""
    one = jax.jit(step)  # traced once, although it is used for the shapes and for the loop

    def body(chunk: _Chunk) -> _Chunk:
        new, info = one(jax.random.fold_in(key, first + chunk.done), chunk.state, rows)
        code, memory = _judge(info, new, chunk.memory, rules)
        infos = {name: buffer.at[chunk.done].set(info[name]) for name, buffer in chunk.infos.items()}
        return _Chunk(chunk.done + (code < _NONFINITE), code, chunk.state, new, memory, infos)

    outcome = jax.eval_shape(one, key, state, rows)
    _check_contract(state, outcome)
    infos = {name: jnp.zeros(CHUNK, info.dtype) for name, info in outcome[1].items() if name != "stop"}
    begin = _Chunk(jnp.int32(0), jnp.int32(_RUNNING), state, state, memory, infos)
    return jax.lax.while_loop(lambda chunk: (chunk.done < length) & (chunk.code == _RUNNING), body, begin)


def _judge(
    info: Mapping[str, jax.Array], state: Any, memory: _Memory, rules: _Rules
) -> tuple[jax.Array, _Memory]:
    """Why the fit should end after this iteration (0: it should not), and what to remember of it."""
    bound = info["bound"].astype(memory.previous.dtype)
    size = jnp.maximum(1.0, jnp.abs(bound))
    floats = [leaf.ravel() for leaf in jax.tree.leaves(state) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    finite = jnp.isfinite(jnp.concatenate([bound.ravel(), *floats])).all()
    slack = jnp.maximum(rules.fall, 10 * float(jnp.finfo(info["bound"].dtype).eps))
    fell = bound < memory.previous - slack * size
    progress = bound > memory.reference + rules.tol * size
    idle = jnp.where(progress, 0, memory.idle + 1)
    code = jnp.int32(_RUNNING)
    code = jnp.where(idle >= rules.patience, _CONVERGED, code)
    code = jnp.where(info.get("stop", False), _EARLY, code)
    code = jnp.where(fell, _DECREASED, code)
    code = jnp.where(finite, code, _NONFINITE)
    return code, _Memory(bound, jnp.where(progress, bound, memory.reference), idle)


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
    bad = [name for name, leaf in info.items() if leaf.shape != () or name in ("iteration", "seconds")]
    if bad:
        raise TypeError(f"The info of a step must be scalars, not named iteration or seconds; see {bad}.")


def _begin(key: jax.Array, state: Any, start: FitResult | None) -> Snapshot:
    """The snapshot before the first iteration, or after those of `start` (its patience starts anew)."""
    trace = list(start.trace) if start is not None else []
    bound = jnp.asarray(trace[-1]["bound"] if trace else -jnp.inf, dtype=float)
    memory = _Memory(bound, bound, jnp.int32(0))
    seconds = trace[-1]["seconds"] if trace else 0.0
    n_iter = start.n_iter if start is not None else 0
    return Snapshot(state, trace, n_iter, seconds, key, memory)


def _strong(leaf: Any) -> jax.Array:
    """The leaf as an array on the device with a type of its own: a Python number would recompile later."""
    array = jax.device_put(leaf)  # unlike jnp.asarray, this compiles nothing
    weak = getattr(array, "weak_type", False)  # an array of keys does not have the word
    return jax.lax.convert_element_type(array, array.dtype) if weak else array
