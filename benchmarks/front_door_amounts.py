"""Amounts with their units, errors and sides of an account; answers that are none; names under headings."""

from __future__ import annotations

import numpy as np
import pandas as pd
from front_door_files import REAL, File, gaps, line, messy, named, plain, texts, written
from front_door_grades import graded

UNITS, ANSWERS = "amounts with units", "answers and marks"
N = 300


def _table(seed: int, **columns: np.ndarray) -> pd.DataFrame:
    """Columns beside two inputs, and a target that rises with each of them."""
    clean, f = line(N, seed, columns=2)
    scaled = sum((cells - cells.mean()) / cells.std() for cells in columns.values())
    noise = 0.3 * np.random.default_rng(seed).normal(size=N)
    return clean.assign(**columns, y=(f + scaled + noise).round(3))


@messy(UNITS)
def milliseconds_and_seconds() -> File:
    """A target of 950ms and 1.20s."""
    waits = np.round(np.exp(np.random.default_rng(1).normal(6, 0.8, N)))
    waits = np.where(waits < 1000, waits, np.round(waits, -1))
    clean = _table(1, wait=waits)
    cells = texts(clean, wait=lambda v: f"{v:.0f}ms" if v < 1000 else f"{v / 1000:.2f}s")
    return File(
        written(cells), "wait", clean, ("positive", "real"), says=[named("wait", "converted to 'ms'")]
    )


@messy(UNITS)
def sizes_of_files() -> File:
    """812 B, 4.1 KB, 3.4 MB."""
    size = np.exp(np.random.default_rng(2).uniform(5, 15, N))
    parts = [(v, "B", 0) if v < 1e3 else (v / 1e3, "KB", 1) if v < 1e6 else (v / 1e6, "MB", 1) for v in size]
    cells_of = [f"{value:.{digits}f} {unit}" for value, unit, digits in parts]
    kb = [float(cell.split()[0]) * {"B": 1e-3, "KB": 1.0, "MB": 1e3}[cell.split()[1]] for cell in cells_of]
    clean = _table(2, size=np.log(kb)).assign(size=kb)
    cells = texts(clean) | {"size": cells_of}
    return File(written(cells), "y", clean, REAL, says=[named("size", "converted to 'KB'")])


@messy(UNITS)
def years_and_months() -> File:
    """2y 3m, 11m, 4y: years."""
    months = np.random.default_rng(3).integers(1, 200, N)
    clean = _table(3, tenure=months / 12.0)
    cells = texts(clean)
    cells["tenure"] = [
        f"{m // 12}y {m % 12}m" if m >= 12 and m % 12 else f"{m // 12}y" if m >= 12 else f"{m}m"
        for m in months
    ]
    return File(written(cells), "y", clean, REAL)


@messy(UNITS)
def debit_and_credit_sides() -> File:
    """1.234,56 S is owed, 1.234,56 H is had."""
    clean = _table(4, saldo=np.random.default_rng(4).normal(0, 900, N).round(2))
    cells = texts(
        clean,
        saldo=lambda v: f"{abs(v):,.2f}".translate(str.maketrans(",.", ".,")) + (" S" if v < 0 else " H"),
        **{name: lambda v: f"{v:.3f}".replace(".", ",") for name in ("x1", "x2", "y")},
    )
    return File(written(cells, ";", "cp1252"), "y", clean, REAL)


@messy(UNITS)
def numbers_with_errors() -> File:
    """70.5 ± 0.4 kg: the number, with a note."""
    rng = np.random.default_rng(5)
    clean = _table(5, mass=rng.normal(70, 8, N).round(1))
    cells = texts(clean, mass=lambda v: f"{v:.1f} ± {rng.uniform(0.1, 0.9):.1f} kg")
    return File(written(cells), "y", clean, REAL, says=[named("mass", "±")])


@messy(UNITS)
def times_of_swimmers() -> File:
    """A target of 58.07 and 1:02.34: no share of an hour."""
    seconds = np.random.default_rng(6).uniform(52, 75, N).round(2)
    clean = _table(6, time=seconds)
    cells = texts(clean)
    cells["time"] = [f"{s:.2f}" if s < 60 else f"{s // 60:.0f}:{s % 60:05.2f}" for s in seconds]
    return File(written(cells), "time", clean, REAL, says=[named("time", "seconds")])


@messy(UNITS)
def points_out_of_twenty() -> File:
    """A target of 12,5/20."""
    marks = np.random.default_rng(7).normal(11, 2.5, N).clip(0, 20).round(2)
    clean = _table(7, note=marks)
    cells = texts(clean, note=lambda v: f"{v:.2f}/20".replace(".", ","))
    return File(written(cells, ";"), "note", clean, REAL)


@messy(UNITS)
def stamps_in_brackets() -> File:
    """[25/Mar/2024:13:55:36 +0000], as servers write."""
    days = np.sort(np.random.default_rng(8).uniform(0, 300, N))
    stamps = pd.Timestamp("2024-01-01") + pd.to_timedelta((days * 86400).round(), unit="s")
    clean = _table(8, time=days).assign(time=stamps)
    cells = texts(clean, time=lambda t: f"[{t:%d/%b/%Y:%H:%M:%S} +0000]")
    return File(written(cells), "y", clean, REAL, says=[named("time", "order")])


@messy(ANSWERS)
def bands_of_salary() -> File:
    """<30k is below 30-40k."""
    order = ["<30k", "30-40k", "40-50k", "50-75k", "75k+"]
    clean = graded(order, "band", 9)
    return File(written(texts(clean)), "band", clean, ("grade",), reference={"levels": ",".join(order)})


@messy(ANSWERS)
def titres() -> File:
    """<1:10 is a titre below 1:10, and no gap."""
    order = ["<1:10", "1:10", "1:20", "1:40", "1:80", "1:160"]
    clean = graded(order, "titre", 10)
    return File(written(texts(clean)), "titre", clean, ("grade",), reference={"levels": ",".join(order)})


@messy(ANSWERS)
def answers_that_are_none() -> File:
    """Don't know beside a scale of agreement: no answer, which is said."""
    order = ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"]
    clean = graded(order, "q5", 11)
    cells = texts(clean)
    cells["q5"] = ["Don't know" if i % 15 == 4 else cell for i, cell in enumerate(cells["q5"])]
    kept = clean[[i % 15 != 4 for i in range(len(clean))]].reset_index(drop=True)
    says = [named("q5", "Don't know"), "20 of 300 rows have no 'q5'"]
    return File(written(cells), "q5", kept, ("grade",), says=says, reference={"levels": ",".join(order)})


@messy(ANSWERS)
def answers_of_ninety_eight() -> File:
    """1 to 5, and 98 and 99 for no answer: hinted at by column and value."""
    answers = np.random.default_rng(12).integers(1, 6, N).astype(float)
    answers[5::20], answers[7::40] = 99, 98
    clean, f = line(N, 12, columns=2)
    clean = clean.assign(q1=answers, y=(f + np.where(answers > 5, 3, answers)).round(2))
    return File(written(texts(clean, q1=plain)), "y", clean, REAL, says=["--missing q1=98 --missing q1=99"])


@messy(ANSWERS)
def many_words_for_yes() -> File:
    """Y, yes and 1 are yes; N, no and 0 are no."""
    rng = np.random.default_rng(13)
    member = rng.random(N) < 0.5
    clean = _table(13, member=member.astype(float)).assign(member=np.where(member, "Y", "N"))
    cells = texts(clean)
    cells["member"] = [
        str(rng.choice(["Y", "Y", "yes", "1"] if yes else ["N", "N", "no", "0"])) for yes in member
    ]
    return File(written(cells), "y", clean, REAL, says=[named("member", "two labels")])


@messy(ANSWERS)
def absent_from_a_test() -> File:
    """Undetermined and absent in a tenth of a column of numbers: gaps, which are said."""
    clean = _table(14, score=np.random.default_rng(14).normal(60, 10, N).round(1))
    cells, rows = texts(clean), list(range(3, N, 9))
    for number, row in enumerate(rows):
        cells["score"][row] = ("absent", "Undetermined")[number % 2]
    return File(written(cells), "y", gaps(clean, "score", rows), REAL, says=[named("score", "absent")])


@messy(ANSWERS)
def names_under_headings() -> File:
    """Q1 and Q2 in merged cells above Units and Price."""
    rng = np.random.default_rng(15)
    names = ["Q1 Units", "Q1 Price", "Q2 Units", "Q2 Price"]
    clean = _table(15, **{name: rng.normal(50, 9, N).round(1) for name in names})
    lines = written(texts(clean)).decode().split("\n")
    head = ",,Q1,,Q2,,\nx1,x2,Units,Price,Units,Price,y"
    says = ["Two lines of column names", "Q2 Price"]
    return File("\n".join([head, *lines[1:]]).encode(), "y", clean, REAL, says=says)
