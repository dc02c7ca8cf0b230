r"""The generalised inverse Gaussian GIG(p, a, b), density prop. to x^{p-1} exp(-(a x + b / x) / 2): moments.

All come from the ratio K_{p+1} / K_p of Bessel functions, in forms that neither overflow nor cancel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, kve

FloatArray = NDArray[np.float64]

_SMALL = 1e-150
"""Arguments below this are raised to it: b = 0 has no moment of 1/x for p <= 0."""


def bessel_ratio(p: float, w: FloatArray) -> FloatArray:
    """K_{p+1}(w) / K_p(w) for w > 0, of any size and for p of either sign."""
    w = np.maximum(w, _SMALL)
    if p < -0.5:  # K is even in its order; the recurrence keeps the larger one above
        return 1.0 / bessel_ratio(-p - 1.0, w)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ratio = kve(p + 1.0, w) / kve(abs(p), w)
    rest = ~np.isfinite(ratio)
    if rest.any():  # K_{p+1} overflows: its leading term for small w, p >= 0 there
        ratio[rest] = 2.0 * p / w[rest] if p > 0.5 else 1.0 / (w[rest] * kve(0.0, w[rest]))
    return ratio


def moments(p: float, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E[x] and E[1/x], each of the shape of a and b, which are positive."""
    w = np.maximum(np.sqrt(a * b), _SMALL)
    scale = w / a  # sqrt(b / a)
    return scale * bessel_ratio(p, w), bessel_ratio(-p, w) / scale


def log_integral(p: float, a: FloatArray, b: FloatArray) -> FloatArray:
    r"""log of the integral of x^{p-1} exp(-(a x + b / x) / 2): log 2 + (p/2) log(b/a) + log K_p(sqrt(ab))."""
    w = np.maximum(np.sqrt(a * b), _SMALL)
    with np.errstate(over="ignore"):
        log_k = np.log(kve(abs(p), w)) - w
    rest = ~np.isfinite(log_k)
    if rest.any():
        log_k[rest] = gammaln(abs(p)) + (abs(p) - 1.0) * np.log(2.0) - abs(p) * np.log(w[rest])
    return np.log(2.0) + p * (np.log(w) - np.log(a)) + log_k
