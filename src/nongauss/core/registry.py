"""Which record classes a saved file may contain: those that were marked with `persistable`."""

from __future__ import annotations

from typing import TypeVar

_CLASSES: dict[str, type] = {}

T = TypeVar("T")


def persistable(cls: type[T]) -> type[T]:
    """Class decorator: instances may be saved in, and rebuilt from, a nongauss file.

    For frozen dataclasses, NamedTuples and enumerations; a record's fields must themselves be things
    that a file can hold. The class is known by "module:qualname", so moving it breaks older files.
    """
    _CLASSES[class_name(cls)] = cls
    return cls


def class_name(cls: type) -> str:
    """The name under which a file refers to `cls`: "module:qualname"."""
    return f"{cls.__module__}:{cls.__qualname__}"


def is_persistable(cls: type) -> bool:
    """Whether exactly this class (not merely a parent of it) was marked."""
    return _CLASSES.get(class_name(cls)) is cls


def registered_class(name: str) -> type | None:
    """The class marked under "module:qualname", or None."""
    return _CLASSES.get(name)
