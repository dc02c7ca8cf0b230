"""Save an estimator to one file and load it again: a sealed file with a JSON manifest, nothing executed.

The manifest holds plain data as a JSON tree, with the arrays kept apart as tensors: JSON values stand for
themselves, every JSON object carries its kind under "$", classes go by stable names.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import nongauss
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.records import is_persistable, record_name, registered_class
from nongauss.core.schema import Misfit, built, check_attributes, field_names
from nongauss.estimator.base import NongaussEstimator
from nongauss.estimator.model_file import PathLike, Tensors, read_model_file, write_model_file
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.sparse import SparseEncoder

_MALFORMED = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    NotImplementedError,
    RecursionError,
)
"""What building values that are not of the expected form ends with."""
_LONGEST_TABLE = 10**9
"""No table of a model has so many rows."""

ClassOf = Callable[[str], type]
# What a file's tensors can be, by NumPy's name; times are held as int64.
_TENSOR_TYPES = frozenset(
    ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
    + [f"float{bits}" for bits in (16, 32, 64)]
)


def save(estimator: NongaussEstimator, path: PathLike) -> None:
    """Write `estimator`, fitted or not, to a single file; `load` restores it.

    `holds_training_rows` in the manifest says whether rows of the training table can be read from the file.
    An existing file is replaced only when the new one is complete. Callbacks and random generators cannot
    be saved and are left out with a `NongaussWarning`. Raises `InputError` for an object that is not a
    nongauss estimator, for contents that are not plain data, and for a folder that does not exist.
    """
    if not isinstance(estimator, NongaussEstimator) or _file_name(type(estimator)) is None:
        raise InputError(
            f"Only nongauss estimators can be saved: got {type(estimator).__module__}."
            f"{type(estimator).__qualname__}; use joblib for other objects."
        )
    tensors: Tensors = {}
    about = {"holds_training_rows": estimator.holds_training_rows_}
    write_model_file(path, {**about, **_encode_estimator(estimator, tensors)}, tensors)


def load(path: PathLike) -> Any:
    """Read the estimator that `save` wrote to `path`; arrays are restored to the last bit.

    Only classes of this package are rebuilt and nothing in the file is executed. Raises `InputError` for
    a file that is missing, truncated, changed in any byte, not of this format, or written by a newer version.
    Files of version 0.1 have no checksum: they are loaded with a `NongaussWarning`.
    """
    source = Path(path).expanduser()
    manifest, tensors = read_model_file(source)
    cls = _estimator_class(str(manifest.get("class")), source)
    try:
        return _decode_estimator(cls, manifest, tensors)
    except InputError:
        raise
    except _MALFORMED as error:
        raise InputError(
            f"{str(source)!r} does not fit this version of nongauss ({error!r}); it was written by version "
            f"{manifest.get('package_version')}, so load it with that version or save the model anew."
        ) from error


def _encode_estimator(estimator: NongaussEstimator, tensors: Tensors) -> dict[str, Any]:
    """Class, parameters and everything that `fit` left behind."""
    name = type(estimator).__name__
    parameters, fitted = {}, {}
    for key, value in estimator.get_params(deep=False).items():
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        kept = _without_live_objects(value)
        if kept is not value:
            _warn(
                f"Parameter {key!r} holds functions or a random generator, which a file cannot hold; "
                "they are left out and must be set again after loading."
            )
        parameters[key] = encode(kept, tensors, f"Parameter {key!r} of {name}")
    for key, value in vars(estimator).items():
        if key == "_metadata_request":
            _warn("Metadata-routing requests are not saved; set them again after loading.")
        elif _is_fitted(key) and key not in parameters and key not in estimator._not_saved:
            fitted[key] = encode(value, tensors, f"Attribute {key!r} of {name}")
    return {"class": _file_name(type(estimator)), "parameters": parameters, "fitted": fitted}


def _decode_estimator(cls: Any, manifest: dict[str, Any], tensors: dict[str, np.ndarray]) -> Any:
    parameters = {key: decode(tree, tensors, _class_of) for key, tree in manifest["parameters"].items()}
    fitted = {key: decode(tree, tensors, _class_of) for key, tree in manifest["fitted"].items()}
    strange = [key for key in fitted if not _is_fitted(key)]
    if strange:
        raise InputError(f"The file sets {strange}, which no fit does; it was not written by nongauss.save.")
    unknown = [key for key in parameters if key not in cls._get_param_names()]
    if unknown:
        raise Misfit(f"{cls.__name__} has no parameters {unknown}")
    if fitted:
        check_attributes(cls, fitted)
    estimator = cls(**parameters)
    vars(estimator).update(fitted)
    if fitted:
        hold_together(estimator)
    return estimator


def hold_together(estimator: Any) -> None:
    """Raises Misfit where what a fit has left of an estimator is not of one table."""
    encoder = getattr(estimator, "_encoder", None)
    if encoder is not None:
        if not isinstance(encoder, (TableEncoder, SparseEncoder)):
            raise Misfit("no encoder of columns")
        names = getattr(estimator, "feature_names_in_", None)
        same = estimator.n_features_in_ == encoder.n_features
        if not same or (names is not None and tuple(names) != encoder.feature_names):
            raise Misfit("columns of two tables")
        forms = ("encoded_names", "rank_names", "one_hot_names")
        known = [getattr(encoder, form) for form in forms if hasattr(encoder, form)]
        if tuple(getattr(estimator, "encoded_names_", encoder.encoded_names)) not in known:
            raise Misfit("names of other columns")
    classes = getattr(estimator, "classes_", None)
    is_list = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes)
    if classes is not None and (not is_list or bool(pd.isna(classes).any())):
        raise Misfit("classes that are no list of labels")
    if not isinstance(getattr(estimator, "trace_", pd.DataFrame()), pd.DataFrame):
        raise Misfit("a course of the fit that is no table")
    estimator.check_loaded()


def _is_fitted(name: str) -> bool:
    return not name.startswith("__") and (name.endswith("_") or name.startswith("_"))


def _warn(message: str) -> None:
    """Warn at the line that called `save`, two functions above the one that warns."""
    warnings.warn(message, NongaussWarning, stacklevel=4)


def _without_live_objects(value: Any) -> Any:
    """A parameter without the callbacks and random generators in it."""
    if _is_live(value):
        return None
    if type(value) in (list, tuple) and any(_is_live(item) for item in value):
        return type(value)(item for item in value if not _is_live(item))
    return value


def _is_live(value: Any) -> bool:
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return True
    return callable(value) and not is_persistable(type(value))


def _estimator_class(name: str, source: Path) -> type:
    """The estimator of this name: a public one, before which files of format 1 put its module and a colon."""
    public = name.rpartition(":")[2]
    cls = getattr(nongauss, public) if public in nongauss.__all__ else registered_class(name)
    if not isinstance(cls, type) or not issubclass(cls, NongaussEstimator):
        raise InputError(
            f"{str(source)!r} holds an estimator of the unknown class {name!r}; it was written by another "
            "version of nongauss, or not by nongauss.save: upgrade nongauss, or save the model anew."
        )
    return cls


def _class_of(name: str) -> type:
    """The marked class that a file asks for. Importing the estimator has imported all that it is made of."""
    cls = registered_class(name)
    if cls is None:
        raise InputError(
            f"The file holds an object of the unknown class {name!r}; it was written by another version of "
            "nongauss, or not by nongauss.save: upgrade nongauss, or save the model anew."
        )
    return cls


def _file_name(cls: type) -> str | None:
    """The name by which a file holds an estimator: its public one, or that with which it was marked."""
    name = cls.__name__
    if name in nongauss.__all__ and getattr(nongauss, name) is cls:
        return name
    return record_name(cls) if is_persistable(cls) else None


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
    if isinstance(value, NongaussEstimator):
        return {"$": "estimator", **_encode_estimator(value, tensors)}
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
    if kind == "estimator":
        return _decode_estimator(_estimator_class(tree["class"], Path("the file")), tree, dict(tensors))
    if kind in ("enum", "record"):
        return _decode_record(tree, tensors, class_of)
    if kind in ("tuple", "slice", "dict"):
        items = decode(tree["items"], tensors, class_of)
        return slice(*items) if kind == "slice" else tuple(items) if kind == "tuple" else dict(items)
    raise ValueError(f"unknown kind of value {kind!r}")


def _cannot_hold(value: Any, where: str) -> InputError:
    got = f"{type(value).__module__}.{type(value).__qualname__}, which a nongauss file cannot hold"
    remedy = "set it to plain data (numbers, text, arrays, lists, dicts) first"
    return InputError(f"{where} cannot be saved: got {got}; {remedy}.")


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
        return _decode_cells(tree, tensors)
    array = np.array(tensors[tree["name"]])
    if tree["$"] == "time":
        dtype = np.dtype(tree["dtype"])
        if dtype.kind not in "mM":
            raise ValueError(f"a time cannot be of type {dtype}")
        array = array.view(dtype)
    return array.T if tree["fortran"] else array


def _decode_cells(tree: Any, tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """An array of text, or of any plain values, from its cells. It is as wide as its longest text."""
    cells = np.empty(len(tree["items"]), dtype=object)
    for i, item in enumerate(tree["items"]):
        cells[i] = decode(item, tensors, _no_classes)
    if tree["$"] == "objects":
        return cells.reshape(tree["shape"])
    stated = np.dtype(tree["dtype"])
    longest = max((len(text) for text in cells), default=0)
    if stated.kind != "U" or not all(type(text) is str for text in cells) or longest > stated.itemsize // 4:
        raise ValueError(f"text that is not of type {stated}")
    return cells.astype(f"{stated.byteorder}U{max(longest, 1)}").reshape(tree["shape"])


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
    length, dtypes = tree["length"], [dtype for _, dtype, _ in tree["columns"]]
    if type(length) is not int or not all(type(dtype) is str for dtype in dtypes):
        raise TypeError("a table of another form")
    if not 0 <= length < _LONGEST_TABLE:
        raise ValueError(f"a table of {length} rows")
    index = pd.RangeIndex(length)
    if tree["index"] is not None:
        index = pd.Index(_decode_array(tree["index"], tensors))
    columns = [
        pd.Series(_decode_array(values, tensors), index=index, dtype=dtype)
        for _, dtype, values in tree["columns"]
    ]
    labels = [decode(label, tensors, _no_classes) for label, _, _ in tree["columns"]]
    if not columns:
        return pd.DataFrame(index=index)
    table: pd.DataFrame = pd.concat(columns, axis=1)
    table.columns = pd.Index(labels)
    return table


def _is_record(value: Any) -> bool:
    return isinstance(value, enum.Enum) or _is_record_class(type(value))


def _is_record_class(cls: type) -> bool:
    return hasattr(cls, "_fields") or dataclasses.is_dataclass(cls)


def _encode_record(value: Any, tensors: Tensors, where: str) -> dict[str, Any]:
    cls = type(value)
    if not is_persistable(cls):
        raise _cannot_hold(value, where)
    if isinstance(value, enum.Enum):
        return {"$": "enum", "class": record_name(cls), "name": value.name}
    fields = {name: encode(getattr(value, name), tensors, f"{where}.{name}") for name in field_names(cls)}
    return {"$": "record", "class": record_name(cls), "fields": fields}


def _decode_record(tree: Any, tensors: Mapping[str, np.ndarray], class_of: ClassOf) -> Any:
    cls = class_of(tree["class"])
    if tree["$"] == "enum":
        if not issubclass(cls, enum.Enum):
            raise TypeError(f"{tree['class']} is not an enumeration")
        return cls[tree["name"]]
    if not _is_record_class(cls):
        raise TypeError(f"{tree['class']} is not a record")
    return built(cls, {name: decode(item, tensors, class_of) for name, item in tree["fields"].items()})
