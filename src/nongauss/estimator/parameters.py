"""Parameter constraints as data: the only place that touches scikit-learn's private words for them."""

from __future__ import annotations

from typing import Any

from sklearn.utils._param_validation import (
    Hidden,
    Interval,
    InvalidParameterError,
    Options,
    StrOptions,
    validate_parameter_constraints,
)

__all__ = [
    "Hidden",
    "Interval",
    "InvalidParameterError",
    "Options",
    "StrOptions",
    "check_parameters",
    "validate_parameter_constraints",
]


def check_parameters(estimator: Any) -> None:
    """Check an estimator's own parameters against its `_parameter_constraints`.

    Parameters of nested estimators are theirs to check. Raises `InvalidParameterError` (a ValueError
    and a TypeError) that names the class, the parameter, what is allowed and what was got.
    """
    validate_parameter_constraints(
        estimator._parameter_constraints,
        estimator.get_params(deep=False),
        caller_name=type(estimator).__name__,
    )
