import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.rank_factor.params import Config
from nongauss.rank_factor.rank_likelihood import Rows
from nongauss.rank_factor.start import start
from nongauss.rank_factor.updates import Labels, sweep
from nongauss.rank_factor.vb_and_gibbs import Draw, Expect
from rank_factor.small import problem, table


@pytest.mark.parametrize("way", [Expect(), Draw(np.random.default_rng(0))], ids=["expect", "draw"])
def test_the_scale_of_the_level_rule_does_not_run_off(way):
    state, rows, labels, config = problem()
    sizes = []
    for _ in range(200):
        state, info = sweep(state, rows, labels, config, way)
        sizes.append(info["scale"])
        assert np.isfinite(info["bound"])
    assert max(sizes[100:]) < 2.0 * np.mean(sizes[50:100])
    assert_allclose((state.z.mean**2 + np.einsum("nkk->nk", state.z.covariance)).mean(), 1.0)


def test_values_recover_the_noise_and_the_subspace():
    rng = np.random.default_rng(0)
    z, A = rng.standard_normal((400, 2)), rng.standard_normal((8, 2))
    X = z @ A.T + 0.3 * rng.standard_normal((400, 8))
    X[rng.random(X.shape) < 0.05] = np.nan
    rows, config = Rows(None, X), Config(2, "gaussian")
    labels = Labels(np.zeros((400, 0)), np.ones(400))
    for way in (Expect(), Draw(np.random.default_rng(1))):
        state = start(rng, rows, labels, config)
        for _ in range(60):
            state, _ = sweep(state, rows, labels, config, way)
        assert_allclose(state.scale.noise, 0.09, rtol=0.6)
        fitted = np.linalg.lstsq(state.A.mean, A, rcond=None)[0]
        assert_allclose(state.A.mean @ fitted, A, atol=0.15)


def test_the_cut_keeps_labels_out_of_what_the_classifier_sees():
    state, rows, labels, config = problem(n_outputs=1)
    after, _ = sweep(state, rows, labels, config, Expect())
    for _ in range(3):
        after, _ = sweep(after, rows, labels, config, Expect())
    flipped, _ = sweep(after, rows, labels._replace(y=-labels.y), config, Expect())
    same, _ = sweep(after, rows, labels, config, Expect())
    assert_allclose(flipped.z.mean, same.z.mean)
    joint, _ = sweep(after, rows, labels, config._replace(cut=False), Expect())
    other, _ = sweep(after, rows, labels._replace(y=-labels.y), config._replace(cut=False), Expect())
    assert np.abs(joint.z.mean - other.z.mean).max() > 0.01


def test_a_weight_of_two_is_the_row_twice():
    X, y = table(30)
    from rank_factor.small import ranked

    doubled, Y = np.concatenate([X, X[:10]]), np.concatenate([y, y[:10]])
    rows, again = ranked(X), ranked(doubled)
    again = again._replace(codes=again.codes)
    weight = np.where(np.arange(30) < 10, 2.0, 1.0)
    config = Config(2, n_outputs=1)
    one = start(np.random.default_rng(0), again, Labels(Y[:, None], np.ones(40)), config)
    rows = again.take(slice(0, 30))
    short = one._replace(z=type(one.z)(one.z.mean[:30], one.z.covariance[:30]))
    long = one._replace(
        z=type(one.z)(*(np.concatenate([part[:30], part[:10]]) for part in (one.z.mean, one.z.covariance)))
    )
    a, _ = sweep(short, rows, Labels(y[:, None], weight), config, Expect())
    b, _ = sweep(long, again, Labels(Y[:, None], np.ones(40)), config, Expect())
    assert_allclose(a.A.mean, b.A.mean, rtol=1e-8)
    assert_allclose(a.experts.beta.mean, b.experts.beta.mean, rtol=1e-8)
