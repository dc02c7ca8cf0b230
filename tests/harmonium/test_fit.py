import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from harmonium.small import table
from nongauss.core.contracts import Status
from nongauss.harmonium.fit import (
    Recipe,
    batch_size,
    contract,
    dropout_share,
    find_features,
    learn,
    n_epochs,
    sample,
)
from nongauss.harmonium.objective import log_marginal, scores
from nongauss.harmonium.params import Rows
from nongauss.harmonium.units import Block, respond
from nongauss.harmonium.updates import drive_of


def recipe(**changes) -> Recipe:
    base = Recipe(
        n_components=8, units="binary", method="cd", max_epochs=None, batch_size=64, has_sticks=False,
        alpha=1.0, accurate=True, C=300.0, dropout=None, n_classes=0, seed=0,
    )  # fmt: skip
    return base._replace(**changes)


def rows_of(kind="binary", n_features=3, n_rows=250, labels=None, sparse=False):
    X, Z = table(n_features, n_rows, kind)
    X = X.astype(np.float32)
    layout = (Block("all", kind, 0, X.shape[1]),)
    return layout, Rows(sp.csr_matrix(X) if sparse else X, None, np.ones(n_rows), labels), Z


@pytest.mark.parametrize("method", ["cd", "mean_field", "pcd", "lbfgs"])
def test_every_method_lowers_the_free_energy_of_data_against_noise(method):
    layout, rows, _ = rows_of()
    result = learn(layout, rows, recipe(method=method, max_epochs=30))
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
@pytest.mark.parametrize("units", ["binary", "real"])
def test_labels_that_features_decide_are_learned(units, sparse):
    _, _, Z = rows_of()
    labels = (Z[:, 0] + 2 * Z[:, 1]).astype(int) % 3
    layout, rows, _ = rows_of(labels=labels, sparse=sparse)
    params, prior = learn(layout, rows, recipe(n_classes=3, units=units, max_epochs=80)).state
    f = scores(params, units, respond(units, drive_of(params, rows.X), prior.log_odds).mean)
    assert np.mean(f.argmax(axis=1) == labels) > 0.7


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_the_number_of_features_is_found(kind):
    layout, rows, Z = rows_of(kind, n_features=4, n_rows=600)
    result = find_features(layout, rows, recipe(n_components=25, batch_size=256), True)
    on = result.state.on
    assert on.shape[1] == 4
    alike = np.abs(np.corrcoef(on.T, Z.T)[:4, 4:])
    assert (alike.max(axis=0) > 0.7).all()


def test_sticks_order_features_and_the_schedule_follows_the_rows():
    layout, rows, _ = rows_of()
    params, prior = learn(layout, rows, recipe(has_sticks=True, max_epochs=20)).state
    use = respond("binary", drive_of(params, rows.X), prior.log_odds).on.mean(axis=0)
    assert prior.gamma.shape == (8, 2)
    assert np.corrcoef(prior.log_odds, use)[0, 1] > 0.5
    assert n_epochs(recipe(), 250) == 120
    assert n_epochs(recipe(max_epochs=3), 250) == 3
    assert batch_size(recipe(batch_size=256), 100) == 25
    assert 0 < dropout_share(recipe(), rows) < 0.5


def test_fits_are_repeatable_and_samples_are_of_the_size_there_is_room_for(monkeypatch):
    layout, rows, _ = rows_of()
    first, again = (learn(layout, rows, recipe(max_epochs=2)).state[0] for _ in range(2))
    assert_array_equal(first.weights, again.weights)
    assert sample(rows, 0) is rows
    monkeypatch.setattr("nongauss.harmonium.fit.MOST_CELLS", 600)
    assert len(sample(rows, 0).weight) == 10


def test_real_beside_real_units_stay_where_the_partition_function_is_finite():
    weights = np.random.default_rng(0).normal(size=(6, 3))
    contract(weights, (Block("a", "real", 0, 4), Block("b", "binary", 4, 6)))
    assert np.linalg.norm(weights[:4], 2) < 0.96
