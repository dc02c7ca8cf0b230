"""Plain data to and from a JSON tree with the arrays kept apart. Nothing is executed on the way back.

JSON values stand for themselves; every JSON object carries its kind under "$".
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.core.records import is_persistable, record_name

Tensors = dict[str, np.ndarray]
ClassOf = Callable[[str], type]

# What a file's tensors can be, by NumPy's name; times are held as int64.
_TENSOR_TYPES = frozenset(
    ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
    + [f"float{bits}" for bits in (16, 32, 64)]
)


def encode(value: Any, tensors: Tensors, where: str) -> Any:
    """The JSON tree of `value`; its arrays are added to `tensors`.

    `where` names the value in the `InputError` that is raised if something cannot be held.
    """
    if value is None or isinstance(value, bool) or type(value) in (int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
    if _is_record(value):
        return _encode_record(value, tensors, where)
    if type(value) in (list, tuple, dict, slice):
        return _encode_container(value, tensors, where)
    if isinstance(value, pd.DataFrame):
        return _encode_table(value, tensors, where)
    if isinstance(value, np.generic):
        return {"$": "scalar", "array": _encode_array(np.asarray(value), tensors, where)}
    if hasattr(value, "__array__") and not isinstance(value, (type, pd.Series, pd.Index)):
        return _encode_array(np.asarray(value), tensors, where)
    raise _cannot_hold(value, where)


def decode(tree: Any, tensors: Mapping[str, np.ndarray], class_of: ClassOf) -> Any:
    """The value of a JSON tree. `class_of` turns a class name into a class that is safe to build.

    A malformed tree raises KeyError, TypeError or ValueError, which the caller words for the user.
    """
    if isinstance(tree, list):
        return [decode(item, tensors, class_of) for item in tree]
    if not isinstance(tree, dict):
        return tree
    kind = tree["$"]
    if kind == "float":
        return float(tree["value"])
    if kind == "scalar":
        return _decode_array(tree["array"], tensors)[()]
    if kind in ("tensor", "time", "strings", "objects"):
        return _decode_array(tree, tensors)
    if kind == "table":
        return _decode_table(tree, tensors)
    if kind in ("enum", "record"):
        return _decode_record(tree, tensors, class_of)
    if kind in ("tuple", "slice", "dict"):
        items = decode(tree["items"], tensors, class_of)
        return slice(*items) if kind == "slice" else tuple(items) if kind == "tuple" else dict(items)
    raise ValueError(f"unknown kind of value {kind!r}")


def _cannot_hold(value: Any, where: str) -> InputError:
    return InputError(
        f"{where} cannot be saved: got {type(value).__module__}.{type(value).__qualname__}, which a "
        "nongauss file cannot hold; set it to plain data (numbers, text, arrays, lists, dicts) first."
    )


def _encode_container(value: Any, tensors: Tensors, where: str) -> Any:
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return {"$": "slice", "items": [encode(part, tensors, where) for part in parts]}
    if isinstance(value, dict):
        items = [
            [_encode_key(key, tensors, where), encode(item, tensors, f"{where}[{key!r}]")]
            for key, item in value.items()
        ]
        return {"$": "dict", "items": items}
    items = [encode(item, tensors, f"{where}[{i}]") for i, item in enumerate(value)]
    return items if isinstance(value, list) else {"$": "tuple", "items": items}


def _encode_key(key: Any, tensors: Tensors, where: str) -> Any:
    if key is None or isinstance(key, (str, bool, int, float, np.generic)):
        return encode(key, tensors, f"a key of {where}")
    raise _cannot_hold(key, f"a key of {where}")


def _encode_array(array: np.ndarray, tensors: Tensors, where: str) -> dict[str, Any]:
    """Numbers become a tensor, memory order kept (it can decide the last bit of a product); text is JSON."""
    kind = array.dtype.kind
    if kind in "UO":
        items = [encode(item, tensors, f"{where}[{i}]") for i, item in enumerate(array.ravel().tolist())]
        dtype = {"$": "strings", "dtype": array.dtype.str} if kind == "U" else {"$": "objects"}
        return {**dtype, "shape": list(array.shape), "items": items}
    name = f"t{len(tensors)}"
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    stored = np.array(array.T if fortran else array, dtype=array.dtype.newbyteorder("="), order="C")
    if kind in "mM":
        tensors[name] = stored.view(np.int64)
        return {"$": "time", "name": name, "fortran": fortran, "dtype": stored.dtype.str}
    if stored.dtype.name not in _TENSOR_TYPES:
        raise InputError(
            f"{where} cannot be saved: got an array of {array.dtype}; convert it to float64 or integers."
        )
    tensors[name] = stored
    return {"$": "tensor", "name": name, "fortran": fortran}


def _decode_array(tree: Any, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    if tree["$"] in ("strings", "objects"):
        dtype = np.dtype(tree["dtype"]) if tree["$"] == "strings" else np.dtype(object)
        if dtype.kind not in "UO":
            raise ValueError(f"text cannot be of type {dtype}")
        array = np.empty(len(tree["items"]), dtype=dtype)
        for i, item in enumerate(tree["items"]):
            array[i] = decode(item, tensors, _no_classes)
        return array.reshape(tree["shape"])
    array = np.array(tensors[tree["name"]])
    if tree["$"] == "time":
        dtype = np.dtype(tree["dtype"])
        if dtype.kind not in "mM":
            raise ValueError(f"a time cannot be of type {dtype}")
        array = array.view(dtype)
    return array.T if tree["fortran"] else array


def _no_classes(name: str) -> type:
    raise ValueError(f"class {name!r} inside an array")


def _encode_table(table: pd.DataFrame, tensors: Tensors, where: str) -> dict[str, Any]:
    """A frame of numbers and text, column by column. A range index is implied."""
    columns = []
    for i, (label, dtype) in enumerate(zip(table.columns, table.dtypes, strict=True)):
        if not isinstance(dtype, (np.dtype, pd.StringDtype)):
            raise _cannot_hold(table.iloc[:, i].array, f"column {label!r} of {where}")
        values = _encode_array(table.iloc[:, i].to_numpy(), tensors, f"column {label!r} of {where}")
        columns.append([_encode_key(label, tensors, where), str(dtype), values])
    index = None
    if not table.index.equals(pd.RangeIndex(len(table))):
        index = _encode_array(table.index.to_numpy(), tensors, f"the index of {where}")
    return {"$": "table", "columns": columns, "index": index, "length": len(table)}


def _decode_table(tree: Any, tensors: Mapping[str, np.ndarray]) -> pd.DataFrame:
    index = pd.RangeIndex(tree["length"])
    if tree["index"] is not None:
        index = pd.Index(_decode_array(tree["index"], tensors))
    columns = [
        pd.Series(_decode_array(values, tensors), index=index, dtype=dtype)
        for _, dtype, values in tree["columns"]
    ]
    labels = [decode(label, tensors, _no_classes) for label, _, _ in tree["columns"]]
    if not columns:
        return pd.DataFrame(index=index)
    table = pd.concat(columns, axis=1)
    table.columns = pd.Index(labels)
    return table


def _is_record(value: Any) -> bool:
    is_named_tuple = isinstance(value, tuple) and hasattr(value, "_fields")
    return is_named_tuple or isinstance(value, enum.Enum) or dataclasses.is_dataclass(value)


def _encode_record(value: Any, tensors: Tensors, where: str) -> dict[str, Any]:
    cls = type(value)
    if not is_persistable(cls):
        raise _cannot_hold(value, where)
    if isinstance(value, enum.Enum):
        return {"$": "enum", "class": record_name(cls), "name": value.name}
    fields = {name: encode(getattr(value, name), tensors, f"{where}.{name}") for name in _field_names(cls)}
    return {"$": "record", "class": record_name(cls), "fields": fields}


def _decode_record(tree: Any, tensors: Mapping[str, np.ndarray], class_of: ClassOf) -> Any:
    cls = class_of(tree["class"])
    if tree["$"] == "enum":
        if not issubclass(cls, enum.Enum):
            raise TypeError(f"{tree['class']} is not an enumeration")
        return cls[tree["name"]]
    fields = {name: decode(item, tensors, class_of) for name, item in tree["fields"].items()}
    if set(fields) - set(_field_names(cls)):
        raise TypeError(f"{tree['class']} has no fields {sorted(set(fields) - set(_field_names(cls)))}")
    return cls(**fields)


def _field_names(cls: Any) -> tuple[str, ...]:
    """The fields that the constructor takes."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls) if field.init)
    return tuple(getattr(cls, "_fields", ()))
