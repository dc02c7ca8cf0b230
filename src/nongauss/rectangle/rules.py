"""The printed rules: boxes in original units, what they say of new rows, and how a person would say them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from nongauss.core.records import persistable
from nongauss.rectangle.columns import Cells
from nongauss.rectangle.params import FloatArray

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

    def margin(self, cells: Cells) -> FloatArray:
        """How deep inside each row is, in standard deviations, negative outside: (N,)."""
        n_numbers = cells.numbers.shape[1]
        if self.column < n_numbers:
            x = cells.numbers[:, self.column]
            deep = np.minimum(x - self.lower, self.upper - x) / self.unit
            return np.clip(np.where(np.isnan(x), FAR, deep), -FAR, FAR)
        allowed = np.array([level in self.levels for level in self.all_levels] + [True])
        codes = cells.labels.codes[:, self.column - n_numbers]
        return np.where(codes < 0, FAR, np.where(allowed[codes], LEVEL, -LEVEL))

    def text(self) -> str:
        """As a person would say it."""
        if self.all_levels:
            outside = [level for level in self.all_levels if level not in self.levels]
            if len(outside) < len(self.levels):
                return f"{self.name} not {_either(outside)}"
            return f"{self.name} {_either(list(self.levels))}"
        low, high = plain_number(self.lower), plain_number(self.upper)
        if np.isinf(self.lower):
            return f"{self.name} at most {high}"
        if np.isinf(self.upper):
            return f"{self.name} at least {low}"
        return f"{self.name} {low}" if low == high else f"{self.name} {low} to {high}"


@persistable("rectangle.Rules", "nongauss.rectangle.rules:Rules")
class Rules(NamedTuple):
    """The conditions of each cluster, and the slopes that turn margins into probabilities, one a cluster
    once they are fitted."""

    names: tuple[str, ...]
    conditions: tuple[tuple[Condition, ...], ...]
    slopes: tuple[float, ...] = ()

    def margins(self, cells: Cells) -> FloatArray:
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
        return margins * np.array(self.slopes)

    def proba(self, margins: FloatArray) -> FloatArray:
        """Probability of each cluster by the rules alone: softmax of the claims, (N, K)."""
        return softmax(self.claims(margins), axis=1)

    def texts(self) -> dict[str, str]:
        """One sentence a cluster."""
        return {
            name: " and ".join(c.text() for c in conditions) or "every row"
            for name, conditions in zip(self.names, self.conditions, strict=True)
        }

    def table(self) -> Any:
        """One row a condition: cluster, column, lower, upper (original units), levels (None for numbers)."""
        import pandas as pd

        lines = [
            (name, c.name, c.lower, c.upper, c.levels or None)
            for name, conditions in zip(self.names, self.conditions, strict=True)
            for c in conditions
        ]
        table = pd.DataFrame(lines, columns=["cluster", "column", "lower", "upper", "levels"])
        return table.astype(
            {"cluster": object, "column": object, "lower": float, "upper": float, "levels": object}
        )


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
    total = weight.sum()

    def loss(slopes: FloatArray) -> tuple[float, FloatArray]:
        claims = margins * (slopes @ groups)
        value = logsumexp(claims, axis=1) - (share * claims).sum(axis=1)
        off = (softmax(claims, axis=1) - share) * margins
        return float(value @ weight / total), groups @ (weight @ off) / total

    start = np.full(len(groups), 5.0)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0.5, 50.0)] * len(start))
    return float(found.fun * total), found.x @ groups


def plain_number(x: float) -> str:
    """A number without more digits than it has."""
    return np.format_float_positional(x, trim="-") if 1e-4 <= abs(x) < 1e15 or x == 0 else f"{x:.12g}"


def _either(levels: list[str]) -> str:
    return levels[0] if len(levels) == 1 else f"{', '.join(levels[:-1])} or {levels[-1]}"
