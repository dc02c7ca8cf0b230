r"""What is maximised, term by term. B rows, D visible units, K hidden units, C classes.

The globally normalised model of a row, with h~ = z h and base measures left out:

    log p~(x, z, h) = eta' x + x' W h~ + beta' h~ + sum_k z_k log odds_k        (4), Z over everything

Contrastive free energy of Welling and Hinton, with q0 clamped to the row and q1 one sweep further:

    CF1 = F0 - F1,   F_i = E_qi[log q_i] - E_qi[log p~]                                  0 <= CF1 <= -log p(x)

Max-margin term of Crammer and Singer, l the margin: C sum_d w_d max_y [l 1(y != y_d) + f_dy - f_d,y_d].
Of numbers it is that of a tube about the score, C sum_d w_d max(0, |y_d - f_d| - epsilon).

The chain graph, equation (5) of the paper: p(z) prod p(x | z), with p(x | z) normalised for each z.

The finite prior of z is pi_k ~ Beta(alpha / K, 1) (2, 3), with q(pi_k) = Beta(gamma_k1, gamma_k2) exact.

The infinite one is the stick-breaking Indian buffet process, truncated: v_k ~ Beta(alpha, 1), pi_k =
v_1 ... v_k, with q(v_k) = Beta(gamma_k1, gamma_k2). Doshi-Velez, Miller, Van Gael and Teh (AISTATS 2009)
bound E log(1 - pi_k) by a multinomial q_k(y), y = 1..k; the accurate way sums the series of the logarithm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import betaln, digamma, expit, logsumexp, softmax

from nongauss.harmonium.exponential_families import (
    Array,
    Layout,
    log_factor,
    log_partition,
    mean_of,
    respond,
    softplus,
)
from nongauss.harmonium.params import HarmoniumParams

CENTRE = 0.5
"""What is subtracted from the mean of a binary hidden unit before classes vote: units start at one half."""

TERMS, POINTS, FARTHEST = 32, 64, 1e7
"""Terms of the series of E log(1 - pi_k) that are summed, Gauss-Legendre nodes for the rest, its end."""

NODES = np.polynomial.legendre.leggauss(POINTS)


def log_marginal(
    params: HarmoniumParams, units: str, log_odds: Float[np.ndarray, " K"], x: Float[np.ndarray, "B D"]
) -> Float[np.ndarray, " B"]:
    """log p~(x), the hidden units summed out, relative to the base measure.

    eta' x + sum_k log(1 + exp(log odds_k + S_k)) of binary units, S_k^2 / 2 for S_k of real ones (4).
    """
    S = x @ params.weights + params.hidden_bias
    out: Array = x @ params.visible_bias + log_factor(units, S, log_odds).sum(axis=1)
    return out


def contrastive_free_energy(
    params: HarmoniumParams,
    units: str,
    layout: Layout,
    log_odds: Float[np.ndarray, " K"],
    x: Float[np.ndarray, "B D"],
    totals: Float[np.ndarray, "B n_counted"],
) -> Float[np.ndarray, " B"]:
    """CF1 of each row, nats: log p~(x1) + H(q1(x)) - log p~(x), x1 the mean of q1(x) given E[h~ | x]."""
    e0 = respond(units, x @ params.weights + params.hidden_bias, log_odds).mean
    a1 = e0 @ params.weights.T + params.visible_bias
    x1 = mean_of(layout, a1, totals)
    entropy = log_partition(layout, a1, totals) - (a1 * x1).sum(axis=1)
    before, after = (log_marginal(params, units, log_odds, each) for each in (x, x1))
    out: Array = after + entropy - before
    return out


def centred(units: str, mean: Float[np.ndarray, "B K"]) -> Float[np.ndarray, "B K"]:
    """Hidden means as the classes see them: E[h~] - 1/2 of binary units."""
    return mean - CENTRE if units == "binary" else mean


def scores(
    params: HarmoniumParams, units: str, mean: Float[np.ndarray, "B K"], X: Any
) -> Float[np.ndarray, "B C"]:
    """f = mu' (E[h~] - 1/2) + b + rho' x: what each class, or a number, gets from the hidden means of rows.

    rho, `params.raw`, are the votes of the visible units X (B, D), dense or CSR, where they have some.
    """
    f: Float[np.ndarray, "B C"] = centred(units, mean) @ params.votes.T + params.intercept
    if params.raw.size:
        f = f + np.asarray(X @ params.raw.T)
    return f


class VoteLoss(NamedTuple):
    """Loss of scores given the target: the Crammer-Singer hinge of classes with a `margin`, or, with an
    `epsilon`, the loss of a number outside a tube of that half width.

    With a `softness` above 0 the loss is smooth.
    """

    margin: float = 1.0
    epsilon: float | None = None
    softness: float = 0.0

    def at(
        self, f: Float[np.ndarray, "B C"], labels: Any
    ) -> tuple[Float[np.ndarray, " B"], Float[np.ndarray, "B C"]]:
        """The loss of each row, and its slope by the scores; labels (B,) are class numbers or numbers."""
        if self.epsilon is not None:
            return tube(f, labels, self.epsilon, self.softness)
        rows = np.arange(len(f))
        if self.softness > 0.0:
            loss, slope = softened(f, labels, self.margin, self.softness)
        else:
            loss, rival = worst_rival(f, labels, self.margin)
            slope = np.zeros_like(f)
            slope[rows, rival] = 1.0
        slope[rows, labels] -= 1.0
        return loss, slope


def tube(
    f: Float[np.ndarray, "B 1"], target: Float[np.ndarray, " B"], epsilon: float, softness: float = 0.0
) -> tuple[Float[np.ndarray, " B"], Float[np.ndarray, "B 1"]]:
    """max(0, |f - y| - epsilon) of each row, and its slope by f.

    Softened, with s the softness: s log(1 + e^((f - y - epsilon)/s)) + s log(1 + e^((y - f - epsilon)/s)),
    above the tube by at most 2 s log 2.
    """
    above = (f[:, 0] - target).astype(f.dtype)
    if softness > 0.0:
        high, low = (above - epsilon) / softness, (-above - epsilon) / softness
        return softness * (softplus(high) + softplus(low)), (expit(high) - expit(low))[:, None]
    loss = np.maximum(np.abs(above) - epsilon, 0.0)
    return loss, (np.sign(above) * (loss > 0.0))[:, None]


def worst_rival(
    f: Float[np.ndarray, "B C"], labels: Int[np.ndarray, " B"], margin: float = 1.0
) -> tuple[Float[np.ndarray, " B"], Int[np.ndarray, " B"]]:
    """The hinge loss of each row, max_y [l 1(y != y_d) + f_dy - f_d,y_d], and the class that attains it.

    That is the row's own class where the loss is 0.
    """
    ahead = _ahead(f, labels, margin)
    rival = ahead.argmax(axis=1)
    return ahead[np.arange(len(f)), rival], rival


def softened(
    f: Float[np.ndarray, "B C"], labels: Int[np.ndarray, " B"], margin: float, softness: float
) -> tuple[Float[np.ndarray, " B"], Float[np.ndarray, "B C"]]:
    """The hinge loss with a soft maximum, s log sum_y exp([l 1(y != y_d) + f_dy - f_d,y_d] / s), and the
    classes' shares in its gradient.

    With softness s it is above the hinge by s log C at most, and smooth where classes tie.
    """
    ahead = _ahead(f, labels, margin) / softness
    return softness * logsumexp(ahead, axis=1), softmax(ahead, axis=1)


def _ahead(
    f: Float[np.ndarray, "B C"], labels: Int[np.ndarray, " B"], margin: float
) -> Float[np.ndarray, "B C"]:
    """l 1(y != y_d) + f_dy - f_d,y_d: what each class is ahead of the row's own, the margin included."""
    rows = np.arange(len(f))
    ahead = f + margin
    ahead[rows, labels] -= margin
    ahead -= f[rows, labels][:, None]
    return ahead


def chain_log_joint(
    params: HarmoniumParams,
    layout: Layout,
    log_odds: Float[np.ndarray, " K"],
    x: Float[np.ndarray, "B D"],
    totals: Float[np.ndarray, "B n_counted"],
    z: Float[np.ndarray, "B K"],
) -> Float[np.ndarray, " B"]:
    """log p(z) + log p(x | z) of the chain graph (5) with binary units, relative to the base measure."""
    a = z @ params.weights.T + params.visible_bias
    prior = (z * log_odds - softplus(log_odds)).sum(axis=1)
    out: Array = prior + (x * a).sum(axis=1) - log_partition(layout, a, totals)
    return out


def beta_bound(
    gamma: Float[np.ndarray, "K 2"], on: Float[np.ndarray, " K"], n_rows: float, alpha: float
) -> float:
    """E log p(z, pi) - E log q(pi) of the finite prior pi_k ~ Beta(alpha / K, 1), q = Beta(gamma), nats.

    No fit computes it: it is the specification that tests compare `beta_log_odds` with.
    """
    a = alpha / len(gamma)
    log_pi, log_rest = (digamma(gamma[:, i]) - digamma(gamma.sum(axis=1)) for i in (0, 1))
    own = ((gamma[:, 0] - 1) * log_pi + (gamma[:, 1] - 1) * log_rest - betaln(*gamma.T)).sum()
    prior = len(gamma) * np.log(a) + (a - 1.0) * log_pi.sum()
    return float(on @ log_pi + (n_rows - on) @ log_rest + prior - own)


def expected_log_pi(gamma: Float[np.ndarray, "K 2"]) -> Float[np.ndarray, " K"]:
    """tau2_k = E log pi_k = sum_{m<=k} [digamma(g_m1) - digamma(g_m1 + g_m2)], (K,)."""
    return np.cumsum(digamma(gamma[:, 0]) - digamma(gamma.sum(axis=1)))


def multinomial_bound(
    gamma: Float[np.ndarray, "K 2"],
) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, "K K"]]:
    """The bound of E log(1 - pi_k), (K,), and the q_k(y) that reaches it, (K, K), lower triangular.

    q_k(y) is proportional to exp(digamma(g_y2) + sum_{m<y} digamma(g_m1) - sum_{m<=y} digamma(g_m1 + g_m2)),
    and the bound is the log of the sum of these.
    """
    by_stick, both = digamma(gamma), digamma(gamma.sum(axis=1))
    before = np.concatenate([[0.0], np.cumsum(by_stick[:-1, 0])])
    score = by_stick[:, 1] + before - np.cumsum(both)
    scores = np.where(np.tri(len(gamma), dtype=bool), score[None, :], -np.inf)
    most = scores.max(axis=1)
    q = np.exp(scores - most[:, None])
    total = q.sum(axis=1)
    return most + np.log(total), q / total[:, None]


def expected_log_rest(gamma: Float[np.ndarray, "K 2"]) -> Float[np.ndarray, " K"]:
    """E log(1 - pi_k) = -sum_m E[pi_k^m] / m, (K,), within 1e-4; E[pi_k^m] is a product of beta moments.

    The first terms are summed, the rest is an integral over log m, where the moments are smooth.
    """
    nodes, weights = NODES
    low, high = np.log(TERMS + 0.5), np.log(FARTHEST * (1.0 + gamma[:, 0].max()))
    half = 0.5 * (high - low)
    m = np.concatenate([np.arange(1.0, TERMS + 1), np.exp(low + half * (nodes + 1.0))])
    share = np.concatenate([1.0 / m[:TERMS], half * weights])
    a, b = gamma[:, :1], gamma[:, 1:]
    log_moment = np.cumsum(betaln(a + m, b) - betaln(a, b), axis=0)
    out: Array = -np.exp(log_moment) @ share
    return out


def stick_bound(
    gamma: Float[np.ndarray, "K 2"], on: Float[np.ndarray, " K"], n_rows: float, alpha: float
) -> float:
    """What `update_sticks` maximises: E log p(z, v) - E log q(v) with the multinomial bound, nats.

    No fit computes it: it is the specification that tests compare `update_sticks` with.
    """
    rest, _ = multinomial_bound(gamma)
    log_v = digamma(gamma[:, 0]) - digamma(gamma.sum(axis=1))
    log_w = digamma(gamma[:, 1]) - digamma(gamma.sum(axis=1))
    prior = len(gamma) * np.log(alpha) + (alpha - 1.0) * log_v.sum()
    own = ((gamma[:, 0] - 1) * log_v + (gamma[:, 1] - 1) * log_w - betaln(*gamma.T)).sum()
    return float(on @ expected_log_pi(gamma) + (n_rows - on) @ rest + prior - own)
