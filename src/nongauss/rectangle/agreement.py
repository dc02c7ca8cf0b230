"""Numbers of groups of pieces that halves of the rows agree on, and the groups of a table of labels.

A half predicts the other where rows that are in one group by their own half are so by the other, too: the
prediction strength (Tibshirani and Walther, JCGS 2005). The density of labels has no valleys. Within a group
they depend on each other, too, and pieces are where they do not. So the two groups that differ in the fewest
columns are joined again and again; of the numbers of groups that come about and that halves agree on, that of
the greatest mean silhouette counts (Rousseeuw 1987).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nongauss.rectangle.data import FloatArray, IntArray, RectangleRows
from nongauss.rectangle.objective import log_density
from nongauss.rectangle.piece_groups import PieceGroups, valley_groups, with_cores
from nongauss.rectangle.pieces import GaussianPieces, find_pieces

Levels = dict[int, IntArray]
"""The group of each piece (K,) at each number of groups."""

CLEAR, ROWS_A_COLUMN = 0.1, 50
"""Where the density falls to this share of the lower peak or less between all groups, or the halves have
fewer rows for each column, they need not agree."""

STRONG = 0.8
"""Least prediction strength of a number of groups, a mean over splits of the rows."""

SPLITS = 2
"""Random halves of the rows; each half predicts the other."""


def agreed_groups(rows: RectangleRows, pieces: GaussianPieces, seed: int) -> PieceGroups:
    """The groups that valleys part, and dense cores in these.

    Where a valley is not deep, as many groups as halves of the rows agree on. Halves of few rows are not
    asked: they would not find the groups for want of rows.
    """
    return with_cores(rows, pieces, _agreed_valleys(rows, pieces, seed))


def _agreed_valleys(rows: RectangleRows, pieces: GaussianPieces, seed: int) -> PieceGroups:
    """The groups that valleys part; where one is not deep, as many of them as halves agree on."""
    found = valley_groups(rows, pieces)
    V = int(found.group.max()) + 1
    few = 0.5 * len(rows) < ROWS_A_COLUMN * rows.Y.shape[1]
    if V == 1 or found.between <= CLEAR or few:
        return found
    strength = _prediction_strength(rows, lambda r, p: valley_groups(r, p).levels, V, seed)
    kept = max(G for G in range(1, V + 1) if G == 1 or strength[G - 1] >= STRONG)
    return found if kept == V else found._replace(group=found.levels[kept], doubted=V)


def label_groups(rows: RectangleRows, pieces: GaussianPieces, seed: int) -> PieceGroups:
    """The groups of the pieces (K,); `within` is their silhouette, `between` their prediction strength."""
    levels = _joined_labels(rows, pieces)
    if len(levels) == 1:
        return PieceGroups(levels[1], 1.0, 0.0, False, levels)
    strength = _prediction_strength(rows, _joined_labels, max(levels), seed)
    strong = [G for G in levels if G > 1 and strength[G - 1] >= STRONG]
    if not strong:
        return PieceGroups(levels[1], 0.0, 1.0, False, levels)
    owner = pieces.share.argmax(axis=0)
    silhouette = {G: _silhouette(rows, levels[G][owner])[1] for G in strong}
    best = max(strong, key=lambda G: silhouette[G])
    return PieceGroups(levels[best], silhouette[best], float(strength[best - 1]), False, levels)


def _joined_labels(rows: RectangleRows, pieces: GaussianPieces) -> Levels:
    """For each number of groups the group of each piece of labels (K,); one of no row is in 0."""
    found, of_row = np.unique(pieces.share.argmax(axis=0), return_inverse=True)
    of_piece = np.zeros(len(pieces.mass), dtype=np.intp)
    of_piece[found] = np.arange(len(found))
    group, out = of_row.reshape(-1), {len(found): of_piece}
    while len(out) < len(found):
        apart = _silhouette(rows, group)[0]
        np.fill_diagonal(apart, np.inf)
        i, j = sorted(np.unravel_index(int(apart.argmin()), apart.shape))
        group, of_piece = (np.where(g == j, i, g) - (g > j) for g in (group, of_piece))
        out[len(apart) - 1] = of_piece
    return out


def _silhouette(rows: RectangleRows, group: IntArray) -> tuple[FloatArray, float]:
    """Mean dissimilarity of each two groups (G, G), and the mean silhouette of all rows.

    Dissimilarity is the share of the columns in which two rows have different levels.
    """
    # d_ng = 1 - sum_l x_nl f_gl / C;  s_n = (b - a) / max(a, b), a = d to the own group without the row
    member = np.eye(int(group.max()) + 1)[group] * rows.weight[:, None]
    size = member.sum(axis=0)
    shares = (member.T @ rows.Y_levels) / size[:, None]
    n_seen = np.maximum(rows.Y_levels.sum(axis=1), 1.0)
    far = 1.0 - rows.Y_levels @ shares.T / n_seen[:, None]
    at = np.arange(len(group))
    own = far[at, group] * size[group] / np.maximum(size[group] - 1.0, 1e-12)
    others = far.copy()
    others[at, group] = np.inf
    nearest = others.min(axis=1)
    each = np.where(size[group] > 1.0, (nearest - own) / np.maximum(np.maximum(nearest, own), 1e-12), 0.0)
    return (member.T @ far) / size[:, None], float(np.average(each, weights=rows.weight))


def _prediction_strength(
    rows: RectangleRows, joined: Callable[[RectangleRows, GaussianPieces], Levels], most: int, seed: int
) -> FloatArray:
    """The prediction strength of each number of groups from 1 to `most`: (most,).

    That is the share of pairs of rows of a group that are in one group by the other half, too; of the group
    where it is least, in the mean over splits. A number that a half does not have is predicted by none.
    """
    strength = np.zeros((SPLITS, 2, most))
    for at in range(SPLITS):
        order = np.random.default_rng([seed, at]).permutation(len(rows))
        halves = [rows.take(np.sort(part)) for part in np.array_split(order, 2)]
        found = [find_pieces(half, seed) for half in halves]
        levels = [joined(half, pieces) for half, pieces in zip(halves, found, strict=True)]
        for here in (0, 1):
            own, other = (_owner(halves[here], pieces) for pieces in (found[here], found[1 - here]))
            for G in set(levels[0]) & set(levels[1]) & set(range(1, most + 1)):
                groups = levels[here][G][own], levels[1 - here][G][other]
                strength[at, here, G - 1] = _least_kept(*groups, halves[here].weight)
    mean: FloatArray = strength.mean(axis=(0, 1))
    return mean


def _owner(rows: RectangleRows, pieces: GaussianPieces) -> IntArray:
    """The likeliest piece of each row (N,)."""
    log_p = log_density(rows, pieces.structure, pieces.kind)[0][0] + np.log(pieces.mass)[:, None]
    owner: IntArray = log_p.argmax(axis=0)
    return owner


def _least_kept(own: IntArray, other: IntArray, weight: FloatArray) -> float:
    """The least share of pairs of rows of an own group that are in one group of the others."""
    least = 1.0
    for g in np.unique(own):
        here = own == g
        counts = np.bincount(other[here], weight[here])
        total = counts.sum()
        if total > 1.0:
            least = min(least, float(counts @ (counts - 1.0).clip(0.0)) / (total * (total - 1.0)))
    return least
