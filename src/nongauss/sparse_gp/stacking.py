"""Several models of the same rows, averaged: weights by how well each predicts rows that are left out.

Yao, Vehtari, Simpson and Gelman, *Using stacking to average Bayesian predictive distributions*, Bayesian
Analysis 13 (2018). What a Gaussian process says of a row without its target needs no other fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nongauss.predictive.stacking import best_weights
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.objective import latent_moments
from nongauss.sparse_gp.params import GPParams, KernelBlocks, first_sites, learning_rows
from nongauss.sparse_gp.predict import FittedGP

SMALLEST_REST = 1e-9
"""Share of what is known of f_n that is not from the row's own target: rounding leaves less."""


def weights_of(members: Sequence[FittedGP], rows: GPRows) -> FloatArray:
    """The share of each of several members with Gaussian noise in their average: (C,).

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
    """log p(y_n | all rows but n) of rows that the member was fitted to, with Gaussian noise: (N,)."""
    residual, total = (_left_out_exactly if member.is_exact(rows) else _left_out)(member, rows)
    out: FloatArray = -0.5 * (np.log(2.0 * math.pi * total) + residual**2 / total)
    return out


def _left_out_exactly(member: FittedGP, rows: GPRows) -> tuple[FloatArray, FloatArray]:
    """What y_n is above its prediction, and the variance of that (Rasmussen and Williams 2006, eq. 5.12).

    W is the inverse of the targets' covariance, in which a row of weight w has noise s^2 / w.
    """
    precision = member.posterior.W[0, 0].diagonal()
    noise = 1.0 / first_sites(member.model, rows, member.posterior.psi).precision[:, 0]
    return member.posterior.alpha[0, 0] / precision, 1.0 / precision + (rows.weight - 1.0) * noise


def _left_out(member: FittedGP, rows: GPRows) -> tuple[FloatArray, FloatArray]:
    """What y_n is above its prediction, and the variance of that, by dividing the row's site out of q(u).

    That leaves the variance of f_n given u as it is; formulas in NOTATION.md.
    """
    model, posterior = member.model, member.posterior
    sites = first_sites(model, rows, posterior.psi)
    linear, precision = sites.linear[:, 0], sites.precision[:, 0]
    blocks = KernelBlocks(model, GPParams(posterior.thetas, posterior.psi, posterior.Z), rows)
    mean, by_u, given_u = np.empty((3, len(rows.y)))
    for part, (at, *_) in blocks:
        white = blocks.inducing[0].inverse @ at.K
        given_u[part] = at.diagonal - np.einsum("mn,mn->n", white, white)
        mean[part], variance, _ = latent_moments(at, posterior.alpha[0, 0], posterior.W[0, 0])
        by_u[part] = variance - given_u[part]
    rest = np.maximum(1.0 - precision * by_u, SMALLEST_REST)
    total = by_u / rest + given_u + rows.weight / precision
    return linear / precision - (mean - by_u * linear) / rest, total
