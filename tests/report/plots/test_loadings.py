from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from nongauss.core.errors import InputError
from nongauss.report import CoefficientDisplay, FactorNetworkDisplay, LoadingImageDisplay


class Fitted:
    """A classifier as the displays see it."""

    def coefficients(self, coverage: float) -> pd.DataFrame:
        index = pd.MultiIndex.from_product([["yes"], ["f0", "f1"]])
        return pd.DataFrame({"mean": [1.0, 0.1], "lower": [0.5, -0.2], "upper": [1.5, 0.4]}, index=index)

    @property
    def loadings_(self) -> pd.DataFrame:
        return pd.DataFrame(
            [[2.0, 0.0], [-1.0, 0.1], [0.0, 3.0]], index=["a", "b", "c"], columns=["f0", "f1"]
        )


def test_coefficients_away_from_zero_stand_out():
    display = CoefficientDisplay.from_estimator(Fitted())
    colours = {line.get_color() for line in display.ax_.lines}
    assert len(colours) >= 3
    with pytest.raises(InputError, match="output"):
        CoefficientDisplay.from_estimator(Fitted(), output=3)
    plt.close("all")


def test_the_network_joins_each_factor_with_its_largest_columns():
    display = FactorNetworkDisplay.from_estimator(Fitted(), n_columns=2)
    assert sorted(display.edges) == [(0, 0), (1, 0), (1, 1), (2, 1)]
    assert {text.get_text() for text in display.ax_.texts} == {"a", "b", "c", "f0", "f1"}
    plt.close("all")


def test_a_column_stands_beside_the_factor_that_shows_it():
    loadings = pd.DataFrame([[0.0, 5.0], [2.0, 3.0]], index=["b", "a"], columns=["f0", "f1"])
    display = FactorNetworkDisplay(loadings, n_columns=1).plot()
    height = {text.get_text(): text.get_position()[1] for text in display.ax_.texts}
    assert height["a"] > height["b"]
    plt.close("all")


def test_columns_come_to_their_pixels():
    display = LoadingImageDisplay(np.array([[1.0], [2.0]]), (2, 2), place=[3, 0]).plot()
    assert display.images[0].tolist() == [[2.0, 0.0], [0.0, 1.0]]
    assert display.figure_ is not None
    with pytest.raises(InputError, match="pixel"):
        LoadingImageDisplay(np.ones((5, 1)), (2, 2))
    plt.close("all")


def test_the_place_of_dropped_pixels_follows_from_the_estimator():
    class Pixels:
        n_features_in_ = 4
        loadings_ = pd.DataFrame([[1.0], [2.0]], index=["x3", "x0"], columns=["f0"])

    fitted: Any = Pixels()
    assert LoadingImageDisplay.from_estimator(fitted, (2, 2)).images[0].tolist() == [[2.0, 0.0], [0.0, 1.0]]
    fitted.feature_names_in_ = np.array(["x0", "x3", "p", "q"])
    assert LoadingImageDisplay.from_estimator(fitted, (2, 2)).images[0].tolist() == [[2.0, 1.0], [0.0, 0.0]]
    fitted.loadings_ = pd.DataFrame([[1.0]], index=["colour=red"])
    with pytest.raises(InputError, match="colour=red"):
        LoadingImageDisplay.from_estimator(fitted, (2, 2))
    plt.close("all")
