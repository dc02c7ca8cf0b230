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
    names = ["full.csv", "full_cells.csv", "full_draw1.csv", "full_draw2.csv"]
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
    drawn = [pd.read_csv(file) for file in filled.files[2:]]
    assert (drawn[0]["size"] != drawn[1]["size"]).any()
    said = filled.text()
    assert "cells of 80 rows were missing" in said
    assert "how sure" in said
    assert json.dumps(filled.record(), default=str)


def test_a_table_without_gaps_is_written_as_it_is(tmp_path):
    path = tmp_path / "whole.csv"
    pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) ** 2}).to_csv(path, index=False)
    filled = impute_table(path, tmp_path / "full.csv", 0, "rank_factor", 0)
    assert "no gaps" in filled.text()
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "full.csv"), pd.read_csv(path))


def test_names_of_files_and_of_models(tmp_path):
    names = [path.name for path in paths_of(tmp_path / "full.csv.gz", 1)]
    assert names == ["full.csv.gz", "full_cells.csv.gz", "full_draw1.csv.gz"]
    with pytest.raises(InputError, match="--model must be one of"):
        impute_table(tmp_path / "none.csv", tmp_path / "full.csv", 0, "forest", 0)
