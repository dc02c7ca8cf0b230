import numpy as np
from numpy.testing import assert_allclose

from nongauss.rank_factor import svm_mixture
from nongauss.rank_factor.config import OFFSET_PRECISION, ShrinkagePrior
from nongauss.rank_factor.params import Experts, Gate, Normal, first_shrinkage, solve
from rank_factor.small import random_normal, second_differences


def known(rng: np.random.Generator, n_experts: int = 2, n_outputs: int = 2) -> Experts:
    """Coefficients without width, K = 2."""
    beta = rng.standard_normal((n_experts, n_outputs, 3))
    zero = np.zeros((n_experts, n_outputs, 3, 3))
    return Experts(Normal(beta, zero), first_shrinkage((2, n_experts * n_outputs)), None)


def test_margins_against_draws():
    rng = np.random.default_rng(0)
    beta, z = random_normal(rng, 1, 1, 3), random_normal(rng, 1, 2)
    heads = Experts(beta, first_shrinkage((2, 1)), None)
    u, square = svm_mixture.margins(heads, z, np.array([[-1.0]]))
    n = 200_000
    b = rng.multivariate_normal(beta.mean[0, 0], beta.covariance[0, 0], n)
    row = rng.multivariate_normal(z.mean[0], z.covariance[0], n)
    draws = 1.0 + (b[:, :2] * row).sum(1) + b[:, 2]
    assert_allclose(u[0, 0, 0], draws.mean(), atol=5 * draws.std() / np.sqrt(n))
    assert_allclose(square[0, 0, 0], (draws**2).mean(), rtol=0.02)


def test_what_labels_say_of_factors_and_coefficients_is_the_log_joint():
    rng = np.random.default_rng(0)
    heads, z, y = known(rng), rng.standard_normal((4, 2)), rng.choice([-1.0, 1.0], (4, 2))
    shares, g = rng.dirichlet([1, 1], 4), rng.uniform(0.2, 2.0, (4, 2, 2))
    weight = np.array([1.0, 2.0, 1.0, 0.5])

    def log_joint(z: np.ndarray, beta: np.ndarray) -> float:
        u = 1.0 - y[:, None, :] * np.einsum("nk,tck->ntc", np.append(z, np.ones((4, 1)), 1), beta)
        return -(weight[:, None, None] * shares[:, :, None] * (0.5 * g * u * u + u)).sum()

    P, b = svm_mixture.label_system(heads, g, y, shares)
    row = np.zeros((4, 2))

    def of_row(v: np.ndarray) -> float:
        moved = row.copy()
        moved[1] = v
        return log_joint(moved, heads.beta.mean) / weight[1]

    expected = second_differences(of_row, np.zeros(2), h=0.1)
    assert_allclose(P[1], expected[0], atol=1e-8)
    assert_allclose(b[1], expected[1], atol=1e-8)

    point = Normal(z, np.zeros((4, 2, 2)))
    P, b = svm_mixture.beta_system(heads, point, g, shares, y, weight, ShrinkagePrior())

    def of_beta(v: np.ndarray) -> float:
        beta = np.zeros((2, 2, 3))
        beta[1, 0] = v
        prior = np.append(np.ones(2), OFFSET_PRECISION)
        return log_joint(z, beta) - 0.5 * (prior * v * v).sum()

    expected = second_differences(of_beta, np.zeros(3), h=0.1)
    assert_allclose(P[1, 0], expected[0], atol=1e-7)
    assert_allclose(b[1, 0], expected[1], atol=1e-7)


def test_without_ranks_the_machine_is_a_support_vector_machine():
    """The mode under a normal prior of variance v minimises |b|^2 / (2 v) + 2 hinge: C = 2 v."""
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(80) > 0, 1.0, -1.0)
    zero = np.zeros((80, 2, 2))
    now = known(rng, 1, 1)
    for _ in range(1500):  # EM for the mode: weights 1 / |u|, no widths
        _, square = svm_mixture.margins(now, Normal(X, zero), y[:, None])
        g = 1.0 / np.sqrt(np.maximum(square, 1e-10))
        own = g, np.ones((80, 1)), y[:, None], np.ones(80), ShrinkagePrior(offset_precision=1.0)
        P, b = svm_mixture.beta_system(now, Normal(X, zero), *own)
        now = now._replace(beta=Normal(solve(P, b).mean, np.zeros((1, 1, 3, 3))))
    machine = LinearSVC(C=2.0, loss="hinge", intercept_scaling=1.0, tol=1e-10, max_iter=1_000_000).fit(X, y)
    assert_allclose(now.beta.mean[0, 0], [*machine.coef_[0], *machine.intercept_], atol=5e-3)


def test_two_clusters_get_two_experts_and_shares_sum_to_one():
    rng = np.random.default_rng(0)
    mean = np.concatenate([rng.normal(-4, 1, (50, 2)), rng.normal(4, 1, (50, 2))])
    z = Normal(mean, np.tile(0.01 * np.eye(2), (100, 1, 1)))
    weight = np.ones(100)
    gate = svm_mixture.first_gate(rng, z, weight, 5)
    for _ in range(30):
        gate = svm_mixture.update_gate(gate, z, svm_mixture.shares_of(gate, z), weight)
    shares = svm_mixture.shares_of(gate, z)
    assert_allclose(shares.sum(axis=1), 1.0)
    assert (shares.mean(axis=0) > 0.05).sum() == 2
    assert_allclose(np.exp(gate.log_share).sum(), 1.0, atol=0.15)


def test_draws_of_the_gate_leave_its_prior_as_it_is():
    """Geweke's test of the mixture: parameters and rows from the model, against one draw given the rows."""
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(0)
    forward, after = [], []
    T, K, N = 3, 2, 6
    for _ in range(1500):
        alpha = rng.gamma(1.0)
        stick = np.append(rng.beta(1.0, alpha, T - 1), 1.0)
        share = stick * np.append(1.0, np.cumprod(1.0 - stick[:-1]))
        psi, centre = rng.gamma(1.0, 1.0, T), rng.standard_normal((T, K))
        t = rng.choice(T, N, p=share / share.sum())
        z = centre[t] + rng.standard_normal((N, K)) / np.sqrt(psi[t])[:, None]
        with np.errstate(divide="ignore"):
            gate = Gate(centre, np.zeros(T), psi, np.log(psi), np.log(share), alpha)
        moved = svm_mixture.draw_gate(rng, gate, z, np.eye(T)[t], np.ones(N))
        for out, one in ((forward, gate), (after, moved)):
            out.append([one.mean[0, 0], one.log_precision[1], np.exp(one.log_share[0]), one.alpha])
    for a, b in zip(np.transpose(forward), np.transpose(after), strict=True):
        assert ks_2samp(a, b).pvalue > 1e-3
