import numpy as np
import pytest

from nongauss.rectangle.box_search import LOWER, UPPER
from nongauss.rectangle.columns import view
from nongauss.rectangle.params import Boxes, Stated
from nongauss.rectangle.printing import hard_boxes, printed, sheet
from nongauss.tables.encoder import TableEncoder


def table(X: np.ndarray):
    there, cells = view(
        X, TableEncoder.fit(X), tuple(range(X.shape[1])), np.ones(len(X)), "standard", "model"
    )
    return there, cells, sheet(there, cells, there.scaled(cells.numbers), np.ones(len(X)))


def wide(K: int, D: int) -> Boxes:
    return Boxes(np.full((1, K, D), -16.0), np.full((1, K, D), 16.0), np.zeros((1, K, 0)))


@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_bounds_lie_in_the_gap_whatever_the_offset_of_single_precision_data(offset):
    X = (np.array([[0.1], [0.2], [0.3], [0.7], [0.8]]) + offset).astype(np.float32).astype(float)
    there, _, at = table(X)
    own = np.array([0, 0, 0, 1, 1])
    rules = printed(at, there, hard_boxes(at, wide(2, 1), own, 0.0), ("low", "high"), "auto")
    (low,), (high,) = rules.conditions
    assert low.upper == high.lower
    assert X[2, 0] < low.upper < X[3, 0]
    assert rules.texts()["low"] == f"x0 at most {offset + 0.5:.10g}"


def test_only_rows_that_the_other_conditions_let_in_hold_a_bound():
    """Between 1 and 9 in x0 there are rows, but x1 keeps them out: the bound is free to be 5."""
    X = np.array([[0.0, 0.5], [1, 0.25], [3, 8.5], [7, 9.5], [9, 0.75], [10, 0.5], [11, 9.0]])
    there, _, at = table(X)
    own = np.array([0, 0, 1, 1, 1, 1, 1])
    boxes = Boxes(
        np.array([[[-16.0, -16], [-16, -16]]]), np.array([[[-0.9, -0.5], [16, 16]]]), np.zeros((1, 2, 0))
    )
    found = hard_boxes(at, boxes, own, 0.0)
    rules = printed(at, there, found, ("a", "b"), "auto")
    assert rules.margins(table(X)[1])[own == 0, 0].min() >= 0
    assert rules.margins(table(X)[1])[own == 1, 0].max() < 0


def test_stated_bounds_are_printed_where_they_were_found():
    X = np.arange(20.0)[:, None] + 0.25
    there, _, at = table(X)
    z = there.scaled(np.array([[7.6]]))[0, 0]
    boxes = wide(1, 1)._replace(upper=np.full((1, 1, 1), z))
    found = hard_boxes(at, boxes, np.zeros(20, int), 0.5, [Stated(0, 1, z, 1.0)])
    assert set(found[0].conditions) == {(0, UPPER)}
    condition = printed(at, there, found, ("a",), None).conditions[0][0]
    assert condition.upper == pytest.approx(7.75)
    assert (0, LOWER) not in found[0].conditions
