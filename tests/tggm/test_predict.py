"""The mixture that stands for a row's density: exact moments, and how near its shape is."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats

from nongauss.core.device import replace
from nongauss.tables.sparse import SparseRows
from nongauss.tggm import predict
from nongauss.tggm.blocks import BLOCK, in_blocks
from nongauss.tggm.predict import N_POINTS, Ensemble
from tggm.small import (
    CONFIG,
    closed_form_log_likelihood,
    deep_member,
    ensemble_of,
    for_labels,
    member,
    one_unit,
)

BP = replace(CONFIG, method="bp")


def ensemble(*members, config=CONFIG, inflation=1.0, skewness=1.0, centre=0.0, scale=1.0, spread=1.0):
    n_outputs = len(members[0].b1)
    centre, scale = np.full(n_outputs, centre), np.full(n_outputs, scale)
    return Ensemble(ensemble_of(*members), config, inflation, skewness, centre, scale, spread_kept=spread)


def inputs(n_rows, n_inputs=2):
    return np.random.default_rng(3).normal(size=(n_rows, n_inputs))


def cdf_of(made, X, y):
    """Distribution function of one output: rows X, points y (R,), to (N, R)."""
    log_weights, means, sds = made.components(X)
    z = (y[None, None, :] - means) / sds
    return np.einsum("nc,ncr->nr", np.exp(log_weights), special.ndtr(z))


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("skewness", "spread"), [(1.0, 1.0), (0.25, 0.5), (0.0, 0.0)])
def test_the_mixture_has_the_exact_moments(n_outputs, skewness, spread):
    members = [member(seed, 12, n_outputs) for seed in range(3)]
    made = ensemble(*members, inflation=1.3, skewness=skewness, centre=5.0, scale=-2.0, spread=spread)
    X = inputs(7)
    mean, variance = made.moments(X)
    log_weights, means, sds = made.components(X)
    assert means.shape == sds.shape == (7, made.n_components, n_outputs)
    weights = np.exp(log_weights)[:, :, None]
    assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    middle = (weights * means).sum(axis=1)
    assert_allclose(middle, mean, rtol=1e-10)
    assert_allclose((weights * (sds**2 + (means - middle[:, None]) ** 2)).sum(axis=1), variance, rtol=1e-10)


def test_two_layers_keep_their_moments_in_the_mixture():
    members = [deep_member(seed, (6, 5), 2) for seed in range(2)]
    made = ensemble(*members, inflation=1.3, skewness=0.5)
    X = inputs(4)
    mean, variance = made.moments(X)
    _, means, sds = made.components(X)
    assert_allclose(means.mean(axis=1), mean, rtol=1e-10)
    assert_allclose((sds**2 + means**2).mean(axis=1) - mean**2, variance, rtol=1e-9)


def test_the_moments_are_those_of_the_members():
    """Against scipy's truncated normal; members average, and their spread adds to the variance."""
    members = [member(seed, 4) for seed in range(2)]
    X = inputs(3)
    means, variances = [], []
    for params in members:
        c, sd = X @ params.W0.T + params.b0, np.exp(params.log_sd0)
        unit = stats.truncnorm(-c / sd, np.inf, loc=c, scale=sd)
        means.append(unit.mean() @ params.W1.T + params.b1)
        variances.append(unit.var() @ params.W1.T**2 + np.exp(2 * params.log_sd1))
    for spread in (1.0, 0.5):
        mean, variance = ensemble(*members, inflation=2.0, centre=1.0, scale=3.0, spread=spread).moments(X)
        assert_allclose(mean, 1.0 + 3.0 * np.mean(means, axis=0), rtol=1e-9)
        total = 2.0 * np.mean(variances, axis=0) + spread * np.var(means, axis=0)
        assert_allclose(variance, 9.0 * total, rtol=1e-9)


def extended_skew_normal_cdf(params, y):
    """P(Y <= y) at x = 1 of a model of one unit: y given h is normal, h is integrated by quadrature."""
    c, sd = params.W0[0, 0], np.exp(params.log_sd0[0])
    nodes, weights = np.polynomial.legendre.leggauss(600)
    low, high = max(0.0, c - 9 * sd), max(c, 0.0) + 9 * sd
    h = low + 0.5 * (high - low) * (nodes + 1)
    mass = weights * stats.norm.pdf(h, c, sd)
    inner = special.ndtr((y[:, None] - params.b1 - params.W1[0, 0] * h) / np.exp(params.log_sd1[0]))
    return inner @ mass / mass.sum()


def worst_error(params, made):
    """Largest error of the distribution function at x = 1."""
    mean, variance = made.moments(np.ones((1, 1)))
    y = mean[0, 0] + np.sqrt(variance[0, 0]) * np.linspace(-4, 6, 401)
    return np.abs(cdf_of(made, np.ones((1, 1)), y)[0] - extended_skew_normal_cdf(params, y)).max()


def test_the_quadrature_of_these_tests_has_the_closed_form_as_its_slope():
    params = one_unit(-0.5, 1.0, 2.0, 0.3)
    y = np.array([0.7, 1.4])
    slope = (extended_skew_normal_cdf(params, y + 1e-5) - extended_skew_normal_cdf(params, y - 1e-5)) / 2e-5
    exact = [np.exp(closed_form_log_likelihood(params, np.ones(1), np.array([one]))) for one in y]
    assert_allclose(slope, exact, rtol=1e-7)


# sd of the noise as a multiple of the unit's own sd, and the largest error of the distribution function
@pytest.mark.parametrize(("ratio", "limit"), [(1.0, 8e-3), (0.3, 0.02), (0.1, 0.035)])
def test_one_skewed_unit_is_the_worst_case(ratio, limit):
    for c in (-10.0, -3.0, -1.0, 0.0, 0.5, 2.0):
        sd = stats.truncnorm(-c, np.inf, loc=c).std()
        params = one_unit(c, 1.0, 1.0, ratio * sd)
        assert worst_error(params, ensemble(params)) < limit


def test_the_more_skewness_is_kept_the_nearer_to_the_model():
    params = one_unit(-1.0, 1.0, 1.0, 0.2)
    errors = [worst_error(params, ensemble(params, skewness=share)) for share in (1.0, 0.75, 0.25, 0.0)]
    assert errors == sorted(errors)
    assert errors[0] < 0.15 * errors[-1]


def test_many_units_are_integrated_too():
    """Twenty units of one kind against a convolution on a grid."""
    n_units, c, noise = 20, -0.5, 0.1
    params = one_unit(c, 1.0, 1.0, noise)._replace(
        W0=np.full((n_units, 1), c),
        b0=np.zeros(n_units),
        W1=np.full((1, n_units), 0.3),
        log_sd0=np.zeros(n_units),
    )
    step = 2e-3
    t = step * (np.arange(3000) + 0.5)
    unit = stats.norm.pdf(t / 0.3, c, 1.0)
    transform = np.fft.rfft(unit / unit.sum(), 2**15) ** n_units
    sum_ = np.fft.irfft(transform, 2**15)
    at = step * (np.arange(2**15) + 0.5 * n_units)
    y = np.linspace(0.5, 7.0, 60)
    exact = special.ndtr((y[:, None] - at) / noise) @ sum_
    assert np.abs(cdf_of(ensemble(params), np.ones((1, 1)), y)[0] - exact).max() < 0.01


@pytest.mark.parametrize("method", ["ml", "bp"])
def test_blocks_of_any_size_give_the_same_answer(method):
    made = ensemble(member(0, 3), member(1, 3), config=replace(CONFIG, method=method))
    X = inputs(9000)
    few, many = made.moments(X[:3]), made.moments(X)
    last = made.moments(X[-1:])
    for short, long, end in zip(few, many, last, strict=True):
        assert long.shape == (9000, 1)
        assert_allclose(short, long[:3], rtol=1e-13)
        assert_allclose(end, long[-1:], rtol=1e-13)
    for short, long in zip(made.components(X[:3]), made.components(X[:600]), strict=True):
        assert_allclose(short, long[:3], rtol=1e-13)
    assert many[0].dtype == np.float64


def test_several_outputs_share_their_units():
    """Joint density of two outputs against the exact one, and their correlation."""
    params = member(2, 1, 2, noise=0.4)._replace(W1=np.array([[1.5], [-1.0]]))
    made = ensemble(params)
    x = np.array([0.3, -0.2])
    log_weights, means, sds = made.components(x[None])
    for y in ([1.0, -0.7], [0.2, 0.3], [2.0, -1.5]):
        terms = log_weights[0] + stats.norm.logpdf(np.array(y), means[0], sds[0]).sum(axis=1)
        exact = closed_form_log_likelihood(params, x, np.array(y))
        assert_allclose(special.logsumexp(terms), exact, atol=0.1)
    hidden = np.cov(means[0].T, bias=True)
    assert_allclose(hidden[0, 1], -np.sqrt(hidden[0, 0] * hidden[1, 1]), rtol=1e-9)


def test_several_outputs_of_several_units_are_about_as_correlated_as_they_should():
    params = member(5, 6, 2, noise=0.1)
    x = np.array([0.3, -0.2])
    _, means, _ = ensemble(params).components(x[None])
    c, sd = params.W0 @ x + params.b0, np.exp(params.log_sd0)
    hidden = stats.truncnorm(-c / sd, np.inf, loc=c, scale=sd).var()
    exact = params.W1 @ np.diag(hidden) @ params.W1.T
    got = np.cov(means[0].T, bias=True)
    assert_allclose(np.diag(got), np.diag(exact), rtol=1e-9)
    assert abs(got[0, 1] - exact[0, 1]) < 0.05 * np.sqrt(exact[0, 0] * exact[1, 1])


def test_bp_is_one_gaussian_a_member():
    members = [member(0, 3), member(1, 3)]
    made = ensemble(*members, config=BP, inflation=1.5)
    X = inputs(4)
    log_weights, means, sds = made.components(X)
    assert means.shape == (4, 2, 1)
    assert made.n_components == 2
    assert_allclose(log_weights, -np.log(2.0))
    for e, params in enumerate(members):
        assert_allclose(sds[:, e, 0], np.sqrt(1.5) * np.exp(params.log_sd1[0]), rtol=1e-12)
    assert_allclose(means.mean(axis=1), made.moments(X)[0], rtol=1e-12)
    assert ensemble(*members).n_components == 2 * N_POINTS


def test_points_are_the_same_every_time_and_inside_the_cube():
    points = predict._points(5)
    assert points.shape == (N_POINTS, 5)
    assert ((points > 0) & (points < 1)).all()
    predict._points.cache_clear()
    assert_array_equal(predict._points(5), points)


def test_sparse_rows_of_about_one_length_share_a_program_and_wide_ones_go_in_small_blocks():
    labels = replace(CONFIG, n_classes=2)
    params = ensemble_of(for_labels(member(0, 3, n_inputs=70)))
    made = Ensemble(params, labels, np.ones(1), 1.0, np.zeros(1), np.ones(1))
    dense = inputs(3, 70) * (np.arange(70) < 5)
    index = np.tile(np.arange(70), (3, 1))
    expected = made.classes(dense)
    before = predict._hidden._cache_size()
    for n_cells in (5, 6, 60):
        X = SparseRows(index[:, :n_cells], dense[:, :n_cells])
        for got, answer in zip(made.classes(X), expected, strict=True):
            assert_allclose(got, answer, rtol=1e-12)
    assert predict._hidden._cache_size() == before + 1

    def seen(_, rows):
        sizes.append(len(rows))
        return (rows,)

    for n_inputs, lengths in ((70, [8192, 512]), (100_000, [512] * 17)):
        sizes = []
        wide = params._replace(W0=np.zeros((1, 3, n_inputs)))
        in_blocks(seen, BLOCK, wide, np.zeros((8200, 1)), stays=False)
        assert sizes == lengths
