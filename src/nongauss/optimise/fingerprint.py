"""What tells one fit from another: its arrays to the last bit, and its settings by their content."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from nongauss.core.records import leaves_of


def fingerprint(arrays: Any, *settings: Any) -> str:
    """A text that is the same in every process for equal arrays (a pytree) and equal settings, else another.

    Functions are told apart by their code and what it closes over, not by what it looks up elsewhere.
    """
    digest = hashlib.sha256()
    for array in map(np.ascontiguousarray, leaves_of(arrays).values()):
        digest.update(repr((array.shape, array.dtype)).encode() + array.tobytes())
    digest.update(_as_text(settings).encode())
    return digest.hexdigest()


_INSIDE: tuple[tuple[tuple[type, ...], Callable[[Any], Iterable[Any]]], ...] = (
    ((Mapping,), lambda mapping: mapping.items()),
    ((set, frozenset), lambda items: sorted(map(_as_text, items))),
    ((list, tuple), lambda items: items),
    ((CodeType,), lambda code: (code.co_code, code.co_names, code.co_consts)),
    ((FunctionType,), lambda f: (f.__code__, f.__defaults__, f.__kwdefaults__, f.__closure__)),
    ((CellType,), lambda cell: (cell.cell_contents,)),
    ((MethodType,), lambda method: (method.__func__, method.__self__)),
    ((partial,), lambda call: (call.func, call.args, call.keywords)),
)
"""What tells apart values whose print leaves something out, or is another in each process."""


def _as_text(value: Any, above: tuple[int, ...] = ()) -> str:
    """All that a setting is, as text; `above` are the values that this one is in."""
    value = inspect.unwrap(value) if callable(value) else value
    if id(value) in above:
        return "itself"
    if isinstance(value, np.ndarray) or type(value).__module__.startswith("jaxlib."):  # which are its arrays
        array = np.asarray(value)
        return _as_text(("array", array.shape, str(array.dtype), array.tolist()), (*above, id(value)))
    inside = next((parts for kinds, parts in _INSIDE if isinstance(value, kinds)), None)
    if inside is not None:
        parts = inside(value)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [(item.name, getattr(value, item.name)) for item in fields(value)]
    elif type(value).__repr__ is object.__repr__:  # type: ignore[comparison-overlap]
        parts = getattr(value, "__dict__", {}).items()
    else:
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return f"{type(value).__qualname__}({', '.join(_as_text(part, (*above, id(value))) for part in parts)})"
