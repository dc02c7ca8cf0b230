import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import nongauss
from nongauss import RankFactorAnalysis, RankFactorClassifier
from nongauss.core.errors import InputError
from nongauss.rank_factor import resampling
from nongauss.rank_factor.predict import interval, order_like
from rank_factor.small import table


def made(seed: int, loadings: np.ndarray, n_rows: int = 200) -> np.ndarray:
    """A table of normal columns with these loadings (D, K) and unit noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, loadings.shape[1])) @ loadings.T
    return X + rng.standard_normal(X.shape)


@pytest.fixture
def fitted(monkeypatch) -> RankFactorAnalysis:
    monkeypatch.setattr(resampling, "N_TABLES", 3)
    return RankFactorAnalysis(1, random_state=0).fit(made(0, np.linspace(0.4, 1.6, 6)[:, None], 80))


def test_a_file_and_a_pickle_hold_the_spread_that_was_asked_for_and_no_rows(fitted, tmp_path):
    path = tmp_path / "model.nongauss"
    nongauss.save(fitted, path)
    for without in (nongauss.load(path), pickle.loads(pickle.dumps(fitted))):
        assert without._problem is None
        with pytest.raises(InputError, match="tables drawn from the rows"):
            without.loading_intervals()
    ends = fitted.loading_intervals()
    assert_array_equal(ends, fitted.loading_intervals())
    nongauss.save(fitted, path)
    for with_spread in (nongauss.load(path), pickle.loads(pickle.dumps(fitted))):
        assert_array_equal(with_spread.loading_intervals(), ends)


def test_the_spread_of_a_long_table_is_told_by_shorter_ones(monkeypatch):
    X = made(1, np.linspace(0.4, 1.6, 6)[:, None], 500)
    monkeypatch.setattr(resampling, "N_TABLES", 10)
    model = RankFactorAnalysis(1, observation="gaussian", random_state=0).fit(X)
    whole = np.diff(model.loading_intervals())
    monkeypatch.setattr(resampling, "MOST_CELLS", 6 * 250)
    model._resampled = None
    assert_allclose(np.diff(model.loading_intervals()).mean() / whole.mean(), 1.0, atol=0.4)


def test_weights_are_rows_and_classes_have_intervals(monkeypatch):
    X, y = table(60)
    monkeypatch.setattr(resampling, "N_TABLES", 4)
    twice = RankFactorClassifier(2, random_state=0).fit(X, y, sample_weight=np.full(60, 4.0))
    once = RankFactorClassifier(2, random_state=0).fit(X, y)
    narrow, wide = (np.diff(model.loading_intervals()).mean() for model in (twice, once))
    assert narrow < 0.9 * wide
    ends = once.coefficient_intervals()
    assert ends.shape == (*once.coef_.shape, 2)
    assert ((ends[..., 0] < once.coef_) & (once.coef_ < ends[..., 1])).all()


def test_intervals_of_draws_are_their_quantiles():
    draws = np.random.default_rng(0).normal(1.0, 2.0, (100_000, 1))
    assert_allclose(interval(draws, 0.9)[0], [1 - 1.645 * 2, 1 + 1.645 * 2], atol=0.05)


def test_coverage_must_be_a_share(fitted):
    with pytest.raises(InputError, match="coverage"):
        fitted.loading_intervals(1.5)


BLOCKS = np.kron(np.eye(3), np.linspace(0.6, 1.5, 4)[:, None])


@pytest.mark.gate
@pytest.mark.parametrize(
    ("observation", "loadings"),
    [
        ("rank", np.linspace(0.4, 1.6, 6)[:, None]),
        ("gaussian", np.linspace(0.4, 1.6, 6)[:, None]),
        ("rank", BLOCKS),
    ],
    ids=["rank", "gaussian", "three factors"],
)
def test_90_percent_intervals_hold_what_fits_to_other_tables_scatter_around(observation, loadings):
    """12 tables of one law: by the normals of variational Bayes 51 % were held, of three factors 39 %."""
    n_tables, n_factors = 12, loadings.shape[1]
    ends, means = [], []
    for seed in range(n_tables):
        model = RankFactorAnalysis(n_factors, observation=observation, random_state=0)
        model.fit(made(seed, loadings))
        own = model.loadings_.to_numpy()
        order, sign = order_like(own, means[0] if means else own)
        means.append(own[:, order] * sign)
        ends.append(np.sort(model.loading_intervals()[:, order] * sign[:, None], axis=-1))
    centre = np.mean(means, axis=0)
    held = [(low <= centre) & (centre <= high) for low, high in np.moveaxis(ends, -1, 1)]
    assert 0.82 <= np.mean(held) <= 0.98  # their own mean is the centre, and 72 cells of 12 tables tell +-.05
