"""`nongauss impute`: the files that it writes, and what it says of them."""

import json

import numpy as np
import pandas as pd
import pytest

from nongauss.cli.impute import impute_table, paths_of
from nongauss.core.errors import InputError, NongaussWarning


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.standard_normal(80)
    frame = pd.DataFrame(
        {
            "id": range(80),
            "size": np.round(z + 0.3 * rng.standard_normal(80), 2),
            "price": [f"${x:.2f}" for x in np.exp(z)],
            "kind": np.where(z > 0, "big", "small"),
            "day": pd.date_range("2024-01-01", periods=80).strftime("%d.%m.%Y"),
        }
    )
    for number, name in enumerate(("size", "price", "kind", "day")):
        frame.loc[np.random.default_rng(number).random(80) < 0.15, name] = None
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path, frame


def test_it_writes_the_table_its_cells_and_its_draws(table, tmp_path):
    path, frame = table
    codes = pytest.warns(NongaussWarning, match="'id' holds whole numbers that are codes")
    with codes, pytest.warns(NongaussWarning, match="ignored: column 'id'"):
        filled = impute_table(path, tmp_path / "out" / "full.csv", 2, "rank_factor", 0)
    names = ["full.csv", "full_cells.csv", "full_draw1.csv", "full_draw2.csv", "full_report.html"]
    assert [file.name for file in filled.files] == names
    full = pd.read_csv(filled.files[0])
    assert list(full.columns) == list(frame.columns)
    assert not full.isna().any().any()
    known = frame["price"].notna()
    assert (full["price"][known] == frame["price"][known]).all()
    assert full["price"].str.startswith("$").all()
    assert set(full["kind"]) == {"big", "small"}
    cells = pd.read_csv(filled.files[1])
    assert len(cells) == frame.isna().sum().sum() == filled.columns["gaps"].sum()
    first = cells.iloc[0]
    assert pd.isna(frame[first["column"]].iloc[first["row"] - 1])
    assert set(cells["row"] - 1) == set(np.flatnonzero(frame.isna().any(axis=1)))
    drawn = [pd.read_csv(file) for file in filled.files[2:-1]]
    assert (drawn[0]["size"] != drawn[1]["size"]).any()
    said = filled.text()
    assert "cells of 80 rows were missing" in said
    assert "how sure" in said
    assert json.dumps(filled.record(), default=str)


@pytest.mark.parametrize("suffix", ["csv.gz", "parquet"])
def test_cells_that_were_there_stay_to_the_byte_and_new_ones_look_like_them(tmp_path, suffix):
    rng = np.random.default_rng(0)
    z = rng.standard_normal(60)
    days = [pd.Timestamp("2021-01-01") + pd.Timedelta(days=int(50 * x + 200)) for x in z]
    full = pd.DataFrame(
        {
            "age": np.round(40 + 10 * z).astype(int).astype(str),
            "cost": [f"€ {1000 * np.exp(x):,.2f}" for x in z],
            "weight": [f"{70 + 9 * x:.1f}" for x in z],
            "rare": [f"{np.exp(4 * x):.2e}" for x in z],
            "day": [day.strftime("%d/%m/%Y") for day in days],
            "flag": np.where(z > 0, "TRUE", "FALSE"),
            "grade": np.array(["poor", "good", "very good"])[np.digitize(z, [-0.5, 0.5])],
            "place": np.where(z > 0, "Bonn, West", 'the "Hill"'),
        }
    )
    gaps = full.mask(np.random.default_rng(1).random(full.shape) < 0.15)
    path, out = tmp_path / "data.csv", tmp_path / f"full.{suffix}"
    gaps.to_csv(path, index=False)
    filled = impute_table(path, out, 1, "rank_factor", 0)
    if suffix == "parquet":
        assert not pd.read_parquet(out).isna().any().any()
        return
    found = pd.read_csv(out, dtype=str, keep_default_na=False)
    known = gaps.notna()
    assert (found == full)[known].sum().sum() == known.sum().sum()
    forms = {
        "age": r"\d\d",
        "cost": r"€ (\d,)?\d{1,3}\.\d\d",
        "weight": r"\d+\.\d",
        "rare": r"\d\.\d\de[+-]\d\d",
        "day": r"\d\d/\d\d/202[012]",
        "flag": "TRUE|FALSE",
        "grade": "poor|good|very good",
        "place": 'Bonn, West|the "Hill"',
    }
    for table in (found, pd.read_csv(filled.files[2], dtype=str, keep_default_na=False)):
        for name, form in forms.items():
            assert table[name].str.fullmatch(form).all(), name
    cells = pd.read_csv(filled.files[1], dtype=str).set_index("column")
    assert cells.loc["day", ["value", "lower", "upper"]].stack().str.fullmatch(forms["day"]).all()
    assert cells.loc["grade", ["value", "lower", "upper"]].stack().isin(["poor", "good", "very good"]).all()
    said = filled.columns.set_index("column")
    assert said["before"]["day"].startswith("2021")
    cost = gaps["cost"].str.replace(r"[€ ,]", "", regex=True).astype(float).mean()
    assert said["before"]["cost"] == pytest.approx(cost)


def test_a_table_without_gaps_is_written_as_it_is(tmp_path):
    path = tmp_path / "whole.csv"
    pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) ** 2}).to_csv(path, index=False)
    filled = impute_table(path, tmp_path / "full.csv", 0, "rank_factor", 0)
    assert "no missing cells" in filled.text()
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "full.csv"), pd.read_csv(path))


def test_names_of_files_and_of_models(tmp_path):
    names = [path.name for path in paths_of(tmp_path / "full.csv.gz", 1)]
    assert names == ["full.csv.gz", "full_cells.csv.gz", "full_draw1.csv.gz", "full_report.html"]
    with pytest.raises(InputError, match="--model must be one of"):
        impute_table(tmp_path / "none.csv", tmp_path / "full.csv", 0, "forest", 0)


def test_columns_that_are_ignored_stay_as_they_are(table, tmp_path):
    path, frame = table
    filled = impute_table(path, tmp_path / "full.csv", 1, "rank_factor", 0, ignore=("id", "kind"))
    for file in (filled.files[0], filled.files[2]):
        full = pd.read_csv(file)
        assert list(full.columns) == list(frame.columns)
        pd.testing.assert_series_equal(full["kind"], frame["kind"], check_dtype=False)
        assert not full[["size", "price", "day"]].isna().any().any()
    assert "kind" not in set(filled.columns["column"])
    with pytest.raises(InputError, match="no column 'kinds'; did you mean 'kind'"):
        impute_table(path, tmp_path / "other.csv", 0, "rank_factor", 0, ignore=("kinds",))


def test_a_column_with_one_known_cell_is_filled_but_not_called_sure(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(40), "one": np.nan, "same": "yes"})
    frame.loc[3, "one"], frame.loc[5, "same"], frame.loc[2, "a"] = 2.5, None, np.nan
    path, out = tmp_path / "data.csv", tmp_path / "full.csv"
    frame.to_csv(path, index=False)
    filled = impute_table(path, out, 0, "auto", 0)
    assert (pd.read_csv(out)["one"] == 2.5).all()
    sure = filled.columns.set_index("column")["how sure"]
    assert np.isnan(sure["one"])
    assert sure["same"] == 1.0
    assert "of a column with one known cell it cannot be told" in filled.text()
    assert "cannot be told: the column has one known cell" in filled.files[-1].read_text()


def test_times_of_whole_minutes_are_filled_with_such_and_told_as_times(tmp_path):
    rng = np.random.default_rng(0)
    minutes = rng.integers(480, 1080, 60)
    frame = pd.DataFrame(
        {"at": [f"{m // 60:02d}:{m % 60:02d}" for m in minutes], "x": minutes + 30 * rng.random(60)}
    )
    frame.loc[::6, "at"] = None
    path, out = tmp_path / "data.csv", tmp_path / "full.csv"
    frame.to_csv(path, index=False)
    filled = impute_table(path, out, 2, "auto", 0)
    for file in (filled.files[0], *filled.files[2:4]):
        assert pd.read_csv(file)["at"].str.fullmatch(r"\d\d:\d\d").all()
    told = filled.columns.iloc[0]
    assert ":" in told["before"]
    assert ":" in told["after"]


def test_columns_whose_names_are_numbers_and_rows_whose_names_are_not(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({0: rng.normal(size=60), 1: rng.normal(size=60), 2: ["a", "b", "b"] * 20})
    frame.loc[:8, 1], frame.loc[50:, 2] = np.nan, None
    frame.index = pd.Index([f"row {i}" for i in range(60)])
    frame.to_parquet(tmp_path / "data.parquet")
    out = tmp_path / "full.parquet"
    impute_table(tmp_path / "data.parquet", out, 0, "rank_factor", 0, ignore=["0"])
    full = pd.read_parquet(out)
    assert list(map(str, full.columns)) == ["0", "1", "2"]
    assert not full.isna().any(axis=None)
