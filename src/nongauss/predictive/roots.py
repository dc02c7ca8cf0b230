"""Quantiles of laws by their distribution function alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from nongauss.predictive.distribution import FloatArray, PredictiveDistribution

_FARTHEST = 30.0  # scores beyond, which are infinite where F is 0 or 1, are taken for this
_ENOUGH, _NARROWEST = 1e-10, 4e-16  # of scores, and of the share of the way through the bracket
_MOST_DOUBLINGS = 200


def at_levels(quantile: Callable[[float], FloatArray], levels: FloatArray) -> FloatArray:
    """`quantile` (N, ...) at one level, or at levels (Q,) side by side: (N, Q, ...)."""
    found = [quantile(float(level)) for level in levels.ravel()]
    return np.stack(found, axis=1) if levels.ndim else found[0]


def smooth_quantile(
    law: PredictiveDistribution, level: float, is_known: npt.NDArray[np.bool_] | None = None
) -> FloatArray:
    """Where F of each row and output reaches `level`, in (0, 1): (N,) or (N, P). F must not jump over it.

    The normal score Phi^-1(F(y)), which is nearly linear in y where the law is nearly normal, is solved for
    that of the level by the method of Chandrupatla (1997) within the law's `extent`, or as far beyond as is
    needed. Rows that are known already are not looked for and are NaN.
    """
    from scipy.optimize.elementwise import find_root

    wanted = float(ndtri(level))
    low, high = _bracket(law, wanted)
    out = np.full_like(low, np.nan)
    open_ = np.flatnonzero(np.ones(low.shape, np.bool_) if is_known is None else ~is_known)
    point, width = 0.5 * (low + high), high - low

    def excess(share: FloatArray, index: FloatArray) -> FloatArray:
        place = index.astype(np.intp)
        point.flat[place] = low.flat[place] + share * width.flat[place]
        return _score(law, point, wanted).ravel()[place] - wanted

    ends = np.zeros(len(open_)), np.ones(len(open_))
    tolerances = {"xatol": 0.0, "xrtol": _NARROWEST, "fatol": _ENOUGH, "frtol": 0.0}
    found = find_root(excess, ends, args=(open_.astype(np.float64),), tolerances=tolerances)
    share = np.where(found.success, found.x, 0.5)
    out.flat[open_] = low.flat[open_] + share * width.flat[open_]
    return out


def _score(law: PredictiveDistribution, y: FloatArray, wanted: float) -> FloatArray:
    """Phi^-1(F(y)) by the tail that a `wanted` score is in."""
    with np.errstate(divide="ignore"):
        z = ndtri(law.cdf(y)) if wanted < 0.0 else -ndtri(law.survival(y))
    clipped: FloatArray = np.clip(z, -_FARTHEST, _FARTHEST)
    return clipped


def _bracket(law: PredictiveDistribution, wanted: float) -> tuple[FloatArray, FloatArray]:
    """Values with scores below and not below the wanted one."""
    low, middle, high = law.extent()
    slack = 1e-12 * (np.abs(low) + np.abs(high)) + np.finfo(np.float64).tiny
    low, high = np.minimum(low, middle) - slack, np.maximum(high, middle) + slack
    step = high - low
    for _ in range(_MOST_DOUBLINGS):
        short, long = _score(law, high, wanted) < wanted, _score(law, low, wanted) >= wanted
        if not (short | long).any():
            break
        high, low = np.where(short, high + step, high), np.where(long, low - step, low)
        step = np.where(short | long, 2.0 * step, step)
    return low, high
