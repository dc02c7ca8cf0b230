import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss import SparseGPRegressor
from nongauss.optimise.course import Run, Status
from nongauss.optimise.lbfgs import lbfgs
from nongauss.sparse_gp import config, updates
from nongauss.sparse_gp import fit as fits
from nongauss.sparse_gp import params as stored
from nongauss.sparse_gp.fit import fit_model
from nongauss.sparse_gp.likelihoods import Bernoulli, HeteroscedasticGaussian, Poisson
from nongauss.sparse_gp.params import learning_rows
from nongauss.sparse_gp.updates import HyperObjective
from sparse_gp.small import differences, model, params, recipe, rows

COUNTS = rows(40)._replace(y=np.random.default_rng(0).poisson(2.0, 40).astype(float))
SIGNS = rows(40)._replace(y=(rows(40).y > 0).astype(float))


@pytest.mark.parametrize(
    ("likelihood", "data", "n_kernels"),
    [
        (None, rows(40), 1),
        (Poisson(), COUNTS, 1),
        (Bernoulli(), SIGNS, 1),
        (HeteroscedasticGaussian(), rows(40), 2),
    ],
    ids=["gaussian", "poisson", "bernoulli", "heteroscedastic"],
)
def test_gradient_of_the_bound_where_q_has_converged(monkeypatch, likelihood, data, n_kernels):
    """By the envelope theorem the derivative with q converged is the partial one: checked with q at rest."""
    monkeypatch.setattr(updates, "CLOSE_TOL", 0.0)
    own = model(likelihood, "matern52 + linear(a)", n_kernels)
    _, psi = own.likelihood.start(data.y, data.weight)
    at = params(own, psi, data.X[:6])
    bound = HyperObjective(own, data, at, True, False)
    for _ in range(40):
        _, gradient, _ = bound(at.flat(True))
    expected = differences(lambda flat: bound(flat)[0], at.flat(True), 1e-4)
    assert_allclose(gradient, expected, atol=2e-3, rtol=2e-3)


def test_a_fit_raises_the_bound_and_stops():
    _, result, posterior, *_ = fit_model(model(), rows(60), np.array([np.log(0.1)]), recipe(8), 0, Run())
    bounds = [row["bound"] for row in result.trace]
    assert result.status is Status.CONVERGED
    assert bounds[-1] > bounds[0]
    assert posterior.Z.shape == (8, 2)


def test_a_fit_that_begins_at_the_top_has_the_bound_there(monkeypatch):
    """No step leads on, so the trace is empty; the model is as good as where it began, and no NaN."""
    at, data = recipe(8), rows(60)
    first = fit_model(model(), data, np.array([-2.0]), at, 0, Run())
    monkeypatch.setattr(fits, "lbfgs", lambda bound, limits: lbfgs(lambda x: (1.0, 0.0 * x, 1.0), limits))
    again = fit_model(model(), data, np.array([-2.0]), at, 0, Run(), begin=first.posterior)
    assert not again.result.trace
    assert_allclose(again.bound, first.bound)


def test_a_callback_stops_it():
    _, result, *_ = fit_model(
        model(), rows(60), np.array([-2.0]), recipe(8), 0, Run((lambda p: p.iteration == 3,))
    )
    assert result.status is Status.STOPPED
    assert result.n_iter == 3


def test_too_many_rows_are_sampled_for_the_hyper_parameters(monkeypatch):
    monkeypatch.setattr(stored, "KEPT_NUMBERS", 100)
    data = rows(60)
    assert len(learning_rows(data, 5).y) == 20
    assert learning_rows(data, 1) is data
    _, result, posterior, *_ = fit_model(model(), data, np.array([-2.0]), recipe(5, 20), 0, Run())
    assert np.isfinite(posterior.alpha).all()
    assert result.n_iter


@pytest.mark.parametrize(("likelihood", "expected"), [("gaussian", [40, 200]), ("student_t", [40, 40, 200])])
def test_many_rows_are_fitted_to_some_of_them_first(monkeypatch, capsys, likelihood, expected):
    """The fit to all begins where that has ended: it needs fewer iterations, and predicts as well."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=400)
    train, test = slice(200), slice(200, None)
    done, fit_one = [], fits.fit_model

    def counted(own, data, *more, **others):
        member = fit_one(own, data, *more, **others)
        done.append((len(data.y), member.result.n_iter))
        return member

    monkeypatch.setattr(fits, "fit_model", counted)
    monkeypatch.setattr(config, "MOST_AVERAGED", 100)
    model = SparseGPRegressor(likelihood, n_inducing=20, random_state=0, verbose=1)
    plain = model.fit(X[train], y[train]).log_density(X[test], y[test]).mean()
    cold = list(done)
    assert {size for size, _ in cold} == {200}
    done.clear()
    monkeypatch.setattr(config, "FIRST_NUMBERS", 40 * 20**2)
    density = model.fit(X[train], y[train]).log_density(X[test], y[test]).mean()
    assert [size for size, _ in done] == expected
    assert done[-1][1] < sum(iterations for _, iterations in cold)
    assert density > plain - 0.02
    assert "fitted to 40 of 200 rows in" in capsys.readouterr().out


def test_heavy_tailed_noise_finds_what_normal_noise_finds():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (350, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * np.sin(9 * X[:, 1]) + 0.01 * rng.normal(size=350)
    train, test = slice(150), slice(150, None)
    density = {
        likelihood: SparseGPRegressor(likelihood, random_state=0)
        .fit(X[train], y[train])
        .predict_distribution(X[test])
        .log_prob(y[test])
        .mean()
        for likelihood in ("gaussian", "student_t", "laplace")
    }
    assert density["student_t"] > density["gaussian"] - 0.02
    assert density["laplace"] > density["gaussian"] - 0.05
