"""A linear term beside the units: targets moved by it, least squares as a case, and who chooses it."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.linear_model import LinearRegression

import nongauss
from nongauss import TGGMClassifier, TGGMRegressor
from nongauss.core.device import double_precision
from nongauss.core.errors import InputError
from nongauss.tggm import objective, predict, updates
from nongauss.tggm.params import HeadGate
from tggm.small import CONFIG, deep_member, ensemble_of, for_labels, member, row

V = np.array([[0.8, -1.3]])
SMALL = {"hidden_layer_sizes": (4,), "max_epochs": 40, "n_members": 2, "random_state": 0}


@pytest.fixture
def exactly():
    with double_precision():
        yield


@pytest.fixture
def with_skip():
    return member(0)._replace(skip=(V,))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"posterior": "exact"},
        {"method": "bp"},
        pytest.param({"posterior": "mean_field"}, marks=pytest.mark.gate),
    ],
)
def test_the_density_is_that_of_the_target_less_the_linear_term(exactly, with_skip, changes):
    config = replace(CONFIG, **changes)
    x, y = row(0, with_skip)
    bound = jax.jit(updates.row_objective, static_argnums=1)
    judged = jax.jit(objective.predictive_log_likelihood, static_argnums=1)
    for density in (bound, judged):
        assert_allclose(density(with_skip, config, x, y), density(member(0), config, x, y - V @ x), atol=1e-9)


@pytest.mark.gate
def test_a_deep_factorised_prior_is_judged_about_the_linear_term(exactly):
    config = replace(CONFIG, layers=(1, 1), posterior="mean_field")
    params = deep_member(0, (1, 1))
    x, y = row(0, params)
    found = objective.peak_and_distance(params._replace(skip=(V,)), config, x, y)
    assert_allclose(found, objective.peak_and_distance(params, config, x, y - V @ x), atol=1e-9)


def test_the_probability_of_a_label_is_that_of_a_constant_moved_by_the_linear_term(exactly):
    plain, x = for_labels(member(1)), np.array([0.4, -0.7])
    config = replace(CONFIG, n_classes=2)
    moved = plain._replace(b1=plain.b1 + V @ x)
    judged = jax.jit(objective.predictive_log_likelihood, static_argnums=1)
    for label in (np.zeros(1), np.ones(1)):
        found = judged(plain._replace(skip=(V,)), config, x, label)
        assert_allclose(found, judged(moved, config, x, label), atol=1e-9)


def test_heads_have_a_linear_term_each(exactly):
    params, gate = member(2, n_outputs=2), HeadGate(np.array([[0.3, -0.2], [0.1, 0.5]]), np.zeros(2))
    weights, x = np.array([[0.8, -1.3], [0.2, 0.4]]), np.array([0.4, -0.7])
    headed = params._replace(gate=(gate,), skip=(weights,))
    moved = params._replace(gate=(gate,), b1=params.b1 + weights @ x)
    found = objective.moment_log_likelihood(headed, x, np.array([0.2]))
    assert_allclose(found, objective.moment_log_likelihood(moved, x, np.array([0.2])), atol=1e-9)
    config = replace(CONFIG, n_heads=2)
    first = predict.member_moments_of(ensemble_of(headed), config, x[None])
    second = predict.member_moments_of(ensemble_of(moved), config, x[None])
    assert_allclose(first, second, atol=1e-9)


@pytest.mark.parametrize("posterior", ["moments", "exact"])
def test_laws_are_moved_by_the_linear_term(posterior):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X @ [1.0, -2.0] + np.abs(X[:, 0]) + 0.3 * rng.normal(size=60)
    model = TGGMRegressor(posterior=posterior, skip="linear", **SMALL).fit(X, y)
    law = model.predict_distribution(X[:5])
    (weights,) = model.params_.skip
    member_ = model.ensemble_.alone(0)
    moved = weights[0, 0] @ model.ensemble_.splines.joined(model._encode(X[:1]))[0]
    same = member_._replace(params=member_.params._replace(skip=(), b1=member_.params.b1 + moved))
    one, other = copies(model, member_), copies(model, same)
    at = y[:1]
    assert one.predict_distribution(X[:1]).log_prob(at) == pytest.approx(
        other.predict_distribution(X[:1]).log_prob(at), abs=1e-5
    )
    assert (law.quantile(0.05) < law.quantile(0.95)).all()


def copies(model, ensemble):
    """The model with these members."""
    other = TGGMRegressor(**model.get_params())
    other.__dict__.update(model.__dict__ | {"ensemble_": ensemble})
    return other


def test_of_a_straight_line_the_skip_is_least_squares_and_goes_on_as_one(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=300)
    model = TGGMRegressor((1,), skip="linear", posterior="moments", n_members=2, random_state=0).fit(X, y)
    far = 30.0 * rng.normal(size=(20, 3))
    assert_allclose(model.predict(far), LinearRegression().fit(X, y).predict(far), atol=1.5)
    assert model.skip_ == "linear"
    nongauss.save(model, tmp_path / "skip.nongauss")
    assert (nongauss.load(tmp_path / "skip.nongauss").predict(far) == model.predict(far)).all()
    assert model.partial_fit(X, y).skip_ == "linear"
    with pytest.raises(InputError, match="parameters have changed"):
        model.set_params(skip=None).partial_fit(X, y)


def test_a_monotone_column_keeps_its_direction_in_the_linear_term():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 2))
    y = -X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=100)
    model = TGGMRegressor(skip="linear", monotone={0: 1}, **SMALL).fit(X, y)
    line = np.stack([np.linspace(-3.0, 3.0, 50), np.zeros(50)], axis=1)
    assert np.diff(model.predict(line)).min() >= -1e-9


@pytest.mark.gate
def test_held_out_rows_choose_the_skip():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 40))
    straight = X @ rng.normal(size=40) + 0.5 * rng.normal(size=400)
    bent = straight + 4.0 * np.abs(X[:, 0])  # takes both units, which leaves none for the linear part
    settings = {**SMALL, "hidden_layer_sizes": (2,), "max_epochs": 100, "posterior": "moments"}
    assert TGGMRegressor(skip="auto", **settings).fit(X, bent).skip_ == "linear"
    labels = np.sign(straight)
    classifier = TGGMClassifier((2,), skip="auto", max_epochs=60, random_state=0).fit(X, labels)
    without = TGGMClassifier((2,), max_epochs=60, random_state=0).fit(X, labels)
    assert without.skip_ is None
    scores = [m.trace_["held_out"].max() for m in (classifier, without)]
    assert scores[0] >= scores[1]


def test_sparse_rows_have_a_linear_term():
    rng = np.random.default_rng(4)
    X = csr_array(rng.poisson(0.3, (120, 30)).astype(float))
    y = (X @ np.linspace(-1.0, 1.0, 30) > 0).astype(int)
    model = TGGMClassifier((3,), skip="linear", max_epochs=40, n_members=2, random_state=0).fit(X, y)
    assert model.params_.skip[0].shape == (2, 1, 30)
    assert model.score(X, y) > 0.8
    slope = np.corrcoef(model.params_.skip[0].mean(axis=(0, 1)), np.linspace(-1.0, 1.0, 30))[0, 1]
    assert slope > 0.5


def test_the_setting_of_the_paper_has_no_skip():
    with pytest.raises(InputError, match="sets skip"):
        TGGMRegressor(preset="paper", skip="auto").fit(np.eye(30), np.arange(30.0))
