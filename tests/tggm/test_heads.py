"""A mixture of heads: its density and moments beside plain arithmetic, and what it is worth on two humps."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import norm, truncnorm

import nongauss
from nongauss import TGGMRegressor
from nongauss.core.errors import InputError
from nongauss.tggm import objective

SMALL = {"hidden_layer_sizes": (8,), "max_epochs": 60, "n_members": 2, "random_state": 0}


def two_humps(n_rows, seed):
    """y lies about +-2 with even chances, shifted by x, with noise .3; also its true log density."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_rows, 1))
    y = X[:, 0] + rng.choice([-2.0, 2.0], n_rows) + 0.3 * rng.normal(size=n_rows)
    truth = logsumexp([norm.logpdf(y, X[:, 0] + side, 0.3) for side in (-2.0, 2.0)], axis=0) - np.log(2.0)
    return X, y, truth


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = two_humps(200, 0)
    return TGGMRegressor(n_heads=3, posterior="moments", **SMALL).fit(X, y)


def plain_mixture(model, x):
    """Weights, means and sds (H,) of the first member's heads at standardised inputs x, unit by unit."""
    params = jax.tree.map(lambda leaf: np.asarray(leaf, float)[0], model.params_)
    location, sd = params.W0 @ x + params.b0, np.exp(params.log_sd0)
    units = truncnorm(-location / sd, np.inf, location, sd)
    share = softmax(params.gate[0].W @ units.mean() + params.gate[0].b)
    means = params.W1 @ units.mean() + params.b1
    return share, means, np.sqrt(params.W1**2 @ units.var() + np.exp(2.0 * params.log_sd1))


def test_the_objective_is_the_log_density_of_the_mixture(fitted):
    share, means, sds = plain_mixture(fitted, np.array([0.7]))
    member = jax.tree.map(lambda leaf: leaf[0], fitted.params_)
    for y in (-1.5, 0.0, 1.1):
        ours = objective.moment_log_likelihood(member, np.float32([0.7]), np.float32([y]))
        assert ours == pytest.approx(logsumexp(norm.logpdf(y, means, sds), b=share), abs=1e-4)


def test_predictions_have_the_moments_and_the_mass_of_the_mixture(fitted):
    ensemble = fitted.ensemble_
    plain = ensemble._replace(
        inflation=np.ones(1), tails=type(ensemble.tails)(np.inf, np.ones(1), np.ones(1)), spread_kept=1.0
    )
    weights, means, sds = plain.components(np.array([[0.7]]))
    assert weights.shape == (1, 6)  # two members of three heads
    assert logsumexp(weights) == pytest.approx(0.0, abs=1e-12)
    share, own, spread = plain_mixture(fitted, np.array([0.7]))
    np.testing.assert_allclose(2.0 * np.exp(weights[0, :3]), share, rtol=1e-5)
    scale, centre = ensemble.scale[0], ensemble.centre[0]
    np.testing.assert_allclose((means[0, :3, 0] - centre) / scale, own, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sds[0, :3, 0] / abs(scale), spread, rtol=1e-4)
    mean, variance = plain.moments(np.array([[0.7]]))
    by_hand = np.exp(weights[0]) @ means[0]
    assert mean[0] == pytest.approx(by_hand)
    assert variance[0] == pytest.approx(np.exp(weights[0]) @ (sds[0] ** 2 + (means[0] - by_hand) ** 2))


def test_the_law_integrates_to_one_and_keeps_both_humps(fitted, tmp_path):
    law = fitted.predict_distribution([[0.3]])
    grid = np.linspace(-30.0, 30.0, 6001)
    density = np.exp(fitted.predict_distribution(np.full((6001, 1), 0.3)).log_prob(grid))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=2e-3)
    assert law.prob(-0.5, 0.9)[0] < 0.1 < law.prob(-3.0, -0.5)[0]
    nongauss.save(fitted, tmp_path / "heads.nongauss")
    again = nongauss.load(tmp_path / "heads.nongauss")
    assert again.n_heads_ == 3
    assert (again.predict_distribution([[0.3]]).log_prob([0.1]) == law.log_prob([0.1])).all()


@pytest.mark.gate
def test_held_out_rows_ask_for_heads_where_there_are_two_humps_and_not_where_there_is_one():
    X, y, _ = two_humps(600, 0)
    new, at, truth = two_humps(600, 1)
    model = TGGMRegressor(n_heads="auto", max_epochs=150, n_members=3, random_state=0).fit(X, y)
    assert model.n_heads_ == 3
    assert model.predict_distribution(new).log_prob(at).mean() > truth.mean() - 0.15
    smooth = TGGMRegressor(n_heads="auto", max_epochs=60, n_members=2, random_state=0).fit(
        X, X[:, 0] + 0.3 * norm.rvs(size=600)
    )
    assert smooth.n_heads_ == 1


@pytest.mark.parametrize(
    "asked", [{"method": "bp"}, {"posterior": "mean_field"}, {"monotone": {0: 1}}, {"posterior": "exact"}]
)
def test_heads_that_cannot_be_are_refused(asked):
    X, y, _ = two_humps(40, 0)
    with pytest.raises(InputError, match="n_heads=2 needs"):
        TGGMRegressor(n_heads=2, **asked).fit(X, y)
