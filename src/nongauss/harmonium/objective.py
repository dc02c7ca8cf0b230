r"""What is optimised, term by term. B rows, D visible units, K hidden units, C classes.

The globally normalised model of a row, with h~ = z h and base measures left out:

    log p~(x, z, h) = eta' x + x' W h~ + beta' h~ + sum_k z_k log odds_k        (4), Z over everything

Contrastive free energy of Welling and Hinton, with q0 clamped to the row and q1 one sweep further:

    CF1 = F0 - F1,   F_i = E_qi[log q_i] - E_qi[log p~]                                  0 <= CF1 <= -log p(x)

Max-margin term of Crammer and Singer, l the margin: C sum_d w_d max_y [l 1(y != y_d) + f_dy - f_d,y_d].

The chain graph, equation (5) of the paper: p(z) prod p(x | z), with p(x | z) normalised for each z.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax

from nongauss.harmonium.exponential_families import (
    Array,
    Layout,
    log_factor,
    log_partition,
    mean_of,
    respond,
    softplus,
)
from nongauss.harmonium.params import Params

CENTRE = 0.5
"""What is subtracted from the mean of a binary hidden unit before classes vote: units start at one half."""


def log_marginal(params: Params, units: str, prior: Array, x: Array) -> Array:
    """log p~(x), the hidden units summed out, relative to the base measure: (B,)."""
    drive = x @ params.weights + params.hidden_bias
    return x @ params.visible_bias + log_factor(units, drive, prior).sum(axis=1)


def contrastive_free_energy(
    params: Params, units: str, layout: Layout, prior: Array, x: Array, totals: Array
) -> Array:
    """CF1 of each row, (B,): nats."""
    e0 = respond(units, x @ params.weights + params.hidden_bias, prior).mean
    a1 = e0 @ params.weights.T + params.visible_bias
    x1 = mean_of(layout, a1, totals)
    entropy = log_partition(layout, a1, totals) - (a1 * x1).sum(axis=1)
    return log_marginal(params, units, prior, x1) + entropy - log_marginal(params, units, prior, x)


def centred(units: str, mean: Array) -> Array:
    """Hidden means as the classes see them."""
    return mean - CENTRE if units == "binary" else mean


def scores(params: Params, units: str, mean: Array) -> Array:
    """f (B, C): what each class gets from the hidden means (B, K)."""
    return centred(units, mean) @ params.votes.T + params.intercept


def worst_rival(f: Array, labels: Array, margin: float = 1.0) -> tuple[Array, Array]:
    """The hinge loss of each row (B,), and the class that attains it (the row's own where the loss is 0)."""
    ahead = _ahead(f, labels, margin)
    rival = ahead.argmax(axis=1)
    return ahead[np.arange(len(f)), rival], rival


def softened(f: Array, labels: Array, margin: float, softness: float) -> tuple[Array, Array]:
    """The same with a soft maximum: `softness` times log C above it at most, and smooth where classes tie.

    Also the classes' shares in its gradient (B, C).
    """
    ahead = _ahead(f, labels, margin) / softness
    return softness * logsumexp(ahead, axis=1), softmax(ahead, axis=1)


def _ahead(f: Array, labels: Array, margin: float) -> Array:
    """What each class is ahead of the row's own, the margin added for the others: (B, C)."""
    rows = np.arange(len(f))
    ahead = f + margin
    ahead[rows, labels] -= margin
    ahead -= f[rows, labels][:, None]
    return ahead


def chain_log_joint(
    params: Params, layout: Layout, log_odds: Array, x: Array, totals: Array, z: Array
) -> Array:
    """log p(z) + log p(x | z) of the chain graph with binary units, relative to the base measure: (B,)."""
    a = z @ params.weights.T + params.visible_bias
    prior = (z * log_odds - softplus(log_odds)).sum(axis=1)
    return prior + (x * a).sum(axis=1) - log_partition(layout, a, totals)
