import numpy as np
from numpy.testing import assert_allclose

from harmonium.small import recipe, rows_of, table
from nongauss.harmonium.config import MOST_RIDGE, UNSUPERVISED
from nongauss.harmonium.contrastive_divergence import (
    ContrastiveLearner,
    batch_size,
    dropout_share,
    keep_normalisable,
    n_epochs,
)
from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.exponential_families import UnitBlock, respond, saturated_share
from nongauss.harmonium.fit import learn
from nongauss.harmonium.updates import preactivation


def test_sticks_order_features_and_the_schedule_follows_the_rows():
    layout, rows, _ = rows_of()
    params, prior = learn(layout, rows, recipe(has_sticks=True, max_epochs=20)).state
    use = respond("binary", preactivation(params, rows.X), prior.log_odds).on.mean(axis=0)
    assert prior.gamma.shape == (8, 2)
    assert np.corrcoef(prior.log_odds, use)[0, 1] > 0.5
    assert n_epochs(recipe(), 250) == 120
    assert n_epochs(recipe(max_epochs=3), 250) == 3
    assert n_epochs(recipe(), 60_000) == 12
    assert n_epochs(recipe(n_scores=10, C=300.0), 60_000) == 24
    assert n_epochs(recipe(n_scores=10, C=300.0), 250) == 120
    assert batch_size(recipe(batch_size=256), 100) == 25
    assert 0 < dropout_share(recipe(), rows) < 0.5


def test_real_beside_real_units_stay_where_the_partition_function_is_finite():
    weights = np.random.default_rng(0).normal(size=(6, 3))
    keep_normalisable(weights, (UnitBlock("a", "real", 0, 4), UnitBlock("b", "binary", 4, 6)))
    assert np.linalg.norm(weights[:4], 2) < 0.96


def test_the_ridge_grows_until_fewer_units_are_saturated():
    X, _ = table(10, 120, "real", n_columns=300)
    rows = VisibleRows(X.astype(np.float32), None, np.ones(120), None)
    layout, chosen = (UnitBlock("all", "real", 0, 300),), recipe(n_components=20)
    shares = []
    for rates in (UNSUPERVISED._replace(ridge=0.0), UNSUPERVISED):
        learner = ContrastiveLearner(layout, rows, chosen, rates, 120)
        for number in range(120):
            learner.epoch(number)
        on = respond("binary", preactivation(learner.params, rows.X), learner.prior.log_odds).on
        shares.append(saturated_share(on, rows.weight))
    assert shares[0] > 0.8
    assert shares[1] < 0.7
    assert UNSUPERVISED.ridge < learner.ridge <= MOST_RIDGE


def test_batches_together_count_every_row_by_its_weight(monkeypatch):
    """Their gradients add up to that of all rows at once, heavy rows or light ones in a batch."""
    layout, rows, _ = rows_of(n_rows=96, labels=np.arange(96) % 2)
    rows = rows._replace(weight=np.random.default_rng(0).pareto(1.0, 96) + 0.1)
    monkeypatch.setattr("nongauss.harmonium.contrastive_divergence.CONTRAST_SHARE", 1.0)
    gradients = []
    for size in (16, 96):
        monkeypatch.setattr(
            "nongauss.harmonium.contrastive_divergence.batch_size", lambda *_, size=size: size
        )
        chosen = recipe(method="mean_field", n_scores=2, dropout=0.0)
        learner = ContrastiveLearner(layout, rows, chosen, UNSUPERVISED._replace(ridge=0.0, overlap=0.0), 1)
        moves = []
        monkeypatch.setattr(learner, "_move", lambda gradient, moves=moves: moves.append(gradient))
        learner.epoch(0)
        gradients.append([np.mean(parts, axis=0) for parts in zip(*moves, strict=True)])
    for some, whole in zip(*gradients, strict=True):
        assert_allclose(some, whole, rtol=1e-4, atol=1e-4)
