"""What each column adds to a prediction, and how unlike the training rows a row is."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.sparse import csr_array

import nongauss
from catalogue import SUPERVISED, mixed_frame
from nongauss.core.errors import InputError
from nongauss.estimator import shapley
from nongauss.estimator.shapley import explained
from nongauss.tables.frame import read_input

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def found(say, X, background, **how):
    """The explanation of any function of a table of numbers."""

    def of(table):
        cells = np.column_stack([table.column(j).values for j in range(table.shape[1])])
        return np.asarray(say(cells)).reshape(len(cells), -1)

    options = {"n_permutations": None, "seed": 0, **how}
    players = np.arange(X.shape[1])
    weight = np.ones(len(background))
    return explained(of, read_input(X), read_input(background), weight, players, **options)


RNG = np.random.default_rng(0)
X, BACKGROUND = RNG.normal(size=(6, 4)), RNG.normal(size=(9, 4))


def product(cells):
    """Columns 0 and 1 multiply, 2 counts alone and twice, 3 does nothing."""
    return np.column_stack([cells[:, 0] * cells[:, 1] + np.sin(cells[:, 2]), 2.0 * cells[:, 2]])


@pytest.mark.parametrize("n_permutations", [None, 2, 40])
def test_a_linear_function_is_split_into_its_terms(n_permutations):
    slope = np.array([1.0, -2.0, 0.5, 0.0])
    out = found(lambda cells: cells @ slope, X, BACKGROUND, n_permutations=n_permutations)
    assert_allclose(out.adds[:, :, 0], slope * (X - BACKGROUND.mean(axis=0)), atol=1e-12)
    assert_allclose(out.base, BACKGROUND.mean(axis=0) @ slope)
    assert_allclose(out.error, 0.0, atol=1e-12)


def test_all_sets_give_the_values_that_the_axioms_ask_for():
    out = found(product, X, BACKGROUND)
    assert_allclose(out.adds.sum(axis=1) + out.base, out.prediction, atol=1e-12)
    assert_allclose(out.adds[:, 3], 0.0, atol=1e-12)  # a dummy
    assert_allclose(out.adds[:, 2, 1], 2.0 * (X[:, 2] - BACKGROUND[:, 2].mean()))
    assert_allclose(out.adds[:, 2, 0], np.sin(X[:, 2]) - np.sin(BACKGROUND[:, 2]).mean())
    a, b = X[:, :1], X[:, 1:2]
    c, d = BACKGROUND[:, 0], BACKGROUND[:, 1]
    by_hand = 0.5 * ((a * d - c * d) + (a * b - c * b)).mean(axis=1)
    assert_allclose(out.adds[:, 0, 0], by_hand)
    swapped = found(product, X[:, [1, 0, 2, 3]], BACKGROUND[:, [1, 0, 2, 3]])
    assert_allclose(swapped.adds[:, [1, 0, 2, 3]], out.adds)  # columns in alike roles add alike


def knotty(cells):
    """Columns that act through one another."""
    return np.exp(cells[:, 0] * cells[:, 1] / 2) * (1 + cells[:, 2]) + cells[:, 3] * cells[:, 0]


def test_orders_sum_exactly_and_stay_within_their_stated_error():
    exact = found(knotty, X, BACKGROUND)
    z = []
    for seed in range(30):
        out = found(knotty, X, BACKGROUND, n_permutations=8, seed=seed)
        assert_allclose(out.adds.sum(axis=1) + out.base, out.prediction, atol=1e-10)
        z.append((out.adds - exact.adds) / out.error)
    assert np.mean(np.abs(z) < 2.0) > 0.93
    assert np.abs(np.mean(z)) < 0.1
    assert 0.2 < np.std(z) < 1.1  # antithetic orders are better than they say


def test_of_many_rows_each_is_compared_with_a_few_of_the_background(monkeypatch):
    rows = np.random.default_rng(1).normal(size=(400, 4))
    exact = found(knotty, rows, BACKGROUND)
    monkeypatch.setattr(shapley, "MOST_PREDICTIONS", 100)
    monkeypatch.setattr(shapley, "MOST_IN_ORDERS", 400 * 2 * 3 * 3)  # three draws a row
    slope = np.array([1.0, -2.0, 0.5, 0.0])
    terms = found(lambda cells: cells @ slope, rows, BACKGROUND)
    assert "6 orders of 4 columns for each row, by 3 rows of background" in terms.method
    assert_allclose(terms.adds[:, :, 0], slope * (rows - BACKGROUND.mean(axis=0)), atol=1e-9)
    assert_allclose(terms.error, 0.0, atol=1e-9)
    out = found(knotty, rows, BACKGROUND)
    assert_allclose(out.adds.sum(axis=1) + out.base, out.prediction, atol=1e-9)
    off = (out.adds - exact.adds)[:, :, 0]
    assert np.abs(off.mean(axis=0) / (off.std(axis=0) / 20.0)).max() < 3.5  # no bias
    assert 0.8 < np.sqrt(np.mean(off**2) / np.mean(out.error**2)) < 1.2


def test_few_columns_are_exact_and_many_are_not_visited_in_all_sets():
    asked = []

    def say(cells):
        asked.append(len(cells))
        return cells.sum(axis=1)

    out = found(say, RNG.normal(size=(2, 14)), RNG.normal(size=(3, 14)))
    assert out.method == "2 orders of 14 columns for each of 3 rows of background"
    assert sum(asked) < 2 * 3 * 2 * 14 + 10
    assert found(say, X, BACKGROUND).method == "exact: all sets of 4 columns, 9 rows of background"


def test_kept_rows_are_read_as_they_were_in_the_whole_table():
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "size": pd.Categorical(rng.choice(["lo", "mid", "hi"], n), ["lo", "mid", "hi"], ordered=True),
            "code": pd.Categorical(rng.integers(1, 4, n)),
            "rooms": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "seen": pd.date_range("2020-01-01", periods=n, tz="UTC"),
            "took": pd.to_timedelta(rng.integers(1, 100, n), unit="h"),
            "rate": [f"{value:.2f} %" for value in rng.permutation(n) / 100.0],
            "new": rng.random(n) > 0.5,
        }
    )
    frame.loc[::7, "rooms"] = pd.NA
    model = quick(frame, rng.normal(size=n))
    known = model._known_rows
    rows = [list(frame["rate"]).index(rate) for rate in known.table["rate"]]
    encoder = model._encoder
    kept, real = known.background(list(frame.columns)), frame.iloc[rows]
    assert len(rows) == 16
    assert_allclose(encoder.as_scaled(kept, warn=False), encoder.as_scaled(real, warn=False), atol=1e-9)


def test_rows_that_would_be_read_otherwise_are_not_kept(monkeypatch):
    monkeypatch.setattr("nongauss.estimator.known_rows._plain_cell", lambda cell: 7.0)
    rng = np.random.default_rng(0)
    model = quick(
        pd.DataFrame({"a": rng.choice(["u", "v"], 30), "b": rng.normal(size=30)}), rng.normal(size=30)
    )
    with pytest.raises(InputError, match="would not be read as the whole was"):
        model.explain(pd.DataFrame({"a": ["u"], "b": [0.0]}))
    assert model.novelty(pd.DataFrame({"a": ["u"], "b": [50.0]})) == 1.0


@pytest.fixture(scope="module")
def mixed():
    """A Gaussian process of a frame with labels, dates, gaps and a column that says nothing."""
    frame, y = mixed_frame(80)
    frame["day"] = pd.date_range("2020-01-01", periods=80).astype(str)
    frame["same"] = 1
    frame.loc[::9, "town"] = None
    frame.loc[4::9, "size"] = np.nan
    frame.index = [f"row {i}" for i in range(80)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nongauss.SparseGPRegressor(n_inducing=15, max_iter=8, random_state=0).fit(frame, y), frame


def test_a_frame_with_labels_dates_and_gaps_is_explained(mixed):
    model, frame = mixed
    some = frame.iloc[[0, 4, 7]]
    out = model.explain(some, frame.iloc[[2, 18]], n_permutations=2)
    law = model.predict_distribution(some)
    assert out.index.equals(some.index)
    assert list(out["mean"].columns) == [*frame.columns, "base"]
    assert_allclose(out["mean"].sum(axis=1), law.mean, rtol=1e-8)
    assert_allclose(out["sd"].sum(axis=1), law.std, rtol=1e-8)
    assert (out["mean"]["same"] == 0).all()
    assert out["mean"]["size"].iloc[2] != 0
    assert out["mean"]["base"].nunique() == 1
    assert law.index.equals(some.index)
    assert law.to_frame().index.equals(some.index)


def test_the_background_may_be_given(mixed):
    model, frame = mixed
    some = frame.iloc[[7, 8]]
    out, error = model.explain(some, frame.iloc[20:22], n_permutations=2, return_error=True)
    assert_allclose(out["mean"]["base"], model.predict(frame.iloc[20:22]).mean())
    assert error.shape == out.shape
    assert (error.to_numpy() >= 0).all()
    with pytest.raises(InputError, match="lacks column 'rooms'"):
        model.explain(some, frame.drop(columns="rooms"))
    with pytest.raises(InputError, match="n_permutations must be a whole number above 0"):
        model.explain(some, n_permutations=0)


def test_what_is_compared_with_is_in_the_file(mixed, tmp_path):
    model, frame = mixed
    nongauss.save(model, tmp_path / "model")
    some = frame.iloc[[5]]
    expected = model.explain(some, n_permutations=2)
    for again in (nongauss.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        pd.testing.assert_frame_equal(again.explain(some, n_permutations=2), expected)
        assert_allclose(again.novelty(frame), model.novelty(frame))
        assert again.holds_training_rows_


COMPILED = pytest.mark.gate
EVERY = [
    pytest.param(entry, id=entry.name, marks=[COMPILED] if entry.name.startswith("TGGM") else [])
    for entry in SUPERVISED
]


@pytest.mark.parametrize("entry", EVERY)
def test_every_predictor_is_explained(entry):
    cells, y = entry.data()
    model = entry.make().fit(cells[:, :2], y)
    out = model.explain(cells[:3, :2])
    assert list(out[out.columns[0][0]].columns) == ["x0", "x1", "base"]
    if hasattr(model, "predict_proba"):
        for number, label in enumerate(model.classes_):
            said = model.predict_proba(cells[:3, :2])[:, number]
            assert_allclose(out[label].sum(axis=1), said, atol=1e-12)
    else:
        law = model.predict_distribution(cells[:3, :2])
        assert_allclose(out["mean"].sum(axis=1), law.mean, rtol=1e-10)
        assert_allclose(out["sd"].sum(axis=1), law.std, rtol=1e-10)
    share = model.novelty(cells[:, :2])
    assert share.shape == (len(cells),)
    assert share.min() >= 0
    assert share.max() <= 1


def test_of_a_long_background_some_rows_are_compared_with():
    rng = np.random.default_rng(0)
    model = quick(rng.normal(size=(20, 2)))
    with pytest.warns(UserWarning, match="The background has 240 rows; a random 200"):
        model.explain([[1.0, 2.0]], rng.normal(size=(240, 2)))


@pytest.mark.gate
def test_several_outputs_have_figures_of_their_own():
    model = nongauss.TGGMRegressor((4,), max_epochs=2, n_members=1, random_state=0)
    model.fit(X[:, :2], np.column_stack([X[:, 0], X[:, 1]]))
    out = model.explain(X[:2, :2])
    assert list(dict.fromkeys(out.columns.get_level_values(0))) == ["mean_0", "mean_1", "sd_0", "sd_1"]
    assert_allclose(out["mean_1"].sum(axis=1), model.predict(X[:2, :2])[:, 1])


def quick(X, y=None):
    """A model of any rows, for what it keeps of them."""
    y = np.asarray(X)[:, 0].astype(float) if y is None else y
    model = nongauss.AutoRegressor(candidates=["constant"], calibrate=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def correlated(rng, n):
    """Two columns that go together, and one that does not."""
    first = rng.normal(size=n)
    return np.column_stack([first, first + 0.2 * rng.normal(size=n), rng.exponential(size=n)])


def test_rows_like_the_training_rows_have_evenly_spread_novelty():
    rng = np.random.default_rng(0)
    share = quick(correlated(rng, 400), rng.normal(size=400)).novelty(correlated(rng, 2000))
    assert stats.kstest(share, "uniform").statistic < 0.08
    assert abs(share.mean() - 0.5) < 0.05


def test_far_rows_and_wrong_combinations_are_novel():
    rng = np.random.default_rng(1)
    model = quick(correlated(rng, 400), rng.normal(size=400))
    share = model.novelty([[8.0, 8.0, 1.0], [1.5, -1.5, 1.0], [1.5, 1.5, 1.0], [0.1, 0.0, 0.8]])
    assert share[0] == 1.0
    assert share[1] > 0.99
    assert share[2] < 0.9
    assert share[3] < 0.5


def test_gaps_are_no_news_and_unseen_labels_are():
    rng = np.random.default_rng(2)
    rows = pd.DataFrame(correlated(rng, 300), columns=list("abc"))
    rows["town"] = rng.choice(["Ulm", "Bern"], 300)
    model = quick(rows, rng.normal(size=300))
    new = rows.iloc[[10, 10]].reset_index(drop=True)
    new.loc[0, "b"], new.loc[1, "town"] = np.nan, "Oslo"
    new.loc[0, "a"] = 1.8
    with pytest.warns(nongauss.core.errors.NongaussWarning):
        share = model.novelty(new)
    assert share[0] < 0.99
    assert share[1] == 1.0


def test_few_rows_and_columns_without_cells():
    assert quick([[1.0], [2.0], [4.0]], np.array([1.0, 2.0, 3.0])).novelty([[2.0], [50.0]])[1] == 1.0


def test_the_order_of_the_table_leaves_no_trace():
    rng = np.random.default_rng(3)
    rows, y, new = correlated(rng, 60), rng.normal(size=60), correlated(rng, 5)
    order = rng.permutation(60)
    first, second = quick(rows, y), quick(rows[order], y[order])
    assert_allclose(first.novelty(new), second.novelty(new))
    assert_allclose(first.explain(new), second.explain(new), rtol=1e-9, atol=1e-12)


def test_a_model_of_a_sparse_table_says_what_to_give():
    words = csr_array(np.eye(6)[np.arange(30) % 6])
    y = np.arange(30) % 2
    model = nongauss.HarmoniumClassifier(n_components=3, max_epochs=2, random_state=0).fit(words, y)
    with pytest.raises(InputError, match="keeps no training rows to compare with"):
        model.novelty(words)
    with pytest.raises(InputError, match="fit it again to a dense table"):
        model.explain(words)
