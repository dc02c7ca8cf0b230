"""Files whose target is easily misunderstood: grades, shares, amounts with zeros, censored times, text."""

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
    line,
    messy,
    named,
    texts,
    unit,
    written,
)

GRADES, SHARES = "grades", "shares"
ZEROS, CENSORED, TEXT, WORTH = "amounts with zeros", "censored times", "text targets", "hopeless tables"
SENTENCE = "the delivery was late but staff were kind and the box was not damaged at all"


# ---------------------------------------------------------------- grades


def graded(words: Sequence[str], name: str, seed: int, n: int = 300) -> pd.DataFrame:
    """Rows whose grade, a word of those from lowest to highest, follows two inputs."""
    clean, f = line(n, seed, 2)
    z = f + 0.4 * np.random.default_rng(seed).normal(size=n)
    place = np.searchsorted(np.quantile(z, np.linspace(0, 1, len(words) + 1)[1:-1]), z)
    clean[name] = np.asarray(words)[place]
    return clean


def in_order(words: Sequence[str]) -> str:
    """A pattern for one sentence that has the words from lowest to highest."""
    return "" + r"\b.{1,5}\b".join(words)


def grade_file(words: Sequence[str], name: str, seed: int, **more: object) -> File:
    """A file with grades in words; the reference declares them."""
    clean = graded(words, name, seed)
    return File(
        written(texts(clean)),
        name,
        clean,
        ("grade",),
        says=[in_order(words)],
        fit=Fit("accuracy", 0.05, 0.1, 0.4),
        reference={"levels": ",".join(words)},
        **more,  # type: ignore[arg-type]
    )


@messy(GRADES)
def quality_words() -> File:
    """poor, fair, good, excellent."""
    return grade_file(("poor", "fair", "good", "excellent"), "condition", 44)


@messy(GRADES)
def agreement_words() -> File:
    """Strongly disagree to strongly agree."""
    words = ("Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree")
    return grade_file(words, "answer", 45)


@messy(GRADES)
def size_words() -> File:
    """S, M, L, XL."""
    return grade_file(("S", "M", "L", "XL"), "size", 46)


@messy(GRADES)
def frequency_words() -> File:
    """never, rarely, sometimes, often, always."""
    return grade_file(("never", "rarely", "sometimes", "often", "always"), "how_often", 47)


@messy(GRADES)
def declared_levels() -> File:
    """Words that no list knows, in an order that is declared."""
    words = ("mild", "medium", "hot", "insane")
    return grade_file(words, "spice", 48, declared={"levels": ",".join(words)})


@messy(GRADES)
def numbered_grades() -> File:
    """grade 2 comes before grade 10."""
    words = ("grade 1", "grade 2", "grade 5", "grade 10")
    clean = graded(words, "lesion", 49)
    return File(
        written(texts(clean)),
        "lesion",
        clean,
        ("grade", "label"),
        never=["grade 10.{1,5}grade 2"],
    )


@messy(GRADES)
def words_without_order() -> File:
    """Colours: labels, never sorted by the alphabet into grades."""
    clean = graded(("blue", "amber", "red"), "colour", 50)
    return File(
        written(texts(clean)),
        "colour",
        clean,
        ("label",),
        never=["amber < blue"],
        fit=Fit("accuracy", 0.05, 0.1, 0.4),
    )


@messy(GRADES)
def half_stars() -> File:
    """0.5 to 5 by halves: levels, not real numbers."""
    clean, f = line(400, 51, 2)
    z = 3.2 + 0.9 * f + 0.5 * np.random.default_rng(51).normal(size=400)
    clean["rating"] = (np.round(2 * z) / 2).clip(0.5, 5)
    return File(written(texts(clean)), "rating", clean, ("grade",), fit=Fit("accuracy", 0.05, 0.1, 0.2))


@messy(GRADES, needs="wine_red")
def wine_quality(path: Path) -> File:
    """Quality 3 to 8."""
    clean = from_data(path).rename(columns={"target": "quality"})
    return File(
        written({name: [comma(cell) for cell in clean[name]] for name in clean}, ";"),
        "quality",
        clean,
        ("grade",),
        fit=Fit("accuracy", 0.05, 0.1, 0.45),
    )


@messy(GRADES, needs="esl")
def esl_grades(path: Path) -> File:
    """Fitness for a job 1 to 9 by four grades."""
    clean = from_data(path).rename(columns={"target": "fitness_grade"})
    return File(
        written(texts(clean)), "fitness_grade", clean, ("grade",), fit=Fit("accuracy", 0.05, 0.1, 0.5)
    )


# ---------------------------------------------------------------- shares


def share(seed: int, ends: bool) -> pd.DataFrame:
    """Rows with a share; at its `ends` some are exactly 0 and 1."""
    clean, f = line(seed=seed)
    rng = np.random.default_rng(seed)
    mean = 1 / (1 + np.exp(-f))
    value = rng.beta(8 * mean, 8 * (1 - mean))
    if ends:
        value = np.where(value < 0.08, 0.0, np.where(value > 0.92, 1.0, value))
    else:
        value = value.clip(0.002, 0.998)
    return clean.assign(share=value.round(3))


@messy(SHARES)
def open_shares() -> File:
    """Shares within 0 and 1."""
    return File(
        written(texts(share(52, False))),
        "share",
        share(52, False),
        ("share",),
        fit=Fit("r2", 0.03, 0.05, 0.4),
        support=(0, 1),
    )


@messy(SHARES)
def shares_with_ends() -> File:
    """Shares of which some are exactly 0 and 1."""
    return File(
        written(texts(share(53, True))),
        "share",
        share(53, True),
        ("share",),
        fit=Fit("r2", 0.03, 0.05, 0.4),
        support=(0, 1),
    )


@messy(SHARES)
def percent_numbers() -> File:
    """0 to 100 without a sign, by the name of percent."""
    clean = share(54, True).rename(columns={"share": "percent_used"})
    clean["percent_used"] = (100 * clean["percent_used"]).round(1)
    return File(
        written(texts(clean)),
        "percent_used",
        clean,
        ("share",),
        fit=Fit("r2", 0.03, 0.1, 0.4),
        support=(0, 100),
    )


# ---------------------------------------------------------------- zeros, censored


@messy(ZEROS)
def rain() -> File:
    """Millimetres of rain, 40 % of them 0."""
    clean, f = line(seed=55)
    rng = np.random.default_rng(55)
    wet = f + 0.6 * rng.normal(size=300) > -0.3
    clean["rain"] = np.where(wet, np.exp(1 + 0.6 * f + 0.4 * rng.normal(size=300)), 0.0).round(1)
    return File(
        written(texts(clean, rain=unit("{} mm"))),
        "rain",
        clean,
        ("positive with zeros",),
        fit=Fit("r2", 0.05, 0.1, 0.3),
        support=(0, np.inf),
    )


@messy(ZEROS)
def claims_mostly_zero() -> File:
    """Claims in dollars, 90 % of them 0, hardly told by the inputs: the verdict is plain."""
    clean, _ = line(400, seed=56)
    rng = np.random.default_rng(56)
    size = np.exp(7 + 1.2 * rng.normal(size=400))
    clean["claim"] = np.where(rng.random(400) < 0.1, size, 0.0).round(2)
    return File(
        written(texts(clean, claim=unit("${}", grouped(digits=2)))),
        "claim",
        clean,
        ("positive with zeros",),
        fit=Fit("r2", 0.05, 0.1, -10),
        verdict="no better|not better|not distinguish|cannot be told|worse than the mean",
        support=(0, np.inf),
    )


@messy(ZEROS)
def skewed_amounts() -> File:
    """Positive, skewed, no zeros."""
    clean, f = line(seed=57)
    clean["cost"] = np.exp(4 + 0.8 * f + 0.4 * np.random.default_rng(57).normal(size=300)).round(2)
    return File(
        written(texts(clean)),
        "cost",
        clean,
        ("positive",),
        fit=Fit("r2", 0.05, 0.1, 0.4),
        support=(0, np.inf),
    )


def times_and_events(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Times to an event, a third of them censored (event 0), and the times that are not seen (N,)."""
    clean, f = line(seed=seed)
    rng = np.random.default_rng(seed)
    time = np.exp(2.5 + 0.8 * f + 0.4 * rng.normal(size=300))
    end = rng.uniform(3, 40, 300)
    seen = clean.assign(days=np.minimum(time, end).round(2) + 0.01, event=(time <= end).astype(int))
    return seen, time


@messy(CENSORED)
def censored_unsaid() -> File:
    """A time beside a column `event`, of which nothing is declared: warned of, with the option."""
    clean, _ = times_and_events(58)
    return File(
        written(texts(clean)),
        "days",
        clean,
        ("positive", "time", "real"),
        uses={"event": "number|label|left out"},
        says=[named("event", "censor")],
    )


@messy(CENSORED)
def censored_declared() -> File:
    """The same, declared: the event is no input."""
    clean, truth = times_and_events(59)
    return File(
        written(texts(clean)),
        "days",
        clean,
        ("time", "positive"),
        declared={"censored": "event=0"},
        uses={"event": "left out"},
        fit=Fit("r2", 0.1, 0.1),
        truth=truth,
        least=0.4,
    )


# ---------------------------------------------------------------- text, hopeless


@messy(TEXT)
def sentence_target() -> File:
    """Free text as a target is refused at once."""
    clean = diabetes()[["age", "bmi"]]
    rng = np.random.default_rng(60)
    words = np.array(SENTENCE.split())
    cells = texts(clean) | {"review": [" ".join(rng.choice(words, rng.integers(4, 12))) for _ in range(300)]}
    return File(written(cells), "review", clean, refused=named("review", "text|label|distinct|differ"))


@messy(TEXT)
def too_many_labels() -> File:
    """70 towns in 300 rows as a target: refused with the likely cause."""
    clean = diabetes()[["age", "bmi"]]
    cells = texts(clean) | {"town": [f"Town {i}" for i in np.random.default_rng(61).integers(0, 70, 300)]}
    return File(written(cells), "town", clean, refused=named("town", "label|distinct|text"))


@messy(TEXT)
def names_as_target() -> File:
    """A name in every row as a target."""
    clean = diabetes()[["age", "bmi"]]
    cells = texts(clean) | {"name": [f"Person{i * 7919 % 100_003}" for i in range(300)]}
    return File(written(cells), "name", clean, refused=named("name"))


@messy(WORTH)
def noise() -> File:
    """Nothing tells of the target: no better than the mean, in so many words."""
    clean, _ = line(seed=62)
    clean["y"] = np.random.default_rng(62).normal(size=300).round(3)
    return File(
        written(texts(clean)),
        "y",
        clean,
        ("real",),
        fit=Fit("r2", 0.05, 0.1, -0.3),
        verdict="no better|not better|not distinguish|cannot be told",
    )


@messy(WORTH)
def noise_labels() -> File:
    """Nothing tells of the label."""
    clean, _ = line(seed=63)
    clean["won"] = np.where(np.random.default_rng(63).random(300) < 0.7, "no", "yes")
    return File(
        written(texts(clean)),
        "won",
        clean,
        ("label",),
        fit=Fit("accuracy", 0.08, 0.1, 0.5),
        verdict="no better|not better|not distinguish|cannot be told",
    )


@messy(WORTH)
def constant_target() -> File:
    """The same value in every row: refused or said."""
    clean, _ = line(seed=64)
    clean["y"] = 3.0
    return File(
        written(texts(clean)),
        "y",
        clean,
        ("constant",),
        refused="only the value|constant|same value|varies",
        either=True,
        says=["only the value|constant|same"],
    )
