"""Files whose target is easily misunderstood: counts, codes, grades, shares, zeros, censored times, text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from front_door_files import (
    File,
    Fit,
    comma,
    diabetes,
    from_data,
    grouped,
    homes,
    line,
    messy,
    named,
    plain,
    texts,
    unit,
    written,
)
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_linnerud, load_wine

DRESSED, COUNTS, FAR = "target with units", "counts", "whole numbers far from 0"
CODES = "class codes"
GAPS = "a gap at prediction"
LABEL = Fit("accuracy", 0.05, 0.1, 0.8)


def shuffled(frame: pd.DataFrame, n: int, seed: int = 0) -> pd.DataFrame:
    """At most n rows in a random order."""
    order = np.random.default_rng(seed).permutation(len(frame))[:n]
    return frame.iloc[order].reset_index(drop=True)


# ---------------------------------------------------------------- units


@messy(DRESSED)
def money_target() -> File:
    """$240,000."""
    clean = homes(seed=30)
    return File(
        written(texts(clean, price=unit("${}", grouped()))),
        "price",
        clean,
        ("positive", "real"),
        fit=Fit("r2", 0.03, 0.1, 0.6),
    )


@messy(DRESSED)
def percent_target() -> File:
    """74.7%: a share."""
    clean, f = line(seed=31)
    rng = np.random.default_rng(31)
    clean["turnout"] = (100 / (1 + np.exp(-0.8 * f - 0.3 + 0.3 * rng.normal(size=300)))).round(1)
    return File(
        written(texts(clean, turnout=unit("{}%"))),
        "turnout",
        clean,
        ("share", "real"),
        fit=Fit("r2", 0.03, 0.1, 0.6),
        support=(0, 100),
    )


@messy(DRESSED)
def suffixed_target() -> File:
    """950, 1.2k, 3.4M."""
    clean, f = line(seed=32)
    rng = np.random.default_rng(32)
    value = 10 ** (4.0 + 0.7 * f + 0.15 * rng.normal(size=300))
    shown, kept = [], []
    for v in value:
        size, letter = (1e6, "M") if v >= 1e6 else (1e3, "k") if v >= 1e3 else (1.0, "")
        digits = round(v / size, 1) if letter else float(round(v))
        shown.append(plain(digits) + letter)
        kept.append(digits * size)
    clean["views"] = kept
    cells = texts(clean) | {"views": shown}
    return File(written(cells), "views", clean, ("positive", "real", "count"), fit=Fit("r2", 0.1, 0.1))


@messy(DRESSED)
def unit_target() -> File:
    """3.2 kg."""
    clean = diabetes().rename(columns={"progression": "weight"})
    return File(
        written(texts(clean, weight=unit("{} kg"))),
        "weight",
        clean,
        ("positive", "real"),
        fit=Fit("r2", 0.03, 0.1, 0.15),
    )


@messy(DRESSED)
def decimal_comma_target() -> File:
    """ "12,5" in quotes between commas."""
    clean, f = line(seed=33)
    clean["y"] = (10 + 3 * f + np.random.default_rng(33).normal(size=300)).round(2)
    cells = texts(clean.drop(columns="y")) | {"y": [comma(v) for v in clean["y"]]}
    inputs = {name: [comma(v) for v in clean[name]] for name in ("x1", "x2", "x3", "x4")}
    return File(written(cells | inputs), "y", clean, ("real",), fit=Fit("r2", 0.03, 0.1, 0.6))


# ---------------------------------------------------------------- counts


@messy(COUNTS)
def visits() -> File:
    """Visits from 0 to 7: counts, of which there may be an eighth."""
    clean, f = line(seed=34)
    clean["visits"] = np.random.default_rng(34).poisson(np.exp(0.1 + 0.45 * f)).clip(max=7)
    return File(
        written(texts(clean)),
        "visits",
        clean,
        ("count",),
        fit=Fit("r2", 0.03, 0.05, 0.05),
        support=(0, np.inf),
    )


@messy(COUNTS)
def claims_with_exposure() -> File:
    """0 to 3 claims in some months of cover, which is declared."""
    clean, f = line(400, seed=35)
    rng = np.random.default_rng(35)
    clean["months"] = rng.integers(1, 25, 400).astype(float)
    mean = clean["months"].to_numpy() / 12 * np.exp(-0.6 + 0.5 * f)
    clean["claims"] = rng.poisson(mean)
    return File(
        written(texts(clean)),
        "claims",
        clean,
        ("count",),
        declared={"exposure": "months"},
        uses={"months": "left out"},
        fit=Fit("r2", 0.03, 0.05, -0.2),
        truth=mean,
        least=0.5,
    )


@messy(COUNTS)
def goals() -> File:
    """0 to 3, most 0 and 1, in no small words: a count by what it counts, not four grades."""
    clean, f = line(seed=36)
    clean["goals"] = np.random.default_rng(36).poisson(np.exp(-0.5 + 0.4 * f)).clip(max=3)
    return File(written(texts(clean)), "goals", clean, ("count",))


@messy(COUNTS, needs="abalone")
def rings(path: Path) -> File:
    """Rings of shells, 3 to 25, sex in letters, decimal commas."""
    clean = from_data(path).rename(columns={"target": "rings"})
    cells = {name: [comma(cell) for cell in clean[name]] for name in clean}
    return File(
        written(cells, ";"),
        "rings",
        clean,
        ("count", "real", "positive"),
        uses={"sex": "label"},
        fit=Fit("r2", 0.03, 0.1, 0.3),
    )


@messy(FAR)
def years() -> File:
    """Years around 1990: no counts with the spread of a Poisson."""
    clean, f = line(seed=37)
    clean["year"] = np.round(1990 + 5 * f + 2 * np.random.default_rng(37).normal(size=300)).astype(int)
    return File(written(texts(clean)), "year", clean, ("real",), fit=Fit("r2", 0.03, 0.1, 0.6))


@messy(FAR)
def scores() -> File:
    """Scores of a test, 35 to 98, under-dispersed."""
    clean, f = line(seed=38)
    raw = 68 + 9 * f + 4 * np.random.default_rng(38).normal(size=300)
    clean["score"] = np.round(raw).clip(0, 100).astype(int)
    return File(written(texts(clean)), "score", clean, ("real", "positive"), fit=Fit("r2", 0.03, 0.1, 0.6))


@messy(FAR)
def whole_prices() -> File:
    """Prices in whole dollars."""
    clean = homes(seed=39)
    clean["price"] = (clean["price"] / 100).round().astype(int)
    return File(written(texts(clean)), "price", clean, ("positive", "real"), fit=Fit("r2", 0.03, 0.1, 0.6))


@messy(FAR)
def exercise() -> File:
    """Linnerud's twenty men: weights in whole pounds from three exercises."""
    bunch = load_linnerud(as_frame=True)
    clean = bunch.data.assign(weight=bunch.target["Weight"].astype(int))
    return File(
        written(texts(clean, weight=unit("{} lb"))),
        "weight",
        clean,
        ("real", "positive"),
        fit=Fit("r2", 0.2, 1.0, -1e9, covers=False),
    )


# ---------------------------------------------------------------- codes


def coded(frame: pd.DataFrame, name: str, codes: Sequence[int], fit: Fit = LABEL, **more: object) -> File:
    """A file whose target is a class by its code."""
    clean = frame.assign(**{name: np.asarray(codes)})
    clean = shuffled(clean, 300)
    return File(written(texts(clean)), name, clean, ("label",), fit=fit, **more)  # type: ignore[arg-type]


@messy(CODES)
def iris_codes() -> File:
    """0, 1, 2 by the name of species."""
    iris = load_iris(as_frame=True)
    return coded(iris.data, "species", iris.target)


@messy(CODES)
def wine_codes() -> File:
    """1, 2, 3 by the name of class, with units in the inputs."""
    wine = load_wine(as_frame=True)
    clean = shuffled(wine.data.assign(**{"class": wine.target + 1}), 300)
    cells = texts(clean, alcohol=unit("{} %"), ash=unit("{} g/l"))
    return File(written(cells), "class", clean, ("label",), fit=LABEL)


@messy(CODES)
def codes_without_order() -> File:
    """0, 1, 2 by the name of y, of which the middle one lies on no way from the first to the last."""
    rng = np.random.default_rng(40)
    code = rng.integers(0, 3, 300)
    centre = np.array([[0, 0], [0, 3], [3, 0.0]])[code]
    x = (centre + rng.normal(size=(300, 2))).round(2)
    order = np.array([0, 2, 1])
    return coded(pd.DataFrame(x, columns=["a", "b"]), "y", order[code])


@messy(CODES, needs="glass")
def glass_codes(path: Path) -> File:
    """1, 2, 3, 5, 6, 7 by the name of type."""
    glass = from_data(path)
    return coded(glass.drop(columns="target"), "type", glass["target"], Fit("accuracy", 0.06, 0.15, 0.5))


@messy(CODES)
def digit_codes() -> File:
    """0 to 9 by the name of digit: 64 columns, some of them constant."""
    digits = load_digits(as_frame=True)
    return coded(digits.data, "digit", digits.target, Fit("accuracy", 0.06, 0.2, 0.75))


@messy(CODES)
def diagnosis_letters() -> File:
    """M and B, decimal commas, an id before."""
    cancer = load_breast_cancer(as_frame=True)
    clean = cancer.data.iloc[:, :10].assign(Diagnosis=np.where(cancer.target == 0, "M", "B"))
    clean = shuffled(clean, 400)
    cells = {"id": [str(842302 + 977 * i) for i in np.random.default_rng(41).permutation(400)]}
    cells |= {name: [comma(cell) for cell in clean[name]] for name in clean}
    return File(
        written(cells, ";"),
        "Diagnosis",
        clean,
        ("label",),
        uses={"id": "left out"},
        says=[named("id")],
        fit=Fit("accuracy", 0.04, 0.1, 0.85),
    )


@messy(CODES)
def yes_no_target() -> File:
    """Yes, yes and YES are one label, or the difference is said."""
    clean, f = line(seed=42)
    bought = f + 0.5 * np.random.default_rng(42).normal(size=300) > 0.3
    cells = texts(clean) | {
        "bought": [("Yes", "yes", "YES ")[i % 3] if b else ("No", "no")[i % 2] for i, b in enumerate(bought)]
    }
    clean["bought"] = np.where(bought, "Yes", "No")
    return File(
        written(cells),
        "bought",
        clean,
        ("label",),
        loose=("bought",),
        says=[named("bought", "case|capital|spell|trim")],
        fit=Fit("accuracy", 0.05, 0.1, 0.75),
    )


@messy(CODES)
def survived() -> File:
    """0 and 1."""
    clean, f = line(seed=43)
    clean["survived"] = (f + 0.5 * np.random.default_rng(43).normal(size=300) > 0).astype(int)
    return File(written(texts(clean)), "survived", clean, ("label",), fit=Fit("accuracy", 0.05, 0.1, 0.75))


@messy(CODES, needs="vertebral")
def vertebral_words(path: Path) -> File:
    """Three diagnoses in words, with blanks behind some."""
    clean = shuffled(from_data(path).rename(columns={"target": "diagnosis"}), 300)
    cells = texts(clean)
    cells["diagnosis"] = [name + " " * (i % 4 == 0) for i, name in enumerate(cells["diagnosis"])]
    return File(
        written(cells),
        "diagnosis",
        clean,
        ("label",),
        says=[named("diagnosis", "blank|space|trim")],
        fit=Fit("accuracy", 0.05, 0.1, 0.75),
    )


@messy(CODES, needs="mushroom")
def mushroom_letters(path: Path) -> File:
    """Letters in every column, ? for a missing one, a constant one."""
    clean = from_data(path).rename(columns={"target": "edible"})
    clean = clean.replace("?", np.nan)
    return File(
        written(texts(clean)),
        "edible",
        clean,
        ("label",),
        uses={"veil_type": "left out"},
        says=[named("veil_type")],
        fit=Fit("accuracy", 0.03, 0.1, 0.95),
    )


# ---------------------------------------------------------------- gaps


def with_gaps(made: pd.DataFrame, column: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The first 300 rows, and the others with a column emptied."""
    return made.iloc[:300], made.iloc[300:].assign(**{column: np.nan}).reset_index(drop=True)


@messy(GAPS)
def gap_in_amounts() -> File:
    """A real target; later the column that tells most of it is empty."""
    made, f = line(600, seed=70)
    made["y"] = (f + 0.3 * np.random.default_rng(70).normal(size=600)).round(3)
    clean, later = with_gaps(made, "x1")
    return File(written(texts(clean)), "y", clean, ("real",), fit=Fit("r2", 0.03, 0.1, 0.8), later=later)


@messy(GAPS)
def gap_in_costs() -> File:
    """A positive target; later the column that tells most of it is empty."""
    made, f = line(600, seed=71)
    made["cost"] = np.exp(3 + 0.8 * f + 0.2 * np.random.default_rng(71).normal(size=600)).round(2)
    clean, later = with_gaps(made, "x1")
    return File(
        written(texts(clean)), "cost", clean, ("positive",), fit=Fit("r2", 0.05, 0.1, 0.6), later=later
    )


@messy(GAPS)
def gap_in_visits() -> File:
    """Counts; later the column that tells most of them is empty."""
    made, f = line(600, seed=72)
    made["visits"] = np.random.default_rng(72).poisson(np.exp(1.5 + 0.8 * f))
    clean, later = with_gaps(made, "x1")
    return File(
        written(texts(clean)), "visits", clean, ("count",), fit=Fit("r2", 0.05, 0.1, 0.5), later=later
    )


@messy(GAPS)
def gap_in_labels() -> File:
    """A label; later the column that tells most of it is empty."""
    made, f = line(600, seed=73)
    made["won"] = np.where(2 * f + 0.3 * np.random.default_rng(73).normal(size=600) > 0, "yes", "no")
    clean, later = with_gaps(made, "x1")
    return File(written(texts(clean)), "won", clean, ("label",), fit=LABEL, later=later)
