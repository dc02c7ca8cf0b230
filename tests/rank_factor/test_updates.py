import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.rank_factor.config import RankConfig
from nongauss.rank_factor.data import RankRows
from nongauss.rank_factor.inference import Gibbs, VariationalBayes
from nongauss.rank_factor.params import WeightedLabels, point, solve
from nongauss.rank_factor.start import first_state
from nongauss.rank_factor.updates import sweep
from rank_factor.small import problem, random_normal, table


@pytest.mark.parametrize(
    "inference", [VariationalBayes(), Gibbs(np.random.default_rng(0))], ids=["expect", "draw"]
)
def test_the_scale_of_the_level_rule_does_not_run_off(inference):
    state, rows, labels, config = problem()
    sizes = []
    for _ in range(200):
        state, info = sweep(state, rows, labels, config, inference)
        sizes.append(info["scale"])
        assert np.isfinite(info["bound"])
    assert max(sizes[100:]) < 2.0 * np.mean(sizes[50:100])
    assert_allclose((state.z.mean**2 + np.einsum("nkk->nk", state.z.covariance)).mean(), 1.0)


def test_values_recover_the_noise_and_the_subspace():
    rng = np.random.default_rng(0)
    z, A = rng.standard_normal((400, 2)), rng.standard_normal((8, 2))
    X = z @ A.T + 0.3 * rng.standard_normal((400, 8))
    X[rng.random(X.shape) < 0.05] = np.nan
    rows, config = RankRows(None, X), RankConfig(2, "gaussian")
    labels = WeightedLabels(np.zeros((400, 0)), np.ones(400))
    for inference in (VariationalBayes(), Gibbs(np.random.default_rng(1))):
        state = first_state(rng, rows, labels, config)
        for _ in range(60):
            state, _ = sweep(state, rows, labels, config, inference)
        assert_allclose(state.scale.noise, 0.09, rtol=0.6)
        fitted = np.linalg.lstsq(state.A.mean, A, rcond=None)[0]
        assert_allclose(state.A.mean @ fitted, A, atol=0.15)


def test_the_cut_keeps_labels_out_of_what_the_classifier_sees():
    state, rows, labels, config = problem(n_outputs=1)
    after, _ = sweep(state, rows, labels, config, VariationalBayes())
    for _ in range(3):
        after, _ = sweep(after, rows, labels, config, VariationalBayes())
    flipped, _ = sweep(after, rows, labels._replace(y=-labels.y), config, VariationalBayes())
    same, _ = sweep(after, rows, labels, config, VariationalBayes())
    assert_allclose(flipped.z.mean, same.z.mean)
    joint, _ = sweep(after, rows, labels, config._replace(cut=False), VariationalBayes())
    other, _ = sweep(
        after, rows, labels._replace(y=-labels.y), config._replace(cut=False), VariationalBayes()
    )
    assert np.abs(joint.z.mean - other.z.mean).max() > 0.01


def test_a_weight_of_two_is_the_row_twice():
    X, y = table(30)
    from rank_factor.small import ranked

    doubled, Y = np.concatenate([X, X[:10]]), np.concatenate([y, y[:10]])
    rows, again = ranked(X), ranked(doubled)
    again = again._replace(codes=again.codes)
    weight = np.where(np.arange(30) < 10, 2.0, 1.0)
    config = RankConfig(2, n_outputs=1)
    one = first_state(np.random.default_rng(0), again, WeightedLabels(Y[:, None], np.ones(40)), config)
    rows = again.take(slice(0, 30))
    short = one._replace(z=type(one.z)(one.z.mean[:30], one.z.covariance[:30]))
    long = one._replace(
        z=type(one.z)(*(np.concatenate([part[:30], part[:10]]) for part in (one.z.mean, one.z.covariance)))
    )
    a, _ = sweep(short, rows, WeightedLabels(y[:, None], weight), config, VariationalBayes())
    b, _ = sweep(long, again, WeightedLabels(Y[:, None], np.ones(40)), config, VariationalBayes())
    assert_allclose(a.A.mean, b.A.mean, rtol=1e-8)
    assert_allclose(a.experts.beta.mean, b.experts.beta.mean, rtol=1e-8)


def test_draws_average_to_the_expectations():
    rng = np.random.default_rng(0)
    inference = Gibbs(rng)
    system = random_normal(rng, 1, 2, width=1.0).second, rng.standard_normal((1, 2))
    many = np.tile(system[0], (20_000, 1, 1)), np.tile(system[1], (20_000, 1))
    assert_allclose(
        inference.normal(many).mean.mean(axis=0), VariationalBayes().normal(system).mean[0], atol=0.05
    )
    logs = np.log([[0.2, 0.5, 0.3]])
    assert_allclose(
        inference.shares(np.tile(logs, (20_000, 1))).mean(axis=0),
        VariationalBayes().shares(logs)[0],
        atol=0.02,
    )
    u = np.full(50_000, 0.8)
    # the mean of an inverse Gaussian is 1 / |u|, which is <u^2>^{-1/2} of a known u
    assert_allclose(
        inference.label_weights(u, u**2).mean(), VariationalBayes().label_weights(u, u**2)[0], rtol=0.05
    )
    inverse = 1 / np.array([inference.noise(np.array([3.0]), np.array([5.0]))[0] for _ in range(5000)])
    assert_allclose(
        inverse.mean(), 1 / VariationalBayes().noise(np.array([3.0]), np.array([5.0]))[0], rtol=0.05
    )


def test_a_point_is_a_normal_without_width():
    known = point(np.ones((4, 3)))
    assert known.covariance.shape == (4, 3, 3)
    assert not known.covariance.any()
    assert_allclose(known.second, 1.0)
    assert solve(np.eye(2)[None], np.ones((1, 2))).mean.shape == (1, 2)
