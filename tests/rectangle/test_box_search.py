"""The exact box step against brute force and on what it is for."""

import itertools

import numpy as np
import pytest

from nongauss.rectangle.box_search import LOWER, SET, UPPER, CodeGrid, HardBox, best_interval, search_boxes


def grid(
    codes: np.ndarray, ordered: tuple[bool, ...] | None = None, weight: np.ndarray | None = None
) -> CodeGrid:
    sizes = tuple(int(c.max()) + 1 for c in codes)
    return CodeGrid(
        codes, sizes, ordered or (True,) * len(codes), np.ones(codes.shape[1]) if weight is None else weight
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_best_interval_is_the_best_of_all(seed):
    totals = np.random.default_rng(seed).normal(size=9)
    low, high = best_interval(totals, np.ones(9, bool), np.ones(9, bool))
    every = [totals[a : b + 1].sum() for a, b in itertools.combinations_with_replacement(range(9), 2)]
    assert totals[low : high + 1].sum() == pytest.approx(max(every))
    fixed = np.arange(9) == 3
    low, high = best_interval(totals, fixed, np.ones(9, bool))
    assert low == 3
    assert totals[3 : high + 1].sum() == pytest.approx(max(totals[3 : b + 1].sum() for b in range(3, 9)))


def test_a_box_counts_its_own_rows_less_others_and_gaps_break_nothing():
    codes = np.array([[0, 1, 2, 3, -1], [0, 1, 0, 1, 0]])
    own = np.array([False, True, True, False, True])
    box = HardBox(
        grid(codes, (True, False)), own, {(0, LOWER): 1, (0, UPPER): 2, (1, SET): np.array([True, False])}
    )
    assert (box.broken == 0).tolist() == [False, False, True, False, True]
    assert box.value == 2.0
    assert box.loss((1, SET)) == -1.0  # without the set, row 1 comes in
    box.put((1, SET), None)
    assert box.value == 3.0


def test_the_step_finds_the_boxes_and_drops_columns_of_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    own = (X[:, 0] > 0) & (X[:, 1] < 0.5)
    codes = X.argsort(axis=0).argsort(axis=0).T
    loose = {(d, side): (20 if side == LOWER else 380) for d in range(30) for side in (LOWER, UPPER)}
    inside, outside = search_boxes(g := grid(codes), [HardBox(g, own, loose), HardBox(g, ~own, {})], 0.0)[:2]
    assert set(inside.conditions) == {(0, LOWER), (1, UPPER)}
    assert ((inside.broken == 0) == own).all()
    assert outside.value <= (~own).sum()


def test_tolerance_buys_fewer_conditions_and_never_costs_more():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    own = (X[:, 0] > 0) & (X[:, 1] < 1.9)
    codes = X.argsort(axis=0).argsort(axis=0).T

    def held(tolerance):
        g = grid(codes)
        return search_boxes(g, [HardBox(g, own, {(0, LOWER): 140, (1, UPPER): 299})], tolerance)[0]

    exact, loose = held(0.0), held(0.03)
    assert len(loose.conditions) < len(exact.conditions)
    assert exact.value == own.sum()
    assert loose.value >= exact.value - 0.03 * 300


def test_brevity_empties_no_small_cluster_and_lets_no_large_one_hold_every_row():
    """The tolerance is worth four rows, twice the small cluster."""
    codes = np.arange(200)[None]
    own = np.isin(codes[0], [100, 101])
    box = search_boxes(g := grid(codes), [HardBox(g, own, {(0, LOWER): 99, (0, UPPER): 102})], 0.02)[0]
    assert box.value > 0
    last = codes[0] >= 198
    large, small = search_boxes(
        g, [HardBox(g, ~last, {(0, UPPER): 197}), HardBox(g, last, {(0, LOWER): 198})], 0.02
    )
    assert large.conditions == {(0, UPPER): 197}
    assert small.conditions == {(0, LOWER): 198}


def test_stated_conditions_stay():
    codes = np.arange(10)[None]
    g = grid(codes)
    box = HardBox(g, codes[0] >= 5, {(0, LOWER): 3}, held=[(0, LOWER)])
    search_boxes(g, [box], 0.5)
    assert box.conditions == {(0, LOWER): 3}


def test_weights_count_like_repeated_rows():
    codes = np.array([[0, 1, 2, 3]])
    own = np.array([True, True, False, True])
    weights = np.array([1.0, 1.0, 3.0, 1.0])
    g = grid(codes, weight=weights)
    box = search_boxes(g, [HardBox(g, own, {})], 0.0)[0]
    assert box.value == 2.0
