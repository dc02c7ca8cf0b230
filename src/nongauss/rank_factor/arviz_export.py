"""Draws in the format of the arviz package, with named dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nongauss.estimator.arviz_draws import N_SAMPLED
from nongauss.estimator.arviz_draws import inference_data as as_arviz
from nongauss.rank_factor.data import FloatArray
from nongauss.rank_factor.predict import PosteriorDraw


def inference_data(draws: Sequence[PosteriorDraw], chain: np.ndarray, coordinates: Mapping[str, Any]) -> Any:
    """`arviz.InferenceData` of loadings and coefficients: chain, draw, then column and factor, or more.

    `coordinates`: labels by axis. Raises InputError where arviz is not installed.
    """
    variables, dims = by_chain(draws, chain)
    return as_arviz(variables, coordinates, dims)


def sampled(rng: np.random.Generator, draw: PosteriorDraw) -> tuple[PosteriorDraw, ...]:
    """N_SAMPLED points of a variational summary: loadings and coefficients from their normals."""
    A, beta = _normals(rng, draw.A, draw.covariance), _normals(rng, draw.beta, draw.beta_covariance)
    return tuple(
        draw._replace(A=a, covariance=None, beta=b, beta_covariance=None)
        for a, b in zip(A, beta, strict=True)
    )


def _normals(rng: np.random.Generator, mean: FloatArray, covariance: FloatArray | None) -> FloatArray:
    """N_SAMPLED draws of independent normals: (N_SAMPLED, .., K)."""
    assert covariance is not None
    root = np.linalg.cholesky(covariance)
    return mean + (root @ rng.standard_normal((N_SAMPLED, *mean.shape, 1)))[..., 0]


def by_chain(
    draws: Sequence[PosteriorDraw], chain: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """Arrays (chains, draws, ...), as many of each chain as the shortest has; names of the other axes."""
    numbers = np.unique(chain)
    length = min(int((chain == number).sum()) for number in numbers)
    index = [np.flatnonzero(chain == number)[:length] for number in numbers]

    def stacked(of: Any) -> np.ndarray:
        """One array of each draw, by chain and draw."""
        return np.array([[of(draws[i]) for i in part] for part in index])

    variables = {"loadings": stacked(lambda draw: draw.A)}
    dims = {"loadings": ["column", "factor"]}
    if draws[0].beta.size:
        variables["coefficients"] = stacked(lambda draw: draw.beta[..., :-1])
        variables["offsets"] = stacked(lambda draw: draw.beta[..., -1])
        dims |= {"coefficients": ["expert", "output", "factor"], "offsets": ["expert", "output"]}
    return variables, dims
