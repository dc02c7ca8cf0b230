"""What the model of scores says of missing cells of rows, given the others.

Every kept draw of the parameters has its say. Scores known by bounds alone are drawn in turn with the
factors; what is then said of a missing score is exact given them. A row's numbers hang on its cells and the
seed alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from nongauss.rank_factor.data import FloatArray
from nongauss.rank_factor.score_model import (
    ScoreCells,
    ScoreModel,
    draw_scores,
    first_scores,
    precisions,
    score_cells,
)
from nongauss.tables.margins import LabelCells, Margin, OrderedCells, RowNoise, row_hashes

N_SWEEPS, FEW_SWEEPS, MANY_SCORES = 12, 6, 200
"""Rounds over the scores that bounds alone tell of, for each draw of the parameters; fewer where many are."""

ROWS = 2000
"""Rows that are worked on at once."""

N_LABEL_DRAWS = 4
"""Draws of the factors by which labels are judged, for each draw of the parameters."""


class _Given(NamedTuple):
    """Factors of rows given their cells: mean (N, K), a root U (N, K, K) of the covariance, a draw z."""

    mean: FloatArray
    root: FloatArray
    z: FloatArray


def complete(
    model: ScoreModel, cells: FloatArray, missing: NDArray[np.bool_], seed: int, n: int | None = None
) -> list[OrderedCells | LabelCells]:
    """What the `missing` cells (N, J) of each column may be, with n joint draws (None: as many as kept).

    Cells that say nothing without being missing (unknown labels) are NaN and not drawn.
    """
    n = model.n_draws if n is None else n
    hashes = row_hashes(cells, np.isnan(cells))
    rows = [np.flatnonzero(missing[:, j]) for j in range(len(model.margins))]
    parts = []
    asked = np.flatnonzero(missing.any(axis=1))
    for first in range(0, max(1, len(asked)), ROWS):
        own = asked[first : first + ROWS]
        parts.append(_complete(model, cells[own], missing[own], hashes[own], seed, n))
    return [_joined([part[j] for part in parts], rows[j]) for j in range(len(model.margins))]


def _joined(parts: list[OrderedCells | LabelCells], rows: NDArray[np.intp]) -> OrderedCells | LabelCells:
    """What was said of blocks of rows, as one."""
    draw = np.concatenate([part.draw for part in parts], axis=1)
    if isinstance(parts[0], LabelCells):
        return LabelCells(rows, np.concatenate([part.probabilities for part in parts]), draw)  # type: ignore[union-attr]
    mean, sd = (np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("mean", "sd"))
    return OrderedCells(rows, mean, sd, draw)


def _complete(
    model: ScoreModel,
    cells: FloatArray,
    missing: NDArray[np.bool_],
    hashes: NDArray[np.uint64],
    seed: int,
    n: int,
) -> list[OrderedCells | LabelCells]:
    """`complete` of one block of rows."""
    seen = score_cells(model.margins, model.first, cells)
    out: list[list[OrderedCells | LabelCells]] = []
    for number in range(n):
        s = number % model.n_draws
        noise = RowNoise(hashes, seed + 1_000_003 * number)
        A, psi = model.loadings[s].astype(np.float64), model.noise[s].astype(np.float64)
        given = _factors(model, seen, A, psi, noise)
        out.append(
            [_column(model, j, missing[:, j], A, psi, given, noise) for j in range(len(model.margins))]
        )
    return [_stacked([each[j] for each in out]) for j in range(len(model.margins))]


def _stacked(each: list[OrderedCells | LabelCells]) -> OrderedCells | LabelCells:
    """What the draws of the parameters say of one column, as one."""
    draw = np.concatenate([one.draw for one in each])
    if isinstance(each[0], LabelCells):
        mean = np.mean([one.probabilities for one in each if isinstance(one, LabelCells)], axis=0)
        return LabelCells(each[0].rows, mean, draw)
    mean, sd = (np.concatenate([getattr(one, name) for one in each]) for name in ("mean", "sd"))
    return OrderedCells(each[0].rows, mean, sd, draw)


def _factors(model: ScoreModel, seen: ScoreCells, A: FloatArray, psi: FloatArray, noise: RowNoise) -> _Given:
    """The factors of rows given what is known of their scores, by draws of those that have bounds alone."""
    loadings, level = A[:, :-1], A[:, -1]
    patterns, pattern = np.unique(seen.known, axis=0, return_inverse=True)
    covariance = np.linalg.inv(precisions(patterns, loadings, psi))
    pattern = pattern.ravel()
    roots = np.linalg.cholesky(covariance)
    known, loose = seen.known.astype(np.float64), seen.loose
    w = first_scores(model.margins, model.first, seen)
    is_drawn = loose.any(axis=1)
    n_sweeps = FEW_SWEEPS if w.shape[1] > MANY_SCORES else N_SWEEPS
    some = seen.take(np.flatnonzero(is_drawn))
    for _ in range(n_sweeps if is_drawn.any() else 0):
        own = w[is_drawn]
        mean = _means(own, known[is_drawn], covariance, pattern[is_drawn], loadings, level, psi)
        z = mean + _times(roots, pattern[is_drawn], noise.normal(mean.shape[1])[is_drawn])
        draw_scores(
            own,
            z @ loadings.T + level,
            np.sqrt(psi),
            some,
            model.first,
            noise.uniform(own.shape[1])[is_drawn],
        )
        w[is_drawn] = own
    mean = _means(w, known, covariance, pattern, loadings, level, psi)
    z = mean + _times(roots, pattern, noise.normal(mean.shape[1]))
    return _Given(mean, roots[pattern], z)


def _means(
    w: FloatArray,
    known: FloatArray,
    covariance: FloatArray,
    pattern: NDArray[np.intp],
    loadings: FloatArray,
    level: FloatArray,
    psi: FloatArray,
) -> FloatArray:
    """E z = V A' (w - mu) / psi over the known scores: (N, K)."""
    return _times(covariance, pattern, (known * (w - level) / psi) @ loadings)


def _times(matrices: FloatArray, pattern: NDArray[np.intp], vectors: FloatArray) -> FloatArray:
    """The matrix (K, K) of each row's pattern times the row's vector: (N, K)."""
    found: FloatArray = np.einsum("nkl,nl->nk", matrices[pattern], vectors)
    return found


def _column(
    model: ScoreModel,
    j: int,
    missing: NDArray[np.bool_],
    A: FloatArray,
    psi: FloatArray,
    given: _Given,
    noise: RowNoise,
) -> OrderedCells | LabelCells:
    """What one draw of the parameters says of the missing cells of a column."""
    rows, own = np.flatnonzero(missing), slice(model.first[j], model.first[j + 1])
    margin, width = model.margins[j], own.stop - own.start
    K = A.shape[1] - 1
    if width == 0:
        nothing = np.zeros((1, len(rows)))
        if margin.is_label:
            return LabelCells(
                rows, _only(margin, len(rows)), np.tile(np.argmax(margin.shares()), (1, len(rows)))
            )
        return OrderedCells(rows, nothing, nothing + 1.0, nothing)
    if width == 1:
        a, mu = A[own.start, :K], A[own.start, K]
        turned = np.einsum("nkl,k->nl", given.root[rows], a)
        mean = mu + given.mean[rows] @ a
        sd = np.sqrt((turned**2).sum(axis=1) + psi[own.start])
        drawn = mu + given.z[rows] @ a + np.sqrt(psi[own.start]) * noise.normal(1)[rows, 0]
        if margin.is_label:
            up = ndtr((mean - margin.score_edges[1]) / sd)
            return LabelCells(
                rows, np.stack([1.0 - up, up], axis=1), (drawn > margin.score_edges[1]).astype(np.intp)[None]
            )
        return OrderedCells(rows, mean[None], sd[None], drawn[None])
    scores = given.z @ A[own, :K].T + A[own, K]
    drawn = (scores + noise.normal(width))[rows].argmax(axis=1)
    probability = label_probabilities(scores[rows])
    for _ in range(N_LABEL_DRAWS - 1):
        z = given.mean + np.einsum("nkl,nl->nk", given.root, noise.normal(K))
        probability = probability + label_probabilities(z[rows] @ A[own, :K].T + A[own, K])
    return LabelCells(rows, probability / N_LABEL_DRAWS, drawn[None])


def _only(margin: Margin, n_rows: int) -> FloatArray:
    """The shares of a column of which one label was seen: (n, L)."""
    return np.tile(margin.shares(), (n_rows, 1))


def label_probabilities(scores: FloatArray) -> FloatArray:
    """P(score l + e_l is the largest), e_l ~ N(0, 1), the integral over e of prod Phi: (N, L)."""
    node, weight = hermegauss(16)
    weight = weight / weight.sum()
    out = np.empty_like(scores)
    for level in range(scores.shape[1]):
        apart = scores[:, [level]] - np.delete(scores, level, axis=1)
        out[:, level] = np.exp(log_ndtr(apart[:, None] + node[:, None]).sum(axis=2)) @ weight
    total: FloatArray = out / np.maximum(out.sum(axis=1, keepdims=True), 1e-300)
    return total
