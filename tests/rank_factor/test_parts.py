"""Ranks of tables in parts, beside the same rows in memory."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

from nongauss import RankFactorAnalysis, RankFactorClassifier, load, save
from nongauss.core.errors import InputError
from nongauss.rank_factor import reading
from nongauss.rank_factor.data import find_levels
from nongauss.rank_factor.parts import fine_cells, fine_cuts, levels_of_parts
from nongauss.rank_factor.reading import PartRows
from nongauss.tables.source import Stream


def cells(n=4000, seed=0):
    """A column of numbers, one of grades, one that is mostly 0, one with gaps."""
    rng = np.random.default_rng(seed)
    out = np.stack(
        [
            rng.normal(size=n),
            rng.integers(0, 4, n).astype(float),
            np.where(rng.random(n) < 0.7, 0.0, rng.exponential(size=n)),
            np.where(rng.random(n) < 0.4, np.nan, rng.normal(size=n)),
        ],
        axis=1,
    )
    return out, rng.integers(1, 3, n).astype(float)


def in_parts(X, weight, size=700):
    cut = range(0, len(X), size)
    return Stream(
        [PartRows(X[i : i + size], np.zeros(len(X[i : i + size])), weight[i : i + size]) for i in cut]
    )


def test_levels_of_parts_are_those_of_all_rows_up_to_half_a_fine_cell():
    X, weight = cells()
    found = levels_of_parts(in_parts(X, weight), X[:1500], 8)
    exact = find_levels(X, weight, 8)
    assert_array_equal(found.counts, exact.counts)
    assert_array_equal(found.low[1], exact.low[1])  # grades, to the last bit
    assert found.low[2, 0] == found.high[2, 0] == 0.0  # equal values are never parted
    for column, one, other in zip(X.T, found.high, exact.high, strict=True):
        seen = ~np.isnan(column)
        share = [
            np.average(column[seen, None] <= ends[:8], axis=0, weights=weight[seen]) for ends in (one, other)
        ]
        assert np.abs(share[0] - share[1]).max() < 0.01
    # every cell has a level, also those beyond what the sample held
    assert (found.codes(X)[~np.isnan(X)] < 8).all()
    assert_array_equal(np.nanmax(X, axis=0), [row[np.isfinite(row)].max() for row in found.high])


def test_levels_do_not_depend_on_where_a_table_is_cut():
    X, weight = cells(900)
    one, other = (levels_of_parts(in_parts(X, weight, size), X[:300], 6) for size in (100, 900))
    assert_array_equal(one.low, other.low)
    assert_array_equal(one.high, other.high)


def test_fine_cells_hold_all_weight_and_the_ends_of_their_values():
    X, weight = cells(500)
    cuts = fine_cuts(X[:100, :1])
    found = fine_cells(PartRows(X[:, :1], np.zeros(500), weight), cuts)
    assert_allclose(found.mass.sum(), weight.sum())
    inside = (X[:, 0] > cuts[0][3]) & (X[:, 0] < cuts[0][4])
    assert_allclose(found.mass[0, 8], weight[inside].sum())
    assert (found.low[0, 8], found.high[0, 8]) == (X[inside, 0].min(), X[inside, 0].max())


def factors(n=1200, seed=0):
    """Eight columns that hang on two factors, distorted; labels that hang on the first."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    A = np.array([[2.0, 0], [1.5, 0], [-1.5, 0], [1.0, 0], [0, 2.0], [0, 1.5], [0, -1.5], [0, 1.0]])
    X = np.exp(z @ A.T + 0.7 * rng.normal(size=(n, 8)))
    y = np.where(z[:, 0] + 0.3 * rng.normal(size=n) > 0, "ill", "well")
    return pd.DataFrame(X, columns=[f"gene{i}" for i in range(8)]), y


def on_disk(folder, X, y=None):
    table = X if y is None else X.assign(state=y)
    for number, begin in enumerate(range(0, len(table), 400)):
        table[begin : begin + 400].to_parquet(folder / f"{number}.parquet")
    return str(folder)


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(reading, "MOST_SAMPLED", 400)


def test_passes_over_parts_lead_from_the_sample_to_what_all_rows_say(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_SAMPLED", 150)
    X, _ = factors(2400)
    settings = {"n_factors": 2, "random_state": 0}
    parted = RankFactorAnalysis(**settings).fit(on_disk(tmp_path, X))
    whole, sampled = (RankFactorAnalysis(max_rows=most, **settings).fit(X) for most in (None, 150))
    near, far = (_angle(model.loadings_, whole.loadings_) for model in (parted, sampled))
    assert near < 0.08
    assert near < 0.6 * far
    assert 0.7 < np.linalg.norm(parted.loadings_) / np.linalg.norm(whole.loadings_) < 1.4  # a convention
    assert parted.converged_
    assert len(parted.trace_) == 3


@pytest.mark.usefixtures("small_sample")
def test_a_classifier_of_parts_is_that_of_all_rows_and_can_be_saved(tmp_path):
    X, y = factors()
    settings = {"n_factors": 2, "random_state": 0}
    parted = RankFactorClassifier(**settings).fit(on_disk(tmp_path, X, y), "state")
    whole = RankFactorClassifier(**settings).fit(X, y)
    T, t = factors(seed=1)
    assert_array_equal(parted.classes_, ["ill", "well"])
    assert parted.score(T, t) > whole.score(T, t) - 0.01
    assert log_loss(t, parted.predict_proba(T)) < log_loss(t, whole.predict_proba(T)) + 0.03
    save(parted, tmp_path / "model.nongauss")
    assert_allclose(load(tmp_path / "model.nongauss").predict_proba(T), parted.predict_proba(T))


@pytest.mark.usefixtures("small_sample")
def test_what_is_no_sum_over_parts_is_refused_with_the_remedy(tmp_path):
    X, y = factors(450)
    path = on_disk(tmp_path, X, y)
    for model in (
        RankFactorAnalysis(inference="gibbs"),
        RankFactorAnalysis(neighbours="pairwise"),
        RankFactorAnalysis(observation="gaussian"),
        RankFactorClassifier(classifier="mixture"),
        RankFactorClassifier(cut=False),
    ):
        with pytest.raises(InputError, match=r"needs its rows in memory; leave that out .* or give max_rows"):
            model.fit(path, *([] if isinstance(model, RankFactorAnalysis) else ["state"]))
    fitted = RankFactorAnalysis(1, max_iter=3, tol=1.0, random_state=0).fit(on_disk(tmp_path, X))
    assert fitted.impute(X.mask(X.quantile(0.9) < X)).notna().all().all()
    with pytest.raises(InputError, match="fitted to parts does not hold"):
        fitted.loading_intervals()


def _angle(one, other):
    """Largest angle between the spaces of two sets of loadings: no rotation or scale counts."""
    q, r = (np.linalg.qr(loadings.to_numpy())[0] for loadings in (one, other))
    return np.arccos(np.clip(np.linalg.svd(q.T @ r)[1], -1.0, 1.0)).max()
