"""What a user of the clusterer sees."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import nongauss
from nongauss import RectangleMixture
from nongauss.core.errors import InputError
from nongauss.rectangle import data
from rectangle.small import blobs


@pytest.fixture(scope="module")
def iris() -> tuple[RectangleMixture, pd.DataFrame, np.ndarray]:
    X, y = load_iris(return_X_y=True, as_frame=True)
    return RectangleMixture(3, random_state=0).fit(X), X, y.to_numpy()


def test_iris_is_found_in_few_words(iris):
    model, _, y = iris
    assert normalized_mutual_info_score(y, model.labels_) >= 0.86
    assert model.inside_one_ >= 0.94
    assert len(model.rules_) <= 6
    assert any("petal width (cm) at most" in text for text in model.rule_text_.values())
    text = model.describe()
    assert all(rule in text for rule in model.rule_text_.values())


def test_the_table_of_rules_says_what_predict_does(iris):
    """A reader who applies the printed bounds to the rows gets the labels of the rows in exactly one box."""
    model, X, _ = iris
    inside = np.ones((len(X), 3), dtype=bool)
    for line in model.rules_.itertuples():
        k = model.cluster_names_.index(line.cluster)
        inside[:, k] &= X[line.column].between(line.lower, line.upper)
    assert_array_equal(inside, model.inside(X))
    one = inside.sum(axis=1) == 1
    assert one.mean() == pytest.approx(model.inside_one_)
    assert_array_equal(inside[one].argmax(axis=1), model.predict(X)[one])
    assert_array_equal(model.predict(X), model.labels_)


def test_probabilities_go_with_predictions(iris):
    model, X, _ = iris
    for proba in (model.predict_proba(X), model.predict_posterior(X)):
        assert_allclose(proba.sum(axis=1), 1.0, atol=1e-9)
    assert_array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))


@pytest.mark.parametrize("far", [1e45, 1e300, -1e300])
def test_a_row_as_far_as_can_be_has_probabilities(iris, far):
    model, X, _ = iris
    row = X[:1].copy()
    row.iloc[0, 3] = far
    for proba in (model.predict_proba(row), model.predict_posterior(row)):
        assert_allclose(proba.sum(axis=1), 1.0)
        assert np.isfinite(proba).all()


def test_rules_on_one_column_and_clusters_in_another():
    X, truth = blobs(300, 2)
    frame = pd.DataFrame({"seen": X[:, 1], "asked": np.where(truth == 0, "no", "yes"), "noise": X[:, 0]})
    frame["value"] = truth * 10.0 + np.random.default_rng(0).normal(size=300)
    model = RectangleMixture(
        2, rule_columns=["seen", "asked"], structure_columns=["value"], random_state=0
    ).fit(frame)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert set(model.rules_["column"]) <= {"seen", "asked"}
    assert_array_equal(model.predict(frame[["asked", "seen"]]), model.labels_)
    with pytest.raises(InputError, match="'asked'"):
        model.predict(frame[["seen"]])


@pytest.mark.parametrize("kind", ["list", "masked", "polars", "object"])
def test_tables_of_more_rows_than_are_learned_from_may_be_of_any_kind(kind, monkeypatch):
    X, _ = blobs(100, 2)
    frame = pd.DataFrame(
        {"x0": X[:, 0], "x1": X[:, 1], "x2": np.where(X[:, 0] > np.median(X[:, 0]), "red", "blue")}
    )
    frame.loc[::7, "x1"] = np.nan
    frame = frame.drop(columns="x2") if kind == "masked" else frame
    table = {
        "list": frame.to_numpy(object).tolist,
        "masked": lambda: np.ma.masked_array(np.nan_to_num(frame, nan=1e6), frame.isna()),
        "polars": lambda: pl.from_pandas(frame),
        "object": lambda: frame.to_numpy(object),
    }[kind]()
    monkeypatch.setattr(data, "MOST_ROWS", 60)
    model, whole = (RectangleMixture(2, n_init=2, random_state=0).fit(t) for t in (table, frame))
    pd.testing.assert_frame_equal(model.rules_, whole.rules_)
    pd.testing.assert_frame_equal(model.clusters_, whole.clusters_)
    assert_array_equal(model.labels_, whole.labels_)


def test_clusters_that_no_rule_can_tell_become_one_and_keep_their_names():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 300)
    frame = pd.DataFrame({"x": rng.uniform(0, 1, 300) + 2.0 * (group > 0), "y": rng.normal(10.0 * group)})
    with pytest.warns(UserWarning, match="1 of 3 clusters ended without rows"):
        model = RectangleMixture(
            3,
            rule_columns=["x"],
            structure_columns=["y"],
            prior_rules={"nowhere": {"x": (1.2, 1.8)}, "high": {"x": (1.5, None)}, "low": {"x": (None, 1.5)}},
            random_state=0,
        ).fit(frame)
    assert model.cluster_names_ == ["high", "low"]
    assert_array_equal(model.labels_ == 1, group == 0)


def test_sets_of_levels_and_gaps():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue", "grey"], 300)
    truth = np.isin(colour, ["red", "blue"])
    frame = pd.DataFrame({"colour": colour, "size": rng.normal(size=300)})
    frame["look"] = truth * 6.0 + rng.normal(size=300)
    frame["kind"] = np.where(truth, rng.choice(["a", "b"], 300), "c")
    frame.loc[:20, "colour"] = None
    frame.loc[10:30, "look"] = np.nan
    model = RectangleMixture(
        2, rule_columns=["colour", "size"], structure_columns=["look", "kind"], random_state=0
    ).fit(frame)
    assert adjusted_rand_score(truth[21:], model.labels_[21:]) == 1.0
    assert sorted(model.rule_text_.values()) == ["colour blue or red", "colour green or grey"]
    assert model.inside(frame[:21]).all()  # a missing cell breaks no rule
    with pytest.warns(UserWarning, match="'pink' in column 'colour'"):
        model.predict(pd.DataFrame({"colour": ["pink"], "size": [0.0]}))


def test_a_stated_rule_keeps_its_name_and_place():
    """Four quadrants of x, clusters of y by both signs: a rule on x2 makes the cut there, at zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    Y = np.sign(X) * [5, 3] + rng.normal(size=(1000, 2))
    frame = pd.DataFrame(np.hstack([X, Y]), columns=["x1", "x2", "y1", "y2"])
    model = RectangleMixture(
        2,
        rule_columns=["x1", "x2"],
        structure_columns=["y1", "y2"],
        prior_rules={"below": {"x2": (None, 0.2)}, "above": {"x2": (-0.2, None)}},
        random_state=0,
    ).fit(frame)
    assert model.cluster_names_ == ["below", "above"]
    assert model.rules_["column"].tolist() == ["x2", "x2"]
    cuts = model.rules_[["lower", "upper"]].to_numpy()
    assert np.abs(cuts[np.isfinite(cuts)]).max() < 0.05


@pytest.mark.gate
def test_noise_columns_leave_no_condition_behind():
    X, truth = blobs(150, 3)
    noise = np.random.default_rng(1).normal(size=(150, 100))
    model = RectangleMixture(3, structure_columns=[0, 1], n_init=1, random_state=0).fit(np.hstack([X, noise]))
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert set(model.rules_["column"]) <= {"x0", "x1"}


def test_one_gross_outlier_takes_no_cluster_with_rank_scaling():
    X, y = load_iris(return_X_y=True)
    X = np.vstack([X, [1e6, -1e6, 1e6, 1e6]])
    model = RectangleMixture(3, scaling="rank", random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_[:-1]) > 0.8


@pytest.mark.gate
def test_units_do_not_matter_and_bounds_follow_them(iris):
    _, X, _ = iris
    scale, shift = np.array([1e6, 2.0, 1e-3, 10.0]), np.array([0.0, 1e5, 5.0, -3.0])
    X = X + np.random.default_rng(0).uniform(0, 0.01, X.shape)  # no whole numbers in either unit
    moved = RectangleMixture(3, rule_precision=None, random_state=0).fit(X * scale + shift)
    plain = RectangleMixture(3, rule_precision=None, random_state=0).fit(X)
    assert_array_equal(moved.labels_, plain.labels_)
    factor = np.array([scale[list(X).index(c)] for c in plain.rules_["column"]])
    offset = np.array([shift[list(X).index(c)] for c in plain.rules_["column"]])
    for side in ("lower", "upper"):
        expected = plain.rules_[side].to_numpy() * factor + offset
        assert_allclose(moved.rules_[side].to_numpy(), expected, rtol=1e-6)


def test_tiny_units_and_a_constant_column_change_nothing():
    X, truth = blobs(120, 2)
    model = RectangleMixture(2, n_init=2, random_state=0).fit(np.column_stack([1e-6 * X, np.full(120, 7.0)]))
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    with pytest.raises(ValueError, match="infinity"):
        RectangleMixture(2).fit(np.vstack([X, [np.inf, 0.0]]))


@pytest.mark.gate
def test_permuted_columns_and_single_precision_with_an_offset(iris):
    model, X, _ = iris
    backwards = RectangleMixture(3, random_state=0).fit(X[X.columns[::-1]])
    assert adjusted_rand_score(backwards.labels_, model.labels_) > 0.95
    far = RectangleMixture(3, random_state=0).fit((X + 1e5).astype(np.float32))
    assert adjusted_rand_score(far.labels_, model.labels_) > 0.95


def test_rules_print_dates_and_take_them():
    early = np.arange(100) < 50
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.where(early, 0, 4000) + np.arange(100), "D")
    frame = pd.DataFrame({"when": when, "x": np.random.default_rng(0).normal(size=100) + 8.0 * early})
    model = RectangleMixture(2, rule_columns="when", n_init=2, random_state=0).fit(frame)
    assert sorted(model.rule_text_.values()) == ["when at least 2025-06-23", "when at most 2025-06-22"]
    assert_array_equal(model.predict(frame[["when"]]), model.labels_)
    stated = {"past": {"when": (None, "2025-01-01")}, "now": {"when": (pd.Timestamp("2025-01-01"), None)}}
    model = RectangleMixture(2, rule_columns="when", prior_rules=stated, n_init=2, random_state=0).fit(frame)
    assert_array_equal(model.labels_ == 0, early)
    with pytest.raises(InputError, match=r"\(lower, upper\)"):
        model.set_params(prior_rules={"past": {"when": (None, "soon")}}).fit(frame)


def test_rows_that_no_rule_holds_can_be_outliers():
    X, _ = load_wine(return_X_y=True)
    model = RectangleMixture(3, outliers=True, random_state=0).fit(X)
    nowhere = ~model.inside(X).any(axis=1)
    assert nowhere.any()
    assert_array_equal(model.labels_ == -1, nowhere)


@pytest.mark.gate
def test_tolerance_zero_words_more(iris):
    model, X, _ = iris
    exact = RectangleMixture(3, rule_tolerance=0.0, random_state=0).fit(X)

    def own_less_others(clusters: pd.DataFrame) -> float:
        return float((clusters["inside"] * (2.0 * clusters["precision"] - 1.0)).sum())

    assert own_less_others(exact.clusters_) >= own_less_others(model.clusters_)
    assert len(exact.rules_) >= len(model.rules_)
    rounded = (
        RectangleMixture(3, rule_precision=0, random_state=0).fit(X).rules_[["lower", "upper"]].to_numpy()
    )
    assert (rounded[np.isfinite(rounded)] % 1 == 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_clusters": 6}, "n_clusters=6 is more than the 5 different rows"),
        ({"n_clusters": 1, "prior_rules": {"a": {0: (0, 1)}, "b": {0: (1, 2)}}}, "names 2 clusters"),
        ({"n_clusters": 2, "rule_columns": ["x"]}, "rule_columns names the column 'x'"),
        ({"n_clusters": 0}, "n_clusters"),
    ],
)
def test_what_cannot_be_done_is_refused(arguments, message):
    X = np.repeat(np.arange(10.0).reshape(5, 2), 3, axis=0)
    with pytest.raises(ValueError, match=message):
        RectangleMixture(**arguments).fit(X)


def test_saved_rules_are_the_same(iris, tmp_path):
    model, X, _ = iris
    nongauss.save(model, tmp_path / "model")
    again = nongauss.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.rules_, model.rules_)
    assert again.describe() == model.describe()
    assert_array_equal(again.predict_posterior(X), model.predict_posterior(X))


def test_a_part_of_a_date_makes_rules_by_itself():
    """Clusters that the month alone parts; other parts of the same date are not spoken of."""
    rng = np.random.default_rng(0)
    n = 200
    day = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1400, n), unit="D")
    summer = day.month.isin([6, 7, 8])
    X = pd.DataFrame({"day": day, "x": rng.normal(size=n) + 6 * summer})
    model = RectangleMixture(
        2, rule_columns=["day (month)"], structure_columns=["x"], n_init=3, random_state=0
    )
    text = set(model.fit(X).rule_text_.values())
    assert "day (month) June, July or August" in text
    assert (model.predict(X[["day"]]) == model.labels_).all()
    with pytest.raises(InputError, match="twice"):
        model.set_params(rule_columns=["day", "day (month)"]).fit(X)
    with pytest.raises(InputError, match="which X does not have"):
        model.set_params(rule_columns=["day (year)"]).fit(X)
