"""Columns: the cells of one as numbers or codes, what is known of one after some rows, what a kind owns."""

from __future__ import annotations

import enum
import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.words import TIMES, words_of

if TYPE_CHECKING:
    from nongauss.tables.kinds.number import Moments


@dataclass(frozen=True)
class Column:
    """The cells of one column: either `values` (N,) float64 with NaN where missing, or labels.

    Labels are `codes` (N,) into `levels`, -1 where missing; a level may occur in no row. `ranks`: the place
    of each level in the order of an ordered category; empty for labels without an order. `kind`: the name of
    the kind that decoded it (see `tables.kinds`), by which a column of values may carry its text as well.
    `note`: what a person should know of how the cells were read, "" for nothing; `lost`: texts that were no
    values and count as missing, with the number of their cells. `unit`: what its kind keeps for display.
    """

    name: str
    values: NDArray[np.float64] | None
    codes: NDArray[np.intp] | None = None
    levels: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    kind: str = ""
    note: str = ""
    lost: str = ""
    unit: str = ""

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing, (N,)."""
        if self.values is not None:
            return np.isnan(self.values)
        assert self.codes is not None
        return self.codes < 0

    @property
    def n_rows(self) -> int:
        """Number of cells."""
        if self.values is not None:
            return len(self.values)
        assert self.codes is not None
        return len(self.codes)

    def take(self, rows: NDArray[Any]) -> Column:
        """The cells of some rows, by their numbers or a mask."""
        values = None if self.values is None else self.values[rows]
        codes = None if self.codes is None else self.codes[rows]
        return replace(self, values=values, codes=codes)

    def as_labels(self) -> Column:
        """This column with its numbers read as labels: 1.0 becomes "1"."""
        if self.values is None:
            return self
        return labelled(self.name, self.values, self.missing)


@dataclass(frozen=True)
class ColumnSummary:
    """What all rows tell of one flat column: `numbers`, or the weight of each of its `levels`, in order.

    Neither where every cell is missing. `order`: all levels of an ordered category, lowest first; None
    without an order. `place`: the input column it comes from. `kind`, `part`, `origin`: see `ColumnCode`.
    """

    name: str
    gaps: bool = False
    numbers: Moments | None = None
    levels: dict[str, float] | None = None
    order: tuple[str, ...] | None = None
    place: int = -1
    kind: str = ""
    part: str = ""
    origin: float = 0.0


def as_pandas(data: Any) -> pd.DataFrame | pd.Series[Any] | None:
    """A pandas frame or series for any eager frame or series; None for whatever else.

    Raises: InputError for a lazy frame.
    """
    if isinstance(data, pd.DataFrame | pd.Series):
        return data
    native = nw.from_native(data, pass_through=True, allow_series=True)
    if isinstance(native, nw.LazyFrame):
        raise InputError(
            "The table is lazy, and its rows have not been computed yet; call its collect() or compute()."
        )
    if not isinstance(native, nw.DataFrame | nw.Series):
        return None
    if isinstance(native, nw.Series):
        one: pd.Series[Any] = _narrower(native).to_pandas()
        return one
    wide = [_narrower(native[name]) for name, dtype in native.schema.items() if dtype in _WIDE]
    converted: pd.DataFrame = (native.with_columns(*wide) if wide else native).to_pandas()
    return converted


_WIDE = (nw.Int128, nw.UInt128)


def _narrower(series: nw.Series[Any]) -> nw.Series[Any]:
    """Whole numbers of 128 bits, which pandas does not have, in 64 bits; as floats where they do not fit."""
    if series.dtype not in _WIDE:
        return series
    ends = [end for end in (series.min(), series.max()) if end is not None]
    fits = all(-(2**63) <= int(end) < 2**63 for end in ends)
    return series.cast(nw.Int64 if fits else nw.Float64)


def without_mask(array: Any) -> Any:
    """Masked cells of a masked array are missing cells; whatever else comes back as it is."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if array.dtype.kind in "fc":
        return np.ma.filled(array, np.nan)
    if array.dtype.kind in "mM":
        return np.where(np.ma.getmaskarray(array), np.array("NaT", array.dtype), array.data)
    if not np.ma.is_masked(array):
        return np.asarray(array)
    return np.ma.filled(array.astype(np.float64 if array.dtype.kind in "iub" else object), np.nan)


_NUMBER_STARTS = frozenset("+-.0123456789iI \t\n\r\f\v")
"""First signs of what Python reads as a number, "inf" among them."""


def label_of(value: Any) -> str:
    """The text of one label: whole floats lose their point, so that 1, 1.0 and "1" are one label."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, float | np.floating) and math.isfinite(value) and float(value).is_integer():
        return str(int(value))
    return str(value)


def tidy(label: str) -> str:
    """A label without blanks around it, and with each accented letter as one sign (Unicode's form NFC)."""
    return label.strip() if label.isascii() else unicodedata.normalize("NFC", label).strip()


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Distinct labels in order: numbers by size first, then text."""
    numbers, texts = [], []
    for label in set(labels):
        try:
            number = float(label) if label[:1] in _NUMBER_STARTS else math.nan
        except ValueError:
            number = math.nan
        if math.isnan(number):
            texts.append(label)
        else:
            numbers.append((number, label))
    return (*(label for _, label in sorted(numbers)), *sorted(texts))


def one_order(first: Sequence[Any], second: Sequence[Any]) -> Sequence[Any] | None:
    """Two orders as one: the longer, if the levels of the other stand in it in their order, else None."""
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    known = set(shorter)
    return longer if [level for level in longer if level in known] == list(shorter) else None


def labelled(name: str, cells: NDArray[Any], missing: NDArray[np.bool_]) -> Column:
    """A column of labels from cells (N,) of any type."""
    codes, values = pd.factorize(cells)
    return recoded(name, np.where(missing, -1, codes), list(values))


MOST_SORTED = 1000
"""Levels up to which they are put in order; more are no labels that a model could use."""


def recoded(name: str, codes: NDArray[np.intp], values: Sequence[Any], ordered: bool = False) -> Column:
    """A column of tidy labels in sorted order (up to `MOST_SORTED`), whatever order its `values` came in.

    `codes` (N,) are into `values`; `ordered`: their order means something, so it becomes the ranks.
    """
    texts = [tidy(label_of(value)) for value in values]
    levels = sorted_labels(texts) if ordered or len(texts) <= MOST_SORTED else tuple(dict.fromkeys(texts))
    if levels == tuple(texts):
        return Column(name, None, codes, levels, tuple(range(len(levels))) if ordered else (), "label")
    place = {level: number for number, level in enumerate(levels)}
    lookup = np.array([*(place[text] for text in texts), -1], dtype=np.intp)
    ranks = tuple(texts.index(level) for level in levels) if ordered else ()
    return Column(name, None, lookup[codes], levels, ranks, "label")


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a message: "column 'a'" or "columns 'a', 'b' and 3 more"."""
    shown = ", ".join(repr(name) for name in names[:most])
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{'column' if len(names) == 1 else 'columns'} {shown}{more}"


TEXT = ("string", "boolean", "bytes")
"""What pandas calls cells that are labels."""


FIRST_DAY, LAST_DAY = 19_000_101, 21_001_231
"""Days that whole numbers such as 20241231 may stand for."""


class ColumnKind(enum.Enum):
    """What a column is to a reader and as a target; the value is the word for it in messages and options."""

    REAL = "real"
    POSITIVE = "positive"
    ZEROS = "positive with zeros"
    COUNT = "count"
    SHARE = "share"
    GRADE = "grade"
    BINARY = "binary"
    LABEL = "label"
    TIME = "censored time"
    DATE = "date"
    TEXT = "text"
    CONSTANT = "constant"


@dataclass(frozen=True)
class TargetKind:
    """What a target is. `reason`, and the reasons of the kinds that are `near`, are sentences on "It".

    `levels`: of grades, from lowest to highest, as text. `order`: how their order was told, "" where it was
    declared or does not matter. `scale`: what its numbers are divided by, 100 for percent. `notes`: what a
    person should know besides. `declared`: a person said so.
    """

    kind: ColumnKind
    reason: str
    near: tuple[tuple[ColumnKind, str], ...] = ()
    notes: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    order: str = ""
    scale: float = 1.0
    declared: bool = False


@dataclass(frozen=True)
class Cells:
    """The cells of one column as they came: a pandas series, or an array (N,) of a table without types.

    `notes`: what kinds found that a person should know, whichever kind takes the column in the end.
    """

    name: str
    raw: Any
    notes: list[str] = field(default_factory=list, compare=False)

    @property
    def dtype(self) -> Any:
        """The type of the cells, as pandas or NumPy has it."""
        return self.raw.dtype

    @cached_property
    def objects(self) -> NDArray[np.object_]:
        """The cells as Python objects, (N,)."""
        if isinstance(self.raw, pd.Series):
            return self.raw.to_numpy(dtype=object)
        return np.asarray(self.raw).astype(object)

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Which of the objects are missing, (N,)."""
        return np.asarray(pd.isna(self.objects), dtype=np.bool_)

    @cached_property
    def content(self) -> str:
        """What pandas calls the type of the objects that are there: "string", "integer", "mixed", ..."""
        if isinstance(self.dtype, pd.StringDtype):
            return "string"
        return str(pd.api.types.infer_dtype(self.objects[~self.missing], skipna=False))

    @cached_property
    def may_be_values(self) -> bool:
        """Can the cells be numbers or dates? Not texts without a digit, nor categories."""
        if isinstance(self.dtype, pd.CategoricalDtype):
            return False
        if not isinstance(self.raw, pd.Series) and self.dtype.kind not in "OUS":
            return True
        if pd.api.types.is_numeric_dtype(self.dtype) or self.content != "string":
            return True
        return bool(pc.any(pc.match_substring_regex(self.texts[1], pattern="[0-9]")).as_py())

    @cached_property
    def may_be_dates(self) -> bool:
        """Can the cells be dates that look like numbers: 20241231, or seconds since 1970 by their name?"""
        if isinstance(self.dtype, pd.CategoricalDtype) or not len(self.raw):
            return False
        if pd.api.types.is_numeric_dtype(self.dtype) and not pd.api.types.is_bool_dtype(self.dtype):
            first = self.raw.iloc[0] if isinstance(self.raw, pd.Series) else self.raw[0]
            if not pd.isna(first) and any(
                FIRST_DAY <= float(first.real) // more <= LAST_DAY for more in (1, 10**4, 10**6)
            ):
                return True
            return self.is_time_by_name
        if self.content != "string" or not len(self.texts[1]):
            return False
        return bool(re.fullmatch(r"(19|20)[0-9]{6}([0-9]{4}([0-9]{2})?)?", self.texts[1][0].as_py().strip()))

    @property
    def is_time_by_name(self) -> bool:
        """Does the column's name say that it holds times or dates?"""
        words = words_of(self.name)
        return words[-1:] == ("at",) or any(re.fullmatch(TIMES, word) for word in words)

    @cached_property
    def texts(self) -> tuple[NDArray[np.intp], Any]:
        """Codes (N,), -1 where missing, into the different texts of a column of texts, an array of Arrow."""
        return distinct_texts(self.raw)

    @cached_property
    def labels(self) -> Column:
        """The objects as labels."""
        if self.content == "string":
            codes, texts = self.texts
            return recoded(self.name, codes, texts.to_pylist())
        return labelled(self.name, self.objects, self.missing)


def distinct_texts(cells: Any) -> tuple[NDArray[np.intp], Any]:
    """Codes (N,), -1 where missing, into the different texts of cells, in the order in which they come."""
    try:
        array = pa.array(cells, pa.large_string(), from_pandas=True)
    except pa.ArrowTypeError:  # whole numbers beyond 64 bits, which pandas leaves as objects
        array = pa.array([None if pd.isna(cell) else str(cell) for cell in cells], pa.large_string())
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    coded = pc.dictionary_encode(whole)
    return np.asarray(pc.fill_null(coded.indices, -1)).astype(np.intp), coded.dictionary


class Kind(ABC):
    """A kind of column. One instance each; `tables.kinds.KINDS` lists them in the order they are asked."""

    name: str
    """By which columns and records of fitted models name their kind; it never changes."""

    plural: str
    """What messages call the cells."""

    needs_digits: bool = True
    """Is it asked of texts only if one of them has a digit?"""

    @abstractmethod
    def decode(self, cells: Cells) -> Column | None:
        """The cells as a column of this kind, None where they are of another. Raises InputError."""

    @abstractmethod
    def summarise(self, column: Column, weight: NDArray[np.float64]) -> Any:
        """What cells that are all present tell, with weights (N,) above 0; it adds up by `+`."""

    @abstractmethod
    def columns(self, name: str, facts: Any, gaps: bool) -> tuple[ColumnSummary, ...]:
        """The flat columns, of numbers or of labels, that a column becomes, from what all its rows tell."""

    @abstractmethod
    def flat(self, column: Column, part: str, origin: float) -> Column:
        """One of these flat columns, of new rows. Raises InputError naming the first cell it cannot be."""

    def facts_as(self, facts: Any, kind: str) -> Any:
        """What rows tell, as the facts of another kind, by its name; None where they do not tell that."""
        return None

    def unknown(self, column: Column, parts: Sequence[str]) -> str:
        """The first value in new rows that the flat columns, with these parts, pass over; "" for none."""
        return ""

    def plain(self, column: Column) -> Column:
        """A column of this kind as numbers or labels, for a model that was fitted to such a column."""
        return column

    def cycle(self, part: str) -> int:
        """The number of levels after which those of a flat column come again, as hours do; 0 of others."""
        return 0

    @abstractmethod
    def shown(self, value: Any, part: str, origin: float) -> str:
        """The text of one value of a flat column, for rules, plots and reports."""
