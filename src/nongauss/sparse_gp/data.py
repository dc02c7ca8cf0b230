"""From a table to the rows that the mathematics takes: encoded inputs, the target on its scale, weights."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.sparse_gp.beside import check_known, known_of, log_exposure, within
from nongauss.sparse_gp.kernels import FloatArray, Space
from nongauss.sparse_gp.likelihoods import Likelihood
from nongauss.sparse_gp.likelihoods.base import weighted_median
from nongauss.tables.completion import Donors, completed_rows
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.labels import LabelCoder, class_target
from nongauss.tables.source import Encode, Encoded, Part, Source, sample
from nongauss.tables.target import TargetScaler, TargetSummary, validate_target

MOST_VALUES = 20_000
"""Values of the target that its median is taken of."""

FARTHEST = 1e9
"""Rows are taken to be no farther out than this, in sds of a column: kernels that fade have faded there."""

ROBUST_SD = 1.4826
"""Standard deviation of a normal law in median distances from its median."""

FAR, ABSURD = 20.0, 5.0
"""Values beyond `ABSURD` times `FAR` robust sds from the median do not tell the scale of the target."""


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

    `donors`: rows whose cells stand in for missing ones. `group`: the column of groups with effects, if any.
    """

    rows: GPRows
    space: Space
    everywhere: Source | None
    checksum: int
    donors: Donors | None
    group: str = ""


class ReadTarget(Protocol):
    """Reads the target of a part as columns of numbers (N, P) which may be rounded, and takes them back."""

    @property
    def n_columns(self) -> int:
        """Number P of columns that the target is read as."""

    def __call__(self, part: Part, weight: FloatArray) -> FloatArray:
        """What is known of the target, and the latent mean's shift last: (N, P). Raises InputError."""

    def target(self, columns: NDArray[Any]) -> NDArray[Any]:
        """y from the rounded columns but the last: (N,), or (N, V) where more is known of a row."""


def read_table(
    source: Source, encoder: TableEncoder, read: ReadTarget, estimator_name: str, most: int
) -> GPTable:
    """Encoded rows of a table, with the target that `read` makes of a part.

    Of a table that is not in memory the first `most` canonical rows, and all of them where they are.
    """
    encoded = source.map(Encode(encoder, read, estimator_name, n_targets=read.n_columns))
    encoded = completed_rows(encoder, encoded)
    first = sample(encoded, most)
    everywhere = None if first.is_all else encoded.map(as_rows, read)
    rows, donors = as_rows(first.rows, read).in_float64(), Donors.of(encoder, first.rows)
    return GPTable(rows, space_of(encoder), everywhere, first.checksum, donors)


def as_rows(part: Encoded, read: ReadTarget) -> GPRows:
    """Encoded rows with y and the shift of the latent mean, in float32 as they came."""
    X: Any = with_a_column(part.X)
    shift: Any = part.Y[:, -1]
    return GPRows(X, read.target(part.Y[:, :-1]), part.weight, shift)


def space_of(encoder: TableEncoder) -> Space:
    """Which column each encoded column came from, and the names of those that are used."""
    used = [code for code in encoder.columns if code.encoded_names]
    if not used:
        return Space(("nothing",), (0,))
    group = tuple(number for number, code in enumerate(used) for _ in code.encoded_names)
    ends = np.cumsum([len(code.encoded_names) for code in used])
    flags = tuple(int(end) - 1 for code, end in zip(used, ends, strict=True) if code.flagged)
    turns = [code.turns if len(code.turns) == len(code.encoded_names) else () for code in used]
    places = [own or (-1.0,) * len(code.encoded_names) for own, code in zip(turns, used, strict=True)]
    every = tuple(place for own in places for place in own) if any(turns) else ()
    return Space(tuple(str(code.name) for code in used), group, flags, every)


def with_a_column(encoded: NDArray[Any]) -> NDArray[Any]:
    """The encoded matrix, with a column of zeros where it has none: a table that says nothing is legal."""
    return encoded if encoded.shape[1] else np.zeros((len(encoded), 1), encoded.dtype)


@dataclass(frozen=True)
class GPTarget:
    """What rows tell of a target, which adds up: its moments, and values (Q,) with weights for its median."""

    moments: TargetSummary
    values: FloatArray
    weights: FloatArray

    def __add__(self, other: GPTarget) -> GPTarget:
        values, weights = np.append(self.values, other.values), np.append(self.weights, other.weights)
        return GPTarget(self.moments + other.moments, *thinned(values, weights))

    def robust_scaler(self) -> TargetScaler:
        """That of the moments; where values lie absurdly far out, as if all beyond `FAR` were there.

        Distances are from the median, in `ROBUST_SD` median distances that are not 0: the sd, were the
        target normal.
        """
        standard, (centre, far) = self.moments.scaler(), self._middle
        if not self.is_absurd:
            return standard
        near = np.clip(self.values, centre - far, centre + far)
        mean = np.average(near, weights=self.weights)
        sd = np.sqrt(np.average((near - mean) ** 2, weights=self.weights))
        return TargetScaler(np.array([mean]), np.sign(standard.scale) * sd, standard.constant)

    def usual_range(self) -> tuple[float, float]:
        """Least and greatest of the values that do not lie absurdly far out; where thinned, nearly these."""
        (centre, far), found = self._middle, self.moments.outputs[0]
        usual = self.values[np.abs(self.values - centre) <= ABSURD * far]
        low = found.low if centre - found.low <= ABSURD * far else usual.min()
        high = found.high if found.high - centre <= ABSURD * far else usual.max()
        return float(low), float(high)

    @property
    def is_absurd(self) -> bool:
        """Do values lie more than `ABSURD` times `FAR` robust sds from the median?"""
        (centre, far), moments = self._middle, self.moments.outputs[0]
        return bool(max(moments.high - centre, centre - moments.low) > ABSURD * far)

    @cached_property
    def _middle(self) -> tuple[float, float]:
        """The median, and how far `FAR` robust sds are: infinitely where all values are one."""
        centre = float(weighted_median(self.values, self.weights))
        distance = np.abs(self.values - centre)
        apart = distance > 0
        if self.moments.scaler().constant[0] or not apart.any():
            return centre, np.inf
        return centre, float(FAR * ROBUST_SD * weighted_median(distance[apart], self.weights[apart]))


def thinned(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """At most `MOST_VALUES` values with the same total weight, as even as they come: order statistics."""
    if len(values) <= MOST_VALUES:
        return values, weights
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    places = np.searchsorted(total, total[-1] * (np.arange(MOST_VALUES) + 0.5) / MOST_VALUES)
    return values[order[places]], np.full(MOST_VALUES, total[-1] / MOST_VALUES)


@dataclass(frozen=True)
class SummariseTarget:
    """Checks the target of a part against the likelihood and sums it up."""

    likelihood: Likelihood
    name: str

    def __call__(self, part: Part, weight: FloatArray) -> GPTarget:
        """The summary of the part's one output. Raises InputError."""
        found = TargetSummary.of(part.y, weight, self.name)
        n_outputs = len(found.outputs)
        if n_outputs != 1:
            raise InputError(f"y has {n_outputs} outputs, {self.name} takes one; fit one model for each.")
        y = validate_target(part.y, len(weight), self.name, warn=False)[0][:, 0]
        check_known(y, part.beside, self.likelihood)
        counted = weight > 0
        return GPTarget(found, *thinned(y[counted], weight[counted]))


@dataclass(frozen=True)
class ScaleTarget:
    """Reads what is known of the target of a part on the scale of the fit, beside its log exposure.

    (N, V + 1), V = `n_values`: see `beside.known_of`. Rows may be rounded to 32 bits: shares are read as
    logits, which keep their digits near 0 and 1, and positive numbers as logarithms, which keep them near 0.
    Targets beyond `limits`, in units of y, are taken to be there.
    """

    scaler: TargetScaler
    likelihood: Likelihood
    name: str
    n_values: int = 1
    limits: tuple[float, float] = (-np.inf, np.inf)

    @property
    def n_columns(self) -> int:
        """What is known of y, and the shift of the latent mean."""
        return self.n_values + 1

    def __call__(self, part: Part, weight: FloatArray) -> FloatArray:
        """The scaled target, and the shift of the latent mean. Raises InputError."""
        Y = validate_target(part.y, len(weight), self.name, warn=False)[0]
        Y = within(known_of(Y[:, 0], part.beside, self.likelihood, self.n_values), self.limits)
        if self.n_values == 1 or not self.likelihood.takes_trials:
            Y = self.scaler.transform(Y)
            if self.n_values > 1:
                for ends in (Y[:, :2], Y[:, 2:]):
                    ends.sort(axis=1)  # the scale may be negative
        shift = log_exposure(part.beside.get("exposure"), len(Y), self.likelihood)
        return np.hstack([as_read(Y, self.likelihood.read_as), shift[:, None]])

    def target(self, columns: NDArray[Any]) -> NDArray[Any]:
        """The one column, or all of them; logarithms and logits are taken back in float64."""
        return taken_back(columns if self.n_values > 1 else columns[:, 0], self.likelihood.read_as)


def as_read(Y: FloatArray, read_as: str) -> FloatArray:
    """Targets on the scale on which rows are rounded: logits of shares, logarithms of positive numbers."""
    with np.errstate(divide="ignore"):
        if read_as == "unit":
            out: FloatArray = np.log(Y) - np.log1p(-Y)
            return out
        return np.log(Y) if read_as == "positive" else Y


def taken_back(columns: NDArray[Any], read_as: str) -> NDArray[Any]:
    """The inverse of `as_read`, in float64."""
    back = {"unit": expit, "positive": np.exp}.get(read_as)
    return columns if back is None else back(columns.astype(np.float64))


@dataclass(frozen=True)
class NumberClasses:
    """Reads the labels of a part as class numbers, beside the latent mean's shift, which is 0: (N, 2)."""

    coder: LabelCoder
    name: str

    n_columns: ClassVar[int] = 2

    def __call__(self, part: Part, weight: FloatArray) -> FloatArray:
        """Class numbers and zeros. Raises InputError."""
        numbers = class_target(self.coder, self.name, part, weight)
        return np.hstack([numbers, np.zeros_like(numbers)])

    def target(self, columns: NDArray[Any]) -> NDArray[Any]:
        """The one column."""
        return columns[:, 0]


@dataclass(frozen=True)
class ScreenTarget:
    """Reads the target of a part as columns are screened by it, (N, 1): number, class, or rate of counts.

    `read` gives the target first and the shift of the latent mean last.
    """

    read: ReadTarget

    def __call__(self, part: Part, weight: FloatArray) -> FloatArray:
        """y exp(-shift). Raises InputError."""
        columns = self.read(part, weight)
        known: FloatArray = self.read.target(columns[:, :-1]).reshape(len(columns), -1)
        return known[:, :1] * np.exp(-columns[:, -1:])


def target_limits(target: GPTarget, likelihood: Likelihood) -> tuple[float, float]:
    """Between what values of the target are taken to lie. Warns where some lie beyond."""
    if likelihood.target != "limited" or not target.is_absurd:
        return -np.inf, np.inf
    (low, high), found = target.usual_range(), target.moments.outputs[0]
    beyond = " and ".join(f"{value:.4g}" for value in (found.low, found.high) if not low <= value <= high)
    warnings.warn(
        f"y holds values as far out as {beyond}, over {ABSURD * FAR:.0f} robust standard deviations from its "
        f"median. The scale of {likelihood.name} noise would be told by them alone, so the fit takes values "
        f"outside {low:.4g} to {high:.4g}, the range of the others, to be at its ends; "
        'likelihood="student_t" needs no such limits.',
        NongaussWarning,
        stacklevel=3,
    )
    return low, high


def target_scaler(target: GPTarget, likelihood: Likelihood) -> TargetScaler:
    """What is done to the target before the mathematics sees it. Warns of a constant one."""
    standard, moments = target.moments.scaler(), target.moments.outputs[0]
    if standard.constant[0]:
        warnings.warn(
            "The target is constant: that value is predicted everywhere, with a spread that the data "
            "cannot tell.",
            NongaussWarning,
            stacklevel=3,
        )
    if likelihood.target == "standardised":
        return standard
    if likelihood.target in ("robust", "limited"):
        return target.robust_scaler()
    mean = moments.unit * moments.mean
    unit = mean if likelihood.target == "scaled" and mean > 0 else 1.0
    return TargetScaler(np.zeros(1), np.array([unit]), standard.constant)
