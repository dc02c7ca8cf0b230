"""Records: frozen dataclasses that compare by content, and the stable names under which files hold them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeVar, dataclass_transform

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
