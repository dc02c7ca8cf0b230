import numpy as np
from numpy.testing import assert_allclose
from scipy.special import expit

from harmonium.small import BINARY, D, K, log_z, params, states
from nongauss.harmonium.objective import (
    chain_log_joint,
    contrastive_free_energy,
    log_marginal,
    scores,
    worst_rival,
)

NONE = np.zeros((2**D, 0))
PRIOR = np.array([0.4, -0.7, 0.0])


def test_with_fixed_sticks_the_global_model_is_a_restricted_boltzmann_machine():
    p, x, z = params(), states(D), states(K)
    joint = (x @ p.visible_bias)[:, None] + x @ p.weights @ z.T + z @ (p.hidden_bias + PRIOR)
    assert_allclose(log_marginal(p, "binary", PRIOR, x), np.logaddexp.reduce(joint, axis=1))
    posterior = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]) @ z
    assert_allclose(posterior, expit(x @ p.weights + p.hidden_bias + PRIOR))


def test_contrastive_free_energy_lies_between_zero_and_the_negative_log_likelihood():
    for seed in range(5):
        p, x = params(seed, size=2.0), states(D)
        value = contrastive_free_energy(p, "binary", BINARY, PRIOR, x, NONE)
        surprise = log_z(p, PRIOR) - log_marginal(p, "binary", PRIOR, x)
        assert (value > -1e-12).all()
        assert (value <= surprise + 1e-12).all()


def test_the_hinge_is_the_largest_over_all_classes_and_zero_with_a_margin():
    f = np.array([[2.0, 0.5, 0.0], [0.2, 0.1, 0.9], [0.0, 3.0, 3.5]])
    loss, rival = worst_rival(f, np.array([0, 1, 2]))
    assert_allclose(loss, [0.0, 1.8, 0.5])
    assert rival.tolist() == [0, 2, 1]
    assert_allclose(worst_rival(f, np.array([0, 1, 2]), 4.0)[0], [2.5, 4.8, 3.5])
    assert_allclose(scores(params(0, 3), "binary", np.full((1, K), 0.5), np.zeros((1, 4))), np.zeros((1, 3)))


def test_the_chain_graph_is_normalised_for_every_choice_of_features():
    p, x = params(), states(D)
    for z in states(K):
        joint = chain_log_joint(p, BINARY, PRIOR, x, NONE, np.tile(z, (len(x), 1)))
        prior = (z * PRIOR - np.log1p(np.exp(PRIOR))).sum()
        assert_allclose(np.logaddexp.reduce(joint), prior)
