"""Messy files with what is right for each: how they are written, what is to be read, understood and said.

A file is made from a clean table, whose values are the truth for its cells; no parser has a hand in them.
"""

from __future__ import annotations

import csv
import importlib
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Fit:
    """A fit that is to be as good as one on the clean table: within `margin` by its figure.

    `figure` is "r2" or "accuracy"; `nats` is the margin of the log score, compared where both fits have the
    same likelihood; `floor` the least that the law allows whoever fits;
    `covers`: intervals are to hold their share of the held-out rows, and predictions to be right on average.
    """

    figure: str = "r2"
    margin: float = 0.03
    nats: float = 0.1
    floor: float = -1.0
    covers: bool = True


REAL = ("real", "positive")
GOOD = Fit("r2", 0.03, 0.1, 0.15)
"""For diabetes: a linear model explains 40 to 50 % of all rows, less of a few dozen."""


@dataclass(frozen=True)
class File:
    """A messy file and what is right for it.

    `clean`: the same table with typed values, one row for each row of the file. `kinds`: what the target may
    be taken for, the best first. `uses`: what a column may become, of "number", "date", "label" and
    "left out", with "|" between; the columns that are not named follow from their type in `clean`. `loose`:
    columns whose cells count only where `clean` has a value; those of `unread` columns do not count. `says`:
    patterns, each to be found in one sentence; `never`: patterns to be found in none. `refused`: the sentence
    of a refusal. `either`: a refusal or a right reading will do. `verdict`: a pattern of the verdict.
    `later`: new rows, to be predicted after the fit, with gaps in a column that has none.
    `support`: where every interval must lie. `truth` (N,): what predictions of the rows of the file are
    compared with, by R² on the log scale, of which `least` is asked; the target where it is None.
    """

    data: bytes
    target: str
    clean: pd.DataFrame
    kinds: tuple[str, ...] = ()
    suffix: str = ".csv"
    declared: Mapping[str, str] = field(default_factory=dict)
    uses: Mapping[str, str] = field(default_factory=dict)
    loose: Sequence[str] = ()
    unread: Sequence[str] = ()
    says: Sequence[str] = ()
    never: Sequence[str] = ()
    refused: str = ""
    either: bool = False
    fit: Fit | None = None
    reference: Mapping[str, str] = field(default_factory=dict)
    verdict: str = ""
    later: pd.DataFrame | None = None
    support: tuple[float, float] | None = None
    truth: np.ndarray | None = None
    least: float = 0.0


@dataclass(frozen=True)
class Recipe:
    """How a file is made: its row of the table of what is right, the sets it needs, its function."""

    name: str
    row: str
    make: Callable[..., File]
    needs: str = ""
    large: bool = False

    def __call__(self, data: Path | None) -> File:
        """The file; `data` is the folder of the sets."""
        return self.make(data / self.needs / "data.csv.gz") if self.needs and data else self.make()


RECIPES: dict[str, Recipe] = {}


def messy(
    row: str, needs: str = "", large: bool = False
) -> Callable[[Callable[..., File]], Callable[..., File]]:
    """Register a function as the recipe of a file; it may need a set in the folder of data, or be `large`."""

    def keep(make: Callable[..., File]) -> Callable[..., File]:
        RECIPES[make.__name__] = Recipe(make.__name__, row, make, needs, large)
        return make

    return keep


# ---------------------------------------------------------------- writing


def written(
    columns: Mapping[str, Iterable[Any]] | Sequence[tuple[str, Iterable[Any]]],
    separator: str = ",",
    encoding: str = "utf-8",
    before: str = "",
    quoting: int = csv.QUOTE_MINIMAL,
) -> bytes:
    """A text file of columns of texts; `before` stands above the names."""
    pairs = list(columns.items()) if isinstance(columns, Mapping) else list(columns)
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator="\n", quoting=quoting)  # type: ignore[arg-type]
    writer.writerow([name for name, _ in pairs])
    writer.writerows(zip(*(cells for _, cells in pairs), strict=True))
    return (before + out.getvalue()).encode(encoding)


def texts(frame: pd.DataFrame, **as_text: Callable[[Any], str]) -> dict[str, list[str]]:
    """The cells of a frame as texts, by column; `as_text` says how a column is written. Gaps are empty."""
    out = {}
    for name in frame.columns:
        write = as_text.get(str(name), plain)
        out[str(name)] = ["" if pd.isna(cell) else write(cell) for cell in frame[name]]
    return out


def plain(value: Any) -> str:
    """A number with a decimal point and no more digits than it has; other cells as they are."""
    if isinstance(value, int | np.integer) or not isinstance(value, float | np.floating):
        return str(value)
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def comma(value: Any) -> str:
    """A number with a decimal comma."""
    return plain(value).replace(".", ",")


def grouped(point: str = ".", group: str = ",", digits: int | None = None) -> Callable[[float], str]:
    """Numbers with groups of thousands."""

    def write(value: float) -> str:
        if digits is None:
            whole, _, rest = plain(value).partition(".")
            text = f"{int(whole):,}" + (f".{rest}" if rest else "")
        else:
            text = f"{value:,.{digits}f}"
        return text.replace(",", "\0").replace(".", point).replace("\0", group)

    return write


def unit(pattern: str, write: Callable[[Any], str] = plain) -> Callable[[Any], str]:
    """Numbers within a text, such as "{} kg"."""
    return lambda value: pattern.format(write(value))


def some(cells: list[str], instead: Sequence[str], every: int, first: int = 3) -> tuple[list[str], list[int]]:
    """The cells with every so many replaced by others in turn, and which rows these are."""
    rows = list(range(first, len(cells), every))
    out = list(cells)
    for turn, row in enumerate(rows):
        out[row] = instead[turn % len(instead)]
    return out, rows


def gaps(frame: pd.DataFrame, column: str, rows: Sequence[int]) -> pd.DataFrame:
    """The frame with missing cells in some rows of a column."""
    values = frame[column].astype(float).to_numpy().copy()
    values[list(rows)] = np.nan
    return frame.assign(**{column: values})


def together(*words: str) -> str:
    """A pattern for one sentence that holds all the words, in any order."""
    return "".join(f"(?=.*(?:{word}))" for word in words)


def named(name: str, *words: str) -> str:
    """A pattern for one sentence on a column, by its name as a word, with other words."""
    return together(rf"(?<![\w]){re.escape(name)}(?![\w])", *words)


# ---------------------------------------------------------------- clean tables


def diabetes(n: int = 300) -> pd.DataFrame:
    """Rows of the diabetes study in its own units; `progression` is the usual target."""
    bunch = load_diabetes(as_frame=True, scaled=False)
    frame = bunch.data.assign(progression=bunch.target.astype(float))
    return frame.iloc[:n].reset_index(drop=True).round(4)


def homes(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Made sales of homes: area (m2), rooms, distance (km), age (years), price to whole hundreds."""
    rng = np.random.default_rng(seed)
    area = rng.gamma(6.0, 18.0, n).round(1) + 25
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.7, n)), 1, 9)
    distance = rng.gamma(2.0, 4.0, n).round(2)
    age = rng.integers(0, 90, n).astype(float)
    level = 11.6 + 0.75 * np.log(area / 100) - 0.035 * distance - 0.003 * age + 0.15 * rng.normal(size=n)
    price = np.round(np.exp(level), -2)
    return pd.DataFrame({"area": area, "rooms": rooms, "distance": distance, "age": age, "price": price})


def line(n: int = 300, seed: int = 0, columns: int = 4) -> tuple[pd.DataFrame, np.ndarray]:
    """Made inputs of unit scale to two decimals, and a smooth function of them of unit size, (N,)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, columns)).round(2)
    frame = pd.DataFrame(x, columns=[f"x{i + 1}" for i in range(columns)])
    return frame, (x[:, 0] + np.sin(1.5 * x[:, 1]) - 0.5 * x[:, 2 % columns]) / 1.3


def from_data(path: Path, n: int = 400, seed: int = 0) -> pd.DataFrame:
    """At most n random rows of a set, in their order."""
    frame = pd.read_csv(path)
    if len(frame) > n:
        frame = frame.iloc[np.sort(np.random.default_rng(seed).permutation(len(frame))[:n])]
    return frame.reset_index(drop=True)


def every_recipe() -> dict[str, Recipe]:
    """All recipes by name."""
    for part in ("reading", "shape", "dates", "targets", "grades", "strangers", "exports", "amounts"):
        importlib.import_module(f"front_door_{part}")
    return RECIPES
