"""Rules: boxes in original units, what they say of rows, where bounds read best; stated rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.rectangle.box_search import LOWER, SET, UPPER, HardBox, RankedColumns
from nongauss.rectangle.data import ColumnView, FloatArray, IntArray, RawCells
from nongauss.rectangle.params import StatedBound
from nongauss.tables.column import label_of
from nongauss.tables.column_code import ColumnCode
from nongauss.tables.kinds import decode

FAR = 8.0
"""Most standard deviations of a margin; a rule without conditions holds every row so deep inside."""

LEVEL = 1.0
"""Margin of a row whose level is inside or outside a set."""


@persistable("rectangle.Condition", "nongauss.rectangle.rules:Condition")
class Condition(NamedTuple):
    """One column's part of a rule: lower <= x <= upper, or for a label column one of `levels`.

    `column` counts the rule columns, numbers first. `unit` is the column's standard deviation. `name` and
    `all_levels` are for the text.
    """

    column: int
    name: str
    lower: float = -np.inf
    upper: float = np.inf
    unit: float = 1.0
    levels: tuple[str, ...] = ()
    all_levels: tuple[str, ...] = ()

    @property
    def n_bounds(self) -> int:
        """How many conditions a person counts: each finite end, or a set of levels."""
        return 1 if self.all_levels else int(np.isfinite(self.lower)) + int(np.isfinite(self.upper))

    def margin(self, cells: RawCells) -> FloatArray:
        """How deep inside each row is, in standard deviations, negative outside: (N,)."""
        n_numbers = cells.numbers.shape[1]
        if self.column < n_numbers:
            x = cells.numbers[:, self.column]
            deep = np.minimum(x - self.lower, self.upper - x) / self.unit
            return np.clip(np.where(np.isnan(x), FAR, deep), -FAR, FAR)
        allowed = np.array([level in self.levels for level in self.all_levels] + [True])
        codes = cells.labels.codes[:, self.column - n_numbers]
        return np.where(codes < 0, FAR, np.where(allowed[codes], LEVEL, -LEVEL))


@persistable("rectangle.Rules", "nongauss.rectangle.rules:Rules")
class Rules(NamedTuple):
    """The conditions of each cluster, and the slopes that turn margins into probabilities, one a cluster
    once they are fitted."""

    names: tuple[str, ...]
    conditions: tuple[tuple[Condition, ...], ...]
    slopes: tuple[float, ...] = ()

    def margins(self, cells: RawCells) -> FloatArray:
        """How deep inside each rule each row is, in standard deviations of the tightest column: (N, K)."""
        out = np.full((len(cells.numbers), len(self.conditions)), FAR)
        for k, conditions in enumerate(self.conditions):
            for condition in conditions:
                np.minimum(out[:, k], condition.margin(cells), out=out[:, k])
        return out

    def claims(self, margins: FloatArray) -> FloatArray:
        """How much each rule claims each row, (N, K): slope times margin, so negative outside the rule.

        The greatest is the row's cluster: that of the only rule which holds it; of several, or of none, the
        deepest or nearest by the measure of each rule, which is finer the more surely the rule tells.
        """
        claims: FloatArray = margins * np.array(self.slopes)
        return claims

    def proba(self, margins: FloatArray) -> FloatArray:
        """Probability of each cluster by the rules alone: softmax of the claims, (N, K)."""
        proba: FloatArray = softmax(self.claims(margins), axis=1)
        return proba


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
    bounds = {LOWER: -np.inf, UPPER: np.inf}
    for side in (LOWER, UPPER):
        if (d, side) in box.conditions:
            outside, inside = _gap(ranked, box, d, side)
            bounds[side] = bound_between(outside, inside, ranked.whole[d], precision)
    return Condition(d, str(code.name), bounds[LOWER], bounds[UPPER], ranked.units[d])


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


def bound_between(outside: float, inside: float, whole: bool, precision: str | int | None) -> float:
    """A bound between the last value outside and the first value inside; either may be the greater.

    precision : "auto" takes the fewest digits that keep the rows; None the middle; an integer rounds the
    middle to so many decimals, whatever that does. The bound belongs to the box: where values are whole, an
    upper bound of 29 and a lower one of 30 share the gap.
    """
    low, high = min(outside, inside), max(outside, inside)
    middle = low + 0.5 * (high - low)
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
    return low + 0.5 * (high - low)


def _multiples(middle: Decimal, step: Decimal) -> list[Decimal]:
    """The two multiples of a step around a number, the nearer first."""
    ratio = middle / step
    around = [ratio.to_integral_value(ROUND_FLOOR) * step, ratio.to_integral_value(ROUND_CEILING) * step]
    return sorted(around, key=lambda m: abs(m - middle))


class StatedRules(NamedTuple):
    """Rules that a person states beforehand: their scaled bounds, the names of their clusters, the rules."""

    bounds: tuple[StatedBound, ...]
    names: tuple[str, ...]
    rules: Rules

    def margins(self, cells: RawCells) -> FloatArray | None:
        """How deep inside each stated rule each row is (N, J); None if nothing was stated."""
        return self.rules.margins(cells) if self.names else None

    def of(self, clusters: IntArray) -> tuple[list[StatedBound], tuple[str, ...]]:
        """What was stated of some of the clusters, numbered anew, and the names of all of these."""
        place = {int(k): i for i, k in enumerate(clusters)}
        stated = [s._replace(cluster=place[s.cluster]) for s in self.bounds if s.cluster in place]
        names = (self.names[k] if k < len(self.names) else f"cluster {i}" for k, i in place.items())
        return stated, tuple(names)


NOTHING_STATED = StatedRules((), (), Rules((), ()))


def read_prior(prior_rules: Any, view: ColumnView, strength: float) -> StatedRules:
    """Check {cluster name: {column: (lower, upper) or labels}}; None or an infinite end is open.

    Raises InputError for columns that make no rules, for bounds that are no numbers or in the wrong order,
    and for labels that the column does not have.
    """
    if not isinstance(prior_rules, Mapping) or not all(isinstance(r, Mapping) for r in prior_rules.values()):
        raise InputError(
            'prior_rules must map cluster names to rules, such as {"middle": {"age": (30, 45)}}; '
            f"got {prior_rules!r}."
        )
    stated: list[StatedBound] = []
    conditions = []
    for cluster, rule in enumerate(prior_rules.values()):
        own = [_stated_condition(view, column, value) for column, value in rule.items()]
        conditions.append(tuple(own))
        for condition in own:
            stated += _stated_bounds(view, cluster, condition, strength)
    names = tuple(str(name) for name in prior_rules)
    return StatedRules(tuple(stated), names, Rules(names, tuple(conditions)))


def _stated_condition(view: ColumnView, column: Any, value: Any) -> Condition:
    codes = view.codes
    known = [str(code.name) for code in codes]
    place = known.index(column) if column in known else _by_number(view, column)
    if place is None:
        raise InputError(
            f"prior_rules names the column {column!r}, which makes no rules; those that do are "
            f"{', '.join(repr(name) for name in known[:8])}{', …' if len(known) > 8 else ''}."
        )
    code = codes[place]
    if place >= len(view.numeric):
        return Condition(place, code.name, levels=_stated_levels(code, value), all_levels=code.levels)
    lower, upper = _stated_ends(code, value)
    return Condition(place, code.name, lower, upper, view.scales[place].sd * view.scales[place].unit)


def _by_number(view: ColumnView, column: Any) -> int | None:
    """The rule column at a position in the user's table."""
    if isinstance(column, int | np.integer) and column in view.places:
        at = view.places.index(int(column))
        used = (*view.numeric, *view.labels)
        return used.index(at) if at in used else None
    return None


def _stated_ends(code: ColumnCode, value: Any) -> tuple[float, float]:
    wrong = f"prior_rules for {code.name!r} must be (lower, upper), one of which may be None; got {value!r}."
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise InputError(wrong)
    try:
        lower, upper = (
            end if value[i] is None else _stated_end(code, value[i])
            for i, end in enumerate((-np.inf, np.inf))
        )
    except (InputError, TypeError, ValueError) as error:
        raise InputError(wrong) from error
    if not lower < upper:
        raise InputError(f"{wrong[:-1]}, where the lower end must be below the upper one.")
    return lower, upper


def _stated_end(code: ColumnCode, value: Any) -> float:
    """A bound as a number of the column: what its kind reads, such as a date, or a number as text."""
    if isinstance(value, float) and np.isinf(value):
        return value
    try:
        return float(np.asarray(code.read(decode(code.name, pd.Series([value])), [], []).values)[0])
    except InputError:
        if code.kind not in ("", "number"):
            raise
        return float(value)


def _stated_levels(code: ColumnCode, value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) or not isinstance(value, Sequence | set) else list(value)
    chosen = {label_of(item) for item in items}
    strange = sorted(chosen - set(code.levels))
    if strange or not chosen:
        raise InputError(
            f"prior_rules for {code.name!r} must name labels of the column, which are "
            f"{', '.join(repr(level) for level in code.levels[:8])}; got {value!r}."
        )
    return tuple(level for level in code.levels if level in chosen)


def _stated_bounds(
    view: ColumnView, cluster: int, condition: Condition, strength: float
) -> list[StatedBound]:
    """The parameters that a condition states: `strength` is the precision on the scale of the fit."""
    n = len(view.numeric)
    if condition.column < n:
        scale = view.scales[condition.column]
        ends = enumerate((condition.lower, condition.upper))
        return [
            StatedBound(cluster, side * n + condition.column, float(scale.apply(np.array(end))), strength)
            for side, end in ends
            if np.isfinite(end)
        ]
    before = sum(len(code.levels) for code in view.codes[n : condition.column])
    return [
        StatedBound(cluster, 2 * n + before + i, 1.0 if level in condition.levels else -1.0, strength)
        for i, level in enumerate(condition.all_levels)
    ]
