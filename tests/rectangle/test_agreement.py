"""Which groups of pieces are clusters: where halves of the rows agree, and where a core lies in a cloud."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score, silhouette_score

from nongauss.rectangle.agreement import _least_kept, _silhouette, agreed_groups, label_groups
from nongauss.rectangle.data import RectangleRows
from nongauss.rectangle.piece_groups import PieceGroups, _distance
from nongauss.rectangle.pieces import find_pieces
from rectangle.small import labels


def table(Y: np.ndarray, codes: np.ndarray | None = None, n_levels: int = 3) -> RectangleRows:
    """Rows whose structure columns are the numbers Y, or labels."""
    n = len(Y) if codes is None else len(codes)
    own = labels(n_rows=n) if codes is None else labels(codes, *[n_levels] * codes.shape[1])
    return RectangleRows(np.zeros((n, 0)), labels(n_rows=n), Y, own, np.ones(n))


def test_the_silhouette_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    codes, group = rng.integers(0, 3, (60, 5)), np.repeat([0, 1, 2], 20)
    codes[:20, 0] = 2
    apart, value = _silhouette(table(np.zeros((60, 0)), codes), group)
    assert value == pytest.approx(silhouette_score(codes, group, metric="hamming"))
    assert apart[0, 2] == pytest.approx((codes[:20, None] != codes[None, 40:]).mean())


def test_prediction_strength_counts_pairs_that_stay_together():
    rng = np.random.default_rng(1)
    own, other = rng.integers(0, 2, 30), rng.integers(0, 3, 30)
    pairs = [list(combinations(np.flatnonzero(own == g), 2)) for g in (0, 1)]
    least = min(np.mean([other[i] == other[j] for i, j in of_one]) for of_one in pairs)
    assert _least_kept(own, other, np.ones(30)) == pytest.approx(least)


@pytest.mark.gate
def test_pieces_of_a_class_whose_labels_go_in_pairs_are_joined():
    """In each class three coins are each seen in two columns; the classes differ in ten more."""
    rng = np.random.default_rng(0)
    which, coins = rng.integers(0, 2, 400), rng.integers(0, 2, (400, 3))
    typical = np.hstack([np.repeat(coins, 2, axis=1), np.tile(which[:, None], (1, 10))])
    data = table(
        np.zeros((400, 0)), np.where(rng.uniform(size=(400, 16)) < 0.9, typical, 1 - typical), n_levels=2
    )
    pieces = find_pieces(data, 0)
    assert len(pieces.mass) > 2
    group = label_groups(data, pieces, 0).group[pieces.share.argmax(axis=0)]
    assert adjusted_rand_score(which, group) > 0.98


def groups_of(Y: np.ndarray) -> tuple[PieceGroups, np.ndarray]:
    """The groups of pieces of standardised columns, and each row's."""
    data = table((Y - Y.mean(axis=0)) / Y.std(axis=0))
    pieces = find_pieces(data, 0)
    assert len(pieces.mass) > 1
    found = agreed_groups(data, pieces, 0)
    return found, found.group[pieces.share.argmax(axis=0)]


@pytest.mark.gate
@pytest.mark.parametrize("seed", range(4))
def test_a_dense_box_in_a_wide_one_is_a_cluster(seed: int):
    rng = np.random.default_rng(seed)
    Y = np.vstack([rng.uniform(0, 10, (300, 2)), rng.uniform([6, 5], [8, 7], (300, 2))])
    found, group = groups_of(Y)
    assert found.core
    assert_array_equal(np.unique(group), [0, 1])
    inside = ((Y > [6, 5]) & (Y < [8, 7])).all(axis=1)
    assert adjusted_rand_score(inside, group) > 0.75


@pytest.mark.gate
def test_two_dense_boxes_in_a_wide_one_are_two_clusters():
    rng = np.random.default_rng(0)
    cores = [rng.uniform(low, low + 2.0, (300, 2)) for low in (1.0, 7.0)]
    Y = np.vstack([rng.uniform(0, 10, (300, 2)), *cores])
    group = groups_of(Y)[1]
    inside = sum(i * ((low < Y) & (low + 2.0 > Y)).all(axis=1) for i, low in enumerate((1.0, 7.0), start=1))
    assert_array_equal(np.unique(group), [0, 1, 2])
    assert adjusted_rand_score(inside, group) > 0.75


@pytest.mark.gate
@pytest.mark.parametrize("law", ["standard_t", "lognormal", "exponential"])
def test_the_middle_of_a_cluster_that_thins_out_is_no_core(law: str):
    rng = np.random.default_rng(0)
    Y = {
        "standard_t": rng.standard_t(3, (300, 2)),
        "lognormal": rng.lognormal(sigma=0.7, size=(300, 2)),
        "exponential": rng.exponential(size=(300, 2)),
    }[law]
    found, group = groups_of(Y)
    assert not found.core
    assert not group.any()


@pytest.mark.parametrize("n", [1.0, 1.5, 2.4, 2.5])
def test_chance_explains_any_distance_of_groups_of_so_few_rows(n):
    one, other = ((n, np.full(2, m), np.eye(2)) for m in (0.0, 9.0))
    assert _distance(one, other) == 0.0
