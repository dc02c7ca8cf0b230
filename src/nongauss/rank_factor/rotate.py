"""Factors in one order and with one sign: the model is the same for every permutation and reflection."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from nongauss.rank_factor.data import FloatArray
from nongauss.rank_factor.predict import PosteriorDraw


def canonical_order(A: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Order (K,) by falling size of the loadings (D, K), and signs that make the largest of each positive."""
    order = np.argsort(-(A**2).sum(axis=0), kind="stable")
    largest = A[np.abs(A).argmax(axis=0), np.arange(A.shape[1])]
    return order, np.where(largest < 0, -1.0, 1.0)[order]


def order_like(A: FloatArray, reference: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """The order and signs of loadings (D, K) that bring them nearest to a reference, by one assignment."""
    size = np.sqrt((A**2).sum(axis=0)[:, None] * (reference**2).sum(axis=0)) + 1e-300
    cosine = (A.T @ reference) / size
    own, like = linear_sum_assignment(-np.abs(cosine))
    order = own[np.argsort(like)]
    return order, np.where(cosine[order, np.arange(len(order))] < 0, -1.0, 1.0)


def turned(draw: PosteriorDraw, order: NDArray[np.intp], sign: FloatArray) -> PosteriorDraw:
    """A draw with its factors in this order and with these signs."""
    both = sign[:, None] * sign

    def covariance(C: FloatArray | None, rank: NDArray[np.intp], square: FloatArray) -> FloatArray | None:
        """A covariance with its last two axes in that order, times the products of signs."""
        return None if C is None else C[..., rank[:, None], rank] * square

    last = np.append(order, len(order))
    signs = np.append(sign, 1.0)
    gate = draw.gate
    return draw._replace(
        A=draw.A[:, order] * sign.astype(draw.A.dtype),
        covariance=covariance(draw.covariance, order, both),
        means=None if draw.means is None else draw.means[..., order] * sign,
        beta=draw.beta[..., last] * signs,
        beta_covariance=covariance(draw.beta_covariance, last, signs[:, None] * signs),
        gate=None if gate is None else gate._replace(mean=gate.mean[:, order] * sign),
    )


def aligned(draws: tuple[PosteriorDraw, ...]) -> tuple[PosteriorDraw, ...]:
    """All draws in the order of the first, which is put in canonical order."""
    first = turned(draws[0], *canonical_order(draws[0].A))
    return (first, *(turned(draw, *order_like(draw.A, first.A)) for draw in draws[1:]))
