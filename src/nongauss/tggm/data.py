"""From an encoded table to the rows that the mathematics takes: canonical, dealt out to members, held out."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Float64, Int32, Int64, Key, UInt64

from nongauss.core.errors import InputError
from nongauss.estimator.known_rows import KnownRows
from nongauss.optimise.minibatch import Batch, over_devices, pad_rows
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.labels import LabelCoder
from nongauss.tables.rows import canonical_rows, content_hash
from nongauss.tables.source import Encoded, Source
from nongauss.tables.sparse import SparseRows, as_one_array, from_one_array
from nongauss.tables.target import TargetScaler
from nongauss.tggm.config import DENSE_DROPOUT, WORD_DROPOUT, NetworkConfig, TrainingRecipe
from nongauss.tggm.splines import NO_SPLINES, SplineColumns, Splines, splines_of

FEWEST_TO_HOLD_OUT = 20
"""With fewer distinct rows of labels none is held out: a tenth of them would say nothing. Of numbers, the
members together hold out all rows then, which is enough to say when to stop and how wide intervals are."""

FEWEST_NUMBERS = 5
"""With fewer rows of numbers none is held out."""

MOST_SAMPLED = 50_000
"""Distinct rows of the sample of a table past memory: each member is judged and calibrated by a tenth of
them."""

TOGETHER = 16
"""Held-out rows come in multiples of this, which is also how many sparse ones are dense at a time."""

LARGEST = 5.0
"""Largest standardised value of a column, for labels: one that is nearly always at its mean is not blown up
beyond."""

COUNTED = 40.0
"""Columns of a sparse table that are counted for each filled cell of a row; beyond, words are rare."""

HeldOut = tuple[Any, jax.Array, jax.Array]
"""Each member's held-out rows: X (E, V, D) or `SparseRows`, Y (E, V, P) and weight (E, V)."""


class NetworkRows(NamedTuple):
    """Canonical rows: X (N, D), Y (N, P) float32 and standardised, weight (N,) float64.

    X may be `SparseRows` of `n_columns` columns; of labels, Y holds the class numbers, (N, 1).
    """

    X: Any
    Y: Float32[np.ndarray, "N P"]
    weight: Float[np.ndarray, " N"]
    n_columns: int | None = None

    @property
    def n_inputs(self) -> int:
        """D, which sparse rows do not show."""
        return int(self.X.shape[1]) if self.n_columns is None else self.n_columns

    @property
    def n_counted(self) -> float:
        """The inputs that the prior of their weights counts: all, of sparse rows `COUNTED` a filled cell.

        Squares are summed, of which a filled cell has 1 on average.
        """
        if not isinstance(self.X, SparseRows):
            return float(self.n_inputs)
        squares = (np.asarray(self.X.value, np.float64) ** 2).sum(axis=1)
        return min(float(self.n_inputs), COUNTED * float(np.average(squares, weights=self.weight)))


class RegressionReading(NamedTuple):
    """How a regression reads tables: the encoding of X, the scaling of y, whether y has one dimension.

    `known`: training rows that are kept to compare new ones with. `monotone`: names or numbers of columns
    with which y may only rise (1) or fall (-1). `asked`: the columns that are asked for as `splines`.
    """

    encoder: TableEncoder
    scaler: TargetScaler
    squeeze: bool
    known: KnownRows | None = None
    monotone: Mapping[Any, int] | None = None
    asked: SplineColumns = None
    splines: Splines = NO_SPLINES

    def told_by(self, sample: Encoded) -> RegressionReading:
        """The same, with the splines that these rows ask for."""
        return self._replace(splines=splines_of(self.asked, self.encoder, *sample))

    def inputs(self, rows: Any) -> Any:
        """Rows (`Encoded` or `NetworkRows`) with the pieces of splines behind their encoded columns."""
        return rows._replace(X=self.splines.joined(rows.X))

    def completed(self, config: NetworkConfig) -> NetworkConfig:
        """The settings for this table. Raises InputError for what the network cannot keep to."""
        n_outputs = len(self.scaler.centre)
        is_fit = config.method == "ml" and config.posterior in ("auto", "moments") and n_outputs == 1
        if (config.n_heads or 1) > 1 and (self.monotone or not is_fit):
            raise InputError(
                f"n_heads={config.n_heads} needs method='ml', posterior='moments' or 'auto', one output and "
                f"no monotone, got {config.method!r}, {config.posterior!r}, {n_outputs} and {self.monotone}; "
                "pass these, or n_heads=1."
            )
        if not self.monotone:
            return config
        if len(config.layers) > 1 or len(self.scaler.centre) > 1:
            raise InputError(
                f"monotone needs one hidden layer and one output, got {max(len(config.layers), 1)} and "
                f"{len(self.scaler.centre)}; pass hidden_layer_sizes=(50,), fit outputs one by one."
            )
        mirrored = bool(self.scaler.scale[0] < 0.0)
        directions = directions_of(self.encoder, self.monotone, mirrored)
        pieces = tuple(directions[number] for number in self.splines.column.tolist())
        return replace(config, directions=directions + pieces)

    def rows(self, encoded: Encoded) -> NetworkRows:
        """Canonical rows as the network takes them."""
        return NetworkRows(*self.inputs(encoded))


class LabelReading(NamedTuple):
    """How a classification reads tables: the encoding of X, a factor for each encoded column (None if X is
    sparse), and the classes.
    """

    encoder: Any
    shrink: Float64[np.ndarray, " D"] | None
    coder: LabelCoder
    known: KnownRows | None = None

    def told_by(self, sample: Encoded) -> LabelReading:
        """The same: labels have no splines."""
        return self

    def inputs(self, rows: Any) -> Any:
        """The same rows."""
        return rows

    def completed(self, config: NetworkConfig) -> NetworkConfig:
        """The settings for these classes, and the share of cells that training leaves out."""
        dropout = config.dropout
        if dropout is None:
            dropout = WORD_DROPOUT if self.shrink is None else dense_dropout(len(self.shrink))
        return replace(config, n_classes=len(self.coder.classes), dropout=dropout)

    def rows(self, encoded: Encoded) -> NetworkRows:
        """Canonical rows as the network takes them; sparse ones come with index and value joined."""
        if self.shrink is not None:
            return NetworkRows(*encoded)
        return NetworkRows(from_one_array(encoded.X), encoded.Y, encoded.weight, self.encoder.n_features)


def directions_of(encoder: TableEncoder, monotone: Mapping[Any, int], mirrored: bool) -> tuple[int, ...]:
    """The direction of each encoded column, 0 where it is free. Raises InputError for what cannot be kept.

    Columns may be mirrored when they are standardised, and so may the target: two mirrors keep a direction.
    """
    asked: dict[str, int] = {}
    for key, direction in monotone.items():
        name = f"x{key}" if isinstance(key, numbers.Integral) else str(key)
        codes = [code for code in encoder.columns if code.name == name]
        if direction not in (-1, 0, 1):
            raise InputError(f"monotone[{key!r}] must be 1 (rises), -1 (falls) or 0, got {direction!r}.")
        if not codes:
            known = ", ".join(code.name for code in encoder.columns[:8])
            raise InputError(f"monotone names {key!r}, which is no column of X; X has {known}.")
        if codes[0].role == "labels" or codes[0].part:
            raise InputError(f"monotone names {key!r}, whose cells have no order; leave it out.")
        asked[name] = int(direction) * (-1 if mirrored else 1) * (-1 if codes[0].sd < 0.0 else 1)
    return tuple(asked.get(name, 0) for name in encoder.encoded_names)


def filled(X: Any, n_inputs: int) -> Float[Array, "B D"]:
    """The rows of a batch as a dense matrix, whether they come dense or as `SparseRows`."""
    if not isinstance(X, SparseRows):
        dense: Float[Array, "B D"] = X
        return dense
    empty = jnp.zeros((len(X.index), n_inputs), X.value.dtype)
    return empty.at[jnp.arange(len(X.index))[:, None], X.index].add(X.value)


def dense_dropout(n_columns: int) -> float:
    """Share of the cells of a dense table that training leaves out by default: none of few columns."""
    return next((share for least, share in DENSE_DROPOUT if n_columns >= least), 0.0)


def thinned(key: Key[Array, ""], X: Any, dropout: float | None) -> Any:
    """The rows of a batch without a random share of their cells; the rest make up for it.

    A cell v becomes v / (1 - dropout) with probability 1 - dropout, else 0: its mean stays v.
    """
    if not dropout:
        return X
    cells = X.value if isinstance(X, SparseRows) else X
    kept = jax.random.bernoulli(key, 1.0 - dropout, cells.shape)
    left = jnp.where(kept, cells / (1.0 - dropout), 0.0)
    return SparseRows(X.index, left) if isinstance(X, SparseRows) else left


class TrainingTable(NamedTuple):
    """What a fit trains on: `n_rows` rows, in memory on the device or as a source of `Batch`.

    `total` (E,): the weight of the rows that each member trains on, about 1 a row.
    `counted` (E,): total weight that the prior is divided by, the user's own units for labels, `total` for
    numbers. `held`: the rows that each member is judged by, if some are held out.
    """

    n_rows: int
    total: Float[np.ndarray, " E"]
    counted: Float[np.ndarray, " E"]
    held: HeldOut | None
    rows: Any


def canonical(
    encoded: Float[np.ndarray, "N D"] | SparseRows,
    target: Float[np.ndarray, "N P"],
    weight: Float64[np.ndarray, " N"],
    n_columns: int | None = None,
) -> NetworkRows:
    """Canonical rows of encoded inputs, dense or sparse (then of `n_columns` columns), and their targets."""
    if isinstance(encoded, SparseRows):
        rows = canonical_rows(as_one_array(encoded), target, weight)
        return NetworkRows(from_one_array(rows.X), rows.Y, rows.weight, n_columns)
    rows = canonical_rows(encoded, target, weight)
    return NetworkRows(rows.X, rows.Y, rows.weight)


def whole_table(data: NetworkRows, recipe: TrainingRecipe, are_labels: bool) -> TrainingTable:
    """Rows in memory, put on the device. Labels of one input are held out together."""
    n_rows, n_members = len(data.weight), recipe.n_members
    fold = folds_by_input(data, recipe) if are_labels else folds(n_rows, recipe, FEWEST_NUMBERS)
    weight = weights_near_one(data.weight)
    held = held_out(data._replace(weight=weight), fold, n_members)
    rows = pad_rows((data.X, data.Y, fold), weight, held)
    rows = over_devices(rows) if recipe.rows_a_batch(n_rows) >= n_rows else rows
    total = trained_on(weight, fold, n_members)
    counted = trained_on(data.weight, fold, n_members) if are_labels else total
    return TrainingTable(n_rows, total, counted, held, rows)


def streamed_table(
    rows: Source, sample: NetworkRows, recipe: TrainingRecipe, are_labels: bool
) -> TrainingTable:
    """A source of `Encoded` rows, of which some of the `sample` are held out.

    Held-out rows are told by their inputs wherever they are, so those of one input are held out together.
    """
    fold = folds_by_input(sample, recipe)
    inputs = HeldOutInputs.of_rows(sample, fold)
    size: _Size = rows.sum(_size_of, inputs, recipe.n_members)
    unit = weight_unit(size.weight / size.n_rows)
    held = held_out(sample._replace(weight=sample.weight / unit), fold, recipe.n_members)
    total = size.trained_on / unit
    counted = size.trained_on if are_labels else total
    return TrainingTable(size.n_rows, total, counted, held, rows.map(_batch_of, inputs, unit))


def table_without_holdout(data: NetworkRows, n_members: int, are_labels: bool) -> TrainingTable:
    """Rows in memory on which all members train; none is held out."""
    nobody = np.full(len(data.weight), -1, np.int32)
    weight = weights_near_one(data.weight)
    total = np.full(n_members, weight.sum(), np.float32)
    counted = np.full(n_members, data.weight.sum() if are_labels else weight.sum(), np.float32)
    return TrainingTable(len(weight), total, counted, None, pad_rows((data.X, data.Y, nobody), weight))


def weight_unit(mean: float) -> float:
    """The power of two nearest to a mean weight: in this unit weights are about 1, and none overflows."""
    return float(2.0 ** round(math.log2(mean)))


def weights_near_one(weight: Float[np.ndarray, " N"]) -> Float32[np.ndarray, " N"]:
    """Weights in the unit of `weight_unit`: that of the user's is irrelevant."""
    light: Float32[np.ndarray, " N"] = (weight / weight_unit(weight.mean())).astype(np.float32)
    return light


def trained_on(
    weight: Float[np.ndarray, " N"], fold: Int32[np.ndarray, " N"], n_members: int
) -> Float[np.ndarray, " E"]:
    """Total weight of the rows that each member does not hold out."""
    return np.array([weight[fold != e].sum() for e in range(n_members)])


def folds(n_rows: int, recipe: TrainingRecipe, fewest: int = FEWEST_TO_HOLD_OUT) -> Int32[np.ndarray, " N"]:
    """For each row the member that does not train on it, or -1.

    Rows come in an order that depends on their content alone, so dealing them out in turn is a random but
    repeatable choice, which a row's weight or its place in the user's table does not change. Each member has
    other rows, so the share that it holds out is at most one over the number of members, and at most a half.
    Below `FEWEST_TO_HOLD_OUT` rows, of at least `fewest`, it is that much.
    """
    if recipe.validation_fraction == 0 or n_rows < max(fewest, recipe.n_members):
        return np.full(n_rows, -1, np.int32)
    n_folds = max(2, recipe.n_members)
    if n_rows >= FEWEST_TO_HOLD_OUT:
        n_folds = max(n_folds, round(1.0 / recipe.validation_fraction))
    turn = np.arange(n_rows, dtype=np.int32) % n_folds
    return np.where(turn < recipe.n_members, turn, -1).astype(np.int32)


def folds_by_input(data: NetworkRows, recipe: TrainingRecipe) -> Int32[np.ndarray, " N"]:
    """`folds` of the distinct inputs, for each row that of its input.

    Else a member would train on one label of an input, and be judged on the other.
    """
    group = like_inputs(data)
    dealt: Int32[np.ndarray, " N"] = folds(int(group.max()) + 1, recipe)[group]
    return dealt


def like_inputs(data: NetworkRows) -> Int64[np.ndarray, " N"]:
    """One number for all rows with the same inputs."""
    X = as_one_array(data.X) if isinstance(data.X, SparseRows) else data.X
    group: Int64[np.ndarray, " N"] = canonical_rows(X, np.zeros((len(X), 0)), np.ones(len(X))).order
    return group


def held_out(data: NetworkRows, fold: Int32[np.ndarray, " N"], n_members: int) -> HeldOut | None:
    """Each member's held-out rows, padded to one length by rows of weight 0: (E, V, ...) arrays."""
    if not (fold >= 0).any():
        return None
    parts = [np.flatnonzero(fold == e) for e in range(n_members)]
    length = max(len(part) for part in parts)
    length = -(-length // TOGETHER) * TOGETHER
    index = np.stack([np.pad(part, (0, length - len(part)), mode="edge") for part in parts])
    real = np.arange(length)[None, :] < np.array([[len(part)] for part in parts])
    weight = np.where(real, data.weight[index], 0.0).astype(np.float32)
    X = jax.tree.map(lambda array: array[index], data.X)
    held: HeldOut = jax.device_put((X, data.Y[index], weight))
    return held


class HeldOutInputs(NamedTuple):
    """The inputs of held-out rows, as sorted hashes (H,), and the member that each is held out from (H,)."""

    hashes: UInt64[np.ndarray, " H"]
    member: Int32[np.ndarray, " H"]

    @classmethod
    def of_rows(cls, data: NetworkRows, fold: Int32[np.ndarray, " N"]) -> HeldOutInputs:
        """The inputs of those dense rows whose `fold` is not -1."""
        held = fold >= 0
        hashes, at = np.unique(_hash_of(data.X[held]), return_index=True)
        return cls(hashes, fold[held][at])

    def folds_of(self, X: Float32[np.ndarray, "N D"]) -> Int32[np.ndarray, " N"]:
        """For each row the member that does not train on it, or -1."""
        if not len(self.hashes):
            return np.full(len(X), -1, np.int32)
        own = _hash_of(X)
        place = np.minimum(np.searchsorted(self.hashes, own), len(self.hashes) - 1)
        return np.where(self.hashes[place] == own, self.member[place], -1).astype(np.int32)


def _hash_of(X: Float32[np.ndarray, "N D"]) -> UInt64[np.ndarray, " N"]:
    """A 64-bit hash of the inputs of each row."""
    X = np.ascontiguousarray(X)
    return content_hash(X, X[:, :0])


class _Size(NamedTuple):
    """Number of rows, their weight, and that of the rows that each member trains on (E,); additive."""

    n_rows: int
    weight: float
    trained_on: Float64[np.ndarray, " E"]


def _size_of(part: Encoded, inputs: HeldOutInputs, n_members: int) -> _Size | None:
    """The size of a part, None of one without rows."""
    if not len(part.weight):
        return None
    fold = inputs.folds_of(part.X)
    total = float(part.weight.sum())
    own = np.bincount(fold[fold >= 0], weights=part.weight[fold >= 0], minlength=n_members)
    return _Size(len(part.weight), total, (total - own).astype(np.float64))


def _batch_of(part: Encoded, inputs: HeldOutInputs, unit: float) -> Batch:
    """The rows of a part as a training step takes them, weights in this unit."""
    data: tuple[Any, ...] = (part.X, part.Y, inputs.folds_of(part.X))
    return Batch(data, (part.weight / unit).astype(np.float32))
