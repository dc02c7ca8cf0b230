r"""A move of all loadings and all factors together, by Hamiltonian dynamics (Duane et al. 1987, Neal 2011).

Given the loadings the factors hardly move, and given the factors the loadings: where a factor is nearly the
score of one column, the size of that column's loading takes hundreds of sweeps. The level rule's density

    prod over cells exp(-2 [eps - s a_i'(z_n - m_iq)]_+)  prod over labels exp(-2 [1 - y beta'z]_+)

has a gradient but at the hinges' edges, and leapfrog steps follow it. Factors are uniform on the sphere of
mean square 1: they are v / rms(v), v normal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.rank_factor.data import NONE, FloatArray, n_levels_of

MOST_CELLS, FEWEST_LEAPS = 2_500_000, 30
"""Cells times leapfrog steps of a move are at most the first; no move of fewer steps is made."""
STEP = 0.16
"""The largest step, in standard deviations, times the fourth root of the dimension."""
BEND = 0.5
"""Expected curvature of the hinges of a cell in its score, by which directions are scaled."""


class HingeTable(NamedTuple):
    """The hinges of training cells (N, D), of which `here` tells (N D,), and labels y (N, C).

    place (N D,): of each cell's level among D Q. low_cell, high_cell: cells that have a lower hinge, or an
    upper one; below, above: the places of these neighbours. n_rows (D Q,): rows of each level, at least 1.
    """

    here: NDArray[np.bool_]
    place: NDArray[np.intp]
    low_cell: NDArray[np.intp]
    below: NDArray[np.intp]
    high_cell: NDArray[np.intp]
    above: NDArray[np.intp]
    n_rows: FloatArray
    eps: float
    y: FloatArray


class EnergySlopes(NamedTuple):
    """Minus the log density at a point, and its derivatives by loadings (D, K) and by v (N, K)."""

    energy: float
    of_loadings: FloatArray
    of_factors: FloatArray


def n_leaps(n_cells: int, n_scores: int) -> int:
    """Leapfrog steps of a move of so many cells and factor scores; 0: no move is made.

    Half as many as scores: longer paths where there are more, for a share of what drawing all at once costs.
    """
    leaps = min(max(FEWEST_LEAPS, n_scores // 2), MOST_CELLS // n_cells)
    return leaps if leaps >= FEWEST_LEAPS else 0


def hinge_table(codes: NDArray[np.uint8], eps: float, y: FloatArray) -> HingeTable:
    """The hinges of cells with these levels (N, D), NONE where missing, and labels y (N, C)."""
    n_columns, n_levels = codes.shape[1], n_levels_of(codes)
    here = codes != NONE
    level = np.where(here, codes, 0).astype(np.intp)
    place = (np.arange(n_columns) * n_levels + level).ravel()
    n_rows = np.bincount(place[here.ravel()], minlength=n_columns * n_levels)
    last = (n_rows.reshape(n_columns, n_levels) > 0).sum(axis=1) - 1
    low, high = np.flatnonzero(here & (level > 0)), np.flatnonzero(here & (level < last))
    most = np.maximum(n_rows, 1.0)
    return HingeTable(here.ravel(), place, low, place[low] - 1, high, place[high] + 1, most, eps, y)


def slopes_at(
    table: HingeTable, A: FloatArray, v: FloatArray, own: FloatArray, beta: FloatArray
) -> EnergySlopes:
    """Energy and slopes at loadings A (D, K) of prior precision `own`, v (N, K), coefficients (C, K + 1)."""
    size = np.sqrt((v**2).mean())
    z = v / size
    score = (z @ A.T).ravel()
    n = len(table.n_rows)
    mean = np.bincount(table.place, score * table.here, n) / table.n_rows
    lower = table.eps + mean[table.below] - score[table.low_cell]
    upper = table.eps + score[table.high_cell] - mean[table.above]
    low, high = lower > 0.0, upper > 0.0
    margin = 1.0 - table.y * (z @ beta[:, :-1].T + beta[:, -1])
    wrong = margin > 0.0
    energy = 2.0 * (lower @ low + upper @ high + margin[wrong].sum())
    energy += 0.5 * (own * A**2).sum() + 0.5 * (v**2).sum()
    pull = np.bincount(table.below, low, n) - np.bincount(table.above, high, n)
    by_score = table.here * (2.0 * pull / table.n_rows)[table.place]
    by_score[table.low_cell] -= 2.0 * low
    by_score[table.high_cell] += 2.0 * high
    by_score = by_score.reshape(len(v), len(A))
    by_z = by_score @ A - 2.0 * (wrong * table.y) @ beta[:, :-1]
    by_v = (by_z - z * ((by_z * z).sum() / v.size)) / size + v
    return EnergySlopes(float(energy), by_score.T @ z + own * A, by_v)


def hamiltonian_move(
    rng: np.random.Generator,
    A: FloatArray,
    z: FloatArray,
    table: HingeTable,
    own: FloatArray,
    beta: FloatArray,
    leaps: int,
) -> tuple[FloatArray, FloatArray]:
    """The next loadings (D, K) and factors (N, K), of mean square 1, given all else: see `slopes_at`.

    Directions are scaled by what does not move: prior precisions, and what these expect of the loadings.
    """
    v = z * np.sqrt(rng.chisquare(z.size) / z.size)
    step = STEP * rng.uniform(0.5, 1.0) * (A.size + z.size) ** -0.25
    across = step / np.sqrt(own + BEND * len(z))
    along = step / np.sqrt(1.0 + BEND * ((1.0 / own).sum(axis=0) + (beta[:, :-1] ** 2).sum(axis=0)))
    p, q = rng.standard_normal(A.shape), rng.standard_normal(z.shape)
    at = slopes_at(table, A, v, own, beta)
    before = at.energy + 0.5 * ((p**2).sum() + (q**2).sum())
    new_A, new_v = A, v
    for _ in range(leaps):
        p, q = p - 0.5 * across * at.of_loadings, q - 0.5 * along * at.of_factors
        new_A, new_v = new_A + across * p, new_v + along * q
        at = slopes_at(table, new_A, new_v, own, beta)
        p, q = p - 0.5 * across * at.of_loadings, q - 0.5 * along * at.of_factors
    after = at.energy + 0.5 * ((p**2).sum() + (q**2).sum())
    if not np.log(rng.random()) < before - after:
        return A, z
    return new_A, new_v / np.sqrt((new_v**2).mean())
