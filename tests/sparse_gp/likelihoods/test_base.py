"""What every likelihood owes: expectations against dense integration, derivatives against differences."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from nongauss.core.errors import InputError
from nongauss.core.records import is_persistable, registered_class
from nongauss.estimator.persistence import decode, encode
from nongauss.prob.piecewise import bound
from nongauss.sparse_gp.likelihoods import (
    REGRESSION,
    Bernoulli,
    Beta,
    BetaBinomial,
    Binomial,
    Discretised,
    DiscretisedStudentT,
    Exponential,
    Gamma,
    Gaussian,
    HeteroscedasticGaussian,
    HurdleGamma,
    HurdleLogNormal,
    HurdleNegativeBinomial,
    HurdlePoisson,
    Laplace,
    Likelihood,
    LogNormal,
    Multinomial,
    NegativeBinomial,
    Ordinal,
    Poisson,
    SquarePoisson,
    StudentT,
    VaryingOrdinal,
    Weibull,
    ZeroInflatedNegativeBinomial,
    ZeroInflatedPoisson,
    ZeroOneBeta,
)
from nongauss.sparse_gp.likelihoods.base import LARGEST_EXPONENT, capped_exp, expected_softplus
from nongauss.sparse_gp.likelihoods.hurdle_counts import NegativeBinomialAboveZero, PoissonAboveZero

VARIANCES = (1e-8, 1e-3, 0.1, 1.0, 10.0, 100.0)


class Case(NamedTuple):
    """A likelihood at some parameters, with targets, and the latent means at which to look at each."""

    likelihood: Likelihood
    psi: list[float]
    y: list[float]
    about: list[float]
    label: str = ""


REAL = ([-1.3, 0.0, 40.0], [0.0, 0.0, 0.0])
COUNTS = ([0.0, 3.0, 22026.0], [-1.0, 1.0, 10.0])
SIZES = ([1e-3, 1.0, 50.0], [-4.0, 0.0, 3.0])
SHARES = ([1e-4, 0.3, 1 - 1e-6], [-3.0, -1.0, 5.0])
WHOLE = ([-3.0, 0.0, 12.0], [-3.0, 0.0, 3.0])
AMOUNTS = ([1e-2, 0.0, 1.0, 50.0], [-4.0, -1.0, 0.0, 3.0])
PARTS = ([0.3, 0.0, 1.0], [-1.0, 0.0, 0.0])
FEW = ([1.0, 0.0, 30.0], [0.0, 1.0, 3.0])
ABOVE_ZERO = ([1.0, 3.0, 500.0], [-1.0, 1.0, 6.0])
OF_40 = ([0.0, 7.0, 40.0], [-2.0, -1.0, 3.0])
LEVELS = ([0.0, 1.0, 2.0, 3.0], [-2.0, -1.0, 1.0, 2.0])

CASES = [
    Case(Gaussian(), [np.log(0.1)], *REAL),
    Case(Laplace(), [np.log(0.2)], *REAL),
    Case(StudentT(), [np.log(0.3), np.log(4.0)], *REAL),
    Case(StudentT(), [np.log(0.02), np.log(2.05)], *REAL, "narrow"),
    Case(StudentT(), [np.log(1.0), np.log(200.0)], *REAL, "nearly-gaussian"),
    Case(Exponential(), [], *SIZES),
    Case(Gamma(), [np.log(0.3)], *SIZES),
    Case(Gamma(), [np.log(500.0)], *SIZES, "sharp"),
    Case(Weibull(), [np.log(0.7)], *SIZES),
    Case(LogNormal(centre=0.3, unit=1.7), [np.log(0.1)], *SIZES),
    Case(Discretised(half=0.5), [np.log(0.5)], *WHOLE),
    Case(Discretised(half=0.05), [np.log(0.3)], *WHOLE, "fine"),
    Case(Discretised(half=0.5), [np.log(0.02)], *WHOLE, "sharp"),
    Case(DiscretisedStudentT(half=0.3), [np.log(0.3), np.log(4.0)], *WHOLE),
    Case(Beta(), [np.log(0.2)], *SHARES, "loose"),
    Case(Beta(), [np.log(20.0)], *SHARES),
    Case(Beta(), [np.log(5e3)], *SHARES, "sharp"),
    Case(Poisson(), [], *COUNTS),
    Case(NegativeBinomial(), [np.log(0.5)], *COUNTS),
    Case(NegativeBinomial(), [np.log(1e6)], *COUNTS, "nearly-poisson"),
    Case(PoissonAboveZero(), [], *ABOVE_ZERO),
    Case(NegativeBinomialAboveZero(), [np.log(0.5)], *ABOVE_ZERO),
    Case(SquarePoisson(), [], [0.0, 1.0, 400.0], [1.0, 1.5, 20.0]),
    Case(Binomial(trials=40.0), [], *OF_40),
    Case(BetaBinomial(trials=40.0), [np.log(3.0)], *OF_40),
    Case(BetaBinomial(trials=40.0), [np.log(1e4)], *OF_40, "nearly-binomial"),
    Case(Bernoulli(), [], [0.0, 1.0], [-1.0, 2.0]),
    Case(Bernoulli(expectation="piecewise"), [], [0.0, 1.0], [-1.0, 2.0], "piecewise"),
    Case(Bernoulli(expectation="piecewise_linear"), [], [0.0, 1.0], [-1.0, 2.0], "piecewise_linear"),
    Case(Ordinal(n_classes=4), [-1.0, 0.2, -2.0], *LEVELS),
    Case(Ordinal(n_classes=4, expectation="piecewise"), [-1.0, 0.2, -2.0], *LEVELS, "piecewise"),
    Case(Ordinal(n_classes=3), [-1.0, -9.0], [0.0, 1.0, 2.0], [-2.0, -1.0, 1.0], "closed-gap"),
    Case(Ordinal(n_classes=2), [0.3], [0.0, 1.0], [-1.0, 2.0], "two"),
]
SEVERAL = [
    Case(HeteroscedasticGaussian(), [], *REAL),
    Case(HurdleGamma(), [np.log(3.0)], *AMOUNTS),
    Case(HurdleLogNormal(), [np.log(0.2)], *AMOUNTS),
    Case(ZeroOneBeta(), [np.log(20.0)], *PARTS),
    Case(ZeroInflatedPoisson(), [], *FEW),
    Case(HurdlePoisson(), [], *FEW),
    Case(VaryingOrdinal(n_classes=4), [-1.0, 0.2, -2.0], *LEVELS),
    Case(HurdleNegativeBinomial(), [np.log(2.0)], *FEW),
    Case(ZeroInflatedNegativeBinomial(), [np.log(2.0)], *FEW),
    Case(Multinomial(n_classes=3), [], [0.0, 2.0], [0.0, 1.0]),
    Case(Multinomial(n_classes=3, expectation="one_vs_each"), [], [0.0, 2.0], [0.0, 1.0], "one-vs-each"),
]


def _id(case: Case) -> str:
    return "-".join(filter(None, [case.likelihood.name, case.label]))


def rows(case: Case, variances=VARIANCES):
    """Every target at three means and all variances: y (N,), mean and variance (N, L)."""
    n_latent = case.likelihood.n_latent
    y, shift, variance = (
        part.ravel()
        for part in np.meshgrid(np.arange(len(case.y)), [-2.0, 0.0, 1.5], variances, indexing="ij")
    )
    mean = np.array(case.about)[y] + shift
    tilt = np.linspace(0.0, 0.7, n_latent)
    return np.array(case.y)[y], mean[:, None] + tilt, variance[:, None] * (1.0 + tilt)


def densely(case: Case, y, mean, variance):
    """E log p(y | f) by the trapezoid rule over 26 standard deviations: (N,)."""
    x = np.linspace(-26.0, 26.0, 40_001)
    weight = np.exp(-0.5 * x * x)
    weight /= weight.sum()
    psi = np.array(case.psi)
    return np.array(
        [
            weight @ case.likelihood.log_prob(np.array([t]), (m + np.sqrt(v) * x)[:, None], psi)
            for t, m, v in zip(y, mean[:, 0], variance[:, 0], strict=True)
        ]
    )


def differences(function, step):
    """Derivative at 0 by five points."""
    return (8 * (function(step) - function(-step)) - (function(2 * step) - function(-2 * step))) / (12 * step)


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_the_expectation_matches_dense_integration(case):
    y, mean, variance = rows(case)
    value = case.likelihood.expected_log_prob(y, mean, variance, np.array(case.psi)).value
    exact = densely(case, y, mean, variance)
    if case.likelihood.rule.startswith("piecewise"):  # two bounds at most, each low by so much at most
        assert (exact - value).min() > -1e-10
        assert (exact - value).max() < 2 * bound(20, 2 if case.likelihood.rule == "piecewise" else 1).error
    else:  # a kink or a pole costs the trapezoid rule its accuracy
        limit = {"laplace": 1e-6, "poisson_square": 2e-3}.get(case.likelihood.name, 1e-8)
        assert np.all(np.abs(value - exact) <= limit * (1.0 + np.abs(exact)))


@pytest.mark.parametrize("case", CASES + SEVERAL, ids=_id)
def test_derivatives_match_differences(case):
    likelihood, psi = case.likelihood, np.array(case.psi)
    y, mean, variance = rows(case, VARIANCES[: None if likelihood.n_latent == 1 else -1])
    at = likelihood.expected_log_prob(y, mean, variance, psi, with_params=True)
    size = 1.0 + np.abs(at.value) + 10.0 * y  # of what cancels in the value
    kinked = likelihood.name == "laplace" or likelihood.rule.startswith("piecewise")
    for l, unit in enumerate(np.eye(likelihood.n_latent)):
        step = np.minimum(3e-4, 0.02 * np.sqrt(variance[:, l])) if kinked else np.full(len(y), 3e-4)

        def shifted(h, unit=unit):
            return likelihood.expected_log_prob(y, mean + h[:, None] * unit, variance, psi)

        by_mean = differences(lambda h, move=shifted: move(h).value, step)
        least = 0.2 if likelihood.name == "beta_binomial" else 1e-2  # a narrow normal is given an sd of 5e-4
        limit = 1e-6 * (least + np.abs(by_mean)) + 4e-15 * size / step
        assert np.all(np.abs(at.d_mean[:, l] - by_mean) <= limit)
        # E under N(m, v) obeys the heat equation: d/dv = (1/2) d^2/dm^2, whatever the function
        by_variance = 0.5 * differences(lambda h, l=l, move=shifted: move(h).d_mean[:, l], step)
        rounding = 1e-13 if likelihood.name == "beta_binomial" else 1e-14  # gamma functions cancel
        limit = 1e-6 * (1e-2 + np.abs(by_variance)) + rounding * (1.0 + np.abs(at.d_mean[:, l]) + y) / step
        assert np.all(np.abs(at.d_variance[:, l] - by_variance) <= limit)
    assert at.d_params.shape == (len(y), len(psi))
    for k, unit in enumerate(np.eye(len(psi))):
        by_psi = differences(
            lambda h, u=unit: likelihood.expected_log_prob(y, mean, variance, psi + h * u).value, 1e-3
        )
        limit = 1e-6 * (1.0 + np.abs(by_psi)) + 4e-12 * size + 1e-11 * np.exp(psi[k])
        assert np.all(np.abs(at.d_params[:, k] - by_psi) <= limit)


@pytest.mark.parametrize("case", CASES + SEVERAL, ids=_id)
def test_parameters_cost_nothing_where_they_are_not_asked_for(case):
    y, mean, variance = rows(case)
    psi = np.array(case.psi)
    with_params = case.likelihood.expected_log_prob(y, mean, variance, psi, with_params=True)
    without = case.likelihood.expected_log_prob(y, mean, variance, psi)
    assert without.d_params.shape == (len(y), 0)
    for one, other in zip(with_params[:3], without[:3], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("way", ["quadrature", "monte_carlo"])
@pytest.mark.parametrize("case", CASES + SEVERAL, ids=_id)
def test_points_agree_with_the_rule_of_the_likelihood(case, way):
    if way not in case.likelihood.point_rules or case.label in ("piecewise", "piecewise_linear", "narrow"):
        return
    y, mean, variance = rows(case, (1e-8, 1e-3, 0.1) if way == "quadrature" else (1e-8, 1e-3))
    psi = np.array(case.psi)
    exact = case.likelihood.expected_log_prob(y, mean, variance, psi, with_params=True)
    at = replace(case.likelihood, expectation=way).expected_log_prob(y, mean, variance, psi, with_params=True)
    limit = 1e-6 if way == "quadrature" else 1e-3
    for one, other in zip(at, exact, strict=True):
        scale = 1.0 + np.abs(other)
        assert one.shape == other.shape
        assert np.all(np.abs(one - other) <= limit * scale)


@pytest.mark.parametrize("case", CASES + SEVERAL, ids=_id)
def test_a_wild_trial_of_the_optimiser_stays_finite(case):
    psi, n_latent = np.array(case.psi), case.likelihood.n_latent
    y, m, v = (p.ravel() for p in np.meshgrid(case.y, [-1e4, -700.0, 700.0, 1e4], [1e-10, 1e3, 1e5]))
    mean, variance = (np.repeat(part[:, None], n_latent, axis=1) for part in (m, v))
    at = case.likelihood.expected_log_prob(y, mean, variance, psi, with_params=True)
    assert all(np.isfinite(part).all() for part in at)


@pytest.mark.parametrize("case", CASES + SEVERAL, ids=_id)
def test_first_guesses_are_sane(case):
    likelihood = case.likelihood
    tables = [np.array(case.y), np.array(case.y[:1]), np.full(5, case.y[0]), np.tile(case.y, 3)]
    for y in tables:
        likelihood.check(y)
        offset, psi = likelihood.start(y, np.ones(len(y)))
        assert offset.shape == (likelihood.n_latent,)
        assert psi.shape == (len(case.psi),)
        box = np.array(likelihood.bounds()).reshape(-1, 2)
        assert np.all((box[:, 0] <= psi) & (psi <= box[:, 1]))
        prior, slope = likelihood.log_prior(psi)
        assert np.isfinite(prior)
        assert slope.shape == psi.shape
        mean, variance = likelihood.first_moments(y, np.tile(offset, (len(y), 1)))
        assert mean.shape == variance.shape == (len(y), likelihood.n_latent)
        at = likelihood.expected_log_prob(y, mean, variance, psi)
        if likelihood.name.startswith("zero_inflated"):  # of a zero neither kind is certain
            assert np.all(at.d_variance[y > 0] < 0)
        else:  # every site starts positive, but for those of functions that a row tells nothing of
            silent = (at.d_mean == 0) & (at.d_variance == 0)
            assert np.all((at.d_variance < 0) | silent) or likelihood.rule.startswith("piecewise")


@pytest.mark.parametrize("case", CASES + SEVERAL, ids=_id)
def test_a_weight_of_two_is_the_row_twice(case):
    y = np.array(case.y)
    weight = np.arange(1.0, len(y) + 1.0)
    weighted = case.likelihood.start(y, weight)
    repeated = case.likelihood.start(np.repeat(y, weight.astype(int)), np.ones(int(weight.sum())))
    for one, other in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_priors_have_the_derivatives_that_they_say():
    for case in CASES:
        psi = np.array(case.psi) + 0.3
        for k, unit in enumerate(np.eye(len(psi))):
            slope = differences(lambda h, c=case, p=psi, u=unit: c.likelihood.log_prior(p + h * u)[0], 1e-3)
            assert case.likelihood.log_prior(psi)[1][k] == pytest.approx(slope, abs=1e-9)


@pytest.mark.parametrize("case", CASES + SEVERAL, ids=_id)
def test_likelihoods_can_be_saved(case):
    tensors = {}
    tree = encode(case.likelihood, tensors, "likelihood")
    assert is_persistable(type(case.likelihood))
    assert decode(tree, tensors, registered_class) == case.likelihood


def test_a_way_that_is_not_there_is_named_with_those_that_are():
    for kind in (*REGRESSION.values(), Bernoulli, Multinomial, Ordinal):
        with pytest.raises(InputError, match=f"'magic' is not available for the {kind.name} likelihood"):
            kind(expectation="magic")
    with pytest.raises(InputError, match="choose 'auto' or one of 'closed_form'"):
        Laplace(expectation="monte_carlo")


def test_numbers_and_labels_are_asked_for_by_the_right_name():
    at = np.zeros((3, 1)), np.ones((3, 1)), np.zeros(1)
    with pytest.raises(TypeError, match="poisson likelihood predicts numbers"):
        Poisson().probabilities(*at)
    with pytest.raises(TypeError, match="bernoulli likelihood predicts labels"):
        Bernoulli().predictive(*at)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(bad):
    for kind in (*REGRESSION.values(), Bernoulli, Multinomial, Ordinal):
        with pytest.raises(InputError, match=rf"{kind.name} likelihood needs y .*, got {bad:g} in row 1"):
            kind().check(np.array([0.5 if kind.name == "beta" else 1.0, bad]))


def test_the_capped_exponential_goes_on_as_its_tangent():
    x = np.array([-1e3, 0.0, LARGEST_EXPONENT, LARGEST_EXPONENT + 2.0, 1e6])
    value, slope = capped_exp(x)
    np.testing.assert_array_equal(value[:3], np.exp(x[:3]))
    assert value[3] == pytest.approx(3.0 * np.exp(LARGEST_EXPONENT))
    assert slope[3] == slope[4] == np.exp(LARGEST_EXPONENT)
    assert np.isfinite(value).all()


def test_softplus_without_variance_is_the_limit():
    mean = np.array([-800.0, -3.0, 0.0, 2.0, 800.0])
    for one, other in zip(
        expected_softplus(mean, np.zeros(5)), expected_softplus(mean, np.full(5, 1e-12)), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-11)
