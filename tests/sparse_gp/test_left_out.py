"""What a Gaussian process says of a row without it, against doing without the row."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss import SparseGPClassifier, SparseGPRegressor
from nongauss.sparse_gp.fit import posterior_at
from nongauss.sparse_gp.left_out import (
    left_out_law,
    left_out_moments,
    left_out_probabilities,
    n_parameters,
)
from nongauss.sparse_gp.likelihoods import Poisson
from nongauss.sparse_gp.objective import bound_at
from nongauss.sparse_gp.params import GaussianSites, KernelBlocks
from nongauss.sparse_gp.predict import FittedGP
from nongauss.sparse_gp.stacking import left_out
from nongauss.sparse_gp.updates import HyperObjective
from sparse_gp.small import model, params, rows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("is_exact", [True, False])
def test_with_gaussian_noise_it_is_what_the_average_takes(is_exact):
    data, own = rows(14, weighted=False), model(offset=np.array([0.2]))
    at = params(own, [np.log(0.05)], data.X if is_exact else data.X[:5])
    posterior = posterior_at(HyperObjective(own, data, at, False, is_exact), at)
    expected = left_out(FittedGP(own, None, posterior), data)
    moments = left_out_moments(posterior, data.X, data.y, data.weight, data.shift, is_exact)
    law = own.likelihood.predictive(*moments, posterior.psi)
    assert_allclose(law.log_prob(data.y), expected, rtol=1e-5)


def test_with_counts_it_is_q_without_the_row_s_site():
    data, own = rows(16), model(Poisson())
    data = data._replace(y=np.random.default_rng(0).poisson(2.0, 16).astype(float))
    at = params(own, [], data.X[:6])
    bound = HyperObjective(own, data, at, False, False)
    blocks, q = bound.at_rest(at)
    posterior = posterior_at(bound, at)
    mean, variance = left_out_moments(posterior, data.X, data.y, data.weight, data.shift, False)
    for n in (0, 3, 11):
        kept = (np.arange(16) != n)[:, None]
        without = bound_at(
            KernelBlocks(own, at, data), GaussianSites(q.sites.linear * kept, q.sites.precision * kept)
        )
        [(_, [basis])] = list(blocks)
        assert_allclose(mean[0, n, 0], own.offset[0] + without.centred[n, 0], atol=2e-3)
        expected = basis.diagonal[n] - basis.K[:, n] @ without.latents[0].W @ basis.K[:, n]
        assert_allclose(variance[0, n, 0], expected, rtol=5e-3)


def test_without_a_row_no_more_is_open_than_in_the_prior():
    """Also where q(u) is not at the fixed point of its sites, so that a site is more than q says."""
    data, own = rows(16), model(Poisson())
    data = data._replace(y=np.random.default_rng(0).poisson(2.0, 16).astype(float))
    at = params(own, [], data.X[:6])
    posterior = posterior_at(HyperObjective(own, data, at, False, False), at)
    astray = posterior._replace(offset=posterior.offset + 6.0)
    mean, variance = left_out_moments(astray, data.X, data.y, data.weight, data.shift, False)
    prior = own.kernels[0].diagonal(at.thetas[0], own.space, data.X)
    assert (variance[0, :, 0] <= prior * (1 + 1e-9)).all()
    assert np.abs(mean).max() < 1e5


def test_it_foretells_what_new_rows_get():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, size=(240, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_t(3, size=240)
    model = SparseGPRegressor("student_t", n_inducing=30, random_state=0).fit(X[:120], y[:120])
    inner = left_out_law(model, X[:120], y[:120], np.ones(120)).log_prob(y[:120]).mean()
    seen = model.log_density(X[:120], y[:120]).mean()
    new = model.log_density(X[120:], y[120:]).mean()
    assert inner < seen
    assert abs(inner - new) < 0.2
    assert n_parameters(model) >= 3
    both = SimpleNamespace(posteriors_=model.posteriors_[:1] * 2, weights_=np.array([0.5, 0.5]))
    assert n_parameters(both) == len(model.posterior_.thetas[0]) + len(model.posterior_.psi)


def test_probabilities_of_labels_without_the_row():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 2))
    y = (X[:, 0] + 0.7 * rng.normal(size=90) > 0).astype(int) + (X[:, 1] > 0.8)
    model = SparseGPClassifier(n_inducing=25, random_state=0).fit(X, y)
    found = left_out_probabilities(model, X, y.astype(float), np.ones(90))
    assert_allclose(found.sum(axis=1), 1.0)
    own = np.arange(90), y
    assert np.log(found[own]).mean() < np.log(model.predict_proba(X)[own]).mean()
