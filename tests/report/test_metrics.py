from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import kstest, norm, poisson
from sklearn import metrics as sk

from nongauss.core.errors import InputError
from nongauss.report.metrics import (
    classification_metrics,
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


def test_pit_values_of_counts_are_uniform():
    class Counts:
        def cdf(self, y):
            return poisson.cdf(y, 1.3)

    y = poisson.rvs(1.3, size=4000, random_state=0)
    values = pit_values(Counts(), y)
    assert kstest(values, "uniform").pvalue > 0.01
    assert (values[y == 0] < poisson.cdf(0, 1.3)).all()
    np.testing.assert_array_equal(values, pit_values(Counts(), y))


def test_interval_of_two_rows_is_read_by_column():
    lower, upper = split_interval(np.array([[0.0, 1.0], [2.0, 3.0]]))
    assert (lower.tolist(), upper.tolist()) == ([0, 2], [1, 3])
    with pytest.raises(InputError, match="shape"):
        split_interval(np.zeros(4))


def test_table_leaves_blank_what_a_model_lacks():
    header, rows = metric_table({"a": {"rmse": 1.0, "coverage_90": 0.912}, "b": {"rmse": 2.0}})
    assert header == ["model", "RMSE", "90 % coverage"]
    assert rows == [["a", "1", "91.2 %"], ["b", "2", ""]]


def some_labels(n=40, classes=("high", "low", "mid")):
    rng = np.random.RandomState(0)
    p = rng.dirichlet(np.ones(len(classes)), size=n)
    return rng.choice(classes, size=n), p, np.array(classes, dtype=object)


def test_classification_figures_are_those_of_scikit_learn():
    y, p, classes = some_labels()
    figures = classification_metrics(y, p, classes, seconds=0.5)
    predicted = classes[p.argmax(axis=1)].astype(str)
    assert figures["log_loss"] == pytest.approx(sk.log_loss(y, p))
    assert figures["accuracy"] == sk.accuracy_score(y, predicted)
    assert figures["balanced_accuracy"] == pytest.approx(sk.balanced_accuracy_score(y, predicted))
    assert figures["brier"] == pytest.approx(np.mean(np.sum((p - (y[:, None] == classes)) ** 2, axis=1)))
    assert (figures["n_rows"], figures["seconds"]) == (40, 0.5)
    assert "level_error" not in figures


def test_brier_of_two_classes_is_the_usual_one():
    y, p, classes = some_labels(classes=(False, True))
    assert classification_metrics(y, p, classes)["brier"] == pytest.approx(sk.brier_score_loss(y, p[:, 1]))


def test_error_in_levels_counts_steps_of_the_given_order():
    y, _, classes = some_labels()
    p = np.tile([0.2, 0.5, 0.3], (3, 1))
    y, predicted = ["low", "high", "none"], ["mid", "low", "none"]
    levels = ["none", "low", "mid", "high"]
    figures = classification_metrics(y, p, classes, levels=levels, predicted=["mid", "low", "low"])
    assert figures["level_error"] == pytest.approx((1 + 2 + 1) / 3)
    assert classification_metrics(y, p, classes, levels=levels)["level_error"] == pytest.approx(
        (0 + 2 + 1) / 3
    )
    with pytest.raises(InputError, match="`predicted` holds the label 'none'"):
        classification_metrics(y, p, classes, predicted=predicted)


def test_a_label_that_the_model_never_saw_costs_much_but_not_everything():
    figures = classification_metrics([1, 2, 7], np.full((3, 2), 0.5), [1, 2])
    assert figures["log_loss"] == pytest.approx((2 * np.log(2) - np.log(np.finfo(float).eps)) / 3)
    assert figures["accuracy"] == pytest.approx(1 / 3)
    assert figures["balanced_accuracy"] == pytest.approx(1 / 3)
    assert figures["brier"] == pytest.approx((0.25 + 0.25 + 0.75) / 3)


def test_weights_of_labelled_rows():
    y, p, classes = some_labels()
    weight = np.random.RandomState(1).randint(0, 3, size=len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    repeated = classification_metrics(y[rows], p[rows], classes, levels=sorted(classes))
    weighted = classification_metrics(y, p, classes, levels=sorted(classes), sample_weight=weight)
    for name in ("log_loss", "accuracy", "balanced_accuracy", "brier", "level_error"):
        assert weighted[name] == pytest.approx(repeated[name]), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": [[0.5, 0.4], [0.5, 0.5]]}, "sum to 1, got .* in row 0"),
        ({"probabilities": [[0.5, 0.5], [np.nan, 0.5]]}, "in row 1"),
        ({"probabilities": [[1.0], [1.0]]}, "2 columns"),
        ({"y": [1]}, "`y` must be one label for each of the 2 rows"),
        ({"levels": [1]}, "`predicted` holds the label 2|`y` holds the label 2"),
    ],
)
def test_probabilities_that_are_none(change, message):
    arguments = {"y": [1, 2], "probabilities": [[0.9, 0.1], [0.2, 0.8]], "classes": [1, 2], **change}
    with pytest.raises(InputError, match=message):
        classification_metrics(**arguments)


def test_shares_are_shown_in_percent():
    assert format_figure("balanced_accuracy", 0.5) == "50.0 %"
    assert format_figure("log_loss", 0.5) == "0.5"


def test_figures_alone_load_nothing_that_draws():
    code = "import sys, nongauss.report.metrics; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"matplotlib", "jinja2", "typer", "rich"} & set(done.stdout.split())
