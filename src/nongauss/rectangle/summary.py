"""Size, precision and recall of each rule, as a table and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nongauss.rectangle.params import FloatArray


class Tally(NamedTuple):
    """Weights of rows, which add up over parts: in all, and inside exactly one rule; of each cluster (K,)
    those that its rule claims, that are inside it, that belong to it by all columns, and both.
    """

    total: float
    inside_one: float
    claimed: FloatArray
    inside: FloatArray
    own: FloatArray
    both: FloatArray

    @classmethod
    def of(cls, claims: FloatArray, share: FloatArray, weight: FloatArray) -> Tally:
        """Of the rules' claims (N, K) and the probabilities by all columns (K, N)."""
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


def cluster_table(names: Sequence[str], tally: Tally) -> Any:
    """One row a cluster: rows, inside (weights), precision, recall (NaN where there is nothing)."""
    import pandas as pd

    def share(of: FloatArray) -> FloatArray:
        return np.divide(tally.both, of, out=np.full(len(of), np.nan), where=of > 0)

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
