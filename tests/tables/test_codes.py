"""Whole numbers that are names are labels, in memory and in parts; others are numbers."""

import warnings

import numpy as np
import pandas as pd
import pytest

from nongauss.cli.read import Declared, prepare
from nongauss.tables.kinds import decode
from nongauss.tables.learn import InputSummary, as_source, learn


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"zip": rng.integers(10000, 10004, 60), "user_id": range(7, 67), "x": rng.normal(size=60)}
    )


def encoder_of(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learn(as_source(X)).encoder


def test_codes_are_labels_and_ids_are_left_out(frame):
    encoder = encoder_of(frame)
    assert encoder.one_hot_names == ("zip=10000", "zip=10001", "zip=10002", "zip=10003", "x")
    one_hot = encoder.as_one_hot(frame)
    np.testing.assert_array_equal(one_hot[:, :4].argmax(axis=1), frame["zip"] - 10000)
    np.testing.assert_array_equal(encoder.as_one_hot(frame.assign(zip=frame["zip"].astype(str))), one_hot)


def test_parts_agree_with_the_whole(frame, tmp_path):
    for number, part in enumerate((frame[:20], frame[20:])):
        part.to_parquet(tmp_path / f"{number}.parquet", index=False)
    assert encoder_of(str(tmp_path)).columns == encoder_of(frame).columns


@pytest.mark.parametrize("cells", [[1.5, 2, 3], [-1, 2, 3]])
def test_in_parts_numbers_go_before_codes_and_texts_too(cells):
    codes, numbers, texts = (
        InputSummary.of(decode("account", pd.Series(part)), np.ones(3), "a part")
        for part in ([1, 2, 3], cells, ["a", "b", "c"])
    )
    assert (codes.kind, numbers.kind, texts.kind) == ("code", "number", "label")
    assert (codes + numbers).kind == (numbers + codes).kind == "number"
    assert (codes + texts).kind == (texts + codes).kind == "label"
    assert (codes + numbers).facts.high == 3


def test_use_makes_a_code_a_number(frame):
    table = prepare(frame.assign(y=np.arange(60.0) % 7 + frame["x"]), "y", declared=Declared(use=("zip",)))
    assert table.rows.column(table.rows.labels.index("zip")).kind == "number"
    assert encoder_of(table.rows.take(np.arange(50))).one_hot_names[0] == "zip"
