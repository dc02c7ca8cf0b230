"""What a person reads: the rules as sentences and as a table, and size, precision and recall of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nongauss.rectangle.data import ColumnViews, FloatArray
from nongauss.rectangle.params import RectangleParams
from nongauss.rectangle.predict import soft_posterior
from nongauss.rectangle.rules import Condition, Rules
from nongauss.tables.encoder import ColumnCode, TableEncoder
from nongauss.tables.frame import n_rows_of
from nongauss.tables.source import Part, weight_of


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
