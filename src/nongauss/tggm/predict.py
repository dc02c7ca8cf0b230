"""What the model says about new rows: exact moments, and the skewed density as a mixture over the units."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64
from scipy.special import log_ndtr, log_softmax, ndtri_exp
from scipy.stats import qmc

from nongauss.core.records import persistable
from nongauss.core.schema import LARGEST_LOG
from nongauss.prob import probit, truncnorm
from nongauss.prob.normal_table import cut_moments, located
from nongauss.tables.sparse import SparseRows
from nongauss.tggm.blocks import BLOCK, N_FINE, SMALL_BLOCK, in_blocks
from nongauss.tggm.config import NetworkConfig
from nongauss.tggm.data import filled
from nongauss.tggm.objective import last_layer
from nongauss.tggm.params import NetworkParams
from nongauss.tggm.splines import NO_SPLINES, Splines
from nongauss.tggm.tails import MODEL_TAILS, Tails

N_POINTS = 64
"""Quasi-random points of the hidden units a member. See `components` for the error that this leaves."""

N_SKEWED = 8
"""Units a row whose skewness is integrated; the others enter by their mean and variance."""

TINY = 1e-200
"""Least probability and least variance that is divided by."""


class Decomposition(NamedTuple):
    """Each member's y at each row as a sum: y = mean + shift + a Gaussian of variance `rest`.

    `mean` (E, N, P). `shift` (E, N, S, P): what the units that skew y most add at S points, of mean 0 and
    variance `share` (E, N, P); or how far each of S heads lies from the mean. `rest` (E, N, S or 1, P):
    variance of the other units and of the noise. `log_weight` (E, N, S) or (1, 1, 1): of the points or heads.
    """

    mean: Float64[np.ndarray, "E N P"]
    shift: Float64[np.ndarray, "E N S P"]
    share: Float64[np.ndarray, "E N P"]
    rest: Float64[np.ndarray, "E N R P"]
    log_weight: Float64[np.ndarray, "_ _ _"]


@persistable("tggm.Ensemble", "nongauss.tggm.predict:Ensemble")
class Ensemble(NamedTuple):
    """Fitted members with what undoes the scaling: all that a prediction needs.

    `inflation` (P,): factor of every variance. `skewness` in [0, 1]: the share of the hidden variance that
    keeps its skewed shape, the rest of it being taken as Gaussian. `centre`, `scale` (P,): of the target.
    `tails`: how much heavier than the model's the tails are. `splines`: which encoded columns the network
    takes in pieces as well; all methods take its inputs, `splines.joined(encoded)`. `spread_kept`: the share
    of the variance between members' means that their law has.
    """

    params: NetworkParams
    config: NetworkConfig
    inflation: Float64[np.ndarray, " P"]
    skewness: float
    centre: Float64[np.ndarray, " P"]
    scale: Float64[np.ndarray, " P"]
    tails: Tails = MODEL_TAILS
    splines: Splines = NO_SPLINES
    spread_kept: float = 1.0

    def check_columns(self, n_columns: int) -> None:
        """Raises ValueError where the weights are not those of so many encoded columns."""
        column = self.splines.column
        if self.params.W0.shape[2:] != (n_columns + len(column),) or not (column < n_columns).all():
            raise ValueError("the weights are not those of the columns")
        if any(weights.shape != self._skip_shape for weights in self.params.skip):
            raise ValueError("a skip that is not of the columns and outputs")
        deeper = (layer.log_sd for layer in self.params.deeper)
        logs = (self.params.log_sd0, self.params.log_sd1, *deeper)
        if max(float(np.abs(log).max()) for log in logs) > LARGEST_LOG:
            raise ValueError("a standard deviation that no number in 64 bits can be")

    @property
    def _skip_shape(self) -> tuple[int, ...]:
        return (*self.params.b1.shape, self.params.W0.shape[2])

    def alone(self, number: int) -> Ensemble:
        """The ensemble of one member."""
        return self._replace(params=member_of(self.params, number))

    @property
    def is_exact(self) -> bool:
        """Is the law of a row that of the saddlepoint, rather than a mixture over points of the units?"""
        config = self.config
        is_trained = config.method == "ml" and config.posterior == "exact"
        return is_trained and not config.n_classes and self.params.n_outputs == 1

    def moments(
        self, X: Float[np.ndarray, "N D"]
    ) -> tuple[Float64[np.ndarray, "N P"], Float64[np.ndarray, "N P"]]:
        """Mean and variance of y in original units at standardised rows.

        Exact for the mixture of members, a law that keeps `spread_kept` of the variance between their means:
        E[y] = avg_e m_e and Var[y] = inflation avg_e v_e + spread_kept avg_e (m_e - E[y])^2.
        """
        mean, variance = member_moments_of(self.params, self.config, X)
        total = self.inflation * variance.mean(axis=0) + self.spread_kept * mean.var(axis=0)
        return self.centre + self.scale * mean.mean(axis=0), self.scale**2 * total

    def drawn_together(self, mean: Float64[np.ndarray, "E N *P"]) -> Float64[np.ndarray, "E N *P"]:
        """The members' means as their law has them: so near to their average that `spread_kept` is left."""
        middle = mean.mean(axis=0)
        nearer: Float64[np.ndarray, "E N *P"] = middle + np.sqrt(self.spread_kept) * (mean - middle)
        return nearer

    @property
    def n_components(self) -> int:
        """Gaussians in the mixture that stands for the density of a row."""
        return len(self.params.b1) * self._n_points * len(self.tails.weights)

    @property
    def _n_points(self) -> int:
        """Points of the units, one where nothing of them is skewed; or heads."""
        if self.params.gate:
            return int(self.params.b1.shape[1])
        return 1 if self.config.method == "bp" or self.skewness == 0.0 else N_POINTS

    def components(
        self, X: Float[np.ndarray, "N D"]
    ) -> tuple[Float64[np.ndarray, "N C"], Float64[np.ndarray, "N C P"], Float64[np.ndarray, "N C P"]]:
        """The predictive mixture of each row, original units: log weights (N, C), means and sds (N, C, P).

        Mean and variance are exact. What the finite number of points leaves is an error of the shape. In the
        distribution function, at full skewness, it is at most 0.007 where a single unit varies as much as the
        noise and 0.035 where it varies ten times as much, the worst case (tests/tggm/test_predict.py), and
        up to 0.032 in a fitted model (tests/tggm/test_estimator.py).
        """
        parts = decomposed(self.params, self.config, X)
        parts = parts._replace(mean=self.drawn_together(parts.mean))
        means, variances = mixture(parts, self.inflation, self.skewness)
        n_rows, n_outputs, n_points = len(X), len(self.centre), self._n_points
        factor = self.tails.variances[:, None, None]  # of (E, N, Q, S, P): see `tails.py`
        middle = parts.mean[:, :, None, None, :]
        means = middle + np.sqrt(factor) * (means[:, :, None, :n_points, :] - middle)
        variances = factor * variances[:, :, None, :n_points, :]
        n_members = len(self.params.b1)
        weight = parts.log_weight if n_points > 1 else np.zeros((1, 1, 1))
        weights = np.log(self.tails.weights)[:, None] - np.log(n_members) + weight[:, :, None, :]
        shape = (n_rows, n_members, len(factor), n_points)
        weights = np.broadcast_to(np.moveaxis(weights, 0, 1), shape).reshape(n_rows, -1)
        means, variances = (
            np.moveaxis(part, 0, 1).reshape(n_rows, -1, n_outputs) for part in (means, variances)
        )
        return weights, self.centre + self.scale * means, np.abs(self.scale) * np.sqrt(variances)

    def classes(
        self, X: Float[np.ndarray, "N D"] | SparseRows
    ) -> tuple[Float64[np.ndarray, "N C"], Float64[np.ndarray, "N P"]]:
        """For labels: the probability of each class, rows summing to 1, and E[z|x], averaged over members."""
        compute = partial(_classes, config=self.config)
        probabilities, mean = in_blocks(compute, BLOCK, self.params, X, stays=False)
        average = np.maximum(probabilities.mean(axis=0), TINY)
        return average / average.sum(axis=1, keepdims=True), mean.mean(axis=0)


def mixture(
    parts: Decomposition, inflation: Float64[np.ndarray, " P"] | float, skewness: float
) -> tuple[Float64[np.ndarray, "E N S P"], Float64[np.ndarray, "E N S P"]]:
    """Means and variances of the Gaussians of each member and row, standardised scale.

    With inflation a and skewness k, Gaussian s has mean m + sqrt(a k) shift_s and variance
    a (rest + (1 - k) share): the variance of their mixture is a (rest + share), whatever k is. Of heads all
    that `share` would be is in `shift`, at k = 1.
    """
    means = parts.mean[:, :, None, :] + np.sqrt(inflation * skewness) * parts.shift
    variances = inflation * (parts.rest + (1.0 - skewness) * parts.share[:, :, None, :])
    return means, np.broadcast_to(variances, means.shape)


def member_of(params: NetworkParams, number: int) -> NetworkParams:
    """The ensemble that consists of one member alone."""
    one: NetworkParams = jax.tree.map(lambda leaf: leaf[number : number + 1], params)
    return one


def member_moments_of(
    params: NetworkParams, config: NetworkConfig, X: Float[np.ndarray, "N D"]
) -> tuple[Float64[np.ndarray, "E N P"], Float64[np.ndarray, "E N P"]]:
    """Mean and variance of each member at these rows, standardised scale."""
    mean, variance = in_blocks(partial(_moments, config=config), BLOCK, params, X)
    return mean, variance


def decomposed(params: NetworkParams, config: NetworkConfig, X: Float[np.ndarray, "N D"]) -> Decomposition:
    """The parts of each member's y at these rows, standardised scale.

    The units that skew y most are put at quasi-random points of their distributions. With several outputs all
    units are, which keeps the outputs' dependence.
    """
    n_outputs, n_hidden = params.W1.shape[1:]
    if config.method == "bp":
        mean, noise = member_moments_of(params, config, X)
        still = np.zeros((*mean.shape[:2], 1, n_outputs))
        return Decomposition(mean, still, np.zeros_like(noise), noise[:, :, None, :], np.zeros((1, 1, 1)))
    if params.gate:
        share, heads, spread = in_blocks(partial(_heads, config=config), BLOCK, params, X)
        mean = (np.exp(share) * heads).sum(axis=2, keepdims=True)
        none = np.zeros_like(mean)
        return Decomposition(mean, (heads - mean)[..., None], none, spread[..., None], share)
    n_chosen = n_hidden if n_outputs > 1 else min(N_SKEWED, n_hidden)
    found = in_blocks(partial(_units, config=config, n_chosen=n_chosen), SMALL_BLOCK, params, X)
    mean, location, sd, center, variance, weight, rest = found
    share = np.einsum("enpk,enk->enp", weight**2, variance)  # sum_k W_pk^2 var(h_k)
    shift = np.empty((*mean.shape[:2], N_POINTS, n_outputs))
    for first in range(0, len(X), SMALL_BLOCK):
        block = slice(first, first + SMALL_BLOCK)
        shift[:, block] = _shift(
            _points(n_chosen), *(part[:, block] for part in (share, location, sd, center, weight))
        )
    equal = np.full((1, 1, 1), -np.log(N_POINTS))
    return Decomposition(mean, shift, share, rest[:, :, None, :], equal)


def _shift(
    points: Float64[np.ndarray, "S K"],
    share: Float64[np.ndarray, "E N P"],
    location: Float64[np.ndarray, "E N K"],
    sd: Float64[np.ndarray, "E N K"],
    mean: Float64[np.ndarray, "E N K"],
    weight: Float64[np.ndarray, "E N P K"],
) -> Float64[np.ndarray, "E N S P"]:
    """What the chosen units at the points add to E[y], of variance `share`.

    The quantile of N_T(c, sd^2) at u is c - sd Phi^-1((1 - u) Phi(c / sd)), in logs. On the host: SciPy has
    it ready, where compiling it would take longer than most people's predictions.
    """
    tail = np.log1p(-points) + log_ndtr(location / sd)[:, :, None, :]
    drawn = location[:, :, None, :] - sd[:, :, None, :] * ndtri_exp(tail)
    shift = np.einsum("ensk,enpk->ensp", drawn - mean[:, :, None, :], weight)
    shift -= shift.mean(axis=2, keepdims=True)
    scale = np.sqrt(share / np.maximum((shift**2).mean(axis=2), TINY))
    exact: Float64[np.ndarray, "E N S P"] = shift * scale[:, :, None, :]
    return exact


def hidden(member: NetworkParams, X: Any, prior: str) -> tuple[Float64[np.ndarray, "N _"], ...]:
    """Location, sd, mean, variance of one member's last units at rows X, and the outputs' constants.

    Rows on the host have one hidden layer above them.
    """
    if not isinstance(X, np.ndarray):
        return tuple(map(np.asarray, _hidden(member, X, prior)))
    location, sd = X @ member.W0.T + member.b0, np.exp(member.log_sd0)[None, :]
    m, v, _ = cut_moments(located(location / sd))
    constant = np.broadcast_to(np.asarray(member.b1), (len(X), len(member.b1)))
    constant = constant + X @ member.skip[0].T if member.skip else constant
    return location, np.broadcast_to(sd, location.shape), sd * m, sd**2 * v, constant


@partial(jax.jit, static_argnames="prior")
def _hidden(member: NetworkParams, X: Any, prior: str) -> tuple[Float[Array, "N M"], ...]:
    """`hidden` of rows on the device: the only part of a regression's predictions that is compiled."""
    X = filled(X, member.W0.shape[-1])
    location, sd = jax.vmap(partial(last_layer, member, prior))(X)
    constant = jax.vmap(lambda x: member.at(x).b1)(X)
    return location, sd, *truncnorm.moments(location, sd), constant


def _moments(
    member: NetworkParams, X: Any, config: NetworkConfig
) -> tuple[Float64[np.ndarray, "N P"], Float64[np.ndarray, "N P"]]:
    """Mean and variance of y, or of z, at each row for one member; exact with one layer.

    E[y|x] = W1 E[h|x] + b1 (eq. 5) and Var[y|x] = W1^2 Var[h|x] + s1^2, of back-propagation s1^2 alone. With
    heads, those of their mixture: sum_j pi_j m_j and sum_j pi_j (v_j + (m_j - E[y|x])^2).
    """
    if member.gate:
        log_share, heads, spread = _heads(member, X, config)
        share = np.exp(log_share)
        center = (share * heads).sum(axis=1, keepdims=True)
        return center, (share * (spread + (heads - center) ** 2)).sum(axis=1, keepdims=True)
    _, _, mean, variance, constant = hidden(member, X, config.prior)
    W1, noise = np.asarray(member.W1), np.exp(2.0 * np.asarray(member.log_sd1))
    middle = mean @ W1.T + constant
    if config.method == "bp":
        return middle, np.broadcast_to(noise, middle.shape)
    return middle, variance @ W1.T**2 + noise


def _heads(
    member: NetworkParams, X: Any, config: NetworkConfig
) -> tuple[Float64[np.ndarray, "N H"], Float64[np.ndarray, "N H"], Float64[np.ndarray, "N H"]]:
    """Log weight, mean and variance of each head of one member at each row."""
    _, _, mean, variance, constant = hidden(member, X, config.prior)
    (gate,) = member.gate
    W1, noise = np.asarray(member.W1), np.exp(2.0 * np.asarray(member.log_sd1))
    logits = mean @ np.asarray(gate.W).T + np.asarray(gate.b)
    heads = mean @ W1.T + constant
    return log_softmax(logits, axis=1), heads, variance @ W1.T**2 + noise


def _units(
    member: NetworkParams, X: Any, config: NetworkConfig, n_chosen: int
) -> tuple[Float64[np.ndarray, "N ..."], ...]:
    """The K units of one member that skew y most at each row, apart from the others.

    Returns E[y] (N, P); location, sd, mean and variance of the chosen units (N, K) each; their weights
    (N, P, K); and the variance of y that the other units and the noise give, `rest` (N, P).
    """
    location, sd, mean, variance, constant = hidden(member, X, config.prior)
    W1, noise = np.asarray(member.W1), np.exp(2.0 * np.asarray(member.log_sd1))
    m, v = mean / sd, variance / sd**2
    third = (m - location / sd) * (m * m - v)  # r (m^2 - v), the third central moment at sd 1
    skew = np.abs(W1).max(axis=0) * sd * np.cbrt(np.abs(third))
    chosen = np.argsort(-skew, axis=1, kind="stable")[:, :n_chosen]
    location, sd, center, spread = (
        np.take_along_axis(part, chosen, axis=1) for part in (location, sd, mean, variance)
    )
    weight = np.moveaxis(W1[:, chosen], 0, 1)
    others = variance @ W1.T**2 - np.einsum("npk,nk->np", weight**2, spread)
    rest = np.maximum(others, 0.0) + noise
    return mean @ W1.T + constant, location, sd, center, spread, weight, rest


def _classes(
    member: NetworkParams, X: Any, config: NetworkConfig
) -> tuple[Float[Array, "N C"], Float64[np.ndarray, "N P"]]:
    """The probability of each class and E[z|x] of one member, z|x being taken as Gaussian."""
    mean, variance = _moments(member, X, config)
    return _probabilities(mean, variance), mean


@jax.jit
def _probabilities(mean: Float[Array, "N P"], variance: Float[Array, "N P"]) -> Float[Array, "N C"]:
    """The multinomial probit of each row by a fine grid."""
    found: Float[Array, "N C"] = jnp.exp(
        jax.vmap(partial(probit.log_probabilities, n_points=N_FINE))(mean, variance)
    )
    return found


@lru_cache
def _points(n_dimensions: int) -> Float64[np.ndarray, "S K"]:
    """Scrambled Sobol points inside the unit cube; the same in every process."""
    points: Float64[np.ndarray, "S K"] = qmc.Sobol(n_dimensions, scramble=True, rng=0).random(N_POINTS)
    inside: Float64[np.ndarray, "S K"] = np.clip(points, 1e-12, 1.0 - 1e-12)
    return inside
