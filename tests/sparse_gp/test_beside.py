"""What stands beside the target: trials, and rows that are there only because of their value."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nongauss import SparseGPRegressor
from nongauss.core.errors import InputError
from nongauss.sparse_gp.beside import within
from nongauss.sparse_gp.likelihoods import Gamma, Gaussian, Truncated

X = np.linspace(-2.0, 2.0, 60)[:, None]
SHARE = 1.0 / (1.0 + np.exp(-np.sin(2.0 * X[:, 0])))


def fitted(likelihood, y, **beside):
    return SparseGPRegressor(likelihood, n_inducing=12, tol=0.02, random_state=0).fit(X, y, **beside)


def test_counts_out_of_trials_are_learned_as_shares():
    trials = np.full(60, 400.0)
    y = np.random.default_rng(0).binomial(400, SHARE).astype(float)
    model = fitted("binomial", y, trials=trials)
    np.testing.assert_allclose(model.predict(X), SHARE, atol=0.04)
    law = model.predict_distribution(X, trials=trials)
    np.testing.assert_allclose(law.mean, 400.0 * model.predict(X), rtol=1e-6)
    assert np.isfinite(law.log_prob(y)).all()
    assert law[3].log_prob(401.0)[0] == -np.inf


def test_trials_are_asked_for_and_checked():
    y = np.ones(60)
    with pytest.raises(InputError, match="binomial likelihood needs trials"):
        fitted("binomial", y)
    with pytest.raises(InputError, match="trials are for the binomial likelihoods, not for gaussian"):
        fitted("gaussian", y, trials=y)
    with pytest.raises(InputError, match=r"y must be at most the trials of its row, got 3 in row 2"):
        fitted("binomial", np.r_[1.0, 2.0, 3.0, np.ones(57)], trials=2.0)
    with pytest.raises(InputError, match=r"trials must be whole numbers of at least 1, got 0\.5 in row 0"):
        fitted("binomial", y, trials=0.5)


def test_what_is_known_is_moved_within_the_limits_of_a_fit():
    """Both ends of an exact value, one of a limit; none out of what the row was selected by."""
    inf = np.inf
    known = np.array([[-9.0, -9.0], [1.0, 9.0], [-inf, -9.0], [9.0, inf], [0.5, 0.5]])
    expected = [[-2.0, -2.0], [1.0, 2.0], [-inf, -2.0], [2.0, inf], [0.5, 0.5]]
    np.testing.assert_array_equal(within(known, (-2.0, 2.0)), expected)
    np.testing.assert_array_equal(within(known[:, :1], (-2.0, 2.0))[:, 0], [-2.0, 1.0, -inf, 2.0, 0.5])
    selected = np.array([[9.0, 9.0, 8.0, inf], [9.0, inf, 1.0, inf]])
    np.testing.assert_array_equal(within(selected, (-2.0, 2.0)), [[8.0, 8.0, 8.0, inf], [2.0, inf, 1.0, inf]])


@pytest.mark.filterwarnings("ignore::nongauss.core.errors.NongaussWarning")
def test_a_value_far_below_that_is_known_is_no_wrong_limit():
    y = np.random.default_rng(0).laplace(size=60)
    y[:2], upper = [-1e9, 1e9], np.where(y > 1.0, np.inf, y)
    upper[:2] = y[:2]
    model = fitted("laplace", y, y_upper=upper)
    assert np.abs(model.predict(X)).max() < 5.0


@pytest.mark.parametrize(
    ("likelihood", "psi", "law"),
    [
        (Gaussian(), [np.log(0.49)], lambda f: stats.norm(f, 0.7)),
        (Gamma(), [np.log(3.0)], lambda f: stats.gamma(3.0, scale=np.exp(f) / 3.0)),
    ],
)
def test_a_selected_row_has_the_density_given_its_selection(likelihood, psi, law):
    y = np.array([[1.0, 1.0, 0.5, 2.0], [0.6, np.inf, 0.5, np.inf], [1.2, 1.2, -np.inf, np.inf]])
    f, psi = np.array([[0.2], [-1.0], [0.3]]), np.array(psi)
    of = law(f[:, 0])
    exact = [
        of.logpdf(1.0)[0] - np.log(of.cdf(2.0) - of.cdf(0.5))[0],
        of.logsf(0.6)[1] - of.logsf(0.5)[1],
        of.logpdf(1.2)[2],
    ]
    np.testing.assert_allclose(Truncated(of=likelihood).log_prob(y, f, psi), exact, rtol=1e-9)


def test_the_expectation_of_a_selected_row_matches_dense_integration():
    y = np.array([[1.0, 1.0, 0.5, 2.0], [0.6, np.inf, 0.5, np.inf]])
    mean, variance, psi = np.array([[0.1], [-0.4]]), np.array([[0.8], [2.0]]), np.array([np.log(3.0)])
    seen = Truncated(of=Gamma())
    z = np.linspace(-12.0, 12.0, 8001)
    weight = np.exp(-0.5 * z * z) / np.exp(-0.5 * z * z).sum()
    exact = [
        weight @ seen.log_prob(np.tile(row, (len(z), 1)), (m + np.sqrt(v) * z)[:, None], psi)
        for row, m, v in zip(y, mean[:, 0], variance[:, 0], strict=True)
    ]
    got = seen.expected_log_prob(y, mean, variance, psi, with_params=True)
    np.testing.assert_allclose(got.value, exact, rtol=1e-8)

    def value(h, k):
        return seen.expected_log_prob(
            y, mean + h * (k == 0), variance + h * (k == 1), psi + h * (k == 2)
        ).value

    for k, part in enumerate((got.d_mean[:, 0], got.d_variance[:, 0], got.d_params[:, 0])):
        np.testing.assert_allclose(part, (value(1e-4, k) - value(-1e-4, k)) / 2e-4, rtol=1e-5, atol=1e-7)


def test_selected_rows_are_predicted_as_if_all_had_been_seen():
    rng = np.random.default_rng(1)
    y = 3.0 + np.sin(2.0 * X[:, 0]) + rng.normal(size=(8, 60))
    y, rows = y[y > 3.0], np.tile(X, (8, 1))[(y > 3.0).ravel()]
    model = SparseGPRegressor(n_inducing=8, n_scales=1, tol=0.02, random_state=0)
    with_selection = model.fit(rows, y, truncation=3.0).predict(X)
    without = model.fit(rows, y).predict(X)
    truth = 3.0 + np.sin(2.0 * X[:, 0])
    assert np.abs(with_selection - truth).mean() < 0.25
    assert np.abs(without - truth).mean() > 0.4


def test_rows_that_could_not_be_there_are_named():
    with pytest.raises(InputError, match=r"y must be above truncation.*got 1 in row 0"):
        fitted("gaussian", np.r_[1.0, np.full(59, 4.0)], truncation=2.0)
    with pytest.raises(InputError, match=r"y must be at most truncation_upper.*got 4 in row 1"):
        fitted("gaussian", np.r_[1.0, np.full(59, 4.0)], truncation_upper=2.0)
    with pytest.raises(InputError, match="truncation and truncation_upper are not for the poisson"):
        fitted("poisson", np.ones(60), truncation=0.0)


def test_a_row_out_of_this_world_has_the_prior():
    y = np.sin(X[:, 0])
    model = fitted("gaussian", y)
    mean, sd = model.predict(np.array([[1e200], [-1e300]]), return_std=True)
    np.testing.assert_allclose(mean, y.mean(), atol=1e-6)
    assert np.isfinite(sd).all()
    assert sd.min() > 0.1
