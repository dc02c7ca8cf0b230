"""Averages of models: what a model says of a row without its target, and the weights."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import norm

from nongauss import SparseGPClassifier, SparseGPRegressor
from nongauss.core.errors import NongaussWarning
from nongauss.optimise.course import FitResult, Run, Status
from nongauss.predictive.stacking import best_weights
from nongauss.sparse_gp import fit as module
from nongauss.sparse_gp.data import GPTable
from nongauss.sparse_gp.fit import fit_models, posterior_at
from nongauss.sparse_gp.objective import bound_at
from nongauss.sparse_gp.params import GaussianSites, KernelBlocks, first_sites
from nongauss.sparse_gp.predict import FittedGP
from nongauss.sparse_gp.stacking import left_out, weights_of
from nongauss.sparse_gp.updates import HyperObjective
from sparse_gp.small import SPACE, model, params, recipe, rows

FIT = FitResult(None, [{"bound": 1.0}], Status.CONVERGED, 1)
NO_FIT = FitResult(None, [], Status.CONVERGED, 0)


def without(own, data, at, n, is_exact):
    """log p(y_n | the others), by doing without the row."""
    if is_exact:
        others = data.take(np.arange(len(data.y)) != n)
        q = posterior_at(
            HyperObjective(own, others, at._replace(Z=others.X), False, True), at._replace(Z=others.X)
        )
        mean, variance = (float(part[0, 0, 0]) for part in q.moments(data.X[[n]]))
    else:
        sites = first_sites(own, data, at.psi)
        kept = (np.arange(len(data.y)) != n)[:, None]
        blocks = KernelBlocks(own, at, data)
        q = bound_at(blocks, GaussianSites(sites.linear * kept, sites.precision * kept))
        [(_, [basis])] = list(blocks)
        mean = own.offset[0] + q.centred[n, 0]
        variance = basis.diagonal[n] - basis.K[:, n] @ q.latents[0].W @ basis.K[:, n]
    return norm.logpdf(data.y[n], mean, np.sqrt(variance + np.exp(at.psi[0])))


@pytest.mark.parametrize("is_exact", [True, False])
def test_a_row_left_out_is_predicted_as_if_it_had_not_been_there(is_exact):
    data, own = rows(14), model(offset=np.array([0.2]))
    at = params(own, [np.log(0.05)], data.X if is_exact else data.X[:5])
    member = FittedGP(own, NO_FIT, posterior_at(HyperObjective(own, data, at, False, is_exact), at))
    expected = [without(own, data, at, n, is_exact) for n in range(14)]
    assert_allclose(left_out(member, data), expected, rtol=1e-6)


def test_weights_are_the_best_there_are():
    rng = np.random.default_rng(0)
    y, weight = rng.normal(size=200) + (rng.random(200) < 0.3) * 3.0, rng.integers(1, 4, 200).astype(float)
    density = np.stack([norm.logpdf(y), norm.logpdf(y, 3.0)])
    share = best_weights(density, weight)
    grid = np.linspace(0.01, 0.99, 99)
    scores = [weight @ logsumexp(density + np.log([[1 - w], [w]]), axis=0) for w in grid]
    assert_allclose(share, [1 - grid[np.argmax(scores)], grid[np.argmax(scores)]], atol=0.01)
    assert_allclose(best_weights(np.stack([density[0], density[0] - 5.0]), weight), [1.0, 0.0], atol=1e-3)


def test_one_model_has_all_the_weight_and_a_request_to_stop_stops_all(monkeypatch):
    data, psi, few = GPTable(rows(30), SPACE, None, 0, None), np.array([-2.0]), recipe(30, 5)
    models = [model(), model(kernel="matern52 + matern52")]
    both = fit_models(models, data, psi, few, 0, Run())
    shares = weights_of(both, data.rows)
    assert_allclose(shares.sum(), 1.0)
    alike = [both[0], both[0]._replace(model=both[1].model)]  # as good with more parameters
    assert_allclose(weights_of(alike, data.rows), [1.0, 0.0], atol=0.03)
    with monkeypatch.context() as patch:  # a model that has no bound anywhere
        patch.setattr(
            module,
            "fit_model",
            lambda own, *more, **others: FittedGP(own, NO_FIT if own is models[1] else FIT, None),
        )
        assert [member.model for member in fit_models(models, data, psi, few, 0, Run())] == models[:1]
    one = fit_models(models, data, psi, few, 0, Run((lambda _: True,)))
    assert len(one) == 1
    assert weights_of(one, data.rows) == [1.0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_user_gets_the_average():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (50, 1))
    y = 100.0 * (np.sin(X[:, 0]) + 0.3 * np.sin(12 * X[:, 0]) + 0.1 * rng.normal(size=50))
    how = {"max_iter": 30, "hyper_parameters": "best", "random_state": 0}
    model = SparseGPRegressor(**how).fit(X, y)
    assert [len(q.thetas[0]) for q in model.posteriors_] in ([2, 8], [8, 2])
    assert model.posterior_ is model.posteriors_[0]
    alone = [SparseGPRegressor(n_scales=n, **how).fit(X, y) for n in (1, 4)]
    alone.sort(key=lambda part: part.bound_ != model.bound_)
    assert model.bound_ == alone[0].bound_
    assert (np.diff(model.weights_) <= 0).all()
    new = np.linspace(-3, 3, 9)[:, None]
    assert_allclose(model.predict(new), model.weights_ @ [part.predict(new) for part in alone])
    expected = logsumexp([part.log_density(new, y[:9]) for part in alone], axis=0, b=model.weights_[:, None])
    assert_allclose(model.log_density(new, y[:9]), expected)
    assert_allclose(model.predict_distribution(new).mean, model.predict(new))
    with pytest.warns(NongaussWarning, match="request"):
        stopped = SparseGPRegressor(callbacks=[lambda _: True], random_state=0).fit(X, y)
    assert len(stopped.posteriors_) == 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("is_label", [pytest.param(False, marks=pytest.mark.gate), True])
def test_hours_of_dates_are_followed_round_the_clock(is_label):
    """Three rows for each hour: its neighbours tell what it is like, as labels without an order do not."""
    rng = np.random.default_rng(0)
    hour = np.tile(np.arange(24), 12)
    days = pd.to_timedelta(24 * np.arange(288) + hour, "h")
    table = pd.DataFrame({"time": pd.Timestamp("2024-01-01") + days})
    f = 3.0 * np.cos(2.0 * np.pi * (hour - 1.0) / 24)
    y = (f + rng.logistic(size=288) > 0).astype(int) if is_label else f + 2.0 * rng.normal(size=288)
    train, test = slice(72), slice(72, None)
    how = {"max_iter": 15, "n_inducing": 30, "random_state": 0}
    kind = SparseGPClassifier if is_label else SparseGPRegressor
    model = kind(**how).fit(table[train], y[train])
    plain = kind(n_scales=1, **how).fit(table[train], y[train])
    assert "cyclic variance" in model.kernel_params_

    def density(of):
        if not is_label:
            return of.log_density(table[test], y[test]).mean()
        return np.log(of.predict_proba(table[test])[np.arange(216), y[test]]).mean()

    assert density(model) > density(plain) + 0.05
    if is_label:
        encoded = model._encoder.as_scaled(table)
        parts = [q.likelihood.probabilities(*q.moments(encoded), q.psi) for q in model.posteriors_]
        assert_allclose(model.predict_proba(table), np.tensordot(model.weights_, parts, 1))
