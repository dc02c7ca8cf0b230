r"""The level rule as one density, of which all factors of a small table are drawn at once.

    prod over cells (n, i) and neighbouring levels q: exp(-2 [eps - s a_i'(z_n - m_iq)]_+)

with s = 1 for the level below and -1 for that above, m_iq the mean of the factors of the rows that have level
q of column i. Drawn one by one against means that stand still, rows hold each other fast through the means of
their levels: groups of rows drift for hundreds of sweeps (as cut points do, Cowles 1996). Given its latent
variances the density is one normal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nongauss.rank_factor.config import RankConfig
from nongauss.rank_factor.data import NONE, FloatArray, RankRows, n_levels_of
from nongauss.rank_factor.params import Normal, System, WeightedLabels, joint_draw, pack, point, unpack

MOST_JOINT = 1000
"""Rows times factors up to which a draw of the factors is one system."""
BLOCK = 1_000_000
"""Numbers of the columns' squares that are held at once."""


def is_joint(rows: RankRows, labels: WeightedLabels, config: RankConfig) -> bool:
    """Are all factors drawn at once: under the level rule, of a small table, whose rows count alike.

    Not where the classifier is cut off, which asks for factors with and without the labels.
    """
    small = rows.shape[0] * config.n_factors <= MOST_JOINT
    alike = bool((labels.weight == 1.0).all())
    return config.is_level and small and alike and not (config.cut and config.n_outputs)


def drawn_factors(
    rng: np.random.Generator,
    A: FloatArray,
    codes: NDArray[np.uint8],
    g: tuple[FloatArray, FloatArray],
    eps: float,
    own: System,
) -> Normal:
    """A draw of the factors of all rows given loadings, hinges' weights and what else is known of each row.

    `own`: precision (N, K, K) and linear term (N, K) of the priors and of the labels.
    """
    precision, linear = joint_level_system(A, codes, g, eps)
    every = np.arange(len(linear))
    precision[every, :, every, :] += own[0]
    return point(joint_draw(rng, precision, linear + own[1]))


def joint_level_system(
    A: FloatArray, codes: NDArray[np.uint8], g: tuple[FloatArray, FloatArray], eps: float
) -> System:
    """Precision (N, K, N, K) and linear term (N, K) of all factors, prior left out.

    Given loadings A (D, K), levels (N, D) and the weights g of the lower and the upper hinges (N, D), 0 where
    there is none. Of a hinge with D = s (z_n - m): precision g a a' over D D', linear term (g eps + 1) a D.
    """
    N, D = codes.shape
    K = A.shape[1]
    n_levels = n_levels_of(codes)
    between = np.zeros((N * N, K * (K + 1) // 2))
    own = np.zeros((N, K * (K + 1) // 2))
    linear = np.zeros((N, K))
    step = max(1, BLOCK // (N * max(N, n_levels)))
    for begin in range(0, D, step):
        part = slice(begin, begin + step)
        a = A[part]
        square = pack(a[:, :, None] * a[:, None, :])
        weights = [side[:, part].T.astype(np.float64) for side in g]
        cross, alone, push = _columns(codes[:, part].T, weights, n_levels, eps)
        between += cross.reshape(len(a), -1).T @ square
        own += alone.T @ square
        linear += push.T @ a
    precision = between.reshape(N, N, -1)
    precision = precision + precision.transpose(1, 0, 2)
    precision[np.arange(N), np.arange(N)] += own
    return np.ascontiguousarray(unpack(precision, K).transpose(0, 2, 1, 3)), linear


def _columns(
    level: NDArray[np.uint8], weights: list[FloatArray], n_levels: int, eps: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of columns with levels (d, N): C (d, N, N), c (d, N) and sums of (g eps + 1) D (d, N) over hinges.

    The sum of g D D' is C + C' + diag(c). D = s (e_n - b_q), b_q the shares (N,) of rows in the mean of q.
    """
    one = (level[:, None, :] == np.arange(n_levels, dtype=np.uint8)[:, None]).astype(np.float64)
    b = one / np.maximum(one.sum(axis=2, keepdims=True), 1.0)
    to_level = np.zeros((*level.shape, n_levels))
    push = np.zeros(level.shape)
    pull = np.zeros((len(level), n_levels))
    for g, shift, sign in zip(weights, (-1, 1), (1.0, -1.0), strict=True):
        column, row = np.nonzero((g > 0.0) & (level != NONE))
        there, own = level[column, row].astype(np.intp) + shift, g[column, row]
        to_level[column, row, there] = own
        force = sign * (own * eps + 1.0)
        push[column, row] += force
        pull += np.bincount(column * n_levels + there, force, pull.size).reshape(pull.shape)
    total = to_level.sum(axis=1)
    cross = (0.5 * (b * total[:, :, None]).transpose(0, 2, 1) - to_level) @ b
    return cross, to_level.sum(axis=2), push - (pull[:, None, :] @ b)[:, 0]
