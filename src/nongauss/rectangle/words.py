"""Rules in words: a sentence a cluster, a sentence a row, and the tables that a user reads."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nongauss.core.errors import NongaussWarning
from nongauss.rectangle.data import FEW_LABELS, ColumnView, FloatArray, RawCells
from nongauss.rectangle.predict import RuleTally
from nongauss.rectangle.rules import Condition, Rules, box_margin
from nongauss.tables.column_code import ColumnCode

HIDDEN = 0.2
"""Standard deviation of all values but the farthest, over that of all, below which these are hidden."""


def rule_texts(rules: Rules, codes: Sequence[ColumnCode]) -> dict[str, str]:
    """One sentence a cluster. `codes` of the rule columns say how their values are printed."""
    return {
        name: ", or ".join(box_text(box, codes) for box in boxes)
        for name, boxes in zip(rules.names, rules.boxes, strict=True)
    }


def box_text(conditions: Sequence[Condition], codes: Sequence[ColumnCode]) -> str:
    """The conditions of one box."""
    return " and ".join(condition_text(c, codes[c.column]) for c in conditions) or "every row"


def condition_text(condition: Condition, code: ColumnCode) -> str:
    """A condition as a person would say it, its bounds in the words of the column's kind."""
    name, levels = condition.name, condition.levels
    if condition.all_levels:
        outside = [level for level in condition.all_levels if level not in levels]
        if len(outside) < len(levels):
            return f"{name} not {_either(outside)}"
        return f"{name} {_either(list(levels))}"
    lower, upper = condition.ends
    if np.isinf(lower):
        return f"{name} at most {code.shown(upper)}"
    low = code.shown(lower)
    if np.isinf(upper):
        return f"{name} at least {low}"
    high = code.shown(upper)
    return f"{name} {low}" if low == high else f"{name} {low} to {high}"


def _either(levels: list[str]) -> str:
    """Labels joined by commas and "or"."""
    return levels[0] if len(levels) == 1 else f"{', '.join(levels[:-1])} or {levels[-1]}"


def rule_table(rules: Rules) -> Any:
    """One row a condition: cluster, column, lower, upper (original units), levels (None for numbers).

    Where rules may have several boxes, `box` numbers those of each cluster from 0.
    """
    import pandas as pd

    lines = [
        (name, c.name, *c.ends, c.levels or None, i)
        for name, boxes in zip(rules.names, rules.boxes, strict=True)
        for i, box in enumerate(boxes)
        for c in box
    ]
    kinds = {
        "cluster": object,
        "column": object,
        "lower": float,
        "upper": float,
        "levels": object,
        "box": int,
    }
    table = pd.DataFrame(lines, columns=list(kinds)).astype(kinds)
    return table if rules.owners else table.drop(columns="box")


def rule_values(codes: Sequence[ColumnCode], cells: RawCells) -> Any:
    """Cells as bounds are measured in them, by the names of the columns: numbers, or levels as text."""
    import pandas as pd

    n_numbers = cells.numbers.shape[1]
    values = {str(code.name): x for code, x in zip(codes, cells.numbers.T, strict=False)}
    for code, numbers_of in zip(codes[n_numbers:], cells.labels.codes.T, strict=True):
        values[str(code.name)] = np.array([*code.levels, None], dtype=object)[numbers_of]
    return pd.DataFrame(values)


def cluster_table(names: Sequence[str], tally: RuleTally) -> Any:
    """One row a cluster: rows, inside (weights), precision, recall (NaN where there is nothing)."""
    import pandas as pd

    def share(of: FloatArray) -> FloatArray:
        ratio: FloatArray = np.divide(tally.both, of, out=np.full(len(of), np.nan), where=of > 0)
        return ratio

    columns = {"cluster": list(names), "rows": tally.claimed, "inside": tally.inside}
    return pd.DataFrame({**columns, "precision": share(tally.inside), "recall": share(tally.own)})


def description(
    texts: Mapping[str, str],
    clusters: Any,
    inside_one: float,
    why_n_clusters: str | None = None,
    quiet: Sequence[str] | None = None,
) -> str:
    """Two lines a cluster: how large and how sure, and its rule; before them, why so many.

    And which columns of numbers, `quiet`, were left out.
    """
    total, K = clusters["rows"].sum(), len(clusters)
    share = f"{100 * inside_one:.1f} % of {total:g} rows"
    lines = [f"{K} cluster{'s' * (K != 1)}; {share} are inside exactly one rule."]
    lines += [why_n_clusters] if why_n_clusters else []
    lines += [f"Left out, because the clusters do not differ in them: {', '.join(quiet)}."] if quiet else []
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


def row_sentences(
    rules: Rules, codes: Sequence[ColumnCode], cells: RawCells, claims: FloatArray
) -> list[str]:
    """For each row the rule that it meets, and the condition of it that is nearest to being broken.

    Where it meets none, the rule that it is assigned to, and the condition that is farthest from being met.
    """
    margins = rules.margins(cells)
    own = claims.argmax(axis=1)
    out = []
    for n in range(len(own)):
        row, name = cells.take(np.array([n])), rules.names[own[n]]
        box = max(rules.boxes[own[n]], key=lambda conditions: float(box_margin(conditions, row)[0]))
        met = [other for other, margin in zip(rules.names, margins[n], strict=True) if margin >= 0]
        told = _tightest(box, codes, row)
        if margins[n, own[n]] < 0:
            also = f"; it meets that of {_either(met)}" if met else ""
            start = "is in no rule; the nearest is" if not met else "is nearest to"
            out.append(f"{start} {name}: {told}{also}")
            continue
        others = [other for other in met if other != name]
        also = f"; it meets that of {_either(others)}, too, less deeply" if others else ""
        out.append(f"meets the rule of {name}: {told}{also}")
    return out


def _tightest(box: Sequence[Condition], codes: Sequence[ColumnCode], row: RawCells) -> str:
    """The condition of a box that one row is least deep inside, or farthest outside, and by how much."""
    if not box:
        return "every row is in it"
    condition = min(box, key=lambda c: float(c.margin(row)[0]))
    code, text = codes[condition.column], condition_text(condition, codes[condition.column])
    if condition.all_levels:
        level = int(row.labels.codes[0, condition.column - row.numbers.shape[1]])
        seen = "missing" if level < 0 else condition.all_levels[level]
        return f"{text}, and it is {seen}"
    x = float(row.numbers[0, condition.column])
    if np.isnan(x):
        return f"{text}, and it is missing"
    lower, upper = condition.ends
    spare = min(x - lower, upper - x)
    plain = code.kind in ("", "number")
    by = f"{abs(spare):.3g}" + ("" if plain else " days")
    seen = code.shown(_rounded(x, spare) if plain else x)
    if float(condition.margin(row)[0]) < 0:
        return f"{text}, and it is {seen}, outside by {by}"
    return f"{text}, and it is {seen}, {by} inside"


def _rounded(x: float, spare: float) -> float:
    """A number with no more decimals than its distance from a bound needs to be seen to three digits."""
    if spare == 0.0 or not np.isfinite(spare):
        return x
    decimals = 2 - int(np.floor(np.log10(abs(spare))))
    return round(x, decimals) if 0 <= decimals < 300 else x


def told_of_empty(why: str | None, asked: int, left: int) -> str | None:
    """Why there are so many clusters, with how many kept rows; without a why that is warned of."""
    if why is not None:
        return f"{why} In the fit to all rows {left} of these kept rows."
    warnings.warn(
        f"{asked - left} of {asked} clusters ended without rows and were left out; lower n_clusters.",
        NongaussWarning,
        stacklevel=3,
    )
    return None


def warn_far(view: ColumnView, cells: RawCells, weight: FloatArray) -> None:
    """Say in which columns one value is so far off that all others are alike beside it."""
    far = []
    for i, scale, raw in zip(view.numeric, view.scales, cells.numbers.T, strict=True):
        x = scale.apply(raw)
        others = np.flatnonzero(np.abs(x) < np.nanmax(np.abs(x)))
        if len(np.unique(x[others])) < FEW_LABELS:
            continue
        mean = np.average(x[others], weights=weight[others])
        if np.average((x[others] - mean) ** 2, weights=weight[others]) < HIDDEN**2:
            far.append(str(view.encoder.columns[i].name))
    if far:
        warnings.warn(
            f"One value of {', '.join(map(repr, far))} is so far from all others that they look almost "
            "the same beside it; correct or empty it, or give scaling='rank'.",
            NongaussWarning,
            stacklevel=4,
        )


def warn_names(columns: list[str]) -> None:
    """Say which label columns are left out because they name rows."""
    if columns:
        warnings.warn(
            f"Most labels of {', '.join(map(repr, columns))} occur once; clusters and rules leave such "
            "columns out. Group the labels to use them.",
            NongaussWarning,
            stacklevel=4,
        )


def quiet_columns(before: ColumnView, after: ColumnView) -> list[str]:
    """Names of the columns of numbers that are in one view and no longer in the other."""
    return [str(before.encoder.columns[i].name) for i in before.numeric if i not in after.numeric]
