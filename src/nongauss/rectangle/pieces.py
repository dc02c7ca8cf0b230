"""Gaussian pieces of a table: as many as pay for themselves.

A cluster need not be Gaussian: an even box, a skewed cloud or a crescent is several pieces. Which of them
are one group says `piece_groups.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from nongauss.rectangle.data import FloatArray, RectangleRows
from nongauss.rectangle.objective import log_density
from nongauss.rectangle.params import ClusterStructure
from nongauss.rectangle.updates import k_means_shares, structure_around, update_structure

MOST_PIECES = 14
"""Most Gaussian pieces of a table."""

PATIENCE = 3
"""Numbers of pieces in a row without a gain after which no more are tried."""

SHORT, LONG = 12, 60
"""EM iterations of all starts, and then of the best."""

ENOUGH = 1e-4
"""Nats a row below which no more iterations are taken."""

DRAWN = 2
"""Starts from k-means beside those that split a piece of the best partition so far."""

MOST_WORK = 1e6
"""Patterns of gaps times cubes of columns above which no full covariances are tried: each pattern has its own
factors."""

LEAST_SHARE = 0.005
"""Share of the rows, and two rows a column up to 6, below which a piece is no group."""


class GaussianPieces(NamedTuple):
    """A mixture of K Gaussians: its score in nats, shares of rows (K, N), laws (S = 1), weights (K,)."""

    score: float
    kind: str
    share: FloatArray
    structure: ClusterStructure
    mass: FloatArray


def find_pieces(rows: RectangleRows, seed: int) -> GaussianPieces:
    """The mixture, of full covariances or of variances alone, whose pieces pay best for their parameters.

    The prior of their scatter follows the covariance of all rows, so that small directions count like others.
    """
    rows = rows.take(np.arange(len(rows)))
    rows.spread = covariance(rows)
    kinds = ("diagonal", "full") if rows.gap_patterns.work <= MOST_WORK else ("diagonal",)
    found = [_of_kind(rows, kind, seed) for kind in kinds]
    return max(found, key=lambda pieces: pieces.score)


def covariance(rows: RectangleRows) -> FloatArray:
    """Covariance of the numeric structure columns (P, P), shrunk to a multiple of the unit matrix.

    The weight of that has the least expected error for Gaussian rows (Chen, Wiesel, Eldar and
    Hero, IEEE TSP 2010, eq. 23): the matrix is regular however few the rows. Variances are those of the cells
    that are there; gaps are at the mean in covariances.
    """
    present = ~np.isnan(rows.Y)
    n, P = float(rows.weight.sum()), rows.Y.shape[1]
    if not P:
        return np.zeros((0, 0))
    Y = np.where(present, rows.Y, 0.0)
    n_seen = np.maximum(rows.weight @ present, 1e-12)
    off = np.where(present, rows.Y - rows.weight @ Y / n_seen, 0.0) / np.sqrt(n_seen)
    S = (off.T * rows.weight) @ off
    level = max(float(np.trace(S)) / P, 1e-6)
    # rho = ((1 - 2/P) tr S^2 + (tr S)^2) / ((n + 1 - 2/P) (tr S^2 - (tr S)^2 / P))
    square, trace = float((S * S).sum()), float(np.trace(S)) ** 2
    below = (n + 1.0 - 2.0 / P) * (square - trace / P)
    rho = min(1.0, ((1.0 - 2.0 / P) * square + trace) / below) if below > 1e-12 else 1.0
    out: FloatArray = (1.0 - rho) * S + rho * level * np.eye(P)
    return out


def _of_kind(rows: RectangleRows, kind: str, seed: int) -> GaussianPieces:
    """The best number of pieces of one kind: each number starts from the splits of the number before."""
    everything = np.ones((1, 1, len(rows)))
    here = best = _climbed(rows, everything, kind)
    for K in range(2, min(MOST_PIECES, len(rows)) + 1):
        if np.isinf(_price(rows, K, kind)):
            break
        drawn = k_means_shares(rows, K, DRAWN, seed)
        here = _climbed(rows, np.concatenate([_splits(rows, here), drawn]), kind)
        if here.score > best.score:
            best = here
        if K - len(best.mass) >= PATIENCE:
            break
    return best


def _climbed(rows: RectangleRows, share: Float[np.ndarray, "S K N"], kind: str) -> GaussianPieces:
    """EM of a mixture with weights from several starts, to the end for the best of them."""
    for n_steps in (SHORT, LONG):
        structure = structure_around(rows, share, kind)
        former = np.full(len(share), -np.inf)
        for _ in range(n_steps):
            mass = (share @ rows.weight + 1.0) / (rows.weight.sum() + share.shape[1])
            score = log_density(rows, structure, kind)[0] + np.log(mass)[..., None]
            most = score.max(axis=1, keepdims=True)
            share = np.exp(score - most)
            total = share.sum(axis=1, keepdims=True)
            share /= total
            value = (most + np.log(total))[:, 0] @ rows.weight
            if (value - former).max() < ENOUGH * rows.weight.sum():
                break
            former = value
            structure = update_structure(rows, share * rows.weight, np.ones_like(share), structure, kind)
        chosen = slice(int(value.argmax()), int(value.argmax()) + 1)
        share = share[chosen]
    structure = ClusterStructure(*(part[chosen] for part in structure))
    price = _price(rows, share.shape[1], kind)
    return GaussianPieces(float(value.max()) - price, kind, share[0], structure, mass[chosen][0])


def _price(rows: RectangleRows, K: int, kind: str) -> float:
    """Half the log of N for each weight, mean and probability of a level, one nat for each other parameter.

    What parts pieces is where they are. Their covariances pay for their error, no more (Akaike 1973), since
    pieces too many are joined again; but no full covariance may have as many parameters as rows, and no piece
    too few rows to be a group.
    """
    P, N = rows.Y.shape[1], float(rows.weight.sum())
    spread = P * (P + 1) // 2 if kind == "full" else P
    places = P + sum(n - 1 for n in rows.Y_labels.n_levels)
    least = spread + P if kind == "full" else least_rows(rows) - 1.0
    if (K > 1 and least >= N / K) or (kind == "full" and least >= N):
        return float("inf")
    return float(0.5 * np.log(N) * (K * places + K - 1) + K * spread)


def _splits(rows: RectangleRows, pieces: GaussianPieces) -> Float[np.ndarray, "S K N"]:
    """Starts with one piece more: each in two, along its longest axis and its most two-humped column."""
    out = []
    Y = np.where(np.isnan(rows.Y), 0.0, rows.Y)
    for k, share in enumerate(pieces.share):
        for z in _split_directions(Y, share * rows.weight, pieces.structure, k):
            parts = share * (z > 0), share * (z <= 0)
            if min(part @ rows.weight for part in parts) > 1.0:
                out.append(np.vstack([np.delete(pieces.share, k, axis=0), *parts]))
    return np.array(out).reshape(len(out), len(pieces.mass) + 1, len(rows))


def _split_directions(Y: FloatArray, w: FloatArray, structure: ClusterStructure, k: int) -> list[FloatArray]:
    """Coordinates (N,) about a piece's mean: on its longest axis, and in the column of least kurtosis."""
    if not Y.shape[1]:
        return []
    off = Y - structure.mean[0, k]
    axis = np.linalg.eigh(structure.scatter[0, k])[1][:, -1]
    square = off * off
    kurtosis = (w @ square**2) * w.sum() / np.maximum((w @ square) ** 2, 1e-12)
    return [off @ axis, off[:, int(kurtosis.argmin())]]


def least_rows(rows: RectangleRows) -> float:
    """Rows below which a piece is no group."""
    return float(max(LEAST_SHARE * float(rows.weight.sum()), min(2.0 * rows.Y.shape[1], 6.0)))
