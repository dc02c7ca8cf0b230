"""Dates: what they become, and that every family and the command line take them."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

import nongauss
from encoding import encoder_of as whole_encoder
from nongauss.cli.app import app
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables.column import ColumnKind
from nongauss.tables.frame import read_input
from nongauss.tables.learn import as_source, learn
from nongauss.tables.roles import understand_columns
from nongauss.tables.target_kinds import column_kind

N = 240
RNG = np.random.default_rng(0)
DAYS = pd.date_range("2023-01-02", periods=N, freq="4D")
TIMES = pd.date_range("2023-01-02 08:30", periods=N, freq="31h")
X = RNG.normal(size=N)


def encoder_of(cells):
    return learn(as_source(pd.DataFrame({"when": cells, "x": X[: len(cells)]}))).encoder


def polars(stamps):
    pl = pytest.importorskip("polars")
    return pl.DataFrame({"when": [t.date() for t in stamps], "x": X})


@pytest.mark.parametrize(
    "form",
    [
        lambda t: t,
        lambda t: t.tz_localize("UTC"),
        lambda t: t.astype("datetime64[s]"),
        lambda t: [stamp.to_pydatetime() for stamp in t],
        lambda t: [stamp.to_pydatetime().replace(tzinfo=dt.UTC) for stamp in t],
        lambda t: t.strftime("%Y-%m-%d %H:%M"),
        lambda t: t.strftime("%Y-%m-%dT%H:%M:%SZ"),
    ],
)
def test_a_date_is_the_same_in_whatever_form_it_comes(form):
    encoder, expected = encoder_of(form(TIMES)), encoder_of(TIMES)
    assert encoder == expected
    table = pd.DataFrame({"when": TIMES, "x": X})
    assert_array_equal(encoder.as_scaled(table.assign(when=form(TIMES))), expected.as_scaled(table))
    assert column_kind(form(TIMES)) is ColumnKind.DATE
    assert understand_columns(read_input(pd.DataFrame({"when": form(TIMES)})))[0].role == "date"


def test_dates_of_python_polars_and_numpy_are_read():
    expected = encoder_of(DAYS)
    assert encoder_of([stamp.date() for stamp in DAYS]) == expected
    assert encoder_of(DAYS.strftime("%Y-%m-%d")) == expected
    assert learn(as_source(polars(DAYS))).encoder == expected
    assert_array_equal(read_input(np.array([["2020-01-01"]], dtype="M8[D]")).column(0).values, [18262.0])


def test_a_date_is_its_days_and_the_calendar_parts_that_come_again():
    encoder = encoder_of(DAYS)
    assert [code.name for code in encoder.columns] == ["when", "when (month)", "when (weekday)", "x"]
    assert (encoder.n_features, encoder.places) == (2, (0, 0, 0, 1))
    when, month, weekday, _ = encoder.raw(pd.DataFrame({"when": DAYS, "x": X}))
    assert_array_equal(when.values, 4.0 * np.arange(N))
    assert_array_equal([month.levels[code] for code in month.codes], DAYS.month_name())
    assert_array_equal([weekday.levels[code] for code in weekday.codes], DAYS.day_name())
    assert weekday.levels[0] == "Monday"
    assert encoder.columns[2].ranks == tuple(range(7))
    assert [code.name for code in encoder_of(DAYS[:60]).columns] == ["when", "when (weekday)", "x"]
    assert [code.name for code in encoder_of(DAYS[::7]).columns] == ["when", "when (month)", "x"]
    assert [code.name for code in encoder_of(DAYS[:3]).columns] == ["when", "x"]
    hour = encoder_of(TIMES).raw(pd.DataFrame({"when": TIMES, "x": X}))[2]
    assert hour.levels[8] == "08:00"
    assert_array_equal([hour.levels[code] for code in hour.codes], TIMES.strftime("%H:00"))


def test_the_four_views_of_a_date():
    table = pd.DataFrame({"when": [*DAYS[:59], pd.NaT], "x": X[:60]})
    encoder = learn(as_source(table)).encoder
    assert encoder.encoded_names[:3] == ("when", "when=missing", "when (weekday)=Monday")
    assert encoder.rank_names == ("when", "when (weekday)", "x")
    assert encoder.one_hot_names[:2] == ("when", "when (weekday)=Monday")
    scaled, ranks, one_hot = encoder.as_scaled(table), encoder.as_ranks(table), encoder.as_one_hot(table)
    assert_allclose([scaled[:59, 0].mean(), scaled[:59, 0].std()], [0, 1], atol=1e-12)
    assert scaled[59, :9].tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert_array_equal(ranks[:59, 1], DAYS[:59].dayofweek)
    assert np.isnan(ranks[59, :2]).all()
    assert np.isnan(one_hot[59, :8]).all()


def test_values_are_printed_as_dates():
    when, month, *_ = encoder_of(DAYS).columns
    assert (when.shown(0), when.shown(59.0), month.shown("May")) == ("2023-01-02", "2023-03-02", "May")
    assert when.shown(np.inf) == "inf"
    when = encoder_of(TIMES).columns[0]
    assert (when.shown(0), when.shown(0.5), when.shown(15.5 / 24)) == (
        "2023-01-02 08:30",
        "2023-01-02 20:30",
        "2023-01-03",
    )


def test_a_time_zone_is_said_and_its_clock_is_taken():
    local = TIMES.tz_localize("Asia/Tokyo")
    for cells in (local, local.strftime("%Y-%m-%dT%H:%M:%S%z")):
        with pytest.warns(
            NongaussWarning, match=r"'when' has dates of the time zone (Asia/Tokyo|\+09:00), which"
        ):
            encoder = encoder_of(cells)
        plain = encoder_of(TIMES)
        assert [(c.name, c.levels, c.origin) for c in encoder.columns] == [
            (c.name, c.levels, c.origin) for c in plain.columns
        ]
        table = pd.DataFrame({"when": TIMES, "x": X})
        for zone in ("Asia/Tokyo", "UTC", "America/New_York"):
            other = table.assign(when=TIMES.tz_localize("Asia/Tokyo").tz_convert(zone))
            assert_array_equal(encoder.as_scaled(other), plain.as_scaled(table))


def test_new_rows_are_taken_for_what_the_fit_took_them():
    encoder = encoder_of(DAYS)
    assert encoder.raw(pd.DataFrame({"when": ["2024-01-01"], "x": [0.0]}))[0].values == [364.0]
    assert np.isnan(encoder.raw(pd.DataFrame({"when": [None], "x": [0.0]}))[0].values).all()
    for odd, shown in (("soon", "'soon'"), (3.0, "3.0")):
        with pytest.raises(InputError, match=f"'when' held dates when .* holds {shown} in row 0"):
            encoder.as_scaled(pd.DataFrame({"when": [odd], "x": [0.0]}))
    labels = whole_encoder(pd.DataFrame({"a": ["2024-01-01", "soon", "late"] * 2}))
    for date in ("2024-01-01", dt.date(2024, 1, 1)):
        assert_array_equal(labels.as_scaled(pd.DataFrame({"a": [date]})), [[1, 0, 0]])
    numbers = whole_encoder(pd.DataFrame({"a": [1.0, 2.0]}))
    with pytest.raises(InputError, match="held numbers when the model was fitted, but holds the label '2024"):
        numbers.as_scaled(pd.DataFrame({"a": [dt.date(2024, 1, 1)]}))
    for text in ("2024-02-30", "2024-13-01"):
        assert read_input(pd.DataFrame({"a": [text, "2024-01-01"]})).column(0).kind == "label"


def test_parts_add_up_to_the_dates_of_the_table(tmp_path):
    table = pd.DataFrame({"when": TIMES, "x": X})
    table.to_parquet(tmp_path / "t.parquet", row_group_size=50)
    whole, parts = learn(as_source(table)).encoder, learn(as_source(tmp_path)).encoder
    assert [(c.name, c.levels, c.origin) for c in parts.columns] == [
        (c.name, c.levels, c.origin) for c in whole.columns
    ]
    assert_allclose(parts.as_scaled(table), whole.as_scaled(table), atol=1e-11)


TABLE = pd.DataFrame({"when": DAYS, "x": X, "colour": np.where(X > 0, "red", "blue")})
LATE = np.where(np.arange(N) > N // 2, "late", "early")
small = {"random_state": 0}
FAMILIES = {
    "tggm": (nongauss.TGGMRegressor((4,), n_members=2, max_epochs=2, **small), np.arange(N) / N),
    "gp": (nongauss.SparseGPRegressor(n_inducing=6, max_iter=4, **small), np.arange(N) / N),
    "rank": (nongauss.RankFactorClassifier(2, max_iter=4, **small), LATE),
    "harmonium": (nongauss.HarmoniumClassifier(4, max_epochs=2, **small), LATE),
    "rectangle": (nongauss.RectangleMixture(2, n_init=2, max_iter=10, **small), None),
}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*activations are outside")
def test_every_family_takes_dates(name):
    model, y = FAMILIES[name]
    predicted = model.fit(TABLE, y).predict(TABLE)
    as_text = TABLE.assign(when=TABLE.when.dt.strftime("%Y-%m-%d"))
    assert_array_equal(model.predict(as_text), predicted)
    assert_array_equal(model.predict(read_input(TABLE)), predicted)
    assert model.n_features_in_ == 3
    assert list(model.feature_names_in_) == list(TABLE)


def test_rules_print_dates():
    when = np.where(np.arange(N) < N // 2, DAYS, DAYS + pd.Timedelta(days=4000))
    table = pd.DataFrame({"when": when, "x": X + 8.0 * (np.arange(N) < N // 2)})
    model = nongauss.RectangleMixture(2, rule_columns=["when"], n_init=3, random_state=0).fit(table)
    text = " ".join(model.rule_text_.values())
    assert "when at most 20" in text
    assert "when at least 20" in text


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_command_line_takes_dates(tmp_path):
    table = TABLE.assign(y=np.arange(N) / N + 0.1 * X, when=TABLE.when.dt.strftime("%Y-%m-%d"))
    table.to_csv(tmp_path / "t.csv", index=False)
    where = ["--save", str(tmp_path / "m.nongauss"), "--report", str(tmp_path / "r.html")]
    fit = [
        "fit",
        str(tmp_path / "t.csv"),
        "--target",
        "y",
        "--set",
        "max_epochs=3",
        "--set",
        "n_members=2",
        *where,
    ]
    result = CliRunner().invoke(app, fit)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "r.html").read_text()
    assert "date" in page
    out = str(tmp_path / "p.csv")
    result = CliRunner().invoke(app, ["predict", where[1], str(tmp_path / "t.csv"), "--out", out])
    assert result.exit_code == 0, result.output
    assert len(pd.read_csv(out)) == N


def test_clusters_of_the_command_line_print_dates(tmp_path):
    late = np.arange(N) > N // 2
    table = pd.DataFrame({"when": DAYS.strftime("%Y-%m-%d"), "x": X + 8.0 * late})
    table.to_csv(tmp_path / "t.csv", index=False)
    result = CliRunner().invoke(
        app, ["cluster", str(tmp_path / "t.csv"), "--clusters", "2", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output


def test_texts_that_are_dates_in_some_parts_only_are_labels_in_all(tmp_path):
    for number, cells in enumerate((["2020-01-01", "2020-02-02"], ["none", "none"], ["none"] * 2)):
        pd.DataFrame({"d": cells * 5, "v": np.arange(10.0)}).to_parquet(tmp_path / f"{number}.parquet")
    whole = pd.concat([pd.read_parquet(file) for file in sorted(tmp_path.iterdir())], ignore_index=True)
    disk, memory = learn(as_source(tmp_path)).encoder, learn(as_source(whole)).encoder
    assert disk.encoded_names == memory.encoded_names == ("d=2020-01-01", "d=2020-02-02", "d=none", "v")


def test_a_text_among_dates_that_is_none_counts_as_missing_and_is_named():
    frame = pd.DataFrame({"d": pd.date_range("2020-01-01", periods=30).astype(str), "v": np.arange(30.0)})
    encoder = whole_encoder(frame)
    odd = frame.assign(d=["2020-01-05", "", "hello", *frame["d"][3:]])
    with pytest.warns(NongaussWarning, match=r"missing: '' \(1 cell\), 'hello' \(1 cell\) in column 'd'"):
        days = encoder.raw(odd)[0].values
    assert_array_equal(days[:4], [4.0, np.nan, np.nan, 3.0])
    with pytest.raises(InputError, match="held dates when the model was fitted"):
        encoder.raw(frame.assign(d="hello"))


def test_hours_weekdays_and_months_have_a_place_on_their_cycle():
    """A share of a turn by what the level is, whether or not its neighbours occur."""
    stamps = pd.to_datetime(["2023-01-02 06:00", "2023-07-04 18:00", "2024-01-03 23:00", "2024-02-01 06:00"])
    columns = encoder_of(stamps).columns
    turns = {code.part.partition("|")[0]: code.turns for code in columns if code.name != "x"}
    assert turns["hour"] == (6 / 24, 18 / 24, 23 / 24)
    assert turns["month"] == (0.0, 1 / 12, 6 / 12)
    assert turns["weekday"] == (0.0, 1 / 7, 2 / 7, 3 / 7)
    assert turns["time"] == ()
