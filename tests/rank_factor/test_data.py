import numpy as np
import pandas as pd
import polars
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine

from nongauss import RankFactorClassifier
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.rank_factor import reading
from nongauss.rank_factor.data import (
    NONE,
    CellCoding,
    code_values,
    find_levels,
    has_lone_row,
    neighbours_of,
    repeated,
    scale_of,
)
from nongauss.tables.learn import as_source
from nongauss.tables.rows import canonical_rows
from rank_factor.small import table


def test_levels_are_of_about_equal_weight_and_a_frequent_value_is_one_of_its_own():
    x = np.concatenate([np.zeros(60), np.arange(1, 41)])[:, None]
    levels = find_levels(x, np.ones(100), 5)
    assert_array_equal(levels.low[0], [0, 1, 11, 21, 31])
    assert_array_equal(levels.high[0], [0, 10, 20, 30, 40])
    late = find_levels(-x, np.ones(100), 5)
    assert late.low[0, -1] == 0
    assert late.high[0, -2] < 0


def test_weights_count_like_repeated_rows():
    rng = np.random.default_rng(0)
    x, weight = rng.integers(0, 30, (50, 1)).astype(float), rng.integers(1, 4, 50)
    weighted = find_levels(x, weight.astype(float), 6)
    repeated = find_levels(np.repeat(x, weight, axis=0), np.ones(weight.sum()), 6)
    assert_array_equal(weighted.low, repeated.low)


@pytest.mark.parametrize("distort", [np.exp, np.cbrt, lambda x: np.arctan(5 * x)])
def test_an_increasing_transform_changes_no_level(distort):
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((80, 3)), rng.standard_normal((20, 3))
    plain, other = (find_levels(g(X), np.ones(80), 8) for g in (lambda x: x, distort))
    assert_array_equal(plain.codes(X), other.codes(distort(X)))
    for a, b in zip(plain.place(new), other.place(distort(new)), strict=True):
        assert_array_equal(a, b)


def test_new_values_lie_in_a_level_between_two_or_beyond():
    levels = find_levels(np.array([[1.0], [2.0], [5.0], [6.0], [9.0]]), np.ones(5), 3)
    assert_array_equal(levels.high[0], [2, 6, 9])
    lower, upper = levels.place(np.array([[0.0], [1.5], [3.0], [6.0], [99.0], [np.nan]]))
    assert_array_equal(lower[:, 0], [NONE, NONE, 0, 0, 2, NONE])
    assert_array_equal(upper[:, 0], [0, 1, 1, 2, NONE, NONE])


def test_training_cells_have_the_neighbours_of_new_ones():
    X = np.random.default_rng(0).integers(0, 9, (40, 4)).astype(float)
    X[3, 2] = np.nan
    levels = find_levels(X, np.ones(40), 4)
    for a, b in zip(neighbours_of(levels.codes(X), levels.counts), levels.place(X), strict=True):
        assert_array_equal(a, b)


def test_values_are_standardised_without_a_mirror_and_come_back():
    x = -np.random.default_rng(0).gamma(0.5, 3.0, 500)
    scale, clips = scale_of(x, np.ones(500))
    assert not clips
    coding = CellCoding(None, ((scale.unit, scale.mean, scale.sd),))
    z = coding.standardised(x[:, None])
    assert np.corrcoef(z[:, 0], x)[0, 1] > 0.999
    assert_allclose(coding.typical(z, np.zeros((1, 0))), x[:, None])


def test_values_beside_a_far_one_keep_their_scale_and_it_is_clipped():
    x = np.random.default_rng(0).normal(3.0, 2.0, (200, 2))
    dirty = x.copy()
    dirty[0, 0] = 1e9
    clean, coded = (code_values(cells, np.zeros(200), np.ones(200), None).coding for cells in (x, dirty))
    assert (clean.clips, coded.clips) == ((), (True, False))
    z = coded.standardised(dirty)
    assert_allclose(z[0, 0], 5.0)
    assert_allclose(z[1:], clean.standardised(x)[1:], atol=0.1, rtol=0.1)
    assert_allclose(coded.standardised(np.array([[1e9, 1e9]]))[0, 0], 5.0)


def test_levels_come_back_as_their_middles():
    levels = find_levels(np.arange(12.0)[:, None], np.ones(12), 3)
    coding = CellCoding(levels, ())
    assert_allclose(
        coding.typical(np.array([[-1.0], [0.0], [1.0]]), np.array([[-1.0, 0.0, 1.0]]))[:, 0], [1.5, 5.5, 9.5]
    )


def test_equal_rows_are_held_apart_as_often_as_they_count():
    merged = canonical_rows(np.array([[1.0], [2.0], [1.0]]), np.zeros((3, 1)), np.array([1.0, 2.0, 1.0]))
    assert len(merged.X) == 2
    apart = repeated(merged, "this")
    assert_array_equal(np.sort(apart.X[:, 0]), [1, 1, 2, 2])
    assert_array_equal(apart.weight, np.ones(4))
    with pytest.raises(InputError, match="this repeats each row"):
        repeated(canonical_rows(np.ones((1, 1)), np.zeros((1, 1)), np.array([0.5])), "this")


def test_a_level_of_one_row_is_noticed():
    codes = np.array([[0, 0], [0, 1], [1, NONE], [1, 1], [1, 0]], np.uint8)
    assert not has_lone_row(codes)
    codes[0, 0] = 1
    assert has_lone_row(codes)


@pytest.mark.parametrize("names", [("low", "middle", "high", "top"), ("d", "b", "a", "c")], ids=str)
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_grades_count_by_their_order_whatever_their_names(kind, names):
    X, y = table(80)
    grade = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.25, 0.5, 0.75]))
    words = [None if i == 5 else names[g] for i, g in enumerate(grade)]
    if kind == "pandas":
        frame = pd.DataFrame({"grade": pd.Categorical(words, list(names), ordered=True), "size": X[:, 1]})
    else:
        frame = polars.DataFrame({"grade": polars.Series(words, dtype=polars.Enum(names)), "size": X[:, 1]})
    numbers = pd.DataFrame({"grade": np.where(np.arange(80) == 5, np.nan, grade), "size": X[:, 1]})
    settings = {"n_factors": 2, "tol": 1.0, "random_state": 0}
    by_name = RankFactorClassifier(**settings).fit(frame, y)
    by_number = RankFactorClassifier(**settings).fit(numbers, y)
    assert by_name.encoded_names_ == ("grade", "size")
    assert_array_equal(by_name.predict_proba(frame[:30]), by_number.predict_proba(numbers[:30]))


def test_a_table_is_read_once_in_the_view_that_the_model_takes():
    grade = pd.Categorical(["c", "a", "b", "c", "a", "b"], list("cab"), ordered=True)
    frame = pd.DataFrame({"grade": grade, "size": [1.5, np.nan, 3e9, 4.0, 2.0, 0.0]})
    source = as_source(frame, list("xyxyxz"), [1.0, 1.0, 1.0, 2.0, 1.0, 0.0])
    ranks = reading.read_table(source, "model", by_rank=True, labels=True)
    assert_array_equal(ranks.cells[:, 0], [0, 1, 2, 0, 1, 2])
    assert_array_equal(ranks.cells[:, 1], frame["size"])
    assert_array_equal(ranks.classes, ["x", "y"])
    assert_array_equal(ranks.numbers[:5], [0, 1, 0, 1, 0])
    assert_array_equal(ranks.weight, [1, 1, 1, 2, 1, 0])
    values = reading.read_table(source, "model", by_rank=False, labels=False)
    assert values.encoder.one_hot_names == ("grade=a", "grade=b", "grade=c", "size")
    assert_array_equal(values.cells[:, :3], np.eye(3)[[2, 0, 1, 2, 0, 1]])
    assert values.classes is None


def test_a_table_without_columns_gets_one():
    frame = pd.DataFrame({"same": [7.0, 7.0, 7.0]})
    with pytest.warns(NongaussWarning, match="only one value"):
        raw = reading.read_table(as_source(frame), "model", by_rank=True, labels=False)
    assert_array_equal(raw.cells, np.zeros((3, 1)))


@pytest.mark.filterwarnings("ignore:.*largest number of iterations")
def test_a_sample_of_the_rows_in_memory_or_of_parts(tmp_path):
    X, y = load_wine(return_X_y=True, as_frame=True)
    X.assign(kind=y).to_parquet(tmp_path / "wine.parquet", row_group_size=50)
    quick = {"n_factors": 2, "max_iter": 5, "random_state": 0}
    chosen = np.sort(np.random.default_rng(0).choice(len(X), 60, replace=False))
    sampled = RankFactorClassifier(max_rows=60, **quick).fit(X, y)
    alone = RankFactorClassifier(**quick).fit(X.iloc[chosen], y.iloc[chosen])
    assert_array_equal(sampled.predict_proba(X), alone.predict_proba(X))
    whole = RankFactorClassifier(**quick).fit(X, y)
    parts = RankFactorClassifier(max_rows=1000, **quick).fit(tmp_path, "kind")
    assert_allclose(parts.predict_proba(tmp_path), whole.predict_proba(X), rtol=1e-4, atol=1e-6)
    parts = RankFactorClassifier(**quick).fit(tmp_path, "kind")  # the sample is the table
    assert_allclose(parts.predict_proba(tmp_path), whole.predict_proba(X), rtol=1e-4, atol=1e-6)
