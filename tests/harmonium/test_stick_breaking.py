import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import digamma, zeta

from nongauss.harmonium.objective import expected_log_rest, multinomial_bound, stick_bound
from nongauss.harmonium.updates import stick_log_odds, update_sticks

GAMMA = np.array([[3.0, 2.0], [1.5, 1.0], [4.0, 0.7], [1.0, 1.0]])


def monte_carlo(gamma, n=100_000):
    rng = np.random.default_rng(0)
    pi = np.cumprod(rng.beta(gamma[:, 0], gamma[:, 1], size=(n, len(gamma))), axis=1)
    return np.log1p(-np.minimum(pi, 1 - 1e-16)).mean(axis=0)


@pytest.mark.parametrize("gamma", [GAMMA, np.full((5, 2), [1.0, 1.0]), np.full((4, 2), [200.0, 30.0])])
def test_the_accurate_expectation_agrees_with_draws_and_the_bound_stays_below(gamma):
    drawn = monte_carlo(gamma)
    bound, _ = multinomial_bound(gamma)
    accurate = expected_log_rest(gamma)
    assert_allclose(accurate, drawn, atol=0.01)  # three standard errors of the draws
    assert_allclose(accurate[0], digamma(gamma[0, 1]) - digamma(gamma[0].sum()), atol=1e-4)  # exact
    assert (bound <= drawn + 0.01).all()
    assert_allclose(bound[0], digamma(gamma[0, 1]) - digamma(gamma[0].sum()))


def test_the_accurate_expectation_of_uniform_sticks_is_exact():
    """-sum_m 1 / (m (1 + m)^k) by partial fractions."""
    exact = -(1.0 - np.cumsum([0.0, *(zeta(np.arange(2, 8)) - 1.0)]))
    assert_allclose(expected_log_rest(np.ones((7, 2))), exact, atol=1e-4)


def test_the_update_maximises_the_bound():
    on, n_rows, alpha = np.array([30.0, 18.0, 4.0, 0.5]), 50.0, 1.7
    best = update_sticks(on, n_rows, alpha)

    def loss(flat):
        return -stick_bound(np.exp(flat).reshape(best.shape), on, n_rows, alpha)

    numeric = minimize(loss, np.zeros(best.size), method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-14})
    assert_allclose(stick_bound(best, on, n_rows, alpha), -numeric.fun, atol=1e-4)


def test_the_prior_expects_alpha_features_a_row():
    alpha, T = 2.5, 400
    gamma = np.column_stack([np.full(T, alpha), np.ones(T)])
    pi = np.cumprod(gamma[:, 0] / gamma.sum(axis=1))
    assert_allclose(pi.sum(), alpha, rtol=1e-12)
    odds, _ = stick_log_odds(np.zeros(8), 1000.0, alpha)
    assert (odds < -3).all()  # nobody has them
