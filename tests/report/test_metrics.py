from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from nongauss.core.contracts import InputError
from nongauss.report.metrics import (
    format_figure,
    metric_table,
    pit_values,
    regression_metrics,
    split_interval,
)
from report.stand_in import NormalRows


def test_figures_by_hand():
    figures = regression_metrics(
        [1.0, 2.0, 3.0, 6.0], [1.0, 2.0, 5.0, 5.0], log_density=[-1, -2, -3, -2],
        interval=([0, 0, 4, 4], [1, 3, 6, 7]), seconds=1.5,
    )  # fmt: skip
    assert figures["rmse"] == pytest.approx(math.sqrt(5 / 4))
    assert figures["mae"] == pytest.approx(3 / 4)
    assert figures["r2"] == pytest.approx(1 - 5 / 14)
    assert figures["log_density"] == -2
    assert figures["coverage_90"] == 3 / 4  # an observation on the edge (row 0) is inside
    assert figures["width_90"] == pytest.approx((1 + 3 + 2 + 3) / 4)
    assert (figures["seconds"], figures["n_rows"]) == (1.5, 4)


def test_weight_two_is_the_row_twice_and_zero_is_the_row_gone():
    rng = np.random.RandomState(0)
    y, mean, density, low = rng.normal(size=(4, 6))
    high, weight = low + 1.5, np.array([2, 1, 0, 1, 2, 1])
    interval = np.stack([low, high], axis=1)
    rows = np.repeat(np.arange(6), weight)
    repeated = regression_metrics(y[rows], mean[rows], density[rows], interval[rows])
    weighted = regression_metrics(y, mean, density, interval, sample_weight=weight)
    for name in ("rmse", "mae", "r2", "log_density", "coverage_90", "width_90"):
        assert weighted[name] == pytest.approx(repeated[name])


def test_what_is_not_given_is_left_out_and_r2_of_a_constant_is_undefined():
    figures = regression_metrics(np.full(3, 1e6 + 0.1), np.zeros(3))
    assert set(figures) == {"n_rows", "rmse", "mae", "r2"}
    assert math.isnan(figures["r2"])
    assert format_figure("r2", figures["r2"]) == ""


def test_outputs_count_equally():
    y = np.array([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]])
    mean = y + np.array([1.0, 3.0])
    figures = regression_metrics(y, mean)
    assert figures["rmse"] == pytest.approx(math.sqrt((1 + 9) / 2))
    assert figures["r2"] == pytest.approx(np.mean([1 - 3 / 2, 1 - 27 / 200]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, np.nan], [1.0, 1.0]), "row 1"),
        (([1.0, 2.0], [1.0, 2.0, 3.0]), "`mean` must have the shape"),
        (([], []), "no rows"),
        (([1.0, 2.0], [1.0, 2.0], [0.0]), "one value for each"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        regression_metrics(*arguments)


@pytest.mark.parametrize("weight", [[0, 0], [-1, 2], [1], [np.nan, 1]])
def test_bad_weights(weight):
    with pytest.raises(InputError, match="sample_weight"):
        regression_metrics([1.0, 2.0], [1.0, 2.0], sample_weight=weight)


def test_pit_values_are_the_distribution_function_at_the_observation():
    y = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(pit_values(NormalRows(np.zeros(3), np.ones(3)), y), norm.cdf(y))

    class Wrong:
        def cdf(self, y):
            return np.full(len(y), 1.2)

    with pytest.raises(InputError, match="outside"):
        pit_values(Wrong(), y)


def test_interval_of_two_rows_is_read_by_column():
    lower, upper = split_interval(np.array([[0.0, 1.0], [2.0, 3.0]]))
    assert (lower.tolist(), upper.tolist()) == ([0, 2], [1, 3])
    with pytest.raises(InputError, match="shape"):
        split_interval(np.zeros(4))


def test_table_leaves_blank_what_a_model_lacks():
    header, rows = metric_table({"a": {"rmse": 1.0, "coverage_90": 0.912}, "b": {"rmse": 2.0}})
    assert header == ["model", "RMSE", "90 % coverage"]
    assert rows == [["a", "1", "91.2 %"], ["b", "2", ""]]
