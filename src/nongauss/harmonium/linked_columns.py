"""Which features link columns, and which are the shape of one column alone, such as its tail.

Independent columns that are skewed are fitted better with a feature for each, which tells of no other column.
Feature k goes with a column if, over its visible units d,

    sum_d W_dk^2 A''_d N_d Var(E z_k)

is beyond what weights of a column that has nothing to do with the feature have by chance: a chi-square law
(Wald's test). A'' is the curvature of the log partition function at the mean of the unit.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.special import chdtri

from nongauss.harmonium.data import VisibleRows, column_means
from nongauss.harmonium.exponential_families import Layout

CHANCE = 0.01
"""Chance that a feature seems to go with any of the columns that have nothing to do with it."""


def n_linked_columns(
    weights: Float[np.ndarray, "D K"],
    layout: Layout,
    rows: VisibleRows,
    hidden: Float[np.ndarray, "N K"],
    owner: Int[np.ndarray, " D"],
) -> Int[np.ndarray, " K"]:
    """How many input columns go with each feature.

    `hidden`: P(z = 1) of the rows; `owner`: the input column of each visible unit.
    """
    means, curvature = column_means(rows), np.ones(len(weights))
    for block in layout:
        at = block.place
        if block.kind != "real":
            curvature[at] = means[at] * (1.0 - means[at]) if block.kind == "binary" else means[at]
    present = rows.weight.sum() if rows.missing is None else (~rows.missing).T @ rows.weight
    share = rows.weight / rows.weight.sum()
    variance = share @ (hidden - share @ hidden) ** 2
    told = weights**2 * (curvature * present)[:, None] * variance
    columns = np.unique(owner)
    linked = np.zeros(weights.shape[1], dtype=np.intp)
    for column in columns:
        own = owner == column
        linked += told[own].sum(axis=0) > chdtri(own.sum(), CHANCE / len(columns))
    return linked
