"""What a model says about a row's target: a whole distribution, in the target's own units."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from nongauss.core.errors import InputError
from nongauss.predictive.crps import by_cdf

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]

MOST_ROWS = 500
"""Rows whose root searches are made together: what they ask a law for again and again is then little."""

_MOST_SHOWN = 10
_ENDS = ndtr([-6.0, 0.0, 6.0])


class PredictiveDistribution(ABC):
    """Predictive distributions of N rows with P outputs, in the units of the target.

    Shapes are given for P outputs; for a one-dimensional target the output axis is absent throughout.
    """

    @property
    @abstractmethod
    def mean(self) -> FloatArray:
        """Expectation: (N, P)."""

    @property
    @abstractmethod
    def variance(self) -> FloatArray:
        """Variance, squared target units: (N, P)."""

    def roughly(self) -> PredictiveDistribution:
        """A law whose moments are these to a hundredth of the standard deviation, and found in less time.

        For averages over many rows. It is this law where its moments need no integral.
        """
        return self

    @abstractmethod
    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Marginal quantiles of each output: (N, P) for one level `q`, (N, Q, P) for levels (Q,)."""

    @abstractmethod
    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y <= y) of each output separately: (N, P). `y` is (N, P), or one number for all."""

    def survival(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y > y) of each output separately: (N, P)."""
        out: FloatArray = 1.0 - self.cdf(y)
        return out

    @abstractmethod
    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log density at `y`, joint over the outputs: (N,). `y` is (N, P), or one number for all."""

    @abstractmethod
    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` joint draws for each row: (N, n, P). Equal `random_state`, equal draws."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows N."""

    @abstractmethod
    def _take(self, rows: npt.NDArray[np.intp]) -> PredictiveDistribution:
        """The law of the rows of these numbers, 0..N-1 in any order, each as often as it is named."""

    index: Any = None
    """Labels of the rows, a pandas index (N,), where the law is of the rows of a frame."""

    @property
    def is_discrete(self) -> bool:
        """Whether all probability is at whole numbers, so that `log_prob` gives log probabilities."""
        return False

    @property
    def atoms(self) -> tuple[float, ...]:
        """Point masses beside a density; at these values `log_prob` is a log probability."""
        return ()

    @final
    def __getitem__(self, rows: Any) -> PredictiveDistribution:
        """The law of some rows: a number, a slice, a list of numbers, or a mask (N,). Raises IndexError.

        One number gives the law of one row, N = 1. Negative numbers count from the end.
        """
        chosen = np.atleast_1d(np.arange(len(self), dtype=np.intp)[rows])
        if chosen.ndim != 1:
            raise IndexError("rows are a number, a slice, or one list or mask: a law has one axis of rows.")
        out = self._take(chosen)
        if self.index is not None:
            out.index = self.index[chosen]
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[np.object_]:
        """The law as one object, so that arrays and tables may hold laws. Raises InputError for numbers."""
        if dtype is not None and np.dtype(dtype) != np.object_:
            float(self)
        out = np.empty((), dtype=np.object_)
        out[()] = self
        return out

    def __float__(self) -> float:
        """No number stands for a law. Raises InputError."""
        raise InputError(
            f"A {type(self).__name__} is no array of numbers; take its `mean`, `quantile(q)`, `sample(n)` or "
            "`to_frame()`."
        )

    def crps(self, y: npt.ArrayLike) -> FloatArray:
        """Continuous ranked probability score of each output at `y`, units of the target: (N, P).

        It is the integral of (F(x) - 1[y <= x])^2, lower is better; |y - v| if the distribution is a single
        value v. `y` is (N, P), or one number for all. Computed in closed form where there is one, otherwise
        from the distribution function to about 1e-6 standard deviations; never by random draws. Gneiting
        and Raftery, Journal of the American Statistical Association 102 (2007), section 4.2.
        """
        return by_cdf(self, checked_target(y, self.mean.shape))

    @final
    def prob(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> FloatArray:
        """P(lower <= Y <= upper) of each output separately: (N, P).

        Both ends are included, which matters for point masses: P(2 <= Y <= 3) of a count is the probability
        of 2 or 3. For a count below 3, `upper` is 2; for an amount above 0, `lower` is the smallest
        positive amount. `lower` and `upper` are (N, P) or numbers; infinite ends are allowed. Raises
        InputError.
        """
        shape = self.mean.shape
        low, high = checked_target(lower, shape), checked_target(upper, shape)
        if (low > high).any():
            row = int(np.argwhere(low > high)[0, 0])
            raise InputError(f"lower must not be above upper: got {low[row]} and {high[row]} in row {row}.")
        below = self.cdf(np.nextafter(low, -np.inf))  # in floating point, P(Y < lower)
        out: FloatArray = np.clip(self.cdf(high) - below, 0.0, 1.0)
        return out

    @final
    def to_frame(self, quantiles: Sequence[float] = (0.05, 0.5, 0.95)) -> pd.DataFrame:
        """A data frame with one row for each prediction: `mean`, `sd`, and a column such as `q_0.05` for
        each quantile.

        The index is that of the frame that was predicted, otherwise 0..N-1. For P > 1 outputs the columns
        have two levels, the number of the output first. Raises InputError for levels outside 0 to 1.
        """
        import pandas as pd

        levels = np.atleast_1d(checked_levels(quantiles))
        names = ["mean", "sd", *(f"q_{level:g}" for level in levels)]
        found = self.quantile(levels)  # (N, Q, P)
        values = np.concatenate([self.mean[:, None], self.std[:, None], found], axis=1)
        if values.ndim == 2:
            return pd.DataFrame(values, columns=names, index=self.index)
        columns = pd.MultiIndex.from_product([range(values.shape[2]), names], names=["output", "figure"])
        flat = np.moveaxis(values, 2, 1).reshape(len(self), len(columns))
        return pd.DataFrame(flat, columns=columns, index=self.index)

    def _repr_html_(self) -> str:
        """The first rows as a table for notebooks: mean, sd, and the 5, 50 and 95 % quantiles."""
        shown = self[:_MOST_SHOWN].to_frame()
        names = {"mean": "mean", "sd": "sd", "q_0.05": "5 %", "q_0.5": "50 %", "q_0.95": "95 %"}
        table = shown.rename(columns=names).to_html(float_format=lambda value: f"{value:.4g}", border=0)
        n = len(self)
        first = f", the first {_MOST_SHOWN}" if n > _MOST_SHOWN else ""
        return f"{table}<p>{escape(type(self).__name__)}: predictions of {n:,} row{'s' * (n != 1)}{first}</p>"

    def extent(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A low value, a middle one and a high one, beyond which some 1e-9 of y lies: (N, P) each."""
        low, middle, high = np.moveaxis(self.quantile(_ENDS), 1, 0)
        return low, middle, high

    @property
    def _output_shape(self) -> tuple[int, ...]:
        """() of one number a row, (P,) of P outputs: by the first row, which costs little."""
        first = self[:1] if len(self) > 1 else self
        return first.mean.shape[1:]

    @property
    def knows_tails(self) -> bool:
        """Are `cdf` and `survival` both right to full relative precision, however small they are?"""
        return False

    @property
    def std(self) -> FloatArray:
        """Standard deviation: (N, P)."""
        return np.sqrt(self.variance)

    @final
    def interval(self, coverage: float = 0.9) -> FloatArray:
        """Central interval of each output that leaves (1 - coverage)/2 on either side: (N, 2, P)."""
        tail = 0.5 * (1.0 - checked_coverage(coverage))
        return self.quantile(np.array([tail, 1.0 - tail]))


def in_blocks(law: PredictiveDistribution) -> Iterator[PredictiveDistribution]:
    """The laws of at most `MOST_ROWS` rows after the other."""
    for first in range(0, len(law), MOST_ROWS):
        rows = np.arange(first, min(first + MOST_ROWS, len(law)))
        yield law if len(rows) == len(law) else law._take(rows)


def checked_coverage(coverage: Any) -> float:
    """A share of all probability, above 0 and below 1. Raises InputError."""
    if not isinstance(coverage, numbers.Real) or not 0.0 < float(coverage) < 1.0:
        raise InputError(f"coverage must be a number between 0 and 1 (0.9 is 90 %): got {coverage!r}.")
    return float(coverage)


def checked_count(n: Any) -> int:
    """A number of draws. Raises InputError."""
    if not isinstance(n, numbers.Integral) or isinstance(n, bool) or int(n) < 0:
        raise InputError(f"n, the number of draws for each row, must be a whole number >= 0: got {n!r}.")
    return int(n)


def checked_levels(q: npt.ArrayLike) -> FloatArray:
    """Levels between 0 and 1, a number or (Q,). Raises InputError."""
    try:
        levels = np.asarray(q, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"q must be a number or a list of numbers between 0 and 1: {error}.") from error
    if levels.ndim > 1 or not np.all((levels >= 0.0) & (levels <= 1.0)):
        raise InputError(f"q must be a number or a list of numbers between 0 and 1: got {q!r}.")
    return levels


def checked_target(y: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """`y` as floats of this shape, (N,) or (N, P); one number stands for all. InputError on shape or NaN."""
    try:
        target = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"y must hold numbers only: {error}.") from error
    if target.ndim == 0:
        target = np.full(shape, float(target))
    if target.shape == (*shape, 1):
        target = target[..., 0]
    if target.shape != shape:
        raise InputError(
            f"y does not fit this distribution: got shape {np.shape(y)}, expected {shape}; "
            "pass one target for each row that was predicted."
        )
    missing = np.isnan(target) if target.ndim == 1 else np.isnan(target).any(axis=1)
    if missing.any():
        raise InputError(f"y has a missing value in row {int(missing.argmax())}; leave that row out.")
    return target
