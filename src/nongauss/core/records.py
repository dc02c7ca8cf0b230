"""The two kinds of frozen dataclass: a `record` holds arrays (a pytree), a `value` compares by content."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any, TypeVar, dataclass_transform

import jax

__all__ = ["record", "replace", "static", "value"]

T = TypeVar("T")


def static(**options: Any) -> Any:
    """Field of a `record` that is no array: hashable, part of the tree's structure, a new value recompiles.

    Takes the options of `dataclasses.field` (`default`, ...).
    """
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(static, dataclasses.field))
def record(cls: type[T]) -> type[T]:
    """Class decorator: a frozen dataclass that JAX sees as a pytree, its `static()` fields as structure.

    Two records are equal only if they are the same object: an array has no single answer to `==`.
    """
    made = dataclasses.dataclass(frozen=True, eq=False)(cls)
    fields = [field for field in dataclasses.fields(made) if field.init]  # type: ignore[arg-type]
    meta = [field.name for field in fields if field.metadata.get("static", False)]
    data = [field.name for field in fields if field.name not in meta]
    jax.tree_util.register_dataclass(made, data_fields=data, meta_fields=meta)
    return made


@dataclass_transform(frozen_default=True, eq_default=True, field_specifiers=(dataclasses.field,))
def value(cls: type[T]) -> type[T]:
    """Class decorator: a frozen dataclass that compares and hashes by content: a static argument of `jit`.

    Equal values share one compilation, so every field must itself be hashable: a number, a string, a tuple,
    a module-level function, another value. Not a pytree. A field that is not hashable is a TypeError at
    the first use as a static argument.
    """
    return dataclasses.dataclass(frozen=True, eq=True)(cls)
