"""Labels as people write them: blanks, accents, case, many of them, sentences."""

import numpy as np
import pandas as pd
import pytest

from encoding import encoder_of
from nongauss.core.errors import NongaussWarning
from nongauss.tables.kinds import decode
from nongauss.tables.words import known_order


def test_blanks_and_accents_are_made_plain_and_said():
    cells = pd.Series(["x ", "x", " x", "caf\u00e9", "cafe\u0301", None])
    column = decode("a", cells)
    assert column.levels == ("café", "x")
    assert [None if code < 0 else column.levels[code] for code in column.codes] == ["x"] * 3 + [
        "café"
    ] * 2 + [None]
    with pytest.warns(NongaussWarning, match=r"'a' has labels with blanks .* ' x' \(1 cell\), .*'x '"):
        encoder = encoder_of(pd.DataFrame({"a": cells}))
    np.testing.assert_array_equal(encoder.raw(pd.DataFrame({"a": ["  x "]}))[0].codes, [1])
    assert decode("a", pd.Series(["x", "caf\u00e9"])).note == ""


def test_an_ordered_category_keeps_its_order_without_blanks():
    dtype = pd.CategoricalDtype([" low", "mid", "high ", "high"], ordered=True)
    column = decode("a", pd.Series(["high", " low", "mid", "high "], dtype=dtype))
    assert column.levels == ("high", "low", "mid")
    rank = dict(zip(column.levels, column.ranks, strict=True))
    assert rank["low"] < rank["mid"] < rank["high"]
    assert column.codes[0] == column.codes[3]


def test_case_is_kept_and_said():
    with pytest.warns(
        NongaussWarning, match="differ only in upper and lower case and are kept apart: 'Red' and 'red'"
    ):
        encoder = encoder_of(pd.DataFrame({"a": ["Red", "red", "blue"]}))
    assert encoder.columns[0].levels == ("Red", "blue", "red")


def test_sentences_and_many_labels_are_left_out_with_the_reason():
    rng = np.random.default_rng(0)
    words = np.array(["good", "bad", "food", "room", "was", "very", "the", "staff"])
    texts = [" ".join(rng.choice(words, 9)) for _ in range(400)]
    labels = [f"label {i}" for i in range(400)]
    frame = pd.DataFrame({"said": texts, "key": labels, "x": rng.normal(size=400)})
    with pytest.warns(NongaussWarning, match=r"'said' \(free text, .*\); column 'key' \(.* more than 255"):
        encoder = encoder_of(frame)
    assert encoder.ignored == ("said", "key")


@pytest.mark.parametrize(
    "labels",
    [
        ("<500", "500-1k", "1k-5k", "5k+"),
        ("0-100", "100-1k", "1-10k", "10-100k"),
        ("-10 to -20", "-5 to -10", "0 to -5", "0 to 5", "5 to 10"),
        ("<30k", "30-40k", "40-60k", "60k+"),
    ],
)
def test_ranges_are_in_the_order_of_their_starts(labels):
    found = known_order(labels[::-1])
    assert found == (labels, "ranges of numbers")
