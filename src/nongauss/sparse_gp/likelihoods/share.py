"""The likelihood of shares between 0 and 1."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc, digamma, expit, gammaln

from nongauss.core.records import persistable
from nongauss.prob.quadrature import gauss_hermite
from nongauss.prob.tails import log_beta_tails
from nongauss.sparse_gp.likelihoods.base import (
    Expectation,
    FloatArray,
    Likelihood,
    column,
    expected_softplus,
    no_params,
)

_SMALLEST = 1e-12  # of the mean of a share
_INSIDE = (float(np.finfo(np.float64).tiny), 1.0 - 2.0**-53)


@persistable("sparse_gp.likelihoods.Beta", "nongauss.sparse_gp.likelihoods.positive:Beta")
class Beta(Likelihood):
    """y in (0, 1), beta with mean s(f) and precision p: shapes s(f) p and s(-f) p; psi = (log p).

    s is the logistic function. With llp(f) = log(1 + e^f) and
    R(f) = log Gamma(1 + s(f) p) + log Gamma(1 + s(-f) p) - log Gamma(1 + p), which vanishes on either side,
    log p(y) = log p - R(f) - 2 llp(f) + f + (s(f) p - 1) log y + (s(-f) p - 1) log(1 - y):
    y meets f only in s(f), so a few functions of f alone have to be averaged.
    """

    name = "beta"
    support = "unit"
    own_rules = ("quadrature",)
    point_rules = ("monte_carlo",)
    param_names = ("precision",)

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The logit of the mean; twice the precision that mean and variance have, within 2 and 1000."""
        mean = float(np.clip(np.average(y, weights=weight), 1e-9, 1.0 - 1e-9))
        spread = float(np.average((y - mean) ** 2, weights=weight))
        precision = np.clip(2.0 * (mean * (1.0 - mean) / max(spread, 1e-9) - 1.0), 2.0, 1e3)
        return np.array([math.log(mean / (1.0 - mean))]), np.array([math.log(precision)])

    def bounds(self) -> list[tuple[float, float]]:
        """From a tenth to 1e9."""
        return [(math.log(0.1), math.log(1e9))]

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """The terms of log p in the class's docstring, one by one."""
        p, m, v = math.exp(psi[0]), mean[:, 0], variance[:, 0]
        log_y, log_rest = np.log(y), np.log1p(-y)
        odds = p * (log_y - log_rest)
        softplus, share, half_slope = expected_softplus(m, v)
        rest, rest_slope, rest_curve, share_curve, by_p = expected_shares(p, m, v)
        value = psi[0] - rest - 2.0 * softplus + m + odds * share + p * log_rest - log_y - log_rest
        d_mean = 1.0 - rest_slope - 2.0 * share + 2.0 * odds * half_slope
        d_variance = 0.5 * (odds * share_curve - rest_curve) - 2.0 * half_slope
        by_psi = column(1.0 - by_p + odds * share + p * log_rest) if with_params else no_params(y)
        return Expectation(value, column(d_mean), column(d_variance), by_psi)

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Beta log density, by the terms of log p in the class's docstring."""
        p, f = math.exp(psi[0]), f[..., 0]
        share, rest = expit(f), expit(-f)
        log_y, log_rest = np.log(y), np.log1p(-y)
        gammas = gammaln(1.0 + p * share) + gammaln(1.0 + p * rest) - gammaln(1.0 + p)
        fixed = psi[0] - gammas - np.logaddexp(0.0, f) - np.logaddexp(0.0, -f) - log_y - log_rest
        out: FloatArray = fixed + p * (share * log_y + rest * log_rest)
        return out

    @staticmethod
    def shapes(f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """s(f) p and s(-f) p, kept above 0 where f is far away."""
        p = math.exp(psi[0])
        return p * np.maximum(expit(f[..., 0]), _SMALLEST), p * np.maximum(expit(-f[..., 0]), _SMALLEST)

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """The regularised incomplete beta function."""
        out: FloatArray = betainc(*self.shapes(f, psi), y)
        return out

    def log_tails(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logs of the incomplete beta functions."""
        return log_beta_tails(*self.shapes(f, psi), y)

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Beta draws; one that rounds to 0 or 1 is the nearest number inside."""
        out: FloatArray = np.clip(rng.beta(*self.shapes(f, psi)), *_INSIDE)
        return out

    def conditional_moments(self, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """s(f) and s(f) s(-f) / (1 + p)."""
        share = expit(f[..., 0])
        return share, share * expit(-f[..., 0]) / (1.0 + math.exp(psi[0]))

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """About the root of the largest Fisher information, which is p / 4 where p is large."""
        return np.full_like(mean[..., 0], 0.5 * math.exp(0.5 * psi[0]) + 1.0)


_NARROW, _N_NARROW = 0.35, 8
_GRID_STEP = 0.3
_BLOCK = 256  # rows whose points fit into the processor's nearer memory


def _shares(p: float, f: FloatArray) -> FloatArray:
    """R(f) of `Beta`, R', R'', s''(f) and dR / d log p: (5, ...). All vanish far from 0."""
    share, rest = expit(f), expit(-f)
    alpha, beta = 1.0 + p * share, 1.0 + p * rest
    slope, tilt = share * rest, rest - share
    psi_alpha, psi_beta = digamma(alpha), digamma(beta)
    pull = p * (psi_alpha - psi_beta)
    curve = slope * tilt * pull + (p * slope) ** 2 * (trigamma(alpha) + trigamma(beta))
    by_p = p * (share * psi_alpha + rest * psi_beta - digamma(1.0 + p))
    return np.stack(
        [gammaln(alpha) + gammaln(beta) - gammaln(1.0 + p), slope * pull, curve, slope * tilt, by_p]
    )


def expected_shares(p: float, m: FloatArray, v: FloatArray) -> FloatArray:
    """E of the five functions of f in `_shares` under N(m, v), v >= 0: (5, N).

    Where the normal is narrow, by a few Gauss-Hermite points of its own. Elsewhere the trapezoid rule on one
    grid serves all rows, so the gamma functions are evaluated once; it converges geometrically.
    """
    out = np.empty((5, len(m)))
    narrow = np.sqrt(v) < _NARROW
    points, weights = gauss_hermite(_N_NARROW)
    out[:, narrow] = _shares(p, column(m[narrow]) + np.sqrt(column(v[narrow])) * points) @ weights
    reach = math.ceil((25.0 + math.log1p(p)) / _GRID_STEP)
    grid = _GRID_STEP * np.arange(-reach, reach + 1.0)
    values = _shares(p, grid).T
    rows = np.flatnonzero(~narrow)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        sd = np.sqrt(column(v[block]))
        z = (grid - column(m[block])) / sd
        density = np.exp(-0.5 * z * z)
        out[:, block] = (density @ values / (sd * math.sqrt(2.0 * math.pi) / _GRID_STEP)).T
    return out


def trigamma(x: FloatArray) -> FloatArray:
    """Second derivative of log Gamma for x >= 1, relative error below 1e-11, five times as fast as SciPy's.

    The asymptotic series (Abramowitz and Stegun 6.4.12) six to the right, and the recurrence back.
    """
    shifts = sum(1.0 / (x + k) ** 2 for k in range(6))
    inverse = 1.0 / (x + 6.0)
    s = inverse * inverse
    series = 1.0 / 6.0 - s * (1.0 / 30.0 - s * (1.0 / 42.0 - s * (1.0 / 30.0 - s * 5.0 / 66.0)))
    return shifts + inverse * (1.0 + 0.5 * inverse + s * series)
