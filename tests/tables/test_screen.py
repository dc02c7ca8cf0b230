"""Screens of wide tables: which columns are kept, by tests that agree with the textbook's; what uses them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import f_oneway, pearsonr, rankdata, t

from nongauss import AutoRegressor, SparseGPClassifier, SparseGPRegressor
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.estimator.persistence import load, save
from nongauss.tables import screen
from nongauss.tables.screen import (
    column_p_values,
    columns_that_go_with,
    designs,
    discoveries,
    f_test,
    is_wide,
    mid_ranks,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def few(monkeypatch):
    """Tables of more than 20 columns are screened, so that small ones tell."""
    monkeypatch.setattr(screen, "FEWEST_COLUMNS", 20)


THREE = ("g17", "g23", "g50")


def wide(seed: int, n_rows: int = 50, n_columns: int = 60, noise: float = 0.5):
    """A frame of which three columns matter, each with a monotone effect, and the target."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n_rows, n_columns)), columns=[f"g{j}" for j in range(n_columns)])
    y = frame["g17"] + np.tanh(frame["g23"]) * 2 - frame["g50"]
    return frame, y.to_numpy() + noise * rng.normal(size=n_rows)


def kept_by(model, X, y):
    with pytest.warns(NongaussWarning, match="60 columns for fewer rows"):
        return model.set_params(random_state=0, max_iter=3, n_inducing=10).fit(X, y)


def kept_of(X, y, labels=False):
    weight = np.ones(len(y))
    targets = designs(np.asarray(y, dtype=float)[:, None], weight, labels=labels)
    return columns_that_go_with(targets, X, weight, np.arange(X.shape[1]))


def ranks_of(X, weight):
    return np.stack([mid_ranks(x, weight) for x in X.T], axis=1)


def test_the_test_of_ranks_is_that_of_their_correlation():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(40, 6)), rng.normal(size=40), np.ones(40)
    ranks = ranks_of(X, weight)
    np.testing.assert_allclose(ranks, rankdata(X, axis=0) - 0.5)
    found = f_test(ranks, mid_ranks(y, weight)[:, None], weight, np.zeros((40, 0)))
    expected = [pearsonr(rankdata(x), rankdata(y)).pvalue for x in X.T]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_test_of_classes_is_the_analysis_of_variance():
    rng = np.random.default_rng(1)
    X, classes = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    (design,) = designs(classes[:, None].astype(float), np.ones(60), labels=True)
    found = f_test(X, design, np.ones(60), np.zeros((60, 0)))
    expected = [f_oneway(*(x[classes == k] for k in range(3))).pvalue for x in X.T]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_what_is_given_is_explained_away_as_in_a_partial_correlation():
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(50, 2))
    x, y = Z @ [1.0, 2.0] + rng.normal(size=50), Z @ [3.0, -1.0] + rng.normal(size=50)
    design = np.column_stack([np.ones(50), Z])
    left = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, y)]
    r = np.corrcoef(*left)[0, 1]
    expected = 2 * t.sf(abs(r) * np.sqrt(46 / (1 - r * r)), 46)
    found = f_test(x[:, None], y[:, None], np.ones(50), Z)
    np.testing.assert_allclose(found, [expected], rtol=1e-9)


def test_a_weight_of_two_is_the_row_twice():
    rng = np.random.default_rng(3)
    X, y, weight = (
        rng.normal(size=(30, 3)).round(1),
        rng.normal(size=30),
        rng.integers(1, 4, 30).astype(float),
    )
    often = np.repeat(np.arange(30), weight.astype(int))
    some, all_ = (
        f_test(
            np.stack([mid_ranks(x, w) for x in cells.T], axis=1), mid_ranks(t, w)[:, None], w, cells[:, :0]
        )
        for cells, t, w in ((X, y, weight), (X[often], y[often], np.ones(len(often))))
    )
    np.testing.assert_allclose(some, all_, rtol=1e-9)


def test_few_columns_of_noise_are_kept():
    rng = np.random.default_rng(4)
    kept = [len(kept_of(rng.normal(size=(40, 100)), rng.normal(size=40))) for _ in range(40)]
    assert sum(k > 0 for k in kept) <= 9  # a tenth of 40 sets is 4; 10 or more have a chance below 1 %


def test_a_column_that_only_shows_once_others_are_known_is_found():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 400))
    y = 4 * X[:, 0] + 4 * X[:, 1] + 0.7 * X[:, 2] + 0.3 * rng.normal(size=120)
    weight, target = np.ones(120), designs(y[:, None], np.ones(120), labels=False)
    alone = discoveries(column_p_values(target, X, weight, np.arange(400), given=X[:, :0]))
    assert {0, 1} <= set(alone)
    assert 2 not in alone
    assert 2 in kept_of(X, y)


def test_false_discoveries_are_a_share_of_all():
    p_values = np.array([0.5, 1e-6, 0.02, 0.9, 1e-3])
    assert discoveries(p_values) == [1, 4, 2]  # 0.02 <= 0.1 * 3 / 5
    assert discoveries(np.ones(3)) == []


def test_only_tables_with_more_columns_than_rows_are_screened():
    assert is_wide(100, 201)
    assert not is_wide(100, 200)
    assert not is_wide(1000, 1000)


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.usefixtures("few")
def test_a_fit_keeps_what_matters_and_predicts_from_it_alone(as_array, tmp_path):
    X, y = wide(6)
    given = X.to_numpy() if as_array else X
    model = kept_by(SparseGPRegressor(), given, y)
    names = {f"x{name[1:]}" for name in THREE} if as_array else set(THREE)
    assert names <= set(model.kept_columns_)
    assert len(model.kept_columns_) <= 6
    kept = [int(name[1:]) for name in model.kept_columns_]
    changed = np.array(X)
    changed[:, [j for j in range(60) if j not in kept]] = 7.0
    expected = model.predict(given)
    new = changed if as_array else pd.DataFrame(changed, columns=X.columns)
    np.testing.assert_array_equal(model.predict(new), expected)
    np.testing.assert_array_equal(
        model.predict(new[:, kept] if as_array else new[list(model.kept_columns_)]), expected
    )
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.kept_columns_ == model.kept_columns_
    np.testing.assert_array_equal(again.predict(given), expected)


@pytest.mark.usefixtures("few")
def test_a_kept_column_must_be_there():
    X, y = wide(6)
    model = kept_by(SparseGPRegressor(), X, y)
    with pytest.raises(InputError, match="'g17'"):
        model.predict(X.drop(columns="g17"))


@pytest.mark.usefixtures("few")
def test_classes_are_told_apart_by_the_same_columns():
    X, y = wide(7, n_rows=55, noise=0.2)
    model = kept_by(SparseGPClassifier(), X, np.where(y > 0, "yes", "no"))
    assert set(THREE) <= set(model.kept_columns_)


@pytest.mark.usefixtures("few")
def test_without_a_relation_no_column_is_looked_at():
    X, _ = wide(8)
    model = kept_by(SparseGPRegressor(), X, np.random.default_rng(10).normal(size=50))
    assert model.kept_columns_ == ()
    assert np.ptp(model.predict(X)) < 1e-12


@pytest.mark.usefixtures("few")
def test_labels_and_gaps_are_screened_as_cells_are():
    X, y = wide(10)
    X["colour"] = np.where(y > np.median(y), "red", np.where(np.arange(50) % 2 == 0, "green", None))
    with pytest.warns(NongaussWarning):
        model = SparseGPRegressor(random_state=0, max_iter=3, n_inducing=10).fit(X, y)
    assert "colour" in model.kept_columns_


@pytest.mark.usefixtures("few")
def test_where_many_columns_each_say_a_little_all_are_looked_at():
    rng = np.random.default_rng(13)
    factors = rng.normal(size=(60, 20))
    X = factors @ np.tile(np.eye(20), (1, 4)) + 0.5 * rng.normal(size=(60, 80))
    y = factors.sum(axis=1) + 0.3 * rng.normal(size=60)
    model = SparseGPRegressor(kernel="linear", n_scales=1, n_inducing=5, max_iter=1, random_state=0)
    with pytest.warns(NongaussWarning, match="all of them together"):
        model.fit(X, y)
    assert model.kept_columns_ is None


@pytest.mark.usefixtures("few")
def test_the_screen_can_be_overruled():
    X, y = wide(11)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NongaussWarning)
        model = SparseGPRegressor(keep_columns="all", random_state=0, max_iter=1, n_inducing=5)
        model.fit(X, y)
    assert model.kept_columns_ is None
    model = kept_by(SparseGPRegressor(keep_columns=["g3"]), X, y)
    assert {"g3", *THREE} <= set(model.kept_columns_)
    with pytest.raises(InputError, match="'g999'"):
        SparseGPRegressor(keep_columns=["g999"]).fit(X, y)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("tells", [True, False])
def test_a_choice_by_evidence_looks_at_the_kept_columns_alone(tells):
    X, y = wide(14)
    y = y if tells else np.random.default_rng(10).normal(size=50)
    with pytest.warns(NongaussWarning, match="60 columns for fewer rows"):
        model = AutoRegressor(candidates=["constant", "linear"], random_state=0).fit(X, y)
    with pytest.warns(NongaussWarning, match="60 columns for fewer rows"):
        again = model.refit(X, y)
    assert set(THREE) <= set(model.kept_columns_) if tells else model.kept_columns_ == ()
    assert again.kept_columns_ == model.kept_columns_
    names = list(model.kept_columns_)
    alone = X[names] if tells else X[["g0"]]
    np.testing.assert_allclose(again.predict(alone), model.predict(X), rtol=1e-3, atol=1e-3)
    effects = model.explain(X[:1])["mean"].drop(columns=[*names, "base"])
    assert effects.shape[1] == 60 - len(names)
    assert not effects.to_numpy().any()
    assert model.novelty(alone[:2]).shape == (2,)
