"""What every law of the package serves: scores, some of its rows, frames, probabilities of intervals."""

import pickle
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.metrics import mean_squared_error
from tests.predictive import laws
from tests.predictive.test_combined import Hurdle, gaussians

from nongauss.core.errors import InputError
from nongauss.predictive.cells import CellDistribution
from nongauss.predictive.clipped import ClippedDistribution
from nongauss.predictive.combined import by_rows, mixture
from nongauss.predictive.composed import LogNormalDistribution, PointMassDistribution, RoundedDistribution
from nongauss.predictive.crps import by_cdf, by_quantiles
from nongauss.predictive.law import GridDistribution
from nongauss.predictive.recalibrated import recalibrated
from nongauss.sparse_gp import likelihoods
from nongauss.tables.learn import as_source, learn
from nongauss.tables.learn_margins import learn_margins

M, V = np.array([-0.4, 0.3, 1.1]), np.array([0.05, 0.4, 0.9])
SHARES = np.array([0.3, 0.7])


def several_gaussians(n_components):
    """Components of unlike widths, some of weight 0."""
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=(3, n_components)), rng.uniform(0.2, 2.0, (3, n_components))
    weight = rng.dirichlet(np.ones(n_components), 3)
    weight[:, 0] = 0.0
    with np.errstate(divide="ignore"):
        return gaussians(mean, sd, weight / weight.sum(axis=1, keepdims=True))


def two_outputs():
    """A mixture over two outputs, of which each is looked at alone."""
    from nongauss.predictive.mixture import GaussianMixtureDistribution

    mean = np.stack([M, 10.0 * M], axis=1)

    def components(rows):
        return np.zeros((len(rows), 1)), mean[rows, None], np.full((len(rows), 1, 2), 0.7)

    return GaussianMixtureDistribution(mean, np.full((3, 2), 0.49), components, squeeze=False)


def masses(name, mean):
    """The law of a likelihood with masses, of which three functions are known."""
    likelihood = getattr(likelihoods, name)()
    latent = np.stack([mean, 0.5 - mean, mean + 0.2], axis=1)[:, : likelihood.n_latent]
    psi = np.full(len(likelihood.bounds()), 0.8)
    return likelihood.predictive(latent, np.full(latent.shape, 0.3), psi)


def poisson_log_prob(y, f):
    return stats.poisson.logpmf(y, np.exp(f))


def plain_log_prob(y, f):
    return -0.5 * (y - f) ** 2


def grid(support):
    """A law of which only a function is known."""
    return GridDistribution(poisson_log_prob if support == "count" else plain_log_prob, support, M, V)


def cells(x):
    """The law of missing cells of a column that holds x, by a few normals of its scores."""
    encoder = learn(as_source(pd.DataFrame({"x": x}), None, None), "a test", None).encoder
    (margin,), _ = learn_margins(encoder, encoder.raw(pd.DataFrame({"x": x})), np.ones(len(x)))
    mean = np.array([[-1.0, 0.0, 1.5], [-0.5, 0.4, 1.0]])
    return CellDistribution.of_scores(margin, mean, np.full_like(mean, 0.6))


CATALOGUE = {
    "gaussian": lambda: laws.gaussian(centre=3.0, scale=-2.0)(M, V),
    "two latent components": lambda: laws.gaussian()(np.stack([M, M + 2]), np.stack([V, V])),
    "a few gaussians": lambda: several_gaussians(7),
    "many gaussians": lambda: several_gaussians(400),
    "two outputs": two_outputs,
    "laplace": lambda: laws.laplace(centre=1.0, scale=-3.0)(M, V),
    "student": lambda: laws.student_t()(M, V),
    "exponential": lambda: laws.exponential(M, V),
    "gamma": lambda: laws.gamma(0.7)(M, V),
    "beta": lambda: laws.beta(4.0)(M, V / 9),
    "weibull": lambda: laws.law(likelihoods.Weibull, 1.5)(M, V),
    "log-normal": lambda: LogNormalDistribution(laws.gaussian()(np.stack([M, M + 1]), np.stack([V, V]))),
    "poisson": lambda: laws.poisson(M + 1, V),
    "many counts": lambda: laws.poisson(M + 4, 0.2 * V),
    "negative binomial": lambda: laws.negative_binomial(0.4)(M + 2, 0.2 * V),
    "rounded": lambda: RoundedDistribution(laws.gaussian(centre=-5.0, scale=3.0)(M, V)),
    "point": lambda: PointMassDistribution(2.0, 3),
    "hurdle gamma": lambda: masses("HurdleGamma", M),
    "hurdle log-normal": lambda: masses("HurdleLogNormal", M),
    "zero-one beta": lambda: masses("ZeroOneBeta", M),
    "zero-inflated": lambda: masses("ZeroInflatedPoisson", M + 2),
    "of one's own": lambda: grid("real"),
    "count of one's own": lambda: grid("count"),
    "two families": lambda: mixture([laws.gamma(2.0)(M, V / 9), laws.exponential(M + 1, V / 9)], SHARES),
    "two unlike rows": lambda: by_rows(
        [laws.student_t()(M[:2], V[:2]), laws.laplace()(M[2:], V[2:])], [np.array([2, 0]), np.array([1])]
    ),
    "recalibrated": lambda: recalibrated(laws.gamma(2.0)(M, V / 9), several_gaussians(4)),
    "recalibrated counts": lambda: recalibrated(laws.poisson(M + 2, V / 9), several_gaussians(4)),
    "recalibrated gaussian": lambda: recalibrated(laws.gaussian()(M, V), several_gaussians(4)),
    "cells of numbers": lambda: cells(np.random.default_rng(0).gamma(2.0, size=300)),
    "cells of few values": lambda: cells(np.random.default_rng(0).poisson(2.0, 300).astype(float)),
    "limited": lambda: ClippedDistribution(laws.student_t()(M, V), -1.0, 1.5),
    "recalibrated limited": lambda: recalibrated(
        ClippedDistribution(laws.gaussian()(M, V), -1.0, 1.5), several_gaussians(4)
    ),
    "clipped": lambda: ClippedDistribution(laws.gaussian()(M, V), -0.8, 1.5),
    "a law a test wrote": lambda: Hurdle(np.array([0.2, 0.5, 0.9]), 0.8),
}


@lru_cache
def made(name):
    """The law, which no test changes."""
    return CATALOGUE[name]()


@lru_cache
def quantile(name, level):
    """Quantiles, which cost the most."""
    return made(name).quantile(level)


EVERY = pytest.mark.parametrize("name", CATALOGUE)


def integral(law, y):
    """The score of one row by its definition, from 3,000 points, close where it is dense."""
    low, middle, high = law.quantile(np.array([1e-7, 0.5, 1.0 - 1e-7])).reshape(3, -1)[:, 0]
    if law.is_discrete:
        k = np.arange(low - 1.0, max(high, y) + 2.0)
        below = law[np.zeros(len(k), int)].cdf(k)
        return float(((below - (k >= y)) ** 2).sum())
    width = float(np.ravel(law.std)[0]) / 3.0 + 1e-9
    ends = np.arcsinh((np.array([low, high]) - middle) / width)
    spaced = middle + width * np.sinh(np.linspace(*ends, 3_001))
    x = np.unique(np.concatenate([spaced, [y], law.atoms]))
    middle = 0.5 * (x[1:] + x[:-1])
    shape = (len(middle), *law.mean.shape[1:])
    at = np.broadcast_to(middle.reshape(-1, *(1,) * (len(shape) - 1)), shape)
    below = law[np.zeros(len(middle), int)].cdf(at).reshape(len(middle), law.mean[:1].size)[:, 0]
    return float(((below - (middle >= y)) ** 2 * np.diff(x)).sum())


@EVERY
@pytest.mark.parametrize("level", [0.02, 0.6, 0.999])
def test_crps_is_the_integral_that_defines_it(name, level):
    law, y = made(name), quantile(name, level)
    found = law.crps(y)
    assert found.shape == law.mean.shape
    n = 2
    expected = integral(law[n], np.ravel(y[n])[0])
    spread = float(np.ravel(law.std)[0]) + 1e-3
    assert_allclose(np.ravel(found[n])[0], expected, rtol=2e-5, atol=2e-6 * spread)


@EVERY
def test_some_rows_say_what_the_rows_say(name):
    law, y = made(name), quantile(name, 0.7)
    for rows in (-1, [2, 0, 0], np.array([False, True, True])):
        chosen = np.atleast_1d(np.arange(3)[rows])
        own = law[rows]
        assert len(own) == len(chosen)
        assert (own.is_discrete, type(own)) == (law.is_discrete, type(law)) or name == "two unlike rows"
        for say in (lambda d, at: d.cdf(at), lambda d, at: d.log_prob(at), lambda d, at: d.crps(at)):
            assert_allclose(say(own, y[chosen]), say(law, y)[chosen], rtol=1e-10, atol=1e-13)
        assert_allclose(own.mean, law.mean[chosen])
        assert_allclose(own.variance, law.variance[chosen])
        assert own.sample(2, 0).shape == (len(chosen), 2, *law.mean.shape[1:])
    assert_allclose(law[1:2].quantile(0.7), y[1:2], rtol=1e-8)
    assert [len(row) for row in law] == [1, 1, 1]
    assert len(law[1:]) == 2
    assert len(law[np.zeros(3, bool)]) == 0
    with pytest.raises(IndexError):
        law[3]
    with pytest.raises(IndexError):
        law[[[0, 1]]]


@EVERY
def test_probability_of_an_interval_is_its_share_of_the_draws(name):
    law, low, high = made(name), quantile(name, 0.2), quantile(name, 0.7)
    found = law.prob(low, high)
    draws = law.sample(4000, 1)
    held = ((draws >= low[:, None] - 1e-9) & (draws <= high[:, None] + 1e-9)).mean(axis=1)
    assert_allclose(found, held, atol=0.03)  # four standard errors
    assert_allclose(law.prob(-np.inf, high), law.cdf(high), atol=1e-12)
    assert_allclose(law.prob(-np.inf, np.inf), 1.0)
    if law.is_discrete:
        assert_allclose(law.prob(low, low), np.exp(law.log_prob(low)), rtol=1e-6, atol=1e-6)
        return
    assert_allclose(found, law.cdf(high) - law.cdf(low) + law.prob(low, low), atol=1e-12)
    for atom in law.atoms:
        assert_allclose(law.prob(atom, atom), np.exp(law.log_prob(atom)), rtol=2e-4)  # what rounds to it
    if not law.atoms:
        assert_allclose(law.prob(low, low), 0.0, atol=1e-12)


@EVERY
def test_a_frame_has_what_the_law_says(name):
    law = CATALOGUE[name]()
    law.index = pd.Index(["a", "b", "c"])
    frame = law[[2, 0]].to_frame((0.1, 0.5))
    assert frame.index.tolist() == ["c", "a"]
    if name == "two outputs":
        assert frame.columns.tolist()[3:5] == [(0, "q_0.5"), (1, "mean")]
        frame = frame[1]
        pick = (slice(None), 1)
    else:
        pick = (slice(None),)
    assert frame.columns.tolist() == ["mean", "sd", "q_0.1", "q_0.5"]
    assert_allclose(frame["mean"], law.mean[[2, 0]][pick])
    assert_allclose(frame["sd"], law.std[[2, 0]][pick])
    assert_allclose(frame["q_0.5"], quantile(name, 0.5)[[2, 0]][pick], rtol=1e-8)


def test_closed_forms_of_the_usual_laws():
    y = np.array([-0.3, 0.8, 4.0])
    z = (y - M) / 0.7
    law = gaussians(M[:, None], np.full((3, 1), 0.7))
    by_formula = 0.7 * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert_allclose(law.crps(y), by_formula, rtol=1e-12)  # Gneiting et al., Monthly Weather Review 133, 2005
    sure = laws.exponential(M, np.full(3, 1e-16))
    rate, at = np.exp(-M), np.abs(y)
    exponential = at - 2 / rate * -np.expm1(-rate * at) + 0.5 / rate  # |y| - 2 F(y) / rate + 1 / (2 rate)
    assert_allclose(sure.crps(at), exponential, rtol=1e-6)
    k = np.arange(200.0)
    below = stats.poisson.cdf(k, np.exp(M + 1)[:, None])
    counts = np.array([0.0, 2.0, 11.0])
    summed = ((below - (k >= counts[:, None])) ** 2).sum(axis=1)
    assert_allclose(laws.poisson(M + 1, np.full(3, 1e-16)).crps(counts), summed, rtol=1e-6)
    assert_allclose(laws.poisson(M + 1, np.full(3, 1e-16)).crps(counts + 0.25).shape, (3,))


@pytest.mark.parametrize("n_components", [1, 3, 400])
def test_closed_forms_are_what_the_distribution_function_says(n_components):
    law = several_gaussians(n_components + 1)
    for y in (-8.0, 0.3, 40.0):
        assert_allclose(law.crps(y), by_cdf(law, np.full(3, y)), rtol=1e-6)
    log = LogNormalDistribution(several_gaussians(min(n_components, 3) + 1))
    for y in (-8.0, 0.3, 40.0):
        assert_allclose(log.crps(y), by_cdf(log, np.full(3, y)), rtol=1e-5)


def test_quantiles_alone_give_the_score_to_a_thousandth():
    law = several_gaussians(3)
    for y in (-3.0, 0.2, 9.0):
        assert_allclose(by_quantiles(law.quantile, np.full(3, y)), law.crps(y), rtol=2e-3)


def test_wide_laws_of_whole_numbers_need_few_of_them():
    """Of a million whole numbers some hundred are looked at, and none of the sum is lost."""
    asked = []

    class Counted(PointMassDistribution):
        is_discrete = True
        mean = np.zeros(1)

        def _take(self, rows):
            return Counted(0.0, len(rows))

        def quantile(self, q):
            return stats.nbinom.ppf(q, 5, 1e-5)[None]

        def cdf(self, y):
            asked.append(np.size(y))
            return stats.nbinom.cdf(y, 5, 1e-5)

    k = np.arange(3_000_000.0)
    below = stats.nbinom.cdf(k, 5, 1e-5)
    for y in (12.0, 400_123.0):
        found = by_cdf(Counted(0.0, 1), np.array([y]))
        assert_allclose(found, ((below - (k >= y)) ** 2).sum(), rtol=1e-6)
    assert sum(asked) < 4_000


@pytest.mark.parametrize("name", ["gaussian", "log-normal", "gamma", "negative binomial", "hurdle gamma"])
def test_a_score_beside_the_law_is_the_distance_to_it(name):
    """Far from a law a unit more of distance is a unit more of score."""
    law = CATALOGUE[name]()
    far = law.quantile(1.0 - 1e-9).max() + np.array([1e3, 2e3])
    assert_allclose(np.diff([law.crps(at) for at in far], axis=0), 1e3, rtol=1e-8)


def test_what_cannot_be_asked_is_said():
    law = CATALOGUE["gaussian"]()
    with pytest.raises(InputError, match=r"lower must not be above upper: got 2.0 and 1.0 in row 0"):
        law.prob(2.0, 1.0)
    with pytest.raises(InputError, match="missing value in row 1"):
        law.crps([0.0, np.nan, 0.0])
    with pytest.raises(InputError, match="q must be"):
        law.to_frame((0.5, 2.0))


@EVERY
def test_another_process_gets_the_same_law(name):
    law = made(name)
    again = pickle.loads(pickle.dumps(law))
    assert_array_equal(again.mean, law.mean)
    assert_array_equal(again.variance, law.variance)
    assert_array_equal(again.cdf(0.7), law.cdf(0.7))
    assert_array_equal(again.log_prob(1.0), law.log_prob(1.0))
    assert_array_equal(again[[2, 0]].quantile([0.1, 0.8]), law[[2, 0]].quantile([0.1, 0.8]))
    assert_array_equal(again.sample(2, random_state=0), law.sample(2, random_state=0))


@EVERY
def test_of_no_rows_nothing_is_said(name):
    law = made(name)[[]]
    outputs = law.mean.shape[1:]
    assert (
        law.mean.shape == law.variance.shape == law.cdf(1.0).shape == law.quantile(0.5).shape == (0, *outputs)
    )
    assert law.quantile([0.1, 0.8]).shape == law.interval(0.9).shape == (0, 2, *outputs)
    assert law.sample(3).shape == (0, 3, *outputs)
    assert law.crps(np.empty((0, *outputs))).shape == (0, *outputs)
    assert law.log_prob(np.empty((0, *outputs))).shape == (0,)
    assert len(law.to_frame()) == len(law[:5]) == 0


@EVERY
@pytest.mark.parametrize("far", [1e300, -1e300])
def test_what_is_too_far_to_be_told_from_impossible_is_no_nan(name, far):
    law = made(name)
    for said in (law.log_prob(far), law.cdf(far), law.survival(far)):
        assert not np.isnan(said).any()


@EVERY
def test_no_array_stands_for_a_law(name):
    with pytest.raises(InputError, match="take its `mean`"):
        np.asarray(made(name), dtype=float)
    with pytest.raises(InputError, match="take its `mean`"):
        mean_squared_error([1.0, 2.0, 3.0], made(name))
    with pytest.raises(ValueError, match="sequence"):
        np.asarray(made(name)).astype(float)
    assert len(list(made(name))) == 3


@EVERY
def test_arrays_and_tables_may_hold_laws(name):
    law = made(name)
    held = np.array([law, law], dtype=object)
    assert held.shape == (2,)
    assert held[0] is law
    assert pd.Series([law, law])[1] is law
    assert not pd.isnull(law)
    assert np.float64(1.0) != law
    assert law in [1, law]
