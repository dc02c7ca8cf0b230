r"""What a row says of few features, exactly: sums over all 2^K sets z of them, with a = eta + W z.

    chain graph             log p(z, x) = log p(z) + x' a - sum_{d seen} A_d(a_d)
    globally normalised     log p~(z, x) = z' (beta + log odds) + x' a + sum_{d not seen} A_d(a_d)

x being the seen cells of a row, scaled, relative to the base measure; cells that are not seen are summed out.
Features of the chain graph, and of rows with gaps in the other, are not independent given x: mean field finds
one of several maxima where they compete.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from jaxtyping import Float

from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.exponential_families import Array, Layout, dense, softplus, totals_of
from nongauss.harmonium.params import HarmoniumParams
from nongauss.harmonium.updates import complete_totals

SMALLEST = 1e-300
"""Share of the counts below this counts as this: its logarithm is finite."""

MOST_ENUMERATED = 10
"""Features of which all sets are summed: 1,024 sets cost about what twenty sweeps of mean field do."""


@lru_cache
def feature_sets(K: int) -> Array:
    """All S = 2^K sets of features as rows of 0 and 1, (S, K), the first feature changing least often."""
    sets: Array = (np.arange(2**K)[:, None] >> np.arange(K)[::-1] & 1).astype(np.float64)
    return sets


def log_joint_of_sets(
    params: HarmoniumParams,
    layout: Layout,
    log_odds: Float[np.ndarray, " K"],
    is_chain: bool,
    rows: VisibleRows,
    mean_totals: Float[np.ndarray, " n_counted"],
) -> Float[np.ndarray, "B S"]:
    """log p(z, x), or log p~(z, x), of each set z and the seen cells of encoded rows (B, D).

    `mean_totals`: see `complete_totals`; counts that are not seen are what lacks to these.
    """
    x = dense(rows.X, np.float64) * params.scale
    seen = np.ones(x.shape) if rows.missing is None else (~rows.missing).astype(np.float64)
    x *= seen
    Z, totals = feature_sets(params.n_components), totals_of(layout, x)
    a = Z @ params.weights.T + params.visible_bias
    if is_chain:
        own, summed, sign = Z @ log_odds - softplus(log_odds).sum(), seen, -1.0
    else:
        own, summed, sign = Z @ (params.hidden_bias + log_odds), 1.0 - seen, 1.0
        totals = complete_totals(layout, x, seen > 0, mean_totals) - totals
    out: Array = x @ a.T + own
    counted = 0
    for block in layout:
        part, cells = a[:, block.place], summed[:, block.place]
        if block.kind == "counts":
            most = part.max()
            mass = np.maximum(cells @ np.exp(part - most).T, SMALLEST)
            out += sign * totals[:, counted, None] * (np.log(mass) + most)
            counted += 1
        else:
            out += sign * (cells @ (softplus(part) if block.kind == "binary" else 0.5 * part * part).T)
    return out
