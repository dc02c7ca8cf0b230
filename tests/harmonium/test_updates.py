import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.special import expit

from harmonium.small import BINARY, D, K, params, states
from nongauss.harmonium.exponential_families import UnitBlock, log_factor, respond
from nongauss.harmonium.objective import VoteLoss, scores, tube, worst_rival
from nongauss.harmonium.updates import (
    LEAST_VARIANCE,
    Adam,
    contrast,
    filled_by_mean_field,
    gibbs_sweep,
    preactivation,
    restraint_slope,
    vote_gradient,
    with_dropout,
    with_hidden_views,
)

PRIOR = np.array([0.4, -0.7, 0.0])
X = states(D)
WEIGHT = np.random.default_rng(0).dirichlet(np.ones(len(X)))


def differences(function, array, step=1e-6):
    out = np.empty_like(array)
    for at in np.ndindex(array.shape):
        keep = array[at]
        array[at] = keep + step
        up = function()
        array[at] = keep - step
        out[at] = (up - function()) / (2 * step)
        array[at] = keep
    return out


@pytest.mark.parametrize("sparse", [False, True])
def test_the_contrast_is_the_gradient_of_the_free_energies_with_q_held_fixed(sparse):
    p = params()
    e0 = respond("binary", X @ p.weights + p.hidden_bias, PRIOR).mean
    x1 = expit(e0 @ p.weights.T + p.visible_bias)
    e1 = respond("binary", x1 @ p.weights + p.hidden_bias, PRIOR).mean

    def expected(x, e):
        return WEIGHT @ (x @ p.visible_bias + (x @ p.weights * e).sum(axis=1) + e @ p.hidden_bias)

    at = contrast(p, "binary", BINARY, PRIOR, sp.csr_matrix(X) if sparse else X, WEIGHT)
    for name in ("weights", "visible_bias", "hidden_bias"):
        numeric = differences(lambda: expected(X, e0) - expected(x1, e1), getattr(p, name))
        assert_allclose(getattr(at, name), numeric, atol=1e-8)
    assert_allclose(at.on, WEIGHT @ e0)


def test_with_chains_from_the_model_the_contrast_is_the_likelihood_gradient():
    p = params(size=0.7)
    energy = X @ p.visible_bias + log_factor("binary", preactivation(p, X), PRIOR).sum(axis=1)
    model = np.exp(energy - np.logaddexp.reduce(energy))
    chains = X[np.repeat(np.arange(len(X)), np.rint(model * 200_000).astype(int))]
    at = contrast(p, "binary", BINARY, PRIOR, X, WEIGHT, chains=chains)

    def likelihood():
        energy = X @ p.visible_bias + log_factor("binary", preactivation(p, X), PRIOR).sum(axis=1)
        return WEIGHT @ energy - np.logaddexp.reduce(energy)

    assert_allclose(at.weights, differences(likelihood, p.weights), atol=1e-4)  # shares are rounded
    assert_allclose(at.hidden_bias, differences(likelihood, p.hidden_bias), atol=1e-4)


def test_persistent_chains_stay_at_the_model():
    p = params()
    energy = X @ p.visible_bias + log_factor("binary", preactivation(p, X), PRIOR).sum(axis=1)
    model = np.exp(energy - np.logaddexp.reduce(energy))
    rng = np.random.default_rng(0)
    chains = X[rng.choice(len(X), 40_000, p=model)]
    moved = gibbs_sweep(rng, p, "binary", BINARY, PRIOR, chains, np.zeros((len(chains), 0)))
    share = np.bincount((moved @ [8, 4, 2, 1]).astype(int), minlength=16) / len(moved)
    assert_allclose(share, model, atol=0.012)  # five standard errors


@pytest.mark.parametrize("units", ["binary", "real"])
def test_the_margin_gradient_agrees_with_finite_differences(units):
    p = params(n_classes=3)
    labels = np.random.default_rng(1).integers(0, 3, len(X))

    def loss():
        mean = respond(units, preactivation(p, X), PRIOR).mean
        return -float(WEIGHT @ worst_rival(scores(p, units, mean, X), labels, 2.5)[0])

    at = vote_gradient(p, units, PRIOR, X, WEIGHT, labels, VoteLoss(2.5))
    for name in ("weights", "hidden_bias", "votes", "intercept"):
        assert_allclose(getattr(at, name), differences(loss, getattr(p, name)), atol=1e-7)
    assert_allclose(at.loss, -loss())


@pytest.mark.parametrize("scale", [0.0, 1.0])  # at 0 all classes tie
def test_the_soft_margin_has_a_gradient_where_classes_tie_too(scale):
    p = params(n_classes=3)
    p = p._replace(votes=scale * p.votes, intercept=scale * p.intercept)
    labels = np.random.default_rng(1).integers(0, 3, len(X))

    def loss():
        return -vote_gradient(p, "binary", PRIOR, X, WEIGHT, labels, VoteLoss(2.5, softness=0.2)).loss

    at = vote_gradient(p, "binary", PRIOR, X, WEIGHT, labels, VoteLoss(2.5, softness=0.2))
    for name in ("weights", "hidden_bias", "votes", "intercept"):
        assert_allclose(getattr(at, name), differences(loss, getattr(p, name)), atol=1e-7)
    hard = vote_gradient(p, "binary", PRIOR, X, WEIGHT, labels, VoteLoss(2.5)).loss
    assert hard <= at.loss <= hard + 0.2 * np.log(3) * WEIGHT.sum()


def test_the_restraint_is_the_gradient_of_what_it_says():
    p, ridge, overlap = params(), 0.3, 200.0

    def penalty():
        S = preactivation(p, X)
        mean = respond("binary", S, PRIOR).mean
        S, h = S - WEIGHT @ S, mean - WEIGHT @ mean
        covariance = (h * WEIGHT[:, None]).T @ h
        spread = np.sqrt(np.diag(covariance) + LEAST_VARIANCE)
        r = covariance / np.outer(spread, spread) * (1 - np.eye(K))
        return -0.5 * ridge * (WEIGHT @ S**2).sum() - overlap / 16 * (r**8).sum()

    at = respond("binary", preactivation(p, X), PRIOR)
    by_S = restraint_slope(ridge, overlap, preactivation(p, X), at, WEIGHT)
    assert_allclose(X.T @ by_S, differences(penalty, p.weights), atol=1e-8)
    assert_allclose(by_S.sum(axis=0), differences(penalty, p.hidden_bias), atol=1e-8)
    free, bound = (
        contrast(p, "binary", BINARY, PRIOR, X, WEIGHT, None, None, *r) for r in ((), (0.3, 200.0))
    )
    assert_allclose(bound.weights - free.weights, X.T @ by_S, atol=1e-12)


def test_missing_cells_end_where_mean_field_stands_still():
    p, missing = params(), np.zeros(X.shape, bool)
    missing[:, 1] = True
    whole = filled_by_mean_field(p, "binary", BINARY, PRIOR, X, missing, np.zeros(0), sweeps=200)
    e = respond("binary", preactivation(p, whole), PRIOR).mean
    assert_allclose(whole[:, 1], expit(e @ p.weights[1] + p.visible_bias[1]), atol=1e-9)
    assert_allclose(whole[:, [0, 2, 3]], X[:, [0, 2, 3]])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_left_out_cells_keep_their_expectation(make):
    rng, ones = np.random.default_rng(0), make(np.ones((400, 50), np.float32))
    assert_allclose(with_dropout(rng, ones, 0.4).mean(), 1.0, atol=0.03)


def test_adam_takes_steps_of_its_rate_and_leaves_arrays_of_rate_zero():
    moving, still = np.zeros(2, np.float32), np.zeros(2, np.float32)
    adam = Adam((moving, still))
    for _ in range(3):
        adam.step((moving, still), (np.array([5.0, -0.1], np.float32), np.ones(2, np.float32)), (0.1, 0.0))
    assert_allclose(moving, [0.3, -0.3], rtol=1e-5)
    assert_allclose(still, 0.0)
    assert moving.shape == (2,)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_a_hidden_view_is_at_its_means_and_the_others_are_as_they_were(make):
    layout = (UnitBlock("a", "binary", 0, 2), UnitBlock("b", "binary", 2, 3), UnitBlock("a", "binary", 3, 4))
    rng, means = np.random.default_rng(0), np.full(4, 0.25)
    out = with_hidden_views(rng, layout, make(X), 1.0, means)
    first, second = (out[:, [0, 1, 3]] == 0.25).all(axis=1), out[:, 2] == 0.25
    assert (first ^ second).all()
    assert 4 < first.sum() < 12
    assert_allclose(out[~second, 2], X[~second, 2])
    assert_allclose(out[second][:, [0, 1, 3]], X[second][:, [0, 1, 3]])
    assert with_hidden_views(rng, BINARY, X, 1.0, means) is X


@pytest.mark.parametrize("units", ["binary", "real"])
@pytest.mark.parametrize("softness", [0.0, 0.3])
def test_the_tubes_gradient_agrees_with_finite_differences_in_raw_votes_too(units, softness):
    rng = np.random.default_rng(2)
    p = params(n_classes=1)._replace(raw=rng.normal(size=(1, 4)))
    target, loss = rng.normal(size=len(X)), VoteLoss(epsilon=0.4, softness=softness)

    def value():
        mean = respond(units, preactivation(p, X), PRIOR).mean
        f = (mean - (0.5 if units == "binary" else 0.0)) @ p.votes[0] + p.intercept[0] + X @ p.raw[0]
        beyond = np.abs(f - target) - 0.4
        if softness:
            beyond = softness * sum(np.logaddexp(0.0, (s * (f - target) - 0.4) / softness) for s in (1, -1))
        return -float(WEIGHT @ (beyond if softness else np.maximum(beyond, 0.0)))

    at = vote_gradient(p, units, PRIOR, X, WEIGHT, target, loss)
    for name in ("weights", "hidden_bias", "votes", "intercept", "raw"):
        assert_allclose(getattr(at, name), differences(value, getattr(p, name)), atol=1e-7)
    assert_allclose(at.loss, -value())
    assert (tube(np.zeros((1, 1)), np.array([0.3]), 0.4)[1] == 0.0).all()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_raw_votes_of_classes_have_the_gradient_of_the_margin(make):
    rng = np.random.default_rng(3)
    p = params(n_classes=3)._replace(raw=rng.normal(size=(3, 4)))
    labels = rng.integers(0, 3, len(X))

    def loss():
        mean = respond("binary", preactivation(p, X), PRIOR).mean
        f = (mean - 0.5) @ p.votes.T + p.intercept + X @ p.raw.T
        own = f[np.arange(len(X)), labels][:, None]
        return -float(WEIGHT @ (f - own + 2.5 * (np.arange(3) != labels[:, None])).max(axis=1))

    at = vote_gradient(p, "binary", PRIOR, make(X), WEIGHT, labels, VoteLoss(2.5))
    for name in ("weights", "votes", "raw"):
        assert_allclose(getattr(at, name), differences(loss, getattr(p, name)), atol=1e-7)
