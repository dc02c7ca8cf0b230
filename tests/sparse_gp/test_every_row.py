import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss import SparseGPRegressor
from nongauss.core.errors import NongaussWarning
from nongauss.sparse_gp.every_row import NoDigits, RowKernels, row_mean_at, row_q
from nongauss.sparse_gp.likelihoods import Gaussian, Laplace, Poisson, StudentT
from nongauss.sparse_gp.objective import exact_evidence, log_prior, mean_at
from nongauss.sparse_gp.params import GaussianSites, KernelBlocks, first_sites
from nongauss.sparse_gp.updates import HyperObjective, converge_q
from sparse_gp.small import differences, model, params, rows


def kernel_matrix(n=30, size=1.0):
    data = rows(n)
    apart = ((data.X[:, None] - data.X[None]) ** 2).sum(axis=2)
    return size * np.exp(-0.5 * apart)


@pytest.mark.parametrize("size", [1.0, 25.0])
def test_q_of_sites_of_all_signs_is_that_of_dense_formulas(size):
    rng, K = np.random.default_rng(0), kernel_matrix(size=size)
    beta, linear = rng.uniform(5.0, 4e3, 30), rng.normal(size=30) * 50.0
    beta[:4], beta[4:6] = [-0.5, -0.1, -0.02, -0.3], 0.0
    q = row_q(K, linear, beta)
    S = np.linalg.inv(np.eye(30) + K @ np.diag(beta)) @ K
    mean = S @ linear
    assert_allclose(q.centred, mean, rtol=1e-6, atol=1e-8)
    assert_allclose(q.variance, S.diagonal(), rtol=1e-6)
    assert_allclose(K @ q.alpha, mean, rtol=1e-6, atol=1e-6)
    assert_allclose(K - K @ q.W @ K, S, atol=1e-8 * size)
    log_det = np.linalg.slogdet(np.eye(30) + K @ np.diag(beta))[1]
    divergence = 0.5 * ((linear - beta * mean) @ mean - beta @ S.diagonal() + log_det)
    assert_allclose(q.divergence, divergence, rtol=1e-6)


def test_sites_that_leave_no_density_are_refused():
    K = kernel_matrix()
    beta = np.ones(30)
    beta[0] = -1e3
    with pytest.raises(np.linalg.LinAlgError):
        row_q(K, np.zeros(30), beta)


def test_a_kernel_without_digits_is_refused():
    """B^-1 of numbers of 10^16 is noise, of which beta v made a bound of 10^6 nats for 200 labels."""
    K = np.ones((30, 30)) * 1e16
    with pytest.raises(NoDigits, match="too large"):
        row_q(K, np.zeros(30), np.ones(30))


@pytest.mark.parametrize("noise", [0.0, 1e-4])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_left_out_of_a_fit_without_noise_are_told_as_new_rows_are(noise):
    rng = np.random.default_rng(1)
    X, new = rng.uniform(-3, 3, (80, 2)), rng.uniform(-3, 3, (200, 2))
    y, z = (np.exp(at[:, 0]) + at[:, 1] ** 2 + noise * rng.standard_t(5, len(at)) for at in (X, new))
    model = SparseGPRegressor("laplace", random_state=0, max_iter=60).fit(X, y)
    assert model.loo_.mean() == pytest.approx(model.log_density(new, z).mean(), abs=0.4)


def test_a_stop_while_noise_is_normal_ends_the_fit():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    calls = []
    third = lambda progress: calls.append(progress) or len(calls) == 3  # noqa: E731
    with pytest.warns(NongaussWarning, match="Stopped on request"):
        model = SparseGPRegressor("student_t", callbacks=[third], random_state=0).fit(X, np.sin(X[:, 0]))
    assert len(calls) == 3
    assert np.isfinite(model.predict(X)).all()


def test_sites_that_say_nothing_leave_the_prior_and_nothing_is_printed(capfd):
    K = kernel_matrix()
    q = row_q(K, np.zeros(30), np.zeros(30))
    assert_allclose(q.variance, K.diagonal())
    assert q.divergence == pytest.approx(0.0, abs=1e-12)
    assert not q.W.any()
    assert capfd.readouterr() == ("", "")


def outlying(likelihood):
    data = rows(40)
    y = data.y.copy()
    if isinstance(likelihood, Poisson):
        y = np.random.default_rng(0).poisson(3.0, 40).astype(float)
    else:
        y[3], y[17] = y[3] + 8.0, y[17] - 4.0
    return data._replace(y=y)


@pytest.mark.parametrize("likelihood", [StudentT(), Laplace(), Poisson()], ids=lambda c: c.name)
def test_the_bound_and_its_derivatives_are_those_of_inducing_inputs_at_all_rows(likelihood):
    data = outlying(likelihood)
    offset, psi = likelihood.start(data.y, data.weight)
    own = model(likelihood, offset=offset)
    at = params(own, psi, data.X)
    sites = first_sites(own, data, psi)
    sparse, whole = (converge_q(kind(own, at, data), sites, 1e-12, 60) for kind in (KernelBlocks, RowKernels))
    assert_allclose(whole.bound, sparse.bound, atol=1e-4)
    assert_allclose(whole.centred, sparse.centred, atol=1e-4)

    def value(flat):
        q = converge_q(RowKernels(own, at.like(flat), data), whole.sites, 1e-13, 60)
        return q.bound

    bound = HyperObjective(own, data, at, False, True, whole.sites)
    _, by_thetas, by_psi = log_prior(own, at)
    slope = bound(at.flat(False))[1] - np.concatenate([*by_thetas, by_psi])
    assert_allclose(slope, differences(value, at.flat(False), 1e-4), rtol=1e-3, atol=5e-3)


def test_a_mean_of_positive_sites_is_that_of_inducing_inputs_at_all_rows():
    data, own = rows(30), model(StudentT())
    at = params(own, StudentT().start(data.y, data.weight)[1], data.X)
    sites = GaussianSites(data.y[:, None] * 3.0, np.full((30, 1), 3.0))
    ours = row_mean_at(RowKernels(own, at, data), sites)
    assert_allclose(ours, mean_at(KernelBlocks(own, at, data), sites), atol=1e-5)


def test_a_fit_that_begins_at_normal_noise_begins_at_its_evidence():
    data, own = rows(60, weighted=False), model(StudentT())
    at = params(own, StudentT().beside_gaussian(0.01), data.X)
    normal = at._replace(psi=np.log([0.01]))
    beta = np.full((60, 1), 100.0)
    bound = HyperObjective(own, data, at, False, True, GaussianSites(100.0 * data.y[:, None], beta))
    expected = exact_evidence(model(Gaussian()), normal, data).value
    assert_allclose(bound(at.flat(False))[2], expected, atol=0.05 * 60)


def test_after_a_step_too_far_sites_go_on_from_the_best():
    data = outlying(StudentT())
    own = model(StudentT())
    at = params(own, StudentT().start(data.y, data.weight)[1], data.X)
    bound = HyperObjective(own, data, at, False, True)
    before = bound(at.flat(False))[2]
    bound(at.flat(False) + np.array([3.0, 3.0, 3.0, -3.0, -0.4]))
    assert bound(at.flat(False))[2] >= before - 1e-9
