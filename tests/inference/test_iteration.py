import math

import pytest

from nongauss.core.contracts import Status
from nongauss.inference.iteration import repeat, run_epochs


def halving(state):
    """Towards 0 from below, halving the distance."""
    return 0.5 * state, {"bound": 0.5 * state, "size": -state}


def test_it_converges_by_the_rule_and_keeps_a_trace():
    result = repeat(halving, -8.0, max_iter=100, least_gain=lambda bound: 0.01 * max(1.0, abs(bound)))
    assert result.status is Status.CONVERGED
    assert result.n_iter == len(result.trace) < 15
    assert result.trace[-1]["bound"] == result.state
    assert {"iteration", "bound", "seconds", "size"} == set(result.trace[-1])


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


def test_epochs_in_place_are_numbered_and_copied():
    seen = []

    def epoch(number):
        seen.append(number)
        return {"bound": math.nan if number == 3 else float(number)}

    result = run_epochs(epoch, lambda: list(seen), 5)
    assert (result.status, result.state, result.n_iter) == (Status.NONFINITE, [0, 1, 2], 3)
    assert run_epochs(epoch, lambda: list(seen), 2, former=result).n_iter == 5
