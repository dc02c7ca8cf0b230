"""What missing cells may be: a distribution for each, in the units of its column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from nongauss.core.errors import InputError
from nongauss.core.seeds import key_seed
from nongauss.predictive.distribution import (
    FloatArray,
    PredictiveDistribution,
    checked_count,
    checked_levels,
    checked_target,
)
from nongauss.tables.kinds.number import power_of_two
from nongauss.tables.margins import LabelCells, Margin, MixedCells, OrderedCells

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 2**21
"""Numbers that are worked on at once."""


@final
class CellDistribution(PredictiveDistribution):
    """Distribution of cells of one ordered column: linear between its edges, with jumps at some of them.

    `cumulative` (N, Q): the probability up to each edge (Q,) of the margin; where an edge is repeated, the
    distribution jumps. Numbers are in the column's units, dates in days since 1970, grades are numbered
    from 0, the lowest.
    """

    def __init__(self, margin: Margin, cumulative: FloatArray) -> None:
        self.margin, self._edge, self._up_to = margin, margin.edge, cumulative

    @classmethod
    def of_scores(cls, margin: Margin, mean: FloatArray, sd: FloatArray) -> CellDistribution:
        """The law of g(w), w of the mixture of S normals (S, N), g the margin's quantiles."""
        scores, n_rows = margin.score_edges, mean.shape[1]
        out = np.empty((n_rows, len(scores)))
        height = max(1, BLOCK // (len(scores) * len(mean)))
        for first in range(0, n_rows, height):
            own = slice(first, first + height)
            out[own] = ndtr((scores - mean[:, own, None]) / sd[:, own, None]).mean(axis=0)
        return cls(margin, out)

    def __len__(self) -> int:
        return len(self._up_to)

    def __repr__(self) -> str:
        return f"CellDistribution(column={self.margin.name!r}, n_rows={len(self)})"

    def _take(self, rows: npt.NDArray[np.intp]) -> CellDistribution:
        """The laws of some of the cells."""
        return CellDistribution(self.margin, self._up_to[rows])

    @property
    def is_discrete(self) -> bool:
        """Whether all values are whole numbers with probabilities of their own."""
        return self.margin.is_whole and bool((self._edge == np.round(self._edge)).all())

    @property
    def atoms(self) -> tuple[float, ...]:
        """Values that have probabilities of their own."""
        same = self._edge[1:] == self._edge[:-1]
        return tuple(self._edge[1:][same].tolist())

    @property
    def mean(self) -> FloatArray:
        """Expectation: (N,)."""
        edge, unit = self._scaled
        found: FloatArray = unit * (np.diff(self._up_to, axis=1) @ (0.5 * (edge[1:] + edge[:-1])))
        return found

    @property
    def std(self) -> FloatArray:
        """Standard deviation: (N,); finite for numbers of any size."""
        edge, unit = self._scaled
        middle, width = 0.5 * (edge[1:] + edge[:-1]), np.diff(edge)
        mass = np.diff(self._up_to, axis=1)
        centre = (mass @ middle)[:, None]
        variance = (mass * (middle - centre) ** 2).sum(axis=1) + mass @ (width**2 / 12.0)
        found: FloatArray = unit * np.sqrt(variance)
        return found

    @property
    def _scaled(self) -> tuple[FloatArray, float]:
        """The edges divided by a power of two next to the largest, and that power."""
        unit = power_of_two(float(self._edge[0]), float(self._edge[-1]))
        return self._edge / unit, unit

    @property
    def variance(self) -> FloatArray:
        """Variance: (N,); infinite where its square is too large a number."""
        with np.errstate(over="ignore"):
            out: FloatArray = self.std**2
        return out

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles: (N,) for one level, (N, Q) for (Q,); multiples of the column's step."""
        levels = checked_levels(q)
        flat = np.atleast_1d(levels)
        out = np.stack([self._inverse(np.full(len(self), level)) for level in flat], axis=1)
        return out if levels.ndim else out[:, 0]

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(cell <= y): (N,)."""
        return self._share(checked_target(y, (len(self),)), "right")

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log density at y, log probability of a value with its own: (N,); -inf where none can be."""
        target = checked_target(y, (len(self),))
        rows = np.arange(len(self))
        own = self._share(target, "right") - self._share(target, "left")
        after = np.clip(np.searchsorted(self._edge, target, side="right"), 1, len(self._edge) - 1)
        width = self._edge[after] - self._edge[after - 1]
        density = (self._up_to[rows, after] - self._up_to[rows, after - 1]) / np.where(width > 0, width, 1.0)
        is_atom = np.isin(target, self.atoms)
        value = np.where(is_atom, own, np.where(width > 0, density, 0.0))
        with np.errstate(divide="ignore"):
            fall = self.margin.beyond(target) / np.where(width > 0, width, np.inf)
            out: FloatArray = np.log(value) - fall
        return out

    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` draws of each cell by itself: (N, n). Equal `random_state`, equal draws."""
        rng = np.random.default_rng(key_seed(random_state))
        uniform = rng.random((checked_count(n), len(self)))
        return np.stack([self._inverse(u) for u in uniform], axis=1) if n else np.zeros((len(self), 0))

    def crps(self, y: npt.ArrayLike) -> FloatArray:
        """Continuous ranked probability score, the integral of (F(x) - 1[x >= y])^2 dx, exact: (N,).

        Over a stretch of width h on which F rises from a to b the integral of F^2 is h (a^2 + a b + b^2) / 3.
        """
        target = checked_target(y, (len(self),))
        a, b, width = self._up_to[:, :-1], self._up_to[:, 1:], np.diff(self._edge)
        part = np.clip((target[:, None] - self._edge[:-1]) / np.where(width > 0, width, 1.0), 0.0, 1.0)
        at = a + part * (b - a)
        below = part * width * (a * a + a * at + at * at)
        above = (1.0 - part) * width * ((1.0 - at) ** 2 + (1.0 - at) * (1.0 - b) + (1.0 - b) ** 2)
        outside = np.maximum(self._edge[0] - target, 0.0) + np.maximum(target - self._edge[-1], 0.0)
        out: FloatArray = (below + above).sum(axis=1) / 3.0 + outside
        return out

    def probabilities(self) -> FloatArray:
        """The probability of each value of a column of few: (N, L). Raises InputError for others."""
        if not self.margin.is_whole:
            raise InputError(f"Column {self.margin.name!r} holds numbers of any size; ask for its quantiles.")
        found: FloatArray = self._up_to[:, 1::2] - self._up_to[:, ::2]
        return found

    def at_edges(self, margin: Margin) -> FloatArray:
        """The probabilities (N, Q) up to the edges of a margin of the same column."""
        edge = margin.edge
        if np.array_equal(edge, self._edge):
            return self._up_to
        is_first = np.append(edge[1:] == edge[:-1], False)  # of a jump
        every = np.full(len(self), 1.0)
        out = [
            self._share(value * every, "left" if first else "right")
            for value, first in zip(edge, is_first, strict=True)
        ]
        out[0], out[-1] = 0.0 * every, every
        return np.stack(out, axis=1)

    def _share(self, y: FloatArray, side: Any) -> FloatArray:
        """P(cell <= y) (N,) for side "right", P(cell < y) for "left"."""
        rows = np.arange(len(self))
        after = np.searchsorted(self._edge, y, side=side)
        right, left = np.clip(after, 0, len(self._edge) - 1), np.clip(after - 1, 0, len(self._edge) - 1)
        width = self._edge[right] - self._edge[left]
        part = np.clip(
            np.where(width > 0, (y - self._edge[left]) / np.where(width > 0, width, 1.0), 0.0), 0, 1
        )
        first = self._up_to[rows, left]
        inside = first + part * (self._up_to[rows, right] - first)
        return np.where(after <= 0, 0.0, np.where(after >= len(self._edge), 1.0, inside))

    def _inverse(self, place: FloatArray) -> FloatArray:
        """The quantile of each cell at its own level (N,)."""
        rows = np.arange(len(self))
        after = np.clip((self._up_to < place[:, None]).sum(axis=1), 1, len(self._edge) - 1)
        low, high = self._up_to[rows, after - 1], self._up_to[rows, after]
        part = np.clip(np.where(high > low, (place - low) / np.where(high > low, high - low, 1.0), 1.0), 0, 1)
        left, right = self._edge[after - 1], self._edge[after]
        return self.margin.rounded(right if self.margin.is_whole else left + part * (right - left))


@final
class LabelDistribution:
    """Probabilities of labels for cells of one column: `probabilities()` (N, L), in the order of `labels`."""

    def __init__(self, margin: Margin, probabilities: FloatArray) -> None:
        self.margin, self._p = margin, probabilities

    def __len__(self) -> int:
        return len(self._p)

    def __repr__(self) -> str:
        return f"LabelDistribution(column={self.margin.name!r}, n_rows={len(self)})"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, as text."""
        return self.margin.labels

    @property
    def mode(self) -> npt.NDArray[np.intp]:
        """The number of the most likely label of each cell: (N,)."""
        found: npt.NDArray[np.intp] = self._p.argmax(axis=1)
        return found

    def __getitem__(self, rows: Any) -> LabelDistribution:
        """The laws of some of the cells: a number, a slice, a list of numbers, or a mask (N,)."""
        return LabelDistribution(self.margin, self._p[np.atleast_1d(np.arange(len(self))[rows])])

    def probabilities(self) -> FloatArray:
        """The probability of each label: (N, L)."""
        return self._p

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log probability of labels y (N,), by their numbers."""
        with np.errstate(divide="ignore"):
            out: FloatArray = np.log(self._p[np.arange(len(self)), np.asarray(y, dtype=np.intp)])
        return out


class ColumnCells(NamedTuple):
    """Missing cells of one column: its number in the table, the rows, and their laws.

    `own_terms` turns numbers of the law into cells as the table has them: words, dates; None: they are these.
    """

    column: int
    rows: npt.NDArray[np.intp]
    law: CellDistribution | LabelDistribution
    own_terms: Callable[[FloatArray], list[Any]] | None = None


class MissingCells(Sequence[Any]):
    """Distributions of all missing cells of a table, by column, and of each cell by its row and column.

    `cells["age"]` has the distributions of all missing ages, `cells.rows("age")` the numbers of their rows,
    `cells[7, "age"]` the distribution for row 7. Iteration gives (row, column, distribution) of each cell.
    """

    def __init__(self, columns: Sequence[ColumnCells], names: Sequence[str]) -> None:
        self._columns = {cells.column: cells for cells in columns}
        self._names = tuple(names)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that have missing cells."""
        return tuple(self._names[column] for column in self._columns)

    def __len__(self) -> int:
        return sum(len(cells.rows) for cells in self._columns.values())

    def __iter__(self) -> Iterator[tuple[int, str, Any]]:
        for cells in self._columns.values():
            for number, row in enumerate(cells.rows):
                yield int(row), self._names[cells.column], cells.law[number]

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return self._of(key).law
        cells = self._of(key[1])
        found = np.flatnonzero(cells.rows == key[0])
        if not len(found):
            raise InputError(f"Row {key[0]} has a value in column {key[1]!r}; laws are of missing cells.")
        return cells.law[found]

    def rows(self, column: str | int) -> npt.NDArray[np.intp]:
        """Numbers of the rows in which this column, by name or number, is missing."""
        return self._of(column).rows

    def quantiles(self, column: str | int, q: Sequence[float] = (0.05, 0.5, 0.95)) -> pd.DataFrame:
        """Quantiles of a column's missing cells in its own terms: dates as dates, grades as words.

        A row for each cell, indexed by its number in the table, and a column for each level. The
        distribution itself, `cells["day"]`, uses numbers: days since 1970 for dates. Raises InputError for
        labels, which have no order.
        """
        import pandas as pd

        cells = self._of(column)
        if isinstance(cells.law, LabelDistribution):
            raise InputError(
                f"Column {column!r} holds labels, which have no quantiles; ask for probabilities()."
            )
        tell = cells.own_terms or np.ndarray.tolist
        each = {level: pd.Series(tell(cells.law.quantile(level)), index=cells.rows) for level in q}
        return pd.DataFrame(each, index=cells.rows)

    def _of(self, column: Any) -> ColumnCells:
        number = self._names.index(column) if column in self._names else column
        if number not in self._columns:
            raise InputError(f"Column {column!r} has no missing cells; those that have are {self.columns}.")
        return self._columns[number]

    def to_frame(self, coverage: float = 0.9) -> pd.DataFrame:
        """A data frame of all missing cells: row, column, value, uncertainty.

        For ordered cells the median, the standard deviation and a central interval of this coverage; for
        labels the most likely one and its probability. Values and ends are in the table's own terms, dates
        as dates and grades as words; prices and other numbers with a unit are numbers. `sd` is in days for
        dates, and in steps for grades.
        """
        import pandas as pd

        parts = [self._frame_of(cells, coverage) for cells in self._columns.values()]
        names = ["row", "column", "value", "sd", "lower", "upper", "probability"]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)

    def _frame_of(self, cells: ColumnCells, coverage: float) -> pd.DataFrame:
        """The frame of one column."""
        import pandas as pd

        law, n_cells = cells.law, len(cells.rows)
        nothing = np.full(n_cells, np.nan)
        said: dict[str, Any] = dict.fromkeys(("sd", "lower", "upper", "probability"), nothing)
        tell = cells.own_terms or np.ndarray.tolist

        def told(numbers: FloatArray) -> pd.Series[Any]:
            """Cells as the table has them, of any type side by side."""
            return pd.Series(tell(numbers), dtype=object)

        said["value"] = told(point_of(law))
        if isinstance(law, LabelDistribution):
            said["probability"] = law.probabilities().max(axis=1)
        else:
            said["sd"], ends = law.std, law.interval(coverage).T
            said["lower"], said["upper"] = ends if cells.own_terms is None else map(told, ends)
        frame = pd.DataFrame({"row": cells.rows, "column": self._names[cells.column], **said})
        return frame[["row", "column", "value", "sd", "lower", "upper", "probability"]]


def law_of(
    margin: Margin, cells: OrderedCells | LabelCells | MixedCells
) -> CellDistribution | LabelDistribution:
    """The law of missing cells of one column, from what a model says of their scores or labels."""
    if isinstance(cells, MixedCells):
        return mixed_law(margin, [law_of(own, part) for own, part in cells.parts], cells.share)
    if isinstance(cells, LabelCells):
        if margin.is_label:
            return LabelDistribution(margin, cells.probabilities)
        up_to = np.cumsum(cells.probabilities, axis=1)
        edges = np.stack([up_to - cells.probabilities, up_to], axis=2)
        return CellDistribution(margin, edges.reshape(len(up_to), 2 * up_to.shape[1]))
    return CellDistribution.of_scores(margin, cells.mean, cells.sd)


def mixed_law(
    margin: Margin, laws: Sequence[CellDistribution | LabelDistribution], share: FloatArray
) -> CellDistribution | LabelDistribution:
    """The mixture of laws of the same cells with shares (C,), on the edges of one margin."""
    if margin.is_label:
        mean = sum(own * law.probabilities() for own, law in zip(share, laws, strict=True))
        return LabelDistribution(margin, np.asarray(mean))
    up_to = [law.at_edges(margin) for law in laws if isinstance(law, CellDistribution)]
    return CellDistribution(margin, np.tensordot(share, up_to, 1))


def point_of(law: CellDistribution | LabelDistribution) -> FloatArray:
    """One number for each cell: the median, of labels the number of the likeliest."""
    return law.mode.astype(np.float64) if isinstance(law, LabelDistribution) else law.quantile(0.5)


def drawn_values(margin: Margin, cells: OrderedCells | LabelCells | MixedCells) -> FloatArray:
    """The draws (S, R) in the units of the margin."""
    if isinstance(cells, MixedCells):
        every = [drawn_values(own, part)[: len(cells.draw)] for own, part in cells.parts]
        found: FloatArray = np.take_along_axis(np.stack(every), cells.draw[None], axis=0)[0]
        return found
    if isinstance(cells, LabelCells):
        return margin.edge[::2][cells.draw]
    return margin.value(ndtr(cells.draw))
