"""Former way in of tables in parts: see `learn`, `sample`, and `estimator.by_parts`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.tables import sample as _sample
from nongauss.tables.labels import LabelCoder
from nongauss.tables.labels import labels_of as labels_of
from nongauss.tables.learn import OfTarget, Summary, as_source, learn
from nongauss.tables.learn import is_parted as is_parted
from nongauss.tables.sample import sample as sample
from nongauss.tables.sample import sample_table as sample_table
from nongauss.tables.source import Part, Source
from nongauss.tables.source import naming as naming

ReadTarget = Callable[[Any, NDArray[np.float64]], NDArray[np.float64]]


class Described(NamedTuple):
    """What one pass tells: a summary of the table, and one of its target (None without)."""

    table: Summary
    target: Any


def open_parts(X: Any, y: Any = None, weight: Any = None) -> Source:
    """The parts of a table, each a `Part`. Raises InputError."""
    return as_source(X, y, weight)


def describe(source: Source, estimator_name: str, of_target: OfTarget | None = None) -> Described:
    """One pass over the table, with the sum of `of_target(part, weight)`. Raises InputError."""
    learned = learn(source, estimator_name, of_target, warn=False)
    return Described(learned.summary, learned.target)


@dataclass(frozen=True)
class _OfY:
    read: ReadTarget

    def __call__(self, part: Part, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.read(part.y, weight)


def Encode(
    encoder: Any,
    read: ReadTarget | None,
    estimator_name: str,
    factors: NDArray[np.float64] | None = None,
    n_targets: int = 1,
) -> _sample.Encode:
    """`sample.Encode` whose target is read of y alone."""
    return _sample.Encode(encoder, None if read is None else _OfY(read), estimator_name, factors, n_targets)


def class_numbers(coder: LabelCoder, name: str, y: Any, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """The target of a classifier as class numbers, (N, 1). Raises InputError."""
    return coder.encode(y, len(weight), name, weight)[:, None]


def by_parts(method: Callable[..., Any]) -> Callable[..., Any]:
    """`estimator.by_parts`, by its former name."""
    decorate = importlib.import_module("nongauss.estimator.by_parts").by_parts
    decorated: Callable[..., Any] = decorate(method)
    return decorated
