from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from nongauss.core.errors import InputError
from nongauss.report.plots.style import axes_or_new, figure_of, finish, vector


def test_the_figure_of_axes_in_a_sub_figure():
    figure = Figure()
    ax = figure.subfigures(1, 2)[0].subplots()
    assert figure_of(ax) is figure
    assert axes_or_new(ax) is ax
    finish(ax, "A title", "x", "y")
    assert ax.get_title(loc="left") == "A title"


def test_one_value_a_row():
    np.testing.assert_array_equal(vector([[1], [2]], "y"), [1.0, 2.0])
    for values in ([], [[1, 2]], 3):
        with pytest.raises(InputError, match="`y` must be one value a row"):
            vector(values, "y")
    with pytest.raises(InputError, match="`y` must have 3 values, one an observation, got 2"):
        vector([1, 2], "y", like=np.zeros(3))
