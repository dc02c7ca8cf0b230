"""Missing cells by the features of a harmonium: in the column's own units, as sure as they are, together."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import nongauss
from nongauss import Harmonium
from nongauss.core.errors import InputError

SETTINGS = {"truncation": 6, "max_epochs": 150, "random_state": 0}


def made(n_rows=400, seed=0):
    """Two hidden groups that meet freely, seen in counts, numbers, labels; and the table with gaps."""
    rng = np.random.default_rng(seed)
    a, b = rng.random((2, n_rows)) < 0.5
    full = pd.DataFrame(
        {
            "few": np.minimum(rng.poisson(0.3 + 0.9 * a), 3).astype(float),
            "many": rng.poisson(np.where(b, 40, 2)).astype(float),
            "size": np.where(a, 3.0, -3.0) + rng.standard_normal(n_rows),
            "weight": np.exp(np.where(b, 1.0, -1.0) + 0.4 * rng.standard_normal(n_rows)),
            "kind": np.where(a, np.where(b, "ab", "a"), np.where(b, "b", "none")).astype(object),
            "also": np.where(a, 2.0, -2.0) + rng.standard_normal(n_rows),
        }
    )
    return full, full.mask(rng.random(full.shape) < 0.2)


@pytest.fixture(scope="module")
def fitted():
    full, gaps = made()
    return Harmonium(**SETTINGS).fit(gaps), full, gaps


def test_no_cell_is_one_that_its_column_cannot_have(fitted):
    """Counts share a total in the model: a column of 0 to 3 was said to be 61 beside one of large counts."""
    model, _, gaps = fitted
    out = model.impute(gaps)
    assert not out.isna().any().any()
    assert set(out["few"]) <= {0.0, 1.0, 2.0, 3.0}
    assert model.impute_distribution(gaps)["few"].quantile(1.0).max() <= 3
    assert (out["weight"] > 0).all()


def test_features_tell_cells_and_columns_alone_do_not(fitted):
    model, full, gaps = fitted
    out, lost = model.impute(gaps), gaps.isna()
    for name in ("size", "weight", "many"):
        error = (out[name] - full[name])[lost[name]].abs().mean()
        assert error < 0.75 * (gaps[name].median() - full[name])[lost[name]].abs().mean()
    assert (out["kind"] == full["kind"])[lost["kind"]].mean() > 0.6


def test_intervals_hold_what_they_say(fitted):
    model, _, _ = fitted
    held = []
    for seed in (1, 2, 3, 4):
        full, gaps = made(800, seed)
        laws = model.impute_distribution(gaps)
        for name in ("size", "weight", "also"):
            low, high = laws[name].interval(0.9).T
            true = full[name].to_numpy()[laws.rows(name)]
            held.append((low <= true) & (true <= high))
    assert 0.86 <= np.concatenate(held).mean() <= 0.94


def test_cells_that_hang_on_one_feature_are_drawn_together():
    """Of rows without any cell columns of one group hang together, those of two groups do not."""
    rng = np.random.default_rng(5)
    groups = np.where(rng.random((300, 2)) < 0.5, 2.0, -2.0)
    X = np.repeat(groups, 3, axis=1) + rng.standard_normal((300, 6))
    model = Harmonium(truncation=4, max_epochs=120, random_state=0).fit(X)
    drawn = np.concatenate(model.sample_missing(np.full((150, 6), np.nan), 10))
    found, true = np.corrcoef(drawn.T), np.corrcoef(X.T)
    assert np.allclose(found[:3, :3], true[:3, :3], atol=0.15)
    assert np.abs(found[:3, 3:]).max() < 0.15


def test_densities_integrate_gaps_out():
    """Of binary columns the density of a row with a gap is the sum of those of its two completions."""
    rng = np.random.default_rng(3)
    z = rng.random(300) < 0.5
    X = (rng.random((300, 5)) < np.where(z[:, None], 0.85, 0.15)).astype(float)
    for reading in ("chain", "global"):
        model = Harmonium(2, reading=reading, max_epochs=30, random_state=0).fit(X)
        row = X[:4].copy()
        zero, one, gap = row.copy(), row.copy(), row.copy()
        zero[:, 1], one[:, 1], gap[:, 1] = 0.0, 1.0, np.nan
        both = np.logaddexp(model.score_samples(zero, 200, 200), model.score_samples(one, 200, 200))
        assert np.allclose(model.score_samples(gap, 200, 200), both, atol=0.1)


def test_a_saved_model_fills_as_before_and_a_sparse_one_says_why_not(fitted, tmp_path):
    import scipy.sparse as sp

    model, _, gaps = fitted
    nongauss.save(model, tmp_path / "h.nongauss")
    again = nongauss.load(tmp_path / "h.nongauss")
    pd.testing.assert_frame_equal(again.impute(gaps.iloc[:20]), model.impute(gaps.iloc[:20]))
    sparse = Harmonium(2, max_epochs=2, random_state=0).fit(sp.csr_matrix(np.eye(12)))
    with pytest.raises(InputError, match="sparse table"):
        sparse.impute(np.full((1, 12), np.nan))


def test_a_column_by_itself_is_told_by_what_it_holds():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": np.where(rng.random(60) < 0.2, np.nan, rng.standard_normal(60))})
    model = Harmonium(random_state=0, max_epochs=2).fit(X)
    law = model.impute_distribution(X)["a"]
    assert law.quantile(0.5) == pytest.approx(np.full(len(law), X["a"].median()), abs=0.25)
    assert law.std == pytest.approx(np.full(len(law), X["a"].std()), rel=0.15)


def test_main_directions_of_many_features_tell_cells_as_all_features_do(monkeypatch):
    """Two groups are in two directions of eight features; read out of these, cells are filled as well."""
    full, gaps = made()
    lost = gaps.isna()
    errors = {}
    for most in (8, 2):
        monkeypatch.setattr("nongauss.harmonium.imputation.MOST_DIRECTIONS", most)
        model = Harmonium(8, max_epochs=60, random_state=0).fit(gaps)
        out = model.impute(gaps)
        assert model.machine_.params.n_components == 8
        numbers = [(out[name] - full[name])[lost[name]].abs().mean() for name in ("size", "many", "also")]
        errors[most] = np.array([*numbers, (out["kind"] != full["kind"])[lost["kind"]].mean()])
    assert (errors[2] < 1.15 * errors[8] + 0.02).all()


def test_rows_without_any_cell_are_filled_alike():
    """The law of a row is not a matter of chance: of two modes a median was in either."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal(60)
    X = np.column_stack([z, 2.0 * z, rng.poisson(np.exp(z))]) + 0.3 * rng.standard_normal((60, 3))
    X[::6] = np.nan
    filled = Harmonium(random_state=0).fit(X).impute(X)[::6]
    assert (np.ptp(filled, axis=0) < 0.3 * np.nanstd(X, axis=0)).all()


@pytest.mark.filterwarnings("ignore:X has columns that are ignored", "ignore:Gaps stay")
@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:No feature is in use")
def test_a_row_of_which_nothing_is_told_is_left_as_it_is():
    row = np.array([[np.nan, 1.0]])
    assert_array_equal(Harmonium(random_state=0).fit(row).impute(row), row)


def test_a_new_label_is_told_once():
    table = pd.DataFrame({"a": np.arange(40.0), "label": ["x", "y"] * 20})
    model = Harmonium(2, max_epochs=2, random_state=0).fit(table)
    with pytest.warns(match="did not occur") as said:
        model.impute(pd.DataFrame({"a": [np.nan], "label": ["new"]}))
    assert len(said) == 1
