"""The law of a function log p(y | f), until the likelihood of a user's own makes it itself."""

from __future__ import annotations

from collections.abc import Callable

from nongauss.predictive.distribution import FloatArray, PredictiveDistribution
from nongauss.predictive.law import GridDistribution


def grid_predictive(
    mean: FloatArray, variance: FloatArray, log_prob: Callable[..., FloatArray], support: str
) -> PredictiveDistribution:
    """p(y) for a function log_prob(y, f) and latent moments (N,) or (K, N)."""
    return GridDistribution(log_prob, support, mean, variance)
