r"""The generalised inverse Gaussian GIG(p, a, b), density prop. to x^{p-1} exp(-(a x + b / x) / 2): moments.

All come from the ratio K_{p+1} / K_p of Bessel functions, in forms that neither overflow nor cancel.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from scipy.special import gammaln, kve

_SMALL = 1e-150
"""Arguments below this are raised to it: b = 0 has no moment of 1/x for p <= 0."""


def bessel_ratio(p: float, w: Float64[np.ndarray, "*S"]) -> Float64[np.ndarray, "*S"]:
    """K_{p+1}(w) / K_p(w) for w > 0, of any size and for p of either sign.

    K_{-q} = K_q, so that for p < -1/2 the ratio is 1 / (K_{-p}(w) / K_{-p-1}(w)).
    """
    w = np.maximum(w, _SMALL)
    if p < -0.5:  # K is even in its order; the recurrence keeps the larger one above
        return 1.0 / bessel_ratio(-p - 1.0, w)
    ratio: Float64[np.ndarray, "*S"]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ratio = kve(p + 1.0, w) / kve(abs(p), w)
    rest = ~np.isfinite(ratio)
    if rest.any():  # K_{p+1} overflows: its leading term for small w, p >= 0 there
        ratio[rest] = 2.0 * p / w[rest] if p > 0.5 else 1.0 / (w[rest] * kve(0.0, w[rest]))
    return ratio


def moments(
    p: float, a: Float64[np.ndarray, "*S"], b: Float64[np.ndarray, "*S"]
) -> tuple[Float64[np.ndarray, "*S"], Float64[np.ndarray, "*S"]]:
    """E[x] and E[1/x] for positive a and b.

    With w = sqrt(a b): E[x] = sqrt(b/a) K_{p+1}(w) / K_p(w), E[1/x] = sqrt(a/b) K_{1-p}(w) / K_{-p}(w).
    """
    w = np.maximum(np.sqrt(a * b), _SMALL)
    scale = w / a  # sqrt(b / a)
    return scale * bessel_ratio(p, w), bessel_ratio(-p, w) / scale


def log_integral(
    p: float, a: Float64[np.ndarray, "*S"], b: Float64[np.ndarray, "*S"]
) -> Float64[np.ndarray, "*S"]:
    r"""log of the integral of x^{p-1} exp(-(a x + b / x) / 2): log 2 + (p/2) log(b/a) + log K_p(sqrt(ab))."""
    w = np.maximum(np.sqrt(a * b), _SMALL)
    with np.errstate(over="ignore"):
        log_k = np.log(kve(abs(p), w)) - w
    rest = ~np.isfinite(log_k)
    if rest.any():
        # for small w, K_p(w) tends to Gamma(|p|) 2^{|p| - 1} w^{-|p|}
        log_k[rest] = gammaln(abs(p)) + (abs(p) - 1.0) * np.log(2.0) - abs(p) * np.log(w[rest])
    value: Float64[np.ndarray, "*S"] = np.log(2.0) + p * (np.log(w) - np.log(a)) + log_k
    return value
