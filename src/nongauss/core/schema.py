"""What a record may hold, by the annotations of its fields: read from the class, written nowhere else.

Types are those of the annotations, numbers of NumPy counting as numbers. Arrays that are annotated with named
axes (`Float64[np.ndarray, "N D"]`) must have the same length wherever a name stands in the record. What
fields must have in common beyond that a record says in a method `check_fields`, which raises ValueError.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import numbers
import sys
import types
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal

import jaxtyping
import numpy as np
from jaxtyping._storage import pop_shape_memo, push_shape_memo

_NUMBERS: dict[Any, tuple[type, ...]] = {
    float: (numbers.Real,),
    int: (numbers.Integral,),
    complex: (numbers.Complex,),
}
_EVERYTHING = (Any, object, typing.TypeVar)


LARGEST_LOG = 300.0
"""Logs of parameters beyond have no number in 64 bits whose square is one."""


LARGEST_STANDARDISED = 1e15
"""Numbers on a standardised scale beyond have no squares that can be summed in single precision."""


class Misfit(ValueError):
    """A record that is not as its class says; the message names the field."""


def refuse_huge(record: Any, infinite: bool = False) -> None:
    """Raises Misfit where arrays of a record hold numbers beyond `LARGEST_STANDARDISED`, NaN, or infinity.

    `infinite`: infinity is one of its values.
    """
    for array in record:
        if isinstance(array, np.ndarray):
            small = np.abs(array) <= LARGEST_STANDARDISED
            if not (small | np.isinf(array) if infinite else small).all():
                raise Misfit(f"{type(record).__name__} with numbers beyond {LARGEST_STANDARDISED:g}")


def field_names(cls: Any) -> tuple[str, ...]:
    """The fields of a record that its constructor takes."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls) if field.init)
    return tuple(getattr(cls, "_fields", ()))


def built(cls: Any, fields: dict[str, Any]) -> Any:
    """A record of these fields, each of which is what the class says. Raises Misfit."""
    known = field_names(cls)
    for name in fields:
        if name not in known:
            raise Misfit(f"{cls.__name__} has no field {name!r}")
    hints = _hints(cls)
    with _axes_of_one_length():
        for name in known:
            if name in fields and not _fits(fields[name], hints[name]):
                raise Misfit(f"{cls.__name__}.{name} cannot be {_described(fields[name])}")
    try:
        record = cls(**fields)
    except TypeError as error:
        raise Misfit(f"{cls.__name__} lacks a field ({error})") from error
    if hasattr(record, "check_fields"):
        record.check_fields()
    return record


def check_attributes(cls: Any, attributes: dict[str, Any]) -> None:
    """Raises Misfit for an attribute that is not what the bodies of the class and its parents declare.

    Those that they declare without a value must be there.
    """
    hints = _declared(cls)
    for name in hints:
        is_learned = name.endswith("_") or name.startswith("_")
        if is_learned and name not in attributes and not hasattr(cls, name):
            raise Misfit(f"{cls.__name__}.{name} is not there")
    with _axes_of_one_length():
        for name, value in attributes.items():
            if name in hints and not _fits(value, hints[name]):
                raise Misfit(f"{cls.__name__}.{name} cannot be {_described(value)}")


@contextmanager
def _axes_of_one_length() -> Iterator[None]:
    """Within it an axis of one name has one length: `jaxtyped("context")`, which would load JAX for it."""
    push_shape_memo({})
    try:
        yield
    finally:
        pop_shape_memo()


@cache
def _hints(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {name: hints[name] for name in field_names(cls)}


@cache
def _declared(cls: Any) -> dict[str, Any]:
    """What class bodies declare of attributes, but for types that are imported for type checkers alone."""
    hints: dict[str, Any] = {}
    for parent in reversed(cls.__mro__):
        names = vars(sys.modules[parent.__module__])
        for name, text in inspect.get_annotations(parent).items():
            holder = type("Holder", (), {"__annotations__": {name: text}})
            try:
                hints[name] = typing.get_type_hints(holder, names)[name]
            except NameError:
                continue
    return hints


def _fits(value: Any, hint: Any) -> bool:
    """Is a value what an annotation says?"""
    hint = _without_alias(hint)
    if hint in _EVERYTHING:
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is Literal:
        return value in arguments
    if origin is not None:
        return _fits_inside(value, origin, arguments)
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and not isinstance(value, bool) and _is_held(value)
    if _is_of_jax(hint):
        return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    if _is_of_jax(getattr(hint, "array_type", None)):
        hint = jaxtyping.Float[np.ndarray, hint.dim_str]
    return isinstance(value, hint) and not (isinstance(value, np.ndarray) and _has_gaps(value))


def _without_alias(hint: Any) -> Any:
    """The annotation that an alias stands for, as `NDArray` is one from NumPy 2.5 on; others as they are."""
    origin = typing.get_origin(hint)
    if hasattr(origin, "__value__"):
        return _without_alias(origin.__value__[typing.get_args(hint)])
    return _without_alias(hint.__value__) if hasattr(hint, "__value__") else hint


def _is_held(number: Any) -> bool:
    """Is it a number of 64 bits?"""
    return not isinstance(number, numbers.Integral) or -(2**63) <= int(number) < 2**63


def _is_of_jax(hint: Any) -> bool:
    """Is it the array of JAX, which a file has as one of NumPy?"""
    name = f"{getattr(hint, '__module__', '')}.{getattr(hint, '__name__', '')}"
    return name.startswith("jax") and name.endswith(".Array")


def _has_gaps(array: np.ndarray) -> bool:
    """Are there entries that are not numbers?"""
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _fits_inside(value: Any, origin: Any, arguments: tuple[Any, ...]) -> bool:
    """The same of an annotation with others in it: an array of a type, a sequence, a mapping."""
    if not isinstance(value, origin):
        return False
    if origin is np.ndarray:
        return _has_type(value, arguments)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(_fits(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    if issubclass(origin, collections.abc.Mapping):
        return all(_fits(key, arguments[0]) and _fits(item, arguments[1]) for key, item in value.items())
    if issubclass(origin, collections.abc.Sequence):
        return not isinstance(value, str) and all(_fits(item, arguments[0]) for item in value)
    return True


def _has_type(array: np.ndarray, arguments: tuple[Any, ...]) -> bool:
    """Is an array of the type of `np.ndarray[shape, dtype[type]]`, of any width, all of it numbers?"""
    if _has_gaps(array):
        return False
    types_of = typing.get_args(arguments[-1])
    kind = typing.get_origin(types_of[0]) or types_of[0] if types_of else Any
    if kind is Any or not isinstance(kind, type):
        return True
    for family in (np.floating, np.integer, np.bool_):
        if issubclass(kind, family):
            return bool(np.issubdtype(array.dtype, family))
    return bool(np.issubdtype(array.dtype, kind))


def _described(value: Any) -> str:
    """What was got, shortly."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    text = repr(value)
    return f"{type(value).__name__} {text[:60]}{'…' if len(text) > 60 else ''}"
