import math

import pytest

from nongauss.core.contracts import Status
from nongauss.inference.iteration import climb


def halving(state: float) -> tuple[float, float]:
    """Goes half way to zero; the bound is minus the square of where it begins."""
    return state / 2, -(state**2)


def test_it_climbs_until_nothing_is_gained():
    result = climb(halving, 1.0, max_iter=100, tol=1e-6)
    assert result.status is Status.CONVERGED
    assert [line["bound"] for line in result.trace[:3]] == [-1.0, -0.25, -0.0625]
    assert -(result.state**2) == result.trace[-1]["bound"]
    assert result.n_iter == len(result.trace)


def test_iterations_run_out():
    assert climb(halving, 1.0, max_iter=2, tol=0.0).status is Status.MAX_ITER


@pytest.mark.parametrize(
    ("bounds", "status"), [([1.0, math.nan], Status.NONFINITE), ([1.0, 0.5], Status.BOUND_DECREASED)]
)
def test_a_bad_bound_ends_it_at_the_state_before(bounds, status):
    result = climb(lambda n: (n + 1, bounds[n]), 0, max_iter=9, tol=0.0)
    assert result.status is status
    assert result.state == 0


def test_people_stop_it():
    result = climb(halving, 1.0, max_iter=9, tol=0.0, callbacks=[lambda p: p.iteration == 2], verbose=1)
    assert result.status is Status.STOPPED
    assert result.n_iter == 2

    def interrupted(state: int) -> tuple[int, float]:
        if state == 3:
            raise KeyboardInterrupt
        return state + 1, float(state)

    assert climb(interrupted, 0, max_iter=9, tol=0.0).status is Status.STOPPED
    with pytest.raises(KeyboardInterrupt):
        climb(interrupted, 3, max_iter=9, tol=0.0)
