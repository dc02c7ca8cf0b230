import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.sparse_gp import params as stored
from nongauss.sparse_gp import streamed_posterior as passes
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.kernels import Matern52, Space
from nongauss.sparse_gp.likelihoods import REGRESSION
from nongauss.sparse_gp.params import JITTER, GPModel, GPParams, KernelBlocks, first_sites, start
from nongauss.sparse_gp.updates import LAST_STEPS, LAST_TOL, converge_q
from nongauss.tables.source import Stream
from sparse_gp import small

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 1))
ROWS = GPRows(
    X, RNG.poisson(np.exp(np.sin(X[:, 0]))).astype(float), RNG.uniform(0.5, 2.0, 120), np.zeros(120)
)


@pytest.mark.parametrize("name", ["poisson", "gaussian", "student_t"])
def test_q_from_sums_over_parts_is_that_of_sites_that_are_kept(name, monkeypatch):
    monkeypatch.setattr(stored, "BLOCK_NUMBERS", 50)
    likelihood = REGRESSION[name](expectation="auto")
    offset, psi = likelihood.start(ROWS.y, ROWS.weight)
    model = GPModel((Matern52(),), (0,) * likelihood.n_latent, Space(("x",), (0,)), likelihood, offset)
    params = start(model, psi, np.linspace(-2.0, 2.0, 7)[:, None])
    expected = converge_q(
        KernelBlocks(model, params, ROWS), first_sites(model, ROWS, psi), LAST_TOL, LAST_STEPS
    )
    source = Stream([ROWS.take(slice(a, b)) for a, b in ((0, 50), (50, 50), (50, 120))])
    # Heavy tails are climbed by other steps in memory, to the same top: a gain of 1e-9 nats a row ends both.
    near = {"rtol": 2e-3, "atol": 1e-3} if name == "student_t" else {"rtol": 1e-8, "atol": 1e-9}
    for q, its in zip(passes.converged_latents(source, model, params), expected.latents, strict=True):
        assert_allclose(q.alpha, its.alpha, **near)
        assert_allclose(q.W, its.W, **near)


def test_of_next_to_no_noise_q_has_its_digits():
    """The mean at the rows against the same matrices by arithmetic of 40 digits."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (40, 2)), rng.normal(size=40)
    rows = GPRows(X, np.sin(2 * X[:, 0]) + 1e-3 * y, np.ones(40), np.zeros(40))
    model, theta = small.model(kernel="squared_exponential"), np.array([1.0, 0.5, 0.5])
    params, kernel = GPParams((theta,), np.log([1e-6]), X[:20]), model.kernels[0]
    K, Kz = (kernel.forward(theta, small.SPACE, params.Z, places)[0] for places in (X, params.Z))
    Kz = Kz + JITTER * np.exp(theta[0]) * np.eye(20)
    with mp.workdps(40):
        wide, noise = mp.matrix(K.tolist()), mp.mpf(float(np.exp(params.psi[0])))
        target = mp.matrix((rows.y - model.offset[0]).tolist())
        alpha = mp.lu_solve(noise * mp.matrix(Kz.tolist()) + wide * wide.T, wide * target)
        expected = np.array((wide.T * alpha).tolist(), dtype=float)[:, 0]
    (q,) = passes.converged_latents(
        Stream([rows.take(slice(0, 25)), rows.take(slice(25, 40))]), model, params
    )
    assert_allclose((q.inverse @ K).T @ q.mean, expected, atol=1e-8)
