"""A search on disk: every fit that is done, by the name of its candidate, so that a killed search goes on."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nongauss.core.errors import InputError
from nongauss.core.records import registered_class
from nongauss.estimator.persistence import decode, encode
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.course import Snapshot, Status

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Done(NamedTuple):
    """A fit that was done: the model or None, why it is none, and its seconds."""

    model: Any
    why_out: str
    seconds: float


@dataclass
class KeptSearch:
    """The fits of a search in one file; a fit under way has its own beside it, removed with the search."""

    checkpoint: Checkpoint
    asked: list[str] = field(default_factory=list)

    def done(self, name: str) -> Done | None:
        """The fit of the candidate of this name, or None. Raises InputError where it is damaged."""
        self.asked.append(name)
        kept = self.checkpoint.entry(name).load(_snapshot(np.zeros(0, np.uint8), 0.0))
        if kept is None:
            return None
        return Done(*_model_of(kept.state["model"]), kept.seconds)

    def keep(self, name: str, done: Done) -> None:
        """A fit is done: write it, unless writing would take more than a twentieth of the time."""
        snapshot = _snapshot(_bytes_of(done.model, done.why_out), done.seconds)
        self.checkpoint.keep(name, snapshot._replace(status=Status.COMPLETED))
        if self.checkpoint.due():
            self.checkpoint.write()

    def path_of(self, name: str) -> str:
        """The file of a fit under way."""
        path = Path(self.checkpoint.path)
        return str(path.with_name(f"{path.name}.{name.replace(' ', '-').replace(',', '').replace('/', '-')}"))

    def end(self, status: Status) -> None:
        """The search has ended: unless it was stopped, its files go."""
        if status is Status.STOPPED:
            self.checkpoint.write()
        else:
            for name in self.asked:
                Path(self.path_of(name)).unlink(missing_ok=True)
        self.checkpoint.end(status)


def _snapshot(model: Bytes, seconds: float) -> Snapshot:
    return Snapshot({"model": model}, [], 0, seconds)


def _bytes_of(model: Any, why_out: str) -> Bytes:
    """A model, and why it is none, as bytes: its JSON tree and its arrays."""
    tensors: dict[str, np.ndarray] = {}
    tree = {"model": encode(model, tensors, "A model of a search"), "why_out": why_out}
    out = io.BytesIO()
    np.savez(out, tree=np.frombuffer(json.dumps(tree).encode(), np.uint8), **tensors)  # type: ignore[arg-type]
    return np.frombuffer(out.getvalue(), np.uint8)


def _model_of(content: Bytes) -> tuple[Any, str]:
    """The model that `_bytes_of` wrote, and why it is none. Raises InputError."""
    try:
        with np.load(io.BytesIO(content.tobytes()), allow_pickle=False) as arrays:
            tensors = {name: arrays[name] for name in arrays.files}
        tree = json.loads(tensors.pop("tree").tobytes())
        return decode(tree["model"], tensors, _class_of), str(tree["why_out"])
    except (LookupError, ValueError, TypeError, OSError) as error:
        raise InputError(
            f"The checkpoint file holds a model that cannot be read ({error}); delete it."
        ) from error


def _class_of(name: str) -> type:
    """The marked class of this name; making the candidate's estimator has imported it."""
    cls = registered_class(name)
    if cls is None:
        raise ValueError(f"unknown class {name!r}")
    return cls
