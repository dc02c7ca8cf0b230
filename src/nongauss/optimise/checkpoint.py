"""A fit on disk: one sealed file with the steps of the fit so far, from which it goes on where it was.

The steps of a fit are loops, and single computations whose result is worth keeping. Each has a name of its
own in the fit and asks for the `Entry` of that name; what the file has of it need not be computed again.
Steps follow each other in one order: where one goes on, the results of those after it are no longer those of
this fit.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.files import sweep_leftovers
from nongauss.core.records import leaves_of, rebuilt
from nongauss.core.sealed import Damaged, read_sealed, write_sealed
from nongauss.optimise.course import Snapshot, Status

_FORMAT = "nongauss-checkpoint-4"

T = TypeVar("T")

COST = 0.05
"""Most of the time that writing may take."""

_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What reading text that is not of the expected form ends with."""


class _Kept(NamedTuple):
    """A snapshot as the file has it: arrays by name, and what is no array.

    An array has the memory order that it had, which can decide the last bit of a product.
    """

    arrays: Mapping[str, np.ndarray]
    progress: dict[str, Any]


@dataclass
class _File:
    """What all handles of one file share: its steps (None: it was not read yet), and when it was written."""

    steps: dict[str, _Kept] | None = None
    asked: set[str] = field(default_factory=set)
    written: float = field(default_factory=time.monotonic)
    cost: float = 0.0
    lock: Any = None


@dataclass(frozen=True)
class SetAside(os.PathLike[str]):
    """A path for `checkpoint=`, whose file is set aside where it is damaged or of another fit.

    It gets another name, is never deleted, and the fit begins anew and says so.
    """

    path: str | os.PathLike[str]

    def __fspath__(self) -> str:
        return os.fspath(self.path)


@dataclass
class Checkpoint:
    """File `path` that belongs to the fit named by `fingerprint`.

    It is written at most every `every_seconds`, or so seldom that writing takes a twentieth of the time.
    The fingerprint stands for all that makes a resumed fit the same fit (data, parameters, version); it is
    compared as text. A fit that came to its end removes the file by `end`; one that was stopped or killed
    leaves it. From the first step to `end` the file is this process's alone, by a lock beside it that the
    operating system takes from a process that is gone. With `sets_aside` a file that would be refused gets
    another name, and the fit begins anew.
    """

    path: str | os.PathLike[str]
    fingerprint: str
    every_seconds: float = 1.0
    sets_aside: bool = False
    _part: str = field(default="", init=False, repr=False)
    _file: _File = field(default_factory=_File, init=False, repr=False)

    def within(self, part: str) -> Checkpoint:
        """This file for one part of the fit: names of steps are prefixed by `part`."""
        own = copy.copy(self)
        own._part = f"{self._part}{part}/"
        return own

    def entry(self, name: str) -> Entry:
        """The step of this name.

        Raises InputError if the file is damaged, is of another fit or in use by another process, ValueError
        for a name that was asked for before in this fit.
        """
        if self._file.steps is None:
            self._lock()
            try:
                self._file.steps = self._read_or_set_aside()
            except BaseException:
                self._unlock()
                raise
        whole = self._part + name
        if whole in self._file.asked:
            raise ValueError(f"Two steps of a fit are both named {whole!r}: what was kept would be mixed up.")
        self._file.asked.add(whole)
        return Entry(self, whole)

    def due(self) -> bool:
        """Is it time to write?"""
        return time.monotonic() - self._file.written >= max(self.every_seconds, self._file.cost / COST)

    def end(self, status: Status) -> None:
        """The fit has ended: unless it was stopped there is nothing to go on with, and the file goes."""
        if status is not Status.STOPPED:
            Path(self.path).unlink(missing_ok=True)
            sweep_leftovers(Path(self.path).absolute())
        self._file.steps = None
        self._file.asked.clear()
        self._unlock()

    def kept(self, name: str) -> _Kept | None:
        """What there is of a step."""
        assert self._file.steps is not None
        return self._file.steps.get(name)

    def keep(self, name: str, snapshot: Snapshot) -> None:
        """Record where step `name` stands and drop all later steps."""
        assert self._file.steps is not None
        self.forget_after(name)
        arrays = {path: _to_numpy(leaf) for path, leaf in leaves_of(_arrays_of(snapshot)).items()}
        progress: dict[str, Any] = {part: getattr(snapshot, part) for part in ("trace", "n_iter", "seconds")}
        progress["status"] = None if snapshot.status is None else snapshot.status.name
        progress["has_best"] = snapshot.best is not None
        progress["fortran"] = [path for path, array in arrays.items() if not array.flags.c_contiguous]
        self._file.steps[name] = _Kept(arrays, progress)

    def forget_after(self, name: str) -> None:
        """This step goes on: what came of those after it is out of date."""
        assert self._file.steps is not None
        names = list(self._file.steps)
        for later in names[names.index(name) + 1 :] if name in names else []:
            del self._file.steps[later]

    def write(self) -> None:
        """Replace the file in one stroke: a process killed meanwhile leaves the former one."""
        assert self._file.steps is not None
        began = time.monotonic()
        every = {
            f"{number}{path}": one if one.flags.c_contiguous else one.T
            for number, kept in enumerate(self._file.steps.values())
            for path, one in kept.arrays.items()
        }
        steps = {name: kept.progress for name, kept in self._file.steps.items()}
        write_sealed(self.path, every, _FORMAT, {"fingerprint": self.fingerprint, "steps": steps})
        self._file.written = time.monotonic()
        self._file.cost = self._file.written - began

    def refuse(self, what: str) -> InputError:
        """The error to raise about this file."""
        path = os.fspath(self.path)
        return InputError(f"The checkpoint file {path!r} {what}; delete it or give another path.")

    def set_aside(self, why: InputError) -> None:
        """Give the file another name and forget its steps, if that was asked for; else raise `why`."""
        if not self.sets_aside:
            raise why
        path = Path(self.path)
        free = (path.with_name(f"{path.name}.aside-{number}") for number in itertools.count(1))
        aside = next(name for name in free if not os.path.lexists(name))
        path.rename(aside)
        self._file.steps = {}
        warnings.warn(f"{why} It was set aside as {aside.name!r}: the fit begins anew.", NongaussWarning, 2)

    def _read_or_set_aside(self) -> dict[str, _Kept]:
        try:
            return self._read()
        except InputError as error:
            self.set_aside(error)
            return {}

    def _lock(self) -> None:
        """Keep other processes from this file. Raises InputError if one has it."""
        from filelock import FileLock, Timeout  # costs as much to import as all the rest of this module

        path = Path(self.path)
        beside = path.with_name(f"{path.name}.lock")
        lock = FileLock(beside, timeout=0, is_singleton=True, thread_local=False)
        try:
            lock.acquire()
        except Timeout as error:
            raise InputError(
                f"The checkpoint file {os.fspath(path)!r} is in use by another process; wait until that fit "
                "has ended, or give another path."
            ) from error
        except OSError as error:  # what is there is a link, a folder or of another user
            raise InputError(
                f"The checkpoint file {os.fspath(path)!r} needs {beside.name} beside it, which cannot be "
                f"opened ({error.strerror}); remove that, or give another path."
            ) from error
        self._file.lock = lock

    def _unlock(self) -> None:
        """Leave the file to others."""
        if self._file.lock is not None:
            Path(self._file.lock.lock_file).unlink(missing_ok=True)
            self._file.lock.release(force=True)

    def _read(self) -> dict[str, _Kept]:
        if not Path(self.path).exists():
            return {}
        try:
            content = read_sealed(self.path)
        except (Damaged, OSError) as error:
            raise self.refuse(f"cannot be read ({error})") from error
        if _FORMAT not in content.labels or not content.is_sealed:
            raise self.refuse(f"is not of the format {_FORMAT}")
        try:
            data = json.loads(content.labels[_FORMAT])
            fingerprint, steps = data["fingerprint"], dict(data["steps"])
            kept = {
                name: _Kept(_own(content.arrays, number, progress), progress)
                for number, (name, progress) in enumerate(steps.items())
            }
        except _MALFORMED as error:
            raise self.refuse(f"has steps of an unknown form ({error!r})") from error
        if fingerprint != self.fingerprint:
            raise self.refuse("is of a fit with other data or parameters")
        return kept


class Entry:
    """One step of a fit, and its place in the file."""

    def __init__(self, checkpoint: Checkpoint, name: str) -> None:
        self.checkpoint, self.name = checkpoint, name

    def load(self, like: Snapshot) -> Snapshot | None:
        """What was kept, its states built like that of `like` (shapes may have changed), or None.

        Raises InputError if it is of another form.
        """
        kept = self.checkpoint.kept(self.name)
        if kept is None:
            return None
        try:
            found = _snapshot(kept, like)
        except _MALFORMED:
            self.checkpoint.set_aside(self.refuse())
            return None
        if found.status is None:
            self.checkpoint.forget_after(self.name)
        return found

    def refuse(self) -> InputError:
        """The error to raise where the file has this step in another form."""
        return self.checkpoint.refuse(
            "holds a step of another form than this fit: arrays of other names, shapes or types"
        )

    def save(self, snapshot: Callable[[], Snapshot]) -> None:
        """Write where the step stands, if it is time to."""
        if self.checkpoint.due():
            self.checkpoint.keep(self.name, snapshot())
            self.checkpoint.write()

    def end(self, snapshot: Snapshot, status: Status) -> None:
        """The step has ended; one that was stopped is written as it is, to go on from."""
        stopped = status is Status.STOPPED
        self.checkpoint.keep(self.name, snapshot if stopped else snapshot._replace(status=status))
        if stopped or self.checkpoint.due():
            self.checkpoint.write()


def computed_once(checkpoint: Checkpoint | None, name: str, work: Callable[[], T], like: T) -> T:
    """The result of `work()`, a tree like `like`, or what the file has of it.

    `name` is that of the step, one of its own in the fit.
    """
    if checkpoint is None:
        return work()
    entry = checkpoint.entry(name)
    found = entry.load(Snapshot(like, [], 0, 0.0))
    if found is not None:
        before: T = found.state
        return before
    result = work()
    entry.end(Snapshot(result, [], 0, 0.0), Status.COMPLETED)
    return result


def _snapshot(kept: _Kept, like: Snapshot) -> Snapshot:
    """What the file has, built like `like`. Raises one of _MALFORMED where it is of another form."""
    tree = _arrays_of(like._replace(best=like.state if kept.progress["has_best"] else None))
    leaves = leaves_of(tree)
    if _forms(kept.arrays) != _forms({path: np.asarray(leaf) for path, leaf in leaves.items()}):
        raise ValueError("arrays of other names, shapes or types")
    state, best = rebuilt(tree, {path: _like(kept.arrays[path], leaf) for path, leaf in leaves.items()})
    trace, status = [dict(row) for row in kept.progress["trace"]], kept.progress["status"]
    n_iter, seconds = int(kept.progress["n_iter"]), float(kept.progress["seconds"])
    return Snapshot(state, trace, n_iter, seconds, best, status and Status[status])


def _arrays_of(snapshot: Snapshot) -> tuple[Any, Any]:
    return snapshot.state, snapshot.best


def _own(arrays: Mapping[str, np.ndarray], number: int, progress: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of one step, without its number."""
    prefix = f"{number}["
    own = {name[len(prefix) - 1 :]: array for name, array in arrays.items() if name.startswith(prefix)}
    return {name: array.T if name in progress.get("fortran", ()) else array for name, array in own.items()}


def _to_numpy(leaf: Any) -> np.ndarray:
    """A copy of an array, in its memory order."""
    array = np.asarray(leaf)
    return array.copy("F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C")


def _like(array: np.ndarray, leaf: Any) -> Any:
    """What the file has in place of a leaf: an array for an array, a number for a number."""
    return array if isinstance(leaf, np.ndarray) else array.item()


def _forms(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Type and number of axes of arrays by name."""
    return {name: (array.dtype, array.ndim) for name, array in arrays.items()}
