r"""Log density of the known cells of a row by the model of scores: factors and gaps integrated out.

Given a draw of the parameters, scores that are known are normal, and so are the factors given them. Every
other known cell bounds one normal number u = c'z + mu + e: a score within its interval, or the score of the
label shown less that of another one. Expectation propagation (Minka 2001; Rasmussen and Williams 2006,
section 3.6) takes each bound for a normal factor t(u) = exp(log c - tau u^2 / 2 + nu u), which are then
integrated in closed form:

    log p = sum log N(w; mu, psi) + log|V| / 2 + m' V^-1 m / 2 + sum log c,  V^-1 = I + A' A / psi + C' tau C

Exact without bounds or with one of them; of several it is within .02 nats of quadrature, and within .06
where labels follow from the factors nearly without noise (loadings of 4). The scores of the labels of a
column share the noise of the one shown, which stands among the factors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from nongauss.rank_factor.data import FloatArray
from nongauss.rank_factor.score_model import ScoreCells, ScoreModel, score_cells

ROWS = 500
"""Rows that are worked on at once."""

N_ROUNDS, ENOUGH = 6, 1e-3
"""Most rounds over the bounds; they end where no factor changes by more."""

N_DRAWS, MANY_SCORES = 20, 60
"""Draws of the parameters whose densities are averaged; of tables with many scores a quarter of them."""

HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


class _Bound(NamedTuple):
    """low < c'z + level + e < high, e ~ N(0, noise), in some of the rows: c (n, K), the others (n,)."""

    rows: NDArray[np.intp]
    direction: FloatArray
    level: FloatArray
    noise: float
    low: FloatArray
    high: FloatArray


def log_densities(model: ScoreModel, cells: FloatArray) -> FloatArray:
    """Log density of the known cells of each row (N, J), nats (N,); log probability of values and labels.

    The mean density over draws of the parameters; nothing is drawn here.
    """
    most = N_DRAWS if model.first[-1] <= MANY_SCORES else max(1, N_DRAWS // 4)
    chosen = np.linspace(0, model.n_draws - 1, min(most, model.n_draws)).astype(int)
    out = np.empty(len(cells))
    for first in range(0, len(cells), ROWS):
        own = cells[first : first + ROWS]
        seen = score_cells(model.margins, model.first, own)
        each = [_log_density(model, seen, int(s)) for s in chosen]
        alone = _slopes(model, own, seen) + _only_values(model, own)
        out[first : first + ROWS] = logsumexp(each, axis=0) - np.log(len(each)) + alone
    return out


def _log_density(model: ScoreModel, seen: ScoreCells, s: int) -> FloatArray:
    """Log density of scores and bounds under one draw of the parameters: (N,)."""
    loadings, psi = model.loadings[s].astype(np.float64), model.noise[s].astype(np.float64)
    several = np.diff(model.first) > 1
    K = loadings.shape[1] - 1
    A = np.hstack([loadings[:, :-1], np.zeros((len(loadings), int(several.sum())))])
    n_rows, size = len(seen.low), A.shape[1]
    exact = seen.known & (seen.low == seen.high)
    left = np.where(exact, seen.low - loadings[:, -1], 0.0)
    square = (A[:, :, None] * A[:, None, :] / psi[:, None, None]).reshape(len(A), size * size)
    precision = (exact.astype(np.float64) @ square).reshape(n_rows, size, size) + np.eye(size)
    linear = (left / psi) @ A
    out: FloatArray = -(exact * (0.5 * np.log(psi) + HALF_LOG_2PI) + 0.5 * left**2 / psi).sum(axis=1)
    V = np.linalg.inv(precision)
    m = np.einsum("nkl,nl->nk", V, linear)
    out += 0.5 * np.linalg.slogdet(V)[1] + 0.5 * (m * linear).sum(axis=1)
    out += _bounds_integrated(_bounds(model, seen, A, loadings[:, -1], psi, K), V, m)
    return out


def _bounds(
    model: ScoreModel, seen: ScoreCells, A: FloatArray, level: FloatArray, psi: FloatArray, K: int
) -> list[_Bound]:
    """The bounds of all columns; the noises of shown labels are the last of the factors of `A` (P, K')."""
    out, at = [], K
    for j in range(len(model.margins)):
        own = slice(model.first[j], model.first[j + 1])
        if own.stop - own.start == 1:
            p = own.start
            rows = np.flatnonzero(seen.loose[:, p])
            direction, levels = np.tile(A[p], (len(rows), 1)), np.full(len(rows), level[p])
            out.append(_Bound(rows, direction, levels, float(psi[p]), seen.low[rows, p], seen.high[rows, p]))
        elif own.stop > own.start:
            out += _label_bounds(seen.label[:, j], A[own], level[own], at)
            at += 1
    return [bound for bound in out if len(bound.rows)]


def _label_bounds(label: NDArray[np.intp], A: FloatArray, level: FloatArray, at: int) -> list[_Bound]:
    """The score of the label shown is above each other one: w_shown - w_other > 0, of unit noises."""
    out = []
    for other in range(len(A)):
        rows = np.flatnonzero((label >= 0) & (label != other))
        shown = label[rows]
        direction = A[shown] - A[other]
        direction[:, at] = 1.0
        zero = np.zeros(len(rows))
        out.append(_Bound(rows, direction, level[shown] - level[other], 1.0, zero, zero + np.inf))
    return out


def _bounds_integrated(bounds: list[_Bound], V: FloatArray, m: FloatArray) -> FloatArray:
    """Log probability of all bounds under z ~ N(m, V): (N,). m (N, K) and V (N, K, K) are changed."""
    first_m, first_V = m.copy(), V.copy()
    tau = [np.zeros(len(bound.rows)) for bound in bounds]
    nu = [np.zeros(len(bound.rows)) for bound in bounds]
    constant = [np.zeros(len(bound.rows)) for bound in bounds]
    for _ in range(N_ROUNDS if len(bounds) > 1 else 1):
        former = [part.copy() for part in constant]
        for b, bound in enumerate(bounds):
            _updated(bound, tau[b], nu[b], constant[b], V, m)
        moved = max((np.abs(now - old).max() for now, old in zip(constant, former, strict=True)), default=0.0)
        if moved < ENOUGH:
            break
    out = np.zeros(len(m))
    if not bounds:
        return out
    # log of the integral of N(z; m0, V0) prod t: the change of log|V| / 2 + m' V^-1 m / 2, and the constants
    out += 0.5 * (np.linalg.slogdet(V)[1] - np.linalg.slogdet(first_V)[1])
    for mean, covariance, sign in ((m, V, 0.5), (first_m, first_V, -0.5)):
        out += sign * (mean * np.linalg.solve(covariance, mean[:, :, None])[:, :, 0]).sum(axis=1)
    for bound, part in zip(bounds, constant, strict=True):
        out[bound.rows] += part
    return out


def _updated(
    bound: _Bound, tau: FloatArray, nu: FloatArray, constant: FloatArray, V: FloatArray, m: FloatArray
) -> None:
    """The factor t of one bound, anew from the others: tau, nu, log c, m and V change in place."""
    rows, c = bound.rows, bound.direction
    Vc = np.einsum("nkl,nl->nk", V[rows], c)
    v, mean = (Vc * c).sum(axis=1), (m[rows] * c).sum(axis=1)
    v_others = v / np.maximum(1.0 - tau * v, 1e-10)
    m_others = v_others * (mean / np.maximum(v, 1e-300) - nu)
    log_mass, slope, bend = interval_moments(
        m_others + bound.level, v_others + bound.noise, bound.low, bound.high
    )
    gain = np.maximum(1.0 - v_others * bend, 1e-10)  # variance of u given the bound, over v_others
    new_tau = bend / gain
    new_nu = (m_others * bend + slope) / gain
    after_v = v_others * gain
    after_m = m_others + v_others * slope
    constant[:] = log_mass - 0.5 * np.log(gain)
    constant -= 0.5 * (after_m**2 / np.maximum(after_v, 1e-300) - m_others**2 / np.maximum(v_others, 1e-300))
    d_tau, d_nu = new_tau - tau, new_nu - nu
    tau[:], nu[:] = new_tau, new_nu
    share = d_tau / (1.0 + d_tau * v)
    m[rows] += Vc * ((d_nu - d_tau * mean) / (1.0 + d_tau * v))[:, None]
    V[rows] -= share[:, None, None] * Vc[:, :, None] * Vc[:, None, :]


def interval_moments(
    mean: FloatArray, variance: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of P(low < w < high), w ~ N(mean, variance): its log, d log P / d mean, and -d^2 log P / d mean^2.

    All (N,); both tails by mirroring, so that log P is exact however small it is.
    """
    sd = np.sqrt(variance)
    a, b = (low - mean) / sd, (high - mean) / sd
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    log_b = log_ndtr(b)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        log_mass = log_b + np.log(np.maximum(-np.expm1(np.minimum(log_ndtr(a) - log_b, 0.0)), 1e-300))
        at_a = np.where(np.isfinite(a), np.exp(-0.5 * a * a - HALF_LOG_2PI - log_mass), 0.0)
        at_b = np.where(np.isfinite(b), np.exp(-0.5 * b * b - HALF_LOG_2PI - log_mass), 0.0)
        moved = np.where(np.isfinite(a), a, 0.0) * at_a - np.where(np.isfinite(b), b, 0.0) * at_b
    ratio = at_a - at_b
    bend = np.clip(ratio**2 - moved, 0.0, 1.0)
    return log_mass, np.where(flip, -ratio, ratio) / sd, bend / variance


def _slopes(model: ScoreModel, cells: FloatArray, seen: ScoreCells) -> FloatArray:
    """Log of dw / dx summed over the cells whose score is exact: (N,)."""
    out = np.zeros(len(cells))
    for j, margin in enumerate(model.margins):
        if model.first[j + 1] - model.first[j] != 1:
            continue
        w = seen.low[:, model.first[j]]
        exact = w == seen.high[:, model.first[j]]
        out[exact] += margin.log_slope(cells[exact, j]) + 0.5 * w[exact] ** 2 + HALF_LOG_2PI
    return out


def _only_values(model: ScoreModel, cells: FloatArray) -> FloatArray:
    """Of columns of which one value was seen: that has probability 1, any other 0: (N,)."""
    out = np.zeros(len(cells))
    for j, margin in enumerate(model.margins):
        if model.first[j + 1] == model.first[j] and not margin.is_label:
            out[~np.isnan(cells[:, j]) & (cells[:, j] != margin.edge[0])] = -np.inf
    return out
