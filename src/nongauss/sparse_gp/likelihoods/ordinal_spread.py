"""Ordered classes whose spread depends on the inputs: some rows are sure of their level, others of any.

P(y <= k) = s((phi_k - f_1) t), t = e^{-f_2}: with t = 1 the cumulative logistic law. As there

    log p(y) = log(1 - e^{-t (phi_y - phi_{y-1})}) - llp(t (f_1 - phi_y)) - llp(t (phi_{y-1} - f_1)),

without the terms of cuts that are not there. Over f_1 its expectation is that of llp(x) = log(1 + e^x) under
a normal, known to 1e-9; over f_2 by points. With S(a, s) = E llp(x), x ~ N(a, s), a = t (m_1 - phi) and
s = t^2 v_1: dS/df_2 = -(a S_a + 2 s S_s), and dE/dv_2 = E[dE/df_2 z] / (2 sd) (Stein's lemma).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nongauss.core.records import persistable
from nongauss.predictive.law import normal_points
from nongauss.prob.logistic import expected_sigmoid, log1pexp
from nongauss.sparse_gp.likelihoods.base import Expectation, FloatArray, IntArray
from nongauss.sparse_gp.likelihoods.label import Ordinal, from_cumulative, sides
from nongauss.sparse_gp.likelihoods.points import points_by_width

_WIDTH = 0.6  # of the expected log p as a function of f_2
_FARTHEST = 100.0  # log spreads beyond count as this
_SMALLEST_SD = 1e-3
_N_POINTS = 65


@persistable("sparse_gp.likelihoods.VaryingOrdinal")
@dataclass(frozen=True, kw_only=True)
class VaryingOrdinal(Ordinal):
    """y in 0..C-1 in order, with a log spread f_2 that depends on the inputs; psi as of `Ordinal`."""

    name = "ordinal_varying"
    own_rules = ("quadrature",)
    point_rules = ()
    own_kernels = True
    several_modes = False

    @property
    def n_latent(self) -> int:
        """Place and log spread."""
        return 2

    @property
    def latent_names(self) -> tuple[str, ...]:
        """The second is of the spread."""
        return "", "spread "

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As with a constant spread of 1."""
        offset, psi = super().start(y, weight)
        return np.append(offset, 0.0), psi

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """By the formulas of the module's docstring."""
        cuts, number = self.cuts(psi), y.astype(np.intp)
        shapes = ((), (2,), (2,), (len(cuts),))
        out = Expectation(*(np.zeros((len(y), *shape)) for shape in shapes))
        sd = np.maximum(np.sqrt(variance[:, 1]), _SMALLEST_SD)
        for rows, z, weights in points_by_width(sd / _WIDTH, 1):
            f = np.clip(mean[rows, 1, None] + sd[rows, None] * z[:, 0], -_FARTHEST, _FARTHEST)
            at = _given_spread(number[rows], mean[rows, 0], variance[rows, 0], np.exp(-f), cuts)
            value, by_spread, by_mean, by_variance, by_cuts = at
            out.value[rows] = value @ weights
            out.d_mean[rows] = np.stack([by_mean @ weights, by_spread @ weights], axis=1)
            middle = by_spread - (by_spread @ weights)[:, None]
            curve = middle @ (weights * z[:, 0]) / (2.0 * sd[rows])
            out.d_variance[rows] = np.stack([by_variance @ weights, curve], axis=1)
            out.d_params[rows] = by_cuts @ weights
        if not with_params:
            return out._replace(d_params=np.zeros((len(y), 0)))
        later = np.cumsum(out.d_params[:, ::-1], axis=1)[:, ::-1]  # a gap moves every cut after it
        return out._replace(d_params=later * np.exp(np.r_[0.0, psi[1:]]))

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Log probability of the class."""
        cuts, number = self.cuts(psi), y.astype(np.intp)
        t = np.exp(-np.clip(f[..., 1], -_FARTHEST, _FARTHEST))
        low, high = np.r_[-np.inf, cuts][number], np.r_[cuts, np.inf][number]
        share = np.log(-np.expm1(-t * (high - low)))
        out: FloatArray = share - log1pexp(t * (f[..., 0] - high)) - log1pexp(t * (low - f[..., 0]))
        return out

    def probabilities(self, mean: FloatArray, variance: FloatArray, psi: FloatArray) -> FloatArray:
        """As with a constant spread, averaged over f_2: (N, C)."""
        z, log_weights = normal_points(_N_POINTS)
        at, v = self.cuts(psi) - mean[..., :1], variance[..., :1]
        below, above = np.zeros_like(at), np.zeros_like(at)
        for point, weight in zip(z, np.exp(log_weights), strict=True):
            log_spread = mean[..., 1:] + np.sqrt(variance[..., 1:]) * point
            t = np.exp(-np.clip(log_spread, -_FARTHEST, _FARTHEST))
            spread = np.broadcast_to(t * t * v, at.shape)
            below += weight * expected_sigmoid(t * at, spread)
            above += weight * expected_sigmoid(-t * at, spread)
        return from_cumulative(below, above)


def _given_spread(
    number: IntArray, m: FloatArray, v: FloatArray, t: FloatArray, cuts: FloatArray
) -> tuple[FloatArray, ...]:
    """E log p over f_1 at each t (n, Q), and its derivatives by f_2, m, v (n, Q) and cuts (n, K, Q)."""
    value, by_spread, by_mean, by_variance = np.zeros((4, *t.shape))
    by_cuts = np.zeros((len(t), len(cuts), t.shape[1]))
    for sign, rows, cut in sides(number, len(cuts)):
        own = t[rows]
        a, s = sign * own * (m[rows] - cuts[cut])[:, None], own**2 * v[rows, None]
        S, S_a, S_s = Ordinal().softplus(a, s)
        value[rows] -= S
        by_spread[rows] += a * S_a + 2.0 * s * S_s
        by_mean[rows] -= sign * own * S_a
        by_variance[rows] -= own**2 * S_s
        by_cuts[rows, cut] += sign * own * S_a
    inner = np.flatnonzero((number > 0) & (number < len(cuts)))
    above = number[inner]
    gap = t[inner] * (cuts[above] - cuts[above - 1])[:, None]
    with np.errstate(over="ignore"):
        pull = 1.0 / np.expm1(gap)
    value[inner] += np.log(-np.expm1(-gap))
    by_spread[inner] -= gap * pull
    by_cuts[inner, above] += t[inner] * pull
    by_cuts[inner, above - 1] -= t[inner] * pull
    return value, by_spread, by_mean, by_variance, by_cuts
