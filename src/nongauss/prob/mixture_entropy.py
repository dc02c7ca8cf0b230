"""Lower bounds of the entropy of an equally weighted mixture of C isotropic normals in D dimensions, in nats.

Means (C, D), log standard deviations (C,). The entropy itself has no closed form.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

FloatArray = NDArray[np.float64]


def pairwise_entropy(mean: FloatArray, log_sd: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Mean entropy of the components and what their overlap leaves of log C, with derivatives (C, D), (C,).

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


def jensen_entropy(mean: FloatArray, log_sd: FloatArray) -> float:
    """Jensen's bound (Bui and Turner 2014, section 3.2): minus the log of the mean overlap of the densities.

    For one component it is too low by D (1 - log 2) / 2. With that constant added it is exact there, but no
    bound: components far apart then have too much.
    """
    size = mean.shape[1]
    square = np.exp(2.0 * log_sd)
    both = square[:, None] + square
    gap = mean[:, None] - mean
    log_density = -0.5 * np.einsum("kjd,kjd->kj", gap, gap) / both - 0.5 * size * np.log(2.0 * np.pi * both)
    return -float((logsumexp(log_density, axis=1) - math.log(len(mean))).mean())
