"""Summaries of the features of a fit: which are in use and why others are not, their columns and classes."""

from __future__ import annotations

from collections import Counter

import numpy as np

from nongauss.harmonium.chain_graph import ACTIVE, ALIKE, DUPLICATE
from nongauss.harmonium.exponential_families import Array

SATURATED = 0.8
"""Share of saturated activations from which a fit is reported."""

OFF = "almost no row has it"
ON = "almost every row has it"


def component_status(hidden: Array, weight: Array, units: str = "binary") -> tuple[str, ...]:
    """For each unit "active", or why it says nothing, from its activations (N, K) on the training rows.

    Real units have a size of either sign: they are out of use only where it is the same in all rows.
    """
    share = weight / weight.sum()
    use = share @ hidden
    spread = np.sqrt(np.maximum(share @ (hidden * hidden) - use * use, 0.0))
    rows = weight.sum()
    out = []
    centred = (hidden - use) * np.sqrt(share)[:, None]
    alike = np.abs(centred.T @ centred) / np.maximum(np.outer(spread, spread), 1e-12)
    for k in range(hidden.shape[1]):
        rare = units == "binary" and min(use[k], 1.0 - use[k]) * rows < 1.0
        if rare or spread[k] < 1e-3:
            out.append(OFF if use[k] < 0.5 else ON)
        elif any(alike[k, j] > ALIKE and out[j] == ACTIVE for j in range(k)):
            out.append(DUPLICATE)
        else:
            out.append(ACTIVE)
    return tuple(out)


def top_columns(weights: Array, spread: Array, names: tuple[str, ...], k: int) -> list[list[str]]:
    """Names of the k visible units that each feature raises most, in standard deviations."""
    lift = weights * spread[:, None]
    order = np.argsort(-lift, axis=0, kind="stable")[:k]
    return [[names[d] for d in column if lift[d, j] > 0] for j, column in enumerate(order.T)]


def class_means(hidden: Array, weight: Array, labels: Array, n_classes: int) -> tuple[Array, Array]:
    """Mean and standard deviation of each feature in the rows of each class: twice (C, K)."""
    mean, spread = np.zeros((n_classes, hidden.shape[1])), np.zeros((n_classes, hidden.shape[1]))
    for c in range(n_classes):
        chosen = labels == c
        if chosen.any():
            share = weight[chosen] / weight[chosen].sum()
            mean[c] = share @ hidden[chosen]
            spread[c] = np.sqrt(share @ (hidden[chosen] - mean[c]) ** 2)
    return mean, spread


def description(
    status: tuple[str, ...], use: Array, tops: list[list[str]], classes: list[str] | None, most: int = 40
) -> str:
    """How many features are in use and why others are not, then each: mean, class that has it most, columns.

    `use` (K,), `tops` K lists of names, `classes` K names or None. At most `most` features are listed.
    """
    lines = [f"{status.count(ACTIVE)} features in use"]
    lines += [f"{number} not in use: {why}" for why, number in Counter(status).items() if why != ACTIVE]
    for k in range(min(len(use), most)):
        of_class = "" if classes is None else f"  most in {classes[k]}"
        lines.append(f"F{k}  mean {use[k]:.2f}{of_class}  raises {', '.join(tops[k]) or 'nothing'}")
    if len(use) > most:
        lines.append(f"and {len(use) - most} more")
    return "\n".join(lines)
