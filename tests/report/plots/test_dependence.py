from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LinearRegression, LogisticRegression

from nongauss import SparseGPRegressor, TGGMRegressor
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.report.plots.dependence import DependenceDisplay
from nongauss.report.plots.grid import named_every, print_by
from nongauss.tables.kinds.date import WEEKDAYS
from report.stand_in import NormalRows, StandIn, small_data


def test_it_is_the_partial_dependence_of_scikit_learn(ax):
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(5, random_state=0).fit(X, y)
    theirs = partial_dependence(model, X, [2], grid_resolution=9, method="brute", kind="average")
    ours = DependenceDisplay.from_estimator(model, X, 2, max_rows=len(X), grid_size=9, ax=ax)
    np.testing.assert_allclose(ours.grid, theirs["grid_values"][0], rtol=1e-2, atol=1e-3)
    exact = DependenceDisplay.from_estimator(model, np.round(X, 1), "x2", max_rows=len(X), grid_size=9, ax=ax)
    theirs = partial_dependence(model, np.round(X, 1), [2], grid_resolution=9, method="brute")
    np.testing.assert_allclose(exact.grid, theirs["grid_values"][0])
    np.testing.assert_allclose(exact.average, theirs["average"])
    assert exact.lower is None


def test_a_large_table_is_asked_in_parts(ax, monkeypatch):
    X, y = small_data()
    model = StandIn().fit(X, y)
    whole = DependenceDisplay.from_estimator(model, X, 1, ax=ax)
    monkeypatch.setattr("nongauss.report.plots.relevance._MOST_ROWS_AT_ONCE", 250)
    parted = DependenceDisplay.from_estimator(model, X, 1, ax=ax)
    np.testing.assert_allclose(parted.average, whole.average)
    np.testing.assert_allclose(parted.lower, whole.lower)


def test_the_band_is_the_mean_of_the_rows_intervals(ax):
    X, y = small_data()
    model = StandIn().fit(X, y)
    display = DependenceDisplay.from_estimator(
        model, X, 1, max_rows=200, coverage=0.5, target="price", unit="€", ax=ax, color="red"
    )
    rows = X.copy()
    rows[:, 1] = display.grid[3]
    assert display.average[0, 3] == pytest.approx(model.predict(rows).mean())
    low, high = model.predict_interval(rows, coverage=0.5).mean(axis=0)
    assert (display.lower[3], display.upper[3]) == pytest.approx((low, high))
    assert np.diff(display.average[0]) / np.diff(display.grid) == pytest.approx(-2.0, abs=0.1)
    assert ax.get_ylabel() == "predicted price (€)"
    assert (ax.get_xlabel(), ax.lines[0].get_color()) == ("x1", "red")
    assert "50 % of observations" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert display.ax_ is ax


def mixed_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.integers(0, 60, 80),
            "colour": rng.choice(["red", "green", None], 80),
            "grade": pd.Categorical(
                rng.choice(["low", "mid", "high"], 80), ["low", "mid", "high"], ordered=True
            ),
            "new": rng.integers(0, 2, 80),
            "price": np.where(rng.uniform(size=80) < 0.2, np.nan, rng.normal(size=80)),
        }
    )
    y = 0.1 * frame["size"] + 3.0 * (frame["colour"] == "red") + rng.normal(size=80)
    return frame, y.to_numpy()


@pytest.mark.parametrize(
    "model",
    [
        SparseGPRegressor(n_inducing=10, max_iter=20, tol=0.1),
        pytest.param(TGGMRegressor(max_epochs=5), marks=pytest.mark.gate),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_numbers_labels_and_gaps_of_our_models(ax, model):
    frame, y = mixed_frame()
    model.set_params(random_state=0).fit(frame, y)
    grids = {}
    for column in frame.columns:
        display = DependenceDisplay.from_estimator(model, frame, column, ax=ax)
        assert np.isfinite(display.average).all()
        assert (display.lower < display.average[0]).all()
        assert (display.average[0] < display.upper).all()
        grids[column] = display.grid.tolist()
    assert len(grids["size"]) == len(grids["price"]) == 15
    assert sorted(grids["colour"]) == ["green", "red"]
    assert grids["grade"] == ["low", "mid", "high"]
    assert grids["new"] == [0, 1]
    ax.figure.canvas.draw()


class Twice(StandIn):
    """A second output, ten times the first."""

    def predict_distribution(self, X):
        own = super().predict_distribution(X)
        return NormalRows(np.outer(own.mean, [1, 10]), np.outer(own.std, [1, 10]))


def test_of_several_targets_one_is_shown(ax):
    X, y = small_data()
    for both in (LinearRegression().fit(X, np.stack([y, 10 * y], axis=1)), Twice().fit(X, y)):
        one, other = (DependenceDisplay.from_estimator(both, X, 0, output=o, ax=ax) for o in (0, 1))
        np.testing.assert_allclose(10 * one.average, other.average)
    np.testing.assert_allclose(10 * one.upper, other.upper)


def test_classes(ax):
    X, y = load_iris(return_X_y=True, as_frame=True)
    three = LogisticRegression(max_iter=1000).fit(X, y)
    column = "petal length (cm)"
    display = DependenceDisplay.from_estimator(three, X, column, ax=ax)
    assert display.classes == [0, 1, 2]
    np.testing.assert_allclose(display.average.sum(axis=0), 1.0)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]
    two = LogisticRegression(max_iter=1000).fit(X, np.where(y == 2, "yes", "no"))
    display = DependenceDisplay.from_estimator(two, X, column, ax=Figure().subplots())
    assert display.ax_.get_ylabel() == "predicted probability of 'yes'"
    assert (np.diff(display.average[0]) > 0).all()
    assert display.ax_.get_legend() is None


def test_fits_of_which_one_lacks_a_class_give_no_error(ax):
    X, y = load_iris(return_X_y=True)
    fits = [LogisticRegression(max_iter=1000).fit(X[part], y[part]) for part in (y < 3, y < 2)]
    drawn = DependenceDisplay.from_estimator(fits[0], X, 0, fits=fits, ax=ax)
    assert drawn.average.shape == drawn.error.shape
    assert (drawn.error == 0).all()


def test_many_labels_are_cut_to_the_most_frequent(ax):
    X = pd.DataFrame({"place": np.repeat([f"town {i:02}" for i in range(20)], np.arange(1, 21))})
    model = SparseGPRegressor(n_inducing=5, max_iter=100, tol=0.1, random_state=0).fit(
        X, np.arange(210.0) % 7
    )
    display = DependenceDisplay.from_estimator(model, X, "place", max_rows=20, ax=ax)
    assert display.grid.tolist() == [f"town {i:02}" for i in range(19, 7, -1)]
    assert ax.get_xlabel() == "place (12 of 20 labels)"


def test_what_cannot_be_drawn(ax):
    X, y = small_data()
    model = StandIn().fit(X, y)
    for column in ("size", 3, -1):
        with pytest.raises(InputError, match="it has x0, x1, x2"):
            DependenceDisplay.from_estimator(model, X, column, ax=ax)
    X[:, 1] = np.nan
    with pytest.raises(InputError, match="'x1' has no values"):
        DependenceDisplay.from_estimator(model, X, 1, ax=ax)
    with pytest.raises(InputError, match=r"shape \(1, 2\)"):
        DependenceDisplay(column="a", grid=[1, 2], average=[[1.0]])


@pytest.mark.parametrize("form", ["typed", "text", "zone", "hours"])
def test_dates_are_printed_on_the_axis(ax, form):
    days = pd.Series(pd.date_range("2024-01-01", periods=120, freq="7h" if form == "hours" else "D"))
    when = days.dt.strftime("%Y-%m-%d") if form == "text" else days
    frame = pd.DataFrame({"when": days.dt.tz_localize("UTC") if form == "zone" else when})
    frame.loc[5, "when"] = None
    y = np.arange(120.0)
    model = DaysSince().fit(frame.drop(index=5), y[:-1])
    display = DependenceDisplay.from_estimator(model, frame, "when", max_rows=10, ax=ax)
    assert len(display.grid) == 15
    assert pd.Series(display.grid).isin(frame["when"]).all()
    assert (np.diff(display.average[0]) > 0).all()
    np.testing.assert_allclose(display.average[0], display.places)
    ax.figure.canvas.draw()
    texts = [tick.get_text() for tick in ax.get_xticklabels()]
    assert any(text.startswith("2024-0") for text in texts)
    assert all(len(display.shown(place)) == 10 for place in display.places) is (form != "hours")


class DaysSince(StandIn):
    """Predicts the days since 1970."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        stamps = pd.to_datetime(X["when"], utc=True).dt.tz_localize(None)
        days = (stamps - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D")
        return np.nan_to_num(days.to_numpy(dtype=float))

    def predict_distribution(self, X):
        return NormalRows(self.predict(X), np.ones(len(X)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_dates_of_one_of_our_models(ax):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"when": pd.date_range("2023-03-05", periods=90), "x": rng.normal(size=90)})
    model = SparseGPRegressor(n_inducing=10, max_iter=20, tol=0.1, random_state=0)
    model.fit(frame, np.arange(90) / 10 + rng.normal(size=90))
    display = DependenceDisplay.from_estimator(model, frame, "when", ax=ax)
    assert display.shown(display.places[0]) == "2023-03-09"
    assert display.average[0, -1] > display.average[0, 0] + 3


class InKilos(DaysSince):
    """Predicts the number of kilograms."""

    def predict(self, X):
        return X["when"].str.removesuffix(" kg").fillna("0").to_numpy(dtype=float)


def test_numbers_as_text_are_places_on_the_axis_with_their_unit(ax):
    frame = pd.DataFrame({"when": [f"{n} kg" for n in range(1, 61)]})
    display = DependenceDisplay.from_estimator(InKilos(), frame, "when", max_rows=5, ax=ax)
    np.testing.assert_allclose(display.average[0], display.places)
    assert display.shown(3.0) == "3 kg"


class Week(DaysSince):
    """A rise of .01 a day, and Saturdays that are 5 above, Sundays 5 below the other days."""

    def predict(self, X):
        stamps = pd.to_datetime(X["when"])
        days = (stamps - pd.Timestamp("2022-01-01")) / pd.Timedelta("1D")
        weekday = stamps.dt.dayofweek
        return (0.01 * days + 5.0 * (weekday == 5) - 5.0 * (weekday == 6)).to_numpy()


@pytest.mark.parametrize("closed", [False, True])
def test_the_curve_along_dates_is_the_trend_without_the_week(ax, closed):
    days = pd.Series(pd.date_range("2022-03-01", periods=800))
    if closed:  # no Wednesdays, and gaps
        days = days[(days.dt.dayofweek != 2) & (np.arange(800) % 11 != 3)].reset_index(drop=True)
    frame = pd.DataFrame({"when": days.dt.strftime("%a %d %b %Y")})
    display = DependenceDisplay.from_estimator(Week(), frame, "when", max_rows=50, ax=ax)
    slope = np.polyfit(display.places, display.average[0], 1)
    assert slope[0] == pytest.approx(0.01, rel=0.03)
    assert np.abs(display.average[0] - np.polyval(slope, display.places)).max() < 0.1
    assert ax.get_xlabel() == "when (each row keeps its weekday)"


def test_the_curve_along_weekdays_is_the_week_without_the_trend(ax):
    frame = pd.DataFrame({"when": pd.date_range("2022-03-01", periods=800)})
    display = DependenceDisplay.measured(Week(), frame, "when", max_rows=50, part="weekday")
    assert display.column == "when (weekday)"
    assert display.grid.tolist() == list(WEEKDAYS)
    week = display.average[0] - display.average[0, :5].mean()
    np.testing.assert_allclose(week, [0, 0, 0, 0, 0, 5, -5], atol=0.05)
    display.plot(ax=ax)


def test_a_cycle_that_the_grid_can_show_is_shown(ax):
    frame = pd.DataFrame({"when": pd.date_range("2022-03-01", periods=18)})
    display = DependenceDisplay.from_estimator(Week(), frame, "when", ax=ax)
    assert np.ptp(display.average[0]) > 9
    assert ax.get_xlabel() == "when"


class Plain(StandIn):
    """Predicts nothing of interest."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def predict_distribution(self, X):
        return NormalRows(self.predict(X), np.ones(len(X)))


@pytest.mark.parametrize(
    ("order", "often"),
    [
        (["18-24", "25-34", "35-44", "45-54", "55-64", "65+"], "45-54"),
        (["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"], "Agree"),
        (["red", "blue", "green"], "red"),  # no order: the most frequent first
    ],
)
def test_labels_of_a_known_order_stand_in_it(ax, order, often):
    cells = [*reversed(order), *[often] * 3, *order[1:2], None]
    frame = pd.DataFrame({"grade": cells})
    display = DependenceDisplay.from_estimator(Plain(), frame, "grade", ax=ax)
    assert display.grid.tolist() == order


def test_names_below_the_axis_and_bands_of_probabilities_have_room(ax):
    names = [f"a long name {i}" for i in range(8)]
    X = pd.DataFrame({"name": np.repeat(names, 5)})
    display = DependenceDisplay.measured(Plain(), X, "name")
    assert display.depth == pytest.approx(0.065 * 13)
    assert DependenceDisplay.measured(Plain(), pd.DataFrame({"x": np.arange(9.0)}), "x").depth == 0.0
    error = np.full((2, 3), 0.2)
    p = np.array([[0.05, 0.5, 0.9], [0.95, 0.5, 0.1]])
    classes = DependenceDisplay(
        column="x", grid=[1, 2, 3], average=p, classes=["a", "b"], error=error, observed=np.arange(4.0)
    )
    classes.plot(ax=ax)
    ends = np.concatenate([band.get_paths()[0].vertices[:, 1] for band in ax.collections[:1]])
    assert ends.min() == 0.0
    assert ends.max() == 1.0


def test_pairs_stand_in_the_order_of_their_numbers(ax):
    rng = np.random.default_rng(0)
    upper = rng.integers(90, 180, 200)
    X = pd.DataFrame({"BP": [f"{high}/{high - 50}" for high in upper]})
    model = TGGMRegressor(max_epochs=2, random_state=0)
    with pytest.warns(NongaussWarning, match="pairs of numbers"):
        model.fit(X, upper.astype(float))
    display = DependenceDisplay.from_estimator(model, X, "BP", max_rows=10, ax=ax)
    shown = [int(pair.split("/")[0]) for pair in display.grid]
    assert shown == sorted(shown)
    assert shown[0] < np.quantile(upper, 0.1) < np.quantile(upper, 0.9) < shown[-1]
    assert ax.get_xlabel().startswith(f"BP ({len(shown)} of ")


def test_of_many_names_every_so_many_is_written():
    hours = [f"{hour:02}:00" for hour in range(24)]
    assert [name for name in named_every(hours) if name] == ["00:00", "06:00", "12:00", "18:00"]
    assert named_every(hours[:12]) == hours[:12]


def test_amounts_along_an_axis_have_commas(ax):
    X = pd.DataFrame({"price": [f"£{1000 * k:,}" for k in range(50, 90)]})
    model = TGGMRegressor(max_epochs=2, random_state=0).fit(X, np.arange(40.0))
    display = DependenceDisplay.from_estimator(model, X, "price", max_rows=5, ax=ax)
    assert display.shown(83_000.0) == "£83,000"


def test_ticks_have_no_digits_of_rounding():
    ax = Figure().add_subplot()
    ax.plot([0.42, 3.9], [0.0, 1.0])
    print_by(str, ax, np.array([0.42, 3.9]))
    ax.figure.canvas.draw()
    assert all(len(label.get_text()) <= len("0.6") for label in ax.get_xticklabels())
