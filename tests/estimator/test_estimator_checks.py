"""scikit-learn's own conformance checks, for every estimator of the catalogue, none expected to fail."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from catalogue import CATALOGUE

# Many checks feed degenerate data on purpose (constant columns, one row), and we rightly warn.
pytestmark = [
    pytest.mark.gate,
    pytest.mark.filterwarnings("ignore::nongauss.core.errors.NongaussWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


@parametrize_with_checks([entry.make() for entry in CATALOGUE])
def test_sklearn_check(estimator, check):
    check(estimator)
