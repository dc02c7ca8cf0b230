import pytest

from nongauss.core.contracts import Status
from nongauss.inference.sweeps import sweep_until


def halving(state):
    """Towards 0 from below, halving the distance."""
    return 0.5 * state, {"bound": 0.5 * state, "size": -state}


def test_converges_by_the_rule_and_keeps_a_trace():
    result = sweep_until(halving, -8.0, max_iter=100, tol=0.01)
    assert result.status is Status.CONVERGED
    assert result.n_iter == len(result.trace) < 15
    assert {"iteration", "bound", "seconds", "size"} <= set(result.trace[-1])


def test_without_tolerance_the_schedule_is_completed_and_continued():
    first = sweep_until(halving, -8.0, max_iter=3)
    assert first.status is Status.COMPLETED
    second = sweep_until(halving, first.state, max_iter=2, former=first)
    assert second.n_iter == 5
    assert [row["iteration"] for row in second.trace] == [1, 2, 3, 4, 5]
    assert sweep_until(halving, -8.0, max_iter=3, tol=0.0).status is Status.MAX_ITER


def test_several_runs_tell_an_observer_when_the_last_one_ends():
    heard = []
    first = sweep_until(halving, -8.0, max_iter=3, expected=6)
    sweep_until(halving, -8.0, max_iter=3, former=first, expected=6, callbacks=[heard.append])
    assert {progress.max_iter for progress in heard} == {6}


def test_a_callback_ends_it_and_nan_keeps_a_good_state():
    assert sweep_until(halving, -8.0, max_iter=9, callbacks=[lambda p: p.iteration == 2]).n_iter == 2
    broken = sweep_until(lambda s: (s + 1, {"bound": float("nan") if s == 2 else s}), 0, max_iter=9)
    assert broken.status is Status.NONFINITE
    assert broken.state == 2


def test_ctrl_c_stops_with_what_is_there():
    def interrupted(state):
        if state == 2:
            raise KeyboardInterrupt
        return state + 1, {"bound": float(state)}

    assert sweep_until(interrupted, 0, max_iter=9).status is Status.STOPPED
    with pytest.raises(KeyboardInterrupt):
        sweep_until(interrupted, 2, max_iter=9)
