"""From a table to the rows that the mathematics takes: encoded inputs, the target on its scale, weights."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.sparse_gp.kernels import FloatArray, Space
from nongauss.sparse_gp.likelihoods import Likelihood
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.inputs import Inputs
from nongauss.tables.parquet import Encoded, Part
from nongauss.tables.parted import Encode, ReadTarget, sample
from nongauss.tables.rows import canonical_rows
from nongauss.tables.scaling import Moments
from nongauss.tables.source import Source
from nongauss.tables.target import TargetScaler, TargetSummary, validate_target


class GPRows(NamedTuple):
    """Encoded rows X (N, D), y (N,), weight (N,), and what is added to the latent mean: shift (N,)."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    shift: FloatArray

    def take(self, index: NDArray[Any] | slice) -> GPRows:
        """The rows at some places."""
        return GPRows(*(part[index] for part in self))

    def in_float64(self) -> GPRows:
        """The same numbers in float64."""
        return GPRows(*(part.astype(np.float64, copy=False) for part in self))


class GPTable(NamedTuple):
    """A table as a fit takes it: canonical rows, the columns of X, and all rows where these are more."""

    rows: GPRows
    space: Space
    everywhere: Source | None
    checksum: int


def as_rows(part: Encoded) -> GPRows:
    """Encoded rows, whose targets are y and the shift of the latent mean, in float32 as they came."""
    X: Any = part.X
    y, shift = part.Y.T
    return GPRows(X, y, part.weight, shift)


def table_in_memory(inputs: Inputs, y: FloatArray, shift: FloatArray) -> GPTable:
    """Canonical rows of an encoded table, with targets y (N,) and the shift (N,) of the latent mean."""
    encoded, space = with_a_column(inputs.encoded, space_of(inputs.encoder))
    merged = canonical_rows(encoded, np.stack([y, shift], axis=1), inputs.weight)
    own, moved = merged.Y.astype(np.float64).T
    rows = GPRows(merged.X.astype(np.float64), own, merged.weight, moved)
    return GPTable(rows, space, None, 0)


def table_in_parts(
    source: Source, encoder: TableEncoder, read: ReadTarget, estimator_name: str, most: int
) -> GPTable:
    """The first `most` canonical rows of a table in parts, and all of them where they are."""
    if not encoder.encoded_names:
        raise InputError("No column of the table tells rows apart; give one with more than one value.")
    encoded = source.map(Encode(encoder, read, estimator_name, n_targets=2))
    first = sample(encoded, most)
    everywhere = None if first.are_all else encoded.map(as_rows)
    return GPTable(as_rows(first.rows).in_float64(), space_of(encoder), everywhere, first.checksum)


def space_of(encoder: Any) -> Space:
    """Which input column each encoded column came from, and the names of those that are used."""
    used = [code for code in encoder.columns if code.encoded_names]
    group = tuple(number for number, code in enumerate(used) for _ in code.encoded_names)
    return Space(tuple(str(code.name) for code in used), group)


def with_a_column(encoded: FloatArray, space: Space) -> tuple[FloatArray, Space]:
    """The same, with a column of zeros where there is none: a table that says nothing is legal."""
    if encoded.shape[1]:
        return encoded, space
    return np.zeros((len(encoded), 1)), Space(("nothing",), (0,))


@dataclass(frozen=True)
class SummariseTarget:
    """Checks the target of a part against the likelihood and sums it up."""

    likelihood: Likelihood
    name: str

    def __call__(self, part: Part, weight: FloatArray) -> TargetSummary:
        """The summary of the part's one output. Raises InputError."""
        found = TargetSummary.of(part.y, weight, self.name)
        check_one_output(len(found.outputs), self.name)
        self.likelihood.check(validate_target(part.y, len(weight), self.name)[0][:, 0])
        return found


@dataclass(frozen=True)
class ScaleTarget:
    """Puts the target of a part on the scale of the fit, (N, 2), beside the latent mean's shift of 0."""

    scaler: TargetScaler
    name: str

    def __call__(self, y: Any, weight: FloatArray) -> FloatArray:
        """The scaled target and zeros. Raises InputError."""
        Y, _ = validate_target(y, len(weight), self.name)
        return np.hstack([self.scaler.transform(Y), np.zeros((len(Y), 1))])


def check_one_output(n_outputs: int, name: str) -> None:
    """Raises InputError for several outputs."""
    if n_outputs != 1:
        raise InputError(f"y has {n_outputs} outputs, {name} takes one; fit one model for each.")


def target_scaler(moments: Moments, standard: TargetScaler, likelihood: Likelihood) -> TargetScaler:
    """What is done to the target before the mathematics sees it. Warns of a constant one."""
    if standard.constant[0]:
        warnings.warn(
            "The target is constant: that value is predicted everywhere, with a spread that the data "
            "cannot tell.",
            NongaussWarning,
            stacklevel=4,
        )
    if likelihood.target == "standardised":
        return standard
    mean = moments.unit * moments.mean
    unit = mean if likelihood.target == "scaled" and mean > 0 else 1.0
    return TargetScaler(np.zeros(1), np.array([unit]), standard.constant)


def log_exposure(exposure: ArrayLike | None, n_rows: int, likelihood: Likelihood) -> FloatArray:
    """The log of the exposure (N,), zeros without one. Raises InputError."""
    if exposure is None:
        return np.zeros(n_rows)
    if not likelihood.takes_exposure:
        raise InputError(
            f"exposure is for counts, but the likelihood is {likelihood.name}; drop it, or take 'poisson'."
        )
    try:
        values = np.asarray(exposure, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"exposure must be numbers, one for each row: {error}.") from error
    values = np.full(n_rows, float(values)) if values.ndim == 0 else values
    if values.shape != (n_rows,):
        raise InputError(f"exposure has shape {values.shape}, expected ({n_rows},); give one for each row.")
    bad = ~((values > 0) & np.isfinite(values))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"exposure must be above 0 and finite, got {values[row]:g} in row {row} (counted from 0); "
            "drop rows without exposure."
        )
    return np.log(values)
