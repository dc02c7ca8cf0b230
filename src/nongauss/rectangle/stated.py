"""Rules that a person states beforehand: how they are read, and what they say of the boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.rectangle.data import ColumnView, FloatArray, IntArray, RawCells
from nongauss.rectangle.params import StatedBound
from nongauss.rectangle.rules import Condition, Rules
from nongauss.tables.column import label_of
from nongauss.tables.column_code import ColumnCode
from nongauss.tables.kinds import decode


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
    return Condition(place, code.name, lower, upper, view.scales[place].step)


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
        mirrored = scale.sign < 0
        return [
            StatedBound(
                cluster, (side ^ mirrored) * n + condition.column, float(scale.apply(np.array(end))), strength
            )
            for side, end in ends
            if np.isfinite(end)
        ]
    before = sum(len(code.levels) for code in view.codes[n : condition.column])
    return [
        StatedBound(cluster, 2 * n + before + i, 1.0 if level in condition.levels else -1.0, strength)
        for i, level in enumerate(condition.all_levels)
    ]
