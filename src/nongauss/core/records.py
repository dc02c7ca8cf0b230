"""Records: frozen dataclasses that compare by content, their stable names in files, and their arrays.

A tree is a record, a tuple (also a named one), list or dict of trees, None, or else a leaf: an array or
number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=True, field_specifiers=(dataclasses.field,))
def value(cls: type[T]) -> type[T]:
    """Class decorator: a frozen dataclass that compares and hashes by content: a static argument of `jit`.

    Equal values share one compilation, so every field must itself be hashable: a number, a string, a tuple,
    a module-level function, another value. Not a pytree. A field that is not hashable is a TypeError at
    the first use as a static argument.
    """
    return dataclasses.dataclass(frozen=True, eq=True)(cls)


_CLASSES: dict[str, type] = {}
"""Each class that a file may hold, by its name of now and the names it had in older files."""

_NAMES: dict[type, str] = {}


def persistable(name: str, *former: str) -> Callable[[type[T]], type[T]]:
    """Class decorator: instances may be saved in, and rebuilt from, a nongauss file under `name`.

    For frozen dataclasses, NamedTuples and enumerations; a record's fields must themselves be things that a
    file can hold. `name` ("family.Class") is for ever: the class may move and be renamed, the name may not.
    `former` are names that older files have for it. Raises ValueError for a name that another class has.
    """

    def mark(cls: type[T]) -> type[T]:
        for each in (name, *former):
            known = _CLASSES.setdefault(each, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise ValueError(f"{known.__qualname__} and {cls.__qualname__} are both named {each!r}.")
            _CLASSES[each] = cls
        _NAMES[cls] = name
        return cls

    return mark


def record_name(cls: type) -> str:
    """The name under which a file holds instances of a marked class. Raises KeyError for others."""
    return _NAMES[cls]


def is_persistable(cls: type) -> bool:
    """Whether exactly this class (not merely a parent of it) was marked."""
    return cls in _NAMES


def registered_class(name: str) -> type | None:
    """The class marked with this name, of now or of former days, or None."""
    return _CLASSES.get(name)


def leaves_of(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their paths ("[0].mean['a']"), in an order that depends on its structure."""
    return dict(_leaves(tree, ""))


def rebuilt(tree: Any, leaves: Mapping[str, Any], path: str = "") -> Any:
    """A tree of the structure of `tree` with the leaves of these paths in place of its own."""
    parts = _parts(tree)
    if parts is None:
        return leaves[path]
    new = [rebuilt(part, leaves, path + key) for key, part in parts]
    if tree is None:
        return None
    if isinstance(tree, dict):
        return dict(zip(sorted(tree), new, strict=True))
    if isinstance(tree, tuple):
        return type(tree)(*new) if hasattr(tree, "_fields") else tuple(new)
    if isinstance(tree, list):
        return new
    names = [field.name for field in _data_fields(tree)]
    return dataclasses.replace(tree, **dict(zip(names, new, strict=True)))


def _leaves(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    parts = _parts(tree)
    if parts is None:
        yield path, tree
        return
    for key, part in parts:
        yield from _leaves(part, path + key)


def _parts(tree: Any) -> list[tuple[str, Any]] | None:
    """The branches of a tree, each with its step of the path; None for a leaf."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [(f"[{key!r}]", tree[key]) for key in sorted(tree)]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return [(f".{name}", getattr(tree, name)) for name in tree._fields]
    if isinstance(tree, (list, tuple)):
        return [(f"[{number}]", part) for number, part in enumerate(tree)]
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [(f".{field.name}", getattr(tree, field.name)) for field in _data_fields(tree)]
    return None


def _data_fields(record: Any) -> list[dataclasses.Field[Any]]:
    """The fields of a record that hold trees: those that are not declared static."""
    return [field for field in dataclasses.fields(record) if not field.metadata.get("static", False)]
