"""The finite beta prior, and the noise of real columns: sigma_1 learned, sigma_2 a factor of the weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import digamma, logsumexp

from harmonium.small import states
from nongauss import Harmonium
from nongauss.core.errors import InputError
from nongauss.harmonium.exponential_families import UnitBlock, respond
from nongauss.harmonium.objective import beta_bound
from nongauss.harmonium.params import FeaturePrior, HarmoniumParams
from nongauss.harmonium.predict import NO_FILLER, Machine
from nongauss.harmonium.updates import beta_log_odds, contrast, stick_log_odds

REAL = (UnitBlock("all", "real", 0, 3),)


def test_the_finite_priors_posterior_is_the_best_of_its_bound():
    on, N, alpha = np.array([3.0, 40.0, 0.2]), 50.0, 2.0
    odds, gamma = beta_log_odds(on, N, alpha)
    best = minimize(
        lambda logs: -beta_bound(np.exp(logs).reshape(3, 2), on, N, alpha), np.zeros(6), tol=1e-10
    )
    assert_allclose(gamma, np.exp(best.x).reshape(3, 2), rtol=1e-3)
    assert_allclose(odds, digamma(gamma[:, 0]) - digamma(gamma[:, 1]))
    # by Bayes' rule on a grid, for one feature
    pi = (np.arange(200_000) + 0.5) / 200_000
    log_p = (alpha / 3 - 1 + 3.0) * np.log(pi) + 47.0 * np.log1p(-pi)
    p = np.exp(log_p - logsumexp(log_p))
    assert_allclose(odds[0], p @ (np.log(pi) - np.log1p(-pi)), rtol=1e-4)


def test_features_of_the_finite_prior_are_exchangeable_and_those_of_sticks_are_not():
    use = np.r_[np.full(3, 30.0), np.full(97, 1e-3)]
    finite, infinite = beta_log_odds(use, 100.0, 1.0)[0], stick_log_odds(use, 100.0, 1.0)[0]
    assert np.ptp(finite[:3]) == 0.0
    assert np.ptp(infinite[:3]) > 1.0
    assert finite[-1] < -50.0  # the mean of log pi of Beta(alpha / K, 1 + N) is far below any data


@pytest.mark.parametrize("reading", ["global", "chain"])
def test_a_fit_with_the_finite_prior_keeps_its_posterior_beside_the_features(reading):
    rng = np.random.default_rng(0)
    Z = rng.random((300, 2)) < 0.3
    X = (rng.random((300, 12)) < np.where(np.repeat(Z, 6, axis=1), 0.85, 0.1)).astype(float)
    model = Harmonium(4, prior="beta", reading=reading, units="binary", max_epochs=40, random_state=0).fit(X)
    gamma, odds = model.machine_.prior.gamma, model.machine_.prior.log_odds
    assert gamma.shape == (4, 2)
    assert_allclose(gamma.sum(axis=1), 1.0 / 4 + 1.0 + 300, rtol=1e-6)
    assert_allclose(odds, digamma(gamma[:, 0]) - digamma(gamma[:, 1]), rtol=1e-4)
    told = np.abs(np.corrcoef(model.transform(X).T, Z.T)[:4, 4:]).max(axis=0)
    assert told.min() > (0.8 if reading == "chain" else 0.5)


def test_what_the_options_cannot_be_together_is_said():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(InputError, match="finite number of features; give n_components"):
        Harmonium(prior="beta").fit(X)
    with pytest.raises(InputError, match="needs method='pcd', got 'cd'"):
        Harmonium(2, noise="learn").fit(X)


def small(seed=0):
    """Weights of three real columns and two binary features, and some rows."""
    rng = np.random.default_rng(seed)
    p = HarmoniumParams(
        0.6 * rng.normal(size=(3, 2)),
        0.3 * rng.normal(size=3),
        rng.normal(size=2),
        np.ones(3),
        np.zeros((0, 2)),
        np.zeros(0),
    )
    return p, rng.normal(size=(7, 3))


def log_density(p, scale, odds, X):
    """log p(x) of rows, by enumeration of z: p(z) and normal x given z, x scaled."""
    z = states(2)
    a = z @ p.weights.T + p.visible_bias
    log_pz = z @ (p.hidden_bias + odds) + 0.5 * (a * a).sum(axis=1)
    log_pz -= logsumexp(log_pz)
    off = (X * scale)[:, None, :] - a
    normal = (-0.5 * off**2 - 0.5 * np.log(2 * np.pi) + np.log(scale)).sum(axis=2)
    return logsumexp(log_pz + normal, axis=1)


def test_the_slope_by_the_scale_of_columns_is_that_of_the_likelihood():
    p, X = small()
    odds, scale, h = np.array([-0.4, 0.2]), np.array([1.3, 0.8, 2.0]), 1e-5
    weight = np.full(7, 1.0 / 7)
    at = contrast(p, "binary", REAL, odds, X * scale, weight, with_scale=True)
    for d in range(3):
        up, down = (scale * np.exp(s * h * (np.arange(3) == d)) for s in (1, -1))
        slope = weight @ (log_density(p, up, odds, X) - log_density(p, down, odds, X)) / (2 * h)
        assert_allclose(at.scale[d], slope, rtol=1e-6)


def test_the_spread_of_slabs_is_a_factor_of_the_weights():
    """p(x) with sigma_2, W and beta is p(x) with 1, sigma_2 W and sigma_2 beta: by quadrature over h."""
    rng = np.random.default_rng(1)
    W, beta, odds, x = 0.5 * rng.normal(size=(3, 1)), 0.4, -0.3, rng.normal(size=(4, 3))
    sigma = 0.6
    h = np.linspace(-12, 12, 20_001)

    def unnormalised(W, beta, sd):
        drive = (x @ W + beta)[:, 0]
        law = np.exp(-0.5 * (h / sd) ** 2) / (sd * np.sqrt(2 * np.pi)) * (h[1] - h[0])
        return 1.0 + np.exp(odds) * (np.exp(drive[:, None] * h) * law).sum(axis=1)

    assert_allclose(unnormalised(W, beta, sigma), unnormalised(sigma * W, sigma * beta, 1.0), rtol=1e-9)


def test_noise_that_is_learned_is_found_and_makes_rows_likelier():
    rng = np.random.default_rng(0)
    Z = (rng.random((500, 2)) < 0.4).astype(float)
    means = Z @ np.array([[4.0, 4.0, 4.0, 0, 0, 0], [0, 0, 0, -4.0, 4.0, 4.0]])
    X = means + rng.normal(size=(500, 6))
    fixed, learned = (
        Harmonium(2, noise=noise, method="pcd", max_epochs=200, random_state=0).fit(X[:350])
        for noise in ("fixed", "learn")
    )
    spread = X[:350].std(axis=0)
    assert (fixed.machine_.params.scale == 1.0).all()
    assert_allclose(learned.machine_.params.scale, spread, rtol=0.25)  # true noise is 1
    gain = learned.score_samples(X[350:]).mean() - fixed.score_samples(X[350:]).mean()
    assert gain > 1.0
    again = learned.transform(X[350:])
    assert np.abs(np.corrcoef(again.T, Z[350:].T)[:2, 2:]).max(axis=0).min() > 0.95
    assert_allclose(learned.inverse_transform(again).mean(axis=0), X.mean(axis=0), atol=0.6)


def test_spikes_and_slabs_of_the_finite_prior_have_their_posterior_given_a_row():
    """E[z h], P(z = 1) by summing over both z, integrating over both h of (4), at the prior's odds (2, 3)."""
    p, X = small(4)
    odds, gamma = beta_log_odds(np.array([12.0, 30.0]), 50.0, 2.0)
    prior = FeaturePrior(odds, gamma)
    machine = Machine(p, prior, REAL, "real", "global", np.zeros(0), NO_FILLER)
    h = np.linspace(-14, 14, 401)
    grid = np.stack(np.meshgrid(h, h, indexing="ij"), axis=-1).reshape(-1, 2)
    for x, told in zip(X, machine.hidden(X), strict=True):
        drive = x @ p.weights + p.hidden_bias
        log_joint = np.stack([z @ odds + (z * grid) @ drive - 0.5 * (grid**2).sum(axis=1) for z in states(2)])
        share = np.exp(log_joint - logsumexp(log_joint))
        expected = sum(share[i] @ (z * grid) for i, z in enumerate(states(2)))
        assert_allclose(told, expected, atol=1e-6)
        on = respond("real", drive[None], odds).on[0]
        assert_allclose(on, share.sum(axis=1) @ states(2), atol=1e-6)
