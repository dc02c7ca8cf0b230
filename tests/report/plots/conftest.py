"""Axes for the tests of plots."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure


@pytest.fixture
def ax() -> Iterator[Axes]:
    """Axes of a figure that pyplot knows nothing of; a plot that is given axes makes no other figure."""
    before = plt.get_fignums()
    yield Figure().subplots()
    assert plt.get_fignums() == before, "pyplot state was made although axes were given"
