"""Groups of Gaussian pieces: those that no valley of the density parts, and dense cores in wider clouds.

The ridge between two Gaussians (Ray and Lindsay, Annals of Statistics 2005) is followed through the density
of all pieces (Hennig, Advances in Data Analysis and Classification 2010); pieces that no valley parts are one
group. A dense box inside a wide one has no valley around it. But the rows of such a group lie at two levels
of the density, with hardly any between, where a cluster that thins out has all levels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.special import logsumexp

from nongauss.rectangle.data import FloatArray, IntArray, LevelCodes, RectangleRows
from nongauss.rectangle.objective import log_density
from nongauss.rectangle.pieces import GaussianPieces, least_rows

BoolArray = NDArray[np.bool_]
Moments = tuple[float, FloatArray, FloatArray]
"""Rows, mean and covariance of a group of pieces."""

VALLEY = 0.3
"""Groups are parted where the density between them falls below this share of the lower of their peaks."""

SHALLOW, APART = 0.7, 4.2
"""And where it falls below this share, and the pieces lie so many of their standard deviations apart: two
halves of an even box lie 3.5 apart."""

TWO_LEVELS, DENSER = 3.8, 0.7
"""A core in a wider cloud: its rows lie twice as dense for each column, this many nats, and the log densities
of both lie so many of their standard deviations apart. In a cluster that thins out one goes over into the
other: the rows of the middle and of the tails lie at most 3.3 apart."""

ALONG = np.linspace(0.0, 1.0, 41)
"""Places on the ridge between two pieces."""


def valleys(pieces: GaussianPieces) -> Float[np.ndarray, "K K"]:
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


class GroupPairs(NamedTuple):
    """What is between each two of G groups of pieces, each (G, G).

    The least deep valley between pieces of both; the share of rows of one that the other would get, the
    greater of the two; and the distance of their means.
    """

    depth: FloatArray
    overlap: FloatArray
    distance: FloatArray

    @property
    def valley(self) -> BoolArray:
        """Between which there is a valley (G, G)."""
        found: BoolArray = (self.depth <= VALLEY) | ((self.depth <= SHALLOW) & (self.distance > APART))
        return found


class PieceDensity(NamedTuple):
    """Rows and pieces as groups are sought.

    By the columns of numbers alone: the share of each piece in each row (K, N) and the log density of all
    pieces (N,), in which a gap counts as the mean of its column; the valleys between pieces (K, K).
    """

    rows: RectangleRows
    pieces: GaussianPieces
    share: FloatArray
    log_f: FloatArray
    depth: FloatArray

    def size(self, own: list[int]) -> float:
        """The weight of the rows of some pieces."""
        return float(self.pieces.share[own].sum(axis=0) @ self.rows.weight)

    def moments(self, own: list[int]) -> Moments:
        """Rows, mean and covariance of some pieces."""
        # m = sum p_k m_k;  S = sum p_k (S_k + (m_k - m)(m_k - m)')
        mass = self.pieces.share[own] @ self.rows.weight
        share, structure = mass / mass.sum(), self.pieces.structure
        means = structure.mean[0, own]
        mean = share @ means
        off = means - mean
        scatter = np.einsum("k,kpq->pq", share, structure.scatter[0, own]) + (off.T * share) @ off
        return float(mass.sum()), mean, scatter


def piece_density(rows: RectangleRows, pieces: GaussianPieces) -> PieceDensity:
    """Rows and pieces as groups are sought."""
    score, log_f = _log_numbers(rows, pieces)
    share = np.exp(score - log_f)
    return PieceDensity(rows, pieces, share, log_f + _log_gaps(rows, pieces), valleys(pieces))


def group_pairs(density: PieceDensity, members: list[list[int]]) -> GroupPairs:
    """What is between each two of some groups of pieces."""
    G = len(members)
    w = np.array([density.share[own].sum(axis=0) for own in members]) * density.rows.weight
    owner = w.argmax(axis=0)
    lost = np.array([w[:, owner == g].sum(axis=1) for g in range(G)]).T / w.sum(axis=1)[:, None]
    deep = np.array([[density.depth[np.ix_(a, b)].max() for b in members] for a in members])
    apart, moments = np.zeros((G, G)), [density.moments(own) for own in members]
    for i in range(G):
        for j in range(i):
            apart[i, j] = apart[j, i] = _distance(moments[i], moments[j])
    return GroupPairs(deep, np.maximum(lost, lost.T), apart)


def _log_numbers(rows: RectangleRows, pieces: GaussianPieces) -> tuple[FloatArray, FloatArray]:
    """By the columns of numbers alone: log of mass and density of each piece (K, N), and of all (N,)."""
    nothing = LevelCodes(np.zeros((len(rows), 0), dtype=np.intp), ())
    numbers = RectangleRows(rows.X, rows.X_labels, rows.Y, nothing, rows.weight, rows.grain)
    structure = pieces.structure._replace(log_levels=pieces.structure.log_levels[..., :0])
    score = log_density(numbers, structure, pieces.kind)[0][0] + np.log(pieces.mass)[:, None]
    return score, logsumexp(score, axis=0)


def _log_gaps(rows: RectangleRows, pieces: GaussianPieces) -> FloatArray:
    """The mean log density of the columns in which each row has gaps, each by itself (N,)."""
    gone = np.isnan(rows.Y)
    out = np.zeros(len(rows))
    for j in np.flatnonzero(gone.any(axis=0)):
        seen = np.flatnonzero(~gone[:, j])
        means, variances = pieces.structure.mean[0, :, j], pieces.structure.scatter[0, :, j, j]
        off = rows.Y[seen, j, None] - means
        log_f = logsumexp(-0.5 * (off**2 / variances + np.log(2 * np.pi * variances)), axis=1, b=pieces.mass)
        out[gone[:, j]] += np.average(log_f, weights=rows.weight[seen])
    return out


def _distance(one: Moments, other: Moments) -> float:
    """Mahalanobis distance of two groups in their pooled covariance, less what chance adds to its square.

    Zero for so few rows that chance explains any distance.
    """
    n, P = one[0] + other[0], len(one[1])
    if n <= P + 3.0:
        return 0.0
    off = one[1] - other[1]
    square = float(off @ np.linalg.solve((one[0] * one[2] + other[0] * other[2]) / n, off))
    # E[D^2] = (n - 2) / (n - P - 3) (delta^2 + P n / (n_i n_j))
    return float(np.sqrt(max(0.0, (n - P - 3.0) / (n - 2.0) * square - P * n / (one[0] * other[0]))))


class PieceGroups(NamedTuple):
    """The group of each piece (K,), from 0; the deepest valley within one, the least deep between two.

    `core`: one of them is a dense core in another. `levels`: the groups that valleys part at each number of
    groups, the nearest joined again and again. `doubted`: how many groups valleys part, where halves of the
    rows agree on fewer, else 0.
    """

    group: IntArray
    within: float
    between: float
    core: bool
    levels: dict[int, IntArray]
    doubted: int = 0


class JoinedPieces(NamedTuple):
    """Groups of some pieces that valleys part, the deepest valley within one, and the groups at each number,
    down to one."""

    members: list[list[int]]
    within: float
    levels: dict[int, list[list[int]]]


def valley_groups(rows: RectangleRows, pieces: GaussianPieces) -> PieceGroups:
    """Join pieces until valleys part each two groups."""
    density = piece_density(rows, pieces)
    K = len(pieces.mass)
    joined = _joined(density, list(range(K)))
    levels = {G: _group_of(level, K) for G, level in joined.levels.items()}
    between = _between(density, joined.members)
    return PieceGroups(_group_of(joined.members, K), joined.within, between, False, levels)


def with_cores(rows: RectangleRows, pieces: GaussianPieces, found: PieceGroups) -> PieceGroups:
    """The groups, and dense cores in wider clouds as groups of their own.

    The pieces of a core are joined anew by themselves: the cloud is no bridge between two cores.
    """
    density, within = piece_density(rows, pieces), found.within
    waiting = [np.flatnonzero(found.group == g).tolist() for g in range(int(found.group.max()) + 1)]
    n_before, members = len(waiting), []
    while waiting:
        own = waiting.pop(0)
        core = dense_core(density, own)
        if not core:
            members.append(own)
            continue
        joined = _joined(density, core)
        waiting += [*joined.members, [k for k in own if k not in core]]
        within = min(within, joined.within)
    if len(members) == n_before:
        return found
    between = _between(density, members)
    return found._replace(
        group=_group_of(members, len(found.group)), within=within, between=between, core=True
    )


def _between(density: PieceDensity, members: list[list[int]]) -> float:
    """The least deep valley between two of some groups, 0 of one group."""
    off = ~np.eye(len(members), dtype=np.bool_)
    return float(group_pairs(density, members).depth[off].max(initial=0.0))


def _group_of(members: list[list[int]], K: int) -> IntArray:
    """The group of each piece (K,)."""
    group: IntArray = np.array([[k in own for own in members] for k in range(K)]).argmax(axis=1)
    return group


def _joined(density: PieceDensity, own: list[int]) -> JoinedPieces:
    """Join some pieces, those that share most rows first, until valleys part each two groups, and on to one.

    A group too small to be one joins the nearest.
    """
    members, least = [[k] for k in own], least_rows(density.rows)
    levels: dict[int, list[list[int]]] = {}
    parted, within = None, 1.0
    while True:
        levels[len(members)] = [list(group) for group in members]
        pairs = group_pairs(density, members)
        small = np.array([density.size(group) < least for group in members])
        small = small[:, None] | small
        may = np.tril(small | ~pairs.valley, -1)
        if parted is None and not may.any():
            parted = len(members)
        if len(members) == 1:
            assert parted is not None
            return JoinedPieces(levels[parted], within, levels)
        may = may if parted is None else np.tril(np.ones_like(may), -1)
        order = np.lexsort((pairs.distance[may], -pairs.depth[may], -pairs.overlap[may]))
        i, j = np.argwhere(may)[order[0]]
        if parted is None and not small[i, j]:
            within = min(within, float(pairs.depth[i, j]))
        members[j] += members.pop(i)


def dense_core(density: PieceDensity, own: list[int]) -> list[int]:
    """Those pieces of a group that are a dense core in the others; none if there is no such core.

    Pieces are taken in the order of their density, and cut where the log densities of the rows of both sides
    are furthest apart. The middle of the core must lie within the wider cloud.
    """
    w = density.share[own] * density.rows.weight
    level = w @ density.log_f / np.maximum(w.sum(axis=1), 1e-12)
    order = [own[i] for i in np.argsort(-level, kind="stable")]
    cuts = [(_levels_apart(density, order[:n], order[n:]), n) for n in range(1, len(own))]
    apart, n = max(cuts, default=(0.0, 0))
    return order[:n] if apart > TWO_LEVELS else []


def _levels_apart(density: PieceDensity, core: list[int], wide: list[int]) -> float:
    """How many standard deviations the log densities of the rows of a core and of a cloud around it lie
    apart; 0 where they are no such two."""
    parts = [density.share[own].sum(axis=0) for own in (core, wide)]
    dense, present = parts[0] > parts[1], parts[0] + parts[1] > 0.5
    weights = [density.rows.weight * (present & side) for side in (dense, ~dense)]
    sizes = [float(w.sum()) for w in weights]
    if min(sizes) < least_rows(density.rows):
        return 0.0
    means = [float(w @ density.log_f) / n for w, n in zip(weights, sizes, strict=True)]
    dense_moments, (_, mean, scatter) = density.moments(core), density.moments(wide)
    off = dense_moments[1] - mean
    P = len(off)
    if means[0] - means[1] <= DENSER * P or off @ np.linalg.solve(scatter, off) >= P:
        return 0.0
    # what a value stands for has log densities, too: Var(u^2 / 2 S) = (h / S)^2 / 2 of u with variance h
    hidden = [
        0.5 * ((density.rows.grain / np.diagonal(S)) ** 2).sum(axis=1) for S in (dense_moments[2], scatter)
    ]
    square = sum(
        float(w @ ((density.log_f - m) ** 2 + h)) for w, m, h in zip(weights, means, hidden, strict=True)
    )
    return (means[0] - means[1]) / float(np.sqrt(square / sum(sizes)))
