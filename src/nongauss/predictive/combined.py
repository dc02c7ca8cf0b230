"""Laws made of laws: mixtures of several for the same rows, and rows of which each has one of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from nongauss.core.errors import InputError
from nongauss.core.seeds import key_seed
from nongauss.predictive.counts import halved_counts
from nongauss.predictive.distribution import (
    MOST_ROWS,
    FloatArray,
    PredictiveDistribution,
    checked_count,
    checked_levels,
    checked_target,
    in_blocks,
)
from nongauss.predictive.mixture import GaussianMixtureDistribution
from nongauss.predictive.roots import at_levels, smooth_quantile


def mixture(
    parts: Sequence[PredictiveDistribution], weights: npt.ArrayLike | None = None, n_rows: int | None = None
) -> PredictiveDistribution:
    """The law of a row that is drawn from one of several laws: p(y) = sum_c w_c p_c(y), exactly.

    Parameters
    ----------
    parts : laws of the same N rows. A part of C N rows counts as C laws, whose rows come one law after the
        other. All are discrete (counts) or none is: a probability is not added to a density. Laws with masses
        at single values, such as 0, go with those without.
    weights : (C,) or (N, C) of all laws, at least 0 and summing to 1; None: equal.
    n_rows : N; None: that of the first part.

    Mixtures of mixtures of Gaussians are ones. Raises InputError for parts that do not go together.
    """
    n_rows = len(parts[0]) if n_rows is None else n_rows
    _check_alike(parts)
    n_laws = 0 if n_rows == 0 else sum(len(part) // n_rows for part in parts)
    if n_rows and any(len(part) % n_rows for part in parts):
        raise InputError(f"Laws of {[len(part) for part in parts]} rows are no laws of the same {n_rows}.")
    if n_laws <= 1:
        return parts[0]
    shares = np.full(n_laws, 1.0 / n_laws) if weights is None else np.asarray(weights, np.float64)
    if shares.shape not in ((n_laws,), (n_rows, n_laws)) or not (
        (shares >= 0.0).all() and np.allclose(shares.sum(axis=-1), 1.0, atol=1e-9)
    ):
        raise InputError(
            f"The weights of {n_laws} laws must be at least 0 and sum to 1: got {np.asarray(weights)!r}."
        )
    shares = np.ascontiguousarray(np.broadcast_to(shares, (n_rows, n_laws)).T)
    if all(isinstance(part, GaussianMixtureDistribution) for part in parts):
        return mixed_gaussians(parts, shares)  # type: ignore[arg-type]
    return MixtureDistribution(parts, shares)


def mixed_gaussians(
    parts: Sequence[GaussianMixtureDistribution], weights: FloatArray
) -> GaussianMixtureDistribution:
    """The mixture of C distributions of the same N rows, weights (C, N), columns summing to 1.

    A part of k N rows counts as k distributions, whose rows come one after the other.
    """
    n_rows, n_outputs = weights.shape[1], parts[0]._mean.shape[1]
    means = np.concatenate([part._mean.reshape(-1, n_rows, n_outputs) for part in parts])
    variances = np.concatenate([part._variance.reshape(-1, n_rows, n_outputs) for part in parts])
    share = weights[:, :, None]
    mean = (share * means).sum(axis=0)
    variance = (share * (variances + (means - mean) ** 2)).sum(axis=0)
    places = [(part, begin) for part in parts for begin in range(0, len(part), n_rows)]
    with np.errstate(divide="ignore"):
        logs = np.log(weights)

    def components(rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        every = [part._of(begin + rows) for part, begin in places]
        log_weights = [own[0] + log[rows, None] for own, log in zip(every, logs, strict=True)]
        means, sds = (np.concatenate([own[i] for own in every], axis=1) for i in (1, 2))
        return np.concatenate(log_weights, axis=1), means, sds

    return GaussianMixtureDistribution(mean, variance, components, squeeze=parts[0]._squeeze)


def by_rows(
    parts: Sequence[PredictiveDistribution], rows: Sequence[npt.NDArray[np.intp]]
) -> PredictiveDistribution:
    """The laws of N rows, of which those numbered `rows[k]` are the rows of `parts[k]`, in that order.

    The numbers of all parts are 0..N-1, each once. Raises InputError for a discrete part beside others.
    """
    _check_alike(parts)
    return parts[0] if len(parts) == 1 else ByRowDistribution(parts, rows)


def _check_alike(parts: Sequence[PredictiveDistribution]) -> None:
    """Refuse laws of which some are discrete and some not, or which have other numbers of outputs."""
    if len({part.is_discrete for part in parts}) > 1:
        raise InputError(
            "Laws of counts and laws with densities cannot be combined: the probability of a value is not "
            "a density; combine models of one kind of target."
        )
    if len({part._output_shape for part in parts}) > 1:
        raise InputError("Laws of several numbers of outputs cannot be combined; fit all to the same y.")


class _OfParts(PredictiveDistribution):
    """A law made of laws, all of which are discrete or none."""

    _parts: tuple[PredictiveDistribution, ...]

    @property
    def _output_shape(self) -> tuple[int, ...]:
        return self._parts[0]._output_shape

    @property
    def is_discrete(self) -> bool:
        """Are all laws discrete?"""
        return self._parts[0].is_discrete

    @property
    def atoms(self) -> tuple[float, ...]:
        """Values that have a probability of their own under some law."""
        return tuple(sorted({atom for part in self._parts for atom in part.atoms}))

    @property
    def knows_tails(self) -> bool:
        """Do all laws know them?"""
        return all(part.knows_tails for part in self._parts)


@final
class MixtureDistribution(_OfParts):
    """Each row is drawn from one of C laws: `mixture` makes it.

    Parameters
    ----------
    parts : laws of whole multiples of N rows, one law's N rows after the other's.
    weights : (C, N) of all laws, each column summing to 1.
    """

    def __init__(self, parts: Sequence[PredictiveDistribution], weights: FloatArray) -> None:
        self._parts, self._weights = tuple(parts), weights
        self._shape = (weights.shape[1], *parts[0]._output_shape)  # (N,) or (N, P)
        # (C, N) or (C, N, 1): beside values with an axis of outputs
        self._shares = weights.reshape(*weights.shape, *(1,) * (len(self._shape) - 1))

    def __len__(self) -> int:
        return int(self._weights.shape[1])

    def _take(self, rows: npt.NDArray[np.intp]) -> MixtureDistribution:
        """The mixtures of the rows of these numbers: those rows of each of a part's laws."""
        starts = (np.arange(0, len(part), len(self) or 1) for part in self._parts)
        parts = [
            part._take((start[:, None] + rows).ravel())
            for part, start in zip(self._parts, starts, strict=True)
        ]
        return MixtureDistribution(parts, self._weights[:, rows])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_rows={len(self)}, n_laws={len(self._weights)})"

    def roughly(self) -> PredictiveDistribution:
        """The mixture of rough parts."""
        return MixtureDistribution([part.roughly() for part in self._parts], self._weights)

    @property
    def mean(self) -> FloatArray:
        """Expectation, exact: (N, P)."""
        return self._average([part.mean for part in self._parts])

    @property
    def variance(self) -> FloatArray:
        """Variance, exact: that of a law, on average, and that of the laws' means, (N, P)."""
        means = self._by_law([part.mean for part in self._parts])
        within = self._average([part.variance for part in self._parts])
        mean = (self._shares * means).sum(axis=0)
        out: FloatArray = within + (self._shares * (means - mean) ** 2).sum(axis=0)
        return out

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y <= y) of each output alone: (N, P)."""
        found = self._average(self._each(y, lambda part, own: part.cdf(own)))
        below: FloatArray = np.minimum(found, 1.0)  # weights sum to 1 only up to rounding
        return below

    def survival(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y > y) of each output alone: (N, P)."""
        return np.minimum(self._average(self._each(y, lambda part, own: part.survival(own))), 1.0)

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log density at `y`, joint over the outputs: (N,); the log probability where y is one of `atoms`."""
        target = checked_target(y, self._shape)

        def log_prob(part: PredictiveDistribution, own: FloatArray) -> FloatArray:
            found = part.log_prob(own)
            others = [atom for atom in self.atoms if atom not in part.atoms]
            if others:  # here the others have a probability, beside which a density counts for nothing
                found = np.where(np.isin(own, others), -np.inf, found)
            return found

        terms = self._by_law(self._each(target, log_prob))
        out: FloatArray = logsumexp(terms, axis=0, b=self._weights)
        return out

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles of each output alone: (N, P) or (N, Q, P). The smallest value with cdf >= q."""
        levels = checked_levels(q)
        if len(self) > MOST_ROWS:
            return np.concatenate([block.quantile(q) for block in in_blocks(self)])
        if not self.is_discrete:
            return at_levels(self._smooth_quantile, levels)
        every = self._by_law([part.quantile(levels.ravel()) for part in self._parts])
        out: FloatArray = np.empty(every.shape[1:])
        for j, level in enumerate(levels.ravel()):
            low, high = self._extremes(every[:, :, j], every[:, :, j])
            if 0.0 < level < 1.0:
                high = halved_counts(partial(self._reaches, level), low - 1.0, high)
            out[:, j] = low if level == 0.0 else high
        return out if levels.ndim else out[:, 0]

    def _reaches(self, level: float, y: FloatArray) -> npt.NDArray[np.bool_]:
        reached: npt.NDArray[np.bool_] = self.cdf(y) >= level
        return reached

    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` joint draws for each row: (N, n, P). Equal `random_state`, equal draws."""
        n_draws = checked_count(n)
        rng = np.random.default_rng(key_seed(random_state))
        edges = np.cumsum(self._weights, axis=0)[:-1].T  # (N, C - 1)
        law = (rng.random((len(self), n_draws))[..., None] >= edges[:, None, :]).sum(axis=2)
        turn = np.zeros_like(law)  # which draw of its law each draw is
        for c in range(len(self._weights)):
            chosen = law == c
            turn[chosen] = (np.cumsum(chosen, axis=1) - 1)[chosen]
        seeds = rng.integers(0, 2**32, len(self._parts))
        most = int(turn.max(initial=-1)) + 1
        every = self._by_law(
            [part.sample(most, int(seed)) for part, seed in zip(self._parts, seeds, strict=True)]
        )
        out: FloatArray = every[law, np.arange(len(self))[:, None], turn]
        return out

    def _each(
        self, y: npt.ArrayLike, say: Callable[[PredictiveDistribution, FloatArray], FloatArray]
    ) -> list[FloatArray]:
        """What each part says of the target, repeated for each of its laws."""
        target = checked_target(y, self._shape)
        n_laws = (len(part) // max(len(self), 1) for part in self._parts)
        return [
            say(part, np.tile(target, (n, *(1,) * (target.ndim - 1))))
            for part, n in zip(self._parts, n_laws, strict=True)
        ]

    def _by_law(self, of_parts: Sequence[FloatArray]) -> FloatArray:
        """Values of all parts' rows, by law and row: (C, N, ...)."""
        if not len(self):
            return np.empty((len(self._shares), 0, *of_parts[0].shape[1:]))
        return np.concatenate(
            [own.reshape(len(own) // len(self), len(self), *own.shape[1:]) for own in of_parts]
        )

    def _average(self, of_parts: Sequence[FloatArray]) -> FloatArray:
        """The average over laws by their weights: (N, P)."""
        out: FloatArray = (self._shares * self._by_law(of_parts)).sum(axis=0)
        return out

    def extent(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The least and the largest of the laws' ends, and the average of their middles."""
        every = [self._by_law(part) for part in zip(*(part.extent() for part in self._parts), strict=True)]
        low, high = self._extremes(every[0], every[2])
        return low, (self._shares * every[1]).sum(axis=0), high

    def _extremes(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest of values of all laws that have a share, (C, N, ...) each."""
        used = self._shares > 0.0
        return np.where(used, low, np.inf).min(axis=0), np.where(used, high, -np.inf).max(axis=0)

    def _smooth_quantile(self, level: float) -> FloatArray:
        """Where the cdf reaches the level, which is the atom itself where it jumps over it: (N, P)."""
        if level in (0.0, 1.0):
            every = self._by_law([part.quantile(level) for part in self._parts])
            return self._extremes(every, every)[int(level)]
        root, found = self._atom_roots(level)
        return root if found.all() else np.where(found, root, smooth_quantile(self, level, found))

    def _atom_roots(self, level: float) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """The atom where the cdf jumps over the level, and where there is one: (N, P) each."""
        root, found = np.zeros(self._shape), np.zeros(self._shape, dtype=np.bool_)
        for atom in self.atoms:
            before = self.cdf(np.full(self._shape, np.nextafter(atom, -np.inf))) < level
            jumps = before & (self.cdf(np.full(self._shape, atom)) >= level)
            root[jumps], found[jumps] = atom, True
        return root, found


@final
class ByRowDistribution(_OfParts):
    """Rows of which each has the law of one of several parts: `by_rows` makes it."""

    def __init__(self, parts: Sequence[PredictiveDistribution], rows: Sequence[npt.NDArray[np.intp]]) -> None:
        self._parts, self._rows = tuple(parts), tuple(rows)

    def __len__(self) -> int:
        return sum(map(len, self._rows))

    def _take(self, rows: npt.NDArray[np.intp]) -> PredictiveDistribution:
        """The laws of the rows of these numbers, each from its part."""
        part, place = np.empty((2, len(self)), dtype=np.intp)
        for number, own in enumerate(self._rows):
            part[own], place[own] = number, np.arange(len(own))
        chosen = [np.flatnonzero(part[rows] == number) for number in range(len(self._parts))]
        kept = [number for number, own in enumerate(chosen) if len(own)] or [0]
        parts = [self._parts[number]._take(place[rows[chosen[number]]]) for number in kept]
        return by_rows(parts, [chosen[number] for number in kept])

    def roughly(self) -> PredictiveDistribution:
        """Rows of rough parts."""
        return ByRowDistribution([part.roughly() for part in self._parts], self._rows)

    def crps(self, y: npt.ArrayLike) -> FloatArray:
        """Continuous ranked probability score of each output at `y`: (N, P)."""
        target = self._checked(y)
        return self._placed([part.crps(target[own]) for part, own in self._pairs()])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_rows={len(self)}, parts={list(self._parts)})"

    @property
    def mean(self) -> FloatArray:
        """Expectation: (N, P)."""
        return self._placed([part.mean for part in self._parts])

    @property
    def variance(self) -> FloatArray:
        """Variance: (N, P)."""
        return self._placed([part.variance for part in self._parts])

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles of each output alone: (N, P) for one level, (N, Q, P) for levels (Q,)."""
        return self._placed([part.quantile(q) for part in self._parts])

    def extent(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """That of each row's law."""
        low, middle, high = (
            self._placed(part) for part in zip(*(part.extent() for part in self._parts), strict=True)
        )
        return low, middle, high

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y <= y) of each output alone: (N, P)."""
        target = self._checked(y)
        return self._placed([part.cdf(target[own]) for part, own in self._pairs()])

    def survival(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y > y) of each output alone: (N, P)."""
        target = self._checked(y)
        return self._placed([part.survival(target[own]) for part, own in self._pairs()])

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log density at `y`, joint over the outputs: (N,)."""
        target = self._checked(y)
        return self._placed([part.log_prob(target[own]) for part, own in self._pairs()])

    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` joint draws for each row: (N, n, P). Equal `random_state`, equal draws."""
        seeds = np.random.default_rng(key_seed(random_state)).integers(0, 2**32, len(self._parts))
        return self._placed(
            [part.sample(n, int(seed)) for part, seed in zip(self._parts, seeds, strict=True)]
        )

    def _pairs(self) -> zip[tuple[PredictiveDistribution, npt.NDArray[np.intp]]]:
        return zip(self._parts, self._rows, strict=True)

    def _checked(self, y: npt.ArrayLike) -> FloatArray:
        return checked_target(y, (len(self), *self._output_shape))

    def _placed(self, of_parts: Sequence[FloatArray]) -> FloatArray:
        """The values of all parts' rows in their places."""
        out = np.empty((len(self), *of_parts[0].shape[1:]))
        for values, own in zip(of_parts, self._rows, strict=True):
            out[own] = values
        return out
