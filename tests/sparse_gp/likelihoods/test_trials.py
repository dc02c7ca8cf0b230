"""Counts out of trials, with a hurdle or a square link: probabilities, moments, draws against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from nongauss.sparse_gp.likelihoods import BetaBinomial, Binomial, HurdlePoisson, SquarePoisson
from nongauss.sparse_gp.likelihoods.hurdle_counts import NegativeBinomialAboveZero, PoissonAboveZero
from nongauss.sparse_gp.likelihoods.square import expected_log_square

F = np.array([[-1.5], [0.2], [2.0]])
Y = np.array([0.0, 3.0, 12.0])
TRIALS = np.array([1.0, 7.0, 12.0])


def test_probabilities_of_trials_match_scipy():
    share = expit(F[:, 0])
    got = Binomial(trials=TRIALS)
    np.testing.assert_allclose(got.log_prob(Y, F, np.zeros(0)), stats.binom.logpmf(Y, TRIALS, share))
    np.testing.assert_allclose(got.cdf(Y, F, np.zeros(0)), stats.binom.cdf(Y, TRIALS, share))
    got, p = BetaBinomial(trials=TRIALS), 4.0
    exact = stats.betabinom(TRIALS.astype(int), p * share, p * (1 - share))
    np.testing.assert_allclose(got.log_prob(Y, F, np.log([p])), exact.logpmf(Y.astype(int)), rtol=1e-9)
    np.testing.assert_allclose(got.cdf(Y, F, np.log([p])), exact.cdf(Y.astype(int)), rtol=1e-9)
    assert got.log_prob(Y + 30.0, F, np.log([p])).tolist() == [-np.inf] * 3


@pytest.mark.parametrize(("likelihood", "psi"), [(Binomial(), []), (BetaBinomial(), [np.log(3.0)])])
def test_laws_of_trials_are_exact(likelihood, psi):
    mean, variance = F, np.array([[0.3], [1.2], [0.1]])
    law = likelihood.with_trials(TRIALS).predictive(mean, variance, np.array(psi))
    each = np.exp([[law.log_prob(np.minimum(k, TRIALS))[i] for k in range(13)] for i in range(3)])
    for i, n in enumerate(TRIALS.astype(int)):
        k, p = np.arange(n + 1), each[i, : n + 1]
        assert p.sum() == pytest.approx(1.0, abs=1e-9)
        assert law.mean[i] == pytest.approx(k @ p, rel=1e-9)
        assert law.variance[i] == pytest.approx(k**2 @ p - (k @ p) ** 2, rel=1e-8)
    draws = law.sample(4000, 0)
    assert (draws <= TRIALS[:, None]).all()
    np.testing.assert_allclose(draws.mean(axis=1), law.mean, atol=4 * law.std.max() / 63)
    some = law[[2, 0]]
    np.testing.assert_allclose(some.mean, law.mean[[2, 0]])
    np.testing.assert_allclose(some.cdf([3.0, 0.0]), law.cdf([0.0, 9.0, 3.0])[[2, 0]])
    assert (law.quantile(1 - 1e-12) <= TRIALS).all()


def test_a_share_of_one_trial_is_a_probability():
    law = Binomial().predictive(np.array([[0.4]]), np.array([[1.0]]), np.zeros(0))
    assert law.prob(1, 1)[0] == pytest.approx(law.mean[0], rel=1e-9)


@pytest.mark.parametrize(
    ("likelihood", "psi", "of"),
    [
        (PoissonAboveZero(), [], lambda mu: stats.poisson(mu)),
        (NegativeBinomialAboveZero(), [np.log(0.7)], lambda mu: stats.nbinom(0.7, 0.7 / (0.7 + mu))),
    ],
)
def test_counts_above_zero_are_those_of_the_law_without_its_zeros(likelihood, psi, of):
    psi, y = np.array(psi), np.array([1.0, 3.0, 12.0])
    whole = of(np.exp(F[:, 0]))
    some = 1.0 - whole.pmf(0)
    np.testing.assert_allclose(likelihood.log_prob(y, F, psi), whole.logpmf(y) - np.log(some), rtol=1e-9)
    np.testing.assert_allclose(likelihood.cdf(y, F, psi), (whole.cdf(y) - whole.pmf(0)) / some, rtol=1e-9)
    mean, variance = likelihood.conditional_moments(F, psi)
    np.testing.assert_allclose(mean, whole.mean() / some, rtol=1e-9)
    np.testing.assert_allclose(variance, (whole.var() + whole.mean() ** 2) / some - mean**2, rtol=1e-9)
    draws = likelihood.draw(np.tile(F, (1, 40_000))[..., None], psi, np.random.default_rng(0))
    assert draws.min() == 1.0
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=5 * np.sqrt(variance.max() / 40_000))
    for k in (1, 2):
        share = np.exp(likelihood.log_prob(np.array([float(k)]), F, psi))
        np.testing.assert_allclose((draws == k).mean(axis=1), share, atol=0.012)


def test_next_to_no_rate_above_zero_is_one():
    far = np.array([[-60.0], [-800.0]])
    for likelihood, psi in ((PoissonAboveZero(), np.zeros(0)), (NegativeBinomialAboveZero(), np.zeros(1))):
        np.testing.assert_allclose(likelihood.log_prob(np.ones(2), far, psi), 0.0, atol=1e-9)
        assert likelihood.conditional_moments(far, psi)[0] == pytest.approx(1.0)
        assert (likelihood.draw(far, psi, np.random.default_rng(0)) == 1.0).all()


def test_a_hurdle_may_have_fewer_zeros_than_the_counts():
    law = HurdlePoisson().predictive(np.array([[0.0, -9.0]]), np.full((1, 2), 1e-9), np.zeros(0))
    assert law.prob(0, 0)[0] == pytest.approx(expit(-9.0), rel=1e-6)
    assert law.is_discrete
    assert np.exp([law.log_prob(float(k))[0] for k in range(30)]).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("m", "v"), [(0.0, 1.0), (0.7, 0.3), (-3.0, 2.0), (5.0, 0.2), (30.0, 1.0), (9.0, 1e-6)]
)
def test_the_expected_log_of_a_square_is_exact(m, v):
    law = stats.norm(m, np.sqrt(v))
    ends = m - 12 * np.sqrt(v), m + 12 * np.sqrt(v)
    inner = [0.0] if ends[0] < 0 < ends[1] else []
    exact = sum(
        integrate.quad(lambda f: np.log(f * f) * law.pdf(f), a, b, limit=300, epsabs=1e-12)[0]
        for a, b in zip([ends[0], *inner], [*inner, ends[1]], strict=True)
    )
    at = np.array([m]), np.array([v])
    assert expected_log_square(*at)[0][0] == pytest.approx(exact, rel=1e-8, abs=1e-8)


def test_square_counts_predict_the_moments_of_a_squared_normal():
    law = SquarePoisson().predictive(np.array([[1.2]]), np.array([[0.4]]), np.zeros(0))
    p = np.exp([law.log_prob(float(k))[0] for k in range(80)])
    k = np.arange(80)
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    assert law.mean[0] == pytest.approx(1.2**2 + 0.4) == pytest.approx(k @ p)
    assert law.variance[0] == pytest.approx(k**2 @ p - (k @ p) ** 2, rel=1e-8)
