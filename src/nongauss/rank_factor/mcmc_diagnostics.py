"""Are chains long enough? Split R-hat and effective sample size of several chains of one number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


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
