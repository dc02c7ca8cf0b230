"""Dates as people write them: each form by its exact day, the order of day and month, zones, times of day."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from encoding import encoder_of
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables.date_text import LOCAL, read_dates
from nongauss.tables.kinds import decode, kind_of

DAY = dt.datetime(2024, 12, 31)
AFTERNOON = dt.datetime(2024, 12, 31, 14, 5)
DAYS = (
    "2024-12-31|2024/12/31|2024.12.31|31.12.2024|12/31/2024|31/12/2024|31-12-2024|31-Dec-2024"
    "|31 December 2024"
    "|31. Dec. 2024|Dec 31, 2024|december 31 2024|Tue, 31 Dec 2024|Dec 31st, 2024|2024-Dec-31|20241231"
    "|31-Dec-24|31.12.24|12/31/24|  2024-12-31 |31 Dec '24|2024年12月31日|2024년 12월 31일|Tue 31.12.2024"
)
TIMES = (
    "2024-12-31T14:05|2024-12-31 14:05:00|12/31/2024 2:05 PM|31.12.2024, 14:05|Dec 31, 2024 at 2:05pm|"
    "Tue Dec 31 14:05:00 2024|Tue Dec 31 14:05:00 UTC 2024|31/Dec/2024:14:05:00 +0000|31DEC2024:14:05:00|"
    "31.12.2024, 14:05 Uhr|2024年12月31日 14:05|2024-12-31 14:05:00.000|"
    "2024-12-31T14:05Z|2024-12-31 14:05 UTC|Tue, 31 Dec 2024 14:05:00 GMT"
)
DECEMBER = ("2024-12", "12/2024", "Dec 2024", "2024 Dec", "Dec-24", "Dec '24", "2024年12月")
FORMS = [
    *((form, DAY) for form in DAYS.split("|")),
    *((form, AFTERNOON) for form in TIMES.split("|")),
    ("12/31/2024 12:05 AM", dt.datetime(2024, 12, 31, 0, 5)),
    ("2024-12-31T14:05:30.25", dt.datetime(2024, 12, 31, 14, 5, 30, 250000)),
    ("2024-12-31 14:05+05:30", dt.datetime(2024, 12, 31, 8, 35)),
    *((form, dt.datetime(2024, 12, 1)) for form in DECEMBER),
    *((form, dt.datetime(2024, 10, 1)) for form in ("2024 Q4", "2024Q4", "Q4 2024", "2024-Q4")),
    ("2024-W05-3", dt.datetime(2024, 1, 31)),
    ("2024-W53", dt.datetime(2024, 12, 30)),  # the year has 52 weeks, and the next one begins here
    ("29.2.2024", dt.datetime(2024, 2, 29)),
    ("1900-03-01", dt.datetime(1900, 3, 1)),
]
NO_DATES = [
    *(
        "2023-02-29",
        "2024-13-01",
        "2024-00-10",
        "hello",
        "5",
        "2024-12-31 25:00",
        "31.31.2024",
        "2024-12-31x",
        "Dec 31 14:61:00 2024",
        "2024年13月1日",
        "xyz 31.12.2024",
    ),
]


def days(*texts, order=""):
    return read_dates(pa.array(texts, pa.large_string()), np.ones(len(texts), np.intp), order)


def since_1970(stamp):
    return (stamp - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1)


@pytest.mark.parametrize(("text", "stamp"), FORMS)
def test_each_form_is_its_day(text, stamp):
    np.testing.assert_allclose(days(text).days, [since_1970(stamp)], rtol=0, atol=1e-9)


@pytest.mark.parametrize("text", NO_DATES)
def test_what_is_no_date(text):
    assert np.isnan(days(text).days).all()


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %b %Y", "%B %d, %Y", "%d-%b-%y"])
@pytest.mark.parametrize("time", ["", " %H:%M", " %I:%M %p", "T%H:%M:%S"])
def test_dates_that_are_written_are_read_back(form, time):
    rng = np.random.default_rng(0)
    low, high = (np.datetime64(day).astype("M8[m]").astype(np.int64) for day in ("1970-01-01", "2068-12-31"))
    stamps = pd.Series(rng.integers(low, high, 400).astype("datetime64[m]"))
    stamps = stamps if time else stamps.dt.floor("D")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = decode("a", stamps.dt.strftime(form + time))
    assert found.kind == "date"
    expected = (stamps.to_numpy() - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-9)


def test_the_order_of_day_and_month_is_that_of_the_whole_column():
    assert days("03/04/2024", "13/04/2024").order == "d/m/y"
    assert days("03/04/2024", "04/13/2024").order == "m/d/y"
    assert days("24/04/03", "99/04/13").order == "y/m/d"
    assert days("03.04.2024", "04.05.2024").order == "d/m/y"
    assert days("03.04.2024").notes == ()
    with pytest.warns(NongaussWarning, match="'a' has dates such as '03/04/2024', read with the month"):
        encoder = encoder_of(pd.DataFrame({"a": ["03/04/2024", "05/06/2024"]}))
    assert encoder.columns[0].shown(0.0) == "2024-03-04"


def test_new_rows_are_read_in_the_order_of_the_fit():
    encoder = encoder_of(pd.DataFrame({"a": ["01/02/2024", "13/02/2024", "20/02/2024"]}))
    for new in ("06/02/2024", dt.date(2024, 2, 6)):
        assert_array_equal(encoder.raw(pd.DataFrame({"a": [new]}))[0].values, [5])


def test_numbers_that_are_dates():
    whole = pd.DataFrame({"a": [20240130, 20240131, 20240201]})
    with pytest.warns(NongaussWarning, match="'a' holds whole numbers such as 20240130, read as dates"):
        encoder = encoder_of(whole)
    assert_array_equal(encoder.raw(whole)[0].values, [0, 1, 2])
    assert_array_equal(encoder.raw(whole[:1])[0].values, [0])
    assert_array_equal(encoder.raw(pd.DataFrame({"a": ["2024-02-02"]}))[0].values, [3])
    assert decode("a", pd.Series([20240130, 20240131, 20249999])).kind == "number"
    seconds = pd.DataFrame({"timestamp": 1_700_000_000 + 86_400 * np.arange(5)})
    for factor, unit in ((1, "seconds"), (1000, "milliseconds")):
        with pytest.warns(
            NongaussWarning, match=f"'timestamp' holds {unit} since 1970 according to its name"
        ):
            encoder = encoder_of(seconds * factor)
        assert_array_equal(encoder.raw(seconds * factor)[0].values, np.arange(5))
        assert encoder.columns[0].shown(0.0) == "2023-11-14 22:13:20"
    assert decode("x", seconds["timestamp"]).kind == "number"


def test_typed_dates_of_every_sort():
    stamps = pd.date_range("2024-01-30", periods=3)
    expected = [19752.0, 19753.0, 19754.0]
    forms = [
        stamps.to_period("D"),
        stamps.astype("datetime64[s]"),
        pd.array(stamps.date, dtype=pd.ArrowDtype(pa.date32())),
        pd.array(stamps, dtype=pd.ArrowDtype(pa.timestamp("us"))),
        pd.Series(list(stamps.to_period("D")), dtype=object),
    ]
    for cells in forms:
        assert_array_equal(decode("a", pd.Series(cells)).values, expected)
    for unit in ("D", "s", "ns"):
        assert_array_equal(decode("a", stamps.to_numpy().astype(f"M8[{unit}]")).values, expected)
    quarters = decode("a", pd.Series(pd.period_range("2024Q1", periods=2, freq="Q")))
    assert_array_equal(quarters.values, [19723.0, 19814.0])


def test_daylight_saving_makes_no_hours():
    local = pd.date_range("2023-01-01", periods=400, freq="D", tz="Europe/Berlin")
    names = ["when", "when (month)", "when (weekday)"]
    for cells in (local, local.strftime("%Y-%m-%d %H:%M:%S%z")):
        with pytest.warns(NongaussWarning, match="time zone"):
            encoder = encoder_of(pd.DataFrame({"when": cells}))
        assert [code.name for code in encoder.columns] == names
        assert_array_equal(encoder.raw(pd.DataFrame({"when": cells}))[0].values, np.arange(400))
    utc = pd.DataFrame({"when": local.tz_convert("UTC")})
    with pytest.warns(NongaussWarning, match="Europe/Berlin"):
        encoder = encoder_of(pd.DataFrame({"when": local}))
    assert_array_equal(encoder.raw(utc)[0].values, np.arange(400))


def test_a_column_named_like_a_calendar_part():
    frame = pd.DataFrame({"d": pd.date_range("2020-01-01", periods=800), "d (month)": np.arange(800.0)})
    names = [code.name for code in encoder_of(frame).columns]
    assert names == ["d", "d (month of the date)", "d (weekday)", "d (month)"]


def test_seasons_are_no_months_and_a_few_texts_among_dates_are_missing():
    assert decode("a", pd.Series(["2009-10", "2010-11", "2011-12"] * 3)).kind == "label"
    cells = pd.Series([*pd.date_range("2024-01-01", periods=39).strftime("%d.%m.%Y"), "soon"])
    found = decode("a", cells)
    assert found.lost == "'soon' (1 cell)"
    assert_array_equal(found.values, [*(19723.0 + np.arange(39)), np.nan])


def test_times_of_day():
    times = [dt.time(14, 5), dt.time(0, 30), None]
    forms = [
        pd.Series(times, dtype=object),
        pd.Series(times, dtype=pd.ArrowDtype(pa.time64("us"))),
        pd.Series(["14:05", "0:30", None]),
        pd.Series(["2:05 PM", "12:30 am", None]),
        pd.Series(["14:05:00", "00:30:00", None]),
    ]
    for cells in forms:
        np.testing.assert_allclose(decode("a", cells).values, [14 + 5 / 60, 0.5, np.nan], rtol=1e-15)
    table = pd.DataFrame({"at": ["14:05", "09:30"] * 20})
    encoder = encoder_of(table)
    assert [code.name for code in encoder.columns] == ["at"]
    assert encoder.columns[0].shown(14 + 5 / 60) == "14:05"
    assert_array_equal(encoder.raw(pd.DataFrame({"at": ["2:05 PM"]}))[0].values, [14 + 5 / 60])
    with pytest.raises(InputError, match=r"'at' held times of day when .* but holds 'noon'"):
        encoder.raw(pd.DataFrame({"at": ["noon"]}))


def test_times_over_half_a_day_stand_on_a_dial():
    table = pd.DataFrame({"at": ["00:00", "06:00", "12:00", "23:59"] * 5})
    encoder = encoder_of(table)
    assert [code.name for code in encoder.columns] == ["at", "at (sine of the day)", "at (cosine of the day)"]
    hours, sine, cosine = encoder.as_one_hot(table[:4]).T
    assert_array_equal(hours[:3], [0, 6, 12])
    assert_array_equal(np.abs(np.array([sine[:3], cosine[:3]])), [[0, 1, 0], [1, 0, 1]])
    assert np.hypot(sine[3] - sine[0], cosine[3] - cosine[0]) < 0.005  # a minute apart
    assert [code.shown(0.5) for code in encoder.columns] == ["00:30", "0.5", "0.5"]


def test_a_model_of_the_hour_as_a_label_reads_times_still():
    kind, column = kind_of("clock"), decode("at", pd.Series(["14:05", "00:30", None]))
    hour = kind.flat(column, "hour", 0.0)
    assert [hour.levels[code] for code in hour.codes[:2]] == ["14:00", "00:00"]
    assert hour.codes[2] == -1


def test_days_of_a_spreadsheet_are_dates_by_their_name():
    days = pd.Series([45292, 45323.5, 45352])
    found = decode("order_date", days)
    assert found.kind == "date"
    assert_array_equal(found.values, [19723, 19754.5, 19783])  # 2024-01-01, noon of 02-01, 03-01
    assert decode("price", days).kind == "number"
    table = pd.DataFrame({"date": np.tile(days, 10)})
    with pytest.warns(NongaussWarning, match="spreadsheet dates"):
        encoder = encoder_of(table)
    assert encoder.columns[0].shown(0.0) == "2024-01-01"
    later = encoder.raw(pd.DataFrame({"date": [45293]}), warn=False)[0].values
    assert_array_equal(later, [1])


def test_zones_by_name_and_times_without_marks():
    texts = pa.array(["2023-01-16 13:54 EST", "2023-07-16 13:54 EDT"], pa.large_string())
    found = read_dates(texts, np.array([1, 1]))
    assert found.zone == LOCAL
    want = np.array(["2023-01-16T13:54", "2023-07-16T13:54"], "datetime64[s]").astype(float) / 86_400
    np.testing.assert_allclose(found.days, want, rtol=0, atol=1e-8)
    found = read_dates(pa.array(["20230116T135430", "20230117T000000Z"], pa.large_string()), np.array([1, 1]))
    want = np.array(["2023-01-16T13:54:30", "2023-01-17T00:00:00"], "datetime64[s]").astype(float) / 86_400
    np.testing.assert_allclose(found.days, want, rtol=0, atol=1e-8)
    alone = read_dates(pa.array(["16 Jan 2023 10:00 PST"], pa.large_string()), np.array([1]))
    assert alone.zone == "-08:00"
    np.testing.assert_allclose(
        alone.days, np.array(["2023-01-16T18:00"], "datetime64[s]").astype(float) / 86_400
    )


@pytest.mark.parametrize(
    ("mark", "first", "is_said"), [("/", "month", True), ("-", "day", True), (".", "day", False)]
)
def test_an_open_order_of_day_and_month_is_said_but_between_points(mark, first, is_said):
    column = decode("when", pd.Series([f"03{mark}04{mark}2024", f"05{mark}06{mark}2024"]))
    days = pd.to_datetime(["2024-03-04", "2024-05-06"] if first == "month" else ["2024-04-03", "2024-06-05"])
    np.testing.assert_array_equal(column.values, (days - pd.Timestamp(0)).days)
    assert (f"read with the {first} first, which no cell settles" in column.note) == is_said
