import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.likelihoods import (
    Bernoulli,
    Gaussian,
    HeteroscedasticGaussian,
    Laplace,
    Multinomial,
    Ordinal,
    Poisson,
    StudentT,
)
from nongauss.sparse_gp.objective import bound_at
from nongauss.sparse_gp.params import GaussianSites, KernelBlocks, first_sites
from nongauss.sparse_gp.updates import HyperObjective, converge_q
from sparse_gp.small import differences, model, params, rows


def labelled(n_classes):
    data = rows(60)
    return data._replace(y=np.digitize(data.y, np.linspace(-0.6, 0.6, n_classes - 1)).astype(float))


CASES = [
    (Laplace(), rows(60)),
    (StudentT(), rows(60)),
    (HeteroscedasticGaussian(), rows(60)),
    (Poisson(), rows(60)._replace(y=np.random.default_rng(0).poisson(3.0, 60).astype(float))),
    (Bernoulli(), labelled(2)),
    (Ordinal(n_classes=4), labelled(4)),
    (Multinomial(n_classes=3), labelled(3)),
]


def made(likelihood, data):
    offset, psi = likelihood.start(data.y, data.weight)
    own = model(likelihood, offset=offset)
    return KernelBlocks(own, params(own, psi, data.X[:10]), data), first_sites(own, data, psi)


@pytest.mark.parametrize(("likelihood", "data"), CASES, ids=lambda c: getattr(c, "name", ""))
def test_the_bound_never_falls_and_comes_to_rest(likelihood, data):
    blocks, sites = made(likelihood, data)
    bounds = [converge_q(blocks, sites, 0.0, steps).bound for steps in range(0, 40, 4)]
    assert (np.diff(bounds) >= -1e-9).all()
    assert bounds[-1] - bounds[-2] < 1e-3
    assert np.isfinite(bounds).all()


@pytest.mark.parametrize(
    ("likelihood", "data"),
    [
        pytest.param(*case, marks=pytest.mark.gate if case[0].name in ("bernoulli", "ordinal") else ())
        for case in CASES
        if case[0].name != "multinomial"
    ],
    ids=lambda c: getattr(c, "name", ""),
)
def test_at_rest_the_sites_are_where_the_derivatives_say(likelihood, data):
    blocks, sites = made(likelihood, data)
    at = converge_q(blocks, sites, 0.0, 200)
    precision = -2.0 * data.weight[:, None] * at.expectation.d_variance
    linear = data.weight[:, None] * at.expectation.d_mean + precision * at.centred
    again = bound_at(blocks, at.sites._replace(linear=linear, precision=precision))
    assert_allclose(again.bound, at.bound, atol=1e-5)


def test_one_step_is_exact_for_gaussian_noise_from_any_start():
    data = rows(30)
    blocks, sites = made(Gaussian(), data)
    at = converge_q(blocks, sites, 0.0)
    other = sites._replace(linear=sites.linear + 3.0, precision=2.0 * sites.precision)
    assert bound_at(blocks, other).bound < at.bound
    assert_allclose(converge_q(blocks, other, 0.0).bound, at.bound, rtol=1e-12)


def test_half_way_between_sites():
    data = rows(5)
    sites = made(Gaussian(), data)[1]
    other = sites._replace(linear=sites.linear + 2.0)
    assert_allclose(sites.towards(other, 0.5).linear, sites.linear + 1.0)


def smooth_rows(n=60, noise=1e-3):
    """A smooth curve with hardly any noise: where every row is an inducing input K_zz is nearly singular."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-2, 2, (n, 2)), axis=0)
    y = np.sin(1.5 * X[:, 0]) + noise * rng.standard_t(4, n)
    return GPRows(X, y, np.ones(n), np.zeros(n))


def test_q_of_a_heavy_tail_comes_to_the_same_rest_from_anywhere():
    """Steps that follow the curvature at q alone overshot, and stuck tens of nats apart."""
    likelihood, psi = Laplace(), [-6.0]
    data = smooth_rows()
    own = model(likelihood, offset=np.zeros(1))
    blocks = KernelBlocks(own, params(own, psi, data.X), data)
    first = first_sites(own, data, np.asarray(psi))
    wild = np.exp(np.random.default_rng(1).normal(size=first.precision.shape))
    starts = [first, GaussianSites(first.linear * wild, first.precision * wild)]
    found = [converge_q(blocks, start, 1e-10, 300).bound for start in starts]
    assert_allclose(found[0], found[1], atol=1e-2)


def test_the_gradient_is_right_where_every_row_is_an_inducing_input():
    """Sums over L^-1 K_zx lose no digits; those over K_zx left tenths of a nat of noise in the bound."""
    data = smooth_rows(40)
    own = model(Laplace(), offset=np.zeros(1))
    at = params(own, [-5.0], data.X)
    bound = HyperObjective(own, data, at, False, False)
    for _ in range(60):
        _, gradient, _ = bound(at.flat(False))
    expected = differences(lambda flat: bound(flat)[0], at.flat(False), 1e-3)
    assert_allclose(gradient, expected, rtol=2e-2, atol=0.05)


def test_derivatives_by_the_parameters_are_asked_once_an_evaluation(monkeypatch):
    """Those of a law by points are differences, which cost four times the rest of an expectation."""
    data = rows(60)
    own = model(StudentT())
    start = params(own, [np.log(0.3), np.log(5.0)], data.X[:10])
    objective = HyperObjective(own, data, start, True, False)
    asked, plain = [], StudentT.expected_log_prob

    def counted(self, y, mean, variance, psi, with_params=False):
        asked.append(with_params)
        return plain(self, y, mean, variance, psi, with_params)

    monkeypatch.setattr(StudentT, "expected_log_prob", counted)
    objective(start.flat(True))
    assert sum(asked) == 1 < len(asked)
