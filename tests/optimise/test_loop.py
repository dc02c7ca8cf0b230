import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nongauss.core.seeds import generator_at, generator_state
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.loop import repeat, run_epochs
from nongauss.optimise.result import Status


def halving(state):
    """Towards 0 from below, halving the distance."""
    return 0.5 * state, {"bound": 0.5 * state, "size": -state}


def test_it_converges_by_the_rule_and_keeps_a_trace():
    result = repeat(halving, -8.0, max_iter=100, least_gain=lambda bound: 0.01 * max(1.0, abs(bound)))
    assert result.status is Status.CONVERGED
    assert result.n_iter == len(result.trace) < 15
    assert result.trace[-1]["bound"] == result.state
    assert {"iteration", "bound", "objective", "seconds", "size"} == set(result.trace[-1])


def test_an_objective_that_falls_has_not_converged():
    result = repeat(lambda n: (n + 1, {"bound": -10.0 * n}), 0, max_iter=5, least_gain=lambda _: 1.0)
    assert (result.status, result.n_iter) == (Status.MAX_ITER, 5)


def test_without_a_rule_the_schedule_is_completed_and_continued():
    first = repeat(halving, -8.0, max_iter=3)
    assert first.status is Status.COMPLETED
    second = repeat(halving, first.state, max_iter=2, former=first)
    assert second.n_iter == 5
    assert [row["iteration"] for row in second.trace] == [1, 2, 3, 4, 5]
    assert repeat(halving, -8.0, max_iter=3, least_gain=lambda _: 0.0).status is Status.MAX_ITER


def test_several_runs_tell_an_observer_when_the_last_one_ends():
    heard = []
    first = repeat(halving, -8.0, max_iter=3, expected=6)
    repeat(halving, -8.0, max_iter=3, former=first, expected=6, callbacks=[heard.append])
    assert {progress.max_iter for progress in heard} == {6}


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ({"bound": math.nan}, Status.NONFINITE),
        ({"bound": 2.0, "other": math.inf}, Status.NONFINITE),
        ({"bound": 0.5}, Status.BOUND_DECREASED),
    ],
)
def test_bad_numbers_end_it_at_the_state_before(last, status):
    infos = [{"bound": 1.0}, last]
    result = repeat(lambda n: (n + 1, infos[n]), 0, max_iter=9, rises=True)
    assert (result.status, result.state, result.n_iter) == (status, 1, 1)


def test_the_model_or_a_callback_ends_it(capsys):
    said = repeat(lambda n: (n + 1, {"bound": n, "stop": float(n == 2)}), 0, max_iter=9, verbose=1)
    assert (said.status, said.state) == (Status.CONVERGED, 3)
    assert "Converged" in capsys.readouterr().out
    assert "stop" not in said.trace[0]
    asked = repeat(halving, -8.0, max_iter=9, callbacks=[lambda progress: progress.iteration == 2])
    assert (asked.status, asked.n_iter) == (Status.STOPPED, 2)


def test_ctrl_c_stops_with_what_is_there():
    def interrupted(state):
        if state == 2:
            raise KeyboardInterrupt
        return state + 1, {"bound": float(state)}

    stopped = repeat(interrupted, 0, max_iter=9)
    assert (stopped.status, stopped.state) == (Status.STOPPED, 2)
    with pytest.raises(KeyboardInterrupt):
        repeat(interrupted, 2, max_iter=9)


class Late:
    """A number that Ctrl-C meets when it is looked at a second time."""

    looks = 0

    def __float__(self):
        self.looks += 1
        if self.looks == 2:
            raise KeyboardInterrupt
        return 1.0


def test_ctrl_c_between_an_iteration_and_its_row_finds_state_and_trace_together():
    def step(n):
        return n + 1, {"bound": float(n), "other": Late() if n == 2 else 1.0}

    stopped = repeat(step, 0, max_iter=9)
    assert (stopped.state, stopped.n_iter, len(stopped.trace)) == (2, 2, 2)


def test_a_callback_that_stops_the_last_iteration_leaves_nothing_to_go_on_with():
    rule = {"max_iter": 100, "least_gain": lambda bound: 0.01, "rises": True}
    n_iter = repeat(halving, -8.0, **rule).n_iter
    result = repeat(halving, -8.0, callbacks=[lambda progress: progress.iteration == n_iter], **rule)
    assert (result.status, result.n_iter) == (Status.CONVERGED, n_iter)


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


def test_epochs_in_place_end_at_the_last_good_state():
    model, short = Walk([0.0, 1.0, 2.0, math.nan]), Walk([0.0, 1.0, 2.0])
    result = run_epochs(model, 5)
    assert (result.status, result.n_iter) == (Status.NONFINITE, 3)
    assert run_epochs(short, 3).status is Status.COMPLETED
    assert_array_equal(model.x, short.x)


def test_epochs_in_place_go_on_from_a_file(tmp_path):
    whole, bounds = Walk(range(6)), range(6)
    run_epochs(whole, 6)
    first = run_epochs(
        Walk(bounds), 6, checkpoint=Checkpoint(tmp_path / "walk", "a"), callbacks=[lambda p: p.iteration == 4]
    )
    assert first.status is Status.STOPPED
    model, heard = Walk(bounds), []
    options = {"callbacks": [lambda progress: heard.append(progress.iteration)]}
    result = run_epochs(model, 6, checkpoint=Checkpoint(tmp_path / "walk", "a"), **options)
    assert heard == [5, 6]
    assert (result.n_iter, len(result.trace), result.status) == (6, 6, Status.COMPLETED)
    assert_array_equal(model.x, whole.x)


def test_a_rule_that_looks_back_sees_the_bound_before_the_interruption(tmp_path):
    options = {"max_iter": 100, "least_gain": lambda bound: 0.01, "rises": True}
    whole = repeat(halving, -8.0, **options)
    file = Checkpoint(tmp_path / "half", "a")
    repeat(halving, -8.0, callbacks=[lambda p: p.iteration == whole.n_iter - 1], checkpoint=file, **options)
    on = repeat(halving, -8.0, checkpoint=Checkpoint(tmp_path / "half", "a"), **options)
    assert (on.n_iter, on.state, on.status) == (whole.n_iter, whole.state, whole.status)
