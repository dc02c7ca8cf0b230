"""A fit on disk: one safetensors file that holds all that the loop needs to go on where it was."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from nongauss.core.contracts import InputError
from nongauss.core.files import atomic_path

_FORMAT = "nongauss-checkpoint-1"


class Snapshot(NamedTuple):
    """Where a fit stands between two chunks. `memory` is what the stop rules remember."""

    key: jax.Array
    state: Any
    memory: Any
    trace: list[dict[str, float]]
    n_iter: int
    seconds: float


@dataclass
class Checkpoint:
    """File `path`, written at most every `every_seconds`, that belongs to the fit named by `fingerprint`.

    The fingerprint stands for all that makes a resumed fit the same fit (data, parameters, version); it is
    compared as text. A fit that came to its end removes the file; one that was stopped or killed leaves it.
    """

    path: str | os.PathLike[str]
    fingerprint: str
    every_seconds: float = 30.0
    _written: float = field(default_factory=time.monotonic, init=False, repr=False)

    def due(self) -> bool:
        """True when the last writing (or the start) is `every_seconds` ago."""
        return time.monotonic() - self._written >= self.every_seconds

    def save(self, snapshot: Snapshot) -> None:
        """Replace the file in one stroke: a process killed meanwhile leaves the former one."""
        arrays = {name: _to_numpy(leaf) for name, leaf in _named_leaves(snapshot).items()}
        counts = {"trace": snapshot.trace, "n_iter": snapshot.n_iter, "seconds": snapshot.seconds}
        labels = {"format": _FORMAT, "fingerprint": self.fingerprint, "progress": json.dumps(counts)}
        with atomic_path(Path(self.path)) as temporary:
            Path(temporary).write_bytes(save(arrays, metadata=labels))
        self._written = time.monotonic()

    def load(self, like: Snapshot) -> Snapshot | None:
        """The stored snapshot, built like `like`; None where there is no file.

        Raises InputError if the file is damaged or is of another fit.
        """
        path = Path(self.path)
        if not path.exists():
            return None
        try:
            with safe_open(path, framework="numpy") as file:
                labels = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise self._refuse(f"cannot be read ({error})") from error
        if labels.get("format") != _FORMAT:
            raise self._refuse(f"is not of the format {_FORMAT}")
        if labels.get("fingerprint") != self.fingerprint:
            raise self._refuse("is of a fit with other data or parameters")
        leaves = _named_leaves(like)
        if _shapes(arrays) != _shapes({name: _to_numpy(leaf) for name, leaf in leaves.items()}):
            raise self._refuse("holds arrays of other names, shapes or types than this fit")
        restored = [_like(arrays[name], leaf) for name, leaf in leaves.items()]
        treedef = jax.tree.structure((like.key, like.state, like.memory))
        key, state, memory = jax.tree.unflatten(treedef, restored)
        return Snapshot(key, state, memory, **json.loads(labels["progress"]))

    def remove(self) -> None:
        """Delete the file if it is there."""
        Path(self.path).unlink(missing_ok=True)

    def _refuse(self, what: str) -> InputError:
        path = os.fspath(self.path)
        return InputError(f"The checkpoint file {path!r} {what}; delete it or give another path.")


def _named_leaves(snapshot: Snapshot) -> dict[str, jax.Array]:
    tree = {"key": snapshot.key, "state": snapshot.state, "memory": snapshot.memory}
    parts = [(name, *item) for name in tree for item in jax.tree_util.tree_leaves_with_path(tree[name])]
    return {name + jax.tree_util.keystr(path): leaf for name, path, leaf in parts}


def _is_key(leaf: jax.Array) -> bool:
    return bool(jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _to_numpy(leaf: jax.Array) -> np.ndarray:
    return np.array(jax.random.key_data(leaf) if _is_key(leaf) else leaf, order="C")


def _like(array: np.ndarray, leaf: jax.Array) -> jax.Array:
    if _is_key(leaf):
        return jax.random.wrap_key_data(jax.device_put(array), impl=jax.random.key_impl(leaf))
    return jax.device_put(array)


def _shapes(arrays: dict[str, np.ndarray]) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}
