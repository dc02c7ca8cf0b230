"""The continuous ranked probability score, CRPS(F, y) = integral of (F(x) - 1[y <= x])^2 dx.

Mixtures of Gaussians and of log-normals have it in closed form (Grimit, Gneiting, Berrocal and Johnson,
Quarterly Journal of the Royal Meteorological Society 132, 2006; Baran and Lerch, 141, 2015). Any other law is
integrated or summed from its distribution function, without draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

if TYPE_CHECKING:
    from nongauss.predictive.distribution import PredictiveDistribution

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

ACCURACY = 1e-7
"""Error of a panel that is let through, as a share of the width of the central 80 % of a law."""

_TAIL = 1e-9
"""Probability beyond the ends of the integral; its square is what is left out."""

_CHUNK = 500_000
_STEP, _REACH = 0.6, 8.3  # see `_apart_by_points`
_MOST_DEPTH = 25
_LEVELS = 200
_NODES = 9  # values of a panel of whole numbers
_MOST_SUMMED = 14  # doublings up to which the rule of a run is summed itself
_LARGEST = 2.0**52  # whole numbers above it are not all there
_ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)


# ------------------------------------------------------------ closed forms


def gaussians(y: FloatArray, weights: FloatArray, means: FloatArray, sds: FloatArray) -> FloatArray:
    """CRPS at y (R,) of mixtures of Gaussians, weights, means and sds (R, C): (R,).

    E|Y - y| - E|Y - Y'| / 2, with A(d, s) = E|N(d, s^2)| in E|Y - y| = sum_c w_c A(y - m_c, s_c) and
    E|Y - Y'| = sum_cd w_c w_d A(m_c - m_d, (s_c^2 + s_d^2)^1/2). The latter is taken over pairs or, where
    these are more, as an integral.
    """
    weights, means, sds = _without_empty(weights, means, sds)
    first = np.einsum("rc,rc->r", weights, _mean_size(y[:, None] - means, sds))
    used = weights > 0.0
    low = np.where(used, means - _REACH * sds, np.inf).min(axis=1)
    high = np.where(used, means + _REACH * sds, -np.inf).max(axis=1)
    step = _STEP * np.where(used, sds, np.inf).min(axis=1)
    n_points = np.ceil((high - low) / step) + 1.0
    out = np.empty(len(y))
    by_points = n_points < 0.5 * weights.shape[1]
    for rows in _chunks(np.flatnonzero(~by_points), weights.shape[1] ** 2):
        out[rows] = first[rows] - 0.5 * _apart_by_pairs(weights[rows], means[rows], sds[rows])
    size = int(n_points[by_points].max(initial=2.0))  # one point where rounding leaves a law no width
    for rows in _chunks(np.flatnonzero(by_points), size * weights.shape[1]):
        at = weights[rows], means[rows], sds[rows]
        out[rows] = first[rows] - _apart_by_points(*at, low[rows], high[rows], size)
    return out


def _without_empty(
    weights: FloatArray, means: FloatArray, sds: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mixtures (R, C) with no more components than the row that has the most of weight above 0."""
    most = int((weights > 0.0).sum(axis=1).max(initial=1))
    if most == weights.shape[1]:
        return weights, means, sds
    first = np.argsort(-weights, axis=1, kind="stable")[:, :most]
    w, m, s = (np.take_along_axis(part, first, axis=1) for part in (weights, means, sds))
    return w, m, s


def _chunks(rows: IntArray, size: int) -> list[IntArray]:
    """Numbers of rows in groups whose working arrays, of this size a row, stay in the processor's cache."""
    height = max(1, _CHUNK // max(1, size))
    return [rows[start : start + height] for start in range(0, len(rows), height)]


def _mean_size(d: FloatArray, s: FloatArray) -> FloatArray:
    """E|X| of X ~ N(d, s^2), s > 0: d (2 Phi(d / s) - 1) + 2 s phi(d / s)."""
    z = d / s
    with np.errstate(over="ignore"):  # a square beyond the largest number is a density of 0
        out: FloatArray = d * (2.0 * ndtr(z) - 1.0) + s * _ROOT_2_OVER_PI * np.exp(-0.5 * z * z)
    return out


def _apart_by_pairs(weights: FloatArray, means: FloatArray, sds: FloatArray) -> FloatArray:
    """E|Y - Y'| of two draws of each row's mixture (R,), by the C (C + 1) / 2 pairs of components."""
    first, second = np.triu_indices(weights.shape[1])
    share = weights[:, first] * weights[:, second] * np.where(first == second, 1.0, 2.0)
    size = _mean_size(means[:, first] - means[:, second], np.hypot(sds[:, first], sds[:, second]))
    out: FloatArray = np.einsum("rc,rc->r", share, size)
    return out


def _apart_by_points(
    weights: FloatArray, means: FloatArray, sds: FloatArray, low: FloatArray, high: FloatArray, size: int
) -> FloatArray:
    """E|Y - Y'| / 2 = integral of F (1 - F) (R,) by the trapezoid rule with this many points a row.

    The integrand is smooth at the scale s of the narrowest component, and its Fourier transform falls as
    exp(-w^2 s^2 / 4): at steps of 0.6 s the error is about exp(-(pi / 0.6)^2) = 1e-12 of the integral.
    """
    x = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, size)
    each = ndtr((x[:, :, None] - means[:, None, :]) / sds[:, None, :])
    below = np.einsum("rgc,rc->rg", each, weights)
    out: FloatArray = (below * (1.0 - below)).sum(axis=1) * (high - low) / (size - 1)
    return out


def log_gaussians(y: FloatArray, weights: FloatArray, means: FloatArray, sds: FloatArray) -> FloatArray:
    """CRPS at y (R,) of mixtures of log-normals whose logarithms have these means and sds (R, C): (R,).

    With M = e^{m + s^2 / 2}, z = (log y - m) / s, and Y = Y_c in the component c, of two components
    E max(Y, Y') = M Phi((m - m' + s^2) / r) + M' Phi((m' - m + s'^2) / r), r^2 = s^2 + s'^2, so that

    CRPS = sum_c w_c [y (2 Phi(z) - 1) - 2 M Phi(z - s)] + 2 sum_cd w_c w_d M_c Phi((m_d - m_c - s_c^2) / r).
    """
    inside = y > 0.0
    with np.errstate(over="ignore"):
        z = (np.log(np.where(inside, y, 1.0))[:, None] - means) / sds
        log_mean = means + 0.5 * sds**2
        near = y[:, None] * (2.0 * ndtr(z) - 1.0) - 2.0 * np.exp(log_mean + log_ndtr(z - sds))
        first = np.where(inside[:, None], near, -y[:, None])
        out: FloatArray = np.einsum("rc,rc->r", weights, first)
        for rows in _chunks(np.arange(len(y)), weights.shape[1] ** 2):
            w, m, s = weights[rows], means[rows], sds[rows]
            own, other = s[:, :, None], s[:, None, :]
            apart = (m[:, None, :] - m[:, :, None] - own**2) / np.hypot(own, other)
            term = np.exp(log_mean[rows][:, :, None] + log_ndtr(apart))
            out[rows] += 2.0 * np.einsum("rc,rcd,rd->r", w, term, w)
    return out


# ------------------------------------------------------------ from quantiles or the distribution function


def by_quantiles(quantile: Callable[[FloatArray], FloatArray], y: FloatArray) -> FloatArray:
    """CRPS at y (N,) of laws whose quantiles at levels (Q,) are cheap, (N, Q): twice their mean pinball loss.

    CRPS = 2 integral over q of (1[y < x_q] - q) (x_q - y), by the middles of `_LEVELS` equal steps: good to
    about a thousandth; of a law with an infinite mean the ends beyond those levels are left out.
    """
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    x = quantile(levels)
    out: FloatArray = 2.0 * (((y[:, None] < x) - levels) * (x - y[:, None])).mean(axis=1)
    return out


def by_cdf(law: PredictiveDistribution, y: FloatArray) -> FloatArray:
    """CRPS at y (N,) or (N, P) of any law from its quantiles and distribution function, in y's shape."""
    score = _summed if law.is_discrete else _integrated
    if y.ndim == 1:
        return score(law, y, None)
    return np.stack([score(law, y[:, p], p) for p in range(y.shape[1])], axis=1)


class _OneOutput(NamedTuple):
    """The distribution function and quantiles of one output of a law; `output` None: its only one."""

    law: PredictiveDistribution
    output: int | None

    def cdf(self, x: FloatArray, rows: IntArray) -> FloatArray:
        """P(Y <= x) of the rows of these numbers (n,) at x (n, K): (n, K)."""
        own = self.law[np.repeat(rows, x.shape[1])]
        if self.output is None:
            return own.cdf(x.ravel()).reshape(x.shape)
        n_outputs = self.law.mean.shape[1]
        every = own.cdf(np.repeat(x.ravel()[:, None], n_outputs, axis=1))
        return every[:, self.output].reshape(x.shape)

    def quantile(self, levels: FloatArray) -> FloatArray:
        """Quantiles at the levels (Q,): (N, Q)."""
        found = self.law.quantile(levels)
        return found if self.output is None else found[:, :, self.output]


class _Panels(NamedTuple):
    """Intervals from `low` to `high`, each of a row, all (K,): after the row's y (`after`) or before it."""

    row: IntArray
    low: FloatArray
    high: FloatArray
    after: npt.NDArray[np.bool_]


def _integrated(law: PredictiveDistribution, y: FloatArray, output: int | None) -> FloatArray:
    """CRPS of a law with a density, and perhaps atoms, between which it is integrated adaptively."""
    of = _OneOutput(law, output)
    inner = of.quantile(np.array([_TAIL, 1e-4, 0.1, 0.5, 0.9, 1.0 - 1e-4, 1.0 - _TAIL]))
    low, high = inner[:, 0], inner[:, -1]
    out = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)  # there F is 0 or 1
    others = np.broadcast_to(np.array(law.atoms, dtype=np.float64), (len(y), len(law.atoms)))
    knots = np.sort(np.clip(np.column_stack([inner, y, others]), low[:, None], high[:, None]), axis=1)
    row = np.repeat(np.arange(len(y)), knots.shape[1] - 1)
    begin, end = knots[:, :-1].ravel(), knots[:, 1:].ravel()
    open_ = end > begin
    panels = _Panels(row[open_], begin[open_], end[open_], begin[open_] >= y[row[open_]])
    wide = np.maximum(inner[:, 4] - inner[:, 2], ACCURACY * (high - low))
    for _ in range(_MOST_DEPTH):
        if not len(panels.row):
            break
        value, error = _kronrod(of, panels)
        good = error <= ACCURACY * wide[panels.row]
        np.add.at(out, panels.row[good], value[good])
        panels = _halved(_some(panels, ~good))
    if len(panels.row):
        np.add.at(out, panels.row, _kronrod(of, panels)[0])
    return out


def _some(panels: _Panels, chosen: npt.NDArray[np.bool_] | IntArray) -> _Panels:
    """Some of the intervals, by a mask or their numbers."""
    return _Panels(panels.row[chosen], panels.low[chosen], panels.high[chosen], panels.after[chosen])


def _halved(panels: _Panels) -> _Panels:
    """Each interval in two."""
    middle = 0.5 * (panels.low + panels.high)
    row, after = np.tile(panels.row, 2), np.tile(panels.after, 2)
    return _Panels(row, np.append(panels.low, middle), np.append(middle, panels.high), after)


def _square(below: FloatArray, after: npt.NDArray[np.bool_]) -> FloatArray:
    """(F - 1[y <= x])^2 from F (n, K)."""
    out: FloatArray = np.where(after[:, None], 1.0 - below, below) ** 2
    return out


def _kronrod(of: _OneOutput, panels: _Panels) -> tuple[FloatArray, FloatArray]:
    """Integrals over the intervals, and what they may be wrong by, (K,) each, from 15 points."""
    nodes, weights, coarse = _kronrod_rule()
    half = 0.5 * (panels.high - panels.low)
    value, error = np.empty(len(half)), np.empty(len(half))
    for some in _chunks(np.arange(len(half)), len(nodes)):
        x = 0.5 * (panels.low + panels.high)[some, None] + half[some, None] * nodes
        terms = _square(of.cdf(x, panels.row[some]), panels.after[some])
        value[some] = half[some] * (terms @ weights)
        error[some] = half[some] * np.abs(terms @ (weights - coarse))
    return value, error


_HALF_NODES = (
    0.99145537112081264,
    0.94910791234275852,
    0.86486442335976907,
    0.74153118559939444,
    0.58608723546769113,
    0.40584515137739717,
    0.20778495500789847,
)
_HALF_WEIGHTS = (
    0.022935322010529225,
    0.063092092629978553,
    0.104790010322250184,
    0.140653259715525919,
    0.169004726639267903,
    0.190350578064785410,
    0.204432940075298892,
)
_MIDDLE_WEIGHT = 0.209482141084727828


@lru_cache
def _kronrod_rule() -> tuple[FloatArray, FloatArray, FloatArray]:
    """15 points in (-1, 1), their weights (Kronrod 1965), and those of Gauss's rule by every second point."""
    half, share = np.array(_HALF_NODES), np.array(_HALF_WEIGHTS)
    coarse = np.zeros(15)
    coarse[1::2] = np.polynomial.legendre.leggauss(7)[1]
    return (
        np.concatenate([-half, [0.0], half[::-1]]),
        np.concatenate([share, [_MIDDLE_WEIGHT], share[::-1]]),
        coarse,
    )


def _summed(law: PredictiveDistribution, y: FloatArray, output: int | None) -> FloatArray:
    """CRPS of a law of whole numbers: the sum of (F(k) - 1[y <= k])^2 over these, y's own cell apart.

    Runs of 8 2^j whole numbers are summed from nine of them, by the polynomial through these; where the one
    through five says otherwise, the run is halved. Runs of eight are summed one by one.
    """
    of = _OneOutput(law, output)
    inner = of.quantile(np.array([_TAIL, 0.1, 0.9, 1.0 - _TAIL]))
    low, high = inner[:, 0], np.minimum(inner[:, -1] + 1.0, _LARGEST)
    out = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    cell = np.floor(y)
    inside = np.flatnonzero((cell >= low) & (cell < high))
    below = of.cdf(cell[inside, None], inside)[:, 0]
    part = y[inside] - cell[inside]
    out[inside] += part * below**2 + (1.0 - part) * (1.0 - below) ** 2
    every = np.arange(len(y))
    before = _Panels(every, low, np.clip(cell, low, high), np.zeros(len(y), dtype=np.bool_))
    after = _Panels(every, np.clip(cell + 1.0, low, high), high, np.ones(len(y), dtype=np.bool_))
    wide = np.maximum(np.maximum(inner[:, 2] - inner[:, 1], 1.0), ACCURACY * (high - low))
    for panels in (before, after):
        _add_runs(of, panels, wide, out)
    return out


def _add_runs(of: _OneOutput, panels: _Panels, wide: FloatArray, out: FloatArray) -> None:
    """Add to `out` (N,) the sums over the whole numbers from `low` to below `high` of each row."""
    begin = panels.low.copy()
    single = np.mod(panels.high - begin, 8.0)
    for step in range(7):
        rows = np.flatnonzero(single > step)
        if len(rows):
            terms = _square(of.cdf((begin[rows] + step)[:, None], panels.row[rows]), panels.after[rows])
            out[panels.row[rows]] += terms[:, 0]
    begin += single
    longest = float(np.max(panels.high - begin, initial=8.0))
    for doublings in range(math.ceil(math.log2(max(longest / 8.0, 1.0))), -1, -1):
        length = 8.0 * 2.0**doublings
        while len(rows := np.flatnonzero(panels.high - begin >= length)):
            open_ = _Panels(panels.row[rows], begin[rows], begin[rows] + length, panels.after[rows])
            _add_run(of, open_, doublings, wide, out)
            begin[rows] += length


def _add_run(of: _OneOutput, panels: _Panels, doublings: int, wide: FloatArray, out: FloatArray) -> None:
    """Add the sums over runs of 8 2^doublings whole numbers, halved where that is called for."""
    fine, coarse = _run_rule(doublings)
    stride = 2.0**doublings
    left = []
    for some in _chunks(np.arange(len(panels.row)), _NODES):
        x = panels.low[some, None] + stride * np.arange(_NODES)
        terms = _square(of.cdf(x, panels.row[some]), panels.after[some])
        good = np.abs(terms @ (fine - coarse)) <= ACCURACY * wide[panels.row[some]]
        good |= doublings == 0
        np.add.at(out, panels.row[some][good], (terms @ fine)[good])
        left.append(some[~good])
    rest = np.concatenate(left)
    if len(rest):
        _add_run(of, _halved(_some(panels, rest)), doublings - 1, wide, out)


@lru_cache
def _run_rule(doublings: int) -> tuple[FloatArray, FloatArray]:
    """Weights of nine values, and of five of them, in a sum over the whole numbers 0 to 8 2^doublings - 1.

    They are those of the polynomial through the values at 0, 2^doublings, ..., 8 2^doublings. Sums over more
    numbers grow as the polynomial's integral does, beside half of its fall (Euler and Maclaurin).
    """
    if doublings > _MOST_SUMMED:
        times, half_fall = 2.0 ** (doublings - _MOST_SUMMED), np.eye(_NODES)[0] - np.eye(_NODES)[-1]
        fine, coarse = (rule - 0.5 * half_fall for rule in _run_rule(_MOST_SUMMED))
        return times * fine + 0.5 * half_fall, times * coarse + 0.5 * half_fall
    size = 8 * 2**doublings
    x = np.arange(size) / size

    def weights(n_nodes: int) -> FloatArray:
        nodes = np.linspace(0.0, 1.0, n_nodes)
        out = np.empty(n_nodes)
        for i in range(n_nodes):
            others = np.delete(nodes, i)
            out[i] = np.prod((x[:, None] - others) / (nodes[i] - others), axis=1).sum()
        return out

    coarse = np.zeros(_NODES)
    coarse[::2] = weights(5)
    return weights(_NODES), coarse
