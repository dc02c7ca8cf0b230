r"""Moves of the classifier's coefficients by the hinges of labels themselves, given the factors.

Where the classes lie apart nothing holds the size of the coefficients but their heavy-tailed prior, and given
the latent variances of the hinges it hardly changes. So the coefficients of each machine are moved along an
ellipse through their prior (Murray, Adams and MacKay 2010), and their slopes times c = e^t by slice sampling:
given their variances, and together with these (xi c^2, eta / c^2, phi c^2), of which the prior of phi and the
hinges alone change.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nongauss.rank_factor.config import ShrinkagePrior
from nongauss.rank_factor.data import FloatArray
from nongauss.rank_factor.mixing_moves import slice_draws
from nongauss.rank_factor.params import Experts, Shrinkage, WeightedLabels, point
from nongauss.rank_factor.slice_moves import slice_move

N_ROUNDS = 5
"""Rounds of the three moves: they cost next to nothing beside the cells of a sweep."""

LogLikelihood = Callable[[FloatArray], FloatArray]


def moved_machines(
    rng: np.random.Generator,
    experts: Experts,
    z: FloatArray,
    shares: FloatArray,
    labels: WeightedLabels,
    prior: ShrinkagePrior,
) -> Experts:
    """The experts after the moves, given factors z (N, K), shares (N, T) and labels."""
    T, C, K1 = experts.beta.mean.shape
    beta, shrink = experts.beta.mean.reshape(T * C, K1), experts.shrink
    log_likelihood = label_likelihood(z, shares, labels, T * C)
    none = np.ones(len(beta)), np.zeros_like(beta)
    for _ in range(N_ROUNDS):
        root = np.sqrt(np.hstack([shrink.precision.T, np.full((len(beta), 1), prior.offset_precision)]))
        white = slice_move(rng, beta * root, none, lambda v, root=root: log_likelihood(v / root))  # type: ignore[misc]
        beta = white / root
        beta = scaled_slopes(beta, slice_draws(rng, slopes_density(beta, shrink, log_likelihood), len(beta)))
        t = slice_draws(rng, hierarchy_density(beta, shrink, log_likelihood), len(beta))
        beta, c2 = scaled_slopes(beta, t), np.exp(2.0 * t)
        shrink = Shrinkage(shrink.precision / c2, shrink.rate / c2, shrink.scale * c2, shrink.hyper)
    return experts._replace(beta=point(beta.reshape(T, C, K1)), shrink=shrink)


def label_likelihood(
    z: FloatArray, shares: FloatArray, labels: WeightedLabels, n_machines: int
) -> LogLikelihood:
    """-2 [1 - y f]_+ summed over the rows of each machine, of coefficients (M, K + 1): (M,)."""
    full = np.hstack([z, np.ones((len(z), 1))])
    heavy = (labels.weight[:, None] * shares)[:, :, None]
    shape = len(z), shares.shape[1], labels.y.shape[1]

    def log_likelihood(beta: FloatArray) -> FloatArray:
        """Of each machine's own coefficients."""
        u = 1.0 - labels.y[:, None, :] * (full @ beta.T).reshape(shape)
        found: FloatArray = -2.0 * (heavy * np.maximum(u, 0.0)).sum(axis=0).reshape(n_machines)
        return found

    return log_likelihood


def scaled_slopes(beta: FloatArray, t: FloatArray) -> FloatArray:
    """Coefficients (M, K + 1) with their slopes, not their offsets, times e^t (M,)."""
    return np.hstack([beta[:, :-1] * np.exp(t)[:, None], beta[:, -1:]])


def slopes_density(beta: FloatArray, shrink: Shrinkage, log_likelihood: LogLikelihood) -> LogLikelihood:
    """Log density of t in slopes e^t, given their variances: the volume is e^(K t)."""
    square = 0.5 * (shrink.precision.T * beta[:, :-1] ** 2).sum(axis=1)
    K = beta.shape[1] - 1

    def log_density(t: FloatArray) -> FloatArray:
        """Of each machine at its t: (M,)."""
        found: FloatArray = K * t - square * np.exp(2.0 * t) + log_likelihood(scaled_slopes(beta, t))
        return found

    return log_density


def hierarchy_density(beta: FloatArray, shrink: Shrinkage, log_likelihood: LogLikelihood) -> LogLikelihood:
    """Log density of t in slopes e^t, their variances going along: of volume and priors e^t is left."""
    held = shrink.hyper * shrink.scale

    def log_density(t: FloatArray) -> FloatArray:
        """Of each machine at its t: (M,)."""
        found: FloatArray = t - held * np.exp(2.0 * t) + log_likelihood(scaled_slopes(beta, t))
        return found

    return log_density
