import numpy as np
import pytest
from scipy import integrate, stats

from nongauss.core.errors import InputError
from nongauss.predictive import combined, mixture
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.mixture import GaussianMixtureDistribution


class Source:
    """Mixtures for N rows, with a record of the blocks that were asked for."""

    def __init__(self, weights, means, sds):
        self.weights, self.means, self.sds = weights, means, sds
        self.calls = []

    def __call__(self, rows):
        self.calls.append((rows[0], rows[-1] + 1))
        with np.errstate(divide="ignore"):
            return np.log(self.weights[rows]), self.means[rows], self.sds[rows]

    def distribution(self, squeeze=False, **options):
        w = self.weights[:, :, None]
        mean = (w * self.means).sum(axis=1)
        variance = (w * (self.sds**2 + (self.means - mean[:, None, :]) ** 2)).sum(axis=1)
        return GaussianMixtureDistribution(mean, variance, self, squeeze=squeeze, **options)


def random_source(n_rows, n_components, n_outputs, seed=0):
    rng = np.random.default_rng(seed)
    return Source(
        rng.dirichlet(np.ones(n_components), size=n_rows),
        rng.normal(size=(n_rows, n_components, n_outputs)) * 2,
        rng.uniform(0.3, 1.5, size=(n_rows, n_components, n_outputs)),
    )


def test_one_gaussian_is_scipy_s():
    mean, sd = np.array([1.0, -2.0, 1e6]), np.array([0.5, 3.0, 10.0])
    d = Source(np.ones((3, 1)), mean[:, None, None], sd[:, None, None]).distribution(squeeze=True)
    peer = stats.norm(mean, sd)
    y = mean + np.array([-9.0, 0.2, 4.0]) * sd
    np.testing.assert_allclose(d.mean, mean)
    np.testing.assert_allclose(d.std, sd)
    np.testing.assert_allclose(d.cdf(y), peer.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(d.log_prob(y), peer.logpdf(y), rtol=1e-13)
    np.testing.assert_allclose(d.quantile(0.2), peer.ppf(0.2), rtol=1e-14)
    np.testing.assert_allclose(d.interval(0.9), np.stack(peer.interval(0.9), axis=1), rtol=1e-13)


def test_a_mixture_agrees_with_quadrature_of_its_own_density():
    d = random_source(1, 2, 1).distribution(squeeze=True)

    def density(y):
        return np.exp(d.log_prob([y])[0])

    def integral(f, stop=30.0):
        return integrate.quad(f, -30.0, stop, epsabs=1e-12, limit=400, points=[-3.0, 0.0, 3.0])[0]

    assert integral(density) == pytest.approx(1.0, abs=1e-10)
    assert integral(lambda y: y * density(y)) == pytest.approx(d.mean[0], abs=1e-9)
    assert integral(lambda y: (y - d.mean[0]) ** 2 * density(y)) == pytest.approx(d.variance[0], abs=1e-9)
    low, high = d.interval(0.8)[0]
    assert integral(density, high) - integral(density, low) == pytest.approx(0.8, abs=1e-9)
    assert d.cdf(high)[0] == pytest.approx(0.9, abs=1e-12)


def test_an_average_is_the_mixture_of_its_parts():
    parts = [random_source(4, size, 2, seed=size).distribution() for size in (2, 3)]
    weights, y = np.array([0.3, 0.7]), np.random.default_rng(1).normal(size=(4, 2))
    d = combined.mixture(parts, weights)
    second = sum(w * (part.variance + part.mean**2) for w, part in zip(weights, parts, strict=True))
    np.testing.assert_allclose(d.mean, 0.3 * parts[0].mean + 0.7 * parts[1].mean)
    np.testing.assert_allclose(d.variance, second - d.mean**2)
    for of in (lambda part: part.cdf(y), lambda part: np.exp(part.log_prob(y))):
        np.testing.assert_allclose(of(d), 0.3 * of(parts[0]) + 0.7 * of(parts[1]))
    alone = combined.mixture(parts, np.array([0.0, 1.0]))
    np.testing.assert_allclose(alone.quantile([0.1, 0.8]), parts[1].quantile([0.1, 0.8]))


def test_the_density_is_joint_over_outputs_and_the_rest_is_for_each_output():
    source = random_source(4, 3, 2)
    d = source.distribution()
    y = np.random.default_rng(1).normal(size=(4, 2))
    for i in range(4):
        parts = [
            w * stats.multivariate_normal(m, np.diag(s**2)).pdf(y[i])
            for w, m, s in zip(source.weights[i], source.means[i], source.sds[i], strict=True)
        ]
        assert d.log_prob(y)[i] == pytest.approx(np.log(sum(parts)), rel=1e-12)
    for p in range(2):
        one = Source(source.weights, source.means[:, :, p : p + 1], source.sds[:, :, p : p + 1])
        alone = one.distribution(squeeze=True)
        np.testing.assert_array_equal(d.cdf(y)[:, p], alone.cdf(y[:, p]))
        np.testing.assert_array_equal(d.interval(0.9)[:, :, p], alone.interval(0.9))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_separated_and_narrow_components_go_there_and_back(scale):
    weights = np.tile([0.2, 0.5, 0.3], (2, 1))
    means = np.tile([-1e4, 0.0, 1e4], (2, 1))[:, :, None] * scale
    sds = np.tile([1.0, 1e-6, 10.0], (2, 1))[:, :, None] * scale
    d = Source(weights, means, sds).distribution(squeeze=True)
    levels = np.array([1e-9, 0.05, 0.199, 0.21, 0.45, 0.69, 0.71, 0.999])
    at = d.quantile(levels)
    assert np.all(np.diff(at, axis=1) > 0)
    back = np.stack([d.cdf(at[:, j]) for j in range(len(levels))], axis=1)
    np.testing.assert_allclose(back, np.broadcast_to(levels, back.shape), rtol=1e-11)


def test_a_change_of_units_goes_straight_through():
    source = random_source(5, 4, 1)
    d = source.distribution(squeeze=True)
    a, b = -1e-3, 1e4
    other = Source(source.weights, a * source.means + b, abs(a) * source.sds).distribution(squeeze=True)
    y = np.linspace(-3, 3, 5)
    np.testing.assert_allclose(other.quantile(0.2), a * d.quantile(0.8) + b, rtol=1e-13)
    np.testing.assert_allclose(other.log_prob(a * y + b), d.log_prob(y) - np.log(abs(a)), rtol=1e-8)


def test_far_out_the_log_density_is_finite_and_right():
    d = Source(np.array([[0.5, 0.5]]), np.array([[[0.0], [1.0]]]), np.ones((1, 2, 1))).distribution(
        squeeze=True
    )
    assert d.log_prob(1e6)[0] == pytest.approx(-0.5 * (1e6 - 1) ** 2, rel=1e-9)
    assert d.log_prob(-1e150)[0] == pytest.approx(-0.5e300)
    assert d.log_prob(np.inf)[0] == -np.inf
    assert d.cdf([np.inf])[0] == 1.0
    assert d.cdf(-30.0)[0] == pytest.approx(0.5 * stats.norm.cdf(-30.0), rel=1e-10)


def test_draws_have_the_distribution_and_depend_on_the_seed_alone(monkeypatch):
    source = random_source(3, 4, 2, seed=2)
    d = source.distribution()
    draws = d.sample(4000, random_state=7)
    assert draws.shape == (3, 4000, 2)
    for i in range(3):
        for p in range(2):
            row = Source(*(a[i : i + 1] for a in (source.weights, source.means, source.sds)))
            whole = Source(*(np.repeat(a, 4000, axis=0) for a in (row.weights, row.means, row.sds)))
            uniform = whole.distribution().cdf(draws[i])[:, p]
            assert stats.kstest(uniform, "uniform").pvalue > 1e-4
    # outputs are joint: they share the component
    between = np.cov(source.means[0].T, aweights=source.weights[0], bias=True)[0, 1]
    assert np.cov(draws[0].T)[0, 1] == pytest.approx(between, abs=0.3)
    monkeypatch.setattr(mixture, "_BLOCK_NUMBERS", 1)
    np.testing.assert_array_equal(source.distribution().sample(4000, random_state=7), draws)
    assert not np.array_equal(d.sample(5, random_state=8), d.sample(5, random_state=9))


def test_an_empty_component_is_never_drawn():
    weights = np.tile([0.0, 1.0, 0.0], (50, 1))
    means = np.tile([1e9, 0.0, 1e9], (50, 1))[:, :, None]
    d = Source(weights, means, np.ones((50, 3, 1))).distribution(squeeze=True)
    assert np.abs(d.sample(200, random_state=0)).max() < 10


def test_rows_are_evaluated_in_blocks_and_only_when_needed(monkeypatch):
    monkeypatch.setattr(mixture, "_BLOCK_NUMBERS", 24)  # 2 outputs x 3 components: 4 rows a block
    monkeypatch.setattr(mixture, "_KEPT_NUMBERS", 0)
    source = random_source(10, 3, 2)
    d = source.distribution()
    assert len(d) == 10
    assert repr(d) == "GaussianMixtureDistribution(n_rows=10, n_outputs=2)"
    assert d.mean.shape == d.std.shape == (10, 2)
    assert source.calls == []
    in_blocks = d.log_prob(0.5), d.cdf(0.5), d.quantile([0.1, 0.9])
    blocks = [(0, 4), (4, 8), (8, 10)]
    assert source.calls == [(0, 1), *blocks, *blocks, *blocks]
    source.calls.clear()
    source.distribution(n_components=3).cdf(0.5)
    assert source.calls == blocks
    monkeypatch.undo()
    source.calls.clear()
    kept = source.distribution(n_components=3)
    whole = kept.log_prob(0.5), kept.cdf(0.5), kept.quantile([0.1, 0.9])
    assert source.calls == [(0, 10)]  # few numbers are computed once
    for a, b in zip(in_blocks, whole, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(kept[3:5].cdf(0.5), whole[1][3:5])
    assert source.calls == [(0, 10)]


def test_shapes_with_and_without_the_output_axis():
    flat, wide = random_source(5, 2, 1).distribution(squeeze=True), random_source(5, 2, 3).distribution()
    assert isinstance(flat, PredictiveDistribution)
    assert [a.shape for a in (flat.mean, flat.variance, flat.quantile(0.5), flat.cdf(0.0))] == [(5,)] * 4
    assert flat.quantile([0.5]).shape == (5, 1)
    assert flat.interval().shape == (5, 2)
    assert flat.sample().shape == (5, 1)
    assert flat.log_prob(np.zeros((5, 1))).shape == (5,)
    assert wide.quantile(0.5).shape == (5, 3)
    assert wide.quantile([0.1, 0.5]).shape == (5, 2, 3)
    assert wide.interval(0.5).shape == (5, 2, 3)
    assert wide.sample(4, 0).shape == (5, 4, 3)
    nothing = GaussianMixtureDistribution(np.empty((0, 1)), np.empty((0, 1)), wide._components, squeeze=True)
    assert nothing.quantile([0.1, 0.5]).shape == (0, 2)


def test_bad_questions_are_answered_with_what_was_got_and_expected():
    d = random_source(5, 2, 1).distribution(squeeze=True)
    wide = random_source(5, 2, 3).distribution()
    with pytest.raises(InputError, match=r"got shape \(4,\), expected \(5,\)"):
        d.cdf(np.zeros(4))
    with pytest.raises(InputError, match=r"got shape \(5,\), expected \(5, 3\)"):
        wide.log_prob(np.zeros(5))
    with pytest.raises(InputError, match="missing value in row 2"):
        d.log_prob([0.0, 1.0, np.nan, 3.0, 4.0])
    with pytest.raises(InputError, match="numbers only"):
        d.cdf(["a"] * 5)
    for q in (-0.1, 1.1, np.nan, [[0.5]], "half"):
        with pytest.raises(InputError, match="q must be"):
            d.quantile(q)
    for coverage in (0.0, 1.0, 90, "all"):
        with pytest.raises(InputError, match="coverage must be"):
            d.interval(coverage)
    with pytest.raises(InputError, match="number of draws"):
        d.sample(1.5)
    with pytest.raises(InputError, match="squeeze needs exactly one output"):
        random_source(5, 2, 3).distribution(squeeze=True)
    with pytest.raises(ValueError, match="components of 5 rows must have shapes"):
        GaussianMixtureDistribution(
            np.zeros((5, 1)), np.ones((5, 1)), lambda rows: (np.zeros((1, 2)),) * 3, squeeze=True
        ).cdf(0.0)
