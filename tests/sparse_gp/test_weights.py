"""A row of weight 2 is the row twice, one of weight 0 is not there: fits, near rows, what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss import SparseGPRegressor

pytestmark = pytest.mark.filterwarnings("ignore:.*Reached the largest number of iterations")

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, (60, 1))
F = np.sin(2.0 * X[:, 0])
NOISE = 0.2 * rng.standard_t(3, 60)
WEIGHT = rng.integers(0, 3, 60).astype(float)
COPIES = np.repeat(np.arange(60), WEIGHT.astype(int))
GRID = np.linspace(-2.0, 2.0, 9)[:, None]

TARGETS = {
    "gaussian": F + NOISE,
    "student_t": F + NOISE,
    "laplace": F + NOISE,
    "heteroscedastic": F + NOISE,
    "gamma": np.exp(F) * rng.gamma(5.0, 0.2, 60),
    "weibull": np.exp(F) * rng.gamma(5.0, 0.2, 60),
    "beta": rng.beta(3.0, 3.0, 60),
    "poisson": rng.poisson(np.exp(F + 1.0)),
    "hurdle_negative_binomial": rng.poisson(np.exp(F + 1.0)),
    "discretised_student_t": np.rint(3.0 * F + 3.0 * NOISE),
}


def both(likelihood, y, beside=None, **settings):
    """Fits to rows with weights, and to as many copies of each."""
    model = SparseGPRegressor(likelihood, random_state=0, **{"n_inducing": 15, "max_iter": 40, **settings})
    beside = beside or {}
    copies = SparseGPRegressor(**model.get_params()).fit(
        X[COPIES], y[COPIES], **{name: values[COPIES] for name, values in beside.items()}
    )
    return model.fit(X, y, sample_weight=WEIGHT, **beside), copies


def check_alike(weighted, copies, y):
    assert_allclose(weighted.bound_, copies.bound_, rtol=1e-8)
    laws = [model.predict_distribution(GRID) for model in (weighted, copies)]
    assert_allclose(laws[0].mean, laws[1].mean, rtol=1e-7, atol=1e-9)
    assert_allclose(laws[0].std, laws[1].std, rtol=1e-7)
    once = WEIGHT[COPIES] == 1  # of a row of weight 2 both copies are left out together
    assert_allclose(weighted.loo_[COPIES[once]], copies.loo_[once], rtol=1e-6, atol=1e-8)
    absent = weighted.predict_distribution(X[WEIGHT == 0])
    assert np.isfinite(absent.log_prob(y[WEIGHT == 0])).all()


@pytest.mark.parametrize("likelihood", TARGETS)
def test_a_fit_with_weights_is_that_to_copies(likelihood):
    y = np.asarray(TARGETS[likelihood], float)
    weighted, copies = both(likelihood, y)
    check_alike(weighted, copies, y)
    absent = weighted.predict_distribution(X[WEIGHT == 0]).log_prob(y[WEIGHT == 0])
    assert_allclose(weighted.loo_[WEIGHT == 0], absent, rtol=1e-4, atol=1e-5)  # it was left out already


@pytest.mark.parametrize("likelihood", ["student_t", "log_normal"])
def test_limits_with_weights_are_those_of_copies(likelihood):
    y = np.exp(F) if likelihood == "log_normal" else F + NOISE
    beside = {"censoring": (np.random.default_rng(1).uniform(size=60) < 0.3).astype(int)}
    check_alike(*both(likelihood, y, beside), y)


@pytest.mark.filterwarnings("ignore:y holds values as far out")
@pytest.mark.parametrize("far", [0, 1, 2])
def test_a_far_value_with_weights_is_that_of_copies(far):
    y = F + NOISE
    y[np.flatnonzero(far == WEIGHT)[0]] = 1e6
    check_alike(*both("laplace", y), y)


def test_near_rows_with_weights_are_those_of_copies():
    ripple = F + 0.5 * np.sin(25.0 * X[:, 0])
    weighted, copies = both("student_t", ripple, n_inducing=6)
    assert weighted._near is not None
    assert copies._near is not None
    for name in ("length", "ratio", "variance", "psi_shift"):
        assert_allclose(getattr(weighted._near, name), getattr(copies._near, name), rtol=1e-8)
    check_alike(weighted, copies, ripple)
