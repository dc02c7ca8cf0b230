import numbers

import pytest

from nongauss.estimator.base import (
    Interval,
    InvalidParameterError,
    NongaussEstimator,
    StrOptions,
    check_parameters,
)


class Declared(NongaussEstimator):
    _parameter_constraints = {  # noqa: RUF012
        "rate": [Interval(numbers.Real, 0, None, closed="neither"), StrOptions({"learn"})],
        "random_state": ["random_state"],
    }

    def __init__(self, rate=1.0, random_state=None):
        self.rate = rate
        self.random_state = random_state


@pytest.mark.parametrize("rate", [0.5, 3, "learn"])
def test_what_is_declared_passes(rate):
    check_parameters(Declared(rate, random_state=0))


@pytest.mark.parametrize("rate", [0.0, -1, "fast", None, float("nan")])
def test_anything_else_is_named_with_what_is_allowed(rate):
    with pytest.raises(
        InvalidParameterError, match=r"'rate' parameter of Declared must be .*'learn'"
    ) as caught:
        check_parameters(Declared(rate))
    assert isinstance(caught.value, ValueError)
    assert repr(rate) in str(caught.value)
