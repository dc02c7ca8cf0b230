"""Likelihood by persistent chains: the negative phase, centred steps, and the mean of the last steps.

Centred (Montavon and Mueller 2012; Melchior, Fischer and Wiskott 2016): the model is written in x - mu and
h - lam, mu and lam being the means of the data and of the units over it, and Adam moves these parameters:

    grad W = d<x h'> - mu d<h>' - d<x> lam',   eta = eta_c - W lam,   beta = beta_c - W' mu

d being rows less chains. What is learned is the running mean of the parameters over the last tenth of the
steps (Polyak and Juditsky 1992), because single steps follow the noise of the chains.
"""

from __future__ import annotations

import numpy as np

from nongauss.harmonium.config import AVERAGED, CENTRE_STEP
from nongauss.harmonium.exponential_families import Array, Layout
from nongauss.harmonium.params import HarmoniumParams
from nongauss.harmonium.updates import Adam, gibbs_sweep


class PersistentChains:
    """Chains (S, D) of a fit, where its units are centred, and the running mean of what it has learned.

    `means` (D,): of the visible units, as encoded. `centre` (K,): of binary hidden units; 0 of real ones,
    whose sign is arbitrary.
    """

    def __init__(self, chains: Array, means: Array, params: HarmoniumParams) -> None:
        self.chains, self.means = chains, means
        self.centre = np.zeros_like(params.hidden_bias)
        self.mean = tuple(np.array(part) for part in params)
        self.n_steps = 0

    @property
    def memory(self) -> tuple[Array, Array, tuple[Array, ...], int]:
        """All that changes: chains, centre, running mean, number of steps."""
        return self.chains, self.centre, self.mean, self.n_steps

    @memory.setter
    def memory(self, memory: tuple[Array, Array, tuple[Array, ...], int]) -> None:
        self.chains, self.centre, self.mean, self.n_steps = memory

    def sweep(
        self,
        rng: np.random.Generator,
        params: HarmoniumParams,
        units: str,
        layout: Layout,
        log_odds: Array,
        totals: Array,
    ) -> Array:
        """The chains (S, D) after one more sweep; a block of counts of each sums to one of `totals`' rows."""
        totals = totals[rng.integers(0, len(totals), len(self.chains))]
        self.chains = gibbs_sweep(rng, params, units, layout, log_odds, self.chains, totals)
        return self.chains

    def see(self, on: Array) -> None:
        """Let the centre follow the share of a batch's rows that have each binary unit, (K,)."""
        self.centre += (CENTRE_STEP if self.n_steps else 1.0) * (on - self.centre)

    def step(
        self,
        adam: Adam,
        params: HarmoniumParams,
        arrays: tuple[Array, ...],
        gradients: tuple[Array, ...],
        rates: tuple[float, ...],
    ) -> None:
        """Move `arrays`, weights and biases of `params` and others, by Adam on centred units."""
        weights, mu, lam = params.weights.copy(), self.means * params.scale, self.centre
        by_weights = gradients[0] - np.outer(mu, gradients[2]) - np.outer(gradients[1], lam)
        adam.step(arrays, (by_weights, *gradients[1:]), rates)
        moved = params.weights - weights
        arrays[1][:] -= moved @ lam
        arrays[2][:] -= mu @ moved

    def average(self, params: HarmoniumParams) -> None:
        """Let the running mean follow the parameters after a step."""
        self.n_steps += 1
        rate = 1.0 / max(1.0, min(self.n_steps, 1.0 + AVERAGED * self.n_steps))
        for mean, part in zip(self.mean, params, strict=True):
            mean += np.float32(rate) * (part - mean)
