import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.rectangle import starts
from nongauss.rectangle.objective import cells, expected, log_inside, posterior
from nongauss.rectangle.params import KINDS, Boxes, Stated, box_prior
from nongauss.rectangle.structure import log_density
from nongauss.rectangle.updates import Problem, State, iterate, move_boxes
from rectangle.small import boxes, rows, structure


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slope", [5.0, 20.0])
def test_no_iteration_lowers_the_objective_of_any_start(kind, slope):
    data = rows(60)
    problem = Problem(data, cells(data, slope), box_prior(3, 2, 3), kind)
    share = starts.shares(data, 3, 4, seed=0)
    state = State(starts.boxes_around(data, share, problem.prior), starts.structure_of(data, share, kind))
    values = []
    for _ in range(25):
        state, value = iterate(problem, state)
        values.append(value)
    rise = np.diff(np.array(values), axis=0)
    assert (rise >= -1e-9 * np.abs(values[-1])).all()
    assert values[-1].max() > values[0].max()


def test_no_rectangle_loses_by_a_step():
    data, box = rows(60), boxes()
    problem = Problem(data, cells(data, 10.0), box_prior(3, 2, 3), "full")
    share = posterior(log_inside(problem.at, box), log_density(data, structure(), "full")[0])
    before = expected(problem.at, box, share, problem.prior)[0]
    after = expected(problem.at, move_boxes(problem, box, share), share, problem.prior)[0]
    assert (after >= before).all()


def test_bounds_that_are_stated_very_strongly_are_where_they_were_stated():
    data, stated = rows(60), boxes()
    prior = box_prior(
        3, 2, 3, [Stated(k, i, stated.flat()[0, k, i], 1e9) for k in range(3) for i in range(7)]
    )
    problem = Problem(data, cells(data, 10.0), prior, "full")
    start = Boxes.of(stated.flat()[:1] + 0.1, 2)
    moved = move_boxes(problem, start, np.full((1, 3, 60), 1 / 3), steps=50)
    assert_allclose(moved.flat()[0], stated.flat()[0], atol=1e-5)
