"""Labels from the outside: accuracy, probabilities, both rules, weights, sparse tables, going on."""

from __future__ import annotations

from copy import copy

import jax
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import truncnorm
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import log_loss

from nongauss import TGGMClassifier
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.estimator.base import InvalidParameterError
from nongauss.tables.source import sample
from nongauss.tggm.data import LARGEST

X, Y = load_iris(return_X_y=True)
TRAIN, TEST = slice(0, None, 2), slice(1, None, 2)


def small(**changes):
    return TGGMClassifier(
        **{"hidden_layer_sizes": (8,), "max_epochs": 60, "learning_rate": 0.02, "random_state": 0, **changes}
    )


@pytest.fixture(scope="module")
def fitted():
    return small().fit(X[TRAIN], Y[TRAIN])


def test_iris(fitted):
    probabilities = fitted.predict_proba(X[TEST])
    assert fitted.score(X[TEST], Y[TEST]) > 0.93
    assert log_loss(Y[TEST], probabilities) < 0.25
    assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert (probabilities > 0).all()
    assert_allclose(np.exp(fitted.predict_log_proba(X[TEST])), probabilities, rtol=1e-12)


@pytest.mark.gate
def test_probabilities_are_those_of_draws_from_the_model(fitted):
    """One layer, one member at a time: h from its truncated normals, z from h, the largest wins."""
    rng, rows = np.random.default_rng(0), X[[60, 75, 110]]
    encoded = fitted._encode(rows)
    shares = np.zeros((3, 3))
    for e in range(fitted.n_members):
        W0, b0, W1, b1, log_sd0 = (np.asarray(leaf[e], float) for leaf in fitted.params_[:5])
        for i, x in enumerate(encoded):
            c, sd = W0 @ x + b0, np.exp(log_sd0)
            h = truncnorm.rvs(-c / sd, np.inf, loc=c, scale=sd, size=(20_000, 8), random_state=rng)
            z = h @ W1.T + b1 + rng.normal(size=(len(h), 3))
            shares[i] += np.bincount(z.argmax(axis=1), minlength=3) / len(h) / fitted.n_members
    assert_allclose(fitted.predict_proba(rows), shares, atol=0.02)  # z is nearly Gaussian: 8 units


def test_both_rules_are_offered(fitted):
    """An uncertain class of mean 0 against two certain ones at 0.3 and 0.25: it is the most probable."""
    one = jax.tree.map(lambda leaf: np.asarray(leaf[:1]), fitted.params_)
    params = one._replace(W1=np.zeros_like(one.W1), b1=np.array([[0.0, 0.3, 0.25]]))
    params.W1[:, 0] = 100.0
    model = copy(fitted)
    model.ensemble_ = fitted.ensemble_._replace(params=params)
    params.b1[0, 0] = -model.ensemble_.classes(model._encode(X[:1]))[1][0, 0]
    assert model.predict_proba(X[:1]).argmax() == model.predict(X[:1])[0] == 0
    assert model.set_params(decision="mean_output").predict(X[:1])[0] == 1


@pytest.mark.parametrize("changes", [{"hidden_layer_sizes": (8, 6)}, {"method": "bp"}], ids=str)
@pytest.mark.gate
def test_depth_and_back_propagation(changes):
    model = small(n_members=1, **changes).fit(X[TRAIN], Y[TRAIN])
    assert model.score(X[TEST], Y[TEST]) > 0.9


@pytest.mark.slow
def test_mean_field_of_two_layers():
    model = small(posterior="mean_field", hidden_layer_sizes=(4, 3), n_sweeps=8, n_members=1, max_epochs=150)
    model.fit(X[TRAIN], Y[TRAIN])
    assert model.score(X[TEST], Y[TEST]) > 0.8


def test_9_labels_of_any_type(fitted):
    for names in (np.array(["a", "bb", "c"]), np.array([-5, 0, 7]), np.array(["x", "y", "z"], object)):
        model = small().fit(X[TRAIN], names[Y][TRAIN])
        assert_array_equal(model.classes_, names)
        assert_array_equal(model.predict(X), names[fitted.predict(X)])


@pytest.mark.gate
def test_32_separable_classes_stay_finite():
    x = np.r_[np.linspace(-2, -1, 20), np.linspace(1, 2, 20)][:, None]
    model = small(max_epochs=200).fit(x, x[:, 0] > 0)
    assert model.classes_.dtype == bool
    assert_array_equal(model.set_params(decision="mean_output").predict(x), x[:, 0] > 0)
    probabilities = model.predict_proba(np.array([[-1.5], [0.0], [1.5], [1e6]]))
    assert np.isfinite(probabilities).all()
    assert probabilities[0, 0] > 0.9
    assert probabilities[2, 1] > 0.9
    assert 0.1 < probabilities[1, 1] < 0.9


def test_13_24_one_class_and_strange_weights_are_refused():
    with pytest.raises(InputError, match="at least two classes"):
        small().fit(X[:50], Y[:50])
    for strange in ({9: 1.0}, {0: "heavy"}, {0: -1.0}):
        with pytest.raises(InputError, match="class_weight gives"):
            small(class_weight=strange).fit(X, Y)
    with pytest.raises(InputError, match="leaves no row"):
        small(class_weight={0: 0.0, 1: 0.0, 2: 0.0}).fit(X, Y)


@pytest.mark.gate
def test_class_weights_move_the_border():
    rng = np.random.default_rng(0)
    x = np.r_[rng.normal(-0.5, 1.0, 36), rng.normal(0.5, 1.0, 4)][:, None]
    y = np.repeat([0, 1], [36, 4])
    plain, balanced = (small(class_weight=w).fit(x, y).predict_proba(x)[:, 1] for w in (None, "balanced"))
    assert abs(plain.mean() - 0.1) < 0.1
    assert balanced.mean() > plain.mean() + 0.15
    by_hand = small(class_weight={0: 40 / 72, 1: 5.0}).fit(x, y).predict_proba(x)[:, 1]
    assert_allclose(by_hand, balanced, atol=1e-3)


@pytest.mark.gate
def test_sparse_tables_are_dense_tables():
    digits, y = load_digits(return_X_y=True)
    matrix = sparse.csr_array(digits[:300])
    digits, y = digits[:300], y[:300]
    model = small(max_epochs=60, n_members=1).fit(matrix[:200], y[:200])
    assert model.score(matrix[200:], y[200:]) > 0.75
    assert_allclose(model.predict_proba(digits), model.predict_proba(matrix.tocsc()), rtol=1e-12)
    assert model.n_features_in_ == 64


@pytest.mark.gate
def test_frames_with_text():
    frame = pd.DataFrame({"length": X[:, 2], "kind": np.where(X[:, 3] > 1.0, "wide", "slim")})
    model = small(n_members=1, max_epochs=150).fit(frame, Y)
    assert model.score(frame, Y) > 0.85
    with pytest.warns(NongaussWarning, match="did not occur in training"):
        model.predict(frame.assign(kind="new"))


@pytest.mark.gate
def test_13_one_class_alone_may_be_a_portion():
    model = small().partial_fit(X[:50], Y[:50], classes=[0, 1, 2])
    assert model.predict_proba(X[:1]).shape == (1, 3)


def test_partial_fit_learns_and_knows_absent_classes():
    model, (x, y) = small(learning_rate=0.01), (X[:100:2], Y[:100:2])
    for _ in range(60):
        model.partial_fit(x, y, classes=[2, 0, 1])
    assert_array_equal(model.classes_, [0, 1, 2])  # as scikit-learn's metrics want the columns
    assert model.predict_proba(x).shape == (50, 3)
    assert model.score(x, y) > 0.95
    assert model.n_iter_ == 60
    with pytest.raises(InputError, match=r"classes are \[0, 1\], but the first call fixed \[0, 1, 2\]"):
        model.partial_fit(x, y, classes=[0, 1])
    with pytest.raises(InputError, match="'balanced' needs all rows"):
        model.set_params(class_weight="balanced").partial_fit(x, y)


@pytest.mark.gate
def test_rows_of_one_input_are_held_out_together():
    """Titanic in small: few distinct inputs, both labels at each; the shares must come out."""
    x = np.repeat([0.0, 1.0, 2.0], 200)[:, None]
    y = np.concatenate([np.arange(200) < 200 * share for share in (0.1, 0.4, 0.8)])
    model = small(hidden_layer_sizes=(20,), max_epochs=800).fit(x, y)
    assert_allclose(model.predict_proba([[0.0], [1.0], [2.0]])[:, 1], [0.1, 0.4, 0.8], atol=0.03)


@pytest.mark.gate
def test_4_three_hundred_columns_in_units_of_ten_thousand():
    rng = np.random.default_rng(0)
    wide = rng.random((60, 300))
    y = wide[:, 0] > 0.5
    model = small(max_epochs=10, n_members=1, keep_columns="all")
    expected = model.fit(wide, y).predict_proba(wide)
    assert_allclose(model.fit(1e4 * wide, y).predict_proba(1e4 * wide), expected, rtol=1e-5)


def test_rare_columns_are_not_blown_up():
    rare = np.column_stack([np.arange(1000) % 7, np.arange(1000) == 3, np.arange(1000)])
    reading, rows = small()._read_table(rare.astype(float), np.arange(1000) % 2, None, "all")
    largest = np.abs(sample(rows, None).rows.X).max(axis=0)
    assert_allclose(reading.shrink, [1.0, LARGEST / np.sqrt(999.0), 1.0])
    assert_allclose(largest[1], LARGEST, rtol=1e-6)


def test_a_portion_is_in_memory():
    with pytest.raises(InputError, match="a batch of rows in memory, got a str; call fit"):
        TGGMClassifier().partial_fit("rows.parquet", "y")


@pytest.mark.gate
def test_words_that_do_not_occur_change_nothing():
    """The prior of weights counts so many columns a filled cell, however many there are."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(1_000, 0.02), size=2)
    y = np.arange(600) % 2
    counts = np.stack([rng.multinomial(12, topics[label]) for label in y])
    near, far = counts, np.concatenate([counts, np.zeros((600, 5_000), int)], axis=1)
    found = []
    for table in (near, far):
        model = TGGMClassifier((10,), n_members=2, max_epochs=40, random_state=0)
        model.fit(sparse.csr_array(table[:300]), y[:300])
        found.append(model.predict_proba(sparse.csr_array(table[300:]))[np.arange(300), y[300:]])
    assert np.abs(found[0] - found[1]).mean() < 0.02
    assert -np.log(found[1]).mean() < 0.03


def test_a_table_of_many_columns_leaves_some_cells_of_a_step_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 25)), np.arange(60) % 2
    few = {"max_epochs": 1, "n_members": 1, "random_state": 0}
    share = {
        "auto": TGGMClassifier((5,), **few).fit(X, y),
        "few columns": TGGMClassifier((5,), **few).fit(X[:, :19], y),
        "given": TGGMClassifier((5,), dropout=0.3, **few).fit(X[:, :19], y),
        "none": TGGMClassifier((5,), dropout=0, **few).fit(X, y),
        "words": TGGMClassifier((5,), **few).fit(sparse.csr_array(np.abs(X)), y),
        "paper": TGGMClassifier((5,), preset="paper").fit(X, y),
    }
    found = {name: model.ensemble_.config.dropout for name, model in share.items()}
    assert found == {"auto": 0.2, "few columns": 0, "given": 0.3, "none": 0, "words": 0.5, "paper": 0}
    with pytest.raises(InvalidParameterError, match="dropout"):
        TGGMClassifier(dropout=1.0).fit(X, y)
    with pytest.raises(InputError, match="preset='paper' sets dropout"):
        TGGMClassifier(preset="paper", dropout=0.2).fit(X, y)


@pytest.mark.gate
def test_columns_that_repeat_what_others_tell_predict_better_if_some_are_left_out():
    """Thirty noisy readings of one hidden number: the more of them are weighed, the better."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=1_100)
    X = hidden[:, None] + 2.0 * rng.normal(size=(1_100, 30))
    y = (rng.random(1_100) < 1 / (1 + np.exp(-4 * hidden))).astype(int)
    loss = {}
    for dropout in (0, 0.4):
        model = TGGMClassifier(dropout=dropout, random_state=0).fit(X[:100], y[:100])
        loss[dropout] = -np.log(model.predict_proba(X[100:])[np.arange(1_000), y[100:]]).mean()
    assert loss[0.4] < loss[0] - 0.02
