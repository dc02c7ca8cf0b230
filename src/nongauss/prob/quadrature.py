"""Points and weights for expectations under a standard normal, made once and kept."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from jaxtyping import Float64
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtri
from scipy.stats import qmc


@lru_cache(maxsize=64)
def gauss_hermite(n_points: int) -> tuple[Float64[np.ndarray, " Q"], Float64[np.ndarray, " Q"]]:
    """Points and weights, summing to 1: exact for polynomials up to degree 2 Q - 1."""
    points, weights = hermegauss(n_points)
    return _frozen(points), _frozen(weights / weights.sum())


@lru_cache(maxsize=64)
def quasi_normal(n_points: int, n_dimensions: int = 1) -> Float64[np.ndarray, "S D"]:
    """Equally weighted points spread like a normal sample, but more evenly.

    Scrambled Sobol points with a fixed seed and their mirror images, turned so that mean and covariance are
    exactly 0 and the identity: cubic polynomials are integrated exactly. S is a power of two, at least 4 D.
    """
    half = int(np.ceil(np.log2(max(n_points, 4 * n_dimensions)))) - 1
    uniform = qmc.Sobol(n_dimensions, scramble=True, rng=np.random.default_rng(0)).random_base2(half)
    points = ndtri(np.clip(uniform, 1e-12, 1.0 - 1e-12))
    points = np.concatenate([points, -points])
    root = np.linalg.cholesky(points.T @ points / len(points))
    return _frozen(np.linalg.solve(root, points.T).T)


@lru_cache(maxsize=16)
def gauss_panels(
    edges: tuple[float, ...], n_points: int
) -> tuple[Float64[np.ndarray, " Q"], Float64[np.ndarray, " Q"]]:
    """Gauss-Legendre points and weights on each interval between `edges`, one after the other."""
    points, weights = leggauss(n_points)
    low, high = np.array(edges[:-1])[:, None], np.array(edges[1:])[:, None]
    half = 0.5 * (high - low)
    return _frozen((low + half * (1.0 + points)).ravel()), _frozen((half * weights).ravel())


def _frozen(array: Float64[np.ndarray, "*S"]) -> Float64[np.ndarray, "*S"]:
    """The array in one piece, which nobody can write to: it is kept for the whole process."""
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array
