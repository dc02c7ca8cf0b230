"""Mean field, the paper's way to the expectations of EM: for any number of layers, numbers or labels.

All that is unknown of a row is stacked into one vector v: the hidden units of all layers and, for a label,
the scores s = T_c z (eq. 23 with the square T_c). The energy is a sum of squared residuals,

    E(v) = sum_l |h_l - W_l h_{l-1} - b_l|^2 / (2 s_l^2)  [+ |z - W1 h_L - b1|^2 / (2 s1^2)],

with the last term in the posterior phase and without it in the prior phase. E is quadratic, with Hessian P
(eq. 30, 40, 44, corrected), which is never formed: P d costs two passes along the weights. Each phase looks
for q(v) = prod_k N_T(xi_k, 1 / P_kk) with the highest bound of log int exp(-E); the score of the true class
is not truncated. The objective is the posterior's bound minus the prior's. With one layer the prior
factorises, its bound is exact, and the objective is the evidence lower bound of eq. 10.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.sparse.linalg import cg
from jaxtyping import Array, Bool, Float, Int

from nongauss.core.records import value
from nongauss.prob import truncnorm
from nongauss.prob.normal import HALF_LOG_2PI
from nongauss.tggm.params import NetworkParams

SETTLED = 1e-4
"""Sweeps end when no mean moves by more than this share of its standard deviation."""

PRIOR_SWEEPS = 60
"""Most sweeps of a prior that is found by itself: it has no posterior to start from."""

_MOST_INNER = 20  # conjugate-gradient steps inside a sweep
_INNER_ERROR = 1e-3


class FactorisedPosterior(NamedTuple):
    """A factorised distribution: unit k is N_T(location_k, sd_k^2) with these moments."""

    location: Float[Array, " K"]
    sd: Float[Array, " K"]
    mean: Float[Array, " K"]
    variance: Float[Array, " K"]


@value
class Phase:
    """What is known of the output: `seen` is "nothing" (the prior phase), "number" or "label"."""

    seen: str

    def outputs(
        self, params: NetworkParams, scores: Float[Array, " P"], y: Float[Array, " Y"]
    ) -> Float[Array, " P"]:
        """The outputs z: the numbers y themselves, or T_c s of the scores (T_c is its own inverse)."""
        if self.seen == "number":
            return y
        if scores.shape[0] == 1:
            return jnp.sign(y - 0.5) * scores
        own = self._own_class(params, y)
        top = jnp.sum(own * scores)
        return top - (1.0 - own) * scores

    def energy(
        self, params: NetworkParams, v: Float[Array, " K"], x: Float[Array, " D"], y: Float[Array, " Y"]
    ) -> Float[Array, ""]:
        """E(v) of v: hidden layers from the inputs up, then the scores of a label."""
        total, below, at = jnp.zeros((), v.dtype), x, 0
        for layer in params.hidden:
            size = layer.b.shape[0]
            h = v[at : at + size]
            total += 0.5 * jnp.sum(((h - layer.W @ below - layer.b) / jnp.exp(layer.log_sd)) ** 2)
            below, at = h, at + size
        if self.seen == "nothing":
            return total
        error = self.outputs(params, v[at:], y) - params.W1 @ below - params.b1
        return total + 0.5 * jnp.sum((error / jnp.exp(params.log_sd1)) ** 2)

    def slope(
        self, params: NetworkParams, v: Float[Array, " K"], x: Float[Array, " D"], y: Float[Array, " Y"]
    ) -> Float[Array, " K"]:
        """The gradient P v - gamma of the energy in v."""
        found: Float[Array, " K"] = jax.grad(self.energy, argnums=1)(params, v, x, y)
        return found

    def diagonal(
        self, params: NetworkParams, y: Float[Array, " Y"]
    ) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
        """The diagonal of P in two parts: from the residual a unit is in, and from those it feeds."""
        own = [jnp.exp(-2.0 * layer.log_sd) for layer in params.hidden]
        noise = jnp.exp(-2.0 * params.log_sd1)
        last = jnp.zeros_like(own[-1]) if self.seen == "nothing" else noise @ params.W1**2
        fed = [above @ layer.W**2 for above, layer in zip(own[1:], params.deeper, strict=True)] + [last]
        if self.seen == "label":
            own.append(noise)
            # (T_c' T_c - I)_kk = C - 1 for the class's own score, 0 else (s1 = 1)
            fed.append((noise.shape[0] - 1.0) * self._own_class(params, y) * (noise.shape[0] > 1))
        return jnp.concatenate(own), jnp.concatenate(fed)

    def truncated(self, params: NetworkParams, y: Float[Array, " Y"]) -> Bool[Array, " K"]:
        """Which of the units are not negative: all but the score of the true class among several."""
        hidden = jnp.ones(sum(layer.b.shape[0] for layer in params.hidden), bool)
        if self.seen != "label":
            return hidden
        own = self._own_class(params, y)
        return jnp.concatenate([hidden, (own == 0.0) | (own.shape[0] == 1)])

    def log_normaliser(self, params: NetworkParams) -> Float[Array, ""]:
        """The log of the Gaussian factors in front of exp(-E)."""
        sds = [layer.log_sd for layer in params.hidden]
        if self.seen != "nothing":
            sds.append(params.log_sd1)
        return -jnp.sum(HALF_LOG_2PI + jnp.concatenate(sds))

    def _own_class(self, params: NetworkParams, y: Float[Array, " Y"]) -> Float[Array, " P"]:
        """1 at the output of the class, else 0."""
        n_outputs = params.b1.shape[0]
        return (jnp.arange(n_outputs) == y[0].astype(int)).astype(params.b1.dtype)


PRIOR = Phase("nothing")


def posterior_phase(n_classes: int) -> Phase:
    """The phase in which a number, or one of `n_classes` labels, is seen."""
    return Phase("label" if n_classes else "number")


class NewtonState(NamedTuple):
    """A posterior on its way up: `slope` is the gradient of the bound in the means, `step` <= 1."""

    q: FactorisedPosterior
    slope: Float[Array, " K"]
    step: Float[Array, ""]


def factorised_at(
    phase: Phase, params: NetworkParams, location: Float[Array, " K"], y: Float[Array, " Y"]
) -> FactorisedPosterior:
    """The factors at these locations, each of its best variance before truncation, 1 / P_kk (eq. 22)."""
    sd = 1.0 / jnp.sqrt(sum(phase.diagonal(params, y)))
    cut = phase.truncated(params, y)
    mean, variance = truncnorm.moments(location, sd)
    return FactorisedPosterior(location, sd, jnp.where(cut, mean, location), jnp.where(cut, variance, sd**2))


def best_locations(
    phase: Phase,
    params: NetworkParams,
    means: Float[Array, " K"],
    x: Float[Array, " D"],
    y: Float[Array, " Y"],
) -> Float[Array, " K"]:
    """Location of each unit's best factor given the means (K,) of the others (eq. 22, 32, 42)."""
    own, fed = phase.diagonal(params, y)
    return means - phase.slope(params, means, x, y) / (own + fed)


def newton_state(
    phase: Phase,
    params: NetworkParams,
    location: Float[Array, " K"],
    step: Float[Array, ""],
    x: Float[Array, " D"],
    y: Float[Array, " Y"],
) -> NewtonState:
    """The posterior at these locations, with the slope of the bound there."""
    q = factorised_at(phase, params, location, y)
    # dB/dm_k = (xi_k(m) - xi_k) / v_k, with v = sd^2
    return NewtonState(q, (best_locations(phase, params, q.mean, x, y) - location) / q.sd**2, step)


def sweep(
    phase: Phase, params: NetworkParams, now: NewtonState, x: Float[Array, " D"], y: Float[Array, " Y"]
) -> NewtonState:
    """One damped Newton step of all means at once.

    At fixed widths the bound is strictly concave in the means, with Hessian -(P + diag(1/var - P_kk)). The
    system is solved by conjugate gradients; with one layer they end after P + 1 steps, since the units then
    meet only through P outputs. A step after which the bound falls again faster than half as it rose before
    went too far: it is not taken, and the next one is shorter.
    """
    q = now.q
    own, fed = phase.diagonal(params, y)
    extra = jnp.maximum(1.0 / q.variance - own - fed, 0.0)

    def hessian(way: Float[Array, " K"]) -> Float[Array, " K"]:  # (P + diag(1 / var - P_kk)) way
        curved: Float[Array, " K"] = jax.jvp(lambda v: phase.slope(params, v, x, y), (q.mean,), (way,))[1]
        return extra * way + curved

    inner = min(q.mean.shape[0], _MOST_INNER)
    way, _ = cg(  # type: ignore[no-untyped-call]
        hessian, now.slope, tol=_INNER_ERROR, maxiter=inner, M=lambda slope: slope / (extra + own)
    )
    # d xi_k / d m_k = v_k / var_k, the variances before and after truncation
    there = q.location + now.step * way * q.sd**2 / q.variance
    tried = newton_state(phase, params, there, now.step, x, y)
    moved = tried.q.mean - q.mean
    before, after = now.slope @ moved, tried.slope @ moved
    taken = (before >= 0.0) & (after >= -0.5 * before)
    chosen: NewtonState = jax.tree.map(lambda new, old: jnp.where(taken, new, old), tried, now)
    return chosen._replace(step=jnp.where(taken, jnp.minimum(2.0 * now.step, 1.0), 0.25 * now.step))


def solve(
    phase: Phase,
    params: NetworkParams,
    first: Float[Array, " K"],
    x: Float[Array, " D"],
    y: Float[Array, " Y"],
    n_sweeps: int,
) -> FactorisedPosterior:
    """The factorised distribution of one row after at most `n_sweeps` sweeps from the locations `first`."""

    def unsettled(carry: tuple[Int[Array, ""], NewtonState]) -> Bool[Array, ""]:
        done, now = carry
        gap = jnp.abs(now.slope) * now.q.variance / now.q.sd
        return (done < n_sweeps) & (jnp.max(gap) > SETTLED)

    def body(carry: tuple[Int[Array, ""], NewtonState]) -> tuple[Int[Array, ""], NewtonState]:
        return carry[0] + 1, sweep(phase, params, carry[1], x, y)

    start = newton_state(phase, params, first, jnp.ones((), first.dtype), x, y)
    return jax.lax.while_loop(unsettled, body, (jnp.int32(0), start))[1].q


def first_locations(phase: Phase, params: NetworkParams, x: Float[Array, " D"]) -> Float[Array, " K"]:
    """Locations to start from: each layer's W E[h below] + b at the means below it, scores at 1."""
    below, locations = x, []
    for layer in params.hidden:
        locations.append(layer.W @ below + layer.b)
        below = truncnorm.mean(locations[-1], jnp.exp(layer.log_sd))
    if phase.seen == "label":
        locations.append(jnp.ones_like(params.b1))
    return jnp.concatenate(locations)


def entropy(
    phase: Phase, params: NetworkParams, q: FactorisedPosterior, y: Float[Array, " Y"]
) -> Float[Array, ""]:
    """Entropy of the factorised posterior, by its own moments.

    Of a factor cut at 0: log(2 pi) / 2 + log sd + log Phi(xi / sd) + E[(h - xi)^2] / (2 sd^2).
    """
    cut = phase.truncated(params, y)
    log_partition = jnp.where(cut, truncnorm.log_partition(q.location, q.sd), 0.0)
    spread = 0.5 * (q.variance + (q.mean - q.location) ** 2) / q.sd**2
    return jnp.sum(HALF_LOG_2PI + jnp.log(q.sd) + log_partition + spread)


def bound(
    phase: Phase, params: NetworkParams, q: FactorisedPosterior, x: Float[Array, " D"], y: Float[Array, " Y"]
) -> Float[Array, ""]:
    """Lower bound of log int exp(-E) with its factors: minus the expected energy, plus the entropy of q."""
    expected = phase.energy(params, q.mean, x, y) + 0.5 * sum(phase.diagonal(params, y)) @ q.variance
    return phase.log_normaliser(params) - expected + entropy(phase, params, q, y)


def phases(
    params: NetworkParams, x: Float[Array, " D"], y: Float[Array, " Y"], n_classes: int, n_sweeps: int
) -> tuple[FactorisedPosterior, FactorisedPosterior]:
    """Posterior and prior of one row; the prior starts from the posterior, as the paper found best."""
    seen = posterior_phase(n_classes)
    q = solve(seen, params, first_locations(seen, params, x), x, y, n_sweeps)
    n_hidden = sum(layer.b.shape[0] for layer in params.hidden)
    return q, solve(PRIOR, params, q.location[:n_hidden], x, y, n_sweeps)


def last_layer(params: NetworkParams, x: Float[Array, " D"]) -> tuple[Float[Array, " M"], Float[Array, " M"]]:
    """Location and sd, before the cut, of the last layer's units under the prior that the bound trains.

    Their moments are those of the factorised distribution nearest to p(h|x) of eq. 39, all layers together.
    With one layer that is p(h|x) itself.
    """
    y = jnp.zeros_like(params.b1)  # the prior phase sees no output
    prior = solve(PRIOR, params, first_locations(PRIOR, params, x), x, y, PRIOR_SWEEPS)
    size = params.W1.shape[1]
    return prior.location[-size:], prior.sd[-size:]


def row_bound(
    params: NetworkParams, x: Float[Array, " D"], y: Float[Array, " Y"], n_classes: int, n_sweeps: int
) -> Float[Array, ""]:
    """The bound of log p(y|x), posterior minus prior, with the gradient that EM follows.

    Both distributions are held while differentiating: by the envelope theorem that is the gradient of the
    optimised bounds, the two expectations of eq. 14.
    """
    params = params.at(x)
    held = jax.lax.stop_gradient(phases(jax.lax.stop_gradient(params), x, y, n_classes, n_sweeps))
    return bound_difference(params, *held, x, y, n_classes)


def bound_difference(
    params: NetworkParams,
    q: FactorisedPosterior,
    prior: FactorisedPosterior,
    x: Float[Array, " D"],
    y: Float[Array, " Y"],
    n_classes: int = 0,
) -> Float[Array, ""]:
    """The posterior's bound minus the prior's. With one layer the second is exact: eq. 10."""
    seen = posterior_phase(n_classes)
    return bound(seen, params, q, x, y) - bound(PRIOR, params, prior, x, y)
