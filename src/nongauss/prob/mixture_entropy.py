"""Lower bounds of the entropy of an equally weighted mixture of C isotropic normals in D dimensions, in nats.

Means (C, D), log standard deviations (C,). The entropy itself has no closed form.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64
from scipy.special import logsumexp, softmax


def pairwise_entropy(
    mean: Float64[np.ndarray, "C D"], log_sd: Float64[np.ndarray, " C"]
) -> tuple[float, Float64[np.ndarray, "C D"], Float64[np.ndarray, " C"]]:
    """Mean entropy of the components and what their overlap leaves of log C, with its derivatives.

    H >= D (1 + log 2 pi) / 2 + D avg_k log sd_k - avg_k log (1 / C) sum_j exp(-d_kj), d the distance
    d_kj = |m_k - m_j|^2 / (4 (s_k^2 + s_j^2)) + (D / 2) log((s_k^2 + s_j^2) / (2 s_k s_j)).


    Overlap is measured by the Bhattacharyya distance of each pair. Exact for one component, for components
    that coincide and for components far apart (Kolchinsky and Tracey, Entropy 19 (2017), eq. 10).
    """
    n_components, size = mean.shape
    square = np.exp(2.0 * log_sd)
    both = square[:, None] + square
    gap = mean[:, None] - mean
    apart = np.einsum("kjd,kjd->kj", gap, gap)
    distance = (
        apart / (4.0 * both) + 0.5 * size * np.log(both / 2.0) - 0.5 * size * (log_sd[:, None] + log_sd)
    )
    own = 0.5 * size * (1.0 + math.log(2.0 * math.pi)) + size * log_sd.mean()
    value = own - float((logsumexp(-distance, axis=1) - math.log(n_components)).mean())
    share = softmax(-distance, axis=1) / n_components
    pull = share + share.T
    by_mean = np.einsum("kj,kjd->kd", pull / (2.0 * both), gap)
    relative = square[:, None] / both
    by_sd = pull * (size * (relative - 0.5) - apart * relative / (2.0 * both))
    return float(value), by_mean, size / n_components + by_sd.sum(axis=1)


def jensen_entropy(mean: Float64[np.ndarray, "C D"], log_sd: Float64[np.ndarray, " C"]) -> float:
    """Jensen's bound (Bui and Turner 2014, section 3.2): minus the log of the mean overlap of the densities.

    H >= -avg_k log (1 / C) sum_j N(m_k; m_j, s_k^2 + s_j^2).

    For one component it is too low by D (1 - log 2) / 2. With that constant added it is exact there, but no
    bound: components far apart then have too much. No fit computes it: it is the specification that tests and
    a benchmark compare `pairwise_entropy` with.
    """
    size = mean.shape[1]
    square = np.exp(2.0 * log_sd)
    both = square[:, None] + square
    gap = mean[:, None] - mean
    log_density = -0.5 * np.einsum("kjd,kjd->kj", gap, gap) / both - 0.5 * size * np.log(2.0 * np.pi * both)
    return -float((logsumexp(log_density, axis=1) - math.log(len(mean))).mean())
