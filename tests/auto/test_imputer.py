"""`AutoImputer`: which model it takes, what it says of the others, that it stands in a pipeline."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nongauss
from nongauss import AutoImputer
from nongauss.auto.imputer import ALONE, ColumnsAlone, _why
from nongauss.auto.normal_scores import NormalScores
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables.kinds import decode


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
    assert (model.weights_["rank_factor"] > 0.7).all()
    assert model.weights_.sum(axis=1).to_numpy() == pytest.approx(np.ones(2))
    score = model.leaderboard_.set_index("candidate")["score"]
    assert score["mixture"] - 0.002 < score["rank_factor"] < score[ALONE]  # a tenth of a cell for the prior
    assert score[ALONE] == pytest.approx(1.0)
    assert "fills the missing cells: on hidden cells its score is" in model.why_
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


def test_texts_that_name_rows_stay_open_and_those_of_groups_do_not():
    frame = pd.DataFrame({"x": np.arange(60.0), "who": [f"p{n * 2 // 3}" for n in range(60)]})
    frame["town"] = [f"t{n % 25}" for n in range(60)]
    frame = frame.mask(np.arange(60)[:, None] % 15 == [0, 1, 2])
    with pytest.warns(NongaussWarning, match="who"):
        out = AutoImputer([ALONE], random_state=0).fit(frame).impute(frame)
    assert out["who"].isna().sum() == 4
    assert not out[["x", "town"]].isna().any().any()


def test_candidates_share_one_reading_of_the_table(monkeypatch):
    _, gaps = made(60)
    gaps["who"] = [f"name {n}" for n in range(60)]
    gaps.loc[3, "who"] = None
    decoded = []

    def counted(name, raw):
        decoded.append(name)
        return decode(name, raw)

    monkeypatch.setattr("nongauss.tables.frame.decode", counted)
    model = AutoImputer(["normal scores", ALONE], random_state=0).fit(gaps)
    assert len(decoded) == 5 * gaps.shape[1]  # the table, rows that judge, and these with cells hidden thrice
    assert [margin.name for margin in model._cell_margins] == [*"abc", "kind"]
    with pytest.warns(NongaussWarning, match="Gaps stay in column 'who'"):
        assert model.impute(gaps)["who"].isna().sum() == 1


@pytest.mark.parametrize("seed", [0, 3, 6])
def test_few_rows_of_noise_are_told_by_columns_alone(seed):
    """No seed's table has more than 10 hidden cells at once, of which some favour a model by luck."""
    rng = np.random.default_rng(seed)
    full = rng.standard_normal((30, 3))
    gaps = np.where(rng.random(full.shape) < 0.1, np.nan, full)
    model = AutoImputer(["normal scores", ALONE], random_state=seed).fit(gaps)
    usual = ColumnsAlone(random_state=seed).fit(gaps)

    def score(which):
        laws = which.impute_distribution(gaps)
        return np.mean(
            [laws[j].crps(full[laws.rows(j), j]).mean() for j in range(3) if np.isnan(gaps[:, j]).any()]
        )

    assert score(model) <= 1.01 * score(usual)
    assert list(model.models_) == [ALONE]
    assert "no mixture of models was better by a standard error" in model.why_


def test_rows_of_weight_zero_are_as_gone():
    """The rows of no weight have other ties, and letters in a column of numbers."""
    _, gaps = made(60)
    other = made(60, tie=0.0, seed=5)[0].astype(object)
    other["a"] = "none"
    both = pd.concat([gaps.astype(object), other], ignore_index=True).sample(frac=1.0, random_state=0)
    weight = np.where(both.index < 60, 1.0 + both.index % 3, 0.0)
    kept = both[weight > 0]
    names = ["normal scores", ALONE]
    one = AutoImputer(names, random_state=0).fit(both, sample_weight=weight)
    two = AutoImputer(names, random_state=0).fit(kept, sample_weight=weight[weight > 0])
    pd.testing.assert_frame_equal(
        one.leaderboard_.drop(columns="seconds"), two.leaderboard_.drop(columns="seconds")
    )
    pd.testing.assert_frame_equal(one.weights_, two.weights_)
    pd.testing.assert_frame_equal(one.impute(kept), two.impute(kept))
    plain = AutoImputer(names, random_state=0).fit(kept)
    assert not np.allclose(plain.leaderboard_["score"], two.leaderboard_["score"])


@pytest.mark.parametrize("unit", [1e-15, 1e15])
def test_the_choice_does_not_hang_on_units(unit):
    gaps = made(80)[1][[*"abc"]]
    names = ["normal scores", ALONE]
    usual = AutoImputer(names, random_state=0).fit(gaps)
    other = AutoImputer(names, random_state=0).fit(gaps.assign(a=gaps["a"] * unit))
    columns = ["score", "crps", "coverage"]
    np.testing.assert_allclose(other.leaderboard_[columns], usual.leaderboard_[columns], rtol=1e-6)
    np.testing.assert_allclose(other.weights_, usual.weights_, rtol=1e-3)


@pytest.mark.parametrize("name", ["harmonium", "normal scores", "rank_factor", ALONE])
def test_more_draws_begin_as_fewer_do(name):
    gaps = made(40)[1]
    model = AutoImputer([name], random_state=0).fit(gaps)
    few, many = (model.sample_missing(gaps, n, random_state=5) for n in (3, 7))
    for one, other in zip(few, many, strict=False):
        pd.testing.assert_frame_equal(one, other)


def test_without_hidden_cells_and_of_one_column_columns_alone_are_taken():
    few = np.array([[1.0, 2.0], [np.nan, 1.0], [0.5, 3.0]])
    one = np.random.default_rng(0).standard_normal((60, 1))
    one[::7] = np.nan
    for gaps in (few, one):
        model = AutoImputer(
            ["normal scores", "rank_factor", ALONE], share=0.01 if gaps is few else 0.1, random_state=0
        )
        assert list(model.fit(gaps).models_) == [ALONE]
        assert not np.isnan(model.impute(gaps)).any()


@pytest.mark.parametrize("names", ["auto", [ALONE]])
def test_a_sparse_table_is_refused_with_a_remedy(names):
    with pytest.raises(InputError, match="toarray"):
        AutoImputer(names).fit(csr_matrix(np.eye(5)))


def test_of_a_table_that_tells_candidates_nothing_apart_none_is_called_the_best():
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": [2.0, 2.0]})
    model = AutoImputer(["normal scores", ALONE], random_state=0).fit(frame)
    assert model.why_.endswith("no hidden cell told the candidates apart.")
    assert model.impute(frame)["a"].tolist() == [1.0, 1.0]


def test_alone_a_column_is_drawn_from_what_it_holds(tmp_path):
    gaps = made(400)[1]
    model = ColumnsAlone(random_state=0).fit(gaps)
    drawn = pd.concat([table[gaps["a"].isna()] for table in model.sample_missing(gaps, 30)])["a"]
    ends = [0.1, 0.9]
    assert drawn.quantile(ends).to_numpy() == pytest.approx(gaps["a"].quantile(ends).to_numpy(), abs=0.15)
    laws = model.impute_distribution(gaps)
    share = gaps["kind"].value_counts(normalize=True)
    assert laws["kind"].probabilities()[0] == pytest.approx([share["down"], share["up"]])
    nongauss.save(model, tmp_path / "m.nongauss")
    pd.testing.assert_frame_equal(nongauss.load(tmp_path / "m.nongauss").impute(gaps), model.impute(gaps))
    labels = pd.concat([table["kind"][gaps["kind"].isna()] for table in model.sample_missing(gaps, 30)])
    assert (labels == "up").mean() == pytest.approx(share["up"], abs=0.05)


def test_normal_scores_have_the_conditional_laws_of_a_normal_table(tmp_path):
    """Two cells of a row are drawn with the covariance that the others leave them."""
    rng = np.random.default_rng(0)
    C = np.array([[1.0, 0.8, 0.5], [0.8, 1.0, 0.6], [0.5, 0.6, 1.0]])
    X = rng.standard_normal((1500, 3)) @ np.linalg.cholesky(C).T
    fitted = NormalScores(random_state=0).fit(np.where(rng.random(X.shape) < 0.2, np.nan, X))
    new = np.tile([np.nan, np.nan, 1.0], (400, 1))
    drawn = np.concatenate(fitted.sample_missing(new, 10))[:, :2]
    B = C[:2, 2:]
    assert drawn.mean(axis=0) == pytest.approx(B[:, 0], abs=0.08)
    assert np.cov(drawn.T) == pytest.approx(C[:2, :2] - B @ B.T, abs=0.08)
    law = fitted.impute_distribution(new[:1])[0]
    assert law.std[0] == pytest.approx(0.75**0.5, abs=0.05)
    nongauss.save(fitted, tmp_path / "m.nongauss")
    assert np.array_equal(nongauss.load(tmp_path / "m.nongauss").impute(new), fitted.impute(new))


def test_labels_and_grades_are_told_by_normal_scores():
    full, gaps = made(400)
    full["grade"] = pd.Categorical.from_codes(
        np.digitize(full["c"], [-0.7, 0.7]), ["low", "mid", "high"], ordered=True
    )
    gaps["grade"] = full["grade"].mask(np.random.default_rng(1).random(400) < 0.15)
    fitted = NormalScores(random_state=0).fit(gaps)
    out = fitted.impute(gaps)
    for name, least in (("kind", 0.8), ("grade", 0.55)):
        lost = gaps[name].isna()
        assert (out[name] == full[name])[lost].mean() > least
        tables = fitted.sample_missing(gaps, 30)
        share = np.mean([(table.loc[lost, name] == full.loc[lost, name]).mean() for table in tables])
        assert 0.4 < share <= (out[name] == full[name])[lost].mean() + 0.05


def test_it_stands_in_a_pipeline_and_in_a_file(fitted, tmp_path):
    model, full, gaps = fitted
    X, y = gaps[["a", "b"]], full["c"]
    pipeline = make_pipeline(AutoImputer(["rank_factor"], random_state=0), LinearRegression()).fit(X, y)
    assert pipeline.score(X, y) > 0.5
    nongauss.save(model, tmp_path / "m.nongauss")
    pd.testing.assert_frame_equal(nongauss.load(tmp_path / "m.nongauss").impute(gaps), model.impute(gaps))


@pytest.mark.filterwarnings("ignore:Columns that did not exist")
@pytest.mark.parametrize("form", ["default", "pandas", "polars"])
def test_a_transformed_table_has_the_columns_of_the_fit(form):
    full, gaps = made(40)
    model = AutoImputer([ALONE], random_state=0).set_output(transform=form).fit(gaps)
    expected = (
        pd.DataFrame(model.transform(gaps), columns=list(gaps)) if form == "polars" else model.transform(gaps)
    )
    other = gaps[["kind", "c", "b", "a"]].assign(more=1.0)
    found = model.transform(other)
    if form == "polars":
        found = pd.DataFrame(found, columns=list(found.columns))
    assert list(model.get_feature_names_out()) == list(found) == list(gaps)
    pd.testing.assert_frame_equal(found, expected)
    known = gaps["a"].notna()
    assert (found["a"] == full["a"])[known].all()


def test_names_of_columns_come_from_the_step_before():
    pipeline = make_pipeline(StandardScaler(), AutoImputer([ALONE], random_state=0))
    pipeline.fit(made(40)[1][["a", "b"]])
    assert list(pipeline.get_feature_names_out()) == ["a", "b"]


def test_a_candidate_that_is_not_known_is_refused():
    with pytest.raises(InputError, match="candidates must be 'auto' or some of"):
        AutoImputer(["forest"]).fit(made()[1])


def test_a_candidate_that_failed_is_named_where_one_is_left():
    board = pd.DataFrame({"candidate": ["one", "other"], "score": [0.6, np.nan], "failed": ["", "no memory"]})
    said = _why(board, pd.DataFrame({"one": [1.0, 1.0]}))
    assert said == "one fills the missing cells: no other candidate could; 'other' failed."


@pytest.mark.filterwarnings("ignore:.*so far from all other values")
def test_far_cells_do_not_choose_what_imputes():
    """The score of a column with a cell of a billion tells of nothing but that cell."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1)) + 0.4 * rng.standard_normal((200, 4))
    X[[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 0, 1]] = [1e9, -1e9, 1e6, 1e12, 1e10, 1e7]
    X[rng.random(X.shape) < 0.1] = np.nan
    model = AutoImputer(["normal scores", "columns alone"], random_state=0).fit(X)
    assert model.weights_.loc["numbers and grades", "normal scores"] > 0.8
    assert model.leaderboard_.set_index("candidate").loc["normal scores", "crps"] < 0.7
