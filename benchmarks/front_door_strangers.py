"""Files as hospitals, banks, surveys, loggers and spreadsheets write them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from front_door_files import (
    GOOD,
    REAL,
    File,
    Fit,
    comma,
    diabetes,
    gaps,
    homes,
    line,
    messy,
    named,
    plain,
    some,
    texts,
    unit,
    written,
)

WRITING, LOGS, SURVEY, SHEETS = "compound numbers", "stamps and months", "surveys and ratings", "spreadsheets"
HINTS = "hints before the fit"
SHORT = (*("Jan", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"),)
LONG = {
    "French": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "Spanish": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "Italian": "gen feb mar apr mag giu lug ago set ott nov dic",
    "Portuguese": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "Dutch": "januari februari maart april mei juni juli augustus september oktober november december",
}


def _hours(n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """Whole minutes of two spans, and a target that follows from them."""
    rng = np.random.default_rng(4)
    frame, f = line(n, 4, columns=2)
    minutes = rng.integers(1, 600, n)
    frame["span"] = minutes / 60.0
    frame["y"] = (2 * f + 0.01 * minutes + 0.3 * rng.normal(size=n)).round(2)
    return frame, minutes


def _days(n: int = 300) -> tuple[pd.DataFrame, pd.Series]:
    """A day for each row, in no order, and a target that rises with it."""
    rng = np.random.default_rng(5)
    frame, f = line(n, 5, columns=2)
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D")
    frame["day"] = days
    frame["y"] = (
        f + np.asarray((days - pd.Timestamp("2021-01-01")).days) / 300 + 0.3 * rng.normal(size=n)
    ).round(2)
    return frame, frame["day"]


@messy(WRITING)
def spans_in_words() -> File:
    """1h 05m, 45m, 2h: hours."""
    clean, minutes = _hours()
    cells = texts(clean)
    cells["span"] = [f"{m // 60}h {m % 60:02d}m" if m >= 60 and m % 60 else f"{m}m" for m in minutes]
    return File(written(cells), "y", clean, REAL, fit=Fit("r2", 0.03, 0.1, 0.5))


@messy(WRITING)
def spans_target() -> File:
    """A target of 1h 30min, 3h 05min."""
    clean, minutes = _hours()
    cells = texts(clean)
    cells["span"] = [f"{m // 60}h {m % 60:02d}min" for m in minutes]
    return File(written(cells), "span", clean, REAL)


@messy(WRITING)
def coordinates() -> File:
    """52°30'N and 13°24'36"E: degrees."""
    rng = np.random.default_rng(6)
    clean, f = line(300, 6, columns=2)
    north, east = rng.integers(-600, 600, 300), rng.integers(-36000, 36000, 300)
    clean = clean.assign(lat=north / 60.0, lon=east / 3600.0)
    clean["y"] = (f + clean["lat"] / 5 + 0.3 * rng.normal(size=300)).round(3)
    cells = texts(clean)
    cells["lat"] = [f"{abs(v) // 60}°{abs(v) % 60:02d}'{'NS'[int(v < 0)]}" for v in north]
    cells["lon"] = [
        f"{abs(v) // 3600}° {abs(v) // 60 % 60}' {abs(v) % 60}\" {'EW'[int(v < 0)]}" for v in east
    ]
    return File(written(cells), "y", clean, REAL)


@messy(WRITING)
def heights_in_feet() -> File:
    """5'11" and 6'0"."""
    rng = np.random.default_rng(7)
    clean, f = line(300, 7, columns=2)
    inches = rng.integers(58, 78, 300)
    clean = clean.assign(height=inches / 12.0, y=(f + inches / 5.0 + rng.normal(size=300)).round(2))
    cells = texts(clean)
    cells["height"] = [f"{v // 12}'{v % 12}\"" for v in inches]
    return File(written(cells), "y", clean, REAL)


@messy(WRITING)
def bank_statement() -> File:
    """Debits in brackets, a minus behind, balances with CR and DR."""
    rng = np.random.default_rng(8)
    clean, f = line(300, 8, columns=2)
    amount = (900 * f + 50 * rng.normal(size=300)).round(2)
    clean = clean.assign(
        fee=(30 * rng.normal(size=300)).round(2), balance=np.cumsum(clean["x1"] * 90).round(2)
    )
    clean["amount"] = amount
    cells = texts(
        clean,
        fee=lambda v: f"{abs(v):.2f}-" if v < 0 else f"{v:.2f}",
        balance=lambda v: f"{abs(v):,.2f} {'DR' if v < 0 else 'CR'}",
        amount=lambda v: f"({abs(v):,.2f})" if v < 0 else f"{v:,.2f}",
    )
    return File(written(cells), "amount", clean, REAL)


@messy(WRITING)
def values_with_marks() -> File:
    """About numbers: ~12, 34*, <0.5, 120+ are numbers with a mark, and said."""
    clean = diabetes()
    cells = texts(clean)
    cells["bmi"], rows = some(cells["bmi"], ("<19", "~25", "40+"), 12)
    clean.loc[rows, "bmi"] = [(19.0, 25.0, 40.0)[i % 3] for i in range(len(rows))]
    cells["s1"] = [f"{cell}*" if i % 9 == 0 else cell for i, cell in enumerate(cells["s1"])]
    return File(
        written(cells), "progression", clean, REAL, says=[named("bmi", "<19"), named("s1", "mark")], fit=GOOD
    )


@messy(WRITING)
def powers_of_ten() -> File:
    """1.2×10^4, 1,2E+03 and ="7" of a spreadsheet."""
    rng = np.random.default_rng(9)
    clean, f = line(300, 9, columns=2)
    clean = clean.assign(a=np.round(rng.gamma(2, 3000, 300), -1) + 10, b=rng.integers(1, 90, 300))
    clean["y"] = (f + np.log(clean["a"]) + 0.2 * rng.normal(size=300)).round(3)
    cells = texts(clean, a=lambda v: f"{v:.4e}".replace("e+0", "×10^"), b=unit('="{}"'))
    return File(written(cells), "y", clean, REAL)


@messy(LOGS)
def stamps_of_fourteen_digits() -> File:
    """20240131235959."""
    clean, days = _days()
    clean["day"] = days + pd.to_timedelta(np.arange(300) * 61 % 86400, unit="s")
    cells = texts(clean, day=lambda t: f"{t:%Y%m%d%H%M%S}")
    return File(written(cells), "y", clean, REAL, says=[named("day", "read as dates")])


@messy(LOGS)
def epochs_in_created_at() -> File:
    """Seconds, milliseconds and microseconds since 1970 under names that say so."""
    clean, days = _days()
    later = days + pd.to_timedelta(np.arange(300) * 7919 % 86400, unit="s")
    clean = clean.assign(
        day=days + pd.to_timedelta(5, unit="s"), updated=later, event_time=later[::-1].to_numpy()
    )
    clean = clean.rename(columns={"day": "created_at"})
    since = {
        name: (clean[name] - pd.Timestamp(0)) // pd.Timedelta(1, "us")
        for name in ("created_at", "updated", "event_time")
    }
    cells = texts(
        clean.assign(
            created_at=since["created_at"] // 10**6,
            updated=since["updated"] // 10**3,
            event_time=since["event_time"],
        )
    )
    return File(
        written(cells),
        "y",
        clean,
        REAL,
        says=[named("created_at", "seconds"), named("updated", "milliseconds")],
    )


@messy(LOGS)
def german_days() -> File:
    """03-Mär-23, semicolons, decimal commas, Windows-1252."""
    clean, _ = _days()
    clean["Größe"] = np.random.default_rng(1).integers(150, 200, 300).astype(float)
    cells = texts(
        clean, day=lambda t: f"{t.day:02d}-{SHORT[t.month - 1]}-{t:%y}", x1=comma, x2=comma, y=comma
    )
    return File(written(cells, ";", "cp1252"), "y", clean, REAL, says=["cp1252"])


def _months(language: str, of: str) -> File:
    """Days with months in words of a language; `of` stands between the parts."""
    clean, _ = _days()
    names = LONG[language].split()
    cells = texts(clean, day=lambda t: f"{t.day}{of}{names[t.month - 1]}{of}{t.year}")
    return File(written(cells), "y", clean, REAL)


@messy(LOGS)
def french_days() -> File:
    """3 février 2023."""
    return _months("French", " ")


@messy(LOGS)
def spanish_days() -> File:
    """3 de febrero de 2023."""
    return _months("Spanish", " de ")


@messy(LOGS)
def italian_days() -> File:
    """3 feb 2023, 5 lug 2023."""
    return _months("Italian", " ")


@messy(LOGS)
def portuguese_days() -> File:
    """3 de fevereiro de 2023."""
    return _months("Portuguese", " de ")


@messy(LOGS)
def dutch_days() -> File:
    """3 februari 2023."""
    return _months("Dutch", " ")


def _answers(order: list[str], name: str, seed: int) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """A target of grades on a scale that follows from two columns."""
    clean, f = line(300, seed, columns=3)
    noisy = f + 0.5 * np.random.default_rng(seed).normal(size=300)
    grade = np.searchsorted(np.quantile(noisy, np.linspace(0, 1, len(order) + 1)[1:-1]), noisy)
    clean[name] = np.array(order, dtype=object)[grade]
    return clean, texts(clean)


@messy(SURVEY)
def likert_in_german() -> File:
    """From stimme überhaupt nicht zu to stimme voll und ganz zu."""
    order = [
        "stimme überhaupt nicht zu",
        "stimme eher nicht zu",
        "teils/teils",
        "stimme eher zu",
        "stimme voll und ganz zu",
    ]
    clean, cells = _answers(order, "Frage 3", 11)
    return File(
        written(cells, ";", "utf-8-sig"), "Frage 3", clean, ("grade",), reference={"levels": ",".join(order)}
    )


@messy(SURVEY)
def numbered_answers() -> File:
    """1 - poor to 5 - excellent."""
    order = ["1 - poor", "2 - fair", "3 - good", "4 - very good", "5 - excellent"]
    clean, cells = _answers(order, "q3", 12)
    return File(written(cells), "q3", clean, ("grade",), reference={"levels": ",".join(order)})


@messy(SURVEY)
def numbered_codes() -> File:
    """1 = single, 2 = married, 3 = widowed: numbers, but no grades."""
    clean, cells = _answers(["1 = single", "2 = married", "3 = widowed"], "family", 13)
    return File(written(cells), "family", clean, ("label",))


@messy(SURVEY)
def credit_ratings() -> File:
    """D to AAA."""
    order = ["D", "CCC", "B", "BB", "BBB", "A", "AA", "AAA"]
    clean, cells = _answers(order, "rating", 14)
    return File(written(cells), "rating", clean, ("grade",), reference={"levels": ",".join(order)})


@messy(SURVEY)
def sizes_of_shirts() -> File:
    """XS to 3XL, in the file in any order."""
    order = ["XS", "S", "M", "L", "XL", "XXL", "3XL"]
    clean, cells = _answers(order, "size", 15)
    return File(written(cells), "size", clean, ("grade",), reference={"levels": ",".join(order)})


@messy(SURVEY)
def low_medium_high() -> File:
    """L, M, H."""
    clean, cells = _answers(["L", "M", "H"], "severity", 16)
    return File(written(cells), "severity", clean, ("grade",), reference={"levels": "L,M,H"})


@messy(SURVEY)
def crosses() -> File:
    """x or nothing: two labels, no gap."""
    clean = diabetes()
    high = (clean["s5"] > clean["s5"].median()).to_numpy()
    clean = clean.assign(smoker=np.where(high, "x", "(empty)"))
    cells = texts(clean)
    cells["smoker"] = ["x" if v else "" for v in high]
    return File(written(cells), "progression", clean, REAL, says=[named("smoker", "nothing")], fit=GOOD)


@messy(SHEETS)
def totals_and_sources() -> File:
    """Titles above, a line of totals and two of sources below, empty columns at the right."""
    clean = homes()
    data = written(texts(clean, price=lambda v: f"{v:,.0f}"))
    lines = [f"{row},,," for row in data.decode().strip().split("\n")]
    total = f'Total,{clean["rooms"].sum():.0f},,,"{clean["price"].sum():,.0f}",,,'
    below = f"{total}\n\nSource: land registry, 2024\n* provisional\n"
    text = "Sales of homes,,,,,,,\nprinted 2024-03-01,,,,,,,\n\n" + "\n".join(lines) + "\n" + below
    says = ["left out.*titles", "left out.*totals", "left out.*notes"]
    return File(("\ufeff" + text).encode(), "price", clean, REAL, says=says)


@messy(SHEETS)
def errors_of_spreadsheets() -> File:
    """#N/A at the beginning of a line, #DIV/0!, NULL and --: gaps, and no comments."""
    clean = diabetes()
    first = clean.columns[0]
    cells = texts(clean)
    cells[first], rows = some(cells[first], ("#N/A", "#DIV/0!", "NULL", "--"), 40)
    return File(written(cells), "progression", gaps(clean, first, rows), REAL, never=["comments"], fit=GOOD)


@messy(SHEETS)
def open_quotation() -> File:
    """A quotation mark that is never closed makes two rows one: said."""
    clean = homes(60)
    cells = texts(clean)
    cells = {"street": [f'"Road {i}"' for i in range(60)]} | cells
    lines = written(cells).decode().replace('"""', '"').split("\n")
    lines[21] = lines[21].replace('Road 20"', "Road 20")
    kept = clean.drop(index=20).reset_index(drop=True)
    return File(
        "\n".join(lines).encode(),
        "price",
        kept,
        REAL,
        says=["odd number of quotation"],
        uses={"street": "left out|label"},
        unread=("street",),
    )


@messy(HINTS)
def rows_of_patients() -> File:
    """Four visits a patient: --group is hinted at."""
    clean = diabetes()
    clean = clean.assign(patient_id=[f"P{i // 4:03d}" for i in range(len(clean))])
    return File(
        written(texts(clean)),
        "progression",
        clean,
        REAL,
        uses={"patient_id": "label|left out"},
        says=["--group patient_id"],
    )


@messy(HINTS)
def claims_of_years() -> File:
    """Claims beside the years that they were counted in: --exposure is hinted at."""
    rng = np.random.default_rng(17)
    clean, f = line(400, 17, columns=3)
    clean["person_years"] = rng.uniform(0.2, 4, 400).round(2)
    clean["claims"] = rng.poisson(clean["person_years"] * np.exp(0.4 * f - 0.3))
    return File(
        written(texts(clean, claims=plain)), "claims", clean, ("count",), says=["--exposure person_years"]
    )


@messy(WRITING)
def blood_pressure() -> File:
    """120/80: two numbers, not a text a row."""
    clean = diabetes()
    low = np.round(clean["bp"] * 0.8).astype(int)
    high = np.round(clean["bp"] * 1.3).astype(int)
    clean["bp"] = [f"{a}/{b}" for a, b in zip(high, low, strict=True)]
    said = [named("bp", "pairs of numbers")]
    return File(written(texts(clean)), "progression", clean, REAL, uses={"bp": "label"}, says=said, fit=GOOD)
