"""How a column writes its numbers and dates, so that a cell that is filled looks like those that were there.

A style is found by trial: of the ways in which numbers and dates are usually written, the one that gives most
of the known cells back to the letter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Writer = Callable[[float], str]

SAMPLE = 200
"""Known cells by which a style is judged."""
ENOUGH = 0.5
"""Share of them that it has to give back."""
MARKS = tuple(product(("", ",", ".", "'", " ", "\u00a0", "\u202f"), (".", ",")))
"""Marks between thousands, and before decimals."""
SCALES = (1.0, 100.0, 0.01, 1e-3, 1e-6)
"""A text such as 85% may stand for .85, 1.2k for 1200."""
MONTHS = tuple(
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
_SHORT = ("D/M/Y", "DD/MM/Y", "M/D/Y", "MM/DD/Y", "Y/MM/DD", "DD/MM/y", "D/M/y", "MM/DD/y", "M/D/y", "DD/b/Y")
_LONG = ("YMMDD", "b D, Y", "B D, Y", "D b Y", "D B Y", "D. B Y", "b DD, Y", "b-Y", "b Y", "B Y", "Y-MM")
DAYS = (*(form.replace("/", mark) for mark in "/.- " for form in _SHORT), *_LONG, "MM/Y", "Y")
"""Forms of dates: days and months with and without a zero, years of four or two digits, names of months."""
CLOCKS = ("", " H:m", " H:m:s", "TH:m", "TH:m:s", "TH:m:sZ", " H:m:s.000")


def number_writer(texts: Sequence[str], values: FloatArray) -> Writer | None:
    """What writes numbers as these texts (N,) write the values (N,); None where no rule is seen."""
    chosen = [i for i in range(len(texts)) if values[i] >= 0 and re.search(r"\d", texts[i])][:SAMPLE]
    if not chosen:
        return None
    sample = [texts[i].strip() for i in chosen]
    ends = [_ends(text) for text in sample]
    prefix, suffix = Counter(ends).most_common(1)[0][0]
    bodies = [text[len(p) : len(text) - len(s)] for text, (p, s) in zip(sample, ends, strict=True)]
    return _best(_number_writers(prefix, suffix, bodies), sample, values[chosen])


def date_writer(texts: Sequence[str], days: FloatArray) -> Writer | None:
    """What writes days (N,) since 1970 as these texts (N,) do; None where no rule is seen."""
    sample = [text.strip() for text in texts[:SAMPLE]]
    writers = (_date_writer(day + clock) for clock in CLOCKS for day in DAYS)
    return _best(writers, sample, days[:SAMPLE])


def _best(writers: Iterable[Writer], texts: Sequence[str], values: FloatArray) -> Writer | None:
    """The writer that gives most of the texts, if it gives enough of them; of equals the first."""
    best, most = None, ENOUGH * len(texts) - 1e-9
    for writer in writers:
        n = sum(writer(float(value)) == text for text, value in zip(texts, values, strict=True))
        if n > most or (best is None and n >= most > 0):
            best, most = writer, n
        if n == len(texts):
            break
    return best


def _ends(text: str) -> tuple[str, str]:
    """What stands before the first and after the last digit; a sign is part of neither."""
    first, last = re.search(r"\d", text), re.search(r"\d(?=\D*$)", text)
    assert first is not None
    assert last is not None
    return text[: first.start()].replace("+", ""), text[last.end() :]


def _number_writers(prefix: str, suffix: str, bodies: Sequence[str]) -> Iterable[Writer]:
    """The usual ways to write numbers between a prefix and a suffix, with decimals as in these bodies."""
    exponents = [re.fullmatch(r"\d(?:\.(\d+))?([eE])[-+]?\d+", body) for body in bodies]
    found = Counter((len(m[1] or ""), m[2]) for m in exponents if m)
    for (digits, letter), _ in found.most_common(2):
        yield lambda x, f=f"{{:.{digits}{letter}}}": f"{prefix}{f.format(x)}{suffix}"  # type: ignore[misc]
    for thousands, point in MARKS:
        if thousands == point:
            continue
        digits_of = Counter(len(body.rpartition(point)[2]) if point in body else 0 for body in bodies)
        for scale in SCALES:
            for digits, _ in digits_of.most_common(2):
                yield _writer(prefix, suffix, thousands, point, digits, scale, trim=False)
            yield _writer(prefix, suffix, thousands, point, max(digits_of), scale, trim=True)


def _writer(
    prefix: str, suffix: str, thousands: str, point: str, digits: int, scale: float, trim: bool
) -> Writer:
    """What writes a number with these marks; `trim`: without zeros at its end."""

    def write(x: float) -> str:
        text = f"{abs(x) * scale:,.{digits}f}"
        if trim and "." in text:
            text = text.rstrip("0").rstrip(".")
        body = text.replace(",", "\0").replace(".", point).replace("\0", thousands)
        return f"{'-' if x < 0 and body.strip('0.,') else ''}{prefix}{body}{suffix}"

    return write


_TOKEN = re.compile(r"DD|MM|000|[DMYybBHms]")


def _date_writer(form: str) -> Writer:
    """What writes days since 1970 by a form such as "DD/MM/Y H:m"."""
    has_clock = "H" in form

    def write(day: float) -> str:
        seconds = round(day * 86_400.0) if has_clock else round(day) * 86_400
        stamp = np.datetime64(int(seconds), "s").item()
        parts = {
            "DD": f"{stamp.day:02d}",
            "D": str(stamp.day),
            "MM": f"{stamp.month:02d}",
            "M": str(stamp.month),
            "Y": f"{stamp.year:04d}",
            "y": f"{stamp.year % 100:02d}",
            "b": MONTHS[stamp.month - 1][:3],
            "B": MONTHS[stamp.month - 1],
            "H": f"{stamp.hour:02d}",
            "m": f"{stamp.minute:02d}",
            "s": f"{stamp.second:02d}",
            "000": "000",
        }
        return _TOKEN.sub(lambda found: parts[found[0]], form)

    return write
