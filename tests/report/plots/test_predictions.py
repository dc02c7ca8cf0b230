from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from nongauss.core.errors import InputError
from nongauss.report import CalibrationDisplay, PredictiveDisplay, TraceDisplay
from report.stand_in import NormalRows, StandIn, small_data


@pytest.fixture(scope="module")
def fitted():
    X, y = small_data()
    return StandIn().fit(X, y), X, y


@pytest.fixture(autouse=True)
def leaves_matplotlib_alone():
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before


def _check(display, ax):
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    ax.figure.canvas.draw()


def test_trace(fitted, ax):
    model, _, _ = fitted
    _check(TraceDisplay.from_estimator(model, ax=ax, color="red"), ax)
    line = ax.lines[0]
    np.testing.assert_array_equal(line.get_ydata(), model.trace_["bound"])
    assert line.get_color() == "red"
    assert "nats" in ax.get_ylabel()
    with pytest.raises(InputError, match="no column 'nope'"):
        TraceDisplay.from_estimator(model, quantity="nope", ax=ax)
    with pytest.raises(InputError, match="trace_"):
        TraceDisplay.from_estimator(object(), ax=ax)


def test_a_steep_start_does_not_flatten_the_rest_of_the_trace(ax):
    bound = np.concatenate([[-1e6, -1e5], -100 - 50 * np.exp(-np.arange(60) / 8)])
    TraceDisplay(trace=pd.DataFrame({"bound": bound})).plot(ax=ax)
    assert ax.get_ylim()[0] > -400
    assert ax.get_ylim()[1] > -100


def test_predictive_marks_observations_outside_their_interval(ax):
    y = np.array([0.0, 1.0, 5.0])
    display = PredictiveDisplay.from_predictions(
        y, [0.0, 1.0, 2.0], interval=([-1.0, 0.0, 1.0], [1.0, 2.0, 3.0]), target="length", unit="cm", ax=ax
    )
    _check(display, ax)
    assert ax.get_ylabel() == "observed length (cm)"
    inside, missed = ax.collections[:2]
    assert (len(inside.get_segments()), len(missed.get_segments())) == (2, 1)
    assert "missed" in missed.get_label()


def test_predictive_from_estimator_thins_many_rows_but_keeps_the_extremes(fitted, ax):
    model, X, y = fitted
    _check(PredictiveDisplay.from_estimator(model, X, y, max_rows=20, ax=ax), ax)
    points = ax.collections[-1].get_offsets()
    prediction = model.predict(X)
    assert len(points) == 20
    assert points[:, 0].min() == prediction.min()
    assert points[:, 0].max() == prediction.max()
    assert "20 of 120" in ax.get_title(loc="left")


def test_predictive_without_intervals_and_bad_shapes(ax):
    _check(PredictiveDisplay.from_predictions([1.0, 2.0], [[1.0], [2.0]], ax=ax), ax)
    with pytest.raises(InputError, match="one target"):
        PredictiveDisplay(y_true=np.zeros((3, 2)), y_pred=np.zeros((3, 2)))
    with pytest.raises(InputError, match="y_pred"):
        PredictiveDisplay(y_true=np.zeros(3), y_pred=np.zeros(2))


def test_calibration_curve_counts_intervals_that_hold_the_observation(ax):
    rng = np.random.RandomState(0)
    distribution = NormalRows(np.zeros(300), np.ones(300))
    y = rng.normal(size=300) * 1.5
    display = CalibrationDisplay.from_predictions(y, distribution, ax=ax)
    _check(display, ax)
    for place in (10, 50, 90):
        low, high = distribution.interval(display.nominal[place]).T
        assert display.observed[place] == np.mean((low <= y) & (y <= high))
    assert display.observed[-1] == 1
    assert display.observed[90] < 0.9  # overconfident, as built


@pytest.mark.parametrize("kind", ["coverage", "pit"])
def test_calibration_from_estimator(fitted, ax, kind):
    model, X, y = fitted
    _check(CalibrationDisplay.from_estimator(model, X, y, kind=kind, ax=ax), ax)


def test_calibration_refuses_what_it_cannot_draw(ax):
    with pytest.raises(InputError, match="kind"):
        CalibrationDisplay(pit=[0.5]).plot(ax=ax, kind="violin")
    with pytest.raises(InputError, match="predict_distribution"):
        CalibrationDisplay.from_estimator(object(), None, None, ax=ax)


def test_new_figure_where_no_axes_are_given(fitted):
    backend = mpl.get_backend()
    plt.switch_backend("agg")
    try:
        display = TraceDisplay.from_estimator(fitted[0])
        assert display.figure_.number in plt.get_fignums()
        plt.close(display.figure_)
    finally:
        plt.switch_backend(backend)
