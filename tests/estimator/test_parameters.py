import numbers
from typing import Literal, NamedTuple

import numpy as np
import pytest

from nongauss.estimator.base import (
    Interval,
    InvalidParameterError,
    NongaussEstimator,
    PositiveFloat,
    PositiveInt,
    StrOptions,
    check_parameters,
    settings_of,
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


class Typed(NongaussEstimator):
    """What is allowed stands in the types of `__init__` alone."""

    def __init__(
        self,
        size: PositiveInt | Literal["auto"] = "auto",
        *,
        rate: PositiveFloat = 1.0,
        kind: Literal["a", "b"] = "a",
        digits: int | None = None,
        warm: bool = False,
    ) -> None:
        self.size, self.rate, self.kind, self.digits, self.warm = size, rate, kind, digits, warm


class TypedRecipe(NamedTuple):
    size: int | None
    rate: float
    kind: str
    seed: int
    n_classes: int = 0


@pytest.mark.parametrize(
    "wrong",
    [{"size": 0}, {"size": "all"}, {"rate": 0.0}, {"kind": "c"}, {"digits": 1.5}, {"warm": "yes"}],
)
def test_types_say_what_is_allowed(wrong):
    check_parameters(Typed(3, rate=2, kind="b", digits=np.int64(2), warm=True))
    with pytest.raises(InvalidParameterError, match=f"'{next(iter(wrong))}' parameter of Typed"):
        check_parameters(Typed(**wrong))


def test_settings_are_read_by_name_and_a_word_for_a_number_is_left_to_the_fit():
    got = settings_of(TypedRecipe, Typed(np.int32(4), rate=2), seed=7)
    assert got == TypedRecipe(4, 2.0, "a", 7)
    assert type(got.size) is int
    assert type(got.rate) is float
    assert settings_of(TypedRecipe, Typed(), seed=7, rate=0.5) == TypedRecipe(None, 0.5, "a", 7)
