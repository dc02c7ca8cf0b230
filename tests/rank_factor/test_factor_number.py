"""The number of factors: right for made tables of many shapes, whatever increasing map a column has."""

import numpy as np
import pandas as pd
import pytest

from nongauss import RankFactorAnalysis
from nongauss.rank_factor.factor_number import most_likely, normal_scores, number_of_factors


def made(shape, n_factors, seed, n_rows=500, n_columns=20):
    """A table with loadings of a shape, its columns turned by increasing maps."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n_rows, n_factors))
    A = rng.standard_normal((n_columns, n_factors))
    if shape == "sparse":
        A *= rng.random(A.shape) < 0.5
    elif shape == "blocks":
        own = np.arange(n_columns)
        A = np.zeros(A.shape)
        A[own, own % n_factors] = 1.0 + 0.3 * rng.standard_normal(n_columns)
    X = z @ A.T + (0.7 if shape == "blocks" else 1.0) * rng.standard_normal((n_rows, n_columns))
    X[:, ::3], X[:, 1::3] = np.exp(X[:, ::3]), X[:, 1::3] ** 3
    return X


def found(X, most=20):
    return number_of_factors(X, np.ones(len(X)), [1] * X.shape[1], most, 0)


@pytest.mark.parametrize("n_factors", [1, 4])
def test_the_number_is_that_of_the_table(n_factors):
    assert found(made("dense", n_factors, 3)) == n_factors


@pytest.mark.gate
@pytest.mark.parametrize("shape", ["dense", "sparse", "blocks"])
@pytest.mark.parametrize("n_factors", [1, 2, 4, 8])
def test_nine_of_ten_draws_are_right(shape, n_factors):
    right = [found(made(shape, n_factors, seed)) == n_factors for seed in range(10)]
    assert sum(right) >= 9


def test_columns_that_have_nothing_in_common_hold_no_factor():
    assert found(np.random.default_rng(0).standard_normal((300, 8))) == 0


def test_gaps_and_grades_do_not_make_factors():
    X = made("dense", 2, 5, n_columns=10)
    X = (X[None] > np.quantile(X, [0.25, 0.5, 0.75], axis=0)[:, None]).sum(axis=0).astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.15] = np.nan
    assert found(X) == 2


def test_gaps_of_tables_of_many_factors_make_no_more_of_them():
    """Correlations of pairs are nearly singular there: their distance from a model has a long tail."""
    X = made("dense", 8, 1007)
    X[np.random.default_rng(7).random(X.shape) < 0.15] = np.nan
    assert found(X) == 8


def test_wide_tables_go_by_eigenvalues_of_shuffled_columns():
    X = made("dense", 2, 7, n_rows=60, n_columns=200)
    assert found(X) == 2


def test_labels_count_by_contrasts_that_are_no_factor_by_themselves():
    rng = np.random.default_rng(1)
    level = rng.integers(0, 5, 400)
    cells = np.hstack([np.eye(5)[level], rng.standard_normal((400, 4))])
    assert number_of_factors(cells, np.ones(400), [5, 1, 1, 1, 1], 10, 0) == 0


def test_weight_two_is_the_row_twice():
    X = made("dense", 2, 9, n_rows=120, n_columns=8)
    weight = np.where(np.arange(120) % 3, 1.0, 2.0)
    twice = np.repeat(X, weight.astype(int), axis=0)
    column = normal_scores(X[:, 0], weight)
    assert np.allclose(np.repeat(column, weight.astype(int)), normal_scores(twice[:, 0], np.ones(len(twice))))


def test_the_most_likely_model_of_made_correlations_is_the_one_they_come_from():
    rng = np.random.default_rng(2)
    A = rng.uniform(-0.7, 0.7, (9, 2))
    correlations = A @ A.T
    np.fill_diagonal(correlations, 1.0)
    model = most_likely(correlations, 2, steps=500)
    assert model.distance < 1e-6
    assert np.allclose(model.loadings @ model.loadings.T + np.diag(model.noise), correlations, atol=1e-3)


def test_the_estimator_takes_the_number_and_says_how_many_a_given_number_holds():
    X = pd.DataFrame(made("dense", 2, 11, n_columns=8))
    model = RankFactorAnalysis(random_state=0, max_iter=3, tol=1.0).fit(X)
    assert model.n_factors_ == model.n_active_ == model.transform(X).shape[1] == 2
    wide = RankFactorAnalysis(5, random_state=0, max_iter=3, tol=1.0).fit(X)
    assert (wide.n_factors_, wide.n_active_) == (5, 2)
