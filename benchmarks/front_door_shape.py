"""Files of an odd shape: ids and codes, names and labels, encodings, layouts, columns of no use."""

from __future__ import annotations

import csv
import uuid

import numpy as np
import pandas as pd
from front_door_files import (
    GOOD,
    REAL,
    File,
    Fit,
    comma,
    diabetes,
    homes,
    line,
    messy,
    named,
    texts,
    together,
    written,
)

UNITS, STYLE, JUNK, SENTINEL = "units in features", "number styles", "junk cells", "sentinels"
IDS, NAMES, SHAPE, ENCODING = "ids and codes", "names and labels", "shape", "encoding and layout"
SENTENCE = "patient came back after a week with pain in the left arm and no fever at all today"


# ---------------------------------------------------------------- ids, codes, names


@messy(IDS)
def ids() -> File:
    """Running numbers, uuids, customers' numbers, wide integers: left out, said by name."""
    clean = diabetes()
    rng = np.random.default_rng(11)
    extra = {
        "PassengerId": [str(i + 1) for i in range(300)],
        "uuid": [str(uuid.UUID(bytes=rng.bytes(16))) for _ in range(300)],
        "customer": [f"C-{number:05d}" for number in rng.permutation(90_000)[:300]],
        "account_number": [str(4 * 10**18 + int(v)) for v in rng.permutation(10**6)[:300]],
        "reference": [f"9{int(v):022d}" for v in rng.permutation(10**6)[:300]],
    }
    return File(
        written(extra | texts(clean)),
        "progression",
        clean,
        REAL,
        fit=GOOD,
        uses=dict.fromkeys(extra, "left out"),
        says=[named(name) for name in extra],
    )


@messy(IDS)
def zip_codes() -> File:
    """Codes with leading zeros are labels, never numbers, and keep their zeros."""
    clean, f = line(columns=2)
    rng = np.random.default_rng(12)
    zips = np.array(["02134", "02139", "10001", "10027", "07030", "60614", "94110", "98101"])
    at = rng.integers(0, 8, 300)
    effect = np.array([1.5, -1.0, 0.5, 2.0, -2.0, 0.0, 1.0, -0.5])
    clean["zip"] = zips[at]
    clean["y"] = (f + effect[at] + 0.4 * rng.normal(size=300)).round(3)
    return File(
        written(texts(clean)),
        "y",
        clean,
        ("real",),
        uses={"zip": "label"},
        fit=Fit("r2", 0.03, 0.1, 0.6),
        says=[named("zip", "code|label|zero")],
    )


@messy(IDS)
def wide_integers() -> File:
    """Numbers of 17 to 25 digits that are no ids: numbers, to the precision that there is."""
    clean, f = line(columns=2)
    big = np.random.default_rng(13).integers(1, 400, 300)
    clean["y"] = (f + 0.01 * big).round(3)
    cells = texts(clean) | {"atoms": [f"{int(v)}{'0' * 22}" for v in big]}
    cells = {"atoms": cells["atoms"], **{name: cells[name] for name in clean}}
    clean["atoms"] = big * 1e22
    return File(written(cells), "y", clean, ("real",), uses={"atoms": "number"})


@messy(NAMES)
def names_with_blanks() -> File:
    """Blanks around names, umlauts, Japanese, parentheses, an emoji."""
    clean = diabetes()
    names = {
        "age": "  age ",
        "bmi": "Körpermasse (kg/m²)",
        "bp": "血圧",
        "s1": "s 1",
        "s2": "s,2",
        "s3": 's"3',
        "s4": "α/β ratio",
        "s5": "log🙂",
        "progression": " Fortschritt in % ",
    }
    cells = {names.get(name, name): column for name, column in texts(clean).items()}
    clean = clean.rename(columns={old: new.strip() for old, new in names.items()})
    return File(written(cells), "Fortschritt in %", clean, REAL)


@messy(NAMES)
def blanks_in_labels() -> File:
    """ "a ", " a" and "a" are one label, which is said."""
    clean, f = line(columns=2)
    rng = np.random.default_rng(14)
    clean["team"] = rng.choice(["red", "green", "blue"], 300)
    clean["y"] = (
        f + clean["team"].map({"red": 1.5, "green": 0.0, "blue": -1.5}) + 0.4 * rng.normal(size=300)
    ).round(3)
    cells = texts(clean)
    cells["team"] = [name + "  " * (i % 3 == 0) for i, name in enumerate(cells["team"])]
    return File(
        written(cells, quoting=csv.QUOTE_ALL),
        "y",
        clean,
        ("real",),
        uses={"team": "label"},
        says=[named("team", "blank|space|trim")],
        fit=Fit("r2", 0.03, 0.1, 0.6),
    )


@messy(NAMES)
def mixed_case_labels() -> File:
    """yes, Yes and YES, in a feature: made one or warned of."""
    clean, f = line(columns=2)
    rng = np.random.default_rng(15)
    smoker = rng.random(300) < 0.5
    clean["y"] = (f + 1.5 * smoker + 0.4 * rng.normal(size=300)).round(3)
    cells = texts(clean)
    cells["smoker"] = [
        ("yes", "Yes", "YES")[i % 3] if s else ("no", "No")[i % 2] for i, s in enumerate(smoker)
    ]
    return File(
        written(cells),
        "y",
        clean,
        ("real",),
        uses={"smoker": "label"},
        says=[named("smoker", "case|capital|spell")],
    )


@messy(NAMES)
def repeated_names() -> File:
    """Two columns of one name: refused by name, or told apart and said."""
    clean = diabetes()
    pairs = [("s1" if name == "s2" else name, cells) for name, cells in texts(clean).items()]
    rest = clean.drop(columns=["s1", "s2"])
    return File(
        written(pairs),
        "progression",
        rest,
        REAL,
        refused="(more than one|several|two|repeated|twice).*'?s1",
        either=True,
        says=[named("s1")],
    )


# ---------------------------------------------------------------- encodings and layouts


@messy(ENCODING)
def latin_1() -> File:
    """A file of Windows with umlauts, semicolons, decimal commas."""
    clean = diabetes().rename(columns={"bp": "Überdruck", "age": "Größe"})
    clean["Land"] = np.where(np.arange(300) % 2, "Österreich", "Québec")
    cells = {name: [comma(cell) for cell in clean[name]] for name in clean}
    return File(written(cells, ";", "cp1252"), "progression", clean, REAL, says=["utf-8|cp1252|latin"])


@messy(ENCODING)
def utf_16() -> File:
    """ "Unicode text" of a spreadsheet: UTF-16 and tabs."""
    clean = diabetes().rename(columns={"bp": "血圧"})
    return File(written(texts(clean), "\t", "utf-16"), "progression", clean, REAL, suffix=".txt")


@messy(ENCODING)
def preamble() -> File:
    """Lines of a report above the names: passed over and said, or refused with the line."""
    clean = diabetes()
    before = "Patients of the study\nExported on 2024-03-31\n\n"
    return File(
        written(texts(clean), before=before),
        "progression",
        clean,
        REAL,
        either=True,
        refused="line [1-5]",
        says=["line|Patients of the study"],
    )


@messy(ENCODING)
def separator_line() -> File:
    """`sep=;` in the first line, as a spreadsheet wants it."""
    clean = diabetes()
    return File(written(texts(clean), ";", before="sep=;\n"), "progression", clean, REAL)


@messy(ENCODING)
def index_column() -> File:
    """The first column has no name and counts the rows: left out, said."""
    clean = diabetes()
    cells = {"": [str(i) for i in range(300)]} | texts(clean)
    return File(
        written(cells),
        "progression",
        clean,
        REAL,
        fit=GOOD,
        uses={"Unnamed: 0": "left out"},
        says=["(no|without a|empty|blank) name|unnamed|counts|index"],
    )


@messy(SHAPE)
def empty_and_constant() -> File:
    """Empty columns and constant ones: left out, said."""
    clean = diabetes()
    extra = {"comment": [""] * 300, "country": ["FR"] * 300, "version": ["2"] * 300}
    return File(
        written(texts(clean) | extra),
        "progression",
        clean,
        REAL,
        uses=dict.fromkeys(extra, "left out"),
        says=[named(name) for name in extra],
    )


@messy(SHAPE)
def trailing_separators() -> File:
    """A separator too many at the end of every line."""
    clean = diabetes()
    data = written(texts(clean), ";").replace(b"\n", b";;\n")
    uses = {"Unnamed: 11": "left out", "Unnamed: 12": "left out"}
    return File(data, "progression", clean, REAL, uses=uses)


@messy(SHAPE)
def booleans_in_words() -> File:
    """yes/no, true/false, Y/N, t/f as features."""
    clean, f = line(columns=2)
    rng = np.random.default_rng(16)
    b = rng.random((4, 300)) < 0.5
    clean["y"] = (f + b[0] - b[1] + 0.5 * b[2] + 0.4 * rng.normal(size=300)).round(3)
    words = {"owner": ("yes", "no"), "urban": ("TRUE", "FALSE"), "old": ("Y", "N"), "won": ("t", "f")}
    cells = {name: np.where(on, *word).tolist() for (name, word), on in zip(words.items(), b, strict=True)}
    return File(
        written(cells | texts(clean)), "y", clean, ("real",), uses=dict.fromkeys(words, "number|label")
    )


@messy(SHAPE)
def free_text() -> File:
    """A column of sentences: left out with the reason, or words counted and said."""
    clean = diabetes()
    rng = np.random.default_rng(17)
    words = np.array(SENTENCE.split())
    cells = texts(clean)
    cells["remarks"] = [" ".join(rng.choice(words, rng.integers(5, 14))) for _ in range(300)]
    return File(
        written(cells),
        "progression",
        clean,
        REAL,
        uses={"remarks": "left out"},
        says=[named("remarks", "text")],
        fit=GOOD,
    )


@messy(SHAPE)
def many_labels() -> File:
    """200 towns in 300 rows: said, and the fit is not the worse for it."""
    clean = diabetes()
    towns = np.random.default_rng(18).integers(0, 200, 300)
    cells = texts(clean) | {"town": [f"Town {chr(65 + t % 26)}{t // 26}" for t in towns]}
    return File(
        written(cells),
        "progression",
        clean,
        REAL,
        uses={"town": "left out|label"},
        says=[named("town")],
        fit=Fit("r2", 0.05, 0.15, 0.15),
        reference={"drop": "town"},
    )


@messy(SHAPE, large=True)
def a_hundred_thousand_labels() -> File:
    """10^5 rows, a label of its own in nearly each: a decision in seconds, said."""
    rng = np.random.default_rng(19)
    x = rng.normal(size=100_000).round(2)
    clean = pd.DataFrame({"x": x, "y": (x + rng.normal(size=100_000)).round(2)})
    cells = {"x": [f"{v:.2f}" for v in x], "y": [f"{v:.2f}" for v in clean["y"]]}
    cells["device"] = [f"dev{v:06x}" for v in rng.integers(0, 16**6, 100_000)]
    return File(written(cells), "y", clean, ("real",), uses={"device": "left out"}, says=[named("device")])


@messy(SHAPE, large=True)
def five_thousand_columns() -> File:
    """300 rows, 5,000 columns, of which three matter."""
    rng = np.random.default_rng(20)
    x = rng.normal(size=(300, 5000)).round(2)
    y = (x[:, 7] + x[:, 700] - x[:, 4000] + 0.5 * rng.normal(size=300)).round(3)
    clean = pd.DataFrame(x, columns=[f"g{i}" for i in range(5000)]).assign(y=y)
    lines = [",".join(clean.columns), *(",".join(f"{v:g}" for v in row) for row in clean.to_numpy())]
    return File(
        ("\n".join(lines) + "\n").encode(),
        "y",
        clean,
        ("real",),
        fit=Fit("r2", 0.1, 0.5, -0.2),
        verdict="mean|baseline|ridge|columns",
    )


@messy(SHAPE)
def leaking_column() -> File:
    """A column that is the target in another currency: warned of."""
    clean = homes(seed=21)
    clean["price_eur"] = (clean["price"] * 0.92).round(2)
    return File(written(texts(clean)), "price", clean, REAL, says=[named("price_eur")])


@messy(SHAPE)
def header_only() -> File:
    """Names and no rows."""
    clean = diabetes().iloc[:0]
    return File(written(texts(clean)), "progression", clean, refused="no rows")


@messy(SHAPE)
def one_row() -> File:
    """A single row: refused, or said."""
    clean = diabetes().iloc[:1]
    return File(written(texts(clean)), "progression", clean, refused="row", either=True, says=["row"])


@messy(SHAPE)
def one_column() -> File:
    """The target alone."""
    clean = diabetes()[["progression"]]
    return File(written(texts(clean)), "progression", clean, refused="no column|only the target|inputs")


@messy(SHAPE)
def nothing_usable() -> File:
    """Ids and sentences alone beside the target: what was left out and why."""
    clean = diabetes()[["progression"]]
    cells = {"id": [f"P{i:04d}x{(i * 7919) % 1000}" for i in range(300)]} | texts(clean)
    return File(written(cells), "progression", clean, refused=together("id", "progression"))
