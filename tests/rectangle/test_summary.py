import numpy as np

from nongauss.rectangle.summary import Tally, cluster_table, description


def test_precision_and_recall_are_those_of_the_rule():
    margins = np.array([[1.0, -1], [1, -1], [1, 0.5], [-1, 1], [-1, -2]])
    share = np.array([[1.0, 1, 0, 0, 1], [0, 0, 1, 1, 0]])
    table = cluster_table(["a", "b"], Tally.of(margins, share, np.array([1.0, 1, 1, 1, 2])))
    assert table["rows"].tolist() == [5, 1]
    assert table["inside"].tolist() == [3, 2]
    assert table["precision"].tolist() == [2 / 3, 1.0]
    assert table["recall"].tolist() == [0.5, 1.0]
    text = description({"a": "x at most 1", "b": "x at least 1"}, table, 0.75)
    assert text.splitlines()[0] == "2 clusters; 75.0 % of 6 rows are inside exactly one rule."
    assert "a: 5 rows, precision 67 %, recall 50 %\n  x at most 1" in text
    text = description({"a": "", "b": ""}, table, 0.75, {1: -30.0, 2: -10.0, 3: -12.5})
    assert text.splitlines()[1] == "Of the numbers 1 to 3, 2 is the best; 3 is 2.5 nats behind."
