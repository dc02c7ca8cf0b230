"""From a table as a user gives it to raw cells: all rows in memory, a sample, or a sample and parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.rank_factor.data import FloatArray
from nongauss.tables.column import Column
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.frame import n_rows_of, take_rows
from nongauss.tables.labels import LabelCoder, class_target, labels_of
from nongauss.tables.learn import learn
from nongauss.tables.source import Encode, Part, Source, Stream, sample_table, weight_of

LIGHTEST, HEAVIEST = 1e-12, 1e12
"""Least weight of a row against the heaviest, and the largest weight: a double has 16 digits."""

MOST_SAMPLED = 50_000
"""Distinct rows of a table in parts that are in memory: the fit starts from them."""


class RawTable(NamedTuple):
    """A table in memory: how it is encoded, raw cells (N, D), class numbers (N,), weights (N,), classes (C,).

    Without labels the class numbers are 0 and there are no classes. `columns`: the flat columns as they are.
    `parts`: all rows, where these are a sample of a table in parts.
    """

    encoder: TableEncoder
    cells: FloatArray
    numbers: FloatArray
    weight: FloatArray
    classes: NDArray[Any] | None
    columns: list[Column]
    parts: Source | None = None


def read_table(source: Source, name: str, by_rank: bool, labels: bool) -> RawTable:
    """Learn the encoding of a table of one part in memory, and encode it once. Raises InputError.

    A number stays as it is, a label is 0 and 1; `by_rank`: an ordered category is a whole number.
    """
    learned = learn(source, name, partial(labels_of, name) if labels else None, scaled=False)
    (part,) = source.each(_itself)
    coder = learned.target.coder(name) if labels else None
    numbers = (
        np.zeros(len(part.weight)) if coder is None else class_target(coder, name, part, part.weight)[:, 0]
    )
    cells = raw_cells(learned.encoder, part.X, by_rank, name, warn=False)
    columns = [] if labels else learned.encoder.raw(part.X, name, warn=False)
    classes = None if coder is None else coder.classes
    return RawTable(learned.encoder, cells, numbers, bounded(part.weight), classes, columns)


def bounded(weight: FloatArray) -> FloatArray:
    """Weights (N,) whose sums keep the lightest rows: 0 stays 0, others from `LIGHTEST` of the largest on.

    Systems of equations whose sums span more than the digits of a double have no solution but rounding. The
    heaviest row counts `HEAVIEST` times at most, which leaves the priors their place in the same digits.
    """
    heaviest = float(weight.max(initial=0.0))
    if not heaviest:
        return weight
    share = weight / heaviest
    within_digits = np.where(weight > 0, np.maximum(share, LIGHTEST), 0.0)
    changed = heaviest > HEAVIEST or bool((within_digits != share).any())
    return within_digits * min(heaviest, HEAVIEST) if changed else weight


def raw_cells(encoder: TableEncoder, X: Any, by_rank: bool, name: str, warn: bool = True) -> FloatArray:
    """Raw cells (N, D) of a table, a column of zeros where no column says anything: such a table is legal."""
    view = encoder.as_ranks if by_rank else encoder.as_one_hot
    cells = view(X, name, warn)
    return cells if cells.shape[1] else np.zeros((len(cells), 1))


def within(source: Source, name: str, labels: bool, most: int | None, seed: int) -> Source:
    """At most `most` rows in memory (None: all): by the seed, of parts by their content."""
    if not source.in_memory:
        assert most is not None
        return _sampled(source, name, labels, most)
    (part,) = source.each(_itself)
    n_rows = n_rows_of(part.X)
    if most is None or n_rows <= most:
        return source
    chosen = np.sort(np.random.default_rng(seed).choice(n_rows, most, replace=False))
    y = part.y if part.y is None else take_rows(part.y, chosen)
    own = part._replace(X=take_rows(part.X, chosen), y=y, weight=part.weight[chosen])
    return Stream([own], in_memory=True)


def _sampled(source: Source, name: str, labels: bool, most: int) -> Source:
    """The first `most` distinct rows of a table in parts, with their labels, as a table in memory."""
    learned = learn(source, name, partial(labels_of, name) if labels else None, warn=False)
    coder = learned.target.coder(name) if labels else None
    read = None if coder is None else partial(class_target, coder, name)
    first = sample_table(source, Encode(learned.encoder, read, name), most)
    y = None if coder is None else coder.classes[first.rows.Y[:, 0].astype(int)]
    return Stream([Part("", first.table, y, first.rows.weight)], in_memory=True)


def _itself(part: Part) -> Part:
    """The part as it is."""
    return part


class PartRows(NamedTuple):
    """Rows of a part: raw cells (B, D), NaN where missing, class numbers (B,), weights (B,) above 0."""

    cells: FloatArray
    numbers: FloatArray
    weight: FloatArray


@dataclass(frozen=True)
class ReadRanks:
    """A `Part` as `PartRows`. `coder`: of the labels, None without any."""

    encoder: TableEncoder
    coder: LabelCoder | None
    name: str

    def __call__(self, part: Part) -> PartRows:
        """The rows of weight above 0. Raises InputError."""
        n_rows, weight = n_rows_of(part.X), weight_of(part)
        if not n_rows:
            return PartRows(np.zeros((0, max(1, len(self.encoder.rank_names)))), np.zeros(0), np.zeros(0))
        kept = weight > 0
        cells = raw_cells(self.encoder, part.X, True, self.name, warn=False)
        numbers = np.zeros(n_rows)
        if self.coder is not None:
            numbers = class_target(self.coder, self.name, part, weight)[:, 0]
        return PartRows(cells[kept], numbers[kept], weight[kept])


def read_parts(source: Source, name: str, labels: bool) -> RawTable:
    """A sample of a table in parts, with all rows as a source of `PartRows` unless they are the sample.

    Raises InputError.
    """
    learned = learn(source, name, partial(labels_of, name) if labels else None, scaled=False)
    coder = learned.target.coder(name) if labels else None
    read = None if coder is None else partial(class_target, coder, name)
    first = sample_table(source, Encode(learned.encoder, read, name), MOST_SAMPLED)
    encoder, weight = learned.encoder, first.rows.weight
    numbers = np.zeros(len(weight)) if coder is None else first.rows.Y[:, 0].astype(np.float64)
    cells = raw_cells(encoder, first.table, True, name, warn=False)
    columns = [] if labels else encoder.raw(first.table, name, warn=False)
    classes = None if coder is None else coder.classes
    parts = None if first.is_all else source.map(ReadRanks(encoder, coder, name))
    return RawTable(encoder, cells, numbers, bounded(weight), classes, columns, parts)


_STREAMS = {"observation": "rank", "neighbours": "level", "inference": "vb", "classifier": "linear"}
"""The parameters of a model whose sweep is a sum over rows."""


def check_streams(name: str, chosen: Mapping[str, Any]) -> None:
    """Raises InputError for parameters of a model that takes no table in parts."""
    odd = [each for each, value in _STREAMS.items() if chosen.get(each, value) != value]
    odd += ["cut"] if chosen.get("cut", "auto") is False else []
    if odd:
        raise InputError(
            f"{name} with {odd[0]}={chosen[odd[0]]!r} needs its rows in memory; leave that out for a "
            "table in parts, or give max_rows for a sample."
        )
