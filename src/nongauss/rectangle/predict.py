"""What a mixture says about rows: clusters by rules alone, by rules and structure, by soft boxes; in words.

Two posteriors: `FittedRectangles.posterior` is that of the printed rules and the structure, which a user
sees; `soft_posterior` is that of the soft boxes, which EM maximises, and the structure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from nongauss.core.records import persistable
from nongauss.rectangle.config import STEEPNESS
from nongauss.rectangle.data import ColumnViews, FloatArray, IntArray, RawCells, RectangleRows
from nongauss.rectangle.objective import log_density, log_inside, posterior, slope_powers
from nongauss.rectangle.params import ClusterStructure, RectangleParams, SoftBoxes
from nongauss.rectangle.rules import Condition, Rules
from nongauss.tables.column_code import ColumnCode
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.frame import n_rows_of
from nongauss.tables.source import Part, weight_of

_BLOCK = 2**15  # rows judged at once


@persistable("rectangle.Fitted")
class FittedRectangles(NamedTuple):
    """How a table is read, the rules, and what the clusters look like (S = 1) by which kind of structure."""

    views: ColumnViews
    rules: Rules
    structure: ClusterStructure
    kind: str

    def labels(self, cells: RawCells, outliers: bool) -> IntArray:
        """The cluster of each row by the rules, (N,); with `outliers`, -1 for rows that no rule holds."""
        claims = self.rules.claims(self.rules.margins(cells))
        labels = claims.argmax(axis=1)
        return np.where(claims.max(axis=1) < 0, -1, labels) if outliers else labels

    def inside(self, cells: RawCells) -> np.ndarray:
        """Which rules hold each row, (N, K) booleans."""
        return self.rules.margins(cells) >= 0

    def proba(self, cells: RawCells) -> FloatArray:
        """p(cluster | rule columns), (N, K)."""
        return self.rules.proba(self.rules.margins(cells))

    def posterior(self, cells: RawCells, rows: RectangleRows) -> FloatArray:
        """p(cluster | rule columns, structure columns) by the printed rules and the structure, (N, K)."""
        proba: FloatArray = softmax(self.log_joint(cells, rows), axis=1)
        return proba

    def log_joint(self, cells: RawCells, rows: RectangleRows) -> FloatArray:
        """log p(cluster, structure columns | rule columns) = log p(k | rules) + log p(y | k), (N, K)."""
        out = np.empty((len(rows), len(self.rules.names)))
        for block in blocks(len(rows)):
            proba = self.proba(cells.take(block))
            log_p = log_density(rows.take(block), self.structure, self.kind)[0][0].T
            with np.errstate(divide="ignore"):
                out[block] = np.log(proba) + log_p
        return out

    def log_conditional(self, cells: RawCells, rows: RectangleRows) -> float:
        """Sum over rows of their weight times log p(structure columns | rule columns)."""
        return float(logsumexp(self.log_joint(cells, rows), axis=1) @ rows.weight)


def blocks(n_rows: int) -> list[IntArray]:
    """Numbers of rows that are judged at once, block after block."""
    return [np.arange(start, min(start + _BLOCK, n_rows)) for start in range(0, n_rows, _BLOCK)]


def soft_posterior(rows: RectangleRows, params: RectangleParams, kind: str) -> FloatArray:
    """Posterior probability of each cluster for each row (K, N), by soft boxes and structure (S = 1)."""
    out = np.empty((params.boxes.lower.shape[1], len(rows)))
    for block in blocks(len(rows)):
        part = rows.take(block)
        log_G = log_inside(slope_powers(part, STEEPNESS[-1]), params.boxes)
        out[:, block] = posterior(log_G, log_density(part, params.structure, kind)[0])[0]
    return out


def by_soft_box(rows: RectangleRows, boxes: SoftBoxes) -> IntArray:
    """The cluster of each row by the soft boxes alone, (N,)."""
    parts = [
        log_inside(slope_powers(rows.take(block), STEEPNESS[-1]), boxes)[0].argmax(axis=0)
        for block in blocks(len(rows))
    ]
    return np.concatenate(parts)


def rule_texts(rules: Rules, codes: Sequence[ColumnCode]) -> dict[str, str]:
    """One sentence a cluster. `codes` of the rule columns say how their values are printed."""
    return {
        name: " and ".join(condition_text(c, codes[c.column]) for c in conditions) or "every row"
        for name, conditions in zip(rules.names, rules.conditions, strict=True)
    }


def condition_text(condition: Condition, code: ColumnCode) -> str:
    """A condition as a person would say it, its bounds in the words of the column's kind."""
    name, levels = condition.name, condition.levels
    if condition.all_levels:
        outside = [level for level in condition.all_levels if level not in levels]
        if len(outside) < len(levels):
            return f"{name} not {_either(outside)}"
        return f"{name} {_either(list(levels))}"
    if np.isinf(condition.lower):
        return f"{name} at most {code.shown(condition.upper)}"
    low = code.shown(condition.lower)
    if np.isinf(condition.upper):
        return f"{name} at least {low}"
    high = code.shown(condition.upper)
    return f"{name} {low}" if low == high else f"{name} {low} to {high}"


def _either(levels: list[str]) -> str:
    """Labels joined by commas and "or"."""
    return levels[0] if len(levels) == 1 else f"{', '.join(levels[:-1])} or {levels[-1]}"


def rule_table(rules: Rules) -> Any:
    """One row a condition: cluster, column, lower, upper (original units), levels (None for numbers)."""
    import pandas as pd

    lines = [
        (name, c.name, c.lower, c.upper, c.levels or None)
        for name, conditions in zip(rules.names, rules.conditions, strict=True)
        for c in conditions
    ]
    table = pd.DataFrame(lines, columns=["cluster", "column", "lower", "upper", "levels"])
    return table.astype(
        {"cluster": object, "column": object, "lower": float, "upper": float, "levels": object}
    )


class RuleTally(NamedTuple):
    """Weights of rows, which add up over parts: in all, and inside exactly one rule; of each cluster (K,)
    those that its rule claims, that are inside it, that belong to it by `soft_posterior`, and both.
    """

    total: float
    inside_one: float
    claimed: FloatArray
    inside: FloatArray
    own: FloatArray
    both: FloatArray

    @classmethod
    def of(cls, claims: FloatArray, share: FloatArray, weight: FloatArray) -> RuleTally:
        """The tally of rows with these claims of the rules (N, K) and `soft_posterior` (K, N)."""
        inside, which = claims >= 0, np.arange(claims.shape[1])
        belongs = share.argmax(axis=0)[:, None] == which
        return cls(
            float(weight.sum()),
            float(weight @ (inside.sum(axis=1) == 1)),
            weight @ (claims.argmax(axis=1)[:, None] == which),
            weight @ inside,
            weight @ belongs,
            weight @ (inside & belongs),
        )


def tally_of(
    part: Part,
    views: ColumnViews,
    whole: TableEncoder,
    name: str,
    rules: Rules,
    params: RectangleParams,
    kind: str,
) -> RuleTally | None:
    """The tally of a part's rows: what rules, soft boxes and structure, fixed by now, say of them."""
    if not n_rows_of(part.X):
        return None
    cells, rows = views.read(part.X, whole, name, warn=False)
    share = soft_posterior(rows, params, kind)
    return RuleTally.of(rules.claims(rules.margins(cells)), share, weight_of(part))


def cluster_table(names: Sequence[str], tally: RuleTally) -> Any:
    """One row a cluster: rows, inside (weights), precision, recall (NaN where there is nothing)."""
    import pandas as pd

    def share(of: FloatArray) -> FloatArray:
        ratio: FloatArray = np.divide(tally.both, of, out=np.full(len(of), np.nan), where=of > 0)
        return ratio

    columns = {"cluster": list(names), "rows": tally.claimed, "inside": tally.inside}
    return pd.DataFrame({**columns, "precision": share(tally.inside), "recall": share(tally.own)})


def description(
    texts: Mapping[str, str], clusters: Any, inside_one: float, criterion: Mapping[int, float] | None = None
) -> str:
    """Two lines a cluster: how large and how sure, and its rule. `criterion`: that of each number tried."""
    total, K = clusters["rows"].sum(), len(clusters)
    share = f"{100 * inside_one:.1f} % of {total:g} rows"
    lines = [f"{K} cluster{'s' * (K != 1)}; {share} are inside exactly one rule."]
    if criterion and len(criterion) > 1:
        tried = sorted(criterion, key=lambda K: (-round(criterion[K], 1), K))
        lead = criterion[tried[0]] - criterion[tried[1]]
        numbers = f"{min(tried)} to {max(tried)}"
        lines += [f"Of the numbers {numbers}, {tried[0]} is the best; {tried[1]} is {lead:.1f} nats behind."]
    for line in clusters.to_dict("records"):
        lines += [
            "",
            f"{line['cluster']}: {line['rows']:g} rows, precision {_percent(line['precision'])}, "
            f"recall {_percent(line['recall'])}",
            f"  {texts[line['cluster']]}",
        ]
    return "\n".join(lines)


def _percent(share: float) -> str:
    return "unknown" if np.isnan(share) else f"{100 * share:.0f} %"
