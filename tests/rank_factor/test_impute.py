"""Missing cells of a made Gaussian copula, whose conditional laws are known; columns of every kind."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal

import nongauss
from nongauss import RankFactorAnalysis
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.predictive.cells import LabelDistribution
from nongauss.rank_factor.score_predict import label_probabilities

QUICK = {"n_factors": 2, "max_iter": 2, "tol": 1e9, "random_state": 0}
WAYS = ((np.exp, np.log), (lambda w: w**3, np.cbrt), (ndtr, ndtri), (lambda w: 5 * w, lambda x: x / 5))
LOADINGS = np.array([[1.2, 0.0], [1.0, 0.8], [-0.9, 0.9], [0.2, -1.4]])


def correlations():
    C = LOADINGS @ LOADINGS.T + np.eye(4)
    return C / np.sqrt(np.outer(np.diag(C), np.diag(C)))


def made(n_rows, seed, share=0.25):
    """Scores, the table that they show through increasing maps, and the table with gaps."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n_rows, 4)) @ np.linalg.cholesky(correlations()).T
    X = np.stack([WAYS[j][0](W[:, j]) for j in range(4)], axis=1)
    return W, X, np.where(rng.random(X.shape) < share, np.nan, X)


def conditional(W, gaps, i, targets):
    """Mean and covariance of scores of row i given those that are there."""
    C, known = correlations(), ~gaps[i]
    B = np.linalg.solve(C[np.ix_(known, known)], C[np.ix_(known, targets)])
    return B.T @ W[i, known], C[np.ix_(targets, targets)] - C[np.ix_(targets, known)] @ B


@pytest.fixture(scope="module")
def model():
    return RankFactorAnalysis(**QUICK).fit(made(700, 1)[2])


def test_medians_and_spreads_are_those_of_the_copula(model):
    W, _, Y = made(200, 2)
    gaps, laws = np.isnan(Y), model.impute_distribution(Y)
    for j in range(4):
        back = WAYS[j][1]
        true = [conditional(W, gaps, i, [j]) for i in laws.rows(j)]
        middle, low, high = (back(laws[j].quantile(q)) for q in (0.5, ndtr(-1.0), ndtr(1.0)))
        assert np.abs(middle - [m[0] for m, _ in true]).mean() < 0.12
        assert np.mean(0.5 * (high - low)) == pytest.approx(
            np.mean([v[0, 0] ** 0.5 for _, v in true]), rel=0.08
        )


def test_intervals_hold_what_they_say(model):
    _, X, Y = made(1000, 3)
    laws = model.impute_distribution(Y)
    held = []
    for j in range(4):
        low, high = laws[j].interval(0.9).T
        held.append((low <= X[laws.rows(j), j]) & (X[laws.rows(j), j] <= high))
    assert 0.88 <= np.concatenate(held).mean() <= 0.92


def test_cells_of_a_row_are_drawn_together(model):
    """Of rows that lack two cells, the draws' covariance given the others is that of the copula.

    Some 400 pairs of cells were learned from, so that it is known within .05.
    """
    W, _, Y = made(300, 4)
    Y[:, :2] = np.nan
    Y[:, 2:] = np.stack([WAYS[j][0](W[:, j]) for j in (2, 3)], axis=1)
    gaps = np.isnan(Y)
    tables = model.sample_missing(Y, 40)
    drawn = np.array([[WAYS[j][1](table[:, j]) for j in (0, 1)] for table in tables])
    left = drawn - np.array([conditional(W, gaps, i, [0, 1])[0] for i in range(len(Y))]).T
    found = np.cov(left.transpose(1, 0, 2).reshape(2, -1))
    assert np.allclose(found, conditional(W, gaps, 0, [0, 1])[1], atol=0.1)


def test_densities_of_rows_with_gaps_are_those_of_the_copula(model):
    W, _, Y = made(60, 5)
    C = correlations()
    slope = [-W[:, 0], -np.log(3 * W[:, 1] ** 2), 0.5 * W[:, 2] ** 2 + 0.5 * np.log(2 * np.pi), -np.log(5)]
    true = np.zeros(60)
    for i in range(60):
        known = np.flatnonzero(~np.isnan(Y[i]))
        if len(known):
            true[i] = multivariate_normal(np.zeros(len(known)), C[np.ix_(known, known)]).logpdf(W[i, known])
            true[i] += sum(np.broadcast_to(slope[j], 60)[i] for j in known)
    found = model.score_samples(Y)
    assert np.isfinite(found).all()
    assert abs(np.median(found - true)) < 0.15


def test_gaps_that_hang_on_another_column_do_not_shift_what_is_said():
    rng = np.random.default_rng(6)
    W, X, _ = made(700, 6)
    Y = X.copy()
    Y[(W[:, 0] > 0) & (rng.random(700) < 0.8), 1] = np.nan
    filled = RankFactorAnalysis(**QUICK).fit(Y).impute(Y)
    lost = np.isnan(Y[:, 1])
    bias = np.cbrt(filled[lost, 1]).mean() - np.cbrt(X[lost, 1]).mean()
    assert abs(bias) < 0.5 * abs(np.cbrt(X[lost, 1]).mean() - np.cbrt(X[~lost, 1]).mean())


def mixed(n_rows=120, seed=0):
    """A frame with a column of every kind, and the frame with gaps."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(n_rows)

    def near():
        return z + 0.4 * rng.standard_normal(n_rows)

    grades = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    full = pd.DataFrame(
        {
            "number": near(),
            "positive": np.exp(near()),
            "count": pd.array(rng.poisson(np.exp(0.5 * z + 1)), dtype="Int64"),
            "share": ndtr(near()),
            "label": np.array(["red", "green", "blue"], object)[np.digitize(near(), [-0.5, 0.5])],
            "two": np.where(near() > 0, "yes", "no").astype(object),
            "grade": pd.Series(np.array(["low", "mid", "high"])[np.digitize(near(), [-0.5, 0.5])]).astype(
                grades
            ),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.round(100 * near() + 400), unit="D"),
            "flag": np.array(near() > 0, dtype=object),
            "price": [f"${x:.2f}" for x in np.exp(near()) * 100],
        }
    )
    gaps = full.copy()
    for j, name in enumerate(gaps):
        gaps.loc[np.random.default_rng(j).random(n_rows) < 0.2, name] = None
    return full, gaps


@pytest.fixture(scope="module")
def filled():
    full, gaps = mixed()
    model = RankFactorAnalysis(**QUICK).fit(gaps)
    return model, full, gaps, model.impute(gaps)


def test_a_filled_table_has_the_types_and_the_known_cells_of_the_table(filled):
    _, _, gaps, out = filled
    assert (out.dtypes == gaps.dtypes).all()
    assert not out.isna().any().any()
    for name in gaps:
        known = gaps[name].notna()
        assert (out.loc[known, name] == gaps.loc[known, name]).all()
    assert out["price"].str.fullmatch(r"\$[0-9.]+").all()
    assert (out["day"] == out["day"].dt.normalize()).all()


def test_cells_are_told_by_the_others(filled):
    _, full, gaps, out = filled
    for name, least in (("label", 0.55), ("two", 0.7), ("grade", 0.55), ("flag", 0.7)):
        lost = gaps[name].isna()
        assert (out.loc[lost, name] == full.loc[lost, name]).mean() >= least
    for name in ("number", "positive", "share"):
        lost = gaps[name].isna()
        median = gaps[name].median()
        assert (out[name] - full[name])[lost].abs().mean() < 0.8 * (median - full[name])[lost].abs().mean()


def test_laws_are_in_the_units_of_their_columns(filled):
    model, _, gaps, _ = filled
    laws = model.impute_distribution(gaps)
    assert len(laws) == gaps.isna().sum().sum() == len(laws.to_frame()) == len(list(laws))
    assert laws["label"].labels == ("blue", "green", "red")
    assert np.allclose(laws["label"].probabilities().sum(axis=1), 1.0)
    assert np.allclose(laws["grade"].probabilities().sum(axis=1), 1.0)
    row = int(laws.rows("count")[0])
    one = laws[row, "count"]
    assert one.is_discrete
    assert len(one) == 1
    assert one.quantile(1.0)[0] <= gaps["count"].max()
    with pytest.raises(InputError, match="has a value"):
        laws[int(np.flatnonzero(gaps["count"].notna())[0]), "count"]


def test_the_frame_of_missing_cells_is_in_the_terms_of_the_table(filled):
    model, _, gaps, out = filled
    laws = model.impute_distribution(gaps)
    cells = laws.to_frame(0.8).set_index(["column", "row"])
    for name in gaps:
        own = cells.loc[name]
        if name != "price":  # which is filled in as text, and told as a number
            assert own["value"].tolist() == out[name].iloc[own.index].tolist()
    days, epoch = laws["day"].interval(0.8), pd.Timestamp("1970-01-01")
    for end, number in (("lower", 0), ("upper", 1)):
        told = (pd.to_datetime(cells.loc["day", end]) - epoch) / pd.Timedelta(days=1)
        assert told.tolist() == days[:, number].tolist()
        grades = cells.loc["grade", end].map(list(laws["grade"].margin.labels).index)
        assert grades.tolist() == laws["grade"].interval(0.8)[:, number].tolist()
    assert (cells.loc["number", "lower"] < cells.loc["number", "value"]).all()


def test_quantiles_of_cells_are_in_the_terms_of_the_table(filled):
    model, _, gaps, _ = filled
    laws = model.impute_distribution(gaps)
    days = laws.quantiles("day", (0.1, 0.9))
    assert days.index.tolist() == np.flatnonzero(gaps["day"].isna()).tolist()
    numbers = (pd.to_datetime(days[0.9]) - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    assert numbers.tolist() == laws["day"].quantile(0.9).tolist()
    assert set(laws.quantiles("grade")[0.5]) <= set(laws["grade"].margin.labels)
    assert laws.quantiles("number", [0.5])[0.5].tolist() == laws["number"].quantile(0.5).tolist()
    label = next(name for name in laws.columns if isinstance(laws[name], LabelDistribution))
    with pytest.raises(InputError, match="labels, which have no quantiles"):
        laws.quantiles(label)


def test_a_row_is_filled_alike_alone_and_after_saving(filled, tmp_path):
    model, _, gaps, out = filled
    pd.testing.assert_frame_equal(model.impute(gaps.iloc[[7, 3]]), out.iloc[[7, 3]])
    nongauss.save(model, tmp_path / "m.nongauss")
    pd.testing.assert_frame_equal(nongauss.load(tmp_path / "m.nongauss").impute(gaps.iloc[:9]), out.iloc[:9])


def test_rows_without_any_cell_get_the_middle_of_each_column(filled):
    model, _, gaps, _ = filled
    empty = gaps.iloc[:1].copy()
    for name in empty:
        empty[name] = pd.Series([None], dtype=gaps[name].dtype, index=empty.index)
    out = model.impute(empty)
    assert not out.isna().any().any()
    assert gaps["positive"].quantile(0.3) < out["positive"].iloc[0] < gaps["positive"].quantile(0.7)


def test_frames_of_polars_and_lists_come_back_as_what_they_were():
    _, gaps = mixed()
    frame = pl.from_pandas(gaps.drop(columns=["grade", "flag"]))
    out = RankFactorAnalysis(**QUICK).fit(frame).impute(frame)
    assert isinstance(out, pl.DataFrame)
    assert out.schema == frame.schema
    assert out.null_count().sum_horizontal().item() == 0


def test_an_empty_column_of_a_new_table_keeps_its_type(filled):
    model, _, gaps, _ = filled
    new = gaps.head(3).copy()
    new["label"], new["price"] = pd.Series([None] * 3, dtype=object), pd.Series([None] * 3, dtype=object)
    out = model.impute(new)
    assert (out.dtypes == new.dtypes).all()
    assert out["price"].str.startswith("$").all()


def test_numbers_of_any_size_and_one_value_are_told():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) @ np.array([[1.0, 1.0], [0.0, 0.1]]) * 1e300
    X[::7, 1] = np.nan
    law = RankFactorAnalysis(**QUICK).fit(X).impute_distribution(X)[1]
    assert (law.std < 1e300).all()
    assert np.isfinite(law.crps(np.zeros(len(law)))).all()
    one = np.array([[2.0], [np.nan]] * 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RankFactorAnalysis(**QUICK).fit(one)
    assert (model.impute(one) == 2.0).all()
    assert (model.score_samples(one) == 0.0).all()


def test_a_number_beyond_all_that_were_seen_is_taken_for_the_largest():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(150)
    X = np.stack([z + 0.5 * rng.standard_normal(150), z + 0.5 * rng.standard_normal(150)], axis=1)
    model = RankFactorAnalysis(**QUICK).fit(X)
    near, far = model.impute(np.array([[X[:, 0].max(), np.nan], [1e6, np.nan]]))[:, 1]
    assert near <= far < near + 0.5
    assert far < X[:, 1].max()


def test_labels_that_follow_from_a_number_are_told_and_tell_it():
    """Scores of labels have no scale; held at one where noise is 1, they move too slowly to follow."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal(300)
    full = pd.DataFrame({"size": z + 0.02 * rng.standard_normal(300), "kind": np.digitize(z, [-0.5, 0.5])})
    full["kind"] = np.array(["low", "mid", "top"], object)[full["kind"]]
    full["same"] = full["kind"].map({"low": "L", "mid": "M", "top": "T"}).astype(object)
    gaps = full.mask(rng.random(full.shape) < 0.2)
    model = RankFactorAnalysis(**QUICK).fit(gaps)
    lost = gaps["kind"].isna() & gaps["size"].notna()
    assert (model.impute(gaps)["kind"] == full["kind"])[lost].mean() > 0.85


def test_factors_come_as_a_frame_where_one_is_asked_for():
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 3)), index=range(50, 80))
    X.columns = list("abc")
    model = RankFactorAnalysis(**QUICK).set_output(transform="pandas").fit(X)
    assert list(model.transform(X).columns) == ["factor0", "factor1"]
    assert list(model.transform(X).index) == list(X.index)


def test_what_cannot_be_filled_is_said():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"a": rng.standard_normal(60), "name": [f"r{i}" for i in range(60)], "b": rng.standard_normal(60)}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RankFactorAnalysis(**QUICK).fit(X)
    X.loc[3, ["a", "name"]] = [np.nan, None]
    with pytest.warns(NongaussWarning, match="Gaps stay in column 'name'"):
        out = model.impute(X)
    assert out["a"].notna().all()
    assert out["name"].isna().sum() == 1


def test_probabilities_of_labels_are_those_of_the_largest_score():
    rng = np.random.default_rng(0)
    scores = np.array([[0.5, -0.3, 0.1], [2.0, 0.0, -1.0]])
    drawn = (scores[:, None] + rng.standard_normal((2, 200_000, 3))).argmax(axis=2)
    share = np.stack([(drawn == level).mean(axis=1) for level in range(3)], axis=1)
    assert np.allclose(label_probabilities(scores), share, atol=0.005)


@pytest.mark.parametrize("kind", ["a lone one", "three of them"])
@pytest.mark.filterwarnings("ignore:.*so far from all other values")
def test_values_before_far_cells_are_not_spread_over_the_gap(kind):
    rng = np.random.default_rng(0)
    z = rng.standard_normal(200)
    X = np.column_stack([10.0 + 3.0 * z, z + 0.1 * rng.standard_normal(200), z])
    gaps = X.copy()
    gaps[:40, 0] = np.nan
    far = [50] if kind == "a lone one" else [50, 60, 70]
    gaps[far, 0] = [1e9, -1e7, 1e12][: len(far)]
    law = RankFactorAnalysis(random_state=0).fit(gaps).impute_distribution(gaps)[0]
    low, high = law.interval(0.9).T
    true = X[:40, 0]
    assert np.mean((low > true.min() - 3.0) & (high < true.max() + 3.0)) > 0.95
    assert np.mean((low <= true) & (true <= high)) > 0.8


def test_times_that_are_filled_are_as_exact_as_those_that_were_there():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(60)
    start = pd.Timestamp("2020-01-01")
    table = pd.DataFrame(
        {
            "minutes": start + pd.to_timedelta(np.round(1e5 * z), unit="min"),
            "hours": start + pd.to_timedelta(6 * np.round(40 * z), unit="h"),
            "spans": pd.to_timedelta(np.round(np.exp(3 + z)), unit="min"),
            "z": z,
        }
    )
    table.iloc[::4, :3] = pd.NaT
    filled = RankFactorAnalysis(random_state=0).fit(table).impute(table)
    assert (filled["minutes"] == filled["minutes"].dt.floor("min")).all()
    assert (filled["hours"] == filled["hours"].dt.floor("h")).all()
    assert (filled["spans"] == filled["spans"].dt.floor("min")).all()


def test_categories_of_polars_and_pyarrow_take_labels_that_these_rows_lack():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(80)
    levels = ["lo", "mid", "hi"]
    grade = pd.Categorical(np.array(levels)[np.digitize(z, [-0.5, 0.5])], levels, ordered=True)
    table = pd.DataFrame({"z": z + 0.1 * rng.standard_normal(80), "grade": grade})
    model = RankFactorAnalysis(random_state=0).fit(table)
    new = pd.DataFrame({"z": [2.0, -2.0, 0.0], "grade": pd.Categorical([None, None, "mid"], levels)})
    right = ["hi", "lo", "mid"]
    assert model.impute(pl.from_pandas(new))["grade"].to_list() == right
    arrow = pa.Table.from_pandas(new.assign(grade=new["grade"].cat.remove_unused_categories()))
    filled = model.impute(arrow)
    assert filled.schema.types == arrow.schema.types
    assert filled["grade"].to_pylist() == right
    with pytest.raises(InputError, match="not a category"):  # pandas fixes them
        model.impute(arrow.to_pandas())
