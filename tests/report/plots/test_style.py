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


@pytest.mark.parametrize(
    ("top", "text"), [(800_000, "800,000"), (1.2e6, "1.2M"), (3e9, "3B"), (2_000, "2000"), (0.5, "0.5")]
)
def test_large_numbers_along_an_axis_have_no_power_of_ten_beside_it(ax, top, text):
    ax.plot([0, 1], [0, top])
    ax.set_yticks([0, top])
    finish(ax, "", "", "")
    ax.figure.canvas.draw()
    assert ax.get_yticklabels()[-1].get_text() == text
    assert ax.yaxis.get_offset_text().get_text() == ""
