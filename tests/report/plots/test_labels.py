from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from nongauss.core.errors import InputError
from nongauss.report.plots.confusion import draw_confusion
from nongauss.report.plots.reliability import ReliabilityDisplay
from report.stand_in import small_data


def test_reliability_counts_what_happened_in_bins_of_equal_size(ax):
    p = np.linspace(0, 1, 400)
    happened = np.random.RandomState(0).rand(400) < p
    display = ReliabilityDisplay.from_predictions(
        np.where(happened, "yes", "no"), np.stack([1 - p, p], axis=1), ["no", "yes"], ax=ax
    )
    assert display.counts.tolist() == [40] * 10
    for part in range(10):
        rows = slice(40 * part, 40 * part + 40)
        assert display.predicted[part] == pytest.approx(p[rows].mean())
        assert display.observed[part] == pytest.approx(happened[rows].mean())
    assert (np.abs(display.observed - display.predicted) < 4 * display.chance + 1e-9).all()
    assert "'yes'" in ax.get_xlabel()
    assert display.ax_ is ax
    ax.figure.canvas.draw()


def test_overconfidence_shows():
    p = np.repeat([0.05, 0.95], 100)
    happened = np.tile([True, True, True, False, False], 40)
    display = ReliabilityDisplay(probability=p, happened=happened)
    assert (np.abs(display.observed - display.predicted) > 4 * display.chance).all()


def test_of_several_classes_each_counts(ax):
    X, y = small_data()
    grade = np.digitize(y, [1.5, 4.0])
    model = LogisticRegression().fit(X, grade)
    display = ReliabilityDisplay.from_estimator(model, X, pd.Series(grade), ax=ax, color="red")
    assert display.counts.sum() == 360
    assert display.observed @ display.counts == pytest.approx(120)
    assert ax.lines[1].get_color() == "red"


def test_few_rows_make_one_bin(ax):
    display = ReliabilityDisplay.from_predictions([0, 1, 1], np.full((3, 2), 0.5), [0, 1], ax=ax)
    assert display.observed == pytest.approx([2 / 3])


def test_what_cannot_be_drawn(ax):
    with pytest.raises(InputError, match="predict_proba"):
        ReliabilityDisplay.from_estimator(object(), None, None, ax=ax)
    with pytest.raises(InputError, match="2 columns"):
        ReliabilityDisplay.from_predictions([0, 1], [[1.0], [1.0]], [0, 1], ax=ax)


@pytest.mark.parametrize("form", [list, np.array, pd.Series, pd.Categorical])
def test_confusion_keeps_the_order_of_the_classes_and_labels_that_are_none(ax, form):
    display = draw_confusion(
        form(["low", "high", "odd", "high"]), np.array(["low", "low", "low", "high"]), ["low", "high"], ax=ax
    )
    assert [label.get_text() for label in ax.get_xticklabels()] == ["low", "high", "odd"]
    np.testing.assert_array_equal(display.confusion_matrix, [[1, 0, 0], [1, 1, 0], [1, 0, 0]])
    ax.figure.canvas.draw()


def test_confusion_of_grades_in_half_steps(ax):
    display = draw_confusion(np.array([1.0, 1.5, 1.5]), np.array([1.0, 1.0, 1.5]), [1.0, 1.5, 2.0], ax=ax)
    np.testing.assert_array_equal(display.confusion_matrix, [[1, 0, 0], [1, 1, 0], [0, 0, 0]])


def test_confusion_of_many_classes_has_no_numbers(ax):
    draw_confusion(np.arange(40), np.arange(40)[::-1], np.arange(40), ax=ax)
    assert not ax.texts
