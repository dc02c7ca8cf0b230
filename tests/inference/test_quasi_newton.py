import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import rosen, rosen_der

from nongauss.core.contracts import Status
from nongauss.inference.quasi_newton import ascend

OPEN = [(None, None)] * 2


def hill(x):
    return -rosen(x), -rosen_der(x), {"bound": -rosen(x), "distance": float(np.abs(x - 1).max())}


def climb(objective=hill, x=(-1.2, 1.0), bounds=OPEN, **settings):
    return ascend(objective, np.array(x), bounds, **{"max_iter": 200, "tol": 1e-9, **settings})


def test_finds_the_top_and_keeps_a_trace():
    result = climb()
    assert_allclose(result.state, [1, 1], atol=1e-3)
    assert result.status is Status.CONVERGED
    assert [row["iteration"] for row in result.trace] == list(range(1, result.n_iter + 1))
    assert (np.diff([row["bound"] for row in result.trace]) >= 0).all()
    assert result.trace[-1]["distance"] < 1e-3


def test_keeps_within_bounds():
    assert climb(bounds=[(None, 0.5), (None, None)]).state[0] <= 0.5


def test_max_iter_callback_and_former():
    short = climb(max_iter=3)
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 3
    on = climb(x=short.state, former=short)
    assert on.trace[:3] == short.trace
    assert on.n_iter == len(on.trace)
    stopped = climb(callbacks=[lambda p: p.iteration == 2])
    assert (stopped.status, stopped.n_iter) == (Status.STOPPED, 2)


def test_turns_back_where_there_is_no_value():
    def walled(x):
        if x[0] > 0.9:
            raise np.linalg.LinAlgError
        return hill(x)

    result = climb(walled)
    assert result.state[0] <= 0.9
    assert result.trace[-1]["bound"] > -0.1


def test_no_value_at_the_start():
    result = climb(lambda x: (np.nan, x, {}))
    assert result.status is Status.NONFINITE
    assert_allclose(result.state, [-1.2, 1.0])


def test_ctrl_c_keeps_the_best_point():
    def interrupted(progress):
        if progress.iteration == 4:
            raise KeyboardInterrupt

    result = climb(callbacks=[interrupted])
    assert (result.status, result.n_iter) == (Status.STOPPED, 4)

    def at_once(x):
        at_once.calls += 1
        if at_once.calls == 2:
            raise KeyboardInterrupt
        return hill(x)

    at_once.calls = 0
    with pytest.raises(KeyboardInterrupt):
        climb(at_once)


def test_verbose_says_how_it_ended(capsys):
    climb(verbose=1)
    assert Status.CONVERGED.value in capsys.readouterr().out
