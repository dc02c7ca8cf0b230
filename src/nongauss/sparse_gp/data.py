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
from nongauss.tables.completion import Donors, completed_rows
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.labels import LabelCoder, class_target
from nongauss.tables.source import Encode, Encoded, Part, ReadPart, Source, sample
from nongauss.tables.target import TargetScaler, TargetSummary, scaled_target, validate_target


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
        """These rows with all numbers in float64."""
        return GPRows(*(part.astype(np.float64, copy=False) for part in self))


class GPTable(NamedTuple):
    """A table as a fit takes it: canonical rows, the columns of X, and all rows where these are more.

    `donors`: rows whose cells stand in for missing ones.
    """

    rows: GPRows
    space: Space
    everywhere: Source | None
    checksum: int
    donors: Donors | None


def read_table(
    source: Source, encoder: TableEncoder, read: ReadPart, estimator_name: str, most: int
) -> GPTable:
    """Encoded rows of a table. `read` makes of a part y and the latent mean's shift, (N, 2).

    Of a table that is not in memory the first `most` canonical rows, and all of them where they are.
    """
    encoded = completed_rows(encoder, source.map(Encode(encoder, read, estimator_name, n_targets=2)))
    first = sample(encoded, most)
    everywhere = None if first.is_all else encoded.map(as_rows)
    rows, donors = as_rows(first.rows).in_float64(), Donors.of(encoder, first.rows)
    return GPTable(rows, space_of(encoder), everywhere, first.checksum, donors)


def as_rows(part: Encoded) -> GPRows:
    """Encoded rows, whose targets are y and the shift of the latent mean, in float32 as they came."""
    X: Any = with_a_column(part.X)
    y, shift = part.Y.T
    return GPRows(X, y, part.weight, shift)


def space_of(encoder: TableEncoder) -> Space:
    """Which column each encoded column came from, and the names of those that are used."""
    used = [code for code in encoder.columns if code.encoded_names]
    if not used:
        return Space(("nothing",), (0,))
    group = tuple(number for number, code in enumerate(used) for _ in code.encoded_names)
    return Space(tuple(str(code.name) for code in used), group)


def with_a_column(encoded: NDArray[Any]) -> NDArray[Any]:
    """The encoded matrix, with a column of zeros where it has none: a table that says nothing is legal."""
    return encoded if encoded.shape[1] else np.zeros((len(encoded), 1), encoded.dtype)


@dataclass(frozen=True)
class SummariseTarget:
    """Checks the target of a part against the likelihood and sums it up."""

    likelihood: Likelihood
    name: str

    def __call__(self, part: Part, weight: FloatArray) -> TargetSummary:
        """The summary of the part's one output. Raises InputError."""
        found = TargetSummary.of(part.y, weight, self.name)
        n_outputs = len(found.outputs)
        if n_outputs != 1:
            raise InputError(f"y has {n_outputs} outputs, {self.name} takes one; fit one model for each.")
        self.likelihood.check(validate_target(part.y, len(weight), self.name, warn=False)[0][:, 0])
        return found


@dataclass(frozen=True)
class ScaleTarget:
    """Reads the target of a part on the scale of the fit, beside its log exposure: (N, 2)."""

    scaler: TargetScaler
    likelihood: Likelihood
    name: str

    def __call__(self, part: Part, weight: FloatArray) -> FloatArray:
        """The scaled target, and the shift of the latent mean. Raises InputError."""
        Y = scaled_target(self.scaler, self.name, part, weight)
        shift = log_exposure(part.beside.get("exposure"), len(Y), self.likelihood)
        return np.hstack([Y, shift[:, None]])


@dataclass(frozen=True)
class NumberClasses:
    """Reads the labels of a part as class numbers, beside the latent mean's shift, which is 0: (N, 2)."""

    coder: LabelCoder
    name: str

    def __call__(self, part: Part, weight: FloatArray) -> FloatArray:
        """Class numbers and zeros. Raises InputError."""
        numbers = class_target(self.coder, self.name, part, weight)
        return np.hstack([numbers, np.zeros_like(numbers)])


def target_scaler(target: TargetSummary, likelihood: Likelihood) -> TargetScaler:
    """What is done to the target before the mathematics sees it. Warns of a constant one."""
    standard, moments = target.scaler(), target.outputs[0]
    if standard.constant[0]:
        warnings.warn(
            "The target is constant: that value is predicted everywhere, with a spread that the data "
            "cannot tell.",
            NongaussWarning,
            stacklevel=3,
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
