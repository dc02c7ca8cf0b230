import numpy as np
import pandas as pd
import polars
import pytest
from numpy.testing import assert_array_equal

from nongauss import RankFactorClassifier
from nongauss.rank_factor.columns import raw_cells, raw_names
from nongauss.tables.encoder import TableEncoder
from rank_factor.small import table


def test_numbers_stay_and_labels_become_zeros_and_ones_with_gaps():
    frame = pd.DataFrame(
        {
            "size": [1.5, np.nan, 3e9, 4.0],
            "colour": ["red", "blue", None, "green"],
            "new": [True, False, True, True],
            "same": [7.0] * 4,
        }
    )
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = TableEncoder.fit(frame)
    cells = raw_cells(encoder, frame, by_rank=True)
    assert raw_names(encoder, by_rank=True) == (
        "size",
        "colour=blue",
        "colour=green",
        "colour=red",
        "new=True",
    )
    assert_array_equal(cells[:, 0], frame["size"])
    assert_array_equal(cells[2, 1:4], [np.nan] * 3)
    assert_array_equal(cells[3, 1:4], [0, 1, 0])
    assert_array_equal(cells[:, 4], [1, 0, 1, 1])


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


def test_values_of_grades_have_no_distance():
    frame = pd.DataFrame({"grade": pd.Categorical(list("abcabc"), list("cab"), ordered=True)})
    encoder = TableEncoder.fit(frame)
    assert raw_names(encoder, by_rank=False) == ("grade=a", "grade=b", "grade=c")
    assert raw_cells(encoder, frame, by_rank=False).shape == (6, 3)
    assert raw_cells(encoder, frame, by_rank=True)[:3, 0].tolist() == [1.0, 2.0, 0.0]
