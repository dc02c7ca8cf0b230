"""Intervals whose coverage is guaranteed: a law's central interval, widened as rows it has not seen ask for.

The score of a row is how far from the middle of its law its target lies: s = max(1/2 - F(y), F(y-) - 1/2, 0),
so that the central interval of coverage c holds y if s <= c / 2. Where that is next to 1, a distribution
function tells no more, and s counts how many widths of that interval y lies outside it.

With n scores of rows that are exchangeable with a new one, the new score is at most the ceil((n + 1) a)-th
smallest of them with probability a at least, and at most a + 1 / (n + 1) where scores do not tie (Vovk,
Gammerman and Shafer, *Algorithmic Learning in a Random World*, 2005; on the scale of a distribution function:
Chernozhukov, Wuethrich and Zhu, PNAS 118, 2021). So the interval of that score holds the new target with
probability a at least, whatever the law. Within groups of rows the same holds of each (Vovk 2012).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int
from numpy.typing import NDArray

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.records import persistable
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution, checked_coverage

SLACK = 1e-10
"""Added to the score that is not exceeded: the row that sets an interval is inside it for all rounding."""

EDGE = 0.4995
"""Half the coverage of the widest interval that is the law's own; beyond, scores count its widths."""

HOW_TO = "conformalize(X, y) with rows that fit has not seen"


@persistable("estimator.ConformalScores")
class ConformalScores(NamedTuple):
    """Scores (N,) or (N, P) of rows, their weights (N,), and their groups.

    `groups` (N,): the number of each row's group in `names`, or None where none were given. `held_out`: has
    the fit not seen the rows at all, so that the guarantee holds whatever the model?
    """

    scores: Float64[np.ndarray, "N ..."]
    weight: Float64[np.ndarray, " N"]
    groups: Int[np.ndarray, " N"] | None
    names: tuple[str, ...]
    held_out: bool

    def interval(self, law: PredictiveDistribution, coverage: float, groups: Any) -> FloatArray:
        """The guaranteed interval of each of N rows: (N, 2) or (N, 2, P). Raises InputError."""
        coverage = checked_coverage(coverage)
        group, names = self._group_of(groups, len(law))
        used = np.unique(group)
        score = np.stack([self._score(int(g), coverage, names) for g in used])  # (G, P)
        half = np.minimum(score, EDGE)
        levels = np.clip(0.5 + np.concatenate([-half, half]).ravel(), 0.0, 1.0)
        every = law.quantile(levels).reshape(len(law), 2, *score.shape, -1)
        place = np.searchsorted(used, group)
        ends = every[np.arange(len(law)), :, place]  # (N, 2, P, P): levels of one output, quantiles of all
        own: FloatArray = np.einsum("nspp->nsp", ends)
        beyond = (score - half)[place]  # (N, P)
        if (beyond > 0.0).any():
            own = _widened(law, own, beyond)
        return own if law.mean.ndim == 2 else own[..., 0]

    def _group_of(self, groups: Any, n_rows: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """The number of each new row's group (N,), all 0 without groups, and the groups' names."""
        if groups is None:
            return np.zeros(n_rows, np.int64), ()
        if self.groups is None:
            raise InputError(f"The scored rows have no groups; call {HOW_TO} and give their groups too.")
        group = pd.Index(self.names).get_indexer(pd.Index(group_names(groups, n_rows)))
        if (group < 0).any():
            row = int((group < 0).argmax())
            raise InputError(
                f"groups: that of row {row}, {group_names(groups, n_rows)[row]!r}, has no scored rows; there "
                f"are {', '.join(map(repr, self.names[:10]))}. Call {HOW_TO} of that group among them."
            )
        return group.astype(np.int64), self.names

    def _score(self, group: int, coverage: float, names: tuple[str, ...]) -> FloatArray:
        """The score that a new row of a group does not exceed with this probability, of each output: (P,)."""
        own = self.groups == group if names and self.groups is not None else np.ones(len(self.scores), bool)
        weight = self.weight[own]
        scores = self.scores[own].reshape(len(weight), -1)
        total = float(weight.sum())
        rank = (total + 1.0) * coverage - 1e-9
        if rank > total:
            enough = math.ceil(coverage / (1.0 - coverage) - 1e-9)
            where = f" in group {names[group]!r}" if names else ""
            raise InputError(
                f"A guarantee of {coverage:g} needs {enough} scored rows at least: there are {total:g}"
                f"{where}; give conformalize more rows, or ask for less coverage."
            )
        order = np.argsort(scores, axis=0, kind="stable")
        below = np.cumsum(weight[order], axis=0)
        first = (below >= rank).argmax(axis=0)
        found = np.take_along_axis(np.take_along_axis(scores, order, axis=0), first[None], axis=0)[0]
        out: FloatArray = found + SLACK
        return out


def scored(
    law: PredictiveDistribution,
    y: Any,
    *,
    weight: FloatArray | None = None,
    groups: Any = None,
    held_out: bool = True,
) -> ConformalScores:
    """The scores of rows with targets y (N,) or (N, P) under their laws. Raises InputError."""
    target = np.asarray(y, np.float64)
    below = law.cdf(target)
    before: FloatArray = below
    if law.is_discrete:
        before = law.cdf(target - 1.0)
    elif law.atoms:
        is_atom = np.isin(target.reshape(below.shape), law.atoms)
        before = np.where(is_atom, law.cdf(np.nextafter(target, -np.inf)), below)
    scores = np.maximum(np.maximum(0.5 - below, before - 0.5), 0.0)
    far = np.flatnonzero((scores > EDGE).reshape(len(scores), -1).any(axis=1))
    if len(far):
        low, high, width = _edges(law[far])
        at, own = target.reshape(below.shape)[far], scores[far]
        outside = np.maximum(low - at, at - high) / width
        scores[far] = np.where(own > EDGE, EDGE + np.maximum(outside, 0.0), own)
    weight = np.ones(len(scores)) if weight is None else weight
    if groups is None:
        return ConformalScores(scores, weight, None, (), held_out)
    codes, names = pd.factorize(group_names(groups, len(scores)), sort=True)
    return ConformalScores(scores, weight, codes.astype(np.int64), tuple(map(str, names)), held_out)


def _edges(law: PredictiveDistribution) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The ends of each row's central interval of coverage 2 EDGE, and its width: (N,) or (N, P) each.

    Whole numbers are 1 apart at least. Where a width is 0, for a value that is sure, it is the least number.
    """
    low, high = np.moveaxis(law.quantile([0.5 - EDGE, 0.5 + EDGE]), 1, 0)
    least = 1.0 if law.is_discrete else np.finfo(np.float64).tiny
    return low, high, np.maximum(high - low, least)


def _widened(law: PredictiveDistribution, ends: FloatArray, beyond: FloatArray) -> FloatArray:
    """Intervals (N, 2, P) with (N, P) widths of the edges added at either end, within what y can be."""
    _, _, width = _edges(law)
    more = beyond * width.reshape(beyond.shape)
    if law.is_discrete:
        more = np.ceil(more)
    support = law.quantile([0.0, 1.0]).reshape(ends.shape)
    low = np.maximum(ends[:, 0] - more, support[:, 0])
    high = np.minimum(ends[:, 1] + more, support[:, 1])
    return np.stack([low, high], axis=1)


def group_names(groups: Any, n_rows: int) -> NDArray[np.object_]:
    """The groups of N rows as text (N,). Raises InputError for another number of rows and for gaps."""
    found = pd.Series(groups if isinstance(groups, (pd.Series, Sequence)) else np.asarray(groups))
    if len(found) != n_rows:
        raise InputError(f"groups must name the group of each row: got {len(found)} for {n_rows} rows.")
    if found.isna().any():
        row = int(found.isna().to_numpy().argmax())
        raise InputError(f"groups: row {row} has none; name its group, or leave the row out.")
    names: NDArray[np.object_] = found.map(str).to_numpy(object)
    return names


def guaranteed(
    estimator: Any, law: PredictiveDistribution, coverage: float, groups: Any, scores: ConformalScores | None
) -> FloatArray:
    """The interval of each row with the guarantee that the kept scores give. Raises InputError.

    Warns where these are of rows that were left out of the fit one by one: then nothing is guaranteed.
    """
    name = type(estimator).__name__
    if scores is None:
        raise InputError(f"{name} has kept no scores for guarantee='conformal': call its {HOW_TO} first.")
    if not scores.held_out:
        warnings.warn(
            f"{name} scores each training row by laws that were left without it: coverage is as asked as far "
            f"as one row changes a fit little; for a guarantee on finite samples call {HOW_TO}.",
            NongaussWarning,
            stacklevel=3,
        )
    return scores.interval(law, coverage, groups)
