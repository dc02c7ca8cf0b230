import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from harmonium.small import recipe, rows_of
from nongauss.harmonium.config import PATIENCE
from nongauss.harmonium.exponential_families import respond
from nongauss.harmonium.fit import chain_sample, has_room, learn
from nongauss.harmonium.objective import log_marginal, scores
from nongauss.harmonium.updates import preactivation
from nongauss.optimise.course import Status


@pytest.mark.parametrize("method", ["cd", "mean_field", "pcd", "lbfgs"])
def test_every_method_lowers_the_free_energy_of_data_against_noise(method):
    layout, rows, _ = rows_of()
    result = learn(layout, rows, recipe(method=method, max_epochs=90))
    params, prior = result.state
    noise = (np.random.default_rng(0).random(rows.X.shape) < rows.X.mean(axis=0)).astype(np.float32)
    gain = (
        log_marginal(params, "binary", prior.log_odds, rows.X).mean()
        - log_marginal(params, "binary", prior.log_odds, noise).mean()
    )
    assert gain > 1.0  # nats a row
    assert result.status in (Status.COMPLETED, Status.CONVERGED, Status.MAX_ITER)
    assert np.isfinite([row["bound"] for row in result.trace]).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("method", ["cd", "lbfgs"])
@pytest.mark.parametrize("units", ["binary", "real"])
def test_labels_that_features_decide_are_learned(units, method, sparse):
    _, _, Z = rows_of()
    labels = (Z[:, 0] + 2 * Z[:, 1]).astype(int) % 3
    layout, rows, _ = rows_of(labels=labels, sparse=sparse)
    params, prior = learn(layout, rows, recipe(n_scores=3, units=units, method=method, max_epochs=80)).state
    f = scores(params, units, respond(units, preactivation(params, rows.X), prior.log_odds).mean, rows.X)
    assert np.mean(f.argmax(axis=1) == labels) > 0.7


@pytest.mark.parametrize("method", ["cd", "lbfgs"])
def test_real_beside_real_units_stay_normalisable(method):
    layout, rows, _ = rows_of("real")
    rows = rows._replace(X=rows.X / rows.X.std(axis=0))
    chosen = recipe(n_components=20, units="real", method=method, max_epochs=40)
    result = learn(layout, rows, chosen)
    assert 0.5 < np.linalg.norm(result.state[0].weights, 2) < 0.96
    assert result.trace[-1]["bound"] > result.trace[0]["bound"]


def test_sticks_follow_the_units_that_lbfgs_learns():
    layout, rows, _ = rows_of()
    params, prior = learn(layout, rows, recipe(method="lbfgs", has_sticks=True, max_epochs=30)).state
    use = respond("binary", preactivation(params, rows.X), prior.log_odds).on.mean(axis=0)
    assert prior.gamma.shape == (8, 2)
    assert np.corrcoef(prior.log_odds, use)[0, 1] > 0.5


@pytest.mark.parametrize("method", ["cd", "lbfgs"])
def test_without_weight_on_the_labels_the_features_are_the_unsupervised_ones(method):
    layout, rows, _ = rows_of(labels=np.arange(250) % 3)
    rows = rows._replace(missing=np.random.default_rng(0).random(rows.X.shape) < 0.05)
    chosen = recipe(C=0.0, method=method, max_epochs=4)
    with_, without = (learn(layout, rows, chosen._replace(n_scores=n)).state[0] for n in (3, 0))
    assert_allclose(with_.weights, without.weights, atol=1e-4)
    assert_array_equal(with_.votes, np.zeros((3, 8)))


def test_fits_are_repeatable_and_samples_are_of_the_size_there_is_room_for(monkeypatch):
    layout, rows, _ = rows_of()
    first, again = (learn(layout, rows, recipe(max_epochs=2)).state[0] for _ in range(2))
    assert_array_equal(first.weights, again.weights)
    assert chain_sample(rows, 0) is rows
    monkeypatch.setattr("nongauss.harmonium.fit.MOST_CELLS", 600)
    assert len(chain_sample(rows, 0).weight) == 10
    assert [has_room(*shape) for shape in ((10, 60), (11, 60), (9000, 24), (9000, 25))] == [
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("n_classes", [0, 2])
def test_a_fit_that_is_watched_ends_early_with_its_best_epoch(n_classes):
    _, _, Z = rows_of()
    layout, rows, _ = rows_of(labels=np.random.default_rng(0).integers(0, 2, len(Z)))
    chosen = recipe(n_components=40, n_scores=n_classes, max_epochs=400, validation_fraction=0.3, dropout=0.0)
    result = learn(layout, rows, chosen)
    scores_ = [row["held_out"] for row in result.trace]
    assert result.status is Status.EARLY_STOPPED
    assert result.n_iter < 400
    assert int(np.argmax(scores_)) == result.n_iter - 1 - PATIENCE
    best = learn(layout, rows, chosen._replace(max_epochs=400)).state[0]
    assert_array_equal(best.weights, result.state[0].weights)
