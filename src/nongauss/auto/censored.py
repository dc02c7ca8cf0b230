"""Rows of which only limits of the target are known: which laws take them, and how probable they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nongauss.auto.candidate import Candidate
from nongauss.auto.candidates import COUNT, POSITIVE, REAL, UNIT
from nongauss.core.errors import InputError
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution
from nongauss.sparse_gp.beside import interval_ends
from nongauss.sparse_gp.likelihoods import REGRESSION

SMALLEST = 1e-300
"""Least probability that a logarithm is taken of."""


def ends_of(y: FloatArray, beside: Mapping[str, Any]) -> FloatArray | None:
    """Both ends of what is known of each target y (N,), (N, 2); None where `beside` has no limits.

    Raises InputError naming the first row that cannot be read.
    """
    return interval_ends(y, dict(beside), REGRESSION["gaussian"]())


def censored_kind(kind: str, y: FloatArray, declared: bool) -> str:
    """The kind of numbers that targets with limits are: none with a probability of single values.

    Raises InputError where a person has `declared` another.
    """
    if kind in (REAL, POSITIVE, UNIT):
        return kind
    if declared:
        what = "counts" if kind == COUNT else f"targets of kind {kind!r}"
        raise InputError(f"censoring and y_upper are not for {what}; give kind='real' or 'positive'.")
    return POSITIVE if y.min() > 0.0 else REAL


def that_take_limits(chosen: Sequence[Candidate], names: Any) -> list[Candidate]:
    """The candidates that can be fitted to limits. Raises InputError for others that were named."""
    out = [c for c in chosen if c.takes_limits]
    others = [c.name for c in chosen if not c.takes_limits]
    if others and names != "auto":
        raise InputError(
            f"The candidate {others[0]!r} takes no censoring or y_upper; leave it out, or give 'auto'."
        )
    return out


def log_prob_between(law: PredictiveDistribution, ends: FloatArray) -> FloatArray:
    """Log density of targets that are known, log P(low <= Y <= high) of others, from ends (N, 2): (N,)."""
    low, high = ends.T
    known = low == high
    at = np.where(known, low, np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0)))
    below = np.where(np.isfinite(low), law.cdf(np.where(np.isfinite(low), low, at)), 0.0)
    upto = np.where(np.isfinite(high), law.cdf(np.where(np.isfinite(high), high, at)), 1.0)
    above = law.survival(at)
    inside = np.where(np.isposinf(high) & np.isfinite(low), above, upto - below)
    log_inside: FloatArray = np.log(np.maximum(inside, SMALLEST))
    return np.where(known, law.log_prob(at), log_inside)
