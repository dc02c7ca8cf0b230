"""Centred steps by persistent chains: the centred gradient, what does not depend on it, what is learned."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from harmonium.small import BINARY, D, K, log_z, params, recipe, states
from nongauss import Harmonium
from nongauss.harmonium.config import UNSUPERVISED
from nongauss.harmonium.contrastive_divergence import ContrastiveLearner
from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.objective import log_marginal
from nongauss.harmonium.params import HarmoniumParams
from nongauss.harmonium.persistent_chains import PersistentChains
from nongauss.harmonium.updates import Adam, contrast

NONE = np.zeros(K)
RATES = (0.01,) * 3


def log_p(p, x):
    return log_marginal(p, "binary", NONE, x) - log_z(p, NONE)


class Recorder:
    """Takes the gradients that Adam would get, and moves nothing."""

    def step(self, arrays, gradients, rates):
        self.gradients = gradients


def test_adam_gets_the_gradient_of_the_likelihood_in_centred_parameters():
    """By finite differences of W with eta + W lam and beta + W' mu held fixed; the chains are the model."""
    p, x = params(size=0.7), states(D)
    rng = np.random.default_rng(1)
    weight, mu, lam = rng.dirichlet(np.ones(len(x))), rng.random(D), rng.random(K)
    chains = x[np.repeat(np.arange(len(x)), np.rint(np.exp(log_p(p, x)) * 200_000).astype(int))]
    at = contrast(p, "binary", BINARY, NONE, x, weight, chains=chains)
    kept, adam = PersistentChains(chains, mu, p), Recorder()
    kept.centre = lam
    arrays = p.weights, p.visible_bias, p.hidden_bias
    kept.step(adam, p, arrays, (at.weights, at.visible_bias, at.hidden_bias), RATES)
    h = 1e-5
    for d, k in np.ndindex(D, K):
        ends = []
        for sign in (1, -1):
            moved = np.zeros((D, K))
            moved[d, k] = sign * h
            other = p._replace(
                weights=p.weights + moved,
                visible_bias=p.visible_bias - moved @ lam,
                hidden_bias=p.hidden_bias - mu @ moved,
            )
            ends.append(weight @ log_p(other, x))
        assert_allclose(adam.gradients[0][d, k], (ends[0] - ends[1]) / (2 * h), atol=1e-4)


def test_steps_do_not_depend_on_which_value_of_a_column_is_called_one():
    """With x -> 1 - x in some columns the models before and after are the same ones, mirrored."""
    p, x = params(size=0.5), states(D)
    weight = np.random.default_rng(2).dirichlet(np.ones(len(x)))
    flip = np.array([True, False, True, False])
    sign = np.where(flip, -1.0, 1.0)

    def mirrored(p):
        return p._replace(
            weights=sign[:, None] * p.weights,
            visible_bias=sign * p.visible_bias,
            hidden_bias=p.hidden_bias + p.weights[flip].sum(axis=0),
        )

    def stepped(p, x):
        chains = np.roll(x, 3, axis=0)[:10]
        kept, at = PersistentChains(chains, weight @ x, p), None
        arrays = p.weights, p.visible_bias, p.hidden_bias
        adam = Adam(arrays)
        for _ in range(3):
            at = contrast(p, "binary", BINARY, NONE, x, weight, chains=chains)
            kept.see(at.on)
            gradients = at.weights, at.visible_bias, at.hidden_bias
            kept.step(adam, p, arrays, gradients, RATES)
        return p

    # Adam's moves of the biases are of the size of a step whatever their sign
    usual = stepped(p._replace(**{name: getattr(p, name).copy() for name in p._fields[:3]}), x)
    other = stepped(mirrored(p), np.where(flip, 1.0 - x, x))
    assert np.abs(usual.weights - p.weights).max() > 0.02
    for name in ("weights", "visible_bias", "hidden_bias"):
        assert_allclose(getattr(other, name), getattr(mirrored(usual), name), atol=1e-6)


def test_what_is_learned_is_the_mean_of_the_last_tenth_of_the_steps():
    """Of parameters that grow by 1 a step, the weights (i / n)^10 have the mean 10 / 11 n."""
    p = params()
    kept = PersistentChains(np.zeros((2, D)), np.zeros(D), p)
    for number in range(1, 2001):
        kept.average(HarmoniumParams(*(np.full_like(part, number) for part in p)))
    assert_allclose(kept.mean[0], 2000 * 10 / 11, rtol=0.01)
    kept = PersistentChains(np.zeros((2, D)), np.zeros(D), p)
    kept.average(p)
    assert_allclose(kept.mean[0], p.weights)


def drawn(n, seed=0):
    """Rows of a harmonium of 10 columns and 3 units, and the log probability of each by enumeration."""
    rng = np.random.default_rng(7)
    x = states(10)
    W, eta, beta = 2.0 * rng.normal(size=(10, 3)), rng.normal(size=10) - 0.5, rng.normal(size=3)
    log_joint = x @ eta + np.logaddexp(0, x @ W + beta).sum(axis=1)
    log_true = log_joint - np.logaddexp.reduce(log_joint)
    rows = np.random.default_rng(seed).choice(len(x), n, p=np.exp(log_true))
    return x[rows], log_true[rows]


def test_persistent_chains_come_near_the_likelihood_of_the_truth_and_short_ones_do_not():
    X, _ = drawn(5000)
    new, true = drawn(5000, 1)
    x = states(10)
    lost = {}
    for method in ("cd", "pcd"):
        model = Harmonium(3, reading="global", method=method, max_epochs=120, random_state=0).fit(X)
        p, odds = model.machine_.params, model.machine_.prior.log_odds
        each = log_marginal(p, "binary", odds, model._encoded(new)[0].astype(float))
        lost[method] = (true - each).mean() + np.logaddexp.reduce(log_marginal(p, "binary", odds, x))
    assert lost["pcd"] < 0.06
    assert lost["cd"] > 3 * lost["pcd"]


@pytest.mark.parametrize("units", ["binary", "real"])
def test_a_fit_goes_on_from_a_snapshot_as_if_it_had_not_stopped(units):
    X = np.random.default_rng(0).random((64, D)).astype(np.float32).round()
    rows, chosen = VisibleRows(X, None, np.ones(64), None), recipe(method="pcd", n_components=3, units=units)
    one, other = (ContrastiveLearner(BINARY, rows, chosen, UNSUPERVISED, 6) for _ in range(2))
    for number in range(3):
        one.epoch(number)
    other.restore(one.snapshot())
    for number in range(3, 6):
        one.epoch(number)
        other.epoch(number)
    for first, second in zip(one.learned()[0], other.learned()[0], strict=True):
        assert_allclose(first, second, rtol=0)
    assert (one.chains.centre == 0.0).all() == (units == "real")
