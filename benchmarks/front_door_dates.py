"""Files with dates and times in every common form, rows in the order of time, rows in groups."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from front_door_files import MONTHS, File, Fit, comma, from_data, line, messy, named, texts, written

DATES, ORDER = "dates", "order of time, groups"
GOOD = Fit("r2", 0.03, 0.1, 0.6)
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def seasonal(n: int = 300, seed: int = 0, days: int = 1000) -> pd.DataFrame:
    """Rows on random days of three years, of a season, a trend and two inputs; not in the order of time."""
    clean, f = line(n, seed, 2)
    rng = np.random.default_rng(100 + seed)
    day = rng.integers(0, days, n)
    clean["day"] = pd.Timestamp("2021-03-01") + pd.to_timedelta(day, unit="D")
    year = 2 * np.pi * clean["day"].dt.dayofyear / 365.25
    clean["y"] = (0.7 * f + 1.5 * np.sin(year) + 0.002 * day + 0.4 * rng.normal(size=n)).round(3)
    return clean


def stamped(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Rows at random minutes of four weeks, of the hour of the day and two inputs."""
    clean, f = line(n, seed, 2)
    rng = np.random.default_rng(200 + seed)
    minute = rng.integers(0, 28 * 24 * 60, n)
    clean["at"] = pd.Timestamp("2024-02-12 00:00") + pd.to_timedelta(minute, unit="min")
    hour = 2 * np.pi * (minute % 1440) / 1440
    clean["y"] = (0.7 * f + 1.5 * np.sin(hour) + 0.4 * rng.normal(size=n)).round(3)
    return clean


def dated(write: Callable[[pd.Timestamp], str]) -> File:
    """The seasonal table with its dates written in some way."""
    clean = seasonal()
    cells = texts(clean) | {"day": [write(day) for day in clean["day"]]}
    return File(written(cells), "y", clean, ("real",), uses={"day": "date"}, fit=GOOD)


def timed(write: Callable[[pd.Timestamp], str]) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """The table of minutes with its time stamps written in some way."""
    clean = stamped()
    return clean, texts(clean) | {"at": [write(stamp) for stamp in clean["at"]]}


@messy(DATES)
def dates_iso() -> File:
    """2022-12-31."""
    return dated(lambda day: f"{day:%Y-%m-%d}")


@messy(DATES)
def dates_european() -> File:
    """31.12.2022."""
    return dated(lambda day: f"{day:%d.%m.%Y}")


@messy(DATES)
def dates_american() -> File:
    """12/31/2022."""
    return dated(lambda day: f"{day:%m/%d/%Y}")


@messy(DATES)
def dates_without_noughts() -> File:
    """1/7/22, the day first, as a spreadsheet in Britain shows them."""
    return dated(lambda day: f"{day.day}/{day.month}/{day:%y}")


@messy(DATES)
def dates_with_slashes_by_year() -> File:
    """2022/12/31."""
    return dated(lambda day: f"{day:%Y/%m/%d}")


@messy(DATES)
def dates_short_months() -> File:
    """31-Dec-2022."""
    return dated(lambda day: f"{day.day:02d}-{MONTHS[day.month - 1]}-{day.year}")


@messy(DATES)
def dates_long_months() -> File:
    """December 31, 2022."""
    return dated(lambda day: f"{MONTH_NAMES[day.month - 1]} {day.day}, {day.year}")


@messy(DATES)
def dates_compact() -> File:
    """20221231: no number of twenty millions."""
    return dated(lambda day: f"{day:%Y%m%d}")


@messy(DATES)
def dates_by_month() -> File:
    """2022-12."""
    clean = seasonal()
    clean["day"] = clean["day"].dt.to_period("M").dt.to_timestamp()
    cells = texts(clean) | {"day": [f"{day:%Y-%m}" for day in clean["day"]]}
    return File(written(cells), "y", clean, ("real",), uses={"day": "date"}, fit=GOOD)


@messy(DATES)
def dates_repeated() -> File:
    """Thirty days with ten rows each: dates, no categories."""
    clean = seasonal()
    clean["day"] = np.random.default_rng(10).permutation(
        np.repeat(np.sort(clean["day"].unique())[::8][:30], 10)
    )
    year = 2 * np.pi * clean["day"].dt.dayofyear / 365.25
    clean["y"] = (clean["x1"] + 1.5 * np.sin(year)).round(3)
    cells = texts(clean) | {"day": [f"{day:%d/%m/%Y}" for day in clean["day"]]}
    return File(written(cells), "y", clean, ("real",), uses={"day": "date"}, fit=GOOD)


@messy(DATES)
def dates_ambiguous() -> File:
    """No day beyond the twelfth: which is the month is warned of, with the reading."""
    clean = seasonal()
    clean["day"] = [day.replace(day=day.day % 12 + 1) for day in clean["day"]]
    cells = texts(clean) | {"day": [f"{day:%d/%m/%Y}" for day in clean["day"]]}
    return File(
        written(cells),
        "y",
        clean,
        ("real",),
        uses={"day": "date"},
        unread=("day",),
        says=[named("day", "month", "ambiguous|either|first|may")],
    )


@messy(DATES)
def dates_with_junk() -> File:
    """Three cells of 300 that are no dates."""
    clean = seasonal()
    cells = texts(clean) | {"day": [f"{day:%d.%m.%Y}" for day in clean["day"]]}
    for row, text in ((5, "unknown"), (50, "31.02.2022"), (200, "?")):
        cells["day"][row] = text
        clean.loc[row, "day"] = pd.NaT
    return File(
        written(cells),
        "y",
        clean,
        ("real",),
        uses={"day": "date"},
        fit=GOOD,
        says=[named("day", "unknown|31.02.2022")],
    )


@messy(DATES)
def times() -> File:
    """12.02.2024 17:05."""
    clean, cells = timed(lambda at: f"{at:%d.%m.%Y %H:%M}")
    return File(written(cells), "y", clean, ("real",), uses={"at": "date"}, fit=GOOD)


@messy(DATES)
def times_with_am_pm() -> File:
    """2/12/2024 5:05 PM."""
    clean, cells = timed(lambda at: f"{at.month}/{at.day}/{at.year} {at:%I:%M %p}")
    return File(written(cells), "y", clean, ("real",), uses={"at": "date"}, fit=GOOD)


@messy(DATES)
def times_with_zone() -> File:
    """2024-02-12T17:05:00+02:00: the zone is said."""
    clean, cells = timed(lambda at: f"{at + pd.Timedelta(hours=2):%Y-%m-%dT%H:%M:%S}+02:00")
    return File(
        written(cells),
        "y",
        clean,
        ("real",),
        uses={"at": "date"},
        fit=GOOD,
        says=[named("at", r"UTC|zone|\+02:00")],
    )


@messy(DATES)
def times_unix() -> File:
    """Seconds since 1970 in a column named timestamp."""
    clean, cells = timed(lambda at: str(int(at.timestamp())))
    cells = {"timestamp" if name == "at" else name: column for name, column in cells.items()}
    clean = clean.rename(columns={"at": "timestamp"})
    return File(
        written(cells), "y", clean, ("real",), uses={"timestamp": "date|number"}, unread=("timestamp",)
    )


@messy(DATES)
def clock_times() -> File:
    """17:05 alone: a time of day, not left out."""
    clean, cells = timed(lambda at: f"{at:%H:%M}")
    clean["at"] = clean["at"].dt.hour + clean["at"].dt.minute / 60
    return File(
        written(cells),
        "y",
        clean,
        ("real",),
        uses={"at": "date|number"},
        unread=("at",),
        fit=Fit("r2", 0.05, 0.2, 0.6),
    )


@messy(DATES)
def date_as_target() -> File:
    """A date is refused as a target, with what to do."""
    clean = seasonal()
    cells = texts(clean) | {"day": [f"{day:%d.%m.%Y}" for day in clean["day"]]}
    return File(written(cells), "day", clean, refused=named("day", "date"))


@messy(ORDER)
def sorted_days() -> File:
    """A walk of 400 days in order: warned of, with the figure of the last fifth."""
    rng = np.random.default_rng(19)
    walk = np.cumsum(rng.normal(size=400)).round(3)
    x = rng.normal(size=400).round(2)
    day = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(400), unit="D")
    clean = pd.DataFrame({"day": day, "x": x, "y": (walk + 0.3 * x).round(3)})
    cells = texts(clean) | {"day": [f"{d:%Y-%m-%d}" for d in day]}
    return File(
        written(cells),
        "y",
        clean,
        ("real",),
        uses={"day": "date"},
        says=[named("day", "order|sorted", "last")],
    )


@messy(ORDER)
def split_last() -> File:
    """The same kind of walk, split by time as asked: random rows would flatter."""
    made = sorted_days()
    return File(
        made.data,
        "y",
        made.clean,
        ("real",),
        uses={"day": "date"},
        declared={"split": "last"},
        fit=Fit("r2", 0.05, 1.0, -1e9, covers=False),
        verdict="mean|baseline|worse|no better|ridge",
    )


@messy(ORDER)
def groups() -> File:
    """Thirty patients with ten rows each, whose level is their own: split by patient as asked."""
    rng = np.random.default_rng(20)
    patient = np.repeat(np.arange(30), 10)
    dose = rng.uniform(0, 1, 300).round(2)
    own = 2.0 * rng.normal(size=30)
    y = (own[patient] + dose + 0.3 * rng.normal(size=300)).round(3)
    weight = (70 + 15 * rng.normal(size=30)).round(1)[patient]
    clean = pd.DataFrame({"patient": [f"P{p:02d}" for p in patient], "weight": weight, "dose": dose, "y": y})
    return File(
        written(texts(clean)),
        "y",
        clean,
        ("real",),
        declared={"group": "patient"},
        uses={"patient": "label|left out"},
        fit=Fit("r2", 0.05, 1.0, -1e9, covers=False),
        verdict="no better|not better|mean|worse",
    )


@messy(ORDER, needs="bike_day")
def bike_days(path: Path) -> File:
    """Rented bicycles by day, in order, European dates and decimal commas."""
    clean = from_data(path, 10_000).rename(columns={"target": "rented"})
    clean["date"] = pd.to_datetime(clean["date"])
    cells = {name: [comma(cell) for cell in clean[name]] for name in clean}
    cells["date"] = [f"{day:%d.%m.%Y}" for day in clean["date"]]
    return File(
        written(cells, ";"),
        "rented",
        clean,
        ("count", "real", "positive"),
        uses={"date": "date"},
        says=[named("date", "order|sorted", "last")],
        fit=Fit("r2", 0.03, 0.2, 0.75),
    )
