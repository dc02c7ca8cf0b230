"""The kinds of numbers by which candidates are chosen: by their look, or as a person says."""

from __future__ import annotations

from typing import Any

import numpy as np

from nongauss.auto.candidates import COUNT, DENSITIES, POSITIVE, REAL, REGISTRY, UNIT, UNIT_WITH_ENDS, ZEROS
from nongauss.predictive.distribution import FloatArray
from nongauss.tables.column import ColumnKind
from nongauss.tables.target_kinds import understand_target


def target_kind(y: FloatArray, names: Any = "auto") -> str:
    """The kind of target that numbers y (N,) are, by which candidates are chosen: counts, shares, ...

    Candidates that a person names, all of them laws with a density, go before the look of the numbers.
    """
    kind = understand_target(y).kind
    plain = POSITIVE if y.min() > 0.0 else REAL
    if not isinstance(names, str) and len(names) and all(_has_density(name) for name in names):
        return UNIT if plain == POSITIVE and y.max() < 1.0 else plain
    if kind is ColumnKind.COUNT:
        return COUNT
    if kind is ColumnKind.ZEROS:
        return ZEROS
    if kind is ColumnKind.SHARE and y.max() <= 1.0:
        return UNIT if y.min() > 0.0 and y.max() < 1.0 else UNIT_WITH_ENDS
    return plain


def said_kind(word: str, y: FloatArray) -> tuple[str, float, float]:
    """The kind of candidates for a kind of numbers y (N,) in a person's word, and the least and largest y."""
    if word == "real":
        return (POSITIVE if y.min() > 0.0 else REAL), -np.inf, np.inf
    if word == "share":
        return (UNIT if y.min() > 0.0 and y.max() < 1.0 else UNIT_WITH_ENDS), 0.0, 1.0
    least = np.finfo(np.float64).tiny if word == "positive" else 0.0
    return {"positive": POSITIVE, "zeros": ZEROS, "count": COUNT}[word], least, np.inf


def _has_density(name: Any) -> bool:
    """Is this the name of a candidate for numbers with a density?"""
    return name in REGISTRY and not REGISTRY[name].kinds.isdisjoint(DENSITIES)
