"""What tests of choices by evidence share."""

import pytest

from nongauss.auto import forest


@pytest.fixture(scope="module")
def few_trees():
    """Forests of fewer trees, which tell the same in less time."""
    before = forest.N_TREES
    forest.N_TREES = 40
    yield
    forest.N_TREES = before
