"""A fit on disk: one safetensors file with the steps of the fit so far, from which it goes on where it was.

A fit takes its steps in one order, the same each time: loops, and single computations whose result is worth
keeping. Each asks for the next `Entry`; what the file has of it need not be computed again.
"""

from __future__ import annotations

import json
import numbers
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

import nongauss
from nongauss.core.errors import InputError
from nongauss.core.files import atomic_path
from nongauss.optimise.fingerprint import fingerprint
from nongauss.optimise.result import Status

_FORMAT = "nongauss-checkpoint-2"

COST = 0.05
"""Most of the time that writing may take."""

T = TypeVar("T")


class Snapshot(NamedTuple):
    """Where a step stands: its state, the rows of its trace, iterations, seconds, and how it ended if it has.

    `key` and `memory` are what a compiled loop needs beside its state.
    """

    state: Any
    trace: list[dict[str, float]]
    n_iter: int
    seconds: float
    key: Any = ()
    memory: Any = ()
    status: Status | None = None


class _Kept(NamedTuple):
    """A snapshot as the file has it: arrays by name, and what is no array.

    An array has the memory order that it had, which can decide the last bit of a product.
    """

    arrays: Mapping[str, np.ndarray]
    progress: dict[str, Any]


@dataclass
class Checkpoint:
    """File `path` that belongs to the fit named by `fingerprint`.

    It is written at most every `every_seconds`, or so seldom that writing takes a twentieth of the time.
    The fingerprint stands for all that makes a resumed fit the same fit (data, parameters, version); it is
    compared as text. A fit that came to its end removes the file by `end`; one that was stopped or killed
    leaves it.
    """

    path: str | os.PathLike[str]
    fingerprint: str
    every_seconds: float = 1.0
    _kept: list[_Kept] | None = field(default=None, init=False, repr=False)
    _n_asked: int = field(default=0, init=False, repr=False)
    _written: float = field(default_factory=time.monotonic, init=False, repr=False)
    _cost: float = field(default=0.0, init=False, repr=False)

    def entry(self) -> Entry:
        """The next step of the fit. Raises InputError if the file is damaged or is of another fit."""
        if self._kept is None:
            self._kept = self._read()
        self._n_asked += 1
        return Entry(self, self._n_asked - 1)

    def due(self) -> bool:
        """Is it time to write?"""
        return time.monotonic() - self._written >= max(self.every_seconds, self._cost / COST)

    def end(self, status: Status) -> None:
        """The fit has ended: unless it was stopped there is nothing to go on with, and the file goes."""
        if status is not Status.STOPPED:
            Path(self.path).unlink(missing_ok=True)
        self._kept, self._n_asked = None, 0

    def kept(self, number: int) -> _Kept | None:
        """What there is of a step."""
        assert self._kept is not None
        found = self._kept[number] if number < len(self._kept) else None
        return found if found is not None and found.progress else None

    def keep(self, number: int, snapshot: Snapshot) -> None:
        """This is the last step now, and where it stands. Of former ones that failed there is nothing."""
        assert self._kept is not None
        arrays = {name: _to_numpy(leaf) for name, leaf in _named_leaves(snapshot).items()}
        progress: dict[str, Any] = {name: getattr(snapshot, name) for name in ("trace", "n_iter", "seconds")}
        progress["status"] = None if snapshot.status is None else snapshot.status.name
        progress["fortran"] = [name for name, array in arrays.items() if not array.flags.c_contiguous]
        failed = [_Kept({}, {})] * (number - len(self._kept))
        self._kept[number:] = [*failed, _Kept(arrays, progress)]

    def write(self) -> None:
        """Replace the file in one stroke: a process killed meanwhile leaves the former one."""
        assert self._kept is not None
        began = time.monotonic()
        every = {
            f"{i}{name}": one if one.flags.c_contiguous else one.T
            for i, kept in enumerate(self._kept)
            for name, one in kept.arrays.items()
        }
        labels = {
            "format": _FORMAT,
            "fingerprint": self.fingerprint,
            "steps": json.dumps([kept.progress for kept in self._kept]),
        }
        with atomic_path(Path(self.path)) as temporary:
            Path(temporary).write_bytes(save(every, metadata=labels))
        self._written = time.monotonic()
        self._cost = self._written - began

    def refuse(self, what: str) -> InputError:
        """The error to raise about this file."""
        path = os.fspath(self.path)
        return InputError(f"The checkpoint file {path!r} {what}; delete it or give another path.")

    def _read(self) -> list[_Kept]:
        path = Path(self.path)
        if not path.exists():
            return []
        try:
            with safe_open(path, framework="numpy") as file:
                labels = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise self.refuse(f"cannot be read ({error})") from error
        if labels.get("format") != _FORMAT:
            raise self.refuse(f"is not of the format {_FORMAT}")
        if labels.get("fingerprint") != self.fingerprint:
            raise self.refuse("is of a fit with other data or parameters")
        steps = json.loads(labels["steps"])
        return [_Kept(_own(arrays, number, progress), progress) for number, progress in enumerate(steps)]


class Entry:
    """One step of a fit, and its place in the file; without a file nothing is ever found or written."""

    def __init__(self, checkpoint: Checkpoint | None, number: int = 0) -> None:
        self.checkpoint, self.number = checkpoint, number

    @property
    def is_kept(self) -> bool:
        """Is there a file?"""
        return self.checkpoint is not None

    def load(self, like: Snapshot) -> Snapshot | None:
        """What was kept, built like `like` (of arrays on the host the shape may have changed), or None.

        Raises InputError if it is of another form.
        """
        kept = None if self.checkpoint is None else self.checkpoint.kept(self.number)
        if self.checkpoint is None or kept is None:
            return None
        leaves = _named_leaves(like)
        if _forms(kept.arrays, leaves) != _forms({n: _to_numpy(leaf) for n, leaf in leaves.items()}, leaves):
            raise self.checkpoint.refuse("holds arrays of other names, shapes or types than this fit")
        restored = [_like(kept.arrays[name], leaf) for name, leaf in leaves.items()]
        state, key, memory = jax.tree.unflatten(jax.tree.structure(_arrays_of(like)), restored)
        ran = {name: kept.progress[name] for name in ("trace", "n_iter", "seconds")}
        status = kept.progress["status"]
        return Snapshot(state, key=key, memory=memory, status=status and Status[status], **ran)

    def save(self, snapshot: Callable[[], Snapshot]) -> None:
        """Write where the step stands, if it is time to."""
        if self.checkpoint is not None and self.checkpoint.due():
            self.checkpoint.keep(self.number, snapshot())
            self.checkpoint.write()

    def end(self, snapshot: Snapshot, status: Status) -> None:
        """The step has ended; one that was stopped is written as it is, to go on from."""
        if self.checkpoint is None:
            return
        stopped = status is Status.STOPPED
        self.checkpoint.keep(self.number, snapshot if stopped else snapshot._replace(status=status))
        if stopped or self.checkpoint.due():
            self.checkpoint.write()


def entry_of(checkpoint: Checkpoint | None) -> Entry:
    """The next step of a fit that may have no file."""
    return Entry(None) if checkpoint is None else checkpoint.entry()


def kept(checkpoint: Checkpoint | None, work: Callable[[], T], like: T) -> T:
    """The result of `work()`, a pytree like `like`, from the file if it is there."""
    entry = entry_of(checkpoint)
    found = entry.load(Snapshot(like, [], 0, 0.0))
    if found is not None:
        result: T = found.state
        return result
    result = work()
    entry.end(Snapshot(result, [], 0, 0.0), Status.COMPLETED)
    return result


def opened(
    path: str | os.PathLike[str] | None, seed: int, random_state: Any, arrays: Any, *settings: Any
) -> tuple[int, Checkpoint | None]:
    """The seed that a fit to these arrays (a pytree) with these settings began with, and where it is kept.

    A `random_state` that is no integer gives each call a seed of its own; a fit that goes on has that of its
    first call. Without a `path` there is nothing to go on from.
    Raises InputError where no file can be written, and for the file of another fit.
    """
    if path is None:
        return seed, None
    file = Path(path).expanduser().resolve()
    folder = file.parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise InputError(
            f"checkpoint cannot be written to {folder}: no such folder, or no right to write there."
        )
    begun_with = seed if isinstance(random_state, numbers.Integral) else "any"
    own = fingerprint(arrays, nongauss.__version__, begun_with, *settings)
    checkpoint = Checkpoint(file, own)
    return kept(checkpoint, lambda: seed, seed), checkpoint


def ended(checkpoint: Checkpoint | None, status: Status) -> None:
    """A fit that may have a file has ended."""
    if checkpoint is not None:
        checkpoint.end(status)


def _arrays_of(snapshot: Snapshot) -> tuple[Any, Any, Any]:
    return snapshot.state, snapshot.key, snapshot.memory


def _named_leaves(snapshot: Snapshot) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(_arrays_of(snapshot))
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def _own(arrays: Mapping[str, np.ndarray], number: int, progress: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of one step, without its number."""
    prefix = f"{number}["
    own = {name[len(prefix) - 1 :]: array for name, array in arrays.items() if name.startswith(prefix)}
    return {name: array.T if name in progress.get("fortran", ()) else array for name, array in own.items()}


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and bool(jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _to_numpy(leaf: Any) -> np.ndarray:
    array = np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
    return array.copy("F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C")


def _like(array: np.ndarray, leaf: Any) -> Any:
    if _is_key(leaf):
        return jax.random.wrap_key_data(jax.device_put(array), impl=jax.random.key_impl(leaf))
    if isinstance(leaf, jax.Array):
        return jax.device_put(array)
    return array if isinstance(leaf, np.ndarray) else array.item()


def _forms(arrays: Mapping[str, np.ndarray], leaves: Mapping[str, Any]) -> dict[str, Any]:
    """Type and, of arrays on the device, shape by name."""
    fixed = {name for name, leaf in leaves.items() if isinstance(leaf, jax.Array)}
    return {
        name: (array.dtype, array.shape if name in fixed else array.ndim) for name, array in arrays.items()
    }
