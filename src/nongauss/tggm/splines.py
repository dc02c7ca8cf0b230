r"""Columns along which the target turns often, such as the hour of a day: they enter as linear splines too.

A network whose inputs are standardised columns learns slow trends first and fits the noise of other columns
before it has bent often enough along one of them. So each piece [l, u] between neighbouring knots of such a
column becomes an input of its own, the share of the piece that lies below x, standardised:

    B(x) = min(max((x - l) / (u - l), 0), 1).

Which columns do is a question of evidence, asked before the fit. Beside an intercept, all columns and powers
of the column up to `DEGREE`, each piece of a column has a coefficient N(0, tau sigma^2); what the pieces add
to the marginal log-likelihood of the rows, at its best tau, has a closed form. The strongest column joins
first, and the others are asked again beside it.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Float64, Int64

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.tables.encoder import TableEncoder

SplineColumns = Literal["auto"] | Sequence[Any] | None
"""Which columns enter as splines: by evidence, these (names, or numbers in arrays), or none."""

MOST_PIECES = 24
"""Pieces of one column: between all its values if these are few enough, else between quantiles."""

DEGREE = 4
"""Powers of a column that a network is trusted with: three turns."""

LEAST_GAIN, LEAST_SHARE = 5.0, 0.1
"""A column joins if its pieces gain so many nats of evidence and explain that share of what was left."""

MOST_COLUMNS, MOST_ASKED, MOST_ROWS = 5, 100, 2000
"""Columns that may join; encoded columns of a table that is asked at all; rows that are looked at."""

_LEAST_SD = 0.05
_PRIOR_VARIANCES = np.exp(np.arange(-12.0, 3.0, 0.5))


@persistable("tggm.Splines")
class Splines(NamedTuple):
    """Pieces of encoded columns: `column` (K,) its number, `lower`, `upper` (K,) the ends of the piece.

    `mean`, `sd` (K,): of B over the rows of the fit, by which it is standardised.
    """

    column: Int64[np.ndarray, " K"]
    lower: Float64[np.ndarray, " K"]
    upper: Float64[np.ndarray, " K"]
    mean: Float64[np.ndarray, " K"]
    sd: Float64[np.ndarray, " K"]

    def check_fields(self) -> None:
        """Raises ValueError for pieces without width or scale."""
        sizes = {np.shape(part) for part in self}
        if len(sizes) > 1 or not (np.all(self.upper > self.lower) and np.all(self.sd > 0.0)):
            raise ValueError("pieces of splines without width or scale")

    def joined(self, X: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N F"]:
        """The encoded rows and, behind them, their pieces: the inputs of the network, F = D + K."""
        if not len(self.column):
            return X
        exact = X[:, self.column].astype(np.float64)
        shares = np.clip((exact - self.lower) / (self.upper - self.lower), 0.0, 1.0)
        pieces = ((shares - self.mean) / self.sd).astype(X.dtype)
        return np.concatenate([X, pieces], axis=1)

    def columns(self, names: Sequence[str]) -> tuple[str, ...]:
        """The names, among those of all encoded columns, of the columns that have pieces."""
        return tuple(names[number] for number in dict.fromkeys(self.column.tolist()))


NO_SPLINES = Splines(np.zeros(0, np.int64), *np.zeros((4, 0)))


def splines_of(
    asked: SplineColumns,
    encoder: TableEncoder,
    X: Float[np.ndarray, "N D"],
    Y: Float[np.ndarray, "N P"],
    weight: Float[np.ndarray, " N"],
) -> Splines:
    """The splines of a table's encoded rows and standardised targets. Raises InputError."""
    numbers_of = numeric_columns(encoder)
    if asked is None:
        return NO_SPLINES
    X, Y = (np.asarray(part[:MOST_ROWS], np.float64) for part in (X, Y))
    share = np.asarray(weight[:MOST_ROWS] / weight[:MOST_ROWS].sum(), np.float64)
    if isinstance(asked, str):
        chosen = _by_evidence(list(numbers_of.values()), X, Y, share)
    else:
        chosen = [_number_of(key, numbers_of) for key in asked]
    return _of_columns(chosen, X, share)


def numeric_columns(encoder: TableEncoder) -> dict[str, int]:
    """The encoded column of each column of numbers, by name."""
    names = [name for code in encoder.columns for name in code.encoded_names]
    wanted = {code.name for code in encoder.columns if code.role == "numeric" and code.sd != 0.0}
    return {name: number for number, name in enumerate(names) if name in wanted}


def _number_of(key: Any, numbers_of: dict[str, int]) -> int:
    """The encoded column of a name, or of a number in arrays. Raises InputError."""
    name = f"x{key}" if isinstance(key, numbers.Integral) else str(key)
    if name not in numbers_of:
        known = ", ".join(list(numbers_of)[:8])
        raise InputError(f"splines names {key!r}, which is no column of numbers in X; X has {known}.")
    return numbers_of[name]


def _of_columns(chosen: Sequence[int], X: Float64[np.ndarray, "N D"], share: Any) -> Splines:
    """The splines of these encoded columns; one that has a single value has no piece."""
    parts = []
    for number in chosen:
        knots = knots_of(X[:, number], share)
        lower, upper = knots[:-1], knots[1:]
        shares = _shares(X[:, number], knots)
        mean = share @ shares
        sd = np.maximum(np.sqrt(share @ (shares - mean) ** 2), _LEAST_SD)
        parts.append(Splines(np.full(len(lower), number, np.int64), lower, upper, mean, sd))
    if not parts:
        return NO_SPLINES
    return Splines(*(np.concatenate(together) for together in zip(*parts, strict=True)))


def knots_of(x: Float64[np.ndarray, " N"], share: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " K"]:
    """Increasing knots: all values of x if they are few, else the values at evenly spaced shares of rows."""
    order = np.argsort(x, kind="stable")
    values, first = np.unique(x[order], return_index=True)
    if len(values) <= MOST_PIECES + 1:
        return values
    below = np.cumsum(share[order])
    ends = np.append(first[1:], len(x)) - 1
    places = np.searchsorted(below[ends], np.linspace(0.0, 1.0, MOST_PIECES + 1) * (1.0 - 1e-9))
    places[0] = 0
    knots: Float64[np.ndarray, " K"] = np.unique(values[np.minimum(places, len(values) - 1)])
    return knots


def _shares(x: Float64[np.ndarray, " N"], knots: Float64[np.ndarray, " K"]) -> Float64[np.ndarray, "N L"]:
    """B of each piece between neighbouring knots."""
    out: Float64[np.ndarray, "N L"] = np.clip((x[:, None] - knots[:-1]) / np.diff(knots), 0.0, 1.0)
    return out


def _by_evidence(
    candidates: list[int],
    X: Float64[np.ndarray, "N D"],
    Y: Float64[np.ndarray, "N P"],
    share: Float64[np.ndarray, " N"],
) -> list[int]:
    """The encoded columns whose pieces gain `LEAST_GAIN` nats and `LEAST_SHARE` of what was left, in turn."""
    n_rows = len(X)
    if X.shape[1] > MOST_ASKED or n_rows < 2 * (X.shape[1] + MOST_PIECES):
        return []
    root = np.sqrt(share * n_rows)[:, None]
    common, left = root * np.column_stack([np.ones(n_rows), X]), root * Y
    chosen: list[int] = []
    while len(chosen) < MOST_COLUMNS:
        gains = {}
        basis = _span(common)
        for number in candidates:
            knots = knots_of(X[:, number], share)
            if number not in chosen and len(knots) >= DEGREE + 3:
                pieces = root * _shares(X[:, number], knots)
                powers = root * _powers(X[:, number])
                gain, explained = evidence_gain(basis, powers, pieces, left)
                if gain > LEAST_GAIN and explained > LEAST_SHARE:
                    gains[number] = gain
        if not gains:
            break
        best = max(gains, key=lambda number: gains[number])
        chosen.append(best)
        common = np.column_stack([common, root * _shares(X[:, best], knots_of(X[:, best], share))])
    return chosen


def _powers(x: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, "N 3"]:
    """Powers 2 to `DEGREE` of a column, scaled to [-1, 1]."""
    scaled = 2.0 * (x - x.min()) / (x.max() - x.min()) - 1.0
    out: Float64[np.ndarray, "N 3"] = np.column_stack([scaled**power for power in range(2, DEGREE + 1)])
    return out


def _span(design: Float64[np.ndarray, "N A"]) -> Float64[np.ndarray, "N R"]:
    """An orthonormal basis of what the columns span."""
    U, s, _ = np.linalg.svd(design, full_matrices=False)
    basis: Float64[np.ndarray, "N R"] = U[:, s > 1e-8 * s[0]]
    return basis


def evidence_gain(
    basis: Float64[np.ndarray, "N R"],
    powers: Float64[np.ndarray, "N A"],
    pieces: Float64[np.ndarray, "N L"],
    Y: Float64[np.ndarray, "N P"],
) -> tuple[float, float]:
    """Nats of evidence that pieces with coefficients N(0, tau sigma^2) add, at the best tau, and their share.

    Let U S V' be the pieces without what `basis` and `powers` explain, e the targets without it, z = U'e,
    f = tau S^2 / (1 + tau S^2), and n the rows less the number of those directions. With flat priors of their
    coefficients and of log sigma, the gain of each output is

        - sum log(1 + tau S^2) / 2 - n log(1 - sum f z^2 / e'e) / 2,

    and the share that the pieces explain is sum f z^2 / e'e, averaged over outputs.
    """
    powers = powers - basis @ (basis.T @ powers)
    full = np.column_stack([basis, _span(powers)]) if np.abs(powers).max() > 1e-8 else basis
    scaled = pieces / np.maximum(pieces.std(axis=0), _LEAST_SD)
    rest, error = scaled - full @ (full.T @ scaled), Y - full @ (full.T @ Y)
    total = (error**2).sum(axis=0)
    n = len(Y) - full.shape[1]
    if not total.min() > 1e-9 * len(Y):  # without noise nothing is left to explain
        return 0.0, 0.0
    U, s, _ = np.linalg.svd(rest, full_matrices=False)
    power = (U.T @ error) ** 2 / total
    best = 0.0, 0.0
    for tau in _PRIOR_VARIANCES:
        explained = (tau * s**2 / (1.0 + tau * s**2)) @ power
        gain = -0.5 * Y.shape[1] * np.log1p(tau * s**2).sum() - 0.5 * n * np.log1p(-explained).sum()
        if gain > best[0]:
            best = float(gain), float(explained.mean())
    return best
