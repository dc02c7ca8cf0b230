"""Save an estimator to one file and load it again: safetensors with a JSON manifest, nothing executed."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

import nongauss
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.files import atomic_path
from nongauss.core.records import is_persistable, record_name, registered_class
from nongauss.estimator.base import NongaussEstimator
from nongauss.estimator.codec import Tensors, decode, encode

FORMAT_NAME = "nongauss"
FORMAT_VERSION = 2
"""2: classes by stable names; 1: by their modules of then."""

PathLike = str | os.PathLike[str]


def save(estimator: NongaussEstimator, path: PathLike) -> None:
    """Write `estimator`, fitted or not, to the one file `path`; `load` gives it back.

    `holds_training_rows` in the manifest says whether rows of the training table can be read from the file.
    An existing file is replaced only once the new one is complete. Callbacks and random generators
    cannot be held: they are left out with a `NongaussWarning`. Raises `InputError` for an object that is
    no nongauss estimator, for contents that are not plain data and for a folder that does not exist.
    """
    if not isinstance(estimator, NongaussEstimator) or _file_name(type(estimator)) is None:
        raise InputError(
            f"Only nongauss estimators can be saved: got {type(estimator).__module__}."
            f"{type(estimator).__qualname__}; use joblib for other objects."
        )
    tensors: Tensors = {}
    manifest = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "package_version": nongauss.__version__,
        "holds_training_rows": estimator.holds_training_rows_,
        **_encode_estimator(estimator, tensors),
    }
    text = json.dumps(manifest, allow_nan=False)
    with atomic_path(Path(path)) as temporary:
        temporary.write_bytes(to_bytes(tensors, metadata={"nongauss": text}))


def load(path: PathLike) -> Any:
    """Read the estimator that `save` wrote to `path`; arrays come back to the last bit.

    Only classes of this package are rebuilt and nothing in the file is executed. Raises `InputError` for
    a file that is missing, truncated, not of this format, or written by a newer version.
    """
    source = Path(path).expanduser()
    if not source.is_file():
        raise InputError(f"There is no file {str(source)!r}; check the path.")
    manifest, tensors = _read(source)
    _check_version(manifest, source)
    cls = _estimator_class(str(manifest.get("class")), source)
    try:
        return _decode_estimator(cls, manifest, tensors)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
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
        elif _is_fitted(key) and key not in parameters:
            fitted[key] = encode(value, tensors, f"Attribute {key!r} of {name}")
    return {"class": _file_name(type(estimator)), "parameters": parameters, "fitted": fitted}


def _decode_estimator(cls: type, manifest: dict[str, Any], tensors: dict[str, np.ndarray]) -> Any:
    parameters = {key: decode(tree, tensors, _class_of) for key, tree in manifest["parameters"].items()}
    fitted = {key: decode(tree, tensors, _class_of) for key, tree in manifest["fitted"].items()}
    strange = [key for key in fitted if not _is_fitted(key)]
    if strange:
        raise InputError(f"The file sets {strange}, which no fit does; it was not written by nongauss.save.")
    estimator = cls(**parameters)
    vars(estimator).update(fitted)
    return estimator


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


def _read(source: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        with safe_open(source, framework="numpy") as file:
            text = (file.metadata() or {}).get("nongauss")
            tensors = {} if text is None else {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"{str(source)!r} cannot be read: it is truncated, damaged or not a file written by "
            f"nongauss.save ({error}); copy it again or save the model anew."
        ) from error
    try:
        manifest = json.loads(text or "null")
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT_NAME:
        raise InputError(f"{str(source)!r} was not written by nongauss.save; it holds no nongauss model.")
    return manifest, tensors


def _check_version(manifest: dict[str, Any], source: Path) -> None:
    version = manifest.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{str(source)!r} is damaged: its format version is {version!r}.")
    if version > FORMAT_VERSION:
        raise InputError(
            f"{str(source)!r} has format version {version}, written by nongauss "
            f"{manifest.get('package_version')}; this version reads up to {FORMAT_VERSION}: upgrade nongauss."
        )


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
    if cls.__name__ in nongauss.__all__ and getattr(nongauss, cls.__name__) is cls:
        return cls.__name__
    return record_name(cls) if is_persistable(cls) else None
