"""The gradient of the objective in closed form, on the host, for one hidden layer and one output.

Everything that y depends on is in the drives a = (W0 x + b0) / s0 of the units, in what one sd of a unit
moves the output, q = W1 s0, in the constant b1 + V x and in the noise: with m, v and m3 the moments of
N(a, 1) cut at 0 (`prob.normal_table`),

    E[y|x] = b1 + V x + sum_k q_k m_k,        Var[y|x] = s1^2 + sum_k q_k^2 v_k,       dm/da = v, dv/da = m3.

`moments` is `objective.log_gaussian` (with heads: of their mixture), `exact` is
`saddlepoint.log_density_of_one`; `tests/tggm/test_closed_form.py` compares both with JAX's derivatives.
Arrays have the axes E (members), B (rows), M (units), H (heads, or the one output), D (inputs, or D + 1 with
a column of ones at the end).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from nongauss.prob.normal import HALF_LOG_2PI
from nongauss.prob.normal_table import cut_moments, located, log_mills_difference
from nongauss.tggm.config import NetworkConfig
from nongauss.tggm.saddlepoint import LEAST_BEND, N_STEPS

Numbers = np.ndarray[Any, Any]

HostParams = Any
"""`NetworkParams` whose arrays are NumPy's, where the record says `jax.Array`."""


class Drives(NamedTuple):
    """The parameters as the density sees them.

    `rows` (E, M, D + 1) makes a from a row and a one; `q` (E, H, M); `gate` (E, H, M): the same of the
    logits, or None; `noise`: s1^2 (E, H); `sd`: s0 (E, M).
    """

    rows: Numbers
    q: Numbers
    gate: Numbers | None
    noise: Numbers
    sd: Numbers


class Slopes(NamedTuple):
    """Derivatives of the summed log density: by a (E, B, M), by `q` and `gate` (E, H, M), by the constant
    (E, B, H), the logits (E, B, H) or None, and the noise (E, H)."""

    a: Numbers
    q: Numbers
    constant: Numbers
    noise: Numbers
    gate: Numbers | None = None
    logits: Numbers | None = None


def drives(params: HostParams) -> Drives:
    """The parameters of all members as the density sees them."""
    sd = np.exp(params.log_sd0)
    rows = np.concatenate([params.W0, params.b0[..., None]], axis=2) / sd[..., None]
    gate = params.gate[0].W * sd[:, None, :] if params.gate else None
    return Drives(rows, params.W1 * sd[:, None, :], gate, np.exp(2.0 * params.log_sd1), sd)


def value_and_gradient(
    params: HostParams,
    config: NetworkConfig,
    X: Float[np.ndarray, "B D"] | Float[np.ndarray, "E B D"],
    y: Float[np.ndarray, " B"] | Float[np.ndarray, "E B"],
    weight: Float[np.ndarray, "E B"] | None,
) -> tuple[Float[np.ndarray, "E B"], HostParams]:
    """Log density of each row under each member, and the gradient of its sum times `weight` (None: none).

    X has a last column of ones; all in float32 or all in float64. Rows may be each member's own.
    """
    at = drives(params)
    a = np.matmul(X, at.rows.swapaxes(1, 2))
    constant = np.broadcast_to(params.b1[:, None, :], (*a.shape[:2], params.b1.shape[1]))
    if params.skip:
        constant = constant + np.matmul(X[..., :-1], params.skip[0].swapaxes(1, 2))
    if config.posterior == "exact":
        found, slopes = _exact(at, a, constant[..., 0], y, weight)
    else:
        bias = params.gate[0].b if params.gate else None
        found, slopes = _moments(at, a, constant, bias, y, weight)
    if slopes is None:
        return found, None
    return found, _of_parameters(params, at, slopes, X)


def _of_parameters(params: HostParams, at: Drives, slopes: Slopes, X: Numbers) -> HostParams:
    """The gradient by the parameters: s0 divides a = rows (x, 1), and is a factor of q and `gate`."""
    rows = np.matmul(slopes.a.swapaxes(1, 2), X)
    by_log_sd = (slopes.q * at.q).sum(axis=1) - (rows * at.rows).sum(axis=2)
    rows /= at.sd[..., None]
    gate: HostParams = ()
    skip: HostParams = ()
    sd = at.sd[:, None, :]
    if slopes.gate is not None and slopes.logits is not None:
        by_log_sd += (slopes.gate * at.gate).sum(axis=1)
        gate = (params.gate[0]._replace(W=slopes.gate * sd, b=slopes.logits.sum(axis=1)),)
    if params.skip:
        skip = (np.matmul(slopes.constant.swapaxes(1, 2), X[..., :-1]),)
    return params._replace(
        W0=rows[..., :-1],
        b0=rows[..., -1],
        W1=slopes.q * sd,
        b1=slopes.constant.sum(axis=1),
        log_sd0=by_log_sd,
        log_sd1=2.0 * at.noise * slopes.noise,
        gate=gate,
        skip=skip,
    )


def _moments(
    at: Drives, a: Numbers, constant: Numbers, bias: Numbers | None, y: Numbers, weight: Numbers | None
) -> tuple[Numbers, Slopes | None]:
    """log N(y; m, v) of each row, or log sum_j share_j N(y; m_j, v_j) with heads j; and the slopes."""
    m, v, third = cut_moments(located(a))
    squares = at.q * at.q
    variance = np.matmul(v, squares.swapaxes(1, 2)) + at.noise[:, None, :]
    off = y[..., None] - np.matmul(m, at.q.swapaxes(1, 2))
    off -= constant
    standard = off / variance
    terms = -0.5 * (np.log(variance) + off * standard) - HALF_LOG_2PI
    if at.gate is None or bias is None:
        found = terms[..., 0]
    else:
        log_share = np.matmul(m, at.gate.swapaxes(1, 2)) + bias[:, None, :]
        log_share -= _log_sum(log_share)
        terms += log_share
        found = _log_sum(terms)[..., 0]
    if weight is None:
        return found, None
    count = weight[..., None]
    if at.gate is not None:
        count = count * np.exp(terms - found[..., None])
    by_mean, by_variance = count * standard, 0.5 * count * (standard * standard - 1.0 / variance)
    by_m = np.matmul(by_mean, at.q)
    by_gate = by_logits = None
    if at.gate is not None:
        by_logits = count - weight[..., None] * np.exp(log_share)
        by_m += np.matmul(by_logits, at.gate)
        by_gate = np.matmul(by_logits.swapaxes(1, 2), m)
    third *= np.matmul(by_variance, squares)
    by_a = by_m * v
    by_a += third
    by_q = np.matmul(by_mean.swapaxes(1, 2), m) + 2.0 * at.q * np.matmul(by_variance.swapaxes(1, 2), v)
    return found, Slopes(by_a, by_q, by_mean, by_variance.sum(axis=1), by_gate, by_logits)


def _log_sum(terms: Numbers) -> Numbers:
    """log sum_j exp(terms_j), the axis kept: for arrays as small as these SciPy's takes ten times as long."""
    most = terms.max(axis=-1, keepdims=True)
    found: Numbers = most + np.log(np.exp(terms - most).sum(axis=-1, keepdims=True))
    return found


def _exact(
    at: Drives, a: Numbers, constant: Numbers, y: Numbers, weight: Numbers | None
) -> tuple[Numbers, Slopes | None]:
    """The saddlepoint density of each row, and its slopes: the saddlepoint moves with the parameters."""
    q, noise = at.q[:, 0], at.noise  # (E, M), (E, 1)
    powers = [q[:, :, None], (q * q)[:, :, None], (q * q * q)[:, :, None]]

    def by_unit(part: Numbers, power: int) -> Numbers:
        """sum_k q_k^power part_k: (E, B)."""
        found: Numbers = np.matmul(part, powers[power - 1])[..., 0]
        return found

    off, before = y - constant, located(a)
    at_zero = there = cut_moments(before)
    t = np.zeros_like(off)
    for _ in range(N_STEPS):  # Halley's steps, as in `saddlepoint.saddlepoint`
        second = noise + by_unit(there.variance, 2)
        newton = (off - noise * t - by_unit(there.mean, 1)) / second
        t = t + newton / np.maximum(1.0 + 0.5 * newton * by_unit(there.third, 3) / second, LEAST_BEND)
        step = t[..., None] * q[:, None, :]
        after = located(a + step)
        there = cut_moments(after)
    m, v, third = there
    second, bend = noise + by_unit(v, 2), by_unit(third, 3)
    left = off - noise * t - by_unit(m, 1)
    units = log_mills_difference(before, after, step).sum(axis=2)
    found = 0.5 * noise * t * t + units - t * off - 0.5 * left * left / second
    found -= 0.5 * np.log(second) + HALF_LOG_2PI
    if weight is None:
        return found, None
    by_second, moved = -0.5 * weight / second, 0.5 * weight * bend / (second * second)
    by_constant = weight * t + moved
    by_drive = by_second[..., None] * (q * q)[:, None, :] * third
    by_drive += moved[..., None] * q[:, None, :] * v
    by_q = np.matmul(by_constant[:, None, :], m) + 2.0 * q[:, None, :] * np.matmul(by_second[:, None, :], v)
    by_q += np.matmul(t[:, None, :], by_drive)
    by_a = by_drive + weight[..., None] * (m - at_zero.mean)
    by_noise = (0.5 * weight * t * t + by_second + moved * t).sum(axis=1, keepdims=True)
    return found, Slopes(by_a, by_q, by_constant[..., None], by_noise)
