"""Files of arrays and plain data that are whole or refused: safetensors under a checksum of every byte.

The data are JSON, under a label of the file, and the checksum is the first of them: the SHA-256 of the file
as it is with 64 zeros in its place. It tells damage, not forgery: who changes a file on purpose can compute
it anew. Equal contents give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from nongauss.core.errors import InputError
from nongauss.core.files import atomic_path

_SEAL = "sha256"
_BLANK = "0" * 64
_STATED = re.compile(rb'\\"sha256\\": \\"([0-9a-f]{64})\\"')  # JSON inside a text of JSON
_LENGTH_BYTES, _PIECE = 8, 1 << 20
MOST_LABEL_BYTES = 100_000_000
"""What safetensors reads of labels and names of arrays at most."""


class Damaged(ValueError):
    """A file that is not as it was written; the message says what is wrong, the caller which file it is."""


class Content(NamedTuple):
    """What a file holds: its labels, of which those of `write_sealed` are JSON, and its arrays.

    `is_sealed`: has it a checksum, which then is that of its bytes?
    """

    labels: dict[str, str]
    arrays: dict[str, np.ndarray]
    is_sealed: bool


def write_sealed(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], label: str, data: Mapping[str, Any]
) -> None:
    """Replace the file in one stroke: a process killed meanwhile leaves the former one.

    `data` are kept as JSON under `label`, the one label of the file. Raises InputError where no file can be
    written, and for data that are too long to be read again.
    """
    text = json.dumps({_SEAL: _BLANK, **data})
    content = to_bytes(dict(arrays), metadata={label: text})
    head = content[: _LENGTH_BYTES + _header_length(content[:_LENGTH_BYTES], len(content))]
    if len(head) > MOST_LABEL_BYTES:
        raise InputError(
            f"{os.fspath(path)!r} cannot be written: its text alone is {len(head):,} bytes, and at most "
            f"{MOST_LABEL_BYTES:,} could be read again; leave out columns of many distinct texts."
        )
    place = _STATED.search(head)
    assert place is not None
    with atomic_path(Path(path)) as temporary, temporary.open("wb") as file:
        file.write(content)
        file.seek(place.start(1))
        file.write(hashlib.sha256(content).hexdigest().encode())


def read_sealed(path: str | os.PathLike[str]) -> Content:
    """The whole file, each of its bytes checked before anything is made of them.

    Raises Damaged for a file that is cut, changed or none of these files; OSError where none can be read.
    """
    is_sealed = _is_checked(Path(path))
    try:
        with safe_open(path, framework="numpy") as file:
            labels = dict(file.metadata() or {})
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise Damaged(str(error)) from error
    return Content(labels, arrays, is_sealed)


def labels_of(path: str | os.PathLike[str]) -> dict[str, str]:
    """The labels of a file that `read_sealed` has found whole, without reading its arrays again."""
    with safe_open(path, framework="numpy") as file:
        return dict(file.metadata() or {})


def _is_checked(path: Path) -> bool:
    """Does the file state a checksum? Raises Damaged if it is not that of its bytes."""
    with path.open("rb") as file:
        head = _header(file)
        stated = _STATED.search(head)
        if stated is None:
            return False
        digest = hashlib.sha256(len(head).to_bytes(_LENGTH_BYTES, "little"))
        digest.update(head[: stated.start(1)] + _BLANK.encode() + head[stated.end(1) :])
        while piece := file.read(_PIECE):
            digest.update(piece)
    if digest.hexdigest().encode() != stated[1]:
        raise Damaged("its bytes do not fit its checksum")
    return True


def _header(file: IO[bytes]) -> bytes:
    """The labels and the names of arrays as the file has them, in JSON. Raises Damaged."""
    size = os.fstat(file.fileno()).st_size
    return file.read(_header_length(file.read(_LENGTH_BYTES), size))


def _header_length(begin: bytes, size: int) -> int:
    """How long the header of a file of `size` bytes is, by its first eight. Raises Damaged."""
    length = int.from_bytes(begin, "little")
    if len(begin) < _LENGTH_BYTES or length > size - _LENGTH_BYTES:
        raise Damaged("it ends before its header does")
    return length
