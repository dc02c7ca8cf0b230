"""Whether chains have mixed: what is watched of them, R-hat and effective draws, and the worst in words.

What is watched is what a user reads: the bound, the size of the loadings, decision values and scores of some
rows, and loadings of columns that lie evenly in the table, their factors turned to one reference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.rank_factor.data import FloatArray
from nongauss.rank_factor.params import RankState

N_WATCHED_ROWS, MOST_WATCHED_LOADINGS = 8, 60
"""Rows and loadings that are watched."""
LARGEST_R_HAT, FEWEST_EFFECTIVE = 1.1, 20.0
"""Beyond these chains have not mixed (Gelman et al. 2013, section 11.4)."""


def watched_columns(n_columns: int, n_factors: int) -> NDArray[np.intp]:
    """Numbers of the columns whose loadings are watched: MOST_WATCHED_LOADINGS in all, or of one column."""
    n_watched = max(1, min(n_columns, MOST_WATCHED_LOADINGS // n_factors))
    return np.linspace(0, n_columns - 1, n_watched).astype(np.intp)


def watched_numbers(model: RankState, rotation: FloatArray, bound: float) -> FloatArray:
    """What is watched after a sweep (1, n): bound, size, decisions and scores of rows, some loadings.

    The loadings (columns, K) come last, turned by a rotation (K, K) that makes chains comparable.

    Decision values are those of the first machine in units of its slopes, as predictions use them.
    """
    some = model.A.mean[watched_columns(*model.A.mean.shape)] @ rotation
    rows, beta = model.z.mean[:N_WATCHED_ROWS], model.experts.beta.mean
    told = [rows @ model.A.mean[0]]
    if beta.shape[1]:
        slopes, offset = beta[0, 0, :-1], beta[0, 0, -1]
        told.insert(0, (rows @ slopes + offset) / np.sqrt(1.0 + slopes @ slopes))
    return np.concatenate([[bound, (model.A.mean**2).sum()], *told, some.ravel()])[None]


def watched_names(
    n_watched: int, shape: tuple[int, int], names: tuple[str, ...], is_labelled: bool
) -> list[str]:
    """What the watched numbers are, of loadings (D, K) of columns with these names."""
    columns = watched_columns(*shape)
    n_rows = (n_watched - 2 - len(columns) * shape[1]) // (1 + is_labelled)
    decisions = ["the decision value of a training row"] * (n_rows * is_labelled)
    scores = [f"the score of column {names[0]!r} of a training row"] * n_rows
    loadings = [f"the loading of column {names[i]!r} on factor{k}" for i in columns for k in range(shape[1])]
    return ["the bound", "the square sum of the loadings", *decisions, *scores, *loadings]


class Mixing(NamedTuple):
    """R-hat and effective draws of each watched number: (n,)."""

    r_hat: FloatArray
    effective: FloatArray

    def worst(self, names: list[str], n_sweeps: int) -> str | None:
        """What a user is told where the chains have not mixed; None where they have."""
        remedy = (
            f"raise `max_iter` (now {n_sweeps}), lower `n_factors` or `epsilon`, or, where columns are many "
            'more than rows, take inference="vb", whose intervals come from refits'
        )
        if np.isnan(self.r_hat).all():
            return f"The chains are too short to tell whether they have mixed; {remedy}."
        number = int(np.nanargmax(self.r_hat))
        if self.r_hat[number] <= LARGEST_R_HAT:
            number = int(np.nanargmin(self.effective))
        r_hat, effective = float(self.r_hat[number]), float(self.effective[number])
        if r_hat <= LARGEST_R_HAT and effective >= FEWEST_EFFECTIVE:
            return None
        return (
            f"The chains have not mixed: R-hat of {names[number]} is {r_hat:.2f} (at most {LARGEST_R_HAT}), "
            f"its effective draws are {effective:.1f}. Do not rely on intervals; {remedy}."
        )


def mixing_of(watched: FloatArray) -> Mixing:
    """How chains (C, T, n) mixed."""
    each = watched.transpose(2, 0, 1)
    return Mixing(
        np.array([split_rhat(part) for part in each]), np.array([effective_size(part) for part in each])
    )


def split_rhat(chains: FloatArray) -> float:
    """Potential scale reduction of chains (C, T), each cut in two halves (Gelman et al. 2013, eq. 11.4).

    NaN for fewer than 4 iterations, or without any variance.
    """
    half = chains.shape[1] // 2
    if half < 2:
        return float("nan")
    parts = np.concatenate([chains[:, :half], chains[:, -half:]])
    within = parts.var(axis=1, ddof=1).mean()
    between = half * parts.mean(axis=1).var(ddof=1)
    if within <= 0.0:
        return float("nan")
    return float(np.sqrt(((half - 1) / half * within + between / half) / within))


def effective_size(chains: FloatArray) -> float:
    """Effective number of independent draws in chains (C, T), by Geyer's initial monotone sequence.

    Autocorrelations from all chains together (Gelman et al. 2013, section 11.5). NaN as for `split_rhat`.
    """
    n_chains, n = chains.shape
    if n < 4:
        return float("nan")
    centred = chains - chains.mean(axis=1, keepdims=True)
    size = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    autocovariance = np.fft.irfft(power, size, axis=1)[:, :n] / n
    within = autocovariance[:, 0].mean() * n / (n - 1)
    if within <= 0.0:
        return float("nan")
    between = chains.mean(axis=1).var(ddof=1) if n_chains > 1 else 0.0
    total = (n - 1) / n * within + between
    rho = 1.0 - (within - autocovariance.mean(axis=0) * n / (n - 1)) / total
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    time = max(2.0 * pairs.sum() - 1.0, 1.0 / np.log10(max(n_chains * n, 10)))
    return float(n_chains * n / time)
