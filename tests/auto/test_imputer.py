"""`AutoImputer`: which model it takes, what it says of the others, that it stands in a pipeline."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import nongauss
from nongauss import AutoImputer
from nongauss.auto.imputer import ALONE, ColumnsAlone
from nongauss.core.errors import InputError


def made(n_rows=150, tie=1.0, seed=0):
    """Three columns and labels that hang together as far as `tie` says, and the frame with gaps."""
    rng = np.random.default_rng(seed)
    z = tie * rng.standard_normal(n_rows)
    full = pd.DataFrame({name: z + 0.5 * rng.standard_normal(n_rows) for name in "abc"})
    full["kind"] = np.where(z + 0.3 * rng.standard_normal(n_rows) > 0, "up", "down").astype(object)
    return full, full.mask(rng.random(full.shape) < 0.15)


@pytest.fixture(scope="module")
def fitted():
    full, gaps = made()
    return AutoImputer(["rank_factor", ALONE], random_state=0).fit(gaps), full, gaps


def test_the_model_that_tells_hidden_cells_is_taken_and_said(fitted):
    model, full, gaps = fitted
    assert model.chosen_ == "rank_factor"
    assert list(model.leaderboard_["candidate"]) == ["rank_factor", ALONE]
    assert model.leaderboard_["score"].iloc[1] == pytest.approx(1.0)
    assert "rank_factor told hidden cells best" in model.why_
    names, out = list("abc"), model.impute(gaps)
    lost = gaps[names].isna().to_numpy()
    error = np.abs(out[names] - full[names]).to_numpy()[lost]
    usual = np.abs(gaps[names].median() - full[names]).to_numpy()[lost]
    assert error.mean() < 0.7 * usual.mean()
    assert not out.isna().any().any()


def test_columns_that_do_not_hang_together_are_told_alone_or_as_well():
    _, gaps = made(tie=0.0, seed=1)
    model = AutoImputer(["rank_factor", ALONE], random_state=0).fit(gaps)
    assert model.leaderboard_["score"].iloc[0] > 0.95


def test_alone_a_column_is_drawn_from_what_it_holds():
    gaps = made(400)[1]
    model = ColumnsAlone(random_state=0).fit(gaps)
    drawn = pd.concat([table[gaps["a"].isna()] for table in model.sample_missing(gaps, 30)])["a"]
    ends = [0.1, 0.9]
    assert drawn.quantile(ends).to_numpy() == pytest.approx(gaps["a"].quantile(ends).to_numpy(), abs=0.15)
    laws = model.impute_distribution(gaps)
    share = gaps["kind"].value_counts(normalize=True)
    assert laws["kind"].probabilities()[0] == pytest.approx([share["down"], share["up"]])
    labels = pd.concat([table["kind"][gaps["kind"].isna()] for table in model.sample_missing(gaps, 30)])
    assert (labels == "up").mean() == pytest.approx(share["up"], abs=0.05)


def test_it_stands_in_a_pipeline_and_in_a_file(fitted, tmp_path):
    model, full, gaps = fitted
    X, y = gaps[["a", "b"]], full["c"]
    pipeline = make_pipeline(AutoImputer(["rank_factor"], random_state=0), LinearRegression()).fit(X, y)
    assert pipeline.score(X, y) > 0.5
    nongauss.save(model, tmp_path / "m.nongauss")
    pd.testing.assert_frame_equal(nongauss.load(tmp_path / "m.nongauss").impute(gaps), model.impute(gaps))


def test_a_candidate_that_is_not_known_is_refused():
    with pytest.raises(InputError, match="candidates must be 'auto' or some of"):
        AutoImputer(["forest"]).fit(made()[1])
