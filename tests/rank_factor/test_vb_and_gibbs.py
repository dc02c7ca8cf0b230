import numpy as np
from numpy.testing import assert_allclose

from nongauss.rank_factor.params import solve
from nongauss.rank_factor.vb_and_gibbs import Draw, Expect, point
from rank_factor.small import random_normal


def test_draws_average_to_the_expectations():
    rng = np.random.default_rng(0)
    way = Draw(rng)
    system = random_normal(rng, 1, 2, width=1.0).second, rng.standard_normal((1, 2))
    many = np.tile(system[0], (20_000, 1, 1)), np.tile(system[1], (20_000, 1))
    assert_allclose(way.normal(many).mean.mean(axis=0), Expect().normal(system).mean[0], atol=0.05)
    logs = np.log([[0.2, 0.5, 0.3]])
    assert_allclose(way.shares(np.tile(logs, (20_000, 1))).mean(axis=0), Expect().shares(logs)[0], atol=0.02)
    u = np.full(50_000, 0.8)
    # the mean of an inverse Gaussian is 1 / |u|, which is <u^2>^{-1/2} of a known u
    assert_allclose(way.label_weights(u, u**2).mean(), Expect().label_weights(u, u**2)[0], rtol=0.05)
    inverse = 1 / np.array([way.noise(np.array([3.0]), np.array([5.0]))[0] for _ in range(5000)])
    assert_allclose(inverse.mean(), 1 / Expect().noise(np.array([3.0]), np.array([5.0]))[0], rtol=0.05)


def test_a_point_is_a_normal_without_width():
    known = point(np.ones((4, 3)))
    assert known.covariance.shape == (4, 3, 3)
    assert not known.covariance.any()
    assert_allclose(known.second, 1.0)
    assert solve(np.eye(2)[None], np.ones((1, 2))).mean.shape == (1, 2)
