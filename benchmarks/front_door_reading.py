"""Files that are hard to read: units, number styles, junk cells, ids, names, encodings, shapes."""

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
    grouped,
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

UNITS, STYLE, JUNK, SENTINEL = "units in features", "number styles", "junk cells", "sentinels"
IDS, NAMES, SHAPE, ENCODING = "ids and codes", "names and labels", "shape", "encoding and layout"


# ---------------------------------------------------------------- units


@messy(UNITS)
def units_in_features() -> File:
    """Years, kilograms a square metre, millimetres of mercury, milligrams: one unit a column."""
    clean = diabetes()
    cells = texts(
        clean,
        age=unit("{} years"),
        bmi=unit("{} kg/m2"),
        bp=unit("{}mmHg"),
        s1=unit("{} mg/dL"),
        s3=unit("{}%"),
    )
    return File(written(cells), "progression", clean, REAL, fit=GOOD)


@messy(UNITS)
def money_features() -> File:
    """Dollars with groups, euros, a currency by its letters, percent, accountants' negatives."""
    rng = np.random.default_rng(1)
    clean = homes()
    clean["tax"] = (clean["price"] * 0.011 * np.exp(0.1 * rng.normal(size=300))).round(2)
    clean["fee"] = rng.integers(40, 900, 300).astype(float)
    clean["discount"] = rng.uniform(0, 20, 300).round(1)
    clean["change"] = rng.integers(-9000, 9000, 300).astype(float)
    money = grouped()

    def accountants(value: float) -> str:
        return f"({money(-value)})" if value < 0 else money(value)

    cells = texts(
        clean,
        tax=unit("${}", grouped(digits=2)),
        fee=unit("{} USD"),
        discount=unit("{} %"),
        change=accountants,
    )
    return File(written(cells), "price", clean, REAL, fit=Fit("r2", 0.03, 0.1, 0.6))


@messy(UNITS)
def suffixed_features() -> File:
    """950, 1.2k, 3.4M in a column."""
    clean, f = line(columns=3)
    rng = np.random.default_rng(2)
    followers = 10 ** rng.uniform(2.2, 6.4, 300)

    def rounded(value: float) -> tuple[str, float]:
        for size, letter in ((1e6, "M"), (1e3, "k")):
            if value >= size:
                digits = round(value / size, 1)
                return f"{plain(digits)}{letter}", digits * size
        return str(round(value)), float(round(value))

    shown = [rounded(value) for value in followers]
    clean["followers"] = [value for _, value in shown]
    clean["y"] = (f + np.log10(clean["followers"]) + 0.3 * rng.normal(size=300)).round(3)
    cells = texts(clean)
    cells["followers"] = [text for text, _ in shown]
    return File(written(cells), "y", clean, REAL, fit=Fit("r2", 0.03, 0.1, 0.6))


@messy(UNITS)
def mixed_units() -> File:
    """Grams and kilograms in one column: turned into one of them, or warned of."""
    clean, f = line(columns=2)
    rng = np.random.default_rng(3)
    grams = np.round(np.exp(rng.normal(6.8, 0.6, 300)), -1)
    clean["y"] = (f + np.log(grams) + 0.3 * rng.normal(size=300)).round(3)
    cells = texts(clean)
    cells["weight"] = [f"{plain(g / 1000)} kg" if g >= 1000 else f"{plain(g)} g" for g in grams]
    return File(
        written(cells),
        "y",
        clean,
        REAL,
        uses={"weight": "number|label|left out"},
        says=[named("weight", r"\bk?g\b", r"kg")],
    )


# ---------------------------------------------------------------- number styles


@messy(STYLE)
def decimal_commas() -> File:
    """Semicolons and decimal commas, as European programs write them."""
    clean = diabetes()
    cells = {name: [comma(cell) for cell in clean[name]] for name in clean}
    return File(written(cells, ";"), "progression", clean, REAL, fit=GOOD)


@messy(STYLE)
def decimal_commas_and_money() -> File:
    """Euros after the number, groups with points, decimal commas, percent."""
    clean = homes(seed=4)
    rng = np.random.default_rng(4)
    clean["tax"] = (clean["price"] * 0.011 * np.exp(0.1 * rng.normal(size=300))).round(2)
    clean["share"] = rng.uniform(0, 100, 300).round(1)
    euro = grouped(",", ".")
    cells = texts(
        clean,
        area=comma,
        distance=comma,
        tax=unit("{} €", grouped(",", ".", 2)),
        share=unit("{} %", comma),
        price=unit("{} €", euro),
    )
    return File(written(cells, ";"), "price", clean, REAL, fit=Fit("r2", 0.03, 0.1, 0.6))


@messy(STYLE)
def quoted_decimal_commas() -> File:
    """ "0,123" between commas: 0 begins no group, so that "1,250" of the same file is 1.25."""
    rng = np.random.default_rng(5)
    dose, level = rng.uniform(0, 1, 300).round(3), rng.uniform(1, 9, 300).round(3)
    y = (3 * dose - 0.4 * level + 0.3 * rng.normal(size=300)).round(3)
    clean = pd.DataFrame({"dose": dose, "level": level, "y": y})
    cells = {name: [f"{cell:.3f}".replace(".", ",") for cell in clean[name]] for name in clean}
    return File(written(cells), "y", clean, REAL, fit=Fit("r2", 0.03, 0.1, 0.6))


@messy(STYLE)
def one_style_a_file() -> File:
    """1.234,5 in one column makes 1.234 of another a group."""
    rng = np.random.default_rng(6)
    clean = pd.DataFrame(
        {
            "budget": rng.uniform(1000, 9000, 300).round(1),
            "people": rng.integers(1000, 9999, 300).astype(float),
            "rate": rng.uniform(0, 30, 300).round(2),
        }
    )
    f = clean["budget"] / 2000 + clean["people"] / 3000 - clean["rate"] / 10
    clean["y"] = (f + 0.4 * rng.normal(size=300)).round(2)
    cells = texts(clean, budget=grouped(",", ".", 1), people=grouped(",", "."), rate=comma, y=comma)
    return File(written(cells, ";"), "y", clean, REAL, fit=Fit("r2", 0.03, 0.1, 0.6))


@messy(STYLE)
def thousands_with_commas() -> File:
    """Quoted "1,234,567" and "240,000.50" beside 12.5."""
    clean = homes(seed=7).assign(population=np.random.default_rng(7).integers(800, 3_000_000, 300) * 1.0)
    cells = texts(clean, population=grouped(), price=grouped(digits=2))
    return File(written(cells), "price", clean, REAL, fit=Fit("r2", 0.03, 0.1, 0.6))


@messy(STYLE)
def thousands_with_apostrophes() -> File:
    """1'234.50, as in Switzerland."""
    clean = homes(seed=8)
    return File(written(texts(clean, price=grouped(".", "'", 2))), "price", clean, REAL)


@messy(STYLE)
def thousands_with_blanks() -> File:
    """1 234,5 with a blank that does not break, as in France."""
    clean = homes(seed=9)
    cells = texts(clean, area=comma, distance=comma, price=grouped(",", "\u202f", 2))
    return File(written(cells, ";"), "price", clean, REAL)


@messy(STYLE)
def ambiguous_group() -> File:
    """Only "1,234" with three digits behind each comma: warned of, with the reading."""
    clean, f = line(columns=2)
    rng = np.random.default_rng(10)
    clean["sold"] = rng.integers(1000, 9999, 300)
    clean["y"] = np.round(10 * f + rng.normal(size=300)).astype(int)
    clean["x1"], clean["x2"] = (clean["x1"] * 100).astype(int), (clean["x2"] * 100).astype(int)
    cells = texts(clean.astype(int), sold=grouped())
    return File(
        written(cells),
        "y",
        clean[["x1", "x2", "y"]],
        ("real",),
        uses={"sold": "number"},
        says=[named("sold", "thousand|group|decimal")],
    )


# ---------------------------------------------------------------- junk and sentinels


@messy(JUNK)
def junk_words() -> File:
    """unknown, -, n/a and ? in 4 % of a column of numbers."""
    clean = diabetes()
    cells = texts(clean)
    cells["bmi"], rows = some(cells["bmi"], ("unknown", "-", "n/a", "?"), 25)
    return File(
        written(cells),
        "progression",
        gaps(clean, "bmi", rows),
        REAL,
        fit=GOOD,
        says=[named("bmi", "unknown")],
    )


@messy(JUNK)
def typing_errors() -> File:
    """A letter O for a nought, two points; values under the limit of a laboratory, which stand for it."""
    clean = diabetes()
    cells = texts(clean)
    cells["bp"], odd = some(cells["bp"], ("1O1", "98..5"), 150)
    cells["s5"], limits = some(cells["s5"], ("<3.2",), 60)
    clean = gaps(clean, "bp", odd)
    clean.loc[limits, "s5"] = 3.2
    says = [named("bp", "1O1"), named("s5", "<3.2")]
    return File(written(cells), "progression", clean, REAL, fit=GOOD, says=says)


@messy(JUNK)
def a_fifth_words() -> File:
    """Words in a fifth of a column of numbers: no silent one-hot of the numbers."""
    clean = diabetes()
    cells = texts(clean)
    cells["bmi"], _ = some(cells["bmi"], ("low", "high", "normal"), 5)
    return File(
        written(cells),
        "progression",
        clean.drop(columns="bmi"),
        REAL,
        uses={"bmi": "number|label|left out"},
        says=[named("bmi", "low|high|normal")],
    )


@messy(JUNK)
def words_for_missing() -> File:
    """Every program's word for a missing cell, in a quarter of the cells of two columns."""
    words = ("NULL", "None", "#N/A", "", "NA", "nan", "N/A", "<NA>", "null")
    clean = diabetes()
    cells = texts(clean)
    cells["s4"], rows = some(cells["s4"], words, 4)
    clean = gaps(clean, "s4", rows)
    return File(written(cells), "progression", clean, REAL, fit=GOOD)


@messy(JUNK)
def junk_in_target() -> File:
    """pending and n/a in the target: rows without a target, which is said."""
    clean = diabetes()
    cells = texts(clean)
    cells["progression"], rows = some(cells["progression"], ("pending", "n/a"), 40)
    return File(
        written(cells),
        "progression",
        gaps(clean, "progression", rows),
        REAL,
        says=[named("progression", f"{len(rows)}|pending")],
        refused=named("progression", "pending"),
        either=True,
    )


@messy(SENTINEL)
def sentinels() -> File:
    """-999, 9999 and 1e9 for missing: warned of by column and value, and the column still tells."""
    clean = diabetes()
    cells = texts(clean)
    for name, code, every in (("bmi", "-999", 40), ("s5", "9999", 60), ("bp", "1000000000", 200)):
        cells[name], rows = some(cells[name], (code,), every)
        clean = gaps(clean, name, rows)
    says = [named("bmi", "-999"), named("s5", "9999"), named("bp", r"1e\+?0?9|1,?000,?000,?000")]
    return File(
        written(cells),
        "progression",
        clean,
        REAL,
        loose=("bmi", "s5", "bp"),
        says=says,
        fit=Fit("r2", 0.05, 0.15, 0.15),
    )


@messy(SENTINEL)
def sentinel_in_target() -> File:
    """-999 in the target: never fitted without a word."""
    clean = diabetes()
    cells = texts(clean)
    cells["progression"], rows = some(cells["progression"], ("-999",), 60)
    clean = gaps(clean, "progression", rows)
    return File(
        written(cells),
        "progression",
        clean,
        ("positive", "real"),
        loose=("progression",),
        says=[named("progression", "-999", "far|outside|missing|code|gap")],
    )
