"""Gaussian pieces of a table, and how deep the valleys of its density between them are.

A cluster need not be Gaussian: an even box, a skewed cloud or a crescent is several pieces whose density
has no valley between them. So pieces are found first, as many as pay for themselves, and then those that no
valley parts are one group: the ridge between two Gaussians (Ray and Lindsay, Annals of Statistics 2005) is
followed through the density of all pieces (Hennig, Advances in Data Analysis and Classification 2010).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.special import logsumexp

from nongauss.rectangle.data import FloatArray, IntArray, LevelCodes, RectangleRows
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

VALLEY = 0.3
"""Groups are parted where the density between them falls below this share of the lower of their peaks."""

SHALLOW, APART = 0.7, 4.2
"""And where it falls below this share, and the pieces lie so many of their standard deviations apart: two
halves of an even box lie 3.5 apart."""

SHARP, DENSER = 0.04, 0.7
"""A core in a wider cloud: less than this share of the rows of either would go to the other, and its rows lie
twice as dense for each column, this many nats. Between the core and the tails of a heavy-tailed cluster 30 %
would go."""

ALONG = np.linspace(0.0, 1.0, 41)
"""Places on the ridge between two pieces."""

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
    found = [_of_kind(rows, kind, seed) for kind in ("diagonal", "full")]
    return max(found, key=lambda pieces: pieces.score)


def covariance(rows: RectangleRows) -> FloatArray:
    """Covariance of the numeric structure columns (P, P), shrunk to a multiple of the unit matrix.

    The weight of that has the least expected error for Gaussian rows (Chen, Wiesel, Eldar and
    Hero, IEEE TSP 2010, eq. 23): the matrix is regular however few the rows. Gaps are at the mean.
    """
    present = ~np.isnan(rows.Y)
    n, P = float(rows.weight.sum()), rows.Y.shape[1]
    if not P:
        return np.zeros((0, 0))
    Y = np.where(present, rows.Y, 0.0)
    mean = rows.weight @ Y / np.maximum(rows.weight @ present, 1e-12)
    off = np.where(present, rows.Y - mean, 0.0)
    S = (off.T * rows.weight) @ off / n
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


def valleys(rows: RectangleRows, pieces: GaussianPieces) -> Float[np.ndarray, "K K"]:
    """How deep the density falls between two pieces, as a share of the lower peak: 1 is not at all."""
    K = len(pieces.mass)
    out = np.ones((K, K))
    for i in range(K):
        for j in range(i):
            out[i, j] = out[j, i] = _valley(pieces, i, j)
    return out


def _valley(pieces: GaussianPieces, i: int, j: int) -> float:
    """The lowest density of all pieces on the ridge from one to another, over the lower of its two peaks."""
    means, scatters = pieces.structure.mean[0], pieces.structure.scatter[0]
    one, other = np.linalg.inv(scatters[i]), np.linalg.inv(scatters[j])
    # x(a) = [(1 - a) S_i^-1 + a S_j^-1]^-1 [(1 - a) S_i^-1 m_i + a S_j^-1 m_j]
    at = ALONG[:, None]
    both = (1.0 - at[..., None]) * one + at[..., None] * other
    ridge = np.linalg.solve(both, ((1.0 - at) * (one @ means[i]) + at * (other @ means[j]))[..., None])[
        ..., 0
    ]
    log_p = np.array([_log_gauss(ridge, m, S) for m, S in zip(means, scatters, strict=True)])
    log_f = logsumexp(log_p + np.log(pieces.mass)[:, None], axis=0)
    peaks = np.minimum(np.maximum.accumulate(log_f), np.maximum.accumulate(log_f[::-1])[::-1])
    return float(np.exp((log_f - peaks).min()))


def _log_gauss(x: FloatArray, mean: FloatArray, scatter: FloatArray) -> FloatArray:
    """Log density of a Gaussian at points (n, P), without the constant that all share."""
    root = np.linalg.cholesky(scatter)
    z = np.linalg.solve(root, (x - mean).T)
    density: FloatArray = -0.5 * (z * z).sum(axis=0) - np.log(np.diagonal(root)).sum()
    return density


def least_rows(rows: RectangleRows) -> float:
    """Rows below which a piece is no group."""
    return float(max(LEAST_SHARE * float(rows.weight.sum()), min(2.0 * rows.Y.shape[1], 6.0)))


BoolArray = NDArray[np.bool_]


class GroupPairs(NamedTuple):
    """What is between each two of G groups of pieces, each (G, G).

    The least deep valley between pieces of both; the share of rows of one that the other would get, the
    greater of the two; the distance of their means; how much denser the rows of one lie, in nats a column;
    and the square of the distance of its mean in the covariance of the other, a column.
    """

    depth: FloatArray
    overlap: FloatArray
    distance: FloatArray
    contrast: FloatArray
    inside: FloatArray

    @property
    def valley(self) -> BoolArray:
        """Between which there is a valley (G, G)."""
        found: BoolArray = (self.depth <= VALLEY) | ((self.depth <= SHALLOW) & (self.distance > APART))
        return found

    @property
    def core(self) -> BoolArray:
        """Of which one is a dense core in the other (G, G)."""
        found: BoolArray = (self.overlap < SHARP) & (self.contrast > DENSER) & (self.inside < 1.0)
        return found


def group_pairs(
    rows: RectangleRows,
    pieces: GaussianPieces,
    depth: FloatArray,
    share: FloatArray,
    members: list[list[int]],
) -> GroupPairs:
    """Each two of some groups, from the valleys between pieces (K, K) and shares by numbers (K, N)."""
    G = len(members)
    w = np.array([share[own].sum(axis=0) for own in members]) * rows.weight
    size = w.sum(axis=1)
    owner = w.argmax(axis=0)
    lost = np.array([w[:, owner == g].sum(axis=1) for g in range(G)]).T / size[:, None]
    log_f = _log_numbers(rows, pieces)[1]
    level = w @ log_f / size
    deep = np.array([[depth[np.ix_(a, b)].max() for b in members] for a in members])
    apart, inside, mass = np.zeros((G, G)), np.zeros((G, G)), pieces.share @ rows.weight
    moments = [_moments(pieces.structure, mass, own) for own in members]
    for i in range(G):
        for j in range(i):
            apart[i, j] = apart[j, i] = _distance(moments[i], moments[j])
            wide, core = (moments[k] for k in ((i, j) if level[i] < level[j] else (j, i)))
            off = core[1] - wide[1]
            inside[i, j] = inside[j, i] = float(off @ np.linalg.solve(wide[2], off)) / len(off)
    contrast = np.abs(level[:, None] - level) / rows.Y.shape[1]
    return GroupPairs(deep, np.maximum(lost, lost.T), apart, contrast, inside)


def _log_numbers(rows: RectangleRows, pieces: GaussianPieces) -> tuple[FloatArray, FloatArray]:
    """By the columns of numbers alone: log of mass and density of each piece (K, N), and of all (N,)."""
    nothing = LevelCodes(np.zeros((len(rows), 0), dtype=np.intp), ())
    numbers = RectangleRows(rows.X, rows.X_labels, rows.Y, nothing, rows.weight)
    structure = pieces.structure._replace(log_levels=pieces.structure.log_levels[..., :0])
    score = log_density(numbers, structure, pieces.kind)[0][0] + np.log(pieces.mass)[:, None]
    return score, logsumexp(score, axis=0)


def _moments(
    structure: ClusterStructure, mass: FloatArray, own: list[int]
) -> tuple[float, FloatArray, FloatArray]:
    """Rows, mean and covariance of a group of pieces."""
    # m = sum p_k m_k;  S = sum p_k (S_k + (m_k - m)(m_k - m)')
    share = mass[own] / mass[own].sum()
    means = structure.mean[0, own]
    mean = share @ means
    off = means - mean
    scatter = np.einsum("k,kpq->pq", share, structure.scatter[0, own]) + (off.T * share) @ off
    return float(mass[own].sum()), mean, scatter


def _distance(
    one: tuple[float, FloatArray, FloatArray], other: tuple[float, FloatArray, FloatArray]
) -> float:
    """Mahalanobis distance of two groups in their pooled covariance, less what chance adds to its square."""
    n, P = one[0] + other[0], len(one[1])
    off = one[1] - other[1]
    square = float(off @ np.linalg.solve((one[0] * one[2] + other[0] * other[2]) / n, off))
    # E[D^2] = (n - 2) / (n - P - 3) (delta^2 + P n / (n_i n_j))
    return float(np.sqrt(max(0.0, (n - P - 3.0) / (n - 2.0) * square - P * n / (one[0] * other[0]))))


class PieceGroups(NamedTuple):
    """The group of each piece (K,), from 0; the deepest valley within one, the least deep between two.

    `core`: two of them are parted by no valley; one is a dense core in the other. `levels`: the groups of
    the pieces at each number of groups, the nearest joined again and again. `doubted`: how many groups
    valleys part, where halves of the rows agree on fewer, else 0.
    """

    group: IntArray
    within: float
    between: float
    core: bool
    levels: dict[int, IntArray]
    doubted: int = 0


def valley_groups(rows: RectangleRows, pieces: GaussianPieces) -> PieceGroups:
    """Join pieces, those that share most rows first, until each two groups are parted.

    One too small to be a group joins the nearest.
    """
    depth = valleys(rows, pieces)
    score, total = _log_numbers(rows, pieces)
    share = np.exp(score - total)
    members, least = [[k] for k in range(len(depth))], least_rows(rows)
    levels: dict[int, IntArray] = {}
    found, within = None, 1.0
    while True:
        levels[len(members)] = np.array([[k in own for own in members] for k in range(len(depth))]).argmax(1)
        pairs = group_pairs(rows, pieces, depth, share, members)
        small = np.array([float(pieces.share[own].sum(axis=0) @ rows.weight) < least for own in members])
        small = small[:, None] | small
        may = np.tril(small | ~(pairs.valley | pairs.core), -1)
        if found is None and not may.any():
            off = ~np.eye(len(members), dtype=np.bool_)
            between, core = float(pairs.depth[off].max(initial=0.0)), bool((off & ~pairs.valley).any())
            found = PieceGroups(levels[len(members)], within, between, core, levels)
        if len(members) == 1:
            assert found is not None
            return found
        may = may if found is None else np.tril(np.ones_like(may), -1)
        order = np.lexsort((pairs.distance[may], -pairs.depth[may], -pairs.overlap[may]))
        i, j = np.argwhere(may)[order[0]]
        if found is None and not small[i, j]:
            within = min(within, float(pairs.depth[i, j]))
        members[j] += members.pop(i)
