import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nongauss.core.errors import InputError
from nongauss.tables.parquet import parquet_parts, split_off
from nongauss.tables.rows import canonical_rows
from nongauss.tables.source import Encoded, Sample, first_rows

FRAME = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, 5.0], "b": list("xyxyx"), "w": [1, 1, 2, 0, 1]})


def test_row_groups_of_files_folders_and_patterns(tmp_path):
    FRAME.to_parquet(tmp_path / "1.parquet", row_group_size=2)
    FRAME.set_index("b").to_parquet(tmp_path / "2.parquet")
    for path in (tmp_path, f"{tmp_path}/*.parquet"):
        parts = parquet_parts(path)
        assert [part.n_rows for part in parts] == [2, 2, 1, 5]
    assert [part.n_rows for part in parquet_parts(tmp_path / "2.parquet")] == [5]
    loaded = parts[1].load()
    assert loaded.name == "1.parquet, row group 1"
    assert loaded.X["a"].tolist() == [3.0, 4.0]
    assert set(parts[3].load().X.columns) == {"a", "b", "w"}


def test_an_empty_row_group_is_left_out(tmp_path):
    FRAME.to_parquet(tmp_path / "1.parquet")
    FRAME[:0].to_parquet(tmp_path / "2.parquet")
    assert [part.n_rows for part in parquet_parts(tmp_path)] == [5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="a"), "2.parquet has no column 'a', which 1.parquet has"),
        (lambda frame: frame.assign(c=1), "1.parquet has no column 'c', which 2.parquet has"),
        (
            lambda frame: frame.assign(a=list("uvwxy")),
            "Column 'a' holds text in 2.parquet but numbers in 1.pa",
        ),
    ],
)
def test_a_part_unlike_the_first_is_named(tmp_path, change, message):
    FRAME.to_parquet(tmp_path / "1.parquet")
    change(FRAME).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(InputError, match=message):
        parquet_parts(tmp_path)


def test_unreadable_absent_and_empty_files(tmp_path):
    with pytest.raises(InputError, match="There is no Parquet file at"):
        parquet_parts(tmp_path)
    FRAME[:0].to_parquet(tmp_path / "1.parquet")
    with pytest.raises(InputError, match="has no rows"):
        parquet_parts(tmp_path)
    (tmp_path / "2.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"2.parquet cannot be read as Parquet .* write that part again"):
        parquet_parts(tmp_path)


def test_a_file_that_is_damaged_later_is_named(tmp_path):
    FRAME.to_parquet(tmp_path / "1.parquet")
    (part,) = parquet_parts(tmp_path)
    whole = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "1.parquet").write_bytes(whole[:4] + b"\0" * 200 + whole[204:])
    with pytest.raises(InputError, match=r"1\.parquet cannot be read as Parquet"):
        part.load()


def test_a_folder_that_names_a_column_is_refused(tmp_path):
    (tmp_path / "year=2024").mkdir()
    FRAME.to_parquet(tmp_path / "year=2024" / "1.parquet")
    with pytest.raises(InputError, match="The folder 'year=2024' holds a column in its name"):
        parquet_parts(tmp_path)
    assert len(parquet_parts(tmp_path / "year=2024")) == 1


def test_rows_without_a_value_that_is_needed_are_left_out(tmp_path):
    FRAME.assign(b=["x", None, "x", None, "y"]).to_parquet(tmp_path / "1.parquet")
    (part,) = parquet_parts(tmp_path)
    X = replace(part, needs="b", without=("b",)).load().X
    assert X["a"].tolist() == [1.0, 3.0, 5.0]
    assert list(X) == ["a", "w"]


def test_an_array_has_no_column_of_that_name():
    with pytest.raises(InputError, match="part 3 is an array, whose columns have no names"):
        split_off("part 3", np.ones((2, 2)), "y", None)


def test_the_first_rows_are_those_of_the_whole_table_however_it_is_cut():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (200, 2)).astype(np.float32)
    Y, weight = rng.integers(0, 2, (200, 1)).astype(np.float32), rng.uniform(1, 2, 200)
    whole = canonical_rows(X, Y, weight)
    order = rng.permutation(200)
    for cuts in ([0, 200], [0, 3, 90, 200]):
        total = None
        for a, b in itertools.pairwise(cuts):
            at = order[a:b]
            part = Sample.of(Encoded(X[at], Y[at], weight[at]), 20, X[at])
            total = part if total is None else total + part
        assert_array_equal(total.rows.X, whole.X[:20])
        assert_array_equal(total.rows.Y, whole.Y[:20])
        assert_allclose(total.rows.weight, whole.weight[:20], rtol=1e-12)
        assert_array_equal(total.table, total.rows.X)
        assert not total.is_all
        assert total.checksum == Sample.of(Encoded(X, Y, weight), 20).checksum
    assert first_rows(Encoded(X[:0], Y[:0], weight[:0]), 5) is None


@pytest.mark.parametrize("changed", ["X", "Y", "weight"])
def test_the_checksum_is_of_rows_outside_the_sample_too(changed):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 2)).astype(np.float32), rng.normal(size=(200, 1)).astype(np.float32)
    own = Sample.of(Encoded(X, Y, np.ones(200)), 20)
    last = int(np.flatnonzero((canonical_rows(X, Y, np.ones(200)).X[-1] == X).all(axis=1))[0])
    rows = {"X": X.copy(), "Y": Y.copy(), "weight": np.ones(200)}
    rows[changed][last] *= 1.5
    other = Sample.of(Encoded(**rows), 20)
    if changed == "weight":
        assert_array_equal(other.rows.X, own.rows.X)
    assert other.checksum != own.checksum
