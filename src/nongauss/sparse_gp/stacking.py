"""Several models of the same rows, averaged: weights by how well each predicts rows that are left out.

Yao, Vehtari, Simpson and Gelman, *Using stacking to average Bayesian predictive distributions*, Bayesian
Analysis 13 (2018). What a Gaussian process says of a row without its target needs no other fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.stacking import best_weights
from nongauss.sparse_gp.cavity import left_out_moments
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.params import first_sites, learning_rows
from nongauss.sparse_gp.predict import FittedGP


def weights_of(members: Sequence[FittedGP], rows: GPRows) -> FloatArray:
    """The share of each of several members in their average: (C,).

    Rows left out flatter a model whose hyper-parameters have seen them, by about a nat for each of these
    (Akaike 1974).
    """
    widths = [len(member.posterior.Z) * member.model.n_leaves for member in members]
    learned_from = [learning_rows(rows, width).weight.sum() for width in widths]
    flattery = [sum(m.model.sizes) / weight for m, weight in zip(members, learned_from, strict=True)]
    if not members[0].is_exact(rows):
        rows = learning_rows(rows, max(widths))
    log_density = np.stack([left_out(member, rows) for member in members])
    return best_weights(log_density - np.reshape(flattery, (-1, 1)), rows.weight)


def left_out(member: FittedGP, rows: GPRows) -> FloatArray:
    """log p(y_n | all rows but n) of rows that the member was fitted to: (N,).

    Of rows with limits the log probability of what is known, as of `density_of_known`.
    """
    if member.is_exact(rows):
        return _left_out_exactly(member, rows)
    posterior, seen = member.posterior, member.model.likelihood  # with limits, if there are any
    moments = left_out_moments(posterior._replace(likelihood=seen), rows)
    if seen.is_label:
        shares = seen.probabilities(*moments, posterior.psi)
        return np.log(shares[np.arange(len(rows.y)), rows.y.astype(np.intp)])
    law = posterior.likelihood.predictive(*moments, posterior.psi)
    return law.log_prob(rows.y) if rows.y.ndim == 1 else density_of_known(law, rows.y)


def _left_out_exactly(member: FittedGP, rows: GPRows) -> FloatArray:
    """`left_out` of the rows of an exact process (Rasmussen and Williams 2006, eq. 5.12).

    W is the inverse of the targets' covariance, in which a row of weight w has noise s^2 / w.
    """
    precision = member.posterior.W[0, 0].diagonal()
    noise = 1.0 / first_sites(member.model, rows, member.posterior.psi).precision[:, 0]
    residual = member.posterior.alpha[0, 0] / precision
    total = 1.0 / precision + (rows.weight - 1.0) * noise
    out: FloatArray = -0.5 * (np.log(2.0 * math.pi * total) + residual**2 / total)
    return out


def density_of_known(law: PredictiveDistribution, known: FloatArray) -> FloatArray:
    """log p of what is known of rows with limits, or that were selected, under their laws: (N,).

    `known` (N, 2) or (N, 4) as of `beside.known_of`: a density where both ends agree, else log P(low < Y <=
    high), less, of selected rows, that of being selected.
    """
    low, high = known[:, 0], known[:, 1]
    exact = low == high
    inside = np.where(exact, low, np.where(np.isfinite(low), low, high))
    out = np.where(exact, law.log_prob(inside), _log_share(law, low, high))
    return out - _log_share(law, known[:, 2], known[:, 3]) if known.shape[1] == 4 else out


def _log_share(law: PredictiveDistribution, low: FloatArray, high: FloatArray) -> FloatArray:
    """log P(low < Y <= high), of at least 1e-300."""
    out: FloatArray = np.log(np.maximum(law.cdf(high) - law.cdf(low), 1e-300))
    return out
