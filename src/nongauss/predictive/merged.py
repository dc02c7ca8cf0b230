"""Mixtures of many Gaussians by fewer: neighbours become one of their common mean and variance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nongauss.predictive.distribution import FloatArray
from nongauss.predictive.mixture import GaussianMixtureDistribution

N_MERGED = 16
"""Gaussians that are left of each row's."""


def merged(law: GaussianMixtureDistribution, n: int = N_MERGED) -> GaussianMixtureDistribution:
    """Mixtures of n Gaussians with the means and variances of a law of one number a row.

    A row's Gaussians are sorted by their means; of n equal shares of the mass each becomes one. A law of so
    few Gaussians is given back as it is.
    """
    if law.n_components <= n:
        return law

    def components(rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        log_weights, means, sds = law._of(rows)
        return _few(np.exp(log_weights), means[:, :, 0], sds[:, :, 0], n)

    return GaussianMixtureDistribution(
        law._mean, law._variance, components, squeeze=law._squeeze, n_components=n
    )


def _few(
    weights: FloatArray, means: FloatArray, sds: FloatArray, n: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log weights (R, n), means and sds (R, n, 1) of groups of neighbours among Gaussians (R, C)."""
    order = np.argsort(means, axis=1)
    weights, means, sds = (np.take_along_axis(part, order, axis=1) for part in (weights, means, sds))
    below = np.cumsum(weights, axis=1)
    share = (below - 0.5 * weights) / below[:, -1:]
    group = np.minimum((n * share).astype(np.intp), n - 1) + n * np.arange(len(means))[:, None]
    size = (len(means), n)

    def summed(values: FloatArray) -> FloatArray:
        total = np.bincount(group.ravel(), values.ravel(), size[0] * n)
        return np.asarray(total, np.float64).reshape(size)

    mass = summed(weights)
    held = np.where(mass > 0.0, mass, 1.0)
    mean = summed(weights * means) / held
    apart = means - np.take_along_axis(mean, group - n * np.arange(len(means))[:, None], axis=1)
    variance = np.where(mass > 0.0, summed(weights * (sds**2 + apart**2)) / held, 1.0)
    with np.errstate(divide="ignore"):
        return np.log(mass), mean[:, :, None], np.sqrt(variance)[:, :, None]
