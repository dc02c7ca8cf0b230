"""Model files that somebody has changed on purpose: any piece of the tree or of the arrays, sealed again."""

from __future__ import annotations

import copy
import functools
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
    """Manifest and arrays of a model file, for the caller to change."""
    text, arrays, _ = _read(path)
    return json.loads(text), dict(arrays)


@functools.cache
def _read(path: Path) -> tuple[str, dict[str, np.ndarray], list[tuple[Any, ...]]]:
    """Manifest, arrays and the paths of all pieces of a manifest without checksum."""
    found = read_sealed(path)
    manifest = json.loads(found.labels["nongauss"])
    del manifest["sha256"]
    return json.dumps(manifest), found.arrays, list(_places(manifest, ()))


def tampered(source: Path, target: Path, rng: np.random.Generator) -> str:
    """Write a file at `target` that differs from `source` in one to three pieces; say in which."""
    manifest, arrays = content(source)
    places = _read(source)[2]
    done = [
        _change(manifest, arrays, places, rng)
        for _ in range(int(rng.integers(1, 4)) if rng.random() < 0.3 else 1)
    ]
    write_sealed(target, arrays, "nongauss", manifest)
    return "; ".join(done)


def _change(
    manifest: dict[str, Any],
    arrays: dict[str, np.ndarray],
    places: list[tuple[Any, ...]],
    rng: np.random.Generator,
) -> str:
    """Change one array, or one piece of the manifest, and say which."""
    if arrays and rng.random() < 0.35:
        name = str(rng.choice(sorted(arrays)))
        how, arrays[name] = _other_array(arrays, name, rng)
        return f"{name} {how}"
    path = places[int(rng.integers(len(places)))]
    holder, other = _at(manifest, path[:-1]), _at(manifest, places[int(rng.integers(len(places)))])
    if holder is None or not _has(holder, path[-1]):
        return f"{path} gone before"
    action = rng.random()
    if action < 0.1:
        del holder[path[-1]]
        return f"{path} gone"
    if action < 0.3:
        value = copy.deepcopy(other)
    else:
        value = copy.deepcopy(NASTY[int(rng.integers(len(NASTY)))])
    holder[path[-1]] = value
    return f"{path} = {str(value)[:60]}"


def _has(holder: Any, key: Any) -> bool:
    """Is there a piece of this key?"""
    if isinstance(holder, dict):
        return key in holder
    return isinstance(holder, list) and key in range(len(holder))


def _at(tree: Any, path: tuple[Any, ...]) -> Any:
    """The piece at a path, None where an earlier change has taken it."""
    for key in path:
        if not _has(tree, key):
            return None
        tree = tree[key]
    return tree


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
