"""The recipe of a fit for rows in parts: what `fit.py` does with rows in memory.

Held-out rows are of a sample that is the same wherever the rows are. A sample that is all rows is fitted as a
table in memory is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.core.device import key_from_seed
from nongauss.optimise import streamed as epochs
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.result import Callback, FitResult
from nongauss.optimise.streamed import Batch
from nongauss.tables.parquet import Encoded, FirstRows
from nongauss.tables.rows import content_hash
from nongauss.tables.source import Source
from nongauss.tggm.fit import (
    Data,
    Recipe,
    batch_size,
    begin,
    ended,
    enough_epochs,
    folds,
    held_out,
    like_inputs,
    make_step,
)
from nongauss.tggm.params import Config, start
from nongauss.tggm.predict import Ensemble

MOST_SAMPLED = 50_000
"""Distinct rows of the sample: a tenth of them are each member's to be judged and calibrated by."""


class Folds(NamedTuple):
    """The inputs of held-out rows, as sorted hashes (H,), and the member that each is held out from (H,)."""

    hashes: NDArray[np.uint64]
    member: NDArray[np.int32]

    def of(self, X: NDArray[np.float32]) -> NDArray[np.int32]:
        """For rows X (N, D) the member that does not train on each, or -1."""
        if not len(self.hashes):
            return np.full(len(X), -1, np.int32)
        own = _hash(X)
        place = np.minimum(np.searchsorted(self.hashes, own), len(self.hashes) - 1)
        return np.where(self.hashes[place] == own, self.member[place], -1).astype(np.int32)


def _hash(X: NDArray[np.float32]) -> NDArray[np.uint64]:
    X = np.ascontiguousarray(X)
    return content_hash(X, X[:, :0])


class Size(NamedTuple):
    """Number of rows, their weight, and that of the rows that each member trains on (E,)."""

    n_rows: int
    weight: float
    trained_on: NDArray[np.float64]


def fit(
    seed: int,
    rows: Source,
    first: FirstRows,
    config: Config,
    recipe: Recipe,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> tuple[FitResult, Ensemble]:
    """Train the ensemble on a source of `Encoded` rows; `first` is a sample of them."""
    data = Data(*first.rows)
    group = like_inputs(data)
    fold = folds(int(group.max()) + 1, recipe)[group]
    sizes: Size = rows.sum(_size, _folds(data, fold), recipe.n_members)
    unit = 2.0 ** round(math.log2(sizes.weight / sizes.n_rows))
    held = held_out(data._replace(weight=data.weight / unit), fold, recipe.n_members)
    size = batch_size(sizes.n_rows, recipe.batch_size)
    params = start(np.random.default_rng(seed), config, recipe.n_members, data.n_inputs, data.Y)
    max_epochs = recipe.max_epochs or enough_epochs(sizes.n_rows, size)
    n_steps = max_epochs * math.ceil(sizes.n_rows / size)
    total = sizes.trained_on / unit
    counted = sizes.trained_on if config.n_classes else total
    state = begin(params, total, n_steps, recipe, counted)
    result = epochs.run(
        make_step(config, size, sizes.n_rows), key_from_seed(seed), state,
        rows.map(_batch, _folds(data, fold), unit),
        sizes.n_rows, held, max_iter=max_epochs, callbacks=callbacks, checkpoint=checkpoint, verbose=verbose,
    )  # fmt: skip
    return ended(result, config, held)


def _folds(data: Data, fold: NDArray[np.int32]) -> Folds:
    """What tells held-out rows wherever they are: by their inputs, as labels of one input go together."""
    held = fold >= 0
    hashes, at = np.unique(_hash(data.X[held]), return_index=True)
    return Folds(hashes, fold[held][at])


def _size(part: Encoded, held: Folds, n_members: int) -> Size | None:
    if not len(part.weight):
        return None
    fold = held.of(part.X)
    total = float(part.weight.sum())
    own = np.bincount(fold[fold >= 0], weights=part.weight[fold >= 0], minlength=n_members)
    return Size(len(part.weight), total, (total - own).astype(np.float64))


def _batch(part: Encoded, held: Folds, unit: float) -> Batch:
    data: tuple[Any, ...] = (part.X, part.Y, held.of(part.X))
    return Batch(data, (part.weight / unit).astype(np.float32))
