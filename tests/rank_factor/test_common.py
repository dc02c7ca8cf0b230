import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from nongauss import RankFactorAnalysis, RankFactorClassifier
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.rank_factor import fit, predict
from nongauss.rank_factor import rank_likelihood as cells
from nongauss.rank_factor.common import interval, one_against_rest
from rank_factor.small import table


def test_labels_one_against_the_rest():
    assert_array_equal(one_against_rest(np.array([0, 1.0]), 1), [[-1], [1]])
    assert_array_equal(one_against_rest(np.array([0, 2.0]), 3), [[1, -1, -1], [-1, -1, 1]])


def test_intervals_of_draws_and_of_a_normal_agree():
    draws = np.random.default_rng(0).normal(1.0, 2.0, (100_000, 1))
    assert_allclose(
        interval(draws, None, 0.9)[0], interval(np.ones((1, 1)), np.full(1, 2.0), 0.9)[0], atol=0.05
    )
    with pytest.raises(InputError, match="coverage"):
        interval(draws, None, 1.5)


@pytest.mark.parametrize(
    ("settings", "match"),
    [({"shrinkage": (0.5,)}, "shrinkage"), ({"n_levels": 1}, "n_levels"), ({"epsilon": 0.0}, "epsilon")],
)
def test_impossible_parameters_are_named(settings, match):
    with pytest.raises(ValueError, match=match):
        RankFactorAnalysis(**settings).fit(np.eye(4))


def test_pairs_need_whole_weights_and_extremes_warn():
    X = np.random.default_rng(0).standard_normal((12, 3))
    with pytest.raises(InputError, match="whole"):
        RankFactorAnalysis(neighbours="pairwise").fit(X, sample_weight=np.full(12, 0.5))
    with pytest.raises(InputError, match="1,000,000"):
        RankFactorAnalysis(inference="gibbs").fit(X, sample_weight=np.full(12, 1e12))
    with pytest.warns(NongaussWarning, match="diverge"):
        RankFactorAnalysis(n_factors=1, neighbours="extremes", max_iter=2, tol=1.0).fit(X)


def test_a_table_that_says_nothing_is_legal():
    model = RankFactorAnalysis(n_factors=2, random_state=0).fit(np.ones((10, 2)))
    assert_allclose(model.transform(np.ones((3, 2))), 0.0, atol=1e-9)


def test_a_column_that_rises_with_a_factor_has_a_positive_loading_however_it_is_skewed():
    rng = np.random.default_rng(0)
    f = rng.standard_normal(300)
    X = np.stack([np.exp(f), -np.exp(-f), f], axis=1) + 0.3 * rng.standard_normal((300, 3))
    for observation in ("rank", "gaussian"):
        loadings = RankFactorAnalysis(1, observation=observation, random_state=0).fit(X).loadings_.to_numpy()
        assert (loadings > 0).all() or (loadings < 0).all()


def test_draws_of_equal_rows_are_as_many_as_the_rows():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((15, 3)) @ rng.standard_normal((3, 3)), 8, axis=0)
    settings = {"observation": "gaussian", "inference": "gibbs", "max_iter": 200, "n_draws": 100}
    spread = [
        np.std(
            [draw.A for draw in RankFactorAnalysis(1, random_state=0, **settings).fit(table).draws_], axis=0
        )
        for table in (X, X + 1e-3 * rng.standard_normal(X.shape))
    ]
    assert_allclose(spread[0].mean(), spread[1].mean(), rtol=0.5)


def small_classifier(**settings) -> tuple[RankFactorClassifier, np.ndarray]:
    """A classifier of 60 rows, and the rows."""
    X, y = table()
    return RankFactorClassifier(4, random_state=0, **settings).fit(X, y), X


def test_30_memory_of_a_prediction_does_not_grow_with_draws_and_rows(monkeypatch):
    model, X = small_classifier(inference="gibbs", n_draws=4, max_iter=6)
    monkeypatch.setattr(predict, "N_STEPS", 1)
    monkeypatch.setattr(cells, "BLOCK", 20_000)
    peaks = []
    for times in (100, 500):  # so many that what other tests' clusters do meanwhile is little
        many = np.tile(X, (times, 1))
        tracemalloc.start()
        model.predict_proba(many)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The table, as read and as a matrix, and the probabilities: as many numbers as one draw's 4 x 4.
    assert peaks[1] - peaks[0] < 400 * 60 * 8 * (2 * X.shape[1] + 4)


@pytest.mark.parametrize("fitted_in", ["float64", "float32"])
def test_a_prediction_is_as_precise_as_the_fit_whatever_rows_are_beside(monkeypatch, fitted_in):
    monkeypatch.setattr(fit, "LARGE", 100 if fitted_in == "float32" else 500)
    model, X = small_classifier(tol=1.0)
    assert model._cell_type == fitted_in
    many = np.tile(X, (5, 1))
    assert_array_equal(model.predict_proba(many)[:3], model.predict_proba(X[:3]))


@pytest.mark.parametrize(
    ("settings", "said"),
    [({}, False), ({"neighbours": "pairwise"}, True), ({"observation": "gaussian"}, False)],
)
def test_it_is_said_whether_the_model_holds_cells_of_a_row(settings, said):
    X, _ = table(40)
    settings = {"n_factors": 1, "max_iter": 2, "tol": 1e9, **settings}
    assert RankFactorAnalysis(**settings).fit(X).holds_training_rows_ is said
    lone = np.append(X, np.where(np.arange(40) == 3, 1.0, 0.0)[:, None], axis=1)
    says = RankFactorAnalysis(**settings).fit(lone).holds_training_rows_
    assert says is (settings.get("observation") != "gaussian")


@pytest.mark.parametrize(
    "use", [lambda m: m.loadings_, lambda m: m.top_columns(0), lambda m: m.inverse_transform([[0.0]])]
)
def test_before_fit_it_is_not_fitted(use):
    with pytest.raises(NotFittedError, match="not fitted"):
        use(RankFactorClassifier())


def test_factors_go_by_number_or_name_and_mistakes_are_named():
    model, X = small_classifier(tol=1.0)
    assert model.top_columns("factor1", 2).equals(model.top_columns(1, 2))
    for wrong in ("factor9", 4, -1, 1.5):
        with pytest.raises(InputError, match=r"factor must be a number from 0 to 3"):
            model.top_columns(wrong)
    with pytest.raises(InputError, match="n must be a whole number"):
        model.top_columns(0, -1)
    back = model.inverse_transform(model.transform(X))
    assert np.corrcoef(back[:, 0], X[:, 0])[0, 1] > 0.7
