"""Where rows live, the one place where they are summed, and samples of them. It knows no model and no kind.

A source holds a table as parts. `sum(local, *args)` adds `local(part, *args)` over all parts, and
`blocks(rng)` gives all rows in random order, some at a time. A pass keeps nothing with the rows: it is a pure
function of its arguments, so a part that was lost is read again and nothing changes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import islice
from queue import Full, Queue
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.frame import n_rows_of, take_rows
from nongauss.tables.rows import FARTHEST, canonical_rows, read_weight, rounded
from nongauss.tables.sparse import SparseRows, SparseTable, as_one_array

Local = Callable[..., Any]

MIXED = 4
"""Parts whose rows are shuffled together."""

AHEAD = 1
"""Parts that are read before they are asked for."""

_PATIENCE = 0.1  # seconds after which a reader looks whether it is still wanted


class Part(NamedTuple):
    """Rows as they came: their name in messages, table X, target y (N,) or (N, P), weights (N,), or None.

    `beside`: further columns of numbers by name, such as the exposure of counts. Of a table in memory, X is
    an `InputTable`, `weight` is checked and there is no name; of others nothing is checked.
    """

    name: str
    X: Any
    y: Any = None
    weight: Any = None
    beside: dict[str, Any] = {}  # noqa: RUF012  (never written to)


class Source(Protocol):
    """Rows in parts, wherever they are."""

    in_memory: bool
    """Are the rows one part, in memory here? Then a sample of them is all of them."""

    @property
    def n_parts(self) -> int:
        """Number of parts."""

    def map(self, function: Local, *args: Any) -> Source:
        """The source of `function(part, *args)`."""

    def sum(self, local: Local, *args: Any) -> Any:
        """The sum of `local(part, *args)` over all parts; None counts as nothing. See `added`."""

    def each(self, local: Local, *args: Any) -> Iterator[Any]:
        """`local(part, *args)` of one part after the other, in their order."""

    def blocks(self, rng: np.random.Generator, mixed: int = MIXED) -> Iterator[Any]:
        """All rows once: parts in random order, `mixed` of them joined; see `joined`."""


def added(a: Any, b: Any) -> Any:
    """The sum of two additive records: tuples and dicts entry by entry, None as nothing, others by `+`."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, dict):
        return {name: added(a[name], b[name]) for name in a}
    if isinstance(a, tuple):
        entries = [added(mine, its) for mine, its in zip(a, b, strict=True)]
        return type(a)(*entries) if hasattr(a, "_fields") else tuple(entries)
    return a + b


def total(records: Iterable[Any]) -> Any:
    """The sum of additive records, first to last; None of none."""
    return reduce(added, records, None)


def itself(part: Any) -> Any:
    """The part: what `each` gives of parts as they are."""
    return part


def joined(parts: Sequence[Any]) -> Any:
    """Parts that are arrays, or tuples of parts, one below the other."""
    first = parts[0]
    if len(parts) == 1 or first is None:
        return first
    if isinstance(first, tuple):
        entries = [joined(entry) for entry in zip(*parts, strict=True)]
        return type(first)(*entries) if hasattr(first, "_fields") else tuple(entries)
    return np.concatenate(parts)


class Stream:
    """Parts that are read when they are needed, the next one while the last is computed on.

    `handles` are small values that stand for the parts; `steps` turn a handle into a part, one after the
    other. `in_memory`: the handles are the parts themselves, so nothing is read ahead.
    """

    def __init__(self, handles: Sequence[Any], *steps: Local, in_memory: bool = False) -> None:
        self.handles, self.steps, self.in_memory = handles, steps, in_memory

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.handles)

    def map(self, function: Local, *args: Any) -> Stream:
        """This source with one more step, `function`, after which its parts are read."""
        return Stream(self.handles, *self.steps, with_arguments(function, args), in_memory=self.in_memory)

    def each(self, local: Local, *args: Any) -> Iterator[Any]:
        """`local(part, *args)` of one part after the other."""
        for part in self._read(self.handles):
            yield local(part, *args)

    def sum(self, local: Local, *args: Any) -> Any:
        """The sum of `local(part, *args)` over all parts."""
        return total(self.each(local, *args))

    def blocks(self, rng: np.random.Generator, mixed: int = MIXED) -> Iterator[Any]:
        """All rows once, some parts at a time."""
        order = rng.permutation(len(self.handles))
        parts = self._read([self.handles[i] for i in order])
        while some := list(islice(parts, mixed)):
            yield joined(some)

    def _read(self, handles: Sequence[Any]) -> Iterator[Any]:
        parts = (self._part(handle) for handle in handles)
        return read_ahead(parts) if self.steps and not self.in_memory else parts

    def _part(self, handle: Any) -> Any:
        for step in self.steps:
            handle = step(handle)
        return handle


def is_dask(X: Any) -> bool:
    """Is this a Dask collection? Where Dask was never imported, nothing is."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


def weight_of(part: Part) -> NDArray[np.float64]:
    """The weights (N,) of a part's rows, all of which may be 0. Raises InputError."""
    if not part.name and isinstance(part.weight, np.ndarray):
        weight: NDArray[np.float64] = part.weight
        return weight
    return read_weight(part.weight, n_rows_of(part.X))


def naming(part: Part, work: Callable[[], Any]) -> Any:
    """`work()`; what it raises about a row is raised with the part's name, if it has one."""
    if not part.name:
        return work()
    try:
        return work()
    except (InputError, TypeError) as error:
        raise InputError(f"{part.name}: {error}") from error


def with_arguments(function: Local, args: tuple[Any, ...]) -> Local:
    """`function` of a part alone: the other arguments are given already."""
    return partial(_called, function, args)


def _called(function: Local, args: tuple[Any, ...], part: Any) -> Any:
    """`function(part, *args)`."""
    return function(part, *args)


def read_ahead(items: Iterable[Any]) -> Iterator[Any]:
    """The given items, made by a thread of their own that keeps `AHEAD` of them ready.

    What goes wrong in there is raised here; a consumer that leaves early ends the thread.
    """
    ready: Queue[tuple[bool, Any]] = Queue(AHEAD)
    left = threading.Event()

    def put(item: tuple[bool, Any]) -> bool:
        while not left.is_set():
            try:
                ready.put(item, timeout=_PATIENCE)
            except Full:
                continue
            return True
        return False

    def produce() -> None:
        try:
            for item in items:
                if not put((True, item)):
                    return
            put((False, None))
        except BaseException as error:  # noqa: BLE001  (whatever it is, the consumer raises it)
            put((False, error))

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        while (found := ready.get())[0]:
            yield found[1]
    finally:
        left.set()
        thread.join()
    if found[1] is not None:
        raise found[1]


class Encoded(NamedTuple):
    """Rows as models take them: X (N, D) and Y (N, P) float32, weight (N,) float64 and positive."""

    X: NDArray[np.float32]
    Y: NDArray[np.float32]
    weight: NDArray[np.float64]


ReadPart = Callable[[Part, NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class Encode:
    """A `Part` as `Encoded` rows: the step of a source that a model learns from.

    `encoder`: a `TableEncoder` (whose `as_scaled` is taken) or a `SparseEncoder` (rows `joined`), or any
    other with `encoded_names` whose `as_scaled(X, estimator_name, warn)` gives a matrix. `read(part, weight)`
    gives the target as numbers (N, P), P being `n_targets`; None: no target. `factors` (D,) of the encoded
    columns. Rows of weight 0 are left out.
    """

    encoder: Any
    read: ReadPart | None = None
    estimator_name: str = "this estimator"
    factors: NDArray[np.float64] | None = None
    n_targets: int = 1

    def __call__(self, part: Part) -> Encoded:
        """The rows. Raises InputError naming the part."""
        found: Encoded = naming(part, partial(self._rows, part))
        return found

    def _rows(self, part: Part) -> Encoded:
        n_rows = n_rows_of(part.X)
        if not n_rows:
            widths = len(self.encoder.encoded_names), 0 if self.read is None else self.n_targets
            nothing = [np.zeros((0, width), np.float32) for width in widths]
            return Encoded(nothing[0], nothing[1], np.zeros(0))
        weight = weight_of(part)
        X = self._cells(part.X)
        Y = np.zeros((n_rows, 0)) if self.read is None else self.read(part, weight)
        kept = weight > 0
        if not kept.all():
            X, Y, weight = X[kept], Y[kept], weight[kept]
        if X.max(initial=0.0) > FARTHEST or X.min(initial=0.0) < -FARTHEST:
            X = np.clip(X, -FARTHEST, FARTHEST)  # a row of next to no weight, which has no say in the scale
        return Encoded(rounded(X), rounded(Y), weight)

    def _cells(self, X: Any) -> NDArray[Any]:
        """The encoded matrix (N, D), in float32 where nothing more is computed from it."""
        table = X.matrix if isinstance(X, SparseTable) else X
        found = self.encoder.as_scaled(table, self.estimator_name, warn=False)
        if isinstance(found, SparseRows):
            return as_one_array(found)
        out: NDArray[Any] = found if self.factors is None else found * self.factors
        return out


@dataclass(frozen=True)
class Sample:
    """The first `most` distinct rows in canonical order (None: all), weights added up; two add to one.

    That order is by a hash of the row's content: these rows are a random sample, and the same wherever the
    rows are and however they are cut into parts. `table`, if not None, has the same rows as they came.
    `checksum` is of all rows, these and the others. `order`: for each encoded row its number among all
    distinct rows; it is there for a sample of one part.
    """

    rows: Encoded
    most: int | None
    table: Any = None
    checksum: int = 0
    order: NDArray[np.int64] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, rows: Encoded, most: int | None, table: Any = None) -> Sample:
        """The first `most` distinct of these encoded rows; `table` has the same rows as they came."""
        found = canonical_rows(rows.X, rows.Y, rows.weight)
        if table is not None:
            kept = np.flatnonzero(found.order >= 0)
            first = kept[np.unique(found.order[kept], return_index=True)[1]][:most]
            table = take_rows(table, first)
        own = Encoded(found.X[:most], found.Y[:most], found.weight[:most])
        return cls(own, most, table, found.checksum, found.order)

    def __add__(self, other: Sample) -> Sample:
        mine, its = self.rows, other.rows
        X, Y = np.concatenate([mine.X, its.X]), np.concatenate([mine.Y, its.Y])
        both = Encoded(X, Y, np.concatenate([mine.weight, its.weight]))
        table: Any = None
        if self.table is not None:
            tables: list[Any] = [self.table, other.table]
            table = pd.concat(tables) if hasattr(self.table, "iloc") else np.concatenate(tables)
        checksum = (self.checksum + other.checksum) % 2**64
        return replace(Sample.of(both, self.most, table), checksum=checksum, order=None)

    @property
    def is_all(self) -> bool:
        """Is no row of the table left out?"""
        return self.most is None or len(self.rows.weight) < self.most

    def places(self, weight: NDArray[np.float64]) -> NDArray[np.int64]:
        """For each row of a table in memory, its number among the distinct rows; -1 for those of weight 0.

        `weight` (N,) are the weights of the table's rows.
        """
        assert self.order is not None
        out = np.full(len(weight), -1, dtype=np.int64)
        out[weight > 0] = self.order
        return out


def first_rows(part: Encoded, most: int | None) -> Sample | None:
    """`Sample` of a part; None of one without rows."""
    return Sample.of(part, most) if len(part.weight) else None


def sample(rows: Source, most: int | None) -> Sample:
    """The first `most` distinct rows in canonical order of a source of `Encoded` rows; see `Sample`.

    A table in memory is its own sample, however many rows it has.
    """
    found: Sample = rows.sum(first_rows, None if rows.in_memory else most)
    return found


def sample_table(source: Source, encode: Encode, most: int | None) -> Sample:
    """The first `most` distinct rows of a source as `sample` takes them, with the user's rows in `.table`.

    Of a table in memory, too, there are `most` rows at most. Rows are equal if `encode` makes them equal;
    `.rows.weight` are their weights. The table is an `InputTable` or a frame of pandas.
    """
    found: Sample = source.sum(_first_of_table, encode, most)
    return found


def _first_of_table(part: Part, encode: Encode, most: int | None) -> Sample | None:
    """`Sample` of a part with its own rows in `.table`; None of one without rows."""
    if not n_rows_of(part.X):
        return None
    kept = np.flatnonzero(weight_of(part) > 0)
    return Sample.of(encode(part), most, take_rows(part.X, kept))
