"""From a table to the rows that the mathematics takes: encoded inputs, the target on its scale, weights."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.sparse_gp.kernels import FloatArray, Space
from nongauss.sparse_gp.likelihoods import Likelihood
from nongauss.sparse_gp.likelihoods.base import weighted_median
from nongauss.sparse_gp.likelihoods.interval import EDGES
from nongauss.tables.column import without_mask
from nongauss.tables.completion import Donors, completed_rows
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.labels import LabelCoder, class_target
from nongauss.tables.source import Encode, Encoded, Part, Source, sample
from nongauss.tables.target import TargetScaler, TargetSummary, scaled_target, validate_target

MOST_VALUES = 20_000
"""Values of the target that its median is taken of."""

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

    `donors`: rows whose cells stand in for missing ones.
    """

    rows: GPRows
    space: Space
    everywhere: Source | None
    checksum: int
    donors: Donors | None


class ReadTarget(Protocol):
    """Reads the target of a part as columns of numbers (N, P) which may be rounded, and takes them back."""

    @property
    def n_columns(self) -> int:
        """P."""

    def __call__(self, part: Part, weight: FloatArray) -> FloatArray:
        """What is known of the target, and the latent mean's shift last: (N, P). Raises InputError."""

    def target(self, columns: NDArray[Any]) -> NDArray[Any]:
        """y from the rounded columns but the last: (N,), or (N, 2) of censored rows."""


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
    return Space(tuple(str(code.name) for code in used), group)


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

        Distances are from the median, in 1.4826 times the median distance that is not 0: the sd, were the
        target normal.
        """
        standard, moments = self.moments.scaler(), self.moments.outputs[0]
        centre = weighted_median(self.values, self.weights)
        distance = np.abs(self.values - centre)
        apart = distance > 0
        if standard.constant[0] or not apart.any():
            return standard
        far = FAR * 1.4826 * weighted_median(distance[apart], self.weights[apart])
        if max(moments.high - centre, centre - moments.low) <= ABSURD * far:
            return standard
        near = np.clip(self.values, centre - far, centre + far)
        mean = np.average(near, weights=self.weights)
        sd = np.sqrt(np.average((near - mean) ** 2, weights=self.weights))
        return TargetScaler(np.array([mean]), np.sign(standard.scale) * sd, standard.constant)


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
        ends = interval_ends(y, part.beside, self.likelihood)
        checked = y
        if ends is not None:
            limit = ends[:, 0] != ends[:, 1]
            check_limits(y, limit, self.likelihood)
            checked = np.where(limit, 0.5, y)  # inside every support that takes limits
        self.likelihood.check(checked)
        counted = weight > 0
        return GPTarget(found, *thinned(y[counted], weight[counted]))


@dataclass(frozen=True)
class ScaleTarget:
    """Reads the target of a part on the scale of the fit, beside its log exposure: (N, 2).

    Shares are read as logits, which keep their digits near 0 and 1. Of a censored target both ends of each
    row's interval are read: (N, 3).
    """

    scaler: TargetScaler
    likelihood: Likelihood
    name: str
    censored: bool = False

    @property
    def n_columns(self) -> int:
        """What is known of y, and the shift of the latent mean."""
        return 3 if self.censored else 2

    def __call__(self, part: Part, weight: FloatArray) -> FloatArray:
        """The scaled target, and the shift of the latent mean. Raises InputError."""
        Y = scaled_target(self.scaler, self.name, part, weight)
        if self.censored:
            y = validate_target(part.y, len(weight), self.name, warn=False)[0][:, 0]
            ends = interval_ends(y, part.beside, self.likelihood)
            Y = self.scaler.transform(np.stack([y, y], axis=1) if ends is None else ends)
            Y.sort(axis=1)  # the scale may be negative
        if self.likelihood.support == "unit":
            with np.errstate(divide="ignore"):
                Y = np.log(Y) - np.log1p(-Y)
        shift = log_exposure(part.beside.get("exposure"), len(Y), self.likelihood)
        return np.hstack([Y, shift[:, None]])

    def target(self, columns: NDArray[Any]) -> NDArray[Any]:
        """The one column, or both ends; logits are taken back in float64."""
        y = columns if self.censored else columns[:, 0]
        return expit(y.astype(np.float64)) if self.likelihood.support == "unit" else y


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
        return columns[:, :1] * np.exp(-columns[:, -1:])


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
    if likelihood.target == "robust":
        return target.robust_scaler()
    mean = moments.unit * moments.mean
    unit = mean if likelihood.target == "scaled" and mean > 0 else 1.0
    return TargetScaler(np.zeros(1), np.array([unit]), standard.constant)


def interval_ends(y: FloatArray, beside: dict[str, Any], likelihood: Likelihood) -> FloatArray | None:
    """Both ends of what is known of each y, (N, 2), by `censoring` or `y_upper`; None without either.

    Raises InputError naming the first row that cannot be read.
    """
    given = [name for name in ("censoring", "y_upper") if beside.get(name) is not None]
    if not given:
        return None
    if len(given) > 1:
        raise InputError("censoring and y_upper say the same in two ways; give one of them.")
    values = numbers_by_row(beside[given[0]], len(y), given[0])
    if given == ["y_upper"]:
        first_wrong(~(values >= y), values, "y_upper", "at least y", "swap the two, or drop the row")
        return np.stack([y, values], axis=1)
    codes = "-1 (the true value is below y), 0 (y is known) or 1 (it is above y)"
    first_wrong(~np.isin(values, (-1, 0, 1)), values, "censoring", codes, "recode that row")
    lowest, highest = EDGES[likelihood.support]
    return np.stack([np.where(values < 0, lowest, y), np.where(values > 0, highest, y)], axis=1)


def check_limits(y: FloatArray, limit: NDArray[np.bool_], likelihood: Likelihood) -> None:
    """Raises InputError for the first row whose y is a limit beyond the values that a likelihood has."""
    lowest, highest = EDGES[likelihood.support]
    what = f"between {lowest:g} and {highest:g}, as the {likelihood.name} likelihood has it"
    first_wrong(limit & ~((y >= lowest) & (y <= highest)), y, "y", what, "correct that limit")


def numbers_by_row(given: ArrayLike, n_rows: int, name: str) -> FloatArray:
    """Numbers as float64 (N,); one stands for all. Raises InputError."""
    try:
        values = np.asarray(without_mask(given), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers, one for each row: {error}.") from error
    values = np.full(n_rows, float(values)) if values.ndim == 0 else values
    if values.shape != (n_rows,):
        raise InputError(f"{name} has shape {values.shape}, expected ({n_rows},); give one for each row.")
    return values


def first_wrong(bad: NDArray[np.bool_], values: FloatArray, name: str, what: str, remedy: str) -> None:
    """Raises InputError for the first row where `bad`; nothing where there is none."""
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name} must be {what}, got {values[row]:g} in row {row} (counted from 0); {remedy}."
        )


def log_exposure(exposure: ArrayLike | None, n_rows: int, likelihood: Likelihood) -> FloatArray:
    """The log of the exposure (N,), zeros without one. Raises InputError."""
    if exposure is None:
        return np.zeros(n_rows)
    if not likelihood.takes_exposure:
        raise InputError(
            f"exposure is for counts, but the likelihood is {likelihood.name}; drop it, or take 'poisson'."
        )
    values = numbers_by_row(exposure, n_rows, "exposure")
    bad = ~((values > 0) & np.isfinite(values))
    first_wrong(bad, values, "exposure", "above 0 and finite", "drop rows without exposure")
    return np.log(values)
