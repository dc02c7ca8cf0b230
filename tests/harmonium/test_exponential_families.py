import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.sparse import csr_array
from scipy.special import expit

from nongauss.harmonium.exponential_families import (
    ALWAYS_ON,
    UnitBlock,
    dense,
    log_factor,
    log_partition,
    mean_of,
    respond,
    sample_hidden,
    sample_visible,
    saturated_share,
    sigmoid,
    softplus,
    totals_of,
)

LAYOUT = (UnitBlock("a", "binary", 0, 2), UnitBlock("b", "real", 2, 4), UnitBlock("c", "counts", 4, 7))


def test_softplus_neither_overflows_nor_loses_small_numbers():
    assert_allclose(
        softplus(np.array([-800.0, -30.0, 0.0, 800.0])), [0, np.exp(-30.0), np.log(2), 800], atol=1e-16
    )


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-15), (np.float32, 2e-7)])
def test_the_sigmoid_is_exact_and_neither_overflows_nor_warns(dtype, error):
    a = np.array([-1e30, -70.0, -3.0, 0.0, 0.7, 1e30], dtype)
    assert_allclose(sigmoid(a), expit(a.astype(float)), rtol=40 * error, atol=1e-30)
    assert sigmoid(a).dtype == dtype


def test_the_mean_is_the_gradient_of_the_log_partition():
    a = np.random.default_rng(0).normal(size=(3, 7))
    totals = np.array([[5.0], [0.0], [2.0]])
    step, numeric = 1e-6, np.empty_like(a)
    for d in range(7):
        e = step * np.eye(7)[d]
        numeric[:, d] = (log_partition(LAYOUT, a + e, totals) - log_partition(LAYOUT, a - e, totals)) / (
            2 * step
        )
    assert_allclose(mean_of(LAYOUT, a, totals), numeric, atol=1e-8)


def test_draws_have_their_means_and_counts_their_totals():
    a = np.tile(np.random.default_rng(1).normal(size=7), (40_000, 1))
    totals = np.full((len(a), 1), 4.0)
    drawn = sample_visible(np.random.default_rng(0), LAYOUT, a, totals)
    assert_allclose(
        drawn.mean(axis=0), mean_of(LAYOUT, a[:1], totals[:1])[0], atol=0.03
    )  # six standard errors
    assert_allclose(totals_of(LAYOUT, drawn), totals)


@pytest.mark.parametrize("prior", [-1.0, 0.5, ALWAYS_ON])
@pytest.mark.parametrize("S", [-1.7, 0.3])
def test_the_posterior_of_a_real_unit_is_exact(prior, S):
    mass = quad(lambda h: np.exp(S * h - h * h / 2) / np.sqrt(2 * np.pi), -12, 12)[0]
    moment = quad(lambda h: h * np.exp(S * h - h * h / 2) / np.sqrt(2 * np.pi), -12, 12)[0]
    on = np.exp(prior) * mass / (1 + np.exp(prior) * mass)
    at = respond("real", np.array([[S]]), np.array([prior]))
    assert_allclose(at.on, on)
    assert_allclose(at.mean, on * moment / mass)
    assert_allclose(log_factor("real", np.array([[S]]), np.array([prior])), np.log1p(np.exp(prior) * mass))


@pytest.mark.parametrize("units", ["binary", "real"])
def test_the_slope_is_the_derivative_of_the_mean(units):
    S, prior = np.array([[-2.0, 0.1, 1.5]]), np.array([0.3, -1.0, 0.0])
    step = 1e-6
    up, down = (respond(units, S + e, prior).mean for e in (step, -step))
    assert_allclose(respond(units, S, prior).slope, (up - down) / (2 * step), atol=1e-9)


@pytest.mark.parametrize("units", ["binary", "real"])
def test_drawn_hidden_units_have_their_means(units):
    S, prior = np.full((40_000, 1), 0.8, np.float32), np.array([-0.4])
    drawn = sample_hidden(np.random.default_rng(0), units, S, prior)
    assert_allclose(drawn.mean(), respond(units, S[:1], prior).mean[0, 0], atol=0.04)
    if units == "binary":
        assert_allclose(drawn.mean(), expit(0.4), atol=0.02)


def test_the_saturated_share_counts_rows_by_weight():
    hidden = np.array([[0.01, 0.5], [0.5, 0.5]])
    assert_allclose(saturated_share(hidden, np.array([3.0, 1.0])), 0.375)
    assert saturated_share(np.zeros((3, 0)), np.ones(3)) == 0.0


@pytest.mark.parametrize("dtype", [None, np.float64])
def test_dense_rows_are_a_copy_of_their_type_or_the_one_asked_for(dtype):
    X = np.eye(2, dtype=np.float32)
    for given in (X, csr_array(X)):
        out = dense(given, dtype)
        assert out.dtype == (dtype or np.float32)
        out[0, 1] = 5.0
        assert_array_equal(dense(given), np.eye(2))
