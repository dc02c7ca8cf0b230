"""What every estimator promises, tested over the catalogue on real data that ships with scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

import nongauss
from catalogue import CATALOGUE, FOUND, REGRESSORS, SEVERAL_OUTPUTS, SUPERVISED, Entry

every = pytest.mark.parametrize("entry", CATALOGUE, ids=lambda e: e.name)
every_and_found = pytest.mark.parametrize(
    "entry", [*CATALOGUE, FOUND], ids=lambda e: e.name + " found" * (e is FOUND)
)
every_supervised = pytest.mark.parametrize("entry", SUPERVISED, ids=lambda e: e.name)
every_regressor = pytest.mark.parametrize("entry", REGRESSORS, ids=lambda e: e.name)
# The fits here are cut short on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

_FITTED: dict[str, tuple] = {}


def fitted(entry: Entry) -> tuple:
    """`(estimator, X, y)`, fitted once a process; tests must not change it."""
    key = str(entry.make())
    if key not in _FITTED:
        X, y = entry.data()
        _FITTED[key] = (entry.make().fit(X, y), X, y)
    return _FITTED[key]


def moments(estimator, X) -> np.ndarray:
    """Mean and standard deviation stacked, `(2, N)`."""
    return np.stack(estimator.predict(X, return_std=True))


@every
def test_fit_sets_the_common_attributes(entry):
    estimator, X, _ = fitted(entry)
    assert estimator.n_features_in_ == X.shape[1]
    assert {"iteration", "bound", "seconds"} <= set(estimator.trace_.columns)
    assert np.isfinite(estimator.trace_["bound"]).all()
    assert estimator.n_iter_ >= 1
    assert isinstance(estimator.converged_, bool)
    assert estimator.stop_reason_.endswith(".")


@every
def test_a_notebook_shows_what_was_fitted(entry):
    estimator, _, _ = fitted(entry)
    page = estimator._repr_html_()
    assert "nongauss-told" in page
    assert f"Model                {entry.name}" in page


@every
def test_a_fit_without_names_forgets_those_of_the_former(entry):
    former, X, y = fitted(entry)
    named = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    estimator = entry.make().fit(named, y)
    assert list(estimator.feature_names_in_) == list(named)
    estimator.fit(X, y)
    assert not hasattr(estimator, "feature_names_in_")
    assert_array_equal(entry.said(estimator, X), entry.said(former, X))


@every_and_found
def test_fitting_again_gives_the_same_bits(entry):
    estimator, X, y = fitted(entry)
    assert_array_equal(entry.said(clone(estimator).fit(X, y), X), entry.said(estimator, X))


@every
def test_fit_leaves_its_input_alone(entry):
    X, y = entry.data()
    X_before, y_before = X.copy(), y.copy()
    entry.said(entry.make().fit(X, y), X)
    assert_array_equal(X, X_before)
    assert_array_equal(y, y_before)


@pytest.mark.gate
@every_and_found
def test_row_order_does_not_matter(entry):
    estimator, X, y = fitted(entry)
    order = np.random.RandomState(1).permutation(len(X))
    assert_allclose(entry.said(entry.make().fit(X[order], y[order]), X), entry.said(estimator, X), rtol=1e-7)


@pytest.mark.gate
@every_and_found
def test_integer_weights_repeat_rows_and_zeros_remove_them(entry):
    X, y = entry.data()
    weight = np.random.RandomState(0).randint(0, 3, len(X))
    weighted = entry.make().fit(X, y, sample_weight=weight)
    repeated = entry.make().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(entry.said(weighted, X), entry.said(repeated, X), rtol=1e-7)


@every
@pytest.mark.parametrize("weight", [0.0, -1.0], ids=["all zero", "negative"])
def test_impossible_weights_are_refused(entry, weight):
    X, y = entry.data()
    weights = np.zeros(len(X))
    weights[3] = weight
    with pytest.raises(ValueError, match="weight"):
        entry.make().fit(X, y, sample_weight=weights)


@every_and_found
def test_saved_and_loaded_predicts_the_same_bits(entry, tmp_path):
    estimator, X, _ = fitted(entry)
    path = tmp_path / "model.nongauss"
    nongauss.save(estimator, path)
    again = nongauss.load(path)
    assert type(again) is type(estimator)
    assert_array_equal(entry.said(again, X), entry.said(estimator, X))
    assert str(again.get_params()) == str(estimator.get_params())


@every
def test_pickled_predicts_the_same_bits(entry):
    estimator, X, _ = fitted(entry)
    assert_array_equal(entry.said(pickle.loads(pickle.dumps(estimator)), X), entry.said(estimator, X))


@pytest.mark.gate
@every
def test_lists_and_integers_are_accepted(entry):
    X, y = entry.data()
    X_int, y_int = np.rint(X * 1000).astype(np.int64), np.rint(y).astype(np.int16)
    expected = entry.said(entry.make().fit(X_int.astype(float), y_int.astype(float)), X_int)
    as_lists = entry.make().fit(X_int.tolist(), y_int.tolist())
    assert_allclose(entry.said(as_lists, X_int.tolist()), expected, rtol=1e-9)
    assert_allclose(entry.said(entry.make().fit(X_int, y_int), X_int), expected, rtol=1e-9)


@pytest.mark.gate
@every_supervised
def test_a_column_vector_target_means_the_same_with_a_warning(entry):
    estimator, X, y = fitted(entry)
    with pytest.warns(DataConversionWarning):
        column = entry.make().fit(X, y[:, None])
    assert column.predict(X).shape == (len(X),)
    assert_array_equal(column.predict(X), entry.said(estimator, X))


@every_regressor
@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1e6), (1e6, 1.0), (-3.0, 1e-6)])
def test_units_of_the_columns_do_not_matter(entry, shift, scale):
    estimator, X, y = fitted(entry)
    shifts, scales = np.zeros(X.shape[1]), np.ones(X.shape[1])
    shifts[1], scales[0], scales[1] = shift, scale, -scale
    moved = X * scales + shifts
    # A shift of 1e6 leaves a column of spread 0.05 only nine of its sixteen digits.
    rtol = 1e-6 if shift < 1e6 else 1e-3
    assert_allclose(moments(entry.make().fit(moved, y), moved), moments(estimator, X), rtol=rtol)


@every_regressor
@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1e6), (5e6, 1e6), (7.0, -1e-6)])
def test_units_of_the_target_carry_through(entry, shift, scale):
    estimator, X, y = fitted(entry)
    mean, std = moments(estimator, X)
    moved_mean, moved_std = moments(entry.make().fit(X, scale * y + shift), X)
    assert_allclose((moved_mean - shift) / scale, mean, rtol=1e-6)
    assert_allclose(moved_std / abs(scale), std, rtol=1e-6)


@every_regressor
def test_the_predictive_distribution_is_coherent(entry):
    estimator, X, y = fitted(entry)
    X, y = X[:7], y[:7]
    distribution = estimator.predict_distribution(X)
    mean, std = estimator.predict(X, return_std=True)
    assert_array_equal(distribution.mean, mean)
    assert_array_equal(distribution.std, std)
    assert_allclose(distribution.variance, std**2)
    assert (std > 0).all()
    assert_allclose(distribution.cdf(distribution.quantile(0.3)), 0.3, atol=1e-6)
    lower, upper = estimator.predict_interval(X, coverage=0.9).T
    assert_allclose(distribution.cdf(upper) - distribution.cdf(lower), 0.9, atol=1e-6)
    assert_array_equal(estimator.log_density(X, y), distribution.log_prob(y))
    assert_allclose(estimator.predict_quantiles(X, [0.5])[..., 0], distribution.quantile(0.5))


@every_regressor
def test_draws_have_the_moments_they_claim(entry):
    estimator, X, _ = fitted(entry)
    n_draws = 4000
    draws = estimator.sample_y(X[:3], n_draws, random_state=0)
    mean, std = estimator.predict(X[:3], return_std=True)
    assert draws.shape == (3, n_draws)
    # Five standard errors: a correct sampler fails once in a million rows.
    assert (np.abs(draws.mean(axis=1) - mean) < 5 * std / np.sqrt(n_draws)).all()
    assert_allclose(draws.std(axis=1), std, rtol=0.1)


@pytest.mark.gate
@pytest.mark.parametrize("entry", SEVERAL_OUTPUTS, ids=lambda e: e.name)
def test_several_outputs(entry):
    X, y = entry.data()
    both = np.column_stack([y, np.sqrt(y)])
    mean, std = entry.make().fit(X, both).predict(X, return_std=True)
    assert mean.shape == std.shape == both.shape
    assert np.isfinite(mean).all()
    assert (std > 0).all()
