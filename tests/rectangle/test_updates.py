from typing import get_args

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from nongauss.rectangle.config import StructureKind
from nongauss.rectangle.data import RectangleRows
from nongauss.rectangle.objective import EMProblem, expected, log_inside, posterior, slope_powers
from nongauss.rectangle.params import RectangleParams, SoftBoxes, StatedBound, box_prior
from nongauss.rectangle.updates import (
    boxes_around,
    iterate,
    log_density,
    move_boxes,
    shares_from_rules,
    starting_shares,
    structure_around,
)
from rectangle.small import blobs, boxes, labels, rows, structure


@pytest.mark.parametrize("kind", get_args(StructureKind))
@pytest.mark.parametrize("slope", [5.0, 20.0])
def test_no_iteration_lowers_the_objective_of_any_start(kind, slope):
    data = rows(60)
    problem = EMProblem(data, slope_powers(data, slope), box_prior(3, 2, 3, ()), kind)
    share = starting_shares(data, 3, 4, seed=0)
    params = RectangleParams(boxes_around(data, share, problem.prior), structure_around(data, share, kind))
    values = []
    for _ in range(25):
        params, value = iterate(problem, params)
        values.append(value)
    rise = np.diff(np.array(values), axis=0)
    assert (rise >= -1e-9 * np.abs(values[-1])).all()
    assert values[-1].max() > values[0].max()


def test_no_rectangle_loses_by_a_step():
    data, box = rows(60), boxes()
    problem = EMProblem(data, slope_powers(data, 10.0), box_prior(3, 2, 3, ()), "full")
    share = posterior(log_inside(problem.powers, box), log_density(data, structure(), "full")[0])
    before = expected(problem.powers, box, share, problem.prior)[0]
    after = expected(problem.powers, move_boxes(problem, box, share), share, problem.prior)[0]
    assert (after >= before).all()


def test_bounds_that_are_stated_very_strongly_are_where_they_were_stated():
    data, stated = rows(60), boxes()
    prior = box_prior(
        3, 2, 3, [StatedBound(k, i, stated.flat()[0, k, i], 1e9) for k in range(3) for i in range(7)]
    )
    problem = EMProblem(data, slope_powers(data, 10.0), prior, "full")
    start = SoftBoxes.of(stated.flat()[:1] + 0.1, 2)
    moved = move_boxes(problem, start, np.full((1, 3, 60), 1 / 3), steps=50)
    assert_allclose(moved.flat()[0], stated.flat()[0], atol=1e-5)


def four() -> tuple[RectangleRows, np.ndarray]:
    X, truth = blobs()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    none = labels(n_rows=len(Z))
    return RectangleRows(Z, none, Z, none, np.ones(len(Z))), truth


def test_starts_are_partitions_and_find_clear_blobs():
    data, truth = four()
    share = starting_shares(data, 4, 5, seed=0)
    assert_allclose(share.sum(axis=1), 1.0)
    scores = [adjusted_rand_score(truth, s.argmax(axis=0)) for s in share]
    assert max(scores) > 0.99
    assert_array_equal(share, starting_shares(data, 4, 5, seed=0))


def test_boxes_are_around_their_clusters_and_at_stated_bounds():
    data, truth = four()
    share = (truth == np.arange(4)[:, None]).astype(float)[None]
    prior = box_prior(4, 2, 0, [StatedBound(1, 2, 0.25, 100.0)])
    box = boxes_around(data, share, prior)
    for k in range(4):
        own = data.X[truth == k]
        assert_allclose(box.lower[0, k], own.mean(axis=0) - own.std(axis=0))
    assert box.upper[0, 1, 0] == 0.25


def test_stated_rules_begin_with_their_rows_and_the_rest_is_split():
    data, truth = four()
    margins = np.where(truth == 2, 1.0, -1.0)[:, None]
    share = shares_from_rules(data, margins, 3, 2, seed=0)
    assert_allclose(share.sum(axis=1), 1.0)
    assert_array_equal(share[:, 0] > 0.5, np.broadcast_to(truth == 2, (2, len(truth))))
    assert (share[:, 1:].sum(axis=2) > 0).all()
