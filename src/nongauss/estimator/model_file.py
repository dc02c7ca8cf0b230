"""The one file of a model: a manifest, which is plain data as JSON, and tensors, under one checksum."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import nongauss
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.sealed import Damaged, labels_of, read_sealed, write_sealed

Tensors = dict[str, np.ndarray]
PathLike = str | os.PathLike[str]

FORMAT_NAME = "nongauss"
FORMAT_VERSION, FIRST_SEALED = 3, 3
"""3: a checksum of the whole file; 2: classes by stable names; 1: by their modules of then."""


def write_model_file(path: PathLike, content: dict[str, Any], tensors: Tensors) -> None:
    """Write a manifest of this content, and tensors, in one stroke. Raises InputError."""
    manifest = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "package_version": nongauss.__version__,
        **content,
    }
    write_sealed(path, tensors, FORMAT_NAME, manifest)


def read_model_file(source: Path) -> tuple[dict[str, Any], Tensors]:
    """Manifest and tensors of a file that is whole and of a format that is known. Raises InputError."""
    try:
        if not source.is_file():
            raise InputError(f"There is no file {str(source)!r}; check the path.")
        content = read_sealed(source)
    except OSError as error:
        raise InputError(f"{str(source)!r} cannot be read ({error.strerror or error}).") from error
    except Damaged as error:
        raise InputError(
            f"{str(source)!r} cannot be read: it is truncated, damaged or not a file written by "
            f"nongauss.save ({error}); copy it again or save the model anew."
        ) from error
    try:
        text = content.labels.get(FORMAT_NAME, "null")
        manifest = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT_NAME:
        raise InputError(f"{str(source)!r} was not written by nongauss.save; it holds no nongauss model.")
    _check_version(manifest, source, content.is_sealed)
    return manifest, content.arrays


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def _check_version(manifest: dict[str, Any], source: Path, is_sealed: bool) -> None:
    """The format is one that this version reads, and has the checksum that it should have."""
    version, writer = manifest.get("format_version"), manifest.get("package_version")
    if type(version) is not int or version < 1:
        raise InputError(f"{str(source)!r} is damaged: its format version is {version!r}.")
    if not isinstance(writer, str):
        raise InputError(f"{str(source)!r} is damaged: the version that wrote it is {writer!r}.")
    if version > FORMAT_VERSION:
        raise InputError(
            f"{str(source)!r} has format version {version}, written by nongauss "
            f"{writer}; this version reads up to {FORMAT_VERSION}: upgrade nongauss."
        )
    if not is_sealed and version >= FIRST_SEALED:
        raise InputError(f"{str(source)!r} is damaged: its checksum is gone; copy it again.")
    if not is_sealed:
        warnings.warn(
            f"{str(source)!r} was written by nongauss {writer}, whose files have no checksum: whether it is "
            "as it was written cannot be told. Save the model anew.",
            NongaussWarning,
            stacklevel=4,
        )


def manifest_of(path: PathLike) -> dict[str, Any]:
    """What a file that `load` has read says of itself: its format, the version that wrote it, the class."""
    manifest: dict[str, Any] = json.loads(labels_of(Path(path).expanduser())[FORMAT_NAME])
    return manifest
