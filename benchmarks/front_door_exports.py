"""Files as programs export them: surveys, watches, laboratories, banks, spreadsheets with totals."""

from __future__ import annotations

from fractions import Fraction

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
    some,
    written,
)
from front_door_files import texts as texts_of

SURVEYS, WATCHES, TOTALS = "surveys", "measures with words", "titles, totals, merged cells"


@messy(SURVEYS)
def choices_in_a_cell() -> File:
    """red; blue: what was ticked, several in a cell, each a yes or no."""
    return _chosen(["red", "blue", "green"], 30, lambda names: "; ".join(names))


@messy(SURVEYS)
def tags_in_brackets() -> File:
    """['new', 'sale'], as a program prints a list."""
    return _chosen(["new", "sale", "hot item", "last one"], 31, lambda names: str(names))


def _chosen(choices, seed, write) -> File:
    """Rows with some of the choices, each of which adds to the target; one at least."""
    rng = np.random.default_rng(seed)
    clean, f = line(300, seed, 2)
    has = rng.random((300, len(choices))) < 0.45
    has[~has.any(axis=1), 0] = True
    clean["ticked"] = [write([name for name, h in zip(choices, row, strict=True) if h]) for row in has]
    worth = np.linspace(-1.2, 1.5, len(choices))
    clean["y"] = (0.4 * f + has @ worth + 0.4 * rng.normal(size=300)).round(3)
    fit = Fit("r2", 0.03, 0.1, 0.6)
    said = [named("ticked", "lists of choices")]
    return File(written(texts_of(clean)), "y", clean, ("real",), uses={"ticked": "label"}, says=said, fit=fit)


@messy(SURVEYS)
def a_second_line_of_names() -> File:
    """Codes of questions, of which one comes twice, the questions below them, answers ticked or not."""
    rng = np.random.default_rng(32)
    clean = diabetes(200)[["age", "bmi", "bp", "progression"]]
    phone, laptop = rng.random((2, 200)) < 0.5
    clean["Q2 Which do you use? - Phone"] = np.where(phone, "Phone", "(empty)")
    clean["Q2 Which do you use? - Laptop"] = np.where(laptop, "Laptop", "(empty)")
    rows = written(texts_of(clean.replace("(empty)", ""))).decode().split("\n", 1)[1]
    names = "age,bmi,bp,progression,Q2,Q2\n"
    asked = "How old are you?,Body mass,Mean pressure,After a year"
    asked += ",Which do you use? - Phone,Which do you use? - Laptop\n"
    return File(
        (names + asked + rows).encode(), "progression", clean, REAL, says=["second line of column names"]
    )


@messy(SURVEYS)
def ages_in_ranges() -> File:
    """18-24 to 65+ and < $25k to $100k+ as inputs: grades in the order of their numbers."""
    ages = ["18-24", "25-34", "35-44", "45-54", "55-64", "65+"]
    incomes = ["< $25k", "$25k - $50k", "$50k - $100k", "$100k+"]
    rng = np.random.default_rng(33)
    clean, f = line(300, 33, 2)
    a, i = rng.integers(0, 6, 300), rng.integers(0, 4, 300)
    clean["age"], clean["income"] = np.array(ages)[a], np.array(incomes)[i]
    clean["y"] = (0.5 * f + 0.3 * a + 0.4 * i + 0.4 * rng.normal(size=300)).round(3)
    says = ["18-24 < 25-34 < .* < 65", r"< \$25k < .*25k - .* < \$100k"]
    return File(written(texts_of(clean)), "y", clean, ("real",), says=says, fit=Fit("r2", 0.03, 0.1, 0.5))


@messy(SURVEYS)
def size_of_a_firm() -> File:
    """A target of ranges: <10, 10-49, 50-249, 250+ employees."""
    order = ["<10", "10-49", "50-249", "250+"]
    clean, f = line(300, 34, 3)
    rng = np.random.default_rng(34)
    place = np.searchsorted([-0.9, 0.0, 0.9], f + 0.4 * rng.normal(size=300))
    clean["employees"] = np.array(order)[place]
    return File(
        written(texts_of(clean)),
        "employees",
        clean,
        ("grade",),
        reference={"levels": ",".join(order)},
        fit=Fit("accuracy", 0.05, 0.1, 0.4),
    )


@messy(WATCHES)
def fractions_of_inches() -> File:
    """1 1/2, 3/4 and 2: numbers."""
    clean = diabetes()
    eighths = np.round(clean["bmi"] * 8 / 10).astype(int)
    clean["bmi"] = eighths / 8

    def mixed(value: float) -> str:
        whole, rest = divmod(Fraction(value), 1)
        return f"{whole} {rest}" if whole and rest else str(rest or whole)

    return File(written(texts_of(clean, bmi=mixed)), "progression", clean, REAL, fit=GOOD)


@messy(WATCHES)
def paces() -> File:
    """5:30 /km: minutes a kilometre."""
    clean = diabetes()
    seconds = np.round(200 + clean["bp"]).astype(int)
    clean["bp"] = seconds / 60
    cells = texts_of(clean) | {"bp": [f"{s // 60}:{s % 60:02d} /km" for s in seconds]}
    return File(written(cells), "progression", clean, REAL)


@messy(WATCHES)
def flags_of_a_laboratory() -> File:
    """210 H and 30 L beside 100: numbers, with flags that are said."""
    clean = diabetes()
    low, high = clean["s1"].quantile([0.1, 0.9])
    cells = texts_of(clean)
    cells["s1"] = [
        f"{c}{' H' if v > high else ' L' if v < low else ''}"
        for c, v in zip(cells["s1"], clean["s1"], strict=True)
    ]
    return File(written(cells), "progression", clean, REAL, says=[named("s1", "flags")])


@messy(WATCHES)
def errors_of_a_sensor() -> File:
    """ERR and OVERFLOW in a twelfth of a target: rows without one, said."""
    clean = homes(240)
    cells = texts_of(clean)
    cells["price"], rows = some(cells["price"], ("ERR", "OVERFLOW"), 12)
    return File(
        written(cells),
        "price",
        gaps(clean, "price", rows).dropna().reset_index(drop=True),
        REAL,
        says=["'ERR'"],
        unread=tuple(clean.columns),
    )


@messy(WATCHES)
def days_of_a_spreadsheet() -> File:
    """45292 in a column called date: the first of January 2024."""
    clean, f = line(300, 35, 2)
    rng = np.random.default_rng(35)
    day = rng.integers(0, 900, 300)
    clean["date"] = pd.Timestamp("2021-03-01") + pd.to_timedelta(day, unit="D")
    clean["y"] = (f + 0.002 * day + 0.4 * rng.normal(size=300)).round(3)
    cells = texts_of(clean) | {"date": [str(44256 + d) for d in day]}  # 44256 is 2021-03-01
    return File(
        written(cells), "y", clean, ("real",), uses={"date": "date"}, says=[named("date", "spreadsheet")]
    )


@messy(TOTALS)
def totals_of_regions() -> File:
    """A line of totals after each region, whose name stands in its first row alone: left out, said."""
    clean = homes(120)
    region = np.repeat(["north", "south", "east", "west"], 30)
    first = np.arange(120) % 30 == 0
    clean.insert(0, "region", np.where(first, region, None))
    lines = written(texts_of(clean)).decode().rstrip("\n").split("\n")
    out = lines[:1]
    for at in range(0, 120, 30):
        out += [
            *lines[1 + at : 31 + at],
            f"{region[at].title()} Total,,,,,{clean['price'][at : at + 30].sum():.0f}",
        ]
    data = "\n".join([*out, f"Grand Total,,,,,{clean['price'].sum():.0f}"]).encode()
    says = ["left out .* as subtotals", named("region", "merged")]
    return File(data, "price", clean, REAL, says=says, uses={"region": "label"})


@messy(TOTALS)
def account_of_a_bank() -> File:
    """Lines of an account above the names, Windows-1252, semicolons, quotes, a separator too many."""
    rng = np.random.default_rng(36)
    day = pd.Timestamp("2023-01-02") + pd.to_timedelta(np.sort(rng.integers(0, 500, 200)), unit="D")
    amount = np.round(np.exp(3 + rng.normal(size=200)) * rng.choice([-1, -1, 1], 200), 2)
    clean = pd.DataFrame(
        {
            "Buchungstag": day,
            "Empfänger": rng.choice(["Bäcker", "Miete", "Strom"], 200),
            "Betrag (EUR)": amount,
            "Saldo": np.round(500 + np.cumsum(amount), 2),
        }
    )
    cells = {name: [comma(cell) for cell in clean[name]] for name in clean} | {
        "Buchungstag": [f"{d:%d.%m.%Y}" for d in day]
    }
    head = '"Konto";"DE12 3456"\n"Saldo";"1.234,56 EUR"\n\n'
    rows = written(cells, ";", quoting=1).decode().rstrip("\n").replace("\n", ";\n") + ";\n"
    return File(
        (head + rows).encode("cp1252"),
        "Betrag (EUR)",
        clean,
        REAL,
        uses={"Buchungstag": "date"},
        says=["titles"],
    )


@messy(TOTALS)
def several_currencies() -> File:
    """Dollars, euros and pounds in one target: refused, since nothing says what they are worth."""
    clean = homes(120)
    marks = np.random.default_rng(37).choice(["$", "€", "£"], 120)
    cells = texts_of(clean) | {"price": [f"{m}{v:,.0f}" for m, v in zip(marks, clean["price"], strict=True)]}
    return File(written(cells), "price", clean, refused="several units")
