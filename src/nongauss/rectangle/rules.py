"""Rules: boxes in original units, what they say of rows, and where bounds read best in print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from nongauss.core.records import persistable
from nongauss.rectangle.box_search import LOWER, SET, UPPER, HardBox, RankedColumns
from nongauss.rectangle.data import ColumnView, FloatArray, RawCells, RectangleRows
from nongauss.rectangle.params import SoftBoxes

FAR = 8.0
"""Most standard deviations of a margin; a rule without conditions holds every row so deep inside."""

LEVEL = 1.0
"""Margin of a row whose level is inside or outside a set."""


@persistable("rectangle.Condition", "nongauss.rectangle.rules:Condition")
class Condition(NamedTuple):
    """One column's part of a box: lower <= x <= upper, or for a label column one of `levels`.

    `column` counts the rule columns, numbers first. `unit` is the column's standard deviation. `name`,
    `all_levels` and `shown`, the bounds as they are printed, are for the text.
    """

    column: int
    name: str
    lower: float = -np.inf
    upper: float = np.inf
    unit: float = 1.0
    levels: tuple[str, ...] = ()
    all_levels: tuple[str, ...] = ()
    shown: tuple[float, ...] = ()

    @property
    def ends(self) -> tuple[float, float]:
        """The lower and upper bound as they are printed."""
        return (self.shown[0], self.shown[1]) if self.shown else (self.lower, self.upper)

    @property
    def n_bounds(self) -> int:
        """How many conditions a person counts: each finite end, or a set of levels."""
        return 1 if self.all_levels else int(np.isfinite(self.lower)) + int(np.isfinite(self.upper))

    def margin(self, cells: RawCells) -> FloatArray:
        """How deep inside each row is, in standard deviations, negative outside: (N,)."""
        n_numbers = cells.numbers.shape[1]
        if self.column < n_numbers:
            x = cells.numbers[:, self.column]
            with np.errstate(over="ignore"):
                deep = np.minimum(x - self.lower, self.upper - x) / self.unit
            return np.clip(np.where(np.isnan(x), FAR, deep), -FAR, FAR)
        allowed = np.array([level in self.levels for level in self.all_levels] + [True])
        codes = cells.labels.codes[:, self.column - n_numbers]
        return np.where(codes < 0, FAR, np.where(allowed[codes], LEVEL, -LEVEL))


@persistable("rectangle.Rules", "nongauss.rectangle.rules:Rules")
class Rules(NamedTuple):
    """The conditions of each box, and the slopes that turn margins into probabilities, one a cluster once
    they are fitted. `owners` are the clusters of the boxes; empty where each cluster has one box."""

    names: tuple[str, ...]
    conditions: tuple[tuple[Condition, ...], ...]
    slopes: tuple[float, ...] = ()
    owners: tuple[int, ...] = ()

    @property
    def boxes(self) -> list[list[tuple[Condition, ...]]]:
        """The boxes of each cluster, any of which a row may be in."""
        owners = self.owners or range(len(self.names))
        return [
            [box for box, owner in zip(self.conditions, owners, strict=True) if owner == k]
            for k in range(len(self.names))
        ]

    def margins(self, cells: RawCells) -> FloatArray:
        """How deep inside each rule each row is, in standard deviations of the tightest column: (N, K).

        Of a rule of several boxes it is that of the box which the row is deepest in.
        """
        deepest = [np.max([box_margin(box, cells) for box in boxes], axis=0) for boxes in self.boxes]
        return np.array(deepest).reshape(len(deepest), len(cells.numbers)).T.copy()

    def claims(self, margins: FloatArray) -> FloatArray:
        """How much each rule claims each row, (N, K): slope times margin, so negative outside the rule.

        The greatest is the row's cluster: that of the only rule which holds it; of several, or of none, the
        deepest or nearest by the measure of each rule, which is finer the more surely the rule tells.
        """
        claims: FloatArray = margins * np.array(self.slopes)
        return claims


def box_margin(conditions: Sequence[Condition], cells: RawCells) -> FloatArray:
    """How deep inside one box each row is, in standard deviations of the tightest column, (N,)."""
    out = np.full(len(cells.numbers), FAR)
    for condition in conditions:
        np.minimum(out, condition.margin(cells), out=out)
    return out


def best_slopes(margins: FloatArray, share: FloatArray, weight: FloatArray) -> tuple[float, ...]:
    """The slopes from 0.5 to 50 at which the rules' probabilities come nearest the posterior's (N, K).

    All rules have the same slope, unless slopes of their own gain more than half the log of the number of
    rows for each (Schwarz 1978).
    """
    K = margins.shape[1]
    loss, same = _nearest(margins, share, weight, np.ones((1, K)))
    own_loss, own = _nearest(margins, share, weight, np.eye(K))
    worth = loss - own_loss > 0.5 * (K - 1) * np.log(weight.sum())
    return tuple((own if worth else same).tolist())


def _nearest(
    margins: FloatArray, share: FloatArray, weight: FloatArray, groups: FloatArray
) -> tuple[float, FloatArray]:
    """Cross-entropy in nats and slopes (K,), one for each group (G, K) of rules: a convex problem."""
    # loss = sum_n w_n [log sum_k e^{s_k m_nk} - sum_k r_nk s_k m_nk] / sum_n w_n
    total = weight.sum()

    def loss(slopes: FloatArray) -> tuple[float, FloatArray]:
        claims = margins * (slopes @ groups)
        value = logsumexp(claims, axis=1) - (share * claims).sum(axis=1)
        off = (softmax(claims, axis=1) - share) * margins
        return float(value @ weight / total), groups @ (weight @ off) / total

    start = np.full(len(groups), 5.0)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0.5, 50.0)] * len(start))
    return float(found.fun * total), found.x @ groups


def printed(
    ranked: RankedColumns,
    view: ColumnView,
    boxes: Sequence[HardBox],
    names: tuple[str, ...],
    precision: str | int | None,
) -> Rules:
    """The boxes as rules in original units."""
    conditions = tuple(
        tuple(
            _condition(ranked, view, box, d, precision)
            for d in sorted({column for column, _ in box.conditions})
        )
        for box in boxes
    )
    return Rules(names, conditions)


def _condition(
    ranked: RankedColumns, view: ColumnView, box: HardBox, d: int, precision: str | int | None
) -> Condition:
    """One column's part of a box, its bounds put where they read best."""
    code = view.codes[d]
    if not ranked.grid.ordered[d]:
        levels = tuple(
            level for level, inside in zip(code.levels, box.conditions[d, SET], strict=True) if inside
        )
        return Condition(d, str(code.name), levels=levels, all_levels=code.levels)
    exact, shown, sign = [-np.inf, np.inf], [-np.inf, np.inf], ranked.signs[d]
    for side in (LOWER, UPPER):
        if (d, side) in box.conditions:
            outside, inside = (sign * end for end in _gap(ranked, box, d, side))
            own = side if sign > 0 else UPPER - side
            exact[own] = _middle(outside, inside)
            shown[own] = bound_between(outside, inside, ranked.whole[d], precision)
    lower, upper = exact
    return Condition(d, str(code.name), lower, upper, ranked.units[d], shown=tuple(shown))


def soft_rules(view: ColumnView, boxes: SoftBoxes, rows: RectangleRows, names: tuple[str, ...]) -> Rules:
    """Soft boxes (S = 1) as rules in original units: bounds that keep a row out, and levels that belong."""
    conditions = []
    for k in range(len(names)):
        own = [_soft_condition(view, boxes, rows.X[:, d], k, d) for d in range(len(view.scales))]
        at = 0
        for d, code in enumerate(view.codes[len(view.scales) :], start=len(view.scales)):
            belongs = boxes.sets[0, k, at : at + len(code.levels)] >= 0
            levels = tuple(level for level, inside in zip(code.levels, belongs, strict=True) if inside)
            own.append(Condition(d, str(code.name), levels=levels, all_levels=code.levels))
            at += len(code.levels)
        conditions.append(
            tuple(c for c in own if c.levels != c.all_levels or np.isfinite([c.lower, c.upper]).any())
        )
    return Rules(names, tuple(conditions), (1.0,) * len(names))


def _soft_condition(view: ColumnView, boxes: SoftBoxes, x: FloatArray, k: int, d: int) -> Condition:
    """The soft bounds of a cluster in a column of numbers x (N,), scaled; one that all rows keep is none."""
    scale, low, high = view.scales[d], boxes.lower[0, k, d], boxes.upper[0, k, d]
    ends = [
        scale.invert(low) if np.nanmin(x) < low else -np.inf * scale.sign,
        scale.invert(high) if np.nanmax(x) > high else np.inf * scale.sign,
    ]
    lower, upper = ends[:: scale.sign]
    return Condition(d, str(view.codes[d].name), float(lower), float(upper), scale.step)


def _gap(ranked: RankedColumns, box: HardBox, d: int, side: int) -> tuple[float, float]:
    """The nearest values outside and inside a bound, among rows that only this column could keep out.

    A stated bound looks at all values, so that it stays where it is.
    """
    cut = int(box.conditions[d, side])
    values = ranked.values[d]
    step = -1 if side == LOWER else 1
    outside, inside = cut + step, cut
    if (d, side) not in box.held:
        others = box.broken - box.violated((d, LOWER)) - box.violated((d, UPPER))
        codes = ranked.grid.codes[d]
        codes = codes[(others == 0) & (codes >= 0)]
        beyond = codes[codes < cut] if side == LOWER else codes[codes > cut]
        within = codes[codes >= cut] if side == LOWER else codes[codes <= cut]
        if len(beyond):
            outside = int(beyond.max() if side == LOWER else beyond.min())
        if len(within):
            inside = int(within.min() if side == LOWER else within.max())
    return float(values[outside]), float(values[inside])


def _middle(low: float, high: float) -> float:
    """Half way between two numbers, whose difference may be beyond any number."""
    width = high - low
    return low + 0.5 * width if math.isfinite(width) else 0.5 * low + 0.5 * high


def bound_between(outside: float, inside: float, whole: bool, precision: str | int | None) -> float:
    """A bound between the last value outside and the first value inside; either may be the greater.

    precision : "auto" takes the fewest digits that keep the rows; None the middle; an integer rounds the
    middle to so many decimals, whatever that does. The bound belongs to the box: where values are whole, an
    upper bound of 29 and a lower one of 30 share the gap.
    """
    low, high = min(outside, inside), max(outside, inside)
    middle = _middle(low, high)
    if isinstance(precision, int):
        return round(middle, precision)
    if whole:
        cut = math.floor(low) + 1.0 if precision is None or high - low <= 1 else roundest(low, high + 0.5)
        return cut if inside > outside else cut - 1.0
    return middle if precision is None else roundest(low, high)


def roundest(low: float, high: float) -> float:
    """The number strictly between two others with the fewest digits; of equals the nearest their middle."""
    if not low < high:
        return low
    a, b = Decimal(repr(float(low))), Decimal(repr(float(high)))
    middle = (a + b) / 2
    for power in range(math.frexp(high - low)[1] // 3 + 3, -400, -1):
        for digit in (10, 5, 1):
            step = Decimal(digit).scaleb(power - 1)
            for nearest in _multiples(middle, step):
                if a < nearest < b:
                    return float(nearest) + 0.0
    return _middle(low, high)


def _multiples(middle: Decimal, step: Decimal) -> list[Decimal]:
    """The two multiples of a step around a number, the nearer first."""
    ratio = middle / step
    around = [ratio.to_integral_value(ROUND_FLOOR) * step, ratio.to_integral_value(ROUND_CEILING) * step]
    return sorted(around, key=lambda m: abs(m - middle))
