"""Censored rows and whole numbers: against dense integration, brute force, a Tobit fit, simulated laws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.optimize import minimize

import nongauss
from nongauss import SparseGPRegressor
from nongauss.core.errors import InputError
from nongauss.sparse_gp.kernels import parse
from nongauss.sparse_gp.likelihoods import (
    REGRESSION,
    Beta,
    Censored,
    Exponential,
    Gamma,
    Gaussian,
    HeteroscedasticGaussian,
    Laplace,
    LogNormal,
    StudentT,
    Weibull,
    heavy_tailed,
)
from nongauss.sparse_gp.likelihoods.interval import expected_log_interval, log_interval
from nongauss.sparse_gp.objective import bound_at
from nongauss.sparse_gp.params import KernelBlocks, first_sites
from nongauss.sparse_gp.updates import converge_q
from sparse_gp.small import model, params, rows

INF = np.inf
REAL = [(-INF, -1.0), (0.3, INF), (-0.2, 0.5), (3.0, 9.0), (-INF, INF)]
POSITIVE = [(0.0, 0.2), (2.0, INF), (0.5, 0.6), (0.0, INF)]
SHARE = [(0.0, 0.2), (0.7, 1.0), (0.3, 0.31)]
CASES = [
    (Gaussian(), [np.log(0.2)], REAL),
    (Laplace(), [np.log(0.4)], REAL),
    (StudentT(), [np.log(0.3), np.log(4.0)], REAL),
    (Exponential(), [], POSITIVE),
    (Gamma(), [np.log(4.0)], POSITIVE),
    (Weibull(), [np.log(1.7)], POSITIVE),
    (LogNormal(centre=0.2, unit=1.5), [np.log(0.2)], POSITIVE),
    (Beta(), [np.log(9.0)], SHARE),
]
SEVERAL = [*CASES, (HeteroscedasticGaussian(), [], REAL)]


def _id(value):
    return getattr(value, "name", "")


@pytest.mark.parametrize(("likelihood", "psi", "ends"), CASES, ids=_id)
def test_an_interval_has_the_probability_of_its_density(likelihood, psi, ends):
    f, psi = np.array([[0.2]]), np.array(psi)
    for low, high in ends:
        lowest, highest = {"real": (-60.0, 60.0), "unit": (1e-9, 1.0 - 1e-9)}.get(
            likelihood.support, (1e-9, 400.0)
        )
        y = np.linspace(max(low, lowest), min(high, highest), 400_001)
        mass = np.trapezoid(np.exp(likelihood.log_prob(y, np.broadcast_to(f, (len(y), 1)), psi)), y)
        found = log_interval(likelihood, np.array([low]), np.array([high]), f, psi)
        assert_allclose(np.exp(found), mass, rtol=1e-3)


@pytest.mark.parametrize(("likelihood", "psi", "ends"), CASES, ids=_id)
@pytest.mark.parametrize("sd", [1e-5, 0.05, 0.7, 2.0])
def test_expectations_match_dense_integration(likelihood, psi, ends, sd):
    psi = np.array(psi)
    low, high = np.repeat(np.array(ends).T, 2, axis=1)
    mean = np.tile([[-1.0], [0.8]], (len(ends), 1))
    z = np.linspace(-12.0, 12.0, 20_001)
    weight = np.exp(-0.5 * z * z) / np.exp(-0.5 * z * z).sum()
    at = expected_log_interval(likelihood, low, high, mean, np.full_like(mean, sd**2), psi, False)
    exact = [
        weight @ log_interval(likelihood, np.array([a]), np.array([b]), m + sd * z[:, None], psi)
        for a, b, m in zip(low, high, mean, strict=True)
    ]
    limit = 1e-4 if likelihood.name == "laplace" else 1e-6  # a kink in its second derivative
    assert_allclose(at.value, exact, rtol=limit, atol=limit)


@pytest.mark.parametrize(("likelihood", "psi", "ends"), SEVERAL, ids=_id)
def test_derivatives_match_differences(likelihood, psi, ends):
    psi, n_latent = np.array(psi), likelihood.n_latent
    low, high = np.array(ends).T
    mean, variance = np.full((len(ends), n_latent), 0.3), np.full((len(ends), n_latent), 0.3)

    def value(m=mean, v=variance, p=psi):
        return expected_log_interval(likelihood, low, high, m, v, p, False).value

    at = expected_log_interval(likelihood, low, high, mean, variance, psi, True)
    h, limit = 1e-3, 3e-3 if likelihood.name == "laplace" else 1e-4  # a kink in its second derivative
    for l, unit in enumerate(np.eye(n_latent)):
        assert_allclose(
            at.d_mean[:, l], (value(mean + h * unit) - value(mean - h * unit)) / (2 * h), atol=limit
        )
        by_v = (value(v=variance + h * unit) - value(v=variance - h * unit)) / (2 * h)
        assert_allclose(at.d_variance[:, l], by_v, atol=10 * limit)
    for k, unit in enumerate(np.eye(len(psi))):
        by_psi = (value(p=psi + h * unit) - value(p=psi - h * unit)) / (2 * h)
        assert_allclose(at.d_params[:, k], by_psi, rtol=1e-4, atol=1e-5)


def test_nothing_known_says_nothing():
    at = expected_log_interval(
        Gaussian(), np.array([-INF]), np.array([INF]), np.zeros((1, 1)), np.ones((1, 1)), np.zeros(1), True
    )
    assert_allclose([at.value[0], at.d_mean[0, 0], at.d_variance[0, 0]], 0.0, atol=1e-12)


def test_rows_whose_y_is_known_are_not_changed():
    y = np.array([-0.4, 0.1, 2.0])
    mean, variance, psi = np.full((3, 1), 0.2), np.full((3, 1), 0.4), np.array([np.log(0.2)])
    plain = Gaussian().expected_log_prob(y, mean, variance, psi, with_params=True)
    at = Censored(of=Gaussian()).expected_log_prob(np.stack([y, y], 1), mean, variance, psi, with_params=True)
    for one, other in zip(at, plain, strict=True):
        assert_array_equal(one, other)


def test_the_bound_is_below_the_evidence_of_a_tiny_table_and_near_it():
    """log p(y) of four rows, two of them limits, by a sum over a grid of all their latent values."""
    data = rows(4, weighted=False)
    y = np.array([[0.3, 0.3], [0.5, INF], [-INF, -0.6], [0.1, 0.1]])
    data = data._replace(y=y)
    own, psi = model(Censored(of=Gaussian())), [np.log(0.3)]
    at = params(own, psi, data.X)
    blocks = KernelBlocks(own, at, data)
    q = converge_q(blocks, first_sites(own, data, np.array(psi)), 1e-10, 200)
    K = parse("matern52").forward(at.thetas[0], own.space, data.X, data.X)[0]
    grid = np.linspace(-6.0, 6.0, 41)
    f = np.array(list(itertools.product(grid, repeat=4)))
    prior = stats.multivariate_normal(np.zeros(4), K + 1e-8 * K[0, 0] * np.eye(4)).logpdf(f)
    sd = np.sqrt(0.3)
    like = stats.norm.logpdf(y[[0, 3], 0], f[:, [0, 3]], sd).sum(axis=1)
    like += stats.norm.logsf(0.5, f[:, 1], sd) + stats.norm.logcdf(-0.6, f[:, 2], sd)
    evidence = np.logaddexp.reduce(prior + like) + 4 * np.log(grid[1] - grid[0])
    assert evidence - 0.05 < q.bound < evidence + 1e-3
    assert bound_at(blocks, q.sites).bound == pytest.approx(q.bound)


def line(n, seed):
    """Inputs, a straight line with noise .7, cut off at 1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    z = 1.5 * X[:, 0] + 0.7 * rng.normal(size=n)
    return X, z, (z > 1.0).astype(int)


def test_a_straight_line_is_that_of_a_tobit_fit():
    X, z, above = line(400, 0)
    y = np.minimum(z, 1.0)

    def loss(p):
        m, sd = p[0] + p[1] * X[:, 0], np.exp(p[2])
        return -np.where(above == 1, stats.norm.logsf(y, m, sd), stats.norm.logpdf(y, m, sd)).sum()

    tobit = minimize(loss, [0.0, 1.0, 0.0]).x
    fitted = SparseGPRegressor("gaussian", kernel="linear + constant", random_state=0).fit(
        X, y, censoring=above
    )
    at = np.array([[-2.0], [0.0], [2.0]])
    assert_allclose(fitted.predict(at), tobit[0] + tobit[1] * at[:, 0], atol=0.05)
    assert_allclose(np.sqrt(fitted.likelihood_params_["noise_variance"]), np.exp(tobit[2]), rtol=0.05)


@pytest.mark.parametrize("name", ["gaussian", "student_t", "heteroscedastic"])
def test_the_true_mean_and_spread_come_back(name):
    X, z, above = line(400, 0)
    at, target, _ = line(2000, 1)
    truth = stats.norm(1.5 * at[:, 0], 0.7)
    fitted = SparseGPRegressor(name, n_inducing=40, random_state=0).fit(
        X, np.minimum(z, 1.0), censoring=above
    )
    law = fitted.predict_distribution(at)
    assert np.mean(truth.logpdf(target) - law.log_prob(target)) < 0.03
    assert np.sqrt(np.mean((law.mean - truth.mean()) ** 2)) < 0.2
    inside = (target >= law.quantile(0.05)) & (target <= law.quantile(0.95))
    assert abs(inside.mean() - 0.9) < 0.04
    plain = SparseGPRegressor("gaussian", n_inducing=40, random_state=0).fit(X, np.minimum(z, 1.0))
    assert np.mean(plain.log_density(at, target)) < np.mean(law.log_prob(target)) - 0.2


def positive(name, n, seed):
    """Inputs, targets of a law, and the truth."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    f = np.sin(2 * X[:, 0])
    laws = {
        "gamma": stats.gamma(3, scale=np.exp(f) / 3),
        "exponential": stats.expon(scale=np.exp(f)),
        "weibull": stats.weibull_min(1.7, scale=np.exp(f)),
        "log_normal": stats.lognorm(0.5, scale=np.exp(f)),
        "beta": stats.beta(*(10 / (1 + np.exp(side * f)) for side in (-1, 1))),
    }
    return X, laws[name].rvs(random_state=rng), laws[name]


@pytest.mark.parametrize(
    "name",
    [
        "weibull",
        "log_normal",
        *(pytest.param(n, marks=pytest.mark.gate) for n in ("gamma", "exponential", "beta")),
    ],
)
def test_positive_laws_and_shares_come_back(name):
    """From rows cut off above, and from intervals."""
    X, z, _ = positive(name, 500, 0)
    at, target, truth = positive(name, 2000, 1)
    top = 0.7 if name == "beta" else 1.5
    fitted = SparseGPRegressor(name, n_inducing=30, random_state=0)
    law = fitted.fit(X, np.minimum(z, top), censoring=(z > top).astype(int)).predict_distribution(at)
    assert np.mean(truth.logpdf(target) - law.log_prob(target)) < 0.03
    if name != "beta":
        low = 0.4 * np.floor(z / 0.4)
        law = fitted.fit(X, low, y_upper=low + 0.4).predict_distribution(at)
        assert np.mean(truth.logpdf(target) - law.log_prob(target)) < 0.05


def test_a_mirrored_target_is_the_mirror_image():
    """The target is mirrored inside where it is skewed to the left; limits turn round with it."""
    X, z, above = line(150, 0)
    y = np.minimum(z, 1.0)
    made = SparseGPRegressor("gaussian", n_inducing=15, random_state=0)
    one = made.fit(X, y, censoring=above).predict_interval(X)
    other = made.fit(X, -y, censoring=-above).predict_interval(X)
    assert_allclose(other[:, ::-1], -one, atol=1e-3)
    upper = made.fit(X, y, y_upper=np.where(above == 1, INF, y)).predict_interval(X)
    assert_allclose(upper, one, atol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_parts_and_files(tmp_path):
    pd = pytest.importorskip("pandas")
    X, z, above = line(150, 0)
    y, weight = np.minimum(z, 1.0), np.random.default_rng(0).integers(0, 3, 150)
    made = SparseGPRegressor("gaussian", n_inducing=10, max_iter=15, random_state=0)
    weighted = made.fit(X, y, sample_weight=weight, censoring=above).predict(X)
    repeated = made.fit(
        *(np.repeat(part, weight, axis=0) for part in (X, y)), censoring=np.repeat(above, weight)
    )
    assert_allclose(repeated.predict(X), weighted, rtol=1e-6)
    nongauss.save(made, tmp_path / "m")
    assert_array_equal(nongauss.load(tmp_path / "m").predict(X), made.predict(X))
    frame = pd.DataFrame(X, columns=["a"]).assign(y=y, above=above)
    here = made.fit(frame[["a"]], y, censoring=above).predict(frame[["a"]])
    (tmp_path / "t").mkdir()
    frame[:70].to_parquet(tmp_path / "t" / "0.parquet")
    frame[70:].to_parquet(tmp_path / "t" / "1.parquet")
    there = made.fit(tmp_path / "t", "y", censoring="above").predict(frame[["a"]])
    assert_allclose(there, here, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("gaussian", {"censoring": [0, 1, 2, 0]}, "censoring must be -1 .* got 2 in row 2"),
        ("gaussian", {"censoring": [0, 1]}, r"censoring has shape \(2,\), expected \(4,\)"),
        ("gaussian", {"censoring": ["a"] * 4}, "censoring must be numbers"),
        ("gaussian", {"y_upper": [1.0, 1.0, 3.0, 4.0]}, "y_upper must be at least y, got 1 in row 1"),
        ("gaussian", {"y_upper": [1.0, np.nan, 3.0, 4.0]}, "y_upper must be at least y, got nan in row 1"),
        ("gaussian", {"y_upper": [1.0, 2.0, 3.0, 4.0], "censoring": [0] * 4}, "give one of them"),
        ("gaussian", {"censoring": [1, 1, 1, 1]}, "Every row is right-censored"),
        ("poisson", {"censoring": [0, 1, 0, 0]}, "not for the poisson likelihood"),
        ("hurdle_gamma", {"censoring": [0, 1, 0, 0]}, "not for the hurdle_gamma likelihood"),
        ("discretised", {"censoring": [0, 1, 0, 0]}, "not for the discretised likelihood"),
        ("beta", {"censoring": [1, 1, 1, 0]}, "y must be between 0 and 1, .* got 2 in row 1"),
    ],
)
def test_limits_that_cannot_be_read_are_told_with_their_row(name, given, message):
    with pytest.raises(InputError, match=message):
        SparseGPRegressor(name).fit(np.arange(4.0)[:, None], [1.0, 2.0, 3.0, 4.0], **given)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("side", "name"), [(1, "right"), (-1, "left")])
def test_the_side_where_all_limits_lie_is_that_of_y_as_it_came(sign, side, name):
    """A fit may mirror the target: its scale is negative where a mirrored table has the same fit."""
    y = sign * np.array([1.0, 2.0, 3.0, 7.0])
    with pytest.raises(InputError, match=f"Every row is {name}-censored"):
        SparseGPRegressor().fit(np.arange(4.0)[:, None], y, censoring=np.full(4, side))


def test_a_wrong_target_beside_limits_has_its_own_row():
    y = [0.0, 1.0, -2.0, 4.0]
    with pytest.raises(InputError, match=r"above 0, got -2 in row 2"):
        SparseGPRegressor("gamma").fit(np.arange(4.0)[:, None], y, censoring=[1, 0, 0, 0])


def whole(name, n, seed, spread):
    """Inputs, whole numbers, and their true log probabilities."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    f = spread * (np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]) - 4.0
    law = stats.norm(f, 0.3 * spread) if name == "discretised" else stats.t(3, f, 0.3 * spread)
    y = np.round(law.rvs(random_state=rng))
    return X, y, np.log(law.cdf(y + 0.5) - law.cdf(y - 0.5))


@pytest.mark.parametrize("spread", [1.5, 30.0])
@pytest.mark.parametrize("name", ["discretised", "discretised_student_t"])
def test_whole_numbers_come_back(name, spread):
    X, y, _ = whole(name, 500, 0, spread)
    at, target, truth = whole(name, 2000, 1, spread)
    fitted = SparseGPRegressor(name, n_inducing=40, random_state=0).fit(X, y)
    law = fitted.predict_distribution(at)
    assert np.mean(truth - law.log_prob(target)) < 0.05
    unit = fitted.likelihood_params_
    sd = np.sqrt(unit["noise_variance"]) if name == "discretised" else unit["scale"]
    assert_allclose(sd, 0.3 * spread, rtol=0.25)
    few = fitted.predict_distribution(at[:20])
    assert_allclose(sum(np.exp(few.log_prob(k)) for k in np.arange(-900.0, 900.0)), 1.0, atol=1e-3)
    assert (law.sample(3, random_state=0) % 1 == 0).all()


def test_whole_numbers_of_any_support_are_saved(tmp_path):
    X, y, _ = whole("discretised", 60, 0, 1.5)
    with pytest.warns(match="largest number"):
        fitted = SparseGPRegressor("discretised", n_inducing=6, max_iter=4, random_state=0).fit(X, y)
    nongauss.save(fitted, tmp_path / "m")
    again = nongauss.load(tmp_path / "m").predict_distribution(X)
    assert_array_equal(again.log_prob(y), fitted.predict_distribution(X).log_prob(y))
    assert set(REGRESSION["discretised"]().param_names) == set(fitted.likelihood_params_)


def test_tails_are_taken_at_the_ends_that_limit_something_and_once(monkeypatch):
    """Student's tails are most of the time of a censored fit; an end at infinity has none to take."""
    likelihood, psi = StudentT(), np.log([1e-3, 4.0])
    low, high = np.full((3, 1), 0.2), np.full((3, 1), INF)
    f = np.linspace(-1.0, 1.0, 11)[None, :, None] + np.zeros((3, 1, 1))
    z = (0.2 - f[..., 0]) / 1e-3
    expected = np.where(z < 0, np.log1p(-stats.t.cdf(z, 4.0)), stats.t.logsf(z, 4.0))
    numbers, plain = [], heavy_tailed.stdtr

    def counted(df, z):
        numbers.append(np.size(z))
        return plain(df, z)

    monkeypatch.setattr(heavy_tailed, "stdtr", counted)
    assert_allclose(log_interval(likelihood, low, high, f, psi), expected, rtol=1e-9)
    assert sum(numbers) == f.size
