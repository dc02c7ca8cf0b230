r"""A factor model of normal scores, by which missing cells are told: as many factors as the table calls for.

    w_j = mu_j + a_j' z + e_j,    z ~ N(0, I),    e_j ~ N(0, psi_j)

A cell of an ordered column is a score w, or an interval of scores where its value is frequent (Hoff 2007); a
column of labels has a score for each, and shows the label whose score is the largest. Loadings are shrunk as
those of the rank factors are, so factors beyond what the table calls for vanish. The sampler draws scores of
intervals, factors, loadings, noise and shrinkage in turn; what it keeps is as unsure as the table leaves it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from nongauss.core.records import persistable
from nongauss.prob.normal_gaps import covariance_of_gaps
from nongauss.rank_factor.config import ShrinkagePrior
from nongauss.rank_factor.data import FloatArray
from nongauss.rank_factor.inference import drawn_shrinkage
from nongauss.rank_factor.params import cholesky_draw, components, first_shrinkage
from nongauss.tables.margins import Margin

MOST_CELLS, MOST_ROWS = 200_000, 4000
"""Cells and rows of the table from which scores are learned, the first in canonical order."""
MOST_FACTORS, ROWS_A_FACTOR = 30, 4
"""Most factors, and rows that each of them needs."""
N_BURN, N_KEPT, EVERY = 40, 20, 2
"""Sweeps before draws are kept, draws that are kept, and sweeps for each."""
MANY_SCORES, FEW_FACTORS, FEW_BURN = 200, 12, 20
"""From so many scores on there are fewer factors and sweeps: a fit should take seconds."""
MOST_OF_EM, ROWS_OF_EM, N_EM = 60, 1000, 15
"""Most scores of which the start counts what gaps hide, rows that it sees, its rounds."""
LEVEL_PRECISION = 0.01
"""Prior precision of the level mu of a column."""


@persistable("rank_factor.ScoreModel")
class ScoreModel(NamedTuple):
    """Margins of the columns that can be filled, and S draws: loadings, the level last, and noise.

    They are (S, P, K + 1) and (S, P).

    `first` (J + 1,): where the scores of each column begin among the P; one has none, one, or one a label.
    """

    margins: tuple[Margin, ...]
    first: Int[np.ndarray, " J"]
    loadings: Float[np.ndarray, "S P K"]
    noise: Float[np.ndarray, "S P"]

    def check_fields(self) -> None:
        """Raises ValueError where scores are not those of the columns."""
        places = places_of(self.margins)
        if not np.array_equal(self.first, places) or self.noise.shape[1] != places[-1]:
            raise ValueError("scores of other columns")

    @property
    def n_draws(self) -> int:
        """S."""
        return len(self.loadings)


class ScoreCells(NamedTuple):
    """What cells (N, J) say of their scores: bounds (N, P), equal for a known score, NaN for none.

    `label` (N, J): of columns with a score a label, the number of the label, -1 where missing or another
    column.
    """

    low: FloatArray
    high: FloatArray
    label: NDArray[np.intp]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which scores are told of at all: (N, P)."""
        return ~np.isnan(self.low)

    @property
    def loose(self) -> NDArray[np.bool_]:
        """Which scores are told of by bounds alone: (N, P)."""
        return self.known & (self.low < self.high)

    def take(self, rows: NDArray[np.intp] | slice) -> ScoreCells:
        """Some of the rows."""
        return ScoreCells(*(part[rows] for part in self))


def places_of(margins: tuple[Margin, ...]) -> NDArray[np.intp]:
    """Where the scores of each column begin, and their number at the end: (J + 1,)."""
    return np.cumsum([0, *(_width(margin) for margin in margins)]).astype(np.intp)


def _width(margin: Margin) -> int:
    """Scores of a column: none of one value, one a label of three or more, else one."""
    n_values = margin.n_values
    return 0 if n_values < 2 else n_values if margin.is_label and n_values > 2 else 1


def score_cells(margins: tuple[Margin, ...], first: NDArray[np.intp], cells: FloatArray) -> ScoreCells:
    """What cells (N, J), NaN where missing, say of their scores; those of labels bound each other."""
    n_rows = len(cells)
    low = np.full((n_rows, first[-1]), np.nan)
    high = low.copy()
    label = np.full(cells.shape, -1, dtype=np.intp)
    for j, margin in enumerate(margins):
        own = slice(first[j], first[j + 1])
        width = own.stop - own.start
        if width == 1:
            low[:, own.start], high[:, own.start] = margin.scores(cells[:, j])
        elif width:
            present = ~np.isnan(cells[:, j])
            label[present, j] = cells[present, j].astype(np.intp)
            low[present, own], high[present, own] = -np.inf, np.inf
    return ScoreCells(low, high, label)


class FreeScale(NamedTuple):
    """Scores of one column of which only the sign about `origin`, or the largest, is seen: `own` of the P."""

    own: slice
    origin: float


def free_scales(margins: tuple[Margin, ...], first: NDArray[np.intp]) -> list[FreeScale]:
    """The columns whose scores have no scale of their own: two values, and labels.

    The border of two values is finite also where one of them has next to no weight.
    """
    return [
        FreeScale(
            slice(first[j], first[j + 1]),
            float(np.clip(margin.score_edges[1], -6.0, 6.0)) if _width(margin) == 1 else 0.0,
        )
        for j, margin in enumerate(margins)
        if _width(margin) and (margin.n_values == 2 or margin.is_label)
    ]


def learn_scores(
    margins: tuple[Margin, ...], cells: FloatArray, weight: FloatArray, prior: ShrinkagePrior, seed: int
) -> ScoreModel:
    """Draws of the model given cells (N, J), NaN where missing, in canonical order, of weights (N,)."""
    first = places_of(margins)
    n_scores = int(first[-1])
    if not n_scores:
        return ScoreModel(margins, first, np.zeros((1, 0, 2), np.float32), np.zeros((1, 0), np.float32))
    n_rows = int(min(len(cells), MOST_ROWS, max(50, MOST_CELLS // max(n_scores, 1))))
    seen, weight = score_cells(margins, first, cells[:n_rows]), weight[:n_rows]
    rng = np.random.default_rng(seed)
    is_wide = n_scores > MANY_SCORES
    most = FEW_FACTORS if is_wide else MOST_FACTORS
    n_burn, every = (FEW_BURN, 1) if is_wide else (N_BURN, EVERY)
    n_factors = max(1, min(n_scores - 1, most, n_rows // ROWS_A_FACTOR))
    sampler = _Sampler(rng, margins, first, seen, weight, n_factors, prior)
    draws = []
    for number in range(n_burn + N_KEPT * every):
        sampler.sweep()
        if number >= n_burn and (number - n_burn) % every == 0:
            draws.append(sampler.identified())
    return ScoreModel(margins, first, *(np.stack(part) for part in zip(*draws, strict=True)))


class _Sampler:
    """Where the sampler stands: scores w (N, P), 0 where unknown, loadings, noise, shrinkage."""

    def __init__(
        self,
        rng: np.random.Generator,
        margins: tuple[Margin, ...],
        first: NDArray[np.intp],
        seen: ScoreCells,
        weight: FloatArray,
        n_factors: int,
        prior: ShrinkagePrior,
    ) -> None:
        self.rng, self.margins, self.first, self.seen, self.weight = rng, margins, first, seen, weight
        self.free, self.prior = free_scales(margins, first), prior
        self.known = seen.known.astype(np.float64)
        self.patterns, self.pattern = np.unique(seen.known, axis=0, return_inverse=True)
        self.pattern = self.pattern.ravel()
        self.w = first_scores(margins, first, seen)
        self.loadings, self.noise = _first_loadings(rng, self.w, self.known, weight, n_factors)
        self.shrink = first_shrinkage((int(first[-1]), n_factors))

    def sweep(self) -> None:
        """Every quantity drawn once given the others."""
        z = self._factors()
        self._loadings(z)
        for column in self.free:
            own = column.own
            total = self.noise[own] + (self.loadings[own, :-1] ** 2).sum(axis=1)
            self._rescale(column, 1.0 / np.sqrt(total.mean()))
        mean = z @ self.loadings[:, :-1].T + self.loadings[:, -1]
        shape = self.w.shape
        if self.seen.loose.any():
            draw_scores(self.w, mean, np.sqrt(self.noise), self.seen, self.first, self.rng.random(shape))

    def _rescale(self, column: FreeScale, factor: float) -> None:
        """Move scores without a scale, loadings and noise, `factor` times as far from their origin."""
        own, origin = column.own, column.origin
        known = self.known[:, own] > 0
        self.w[:, own] = np.where(known, origin + factor * (self.w[:, own] - origin), 0.0)
        self.loadings[own, :-1] *= factor
        self.loadings[own, -1] = origin + factor * (self.loadings[own, -1] - origin)
        self.noise[own] *= factor**2

    def identified(self) -> tuple[FloatArray, FloatArray]:
        """Loadings and noise as they are kept: noise of scores without a scale has variance 1."""
        loadings, noise = self.loadings.copy(), self.noise.copy()
        for own, origin in self.free:
            root = np.sqrt(noise[own])
            loadings[own, :-1] /= root[:, None]
            loadings[own, -1] = origin + (loadings[own, -1] - origin) / root
            noise[own] = 1.0
        return loadings.astype(np.float32), noise.astype(np.float32)

    def _factors(self) -> FloatArray:
        """z given scores: N(V A' (w - mu) / psi, V), V^-1 = I + A' A / psi over the known scores."""
        A, level = self.loadings[:, :-1], self.loadings[:, -1]
        linear = (self.known * (self.w - level) / self.noise) @ A
        precision = precisions(self.patterns, A, self.noise)
        if len(precision) == len(linear):
            return cholesky_draw(self.rng, precision[self.pattern], linear)
        covariance = np.linalg.inv(precision)
        mean = np.einsum("nkl,nl->nk", covariance[self.pattern], linear)
        root = np.linalg.cholesky(covariance)[self.pattern]
        z: FloatArray = mean + np.einsum("nkl,nl->nk", root, self.rng.standard_normal(mean.shape))
        return z

    def _loadings(self, z: FloatArray) -> None:
        """Loadings and levels by regression on the factors, noise from what is left, then the shrinkage."""
        n_rows, K = z.shape
        full = np.hstack([z, np.ones((n_rows, 1))])
        weighted = self.known * self.weight[:, None]
        products = (full[:, :, None] * full[:, None, :]).reshape(n_rows, -1)
        square = (weighted.T @ products).reshape(-1, K + 1, K + 1)
        linear = (weighted * self.w).T @ full
        precision = np.hstack([self.shrink.precision, np.full((len(square), 1), LEVEL_PRECISION)])
        system = square / self.noise[:, None, None]
        at = np.arange(K + 1)
        system[:, at, at] *= 1.0 + 1e-12  # a row of nearly all weight leaves it of rank one but for rounding
        system[:, at, at] += np.clip(precision, 1e-8, 1e12)
        self.loadings = cholesky_draw(self.rng, system, linear / self.noise[:, None])
        left = np.where(self.known > 0, self.w - full @ self.loadings.T, 0.0)
        shape = self.prior.noise_shape + 0.5 * weighted.sum(axis=0)
        rate = self.prior.noise_rate + 0.5 * np.einsum("np,np->p", weighted, left**2)
        for column in self.free:  # one noise for all labels of a column
            shape[column.own], rate[column.own] = shape[column.own].sum(), rate[column.own].sum()
        self.noise = rate / np.maximum(self.rng.gamma(shape), 1e-300)
        for column in self.free:
            self.noise[column.own] = self.noise[column.own.start]
        self.shrink = drawn_shrinkage(self.rng, self.shrink, self.loadings[:, :-1], self.prior)


def precisions(patterns: NDArray[np.bool_], A: FloatArray, noise: FloatArray) -> FloatArray:
    """Precisions I + A' A / psi (G, K, K) of factors, over the scores that each pattern (G, P) knows."""
    K = A.shape[1]
    square = (A[:, :, None] * A[:, None, :] / noise[:, None, None]).reshape(len(A), K * K)
    found: FloatArray = (patterns.astype(np.float64) @ square).reshape(-1, K, K) + np.eye(K)
    return found


def first_scores(margins: tuple[Margin, ...], first: NDArray[np.intp], seen: ScoreCells) -> FloatArray:
    """Scores (N, P) in the middle of their bounds; of labels 1 and 0, standardised; 0 where unknown."""
    low, high = ndtr(np.nan_to_num(seen.low, nan=0.0)), ndtr(np.nan_to_num(seen.high, nan=0.0))
    w = ndtri(np.clip(0.5 * (low + high), 1e-9, 1 - 1e-9))
    for j in range(len(margins)):
        for level in range(first[j + 1] - first[j] if first[j + 1] - first[j] > 1 else 0):
            own = np.where(seen.label[:, j] == level, 1.0, 0.0)
            share = margins[j].shares()[level]
            w[:, first[j] + level] = (own - share) / np.sqrt(max(share * (1.0 - share), 1e-3))
    found: FloatArray = np.where(seen.known, w, 0.0)
    return found


def _first_loadings(
    rng: np.random.Generator, w: FloatArray, known: FloatArray, weight: FloatArray, n_factors: int
) -> tuple[FloatArray, FloatArray]:
    """Loadings with levels (P, K + 1) and noise (P,) with which the sampler begins.

    Of few scores from their covariance C by EM, which counts what gaps hide: with noise psi = 1 / diag(C^-1),
    what of a score the others do not tell, the loadings are psi^1/2 U (L - 1)^1/2, where U L U' is
    psi^-1/2 C psi^-1/2 (Lawley and Maxwell 1971). Of many from the principal components, gaps at the mean.
    """
    mass = np.maximum(weight @ known, 1e-12)
    level = weight @ (known * w) / mass
    if w.shape[1] <= MOST_OF_EM:
        first = slice(ROWS_OF_EM)
        level, C = covariance_of_gaps(w[first], known[first] > 0, weight[first], level, N_EM)
        noise = 1.0 / np.diag(np.linalg.inv(C))
        root = np.sqrt(noise)
        value, axes = np.linalg.eigh(C / np.outer(root, root))
        most = np.argsort(value)[::-1][:n_factors]
        A = root[:, None] * axes[:, most] * np.sqrt(np.maximum(value[most] - 1.0, 1e-6))
        return np.hstack([A, level[:, None]]), noise
    centred = known * (w - level)
    variance = np.maximum(weight @ centred**2 / mass, 1e-3)
    A = components(rng, centred, weight, n_factors)[1]
    noise = np.clip(variance - (A**2).sum(axis=1), 0.1 * variance, None)
    return np.hstack([A, level[:, None]]), noise


def draw_scores(
    w: FloatArray,
    mean: FloatArray,
    sd: FloatArray,
    seen: ScoreCells,
    first: NDArray[np.intp],
    uniform: FloatArray,
) -> None:
    """Draw the scores w (N, P) that only bounds tell of, in place, from N(mean, sd^2) within their bounds."""
    loose = np.ascontiguousarray(seen.loose.T)
    for p in np.flatnonzero(loose.any(axis=1)):
        j = int(np.searchsorted(first, p, side="right")) - 1
        rows = np.flatnonzero(loose[p])
        low, high = seen.low[rows, p], seen.high[rows, p]
        if first[j + 1] - first[j] > 1:
            low, high = _label_bounds(
                w[rows, first[j] : first[j + 1]], seen.label[rows, j], int(p - first[j])
            )
        spread = sd[p] if sd.ndim == 1 else sd[rows, p]
        w[rows, p] = _truncated(mean[rows, p], spread, low, high, uniform[rows, p])


def _label_bounds(w: FloatArray, label: NDArray[np.intp], level: int) -> tuple[FloatArray, FloatArray]:
    """Bounds of the score of one label: the shown one's is above all others (n, L), each other's below it."""
    others = np.delete(w, level, axis=1).max(axis=1)
    shown = w[np.arange(len(w)), label]
    is_shown = label == level
    return np.where(is_shown, others, -np.inf), np.where(is_shown, np.inf, shown)


def _truncated(
    mean: FloatArray, sd: FloatArray, low: FloatArray, high: FloatArray, uniform: FloatArray
) -> FloatArray:
    """Draws of N(mean, sd^2) between low and high by the quantile; mirrored in the upper half."""
    a, b = (low - mean) / sd, (high - mean) / sd
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    below, up_to = ndtr(a), ndtr(b)
    x = ndtri(np.clip(below + uniform * (up_to - below), 1e-300, 1.0 - 1e-16))
    x = np.clip(x, np.maximum(a, -1e6), np.minimum(b, 1e6))
    found: FloatArray = mean + sd * np.where(flip, -x, x)
    return found
