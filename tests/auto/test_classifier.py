"""`AutoClassifier`: labels, grades, a forest's law, the calibration."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

import nongauss
from nongauss import AutoClassifier
from nongauss.auto.candidate import ClassShares
from nongauss.auto.forest_classes import fit_forest_classes
from nongauss.tggm.left_out import left_out_probabilities

pytestmark = pytest.mark.usefixtures("few_trees")


def pockets(n, seed=0):
    """Labels in squares of a board, which nothing smooth reaches."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 4, size=(n, 2))
    return X, np.array(["black", "white"])[(np.floor(X).sum(axis=1) % 2).astype(int)]


def test_the_forest_sees_pockets_and_says_so_honestly():
    X, y = pockets(500)
    codes = (y == "white").astype(float)
    made, left_out = fit_forest_classes(X[:400], codes[:400], 2, np.ones(400), 0)
    new = made.probabilities(X[400:])
    assert_allclose(new.sum(axis=1), 1.0)
    own = codes[400:].astype(int)
    value = np.log(new[np.arange(100), own]).mean()
    inner = np.log(left_out[np.arange(400), codes[:400].astype(int)]).mean()
    assert value > np.log(0.5) + 0.25
    assert abs(value - inner) < 0.12
    assert (new > 0).all()


def test_where_labels_are_certain_a_forest_is_made_as_sure_as_its_left_out_rows_allow():
    """Trees that err apart make an average that is too unsure: with its power new rows are more probable."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 20))
    codes = ((X[:, 0] > 0.0) ^ (X[:, 1] > 0.5)).astype(float)
    made, _ = fit_forest_classes(X[:400], codes[:400], 2, np.ones(400), 0)
    assert made.power > 1.0
    own = codes[400:].astype(int)
    sharp, plain = (
        np.log(one.probabilities(X[400:])[np.arange(500), own]).mean()
        for one in (made, made._replace(power=1.0))
    )
    assert sharp > plain + 0.02


def test_probabilities_are_the_shares_of_the_leaf_by_hand():
    X, y = pockets(80)
    codes = (y == "white").astype(float)
    made, _ = fit_forest_classes(X, codes, 2, np.ones(80), 0)
    W = made.forest.weights(X[:5]).toarray()
    expected = (1 - made.smoothing) * (W @ np.eye(2)[codes.astype(int)]) + made.smoothing * made.shares
    expected **= made.power
    expected *= 80 / 81 / expected.sum(axis=1, keepdims=True)
    assert_allclose(made.probabilities(X[:5]), expected + made.shares / 81)


def test_a_mixture_with_a_forest_is_kept_in_a_file(tmp_path):
    X, y = pockets(200)
    model = AutoClassifier(candidates=["linear labels", "forest labels"], random_state=0).fit(X, y)
    assert model.weights_["forest labels"] > 0.5
    assert model.holds_residuals_
    nongauss.save(model, tmp_path / "m")
    again = nongauss.load(tmp_path / "m")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert set(model.leaderboard_.columns) >= {"accuracy", "brier"}


def test_grades_are_told_by_an_ordered_category_and_by_known_words():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 1))
    words = np.array(["poor", "fair", "good"])[np.digitize(X[:, 0] + 0.3 * rng.normal(size=90), [-0.5, 0.5])]
    ordered = pd.Series(pd.Categorical(words, categories=["good", "fair", "poor"], ordered=True))
    plain = AutoClassifier(candidates=["gp grades"], random_state=0).fit(X, words)
    assert plain.target_kind_ == "grades"
    assert list(plain.classes_) == ["poor", "fair", "good"]
    own = AutoClassifier(candidates=["gp grades", "linear labels"], random_state=0).fit(X, ordered)
    assert list(own.classes_) == ["good", "fair", "poor"]
    assert (own.predict(X) == words).mean() > 0.6
    labels = AutoClassifier(candidates=["linear labels"], ordered=False, random_state=0).fit(X, words)
    assert labels.target_kind_ == "labels"


def test_classes_of_another_order_find_their_places():
    shares = ClassShares(np.array(["b", "a"]), np.array([[0.2, 0.8]]))
    assert_allclose(shares.of(np.array(["a", "b", "c"])), [[0.8, 0.2, 1e-9]], atol=1e-8)


def test_where_columns_tell_nothing_the_shares_of_the_classes_are_chosen():
    chosen = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(18, 3)), rng.permutation(np.arange(18) % 2)
        model = AutoClassifier(candidates=["constant labels", "linear labels"], random_state=0).fit(X, y)
        chosen.append(model.leaderboard_["candidate"][0])
        new = model.predict_proba(rng.normal(size=(200, 3)))
        assert -np.log(new).mean() < np.log(2) + 0.1
    assert chosen.count("constant labels") >= 3


def test_a_new_process_loads_labels_with_one_lengthscale(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = np.where(X.sum(axis=1) + 0.3 * rng.normal(size=60) > 0, "a", "b")
    model = AutoClassifier(candidates=("linear labels, one scale",), random_state=0).fit(X, y)
    nongauss.save(model, tmp_path / "m")
    told = "import sys, nongauss; print(type(nongauss.load(sys.argv[1])).__name__)"
    command = [sys.executable, "-c", told, str(tmp_path / "m")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout == "AutoClassifier\n", ended.stderr[-300:]


def test_ctrl_c_before_there_is_a_model_is_no_error_of_the_table(monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("nongauss.sparse_gp.classifier.SparseGPClassifier.fit", interrupt)
    X, y = pockets(60)
    with pytest.raises(KeyboardInterrupt):
        AutoClassifier(candidates=["linear labels"], random_state=0).fit(X, y)


def made_labels(n, seed=0, bend=0.0):
    """Four columns of standard normal numbers, labels, and their log odds 2 x_0 + `bend` sin(2 x_1)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    f = 2.0 * X[:, 0] + bend * np.sin(2.0 * X[:, 1])
    return X, (rng.random(n) < expit(f)).astype(int), f


def loss_beyond_the_truth(model, X, f):
    """Nats a row that probabilities of rows X lose against those of their log odds f."""
    own = np.column_stack([expit(-f), expit(f)])
    return float((own * (np.log(own) - np.log(model.predict_proba(X)))).sum(axis=1).mean())


@pytest.mark.filterwarnings("ignore:.*far from all other values")
@pytest.mark.parametrize("far", [1e5, 1e9])
def test_a_far_cell_does_not_flatten_its_column(far):
    X, y, f = made_labels(1160)
    X[3, 0] = far
    names = ["constant labels", "linear labels", "linear labels, arcsinh inputs"]
    model = AutoClassifier(candidates=names, random_state=0).fit(X[:160], y[:160])
    assert max(model.weights_, key=model.weights_.get) == "linear labels, arcsinh inputs"
    assert loss_beyond_the_truth(model, X[160:], f[160:]) < 0.1
    loaded = pickle.loads(pickle.dumps(model))
    assert_array_equal(loaded.predict_proba(X[160:]), model.predict_proba(X[160:]))


def test_log_normal_columns_are_seen_through_arcsinh():
    X, y, f = made_labels(1200, 1, bend=1.5)
    X = np.exp(1.3 * X)
    losses = []
    for names in (["gp labels"], ["gp labels", "gp labels, arcsinh inputs"]):
        model = AutoClassifier(candidates=names, random_state=0).fit(X[:200], y[:200])
        losses.append(loss_beyond_the_truth(model, X[200:], f[200:]))
    assert model.weights_["gp labels, arcsinh inputs"] > 0.5
    assert losses[1] < losses[0] - 0.02


def test_members_that_stop_by_the_rows_that_judge_them_pay_for_it():
    X, y, _ = made_labels(60)
    model = AutoClassifier(candidates=["tggm labels"], random_state=0).fit(X, y)
    board = model.leaderboard_.set_index("candidate")["log_density"]
    fitted = model._models[0]
    left_out = left_out_probabilities(fitted, X, y.astype(float), np.ones(60))
    paid = np.log(left_out[np.arange(60), y]).mean() - board["tggm labels"]
    assert_allclose(paid, fitted.n_members / (60 - fitted.n_members - 1))
