from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression

from nongauss.core.errors import InputError
from nongauss.report.plots.relevance import RelevanceDisplay, relevance, with_typical_cells
from nongauss.tables.frame import read_input


class Formula(RegressorMixin, BaseEstimator):
    """Predicts what a function of the cells says."""

    def __init__(self, function=None):
        self.function = function

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return self.function(np.asarray(X, dtype=float))


class Odds(ClassifierMixin, BaseEstimator):
    """Three classes, the last with the probability that the others leave."""

    def fit(self, X, y=None):
        return self

    def predict_proba(self, X):
        a, b = 0.4 + 0.2 * X[:, 0], 0.3 + 0.1 * X[:, 1]
        return np.stack([a, b, 1 - a - b], axis=1)


LEVELS = np.linspace(-1, 1, 33)[1::2]
X = np.stack(np.meshgrid(LEVELS, LEVELS, LEVELS), axis=-1).reshape(-1, 3)  # columns without correlation


def test_shares_are_sobols_total_effects():
    # Var = 1/3 + 1/9 for x0 + x1 x2; the product counts for both of its columns.
    share = relevance(Formula(lambda x: x[:, 0] + x[:, 1] * x[:, 2]), X, max_rows=5000)
    np.testing.assert_allclose(share, [0.75, 0.25, 0.25], atol=0.02)


def test_units_do_not_matter_and_outputs_count_alike():
    model = Formula(lambda x: np.stack([5e8 * x[:, 0] - 2e9, 1e-8 * x[:, 2], np.full(len(x), 7.0)], axis=1))
    np.testing.assert_allclose(relevance(model, X, max_rows=5000), [0.5, 0, 0.5], atol=0.02)


def test_classes_count_together():
    share = relevance(Odds(), X, max_rows=5000)
    np.testing.assert_allclose(share, [0.8, 0.2, 0], atol=0.02)


def test_a_model_that_says_the_same_everywhere_hangs_on_nothing():
    assert relevance(Formula(lambda x: np.full(len(x), 0.1)), X).tolist() == [0, 0, 0]
    with pytest.raises(InputError, match="at least one row"):
        relevance(Formula(), X[:0])


@pytest.mark.parametrize("form", [pd.DataFrame, lambda data: pl.from_pandas(pd.DataFrame(data))])
def test_columns_come_by_name_and_those_not_of_the_fit_are_left_out(ax, form):
    table = form({"extra": X[:, 1], "b": X[:, 2], "a": X[:, 0]})
    model = Formula(lambda x: x[:, 0] + 0.1 * x[:, 1])
    model.feature_names_in_ = np.array(["a", "b"], dtype=object)
    model.lengthscales_ = {"a": 0.5}
    display = RelevanceDisplay.from_estimator(model, table, ax=ax, color="red")
    assert display.columns == ["a", "b"]
    assert display.share[0] > 0.9 > 0.1 > display.share[1]
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b"]
    assert [text.get_text() for text in ax.child_axes[0].get_yticklabels()] == ["0.5", "–"]
    assert display.ax_ is ax
    assert ax.patches[0].get_facecolor()[:3] == (1, 0, 0)


def test_only_the_first_are_drawn_of_many(ax):
    display = RelevanceDisplay(columns=[f"column {j}" for j in range(30)], share=np.arange(30) / 100)
    display.plot(ax=ax, max_columns=4)
    assert display.top(2) == [29, 28]
    assert len(ax.patches) == 4
    assert "4 of 30" in ax.get_title(loc="left")
    with pytest.raises(InputError, match="2 columns"):
        RelevanceDisplay(columns=["a", "b"], share=[1.0])


def test_the_shuffles_are_those_of_scikit_learn():
    from sklearn.inspection import permutation_importance

    X = np.random.default_rng(0).normal(size=(40, 3))
    model = LinearRegression().fit(X, X @ [1.0, -2.0, 0.0])

    def lost(model, shuffled, before):
        return -0.5 * np.mean((model.predict(shuffled) - before) ** 2) / before.var()

    theirs = permutation_importance(model, X, model.predict(X), scoring=lost, n_repeats=3, random_state=4)
    np.testing.assert_allclose(relevance(model, X, n_repeats=3, random_state=4), theirs.importances_mean)


@pytest.mark.parametrize("most", [1, 100, 1000])
def test_it_does_not_matter_how_many_rows_a_model_is_asked_at_once(monkeypatch, most):
    model = Formula(lambda x: x[:, 0] + x[:, 1] * x[:, 2])
    at_once = relevance(model, X[::40])
    asked = []
    model.function = lambda x: (asked.append(len(x)), x[:, 0] + x[:, 1] * x[:, 2])[1]
    monkeypatch.setattr("nongauss.report.plots.relevance._MOST_ROWS_AT_ONCE", most)
    np.testing.assert_allclose(relevance(model, X[::40]), at_once)
    assert max(asked) <= max(most, len(X[::40]))


def test_the_few_columns_that_matter_among_thousands_are_found():
    X = np.random.RandomState(0).normal(size=(120, 3000))
    weight = np.zeros(3000)
    weight[[7, 1500, 2999]] = 2.0, -1.0, 1.0
    calls = []

    def linear(cells):
        calls.append(len(cells))
        return cells @ weight

    model = Formula(linear).fit(X)
    share = relevance(model, X, n_repeats=1)
    assert len(calls) < 20
    assert set(np.argsort(-share)[:3]) == {7, 1500, 2999}
    # Independent columns: the variance of each over the whole.
    np.testing.assert_allclose(share[[7, 1500, 2999]], np.array([4, 1, 1]) / 6, rtol=0.4)
    assert np.delete(share, [7, 1500, 2999]).max() < 0.01


def test_missing_cells_are_typical_ones_of_their_column():
    frame = pd.DataFrame(
        {"x": [1.0, np.nan, 3.0, 100.0], "c": ["a", "b", None, "b"], "n": [1.0, 2.0, 3.0, 4.0]}
    )
    filled = with_typical_cells(read_input(frame))
    np.testing.assert_array_equal(filled.column(0).values, [1.0, 3.0, 3.0, 100.0])
    assert [filled.column(1).levels[code] for code in filled.column(1).codes] == ["a", "b", "b", "b"]
    assert list(pd.Series(filled.raw(1))) == ["a", "b", "b", "b"]
    np.testing.assert_array_equal(filled.column(2).values, frame["n"])
