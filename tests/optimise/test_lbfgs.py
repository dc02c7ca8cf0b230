import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import rosen, rosen_der

from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.course import Rule, Run, Status
from nongauss.optimise.lbfgs import PATIENCE, lbfgs
from nongauss.optimise.loop import run

OPEN = [(None, None)] * 2


def hill(x):
    return -rosen(x), -rosen_der(x), 7.0 - rosen(x)


def climb(objective=hill, x=(-1.2, 1.0), bounds=OPEN, *, max_iter=200, former=None, **watching):
    rule = Rule(max_iter, lambda _: 1e-9, PATIENCE)
    return run(lbfgs(objective, bounds), np.array(x), Run(**watching), rule, name="climb", former=former)


def test_finds_the_top_and_keeps_a_trace():
    result = climb()
    assert_allclose(result.state, [1, 1], atol=1e-3)
    assert result.status is Status.CONVERGED
    assert [row["iteration"] for row in result.trace] == list(range(1, result.n_iter + 1))
    assert (np.diff([row["bound"] for row in result.trace]) >= 0).all()
    assert result.trace[-1]["bound"] == pytest.approx(7.0)


def test_keeps_within_bounds():
    assert climb(bounds=[(None, 0.5), (None, None)]).state[0] <= 0.5


def test_max_iter_callback_and_former():
    short = climb(max_iter=3)
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 3
    on = climb(x=short.state, former=short)
    assert on.trace[:3] == short.trace
    assert on.n_iter == len(on.trace)
    stopped = climb(callbacks=(lambda p: p.iteration == 2,))
    assert (stopped.status, stopped.n_iter) == (Status.STOPPED, 2)


def test_turns_back_where_there_is_no_value():
    def walled(x):
        if x[0] > 0.9:
            raise np.linalg.LinAlgError
        return hill(x)

    result = climb(walled)
    assert result.state[0] <= 0.9
    assert result.trace[-1]["bound"] > 6.9


class Poisoned:
    """A hill that has no value far away, nor anywhere once it was asked there, unless it is restored."""

    def __init__(self):
        self.is_well = True

    def __call__(self, x):
        self.is_well = self.is_well and abs(x[0]) < 2.95
        if not self.is_well:
            raise np.linalg.LinAlgError
        return hill(x)

    def snapshot(self):
        return np.array([self.is_well])

    def restore(self, at):
        self.is_well = bool(at[0])


def test_an_objective_whose_memory_was_spoilt_beyond_a_wall_climbs_on_from_its_best_point():
    result = climb(Poisoned(), x=(-2.9, 1.0))
    assert_allclose(result.state, [1, 1], atol=1e-3)
    assert result.status is Status.CONVERGED


def cliff(x):
    """A slope that ends in nothing."""
    if x[0] > 0.0:
        raise FloatingPointError
    return x[0], np.array([1.0, 0.0]), x[0]


def test_a_climb_that_a_wall_bars_has_not_converged_and_ends_at_its_best_point():
    result = climb(cliff, x=(0.0, 0.0))
    assert result.status is Status.STALLED
    assert_array_equal(result.state, [0.0, 0.0])
    near = climb(cliff, x=(-1.0, 0.0))
    assert near.status is Status.STALLED
    objectives = [row["objective"] for row in near.trace]
    assert objectives == sorted(objectives)
    assert near.state[0] == objectives[-1] <= 0.0


def test_no_value_at_the_start():
    result = climb(lambda x: (np.nan, x, np.nan))
    assert result.status is Status.NONFINITE
    assert_allclose(result.state, [-1.2, 1.0])


def test_ctrl_c_keeps_the_best_point():
    def interrupted(progress):
        if progress.iteration == 4:
            raise KeyboardInterrupt

    result = climb(callbacks=(interrupted,))
    assert (result.status, result.n_iter) == (Status.STOPPED, 4)

    def at_once(x):
        at_once.calls += 1
        if at_once.calls == 2:
            raise KeyboardInterrupt
        return hill(x)

    at_once.calls = 0
    with pytest.raises(KeyboardInterrupt):
        climb(at_once)


class Warm:
    """A hill whose value depends, a hair, on how often it was asked, as one with warm starts does.

    Ctrl-C breaks off the evaluation number `broken`, or what is remembered after the one numbered `late`.
    """

    def __init__(self, broken=None, late=None):
        self.n_asked, self.broken, self.late = 0, broken, late

    def __call__(self, x):
        self.n_asked += 1
        if self.n_asked == self.broken:
            raise KeyboardInterrupt
        value, gradient, bound = hill(x)
        return value, gradient * (1.0 + 1e-6 / self.n_asked), bound

    def snapshot(self):
        if self.n_asked == self.late:
            raise KeyboardInterrupt
        return np.array([self.n_asked])

    def restore(self, at):
        self.n_asked = int(at[0])


def test_a_climb_goes_on_from_a_file_without_evaluating_again(tmp_path):
    whole, path = climb(Warm()), tmp_path / "climb"
    first, second, heard = Warm(), Warm(), []
    stopped = climb(first, callbacks=(lambda p: p.iteration == 12,), checkpoint=Checkpoint(path, "a"))
    assert stopped.status is Status.STOPPED
    options = {"callbacks": (lambda p: heard.append(p.iteration),), "checkpoint": Checkpoint(path, "a")}
    on = climb(second, **options)
    assert_array_equal(on.state, whole.state)
    assert [row["bound"] for row in on.trace] == [row["bound"] for row in whole.trace]
    assert on.status is whole.status
    assert heard == list(range(13, whole.n_iter + 1))
    n_asked = []
    climb(lambda x: (n_asked.append(x), hill(x))[1], callbacks=(lambda p: p.iteration == 12,))
    assert second.n_asked > len(n_asked) == first.n_asked


@pytest.mark.parametrize("place", ["broken", "late"])
def test_an_evaluation_that_was_broken_off_is_made_again_from_where_it_began(place, tmp_path):
    whole, path = climb(Warm()), tmp_path / "climb"
    stopped = climb(Warm(**{place: 9}), checkpoint=Checkpoint(path, "a"))
    assert stopped.status is Status.STOPPED
    on = climb(Warm(), checkpoint=Checkpoint(path, "a"))
    assert [row["bound"] for row in on.trace] == [row["bound"] for row in whole.trace]
    assert_array_equal(on.state, whole.state)


def test_evaluations_at_other_points_are_made_anew(tmp_path):
    path = tmp_path / "climb"
    climb(callbacks=(lambda p: p.iteration == 12,), checkpoint=Checkpoint(path, "a"))
    on = climb(x=(-1.0, 1.0), checkpoint=Checkpoint(path, "a"))
    assert_array_equal(on.state, climb(x=(-1.0, 1.0)).state)


def test_an_objective_that_jumps_is_not_at_its_top():
    """It has a slope of 10^6 and no step along it gains: values are not what the slope says."""

    def jumps(x):
        value = -1e6 * abs(float(np.sin(1e9 * x[0]))) if x[0] != 0.5 else 0.0
        return value, np.array([1e6, 0.0]), value

    assert climb(jumps, (0.5, 0.0)).status is Status.STALLED


def test_a_point_that_a_failed_line_search_passed_is_not_lost():
    """The slope at the start is a thousand times too steep, so that no step suits a line search."""

    def steep(x):
        value, gradient, bound = hill(x)
        return value, gradient * (1e3 if abs(x[0] + 1.2) < 1e-2 else 1.0), bound

    result = climb(steep)
    assert_allclose(result.state, [1, 1], atol=1e-2)
