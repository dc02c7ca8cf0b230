"""Draws of missing cells against the conditional laws from which tables are made."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import RidgeCV

from nongauss.tables.completion import (
    MOST_CELLS,
    N_COMPLETIONS,
    DonorColumn,
    Donors,
    completed_rows,
    donor_columns,
)
from nongauss.tables.donor_law import PENALTIES, _ridge
from nongauss.tables.learn import as_source, learn
from nongauss.tables.source import Encode, Encoded, sample


def donors_of(X, y=None, weight=None):
    """All rows of a table of numbers without gaps as donors."""
    columns = tuple(DonorColumn((j,), -1, True) for j in range(X.shape[1]))
    Y = np.zeros((len(X), 1)) if y is None else y[:, None]
    weight = np.ones(len(X)) if weight is None else weight
    return Donors(X.astype(np.float32), Y.astype(np.float32), weight, columns)


def correlated(n, seed):
    """Three normal columns: x1 = .8 x0 + .6 e, and x2 apart."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    return X


def hidden(X, columns):
    """X with 0 in these columns, and where cells are missing."""
    missing = np.zeros(X.shape, dtype=np.bool_)
    missing[:, columns] = True
    return np.where(missing, 0.0, X), missing


def test_one_gap_has_the_conditional_law_of_its_column():
    donors, T = donors_of(correlated(800, 0)), correlated(1500, 1)
    drawn = donors.completions(*hidden(T, [1]))
    assert drawn.shape == (N_COMPLETIONS, 1500, 3)
    assert_array_equal(drawn[:, :, [0, 2]], np.broadcast_to(T[:, [0, 2]], (N_COMPLETIONS, 1500, 2)))
    error = drawn[:, :, 1] - 0.8 * T[:, 0]  # N(0, .36) in truth
    assert abs(error.mean()) < 0.04
    assert error.std() == pytest.approx(0.6, abs=0.04)
    rank = (drawn[:, :, 1] < T[:, 1]).mean(axis=0)
    assert ((rank >= 0.1) & (rank <= 0.9)).mean() == pytest.approx(17 / 21, abs=0.05)


def test_a_spread_that_follows_other_columns_is_found():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1000, 2))
    X[:, 1] *= np.where(X[:, 0] > 0, 3.0, 0.3)
    T = np.array([[2.0, 0.0], [-2.0, 0.0]])
    drawn = donors_of(X).completions(*hidden(T, [1]))
    wide, narrow = drawn[:, :, 1].std(axis=0)
    assert 2 < wide < 4
    assert narrow < 0.6


def test_a_row_of_gaps_alone_has_the_joint_law_of_the_table():
    X = correlated(1000, 0)
    drawn = donors_of(X).completions(np.zeros((1, 3)), np.ones((1, 3), dtype=np.bool_), 8000)[:, 0]
    assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.06)
    assert_allclose(np.cov(drawn.T), np.cov(X.T), atol=0.12)


def test_draws_depend_on_their_row_alone():
    donors, T = donors_of(correlated(300, 0)), correlated(20, 1)
    T, missing = hidden(T, [1, 2])
    whole = donors.completions(T, missing)
    assert_array_equal(whole[:, 5:8], donors.completions(T[5:8], missing[5:8]))
    assert_array_equal(whole, donors_of(correlated(300, 0)).completions(T, missing))


def test_donors_count_by_their_weight():
    X = np.repeat([[0.0], [1.0]], 30, axis=0) + 1e-3 * np.arange(60)[:, None]
    drawn = donors_of(X, weight=np.where(X[:, 0] < 0.5, 1.0, 3.0)).completions(
        np.zeros((50, 1)), np.ones((50, 1), dtype=np.bool_)
    )
    assert (drawn > 0.5).mean() == pytest.approx(0.75, abs=0.03)


def mixed(n, seed, gaps=0.0):
    """A number that repeats, labels that follow it, a date; gaps in the first two."""
    rng = np.random.default_rng(seed)
    count = rng.integers(0, 4, n).astype(float)
    label = pd.Series(np.where(count + rng.normal(size=n) > 1.5, "high", "low")).where(count != 3, "top")
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    y = count + (label == "high") + 0.1 * rng.normal(size=n)
    X = pd.DataFrame({"count": count, "label": label, "when": when, "x": rng.normal(size=n)})
    for name in ("count", "label"):
        X.loc[rng.random(n) < gaps, name] = None
    return X, y.to_numpy()


def encoded_of(X, y):
    source = as_source(X, y)
    encoder = learn(source, warn=False).encoder
    return encoder, source.map(Encode(encoder, lambda part, weight: np.asarray(part.y)[:, None]))


def test_labels_dates_and_whole_numbers_are_those_of_a_donor():
    X, y = mixed(300, 0)
    encoder, rows = encoded_of(X, y)
    donors = Donors.of(encoder, sample(rows, None).rows)
    T = X[:80].copy()
    T["count"], T["label"], T["when"] = np.nan, None, pd.NaT
    encoded, missing = encoder.as_scaled_with_gaps(T, warn=False)
    assert_array_equal(missing, np.tile([True, True, True, False], (80, 1)))
    drawn = donors.completions(encoded, missing).reshape(-1, encoded.shape[1]).astype(np.float32)
    for column in donors.columns[:3]:  # among the values seen; all parts of a date at once
        seen = {tuple(row) for row in donors.X[:, column.values].tolist()}
        assert {tuple(row) for row in drawn[:, column.values].tolist()} <= seen
        assert len(column.values) == (1, 3, 1 + 12 + 7)[donors.columns.index(column)]


def test_training_rows_are_completed_given_their_target_and_keep_their_flags():
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(900, 2))
    y = 2 * whole[:, 0] + whole[:, 1] + 0.1 * rng.normal(size=900)
    X = whole.copy()
    X[rng.random(900) < 0.3, 0] = np.nan
    encoder, rows = encoded_of(X, y)
    (done,) = completed_rows(encoder, rows).each(lambda part: part)
    gap = np.isnan(X[:, 0])
    scale = encoder.columns[0].scale
    assert_array_equal(done.X[:, 1], gap)
    assert_array_equal(done.X[~gap], Encode(encoder)._rows(next(as_source(X).each(lambda p: p))).X[~gap])
    error = done.X[gap, 0] - scale.apply(whole[gap, 0])
    assert np.sqrt((error**2).mean()) < 0.25  # .05 of y's noise; by the mean it is 1
    drawn_alike = [completed_rows(encoder, rows).each(lambda part: part) for _ in range(2)]
    assert_array_equal(next(drawn_alike[0]).X, next(drawn_alike[1]).X)


def test_a_table_without_gaps_is_left_as_it_is():
    X, y = mixed(40, 0)
    encoder, rows = encoded_of(X, y)
    assert completed_rows(encoder, rows) is rows


def test_gaps_that_tell_something_are_filled_from_rows_of_their_kind():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    y = x + 0.1 * rng.normal(size=2000)
    gap = y > 0.8
    X = np.column_stack([np.where(gap & (rng.random(2000) < 0.8), np.nan, x), rng.normal(size=2000)])
    encoder, rows = encoded_of(X, y)
    done = completed_rows(encoder, rows)
    donors = Donors.of(encoder, sample(done, None).rows)
    encoded, missing = encoder.as_scaled_with_gaps(np.column_stack([np.full(50, np.nan), np.zeros(50)]))
    drawn = donors.completions(encoded, missing)[:, :, 0]
    known = encoder.columns[0].scale
    assert drawn.mean() == pytest.approx(known.apply(x[gap].mean()), abs=0.3)


def test_wide_tables_keep_fewer_donors():
    D = 5000
    rows = Encoded(np.zeros((900, D), np.float32), np.zeros((900, 1), np.float32), np.ones(900))
    encoder = learn(as_source(np.random.default_rng(0).normal(size=(30, D)))).encoder
    assert len(Donors.of(encoder, rows).X) == MOST_CELLS // D


def factors(n, n_columns, strength, seed):
    """Columns of variance 1 that share one factor: x = strength f + sqrt(1 - strength^2) e."""
    rng = np.random.default_rng(seed)
    rest = rng.normal(size=(n, n_columns))
    return strength * rng.normal(size=(n, 1)) + np.sqrt(1 - strength**2) * rest


@pytest.mark.parametrize("strength", [0.0, 0.8])
def test_draws_are_honest_among_300_columns(strength):
    donors, T = donors_of(factors(250, 300, strength, 0)), factors(400, 300, strength, 1)
    drawn = donors.completions(*hidden(T, [0, 7]))[:, :, [0, 7]]
    truth = T[:, [0, 7]]
    rank = (drawn < truth).mean(axis=0)
    assert ((rank >= 0.1) & (rank <= 0.9)).mean() == pytest.approx(17 / 21, abs=0.08)
    # given many columns of the factor, its own part of the cell is known
    left = 1 - strength**2
    assert (drawn.mean(axis=0) - truth).var() == pytest.approx(left * 1.05, rel=0.2)
    assert drawn.var(axis=0).mean() == pytest.approx(left, rel=0.2)


def test_a_table_with_gaps_in_each_of_300_columns_is_completed():
    X = factors(200, 300, 0.8, 0)
    gap = np.random.default_rng(1).random(X.shape) < 0.1
    y = X[:, 0] + X[:, 1]
    encoder, rows = encoded_of(np.where(gap, np.nan, X), y)
    started = time.process_time()
    whole = sample(rows, None).rows
    done = Donors.of(encoder, whole).settled().completed(whole)
    assert time.process_time() - started < 60  # about 6, and linear in the columns
    given = done.X[:, [column.values[0] for column in donor_columns(encoder)]]
    flags = done.X[:, [column.flag for column in donor_columns(encoder)]] > 0
    assert flags.mean() == pytest.approx(0.1, abs=0.01)
    # drawn cells have the correlation 0.64 with others that the known ones have
    others = given.mean(axis=1, keepdims=True)
    z, f = (given - given.mean(axis=0)) / given.std(axis=0), (others - others.mean()) / others.std()
    assert (z * f)[flags].mean() == pytest.approx((z * f)[~flags].mean(), abs=0.08)
    assert z[flags].var() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("n", "p", "outputs"), [(60, 5, 1), (40, 30, 2), (25, 30, 1)])
def test_the_ridge_regression_is_that_of_scikit_learn(n, p, outputs):
    rng = np.random.default_rng(p)
    Z = 3 + 10 * rng.normal(size=(n, p))
    cells = Z[:, :2] @ rng.normal(size=(2, outputs)) + rng.normal(size=(n, outputs))
    weight = rng.integers(1, 4, n).astype(float)
    slope, level = _ridge(Z, cells, weight)
    scale = Z.std(axis=0)
    model = RidgeCV(PENALTIES).fit(Z / scale, cells, sample_weight=weight / weight.mean())
    assert_allclose(slope, (model.coef_.reshape(outputs, p) / scale).T, rtol=1e-8, atol=1e-10)
    assert_allclose(level, model.intercept_, rtol=1e-8, atol=1e-10)
