"""Columns along which the target turns often enter in pieces; which do is what the rows give evidence for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

import nongauss
from nongauss import TGGMRegressor
from nongauss.core.errors import InputError
from nongauss.tggm import splines

QUICK = {
    "hidden_layer_sizes": (6,),
    "posterior": "moments",
    "max_epochs": 5,
    "n_members": 2,
    "random_state": 0,
}


def hours(n_rows, seed=0):
    """Two peaks a day, of working days another than of others, beside columns that say little."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"hour": rng.integers(0, 24, n_rows), "works": rng.integers(0, 2, n_rows)})
    X["warm"], X["wind"] = rng.normal(size=n_rows), rng.normal(size=n_rows)
    peaks = np.exp(-((X["hour"] - 8) ** 2) / 3.0) + np.exp(-((X["hour"] - 17) ** 2) / 4.0)
    noon = np.exp(-((X["hour"] - 14) ** 2) / 12.0)
    y = 100.0 * np.where(X["works"] == 1, peaks, noon) + 10.0 * X["warm"] + 5.0 * rng.normal(size=n_rows)
    return X, y.to_numpy()


def chosen(X, y):
    """The numbers of the columns that join, of a standardised table."""
    X = np.asarray((X - X.mean()) / X.std(), float)
    return splines._by_evidence([0, 1, 2, 3], X, np.asarray(y)[:, None], np.full(len(X), 1.0 / len(X)))


def test_the_column_that_turns_is_found_and_no_other():
    X, y = hours(300)
    assert chosen(X, y) == [0]
    # three turns or fewer are the network's own business
    bent = X["warm"] ** 2 - np.tanh(3.0 * X["wind"]) + 0.1 * np.random.default_rng(1).normal(size=300)
    assert chosen(X, bent) == []
    assert chosen(X, np.random.default_rng(2).normal(size=300)) == []


def test_pieces_join_the_values_of_a_column_with_few_and_its_quantiles_else():
    few, many = np.array([3.0, 1.0, 2.0, 1.0, 7.0]), np.random.default_rng(0).normal(size=999)
    even = np.full(5, 0.2)
    np.testing.assert_array_equal(splines.knots_of(few, even), [1.0, 2.0, 3.0, 7.0])
    knots = splines.knots_of(many, np.full(999, 1 / 999))
    assert len(knots) == splines.MOST_PIECES + 1
    assert knots[0] == many.min()
    assert knots[-1] == many.max()
    assert np.quantile(many, 0.5) == pytest.approx(knots[splines.MOST_PIECES // 2], abs=0.02)


def test_pieces_reproduce_any_function_of_the_values():
    X = np.random.default_rng(0).integers(0, 9, (60, 2)).astype(float)
    found = splines._of_columns([1], X, np.full(60, 1 / 60))
    design = np.column_stack([np.ones(60), found.joined(X)[:, 2:]])
    wanted = np.random.default_rng(1).normal(size=9)[X[:, 1].astype(int)]
    weights = np.linalg.lstsq(design, wanted, rcond=None)[0]
    np.testing.assert_allclose(design @ weights, wanted, atol=1e-10)


def test_the_gain_is_the_difference_of_two_marginal_likelihoods():
    """Beside the density of the part of y that the other columns leave free, N(0, sigma^2 (I + tau B B'))."""
    rng = np.random.default_rng(0)
    basis = splines._span(rng.normal(size=(40, 3)))
    powers, pieces = rng.normal(size=(40, 2)), rng.normal(size=(40, 4))
    y = pieces @ rng.normal(size=4) + rng.normal(size=40)
    gain, share = splines.evidence_gain(basis, powers, pieces, y[:, None])
    full = np.linalg.svd(np.column_stack([basis, powers]))[0]
    free = full[:, 5:].T  # directions that no other column spans
    B = free @ (pieces / pieces.std(axis=0))

    def evidence(log_tau):
        def best_sigma(log_variance):
            covariance = np.exp(log_variance) * (np.eye(35) + np.exp(log_tau) * B @ B.T)
            return -multivariate_normal.logpdf(free @ y, np.zeros(35), covariance)

        return -minimize_scalar(best_sigma, bounds=(-6.0, 6.0), method="bounded").fun

    best = max(evidence(log_tau) for log_tau in np.log(splines._PRIOR_VARIANCES))
    assert gain == pytest.approx(best - evidence(-30.0), abs=1e-4)
    assert 0.5 < share < 1.0


def test_splines_that_are_asked_for_keep_a_direction_and_are_saved(tmp_path):
    X, y = hours(120)
    model = TGGMRegressor(splines=["warm"], monotone={"warm": 1}, **QUICK).fit(X, y)
    assert model.spline_columns_ == ("warm",)
    grid = pd.concat([X.iloc[:1].assign(warm=value) for value in np.linspace(-3.0, 3.0, 41)])
    assert np.diff(model.predict(grid)).min() >= -1e-9
    nongauss.save(model, tmp_path / "splines.nongauss")
    again = nongauss.load(tmp_path / "splines.nongauss")
    assert (again.predict(X) == model.predict(X)).all()
    with pytest.raises(InputError, match="splines names 'cold', which is no column of numbers"):
        TGGMRegressor(splines=["cold"], **QUICK).fit(X, y)


@pytest.mark.gate
def test_columns_in_other_units_rows_written_twice_and_more_rows_change_no_piece():
    X, y = hours(200)
    model = TGGMRegressor(**QUICK).fit(X, y)
    assert model.spline_columns_ == ("hour",)
    minutes = X.assign(hour=60.0 * X["hour"] + 7.0)
    other = TGGMRegressor(**QUICK).fit(minutes, y)
    np.testing.assert_allclose(other.predict(minutes), model.predict(X), rtol=1e-3)
    twice = TGGMRegressor(**QUICK).fit(pd.concat([X, X]), np.concatenate([y, y]))
    weighted = TGGMRegressor(**QUICK).fit(X, y, sample_weight=np.full(200, 2.0))
    assert (twice.predict(X) == weighted.predict(X)).all()
    model.partial_fit(X, y)
    assert model.spline_columns_ == ("hour",)


@pytest.mark.gate
def test_two_peaks_a_day_are_learned():
    X, y = hours(500)
    new, at = hours(1000, seed=1)
    settings = {"posterior": "moments", "max_epochs": 100, "n_members": 2, "random_state": 0}
    errors = [
        np.sqrt(np.mean((TGGMRegressor(splines=asked, **settings).fit(X, y).predict(new) - at) ** 2))
        for asked in ("auto", None)
    ]
    assert errors[0] < 10.0  # noise is 5, the spread of y 35
    assert errors[0] < 0.7 * errors[1]
