from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.core.errors import InputError
from nongauss.report import (
    ClassFeaturesDisplay,
    FeatureColumnsDisplay,
    feature_figures,
    feature_lines,
)


class ThreeFeatures:
    """What the plots read: the second feature tells the classes apart, the third does a little."""

    components_ = np.array([[0.0, 0.1, 0.0], [0.0, 0.0, 3.0], [-2.0, 0.5, 0.0]])
    visible_std_ = np.array([1.0, 1.0, 0.5])
    encoded_names_ = ("a", "b", "c")
    classes_ = np.array(["no", "yes"])
    class_means_ = np.array([[0.5, 0.1, 0.3], [0.5, 0.9, 0.5]])
    class_spreads_ = np.full((2, 3), 0.2)

    def transform(self, X):
        return np.asarray(X, dtype=float)

    def top_features(self, k):
        return [["b"], ["c"], ["b"]]


def test_features_that_tell_classes_apart_come_first_with_their_spread(ax):
    display = ClassFeaturesDisplay.from_estimator(ThreeFeatures(), ax=ax)
    assert display.features == ["F1", "F2", "F0"]
    assert_allclose(display.means, [[0.1, 0.3, 0.5], [0.9, 0.5, 0.5]])
    bars = [patch.get_width() for patch in ax.patches]
    assert_allclose(bars[:2], [0.1, 0.9])
    spread = ax.containers[0].lines[2][0].get_segments()[1]
    assert_allclose(np.ptp(spread[:, 0]), 0.4)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["no", "yes"]
    ax.figure.canvas.draw()
    with pytest.raises(InputError, match="class_means_"):
        ClassFeaturesDisplay.from_estimator(object(), ax=ax)
    with pytest.raises(InputError, match="shapes"):
        ClassFeaturesDisplay(means=[[1.0]], spreads=[[1.0]], classes="ab", features="a")


def test_lifts_are_in_standard_deviations_of_the_columns(ax):
    display = FeatureColumnsDisplay.from_estimator(ThreeFeatures(), ax=ax)
    assert display.columns == ["c", "a", "b"]
    assert display.features == ["F1", "F2", "F0"]
    assert_allclose(display.lift, [[1.5, 0.0, 0.0], [0.0, -2.0, 0.0], [0.0, 0.5, 0.1]])
    ax.figure.canvas.draw()
    with pytest.raises(InputError, match="harmonium"):
        FeatureColumnsDisplay.from_estimator(object(), ax=ax)
    with pytest.raises(InputError, match="lift"):
        FeatureColumnsDisplay(lift=[[1.0]], columns="ab", features="a")


def test_lines_and_figures_for_a_report():
    lines = feature_lines(ThreeFeatures(), [[0.0, 1.0, 0.5], [1.0, 0.0, 0.5], [0.5, 0.2, 0.9]])
    assert lines[0] == ("F1", "0.40", "yes", "c", "0, 2, 1")
    assert [line[0] for line in lines] == ["F1", "F2", "F0"]
    assert len(feature_figures(ThreeFeatures())) == 2
