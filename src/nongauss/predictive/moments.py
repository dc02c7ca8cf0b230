"""Moments of laws whose distribution function is known and whose mean is not: integrals by parts.

With F the distribution function, m the mean and no mass above b nor below a,

E[Y] = b - int_a^b F(y) dy and Var[Y] = (b - m)^2 - 2 int_a^b (y - m) F(y) dy.
"""

from __future__ import annotations

import numpy as np

from nongauss.predictive.distribution import FloatArray, PredictiveDistribution, in_blocks

# of the way from the median to the ends, at which F is asked for first: of heavy tails these are far
_SHARES = 0.5 ** np.array([1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18])
_ROUNDS, _HALVED = 5, 8


class MomentsByCdf(PredictiveDistribution):
    """A law of one number a row whose mean and variance come from its distribution function."""

    _output_shape = ()
    _moments: tuple[FloatArray, FloatArray] | None = None

    @property
    def mean(self) -> FloatArray:
        """Expectation: (N,)."""
        return self._both()[0].copy()

    @property
    def variance(self) -> FloatArray:
        """Variance: (N,)."""
        return self._both()[1].copy()

    def _both(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance, (N,) each, which are kept."""
        if self._moments is None:
            self._moments = self._found_moments()
        return self._moments

    def _found_moments(self) -> tuple[FloatArray, FloatArray]:
        return moments_by_cdf(self)


def moments_by_cdf(law: PredictiveDistribution) -> tuple[FloatArray, FloatArray]:
    """Mean and variance, (N,) each, of laws of one number a row by their distribution function F alone.

    F is asked for at some 67 points a row within the law's `extent`: the cells that can hide most of the
    variance are halved, round by round. Between the points F is a monotone cubic (Fritsch and Carlson 1980).
    Both are good to one or two thousandths of the standard deviation.
    """
    if not len(law):
        return np.empty(0), np.empty(0)
    mean, variance = np.concatenate([_moments(block) for block in in_blocks(law)], axis=1)
    return mean, variance


def moments_of_counts(
    law: PredictiveDistribution, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance, (N,) each, of counts between `low` and `high` (N,), by sums over all of these.

    With D = Y - low, E[D] = sum_j P(D > j) and E[D^2] = sum_j (2 j + 1) P(D > j), j = 0, 1, ...
    """
    first, second, size = np.zeros(len(low)), np.zeros(len(low)), high - low
    part, rows = law, np.arange(len(low))
    for j in range(int(size.max(initial=0.0))):
        if 2 * (size[rows] > j).sum() < len(rows):
            rows = np.flatnonzero(size > j)
            part = law._take(rows)
        above = 1.0 - part.cdf(low[rows] + j)
        first[rows] += above
        second[rows] += (2.0 * j + 1.0) * above
    return low + first, np.maximum(second - first**2, 0.0)


def _moments(law: PredictiveDistribution) -> tuple[FloatArray, FloatArray]:
    """The moments of a block of rows."""
    low, middle, high = (part[:, None] for part in law.extent())
    y = np.concatenate(
        [low, middle + (low - middle) * _SHARES, middle, middle + (high - middle) * _SHARES, high]
        + [np.clip(end, low, high) for atom in law.atoms for end in (np.nextafter(atom, -np.inf), atom)],
        axis=1,
    )
    y, below = _in_order(y, _each(law, y))
    for _ in range(_ROUNDS):
        width, centre = np.diff(y, axis=1), 0.5 * (y[:, 1:] + y[:, :-1])
        hidden = np.abs(np.diff(below, axis=1)) * width * (width + np.abs(centre - middle))
        worst = np.argpartition(hidden, -_HALVED, axis=1)[:, -_HALVED:]
        new = np.take_along_axis(centre, worst, axis=1)
        y, below = _in_order(np.append(y, new, axis=1), np.append(below, _each(law, new), axis=1))
    return _integrated(y, np.maximum.accumulate(below, axis=1))


def _in_order(y: FloatArray, below: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points y (N, K) from left to right, and what belongs to them."""
    order = np.argsort(y, axis=1, kind="stable")
    return np.take_along_axis(y, order, axis=1), np.take_along_axis(below, order, axis=1)


def _each(law: PredictiveDistribution, y: FloatArray) -> FloatArray:
    """F at each column of points y (N, K): (N, K)."""
    return np.stack([law.cdf(point) for point in y.T], axis=1)


def _integrated(y: FloatArray, below: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance, (N,) each, for values `below` of F at ascending y, (N, K) both.

    What lies beyond the ends is put on them.
    """
    below = np.concatenate([below[:, :-1], np.ones_like(below[:, :1])], axis=1)
    width, slope = np.diff(y, axis=1), _slopes(y, below)
    first, last, start, end = below[:, :-1], below[:, 1:], slope[:, :-1] * width, slope[:, 1:] * width
    area = width * (0.5 * (first + last) + (start - end) / 12.0)
    mean: FloatArray = y[:, -1] - area.sum(axis=1)
    t = y - mean[:, None]
    lever = width * (0.15 * first + 0.35 * last + start / 30.0 - end / 20.0)
    variance = t[:, -1] ** 2 - 2.0 * (t[:, :-1] * area + width * lever).sum(axis=1)
    return mean, np.maximum(variance, 0.0)


def _slopes(y: FloatArray, below: FloatArray) -> FloatArray:
    """Slopes of the monotone cubic: harmonic means of both cells' at a point, at the ends the cell's."""
    width = np.maximum(np.diff(y, axis=1), np.finfo(np.float64).tiny)
    rise = np.diff(below, axis=1) / width
    before, after = rise[:, :-1], rise[:, 1:]
    w_before, w_after = width[:, :-1] + 2.0 * width[:, 1:], 2.0 * width[:, :-1] + width[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inner = (w_before + w_after) / (w_before / before + w_after / after)
    inner = np.where((before > 0.0) & (after > 0.0), inner, 0.0)
    return np.concatenate([rise[:, :1], inner, rise[:, -1:]], axis=1)
