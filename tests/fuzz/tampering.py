"""Model files that somebody has changed on purpose: any piece of the tree or of the arrays, sealed again."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nongauss.core.sealed import read_sealed, write_sealed

NASTY: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    7,
    2**70,
    10**400,
    1.5,
    -1e308,
    "",
    "x",
    "numeric",
    "\x1b[31m",
    [],
    [1, 2],
    {},
    {"$": "float", "value": "nan"},
    {"$": "float", "value": "1_0"},
    {"$": "tuple", "items": []},
    {"$": "dict", "items": [[1]]},
    {"$": "record", "class": "tables.TableEncoder", "fields": {}},
    {"$": "record", "class": "os.system", "fields": {}},
    {"$": "tensor", "name": "t0", "fortran": False},
    {"$": "strings", "dtype": "<U100000000", "shape": [10**9], "items": []},
    {"$": "objects", "shape": [2**40], "items": [None]},
    {"$": "table", "columns": [], "index": None, "length": 10**12},
)
"""Values that stand where others are expected."""


def content(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Manifest and arrays of a model file."""
    found = read_sealed(path)
    return json.loads(found.labels["nongauss"]), found.arrays


def tampered(source: Path, target: Path, rng: np.random.Generator) -> str:
    """Write a file at `target` that differs from `source` in one to three pieces; say in which."""
    manifest, arrays = content(source)
    manifest.pop("sha256")
    done = [
        _change(manifest, arrays, rng) for _ in range(int(rng.integers(1, 4)) if rng.random() < 0.3 else 1)
    ]
    write_sealed(target, arrays, "nongauss", manifest)
    return "; ".join(done)


def _change(manifest: dict[str, Any], arrays: dict[str, np.ndarray], rng: np.random.Generator) -> str:
    if arrays and rng.random() < 0.35:
        name = str(rng.choice(sorted(arrays)))
        how, arrays[name] = _other_array(arrays, name, rng)
        return f"{name} {how}"
    places = list(_places(manifest, ()))
    path = places[int(rng.integers(len(places)))]
    holder = manifest
    for key in path[:-1]:
        holder = holder[key]
    action = rng.random()
    if action < 0.1:
        del holder[path[-1]]
        return f"{path} gone"
    if action < 0.3:
        other: Any = manifest
        for key in places[int(rng.integers(len(places)))]:
            other = other[key]
        value = copy.deepcopy(other)
    else:
        value = copy.deepcopy(NASTY[int(rng.integers(len(NASTY)))])
    holder[path[-1]] = value
    return f"{path} = {str(value)[:60]}"


def _places(tree: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The paths of all pieces of a tree but for the tree."""
    if path:
        yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, item in list(items):
        yield from _places(item, (*path, key))


def _other_array(
    arrays: dict[str, np.ndarray], name: str, rng: np.random.Generator
) -> tuple[str, np.ndarray]:
    array = arrays[name]
    ways = {
        "shorter": lambda: array[:-1] if array.ndim else array[None],
        "longer": lambda: np.concatenate([array, array[:1]]) if array.ndim else array[None],
        "flat": lambda: array.reshape(-1),
        "deeper": lambda: array[None],
        "turned": lambda: array.T,
        "empty": lambda: array.reshape(-1)[:0],
        "another": lambda: arrays[str(rng.choice(sorted(arrays)))],
        "of bytes": lambda: np.zeros(array.shape, np.int8),
        "of large integers": lambda: np.full(array.shape, 2**60),
        "negative": lambda: (-1.0 - np.abs(array.astype(np.float64))).astype(array.dtype),
        "not numbers": lambda: np.full(array.shape, np.nan),
        "huge": lambda: np.full(array.shape, 1e300),
        "nothing": lambda: np.zeros_like(array),
    }
    how = str(rng.choice(sorted(ways)))
    with np.errstate(all="ignore"):
        return how, np.ascontiguousarray(ways[how]())
