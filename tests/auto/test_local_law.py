"""The local law of residuals: by hand, as a density, and on laws that are known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid
from scipy.stats import norm
from tests.predictive import laws

from nongauss.auto import forest
from nongauss.auto.local_law import fit_local
from nongauss.predictive.combined import by_rows, mixture
from nongauss.predictive.composed import LogNormalDistribution
from nongauss.predictive.mixture import GaussianMixtureDistribution


def gaussian(mean, sd):
    mean, sd = np.asarray(mean, float)[:, None], np.asarray(sd, float)[:, None]
    log_weight = np.zeros_like(mean)

    def components(rows):
        return log_weight[rows], mean[rows, :, None], sd[rows, :, None]

    return GaussianMixtureDistribution(mean, sd**2, components, squeeze=True, n_components=1)


@pytest.fixture(autouse=True, scope="module")
def _few_trees():
    before = forest.N_TREES
    forest.N_TREES = 60
    yield
    forest.N_TREES = before


@pytest.fixture(scope="module")
def two_humps():
    """y = x_1 +- 1 + noise of sd .15, with a base that knows x_1 and the overall spread only."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 2))
    side = np.where(rng.random(400) < 0.5 + 0.4 * X[:, 1], 1.0, -1.0)
    y = X[:, 0] + side + 0.15 * rng.normal(size=400)
    train, new = slice(0, 300), slice(300, 400)
    found = fit_local(X[train], gaussian(X[train, 0], np.full(300, 1.0)), y[train], np.ones(300), 0)
    share = 0.5 + 0.4 * X[new, 1]
    truth = np.log(
        share * norm.pdf(y[new], X[new, 0] + 1, 0.15) + (1 - share) * norm.pdf(y[new], X[new, 0] - 1, 0.15)
    )
    return X[new], y[new], found, truth


def test_two_humps_are_seen_where_they_are(two_humps):
    X, y, found, truth = two_humps
    base = gaussian(X[:, 0], np.full(100, 1.0))
    local = found.local.law(X, base)
    assert local.log_prob(y).mean() > base.log_prob(y).mean() + 0.5
    assert local.log_prob(y).mean() > truth.mean() - 0.35
    assert abs(found.log_density.mean() - local.log_prob(y).mean()) < 0.25
    middle = local.log_prob(X[:, 0])  # between the humps there is next to nothing
    assert (middle < base.log_prob(X[:, 0])).all()


def test_the_density_is_the_sum_that_it_says(two_humps):
    X, y, found, _ = two_humps
    local, mean, sd = found.local, X[:, 0], np.linspace(0.5, 2.0, 100)
    law = local.law(X, gaussian(mean, sd))
    W = local.forest.weights(np.column_stack([X, mean, sd])).toarray()
    W /= W.sum(axis=1, keepdims=True)
    e = local.scores
    if local.is_relative:
        spread = np.sqrt(np.maximum(W @ e**2 - (W @ e) ** 2, 0.02**2))
    else:
        spread = np.ones(100)
    h = local.band * spread
    z = (y - mean) / sd
    kernels = (W * norm.pdf((z[:, None] - e) / h[:, None]) / h[:, None]).sum(axis=1) / sd
    own = norm.pdf(z) / sd
    assert_allclose(
        law.log_prob(y), np.log((1 - local.base_share) * kernels + local.base_share * own), atol=1e-4
    )


def test_it_is_a_law(two_humps):
    X, _, found, _ = two_humps
    grid = np.linspace(-14, 14, 2801)
    for row, sd in ((0, 1.0), (1, 2.0)):
        many = np.repeat(X[[row]], len(grid), axis=0)
        law = found.local.law(many, gaussian(many[:, 0], np.full(len(grid), sd)))
        density = np.exp(law.log_prob(grid))
        assert_allclose(trapezoid(density, grid), 1.0, atol=1e-4)
        mean = trapezoid(density * grid, grid)
        assert_allclose(law.mean[0], mean, atol=1e-3)
        assert_allclose(law.variance[0], trapezoid(density * (grid - mean) ** 2, grid), rtol=1e-3)
        below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid))])
        assert_allclose(law.cdf(grid), below, atol=1e-3)
    few = found.local.law(X[:5], gaussian(X[:5, 0], np.ones(5)))
    assert_allclose(few.cdf(few.quantile(0.1)), 0.1, atol=1e-9)


@pytest.mark.parametrize("step", [1.0, 0.25])
def test_the_density_of_rounded_values_is_their_probability_by_step(step):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 2))
    y = step * np.round((X[:, 0] + 0.7 * rng.normal(size=500)) / step)
    log_normal = LogNormalDistribution(gaussian(X[:, 0], np.ones(500)))
    for base in (gaussian(np.zeros(500), np.ones(500)), log_normal):
        target = step + y - y.min() if base is log_normal else y
        found = fit_local(X, base, target, np.ones(500), 0, with_base=False, leaf=10)
        law = found.local.law(X[:1], base[:1])
        values = np.unique(target)
        density = np.exp(law[np.zeros(len(values), int)].log_prob(values))
        assert 0.9 < step * density.sum() < 1.15  # a probability: it grew to several by narrow peaks
        assert found.value < np.log(1.0 / step)
        grid = np.linspace(-20, 120, 70_001) if base is not log_normal else np.geomspace(1e-4, 1e3, 40_001)
        whole = np.exp(law[np.zeros(len(grid), int)].log_prob(grid))
        mean = trapezoid(whole * grid, grid)
        assert_allclose(law.mean[0], mean, rtol=2e-3, atol=2e-3)
        assert_allclose(law.variance[0], trapezoid(whole * (grid - mean) ** 2, grid), rtol=1e-2)


def test_tails_are_those_of_the_base(two_humps):
    X, _, found, _ = two_humps
    base = gaussian(X[:, 0], np.full(100, 1.0))
    far = X[:, 0] + 30.0
    expected = base.log_prob(far) + np.log(found.local.base_share)
    assert_allclose(found.local.law(X, base).log_prob(far), expected, atol=1e-6)


def test_rows_with_equal_inputs_do_not_tell_their_targets():
    """What is said of a row without it is lower the higher its target is; the forest must not see that."""
    rng = np.random.default_rng(1)
    X = np.repeat(np.arange(10.0), 20)[:, None]
    y = rng.normal(size=200)
    total = np.repeat(y.reshape(10, 20).sum(axis=1), 20)
    left_out = (total - y) / 19.0
    found = fit_local(X, gaussian(left_out, np.ones(200)), y, np.ones(200), 0)
    assert found.log_density.mean() < norm.logpdf(y).mean() + 0.05


def test_noise_that_grows_is_followed():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(500, 1))
    y = rng.normal(size=500) * np.exp(3 * X[:, 0] - 2)
    base = gaussian(np.zeros(400), np.full(400, y.std()))
    found = fit_local(X[:400], base, y[:400], np.ones(400), 0)
    law = found.local.law(X[400:], gaussian(np.zeros(100), np.full(100, y.std())))
    truth = norm.logpdf(y[400:], 0, np.exp(3 * X[400:, 0] - 2)).mean()
    plain = norm.logpdf(y[400:], 0, y.std()).mean()
    assert law.log_prob(y[400:]).mean() > plain + 0.6 * (truth - plain)


def test_bases_of_any_support_get_a_shape():
    """Positive numbers by a log-normal base, counts by a Poisson one; the truth is a mixture of two."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(500, 2))
    high = rng.random(500) < 0.5 + 0.4 * X[:, 1]
    train, new = slice(0, 400), slice(400, 500)
    log_y = X[:, 0] + np.where(high, 1.0, -1.0) + 0.2 * rng.normal(size=500)
    counts = rng.poisson(np.where(high, 9.0, 1.0)).astype(float)
    positive = lambda rows: LogNormalDistribution(gaussian(X[rows, 0], np.ones(len(X[rows]))))  # noqa: E731
    rounded = lambda rows: laws.poisson(np.full(len(X[rows]), 1.4), np.full(len(X[rows]), 0.3))  # noqa: E731
    for base, y in ((positive, np.exp(log_y)), (rounded, counts)):
        found = fit_local(X[train], base(train), y[train], np.ones(400), 0)
        law = found.local.law(X[new], base(new))
        gain = law.log_prob(y[new]).mean() - base(new).log_prob(y[new]).mean()
        assert gain > 0.15
        told = found.log_density.mean() - base(train).log_prob(y[train]).mean()
        assert abs(told - gain) < 0.3  # of 100 rows
        assert_allclose(found.left_out.log_prob(y[train]), found.log_density, atol=1e-6)


def test_of_many_rows_the_size_of_leaves_is_chosen_by_few_trees(monkeypatch):
    monkeypatch.setattr("nongauss.auto.local_law.MANY_ROWS", 100)
    monkeypatch.setattr("nongauss.auto.local_law.TRIAL_TREES", 10)
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(120, 1))
    y = X[:, 0] + np.where(rng.random(120) < 0.5, 1.0, -1.0) + 0.15 * rng.normal(size=120)
    base = gaussian(X[:, 0], np.full(120, 1.0))
    chosen = fit_local(X, base, y, np.ones(120), 0)
    assert len(chosen.local.forest.root) == forest.N_TREES
    monkeypatch.setattr("nongauss.auto.local_law.MANY_ROWS", 121)
    assert chosen.value > fit_local(X, base, y, np.ones(120), 0).value - 0.05


def test_a_base_of_several_gaussians_gives_a_mixture_with_its_tails():
    n = 80
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1))
    share, sds = np.log([0.9, 0.1]), np.array([0.5, 3.0])

    def components(rows):
        size = (len(rows), 2)
        at = np.broadcast_to(X[rows, 0][:, None], size)
        return np.broadcast_to(share, size), at[:, :, None], np.broadcast_to(sds, size)[:, :, None]

    variance = np.full((n, 1), 0.9 * 0.25 + 0.1 * 9.0)
    base = GaussianMixtureDistribution(X, variance, components, squeeze=True, n_components=2)
    y = X[:, 0] + 0.5 * rng.normal(size=n)
    found = fit_local(X, base, y, np.ones(n), 0)
    assert isinstance(found.left_out, GaussianMixtureDistribution)
    assert_allclose(found.log_density, found.left_out.log_prob(y), atol=1e-6)
    far = X[:, 0] + 25.0  # where no score is: the base's own law, times its share
    ratio = found.left_out.log_prob(far) - base.log_prob(far)
    assert_allclose(ratio, np.log(found.local.base_share), atol=1e-6)
    grid = np.linspace(-15, 15, 3001)
    density = np.exp([found.left_out.log_prob(np.full(n, at))[0] for at in grid[::10]])
    assert_allclose(trapezoid(density, grid[::10]), 1.0, atol=0.02)


def two_gaussians(mean, sd):
    """Equal parts of two Gaussians about `mean`, with a variance of `sd`^2."""
    return mixture([gaussian(mean, 0.5 * sd), gaussian(mean, np.sqrt(1.75) * sd)])


@pytest.mark.parametrize("trained_in_parts", [False, True])
def test_rows_of_two_makes_have_the_scores_of_the_fit(trained_in_parts):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(240, 1))
    sd = np.full(240, 0.2)
    y = X[:, 0] + 4.0 * np.where(rng.random(240) < 0.5, 1.0, -1.0) * sd  # far out, in deviations of the base

    def base(rows, in_parts):
        whole = two_gaussians(X[rows, 0], sd[rows])
        halves = np.arange(0, len(rows), 2), np.arange(1, len(rows), 2)
        return by_rows([whole._take(half) for half in halves], halves) if in_parts else whole

    train, new = np.arange(200), np.arange(200, 240)
    found = fit_local(X[train], base(train, trained_in_parts), y[train], np.ones(200), 0)
    one, other = (found.local.law(X[new], base(new, in_parts)) for in_parts in (False, True))
    levels = np.array([0.05, 0.5, 0.95])
    assert_allclose(other.cdf(y[new]), one.cdf(y[new]), atol=2e-3)
    assert_allclose(other.quantile(levels), one.quantile(levels), atol=0.02)
    assert (np.abs(other.quantile(levels) - X[new]) < 2.0).all()
    assert other.log_prob(y[new]).mean() > base(new, True).log_prob(y[new]).mean() + 1.0
