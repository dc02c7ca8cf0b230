"""What the loop does beside the endings, which `test_endings.py` has for every solver."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nongauss.core.seeds import generator_at, generator_state
from nongauss.optimise.course import FitResult, Rule, Run, Status
from nongauss.optimise.loop import in_place, run

ALONE = Run()


def halving(number, state):
    """Towards 0 from below, halving the distance."""
    return 0.5 * state, {"bound": 0.5 * state, "size": -state}


def test_a_row_of_the_trace_has_the_bound_the_objective_and_other_numbers():
    result = run(halving, -8.0, ALONE, Rule(3), name="half")
    assert list(result.trace[-1]) == ["iteration", "bound", "objective", "seconds", "size"]
    assert result.trace[-1]["bound"] == result.trace[-1]["objective"] == result.state
    both = run(lambda n, state: (state, {"bound": 2.0, "objective": 3.0}), 0, ALONE, Rule(1), name="both")
    assert (both.trace[0]["bound"], both.trace[0]["objective"]) == (2.0, 3.0)


def test_the_rule_looks_at_the_objective_and_not_at_the_bound():
    objectives = [1.0, 2.0, 2.0]
    infos = [{"bound": -float(n), "objective": objective} for n, objective in enumerate(objectives)]
    rule = Rule(3, lambda _: 0.5, rises=True)
    result = run(lambda n, state: (n, infos[n]), 0, ALONE, rule, name="both")
    assert (result.status, result.n_iter) == (Status.CONVERGED, 3)


def test_an_observer_sees_the_last_row_and_when_the_last_of_several_runs_ends():
    heard = []
    first = run(halving, -8.0, ALONE, Rule(3), name="first", expected=6)
    run(halving, -8.0, Run((heard.append,)), Rule(3), name="second", former=first, expected=6)
    assert {progress.max_iter for progress in heard} == {6}
    assert [progress.iteration for progress in heard] == [4, 5, 6]
    assert (heard[0].bound, heard[0].info) == (-4.0, {"size": 8.0})


def test_the_trace_of_a_former_run_stays_as_it_is():
    former = FitResult(None, [], Status.COMPLETED, 10)
    result = run(halving, -8.0, ALONE, Rule(2), name="half", former=former)
    assert [row["iteration"] for row in result.trace] == [11, 12]
    numbers = []
    run(lambda n, state: (numbers.append(n), {"bound": 0.0}), None, ALONE, Rule(2), name="n", former=former)
    assert (numbers, former.trace) == ([10, 11], [])


def test_the_model_says_enough():
    result = run(lambda n, state: (n + 1, {"bound": n, "stop": n == 2}), 0, ALONE, Rule(9), name="stop")
    assert (result.status, result.state) == (Status.CONVERGED, 3)
    assert "stop" not in result.trace[0]


def test_ctrl_c_within_an_iteration_stops_at_the_one_before():
    def interrupted(number, state):
        if state == 2:
            raise KeyboardInterrupt
        return state + 1, {"bound": float(state)}

    stopped = run(interrupted, 0, ALONE, Rule(9), name="count")
    assert (stopped.status, stopped.state) == (Status.STOPPED, 2)


class Late:
    """A number that Ctrl-C meets when it is looked at a second time."""

    looks = 0

    def __float__(self):
        self.looks += 1
        if self.looks == 2:
            raise KeyboardInterrupt
        return 1.0


def test_ctrl_c_between_an_iteration_and_its_row_finds_state_and_trace_together():
    def step(number, state):
        return state + 1, {"bound": float(number), "other": Late() if number == 2 else 1.0}

    stopped = run(step, 0, ALONE, Rule(9), name="count")
    assert (stopped.state, stopped.n_iter, len(stopped.trace)) == (2, 2, 2)
    judged = run(step, 0, ALONE, Rule(9, lambda _: 0.0, rises=True), name="count")
    assert (judged.state, judged.n_iter, len(judged.trace)) == (2, 2, 2)


def test_a_step_on_the_host_takes_no_key():
    with pytest.raises(TypeError, match="not a key"):
        run(halving, -8.0, ALONE, Rule(3), name="half", key=1)


class Walk:
    """A random walk that changes in place; its bound is what `bounds` says of the epoch."""

    def __init__(self, bounds):
        self.bounds, self.x, self.rng = bounds, np.zeros(2), np.random.default_rng(0)

    def epoch(self, number):
        self.x += self.rng.normal(size=2)
        return {"bound": self.bounds[number]}

    def snapshot(self):
        return self.x.copy(), generator_state(self.rng)

    def restore(self, at):
        self.x, self.rng = at[0].copy(), generator_at(at[1])


def test_a_model_in_place_is_left_at_the_state_of_the_result():
    model, short = Walk([0.0, 1.0, 2.0, math.nan]), Walk([0.0, 1.0, 2.0])
    result = run(in_place(model), None, ALONE, Rule(5), name="walk")
    assert (result.status, result.n_iter) == (Status.NONFINITE, 3)
    assert run(in_place(short), None, ALONE, Rule(3), name="walk").status is Status.COMPLETED
    assert_array_equal(model.x, short.x)
    fallen, best = Walk([0.0, 1.0, -9.0]), Walk([0.0, 1.0])
    run(in_place(fallen), None, ALONE, Rule(3, lambda _: 1e-3), name="walk")
    run(in_place(best), None, ALONE, Rule(2), name="walk")
    assert_array_equal(fallen.x, best.x)
    assert fallen.rng.normal() == best.rng.normal()


def test_a_number_that_is_only_watched_settles_wherever_it_stands():
    bounds = [-1.0, -5.0, -3.0, -2.5, -2.5]  # highest at the first iteration

    def step(number, state):
        return state + 1, {"bound": bounds[min(number, 4)]}

    for climbs, status, state in ((True, Status.MAX_ITER, 1), (False, Status.CONVERGED, 5)):
        result = run(step, 0, Run(), Rule(9, lambda bound: 1e-3, climbs=climbs), name="steps")
        assert (result.status, result.state) == (status, state)
