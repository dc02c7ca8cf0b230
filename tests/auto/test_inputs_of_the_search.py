"""`AutoRegressor` on other inputs: sparse tables, tables in parts, limits, exposure, a stated kind."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.stats import norm
from tests.auto.tables import humps

from nongauss import AutoRegressor, SparseGPRegressor
from nongauss.auto.censored import log_prob_between
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.predictive.mixture import standard_normal

pytestmark = pytest.mark.usefixtures("few_trees")


def test_a_sparse_table_is_the_table_with_its_zeros(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.4)
    y = X @ [1.0, 2.0, 0.0, 0.0] + 0.1 * rng.normal(size=60)
    dense = AutoRegressor(candidates=["linear"], random_state=0).fit(X, y)
    sparse = AutoRegressor(candidates=["linear"], random_state=0).fit(csr_array(X), y)
    assert_array_equal(sparse.predict(csr_array(X)), dense.predict(X))
    monkeypatch.setattr("nongauss.auto.parts.MOST_DENSE", 100)
    with pytest.raises(InputError, match="240 cells"):
        sparse.predict(csr_array(X))


def test_rows_of_which_only_limits_are_known_are_weighed_by_their_probability():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 1))
    time = np.exp(1.0 + X[:, 0] + 0.3 * rng.normal(size=80))
    end = np.exp(1.5)
    y, over = np.minimum(time, end), (time > end).astype(int)
    names = ["linear", "gp log_normal"]
    model = AutoRegressor(candidates=names, random_state=0).fit(X, y, censoring=over)
    upper = AutoRegressor(candidates=names, random_state=0).fit(X, y, y_upper=np.where(over, np.inf, y))
    assert_allclose(upper.predict(X), model.predict(X))
    alone = SparseGPRegressor("log_normal", random_state=0).fit(X, y, censoring=over)
    assert max(model.weights_, key=model.weights_.get) == "gp log_normal"
    new = np.array([[0.0], [1.5]])  # the mean of the true values, not of what was recorded
    assert_allclose(model.predict(new), alone.predict(new), rtol=0.1)
    assert model.predict(new)[1] > end
    with pytest.raises(InputError, match="no censoring"):
        AutoRegressor(candidates=["gp, two humps"]).fit(X, y, censoring=over)
    with pytest.raises(InputError, match="not for counts"):
        AutoRegressor(kind="count").fit(X, np.round(y), censoring=over)


def test_what_is_known_of_a_row_is_as_probable_as_its_law_says():
    law = standard_normal(6)
    ends = np.array(
        [[0.3, 0.3], [0.3, np.inf], [-np.inf, 0.3], [-1.0, 0.3], [40.0, np.inf], [-np.inf, np.inf]]
    )
    expected = [norm.logpdf(0.3), norm.logsf(0.3), norm.logcdf(0.3)]
    expected += [np.log(norm.cdf(0.3) - norm.cdf(-1.0)), np.log(1e-300), 0.0]
    assert_allclose(log_prob_between(law, ends), expected)


def test_counts_have_an_exposure():
    rng = np.random.default_rng(0)
    X, years = rng.normal(size=(60, 1)), rng.uniform(0.5, 4.0, 60)
    y = rng.poisson(2.0 * years).astype(float)
    model = AutoRegressor(candidates=["gp poisson"], calibrate=False, random_state=0).fit(
        X, y, exposure=years
    )
    assert model.target_kind_ == "count"
    once, twice = (model.predict(X, exposure=np.full(60, size)) for size in (1.0, 2.0))
    assert_allclose(twice, 2.0 * once, rtol=1e-6)
    assert abs(once.mean() - 2.0) < 0.4


def test_nothing_that_was_learned_at_other_exposures_has_a_say():
    rng = np.random.default_rng(0)
    X, years = rng.normal(size=(150, 2)), rng.uniform(0.1, 1.0, 150)
    y = rng.poisson(years * np.exp(X[:, 0] - 0.5)).astype(float)
    model = AutoRegressor(candidates=["constant count"], random_state=0).fit(X, y, exposure=years)
    rates = [model.predict(X[:5], exposure=np.full(5, size)) / size for size in (1.0, 0.1, 0.01)]
    assert_allclose(rates[1:], [rates[0]] * 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("word", "y", "kind"),
    [
        ("count", [0.0, 3.0, 2.0], "count"),
        ("real", [1.0, 3.0, 2.0], "positive"),  # densities, whatever whole numbers look like
        ("zeros", [0.0, 3.0, 2.5], "positive with zeros"),
        ("share", [0.0, 1.0, 0.5], "share with 0 or 1"),
        ("share", [0.1, 0.9, 0.5], "share"),
    ],
)
def test_a_person_says_what_the_target_is(word, y, kind):
    assert AutoRegressor(kind=word)._kind_of(np.array(y)) == kind


@pytest.mark.parametrize(
    ("word", "y"), [("count", [0.5, 1.0]), ("positive", [0.0, 1.0]), ("share", [0.5, 2.0])]
)
def test_numbers_of_another_kind_are_refused(word, y):
    with pytest.raises(InputError, match="no numbers of kind"):
        AutoRegressor(kind=word)._kind_of(np.array(y))


@pytest.mark.gate
def test_of_a_table_in_parts_a_sample_is_weighed_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr("nongauss.auto.parts.MOST_SAMPLED", 100)
    X, y = humps(240)
    for number in range(3):
        rows = slice(80 * number, 80 * (number + 1))
        X.iloc[rows].assign(y=y[rows]).to_parquet(tmp_path / f"{number}.parquet")
    model = AutoRegressor(candidates=["linear", "constant"], calibrate=False, random_state=0)
    with pytest.warns(NongaussWarning, match="a sample of 100 rows"):
        model.fit(tmp_path, "y")
    assert list(model.feature_names_in_) == ["a", "b"]
    assert_allclose(model.predict(X.iloc[:5]), X["a"][:5], atol=0.5)
    with pytest.raises(InputError, match="no column 'z'"):
        model.fit(tmp_path, "z")
