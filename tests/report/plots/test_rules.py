from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from nongauss import RectangleMixture
from nongauss.core.errors import InputError
from nongauss.report import ClusterProfileDisplay, ParallelRulesDisplay, RectangleDisplay
from nongauss.report.pictures import rule_figures
from nongauss.report.plots.rectangles import best_pairs


class TwoRules:
    """What the plots read of a clusterer: a is below 1 or above it, b matters to the second cluster only."""

    cluster_names_ = ("low", "high")
    rules_ = pd.DataFrame(
        [("low", "a", -np.inf, 1.0), ("high", "a", 1.0, np.inf), ("high", "b", 0.5, 2.0)],
        columns=["cluster", "column", "lower", "upper"],
    )

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 1).astype(int)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.uniform(0, 2, (60, 3)), columns=list("abc"))


def test_rectangles_end_at_the_bounds_and_open_ones_at_the_frame(frame, ax):
    display = RectangleDisplay.from_estimator(TwoRules(), frame, ax=ax)
    assert display.columns == ("a", "b")
    low, high = ax.patches
    assert low.get_x() + low.get_width() == pytest.approx(1.0)
    assert high.get_x() == pytest.approx(1.0)
    assert high.get_y() == pytest.approx(0.5)
    assert ax.get_xlabel() == "a"
    ax.figure.canvas.draw()
    with pytest.raises(InputError, match="'z'"):
        RectangleDisplay.from_estimator(TwoRules(), frame, columns=("a", "z"), ax=ax)


def test_parallel_rules_have_a_bar_a_condition(frame, ax):
    display = ParallelRulesDisplay.from_estimator(TwoRules(), frame, ax=ax)
    assert list(display.values) == ["a", "b"]
    assert len(ax.patches) == 3
    ax.figure.canvas.draw()


def test_of_many_columns_those_in_most_rules_are_drawn_and_it_is_said(ax):
    model, columns = TwoRules(), [f"c{i:02d}" for i in range(12)]
    lines = [("low", c, -np.inf, 1.0) for c in columns] + [("high", c, 1.0, np.inf) for c in columns[4:]]
    model.rules_ = pd.DataFrame(lines, columns=["cluster", "column", "lower", "upper"])
    frame = pd.DataFrame(np.random.default_rng(0).uniform(0, 2, (60, 12)), columns=columns)
    display = ParallelRulesDisplay.from_estimator(model, frame, ax=ax)
    assert list(display.values) == [*columns[:2], *columns[4:]]
    assert ax.get_xlabel() == "the 10 columns in most rules, of 12 in rules"


def test_the_profile_is_the_mean_in_standard_deviations(frame, ax):
    profile = ClusterProfileDisplay.from_estimator(TwoRules(), frame, ax=ax).profile
    own = frame["a"] > 1
    expected = (frame.loc[own, "a"].mean() - frame["a"].mean()) / frame["a"].std(ddof=0)
    assert profile.loc["a", "high"] == pytest.approx(expected)
    assert profile.index[0] == "a"
    ax.figure.canvas.draw()


def test_pairs_that_part_most_rows_come_first(frame):
    rules, labels = TwoRules.rules_, TwoRules().predict(frame)
    assert best_pairs(rules, frame[["c", "b", "a"]], labels, ["low", "high"]) == [("b", "a")]
    assert best_pairs(rules[:2], frame, labels, ["low", "high"], 1) == [("a", "b")]


def test_figures_for_a_report(frame):
    assert len(rule_figures(TwoRules(), frame)) == 3  # one pair of columns has rules


class ByColour:
    """Clusters by sets of labels, and one whole number."""

    cluster_names_ = ("warm", "cold")
    rules_ = pd.DataFrame(
        [
            ("warm", "colour", -np.inf, np.inf, ("red", "pink")),
            ("cold", "colour", -np.inf, np.inf, ("blue",)),
            ("cold", "year", 2008.0, 2008.0, None),
        ],
        columns=["cluster", "column", "lower", "upper", "levels"],
    )

    def predict(self, X):
        return (X["colour"] == "blue").astype(int).to_numpy()


def test_labels_and_few_whole_numbers_are_drawn_as_they_are(ax):
    colours = ["red", "blue", "pink", None] * 5
    frame = pd.DataFrame({"colour": colours, "year": [2007, 2008, 2009, 2008] * 5})
    display = ParallelRulesDisplay.from_estimator(ByColour(), frame, ax=ax)
    assert display.levels == {"colour": ["blue", "pink", "red"]}
    assert len(ax.patches) == 4  # a bar a level, and the year
    assert min(bar.get_height() for bar in ax.patches) > 0.2  # one year alone has a height
    assert {text.get_text().strip() for text in ax.texts} == {"blue", "pink", "red"}
    profile = ClusterProfileDisplay.from_estimator(ByColour(), frame, ax=Figure().subplots()).profile
    assert {"year", "colour = blue", "colour = red", "colour = pink"} == set(profile.index)
    assert len(rule_figures(ByColour(), frame)) == 2  # one column of numbers makes no scatter plot
    assert len(rule_figures(ByColour(), frame[["colour"]])) == 2


def dated() -> tuple[pd.DataFrame, RectangleMixture]:
    """A table of two clusters that a day parts, and its model."""
    rng = np.random.default_rng(0)
    late = np.arange(120) % 2
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, 120) + 600 * late, unit="D")
    X = pd.DataFrame({"day": day, "x": rng.normal(size=120) + 4 * late})
    model = RectangleMixture(2, rule_columns=["day"], structure_columns=["x"], n_init=2, random_state=0)
    return X, model.fit(X)


def test_bounds_on_dates_are_drawn_and_ticks_are_dates():
    X, model = dated()
    display = RectangleDisplay.from_estimator(model, X, columns=("day", "x"), ax=Figure().subplots())
    display.figure_.canvas.draw()
    ticks = [pd.Timestamp(tick.get_text()) for tick in display.ax_.get_xticklabels()]
    assert min(ticks) < X["day"].min()
    assert max(ticks) > X["day"].max()
    # A tick says the day of the row that stands there.
    assert [display.shown["day"](x) for x in display.x[:5]] == [str(d.date()) for d in X["day"][:5]]
    # Each rule's edge lies between the last day of one cluster and the first of the other.
    ends = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in display.ax_.patches]
    cut = sorted(ends)[1][0]
    early, late = display.x[np.arange(120) % 2 == 0], display.x[np.arange(120) % 2 == 1]
    assert early.max() < cut <= late.min()


def test_a_column_of_dates_is_marked_by_its_first_and_last_day():
    X, model = dated()
    display = ParallelRulesDisplay.from_estimator(model, X, ax=Figure().subplots())
    texts = {text.get_text().strip() for text in display.ax_.texts}
    assert {str(X["day"].min().date()), str(X["day"].max().date())} <= texts
    assert len(rule_figures(model, X)) >= 3


@pytest.mark.filterwarnings("ignore::nongauss.core.errors.NongaussWarning")
def test_the_profile_has_the_columns_that_the_model_reads_and_no_others(ax):
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 40)
    spend = np.where(group == 0, rng.normal(100, 10, 80), rng.normal(900, 10, 80))
    frame = pd.DataFrame(
        {
            "customer_id": rng.permutation(80) + 90_000,
            "spend": [f"${value:,.2f}" for value in spend],
            "age": rng.normal(40, 5, 80).round(),
        }
    )
    model = RectangleMixture(n_clusters=2, n_init=1, random_state=0).fit(frame)
    profile = ClusterProfileDisplay.from_estimator(model, frame, ax=ax).profile
    assert profile.index[0] == "spend"
    assert set(profile.index) <= {"spend", "age"}
    labels = model.predict(frame)
    expected = (spend[labels == 0].mean() - spend.mean()) / spend.std()
    assert profile.loc["spend"].iloc[0] == pytest.approx(expected, abs=1e-3)
