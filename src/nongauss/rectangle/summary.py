"""Size, precision and recall of each rule, as a table and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nongauss.rectangle.params import FloatArray


def cluster_table(names: Sequence[str], claims: FloatArray, share: FloatArray, weight: FloatArray) -> Any:
    """One row a cluster: rows, inside (weights), precision, recall (NaN where nothing is inside or belongs).

    `claims` (N, K) are those of the rules, `share` (K, N) the probabilities by all columns.
    """
    import pandas as pd

    K = len(names)
    by_rule, belongs = claims.argmax(axis=1), share.argmax(axis=0)
    inside = claims >= 0
    lines = []
    for k in range(K):
        held, own = weight[inside[:, k]].sum(), weight[belongs == k].sum()
        both = weight[inside[:, k] & (belongs == k)].sum()
        lines.append(
            (
                names[k],
                float(weight[by_rule == k].sum()),
                float(held),
                float(both / held) if held else np.nan,
                float(both / own) if own else np.nan,
            )
        )
    return pd.DataFrame(lines, columns=["cluster", "rows", "inside", "precision", "recall"])


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
