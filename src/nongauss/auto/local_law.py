"""The local law: what is left of a base law's shape, learned where the row lies.

Let z_i = Phi^-1(F_i(y_i)) be the normal scores of the training rows, F_i the base's distribution function
that was left without its row; of a Gaussian base, or a mixture of some, they are its standardised
residuals. With w_i(x) the weights of a forest on (x, m, s), m and s the base's mean and standard deviation,
the score of a new row has the law

    g(z | x) = (1 - a) sum_i w_i(x) N(z; z_i, h(x)^2) + a N(z; 0, 1),

and y that of `predictive.recalibrated`: p(y | x) = f(y | x) g(z) / phi(z), for a base of any support. Where F
jumps, as a count's does, z_i is drawn evenly between its values on either side, and a row's probability is
the difference of G. a, the band h and the size of the leaves are those under which rows are most probable by
the trees that have not drawn them. The scores, one for each training row, are part of the model and its file.

Of targets that were rounded, say to whole days, all that counts is how probable each rounded value is, yet a
density grows without end where peaks at the values get narrower. So h is at least so wide, about each score,
that the density at a peak is its probability divided by the step of the values.
"""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from nongauss.auto.forest import N_TREES, LeafForest, grow
from nongauss.core.records import persistable
from nongauss.predictive.combined import mixed_gaussians, mixture
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution
from nongauss.predictive.mixture import (
    GaussianMixtureDistribution,
    of_scores,
    standard_normal,
)
from nongauss.predictive.recalibrated import recalibrated
from nongauss.predictive.scores import reach_of, score_interval

LEAVES = (3, 10, 30)
"""Fewest rows of a leaf that are tried."""

MANY_ROWS, TRIAL_TREES = 300, 40
"""Rows from which the size of leaves is chosen by a forest of so few trees: the choice is the same, and the
price a half."""

GROWTH = 1.15
"""Power of the number of rows by which the time of a tree grows."""

BANDS = (0.03, 0.05, 0.08, 0.12, 0.18, 0.27, 0.4, 0.65, 1.0)
"""Bands that are tried: in scores, or in standard deviations of the scores about the row."""

SHARES = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
"""Shares of the base's own law that are tried. None is 0: its tails reach beyond all residuals."""

N_CHOSEN = 3
"""Numbers that the rows choose: leaf, band and share."""

SMALLEST = 1e-300
"""Least density that a logarithm is taken of."""

_ROOT_2PI = math.sqrt(2.0 * math.pi)

SMALLEST_SPREAD = 0.02
"""Least spread of the scores about a row."""

STEP_QUANTILE = 0.1
"""Quantile of the distances between neighbouring values of the target that counts as their step."""

LARGEST_SCORE = 4.0
"""Scores beyond are moved here for the forest that looks where they differ, not in the law."""


@persistable("auto.LocalLaw")
class LocalLaw(NamedTuple):
    """The forest, the scores z (N,) and what was chosen for them.

    `is_relative`: is the band `band` times the spread of the scores about the row? `base_share`: a.
    `with_base`: does the forest look at mean and deviation of the base beside the columns? `leaf`: fewest
    rows of a leaf. `has_own_scale`: are the scores residuals in standard deviations of the base? Rows of
    another make, such as those with missing cells, have the same. `least_band` (N,): the least h about each
    score. These three are None in files of older versions.
    """

    forest: LeafForest
    scores: Float64[np.ndarray, " N"]
    band: float
    is_relative: bool
    base_share: float
    with_base: bool
    leaf: int | None = None
    has_own_scale: bool | None = None
    least_band: Float64[np.ndarray, " N"] | None = None

    def law(self, X: FloatArray, base: PredictiveDistribution) -> PredictiveDistribution:
        """The law of y at encoded rows X (N, D) whose base law is `base`."""
        W = self.forest.weights(_inputs(X, base.mean, base.std, self.with_base))
        return self._mixed(W, base)

    def _mixed(self, W: csr_array, base: PredictiveDistribution) -> PredictiveDistribution:
        """The law from weights (N, n_rows)."""
        spread = _spread(W, self.scores) if self.is_relative else np.ones(W.shape[0])
        least = np.zeros(len(self.scores)) if self.least_band is None else self.least_band
        near = _kernels(W, self.scores, self.band * spread, least)
        share = np.array([1.0 - self.base_share, self.base_share])
        known = self.has_own_scale
        if _has_own_scale(base) if known is None else known:
            return mixture([of_scores(_one_gaussian(base), near), base], share)
        shares = np.tile(share[:, None], W.shape[0])
        return recalibrated(base, mixed_gaussians([near, standard_normal(W.shape[0])], shares))


class LocalFit(NamedTuple):
    """A local law, its law of each training row without that row, and the log densities there (N,)."""

    local: LocalLaw
    left_out: PredictiveDistribution
    log_density: FloatArray
    value: float


def fit_local(
    X: FloatArray,
    left_out: PredictiveDistribution,
    y: FloatArray,
    weight: FloatArray,
    seed: int,
    *,
    with_base: bool = True,
    n_jobs: int | None = None,
    n_trees: int | None = None,
    leaf: int | None = None,
    n_judged: int | None = None,
) -> LocalFit:
    """The local law on a base: encoded rows X (N, D) and the base's law of each row without it.

    `with_base` False: a constant base, which gives the forest's own conditional law of y; its forest looks at
    columns alone, as that of a base does that is next to constant. `n_trees`: `forest.N_TREES` by default.
    `leaf`: the fewest rows of a leaf where these need not be chosen. `n_judged`: the first rows that choose,
    and whose laws are given; all by default.
    """
    mean, sd = left_out.mean, left_out.std
    with_base = with_base and _goes_with(mean, y, weight)
    seen = _seen(left_out, y, seed)
    near = np.clip(seen.score, -LARGEST_SCORE, LARGEST_SCORE)
    inputs = _inputs(X, _like_inputs(X, mean), _like_inputs(X, sd), with_base)
    targets = np.column_stack([near, np.abs(near)])
    own_scale, first = _has_own_scale(left_out), slice(n_judged)

    def fitted(leaf: int, n_trees: int | None = n_trees, grown: slice = slice(None)) -> LocalFit:
        known, forest_rows = seen.of(grown), (inputs[grown], targets[grown], weight[grown])
        forest, W = grow(*forest_rows, leaf, seed, n_jobs, n_trees=n_trees, n_judged=n_judged)
        density, (band, is_relative, share) = _chosen(W, known, weight[first])
        log_density = seen.log_rest[first] + np.log(np.maximum(density, SMALLEST))
        value = float(weight[first] @ log_density / weight[first].sum())
        local = LocalLaw(
            forest, known.score, band, is_relative, share, with_base, leaf, own_scale, known.least_band
        )
        return LocalFit(local, local._mixed(W, left_out[first]), log_density, value)

    if leaf is not None:
        return fitted(leaf)
    leaves = [leaf for leaf in LEAVES if 2 * leaf <= len(y)] or LEAVES[:1]
    if len(y) >= MANY_ROWS:
        n_trials = max(1, round(TRIAL_TREES * (1.0 if n_trees is None else n_trees / N_TREES)))
        return fitted(max(leaves, key=lambda leaf: fitted(leaf, n_trials, first).value))
    return max((fitted(leaf) for leaf in leaves), key=lambda fit: fit.value)


def n_trees_grown(n_judged: int, larger: float = 1.0) -> float:
    """How many trees `fit_local` grows, those by which the leaf is chosen and those of the law.

    The latter are of so many times as many rows, and count by what they cost.
    """
    if n_judged < MANY_ROWS:
        return len(LEAVES) * N_TREES
    return float(N_TREES * larger**GROWTH) + len(LEAVES) * TRIAL_TREES


class _Seen(NamedTuple):
    """What each training row says of a law of its score, (N,) each.

    The score; Phi^-1(F(y-)) and Phi^-1(F(y)), between which its mass counts where they differ, while else
    its density at the score does; `plain`, that mass or density under N(0, 1); and `log_rest`, what is added
    to the log of either to make it that of y. `least_band`: sd of a normal law of the score under which the
    density of y at the middle is 1 / step; 0 where F jumps.
    """

    score: FloatArray
    low: FloatArray
    high: FloatArray
    plain: FloatArray
    log_rest: FloatArray
    least_band: FloatArray

    def of(self, rows: slice) -> _Seen:
        """The same of some of the rows."""
        return _Seen(*(values[rows] for values in self))


def _seen(left_out: PredictiveDistribution, y: FloatArray, seed: int) -> _Seen:
    """The scores of targets y (N,); between the sides of a jump one is drawn evenly by probability."""
    if _has_own_scale(left_out):
        sd = left_out.std
        score = (y - left_out.mean) / sd
        plain = np.exp(left_out.log_prob(y) + np.log(sd))
        return _Seen(score, score, score, plain, -np.log(sd), _step(y) / (_ROOT_2PI * sd))
    reach = reach_of(left_out)
    at = score_interval(left_out, y)
    sign = np.where(at.low > 0.0, -1.0, 1.0)  # to the side where both numbers are small
    one, other = np.where(sign > 0.0, at.low, -at.high), np.where(sign > 0.0, at.high, -at.low)
    mass = ndtr(other) - ndtr(one)
    drawn = sign * ndtri(ndtr(one) + np.random.default_rng(seed).random(len(y)) * mass)
    score = np.clip(np.where(at.jumps, drawn, at.high), -reach, reach)
    bell = np.exp(-0.5 * score**2) / _ROOT_2PI
    plain = np.where(at.jumps, mass, bell)
    log_rest = left_out.log_prob(y) - np.log(np.maximum(plain, SMALLEST))
    least = np.where(at.jumps, 0.0, _step(y) * np.exp(np.minimum(log_rest, 300.0)) / _ROOT_2PI)
    return _Seen(score, at.low, at.high, plain, log_rest, np.minimum(least, BANDS[-1]))


def _step(y: FloatArray) -> float:
    """The distance between the values that targets (N,) were rounded to, next to nothing if they were not."""
    values = np.unique(y)
    return float(np.quantile(np.diff(values), STEP_QUANTILE)) if len(values) > 1 else 0.0


def _has_own_scale(base: PredictiveDistribution) -> bool:
    """Are the scores of a base its residuals in standard deviations?

    Those of a mixture of Gaussians are, such as of an average of two processes or of a noise that is not
    quite known: it is near one Gaussian, and the local law stays a mixture of Gaussians, whose moments and
    quantiles are had at once. The share of the base is the mixture itself.
    """
    return isinstance(base, GaussianMixtureDistribution) and base.n_components > 1


def _one_gaussian(base: PredictiveDistribution) -> GaussianMixtureDistribution:
    """The Gaussian of the same mean and variance in each row."""
    mean, variance = base.mean[:, None], base.variance[:, None]

    def components(rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        return np.zeros((len(rows), 1)), mean[rows, None], np.sqrt(variance[rows, None])

    return GaussianMixtureDistribution(mean, variance, components, squeeze=True, n_components=1)


def _chosen(W: csr_array, seen: _Seen, weight: FloatArray) -> tuple[FloatArray, tuple[float, bool, float]]:
    """The density or mass of the first scores (J,) under the best of band, kind of band and share, and these.

    `W` (J, N): weights of the rows at the first of them, that no row has a part in.
    """
    spread, plain = _spread(W, seen.score), seen.plain[: W.shape[0]]
    unjudged = np.diff(W.indptr) == 0  # heavy rows, which every tree has drawn
    best_value, chosen = -math.inf, (1.0, False, SHARES[-1])
    best: FloatArray = plain
    for is_relative, band in product((False, True), BANDS):
        near = _density(W, seen, band * (spread if is_relative else np.ones(len(spread))))
        near = np.where(unjudged, plain, near)
        for share in SHARES:
            density = (1.0 - share) * near + share * plain
            value = float(weight @ np.log(np.maximum(density, SMALLEST)))
            if value > best_value:
                best_value, best, chosen = value, density, (band, is_relative, share)
    return best, chosen


def _density(W: csr_array, seen: _Seen, band: FloatArray) -> FloatArray:
    """sum_i w_ni N(z_n; z_i, h_n^2) at the first rows n, or that law's mass where F jumps: (J,)."""
    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    centre = seen.score[W.indices]
    jumps = (seen.low < seen.high)[row]
    terms: FloatArray = np.empty(len(row))
    if not jumps.all():
        smooth = ~jumps
        own = row[smooth]
        h = np.maximum(band[own], seen.least_band[W.indices[smooth]])
        z: FloatArray = (seen.score[own] - centre[smooth]) / h
        terms[smooth] = np.exp(-0.5 * z * z) / (_ROOT_2PI * h)
    if jumps.any():
        own = row[jumps]
        low, high = ((side[own] - centre[jumps]) / band[own] for side in (seen.low, seen.high))
        upper = low > 0.0
        terms[jumps] = np.where(upper, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    out: FloatArray = np.asarray(np.bincount(row, W.data * terms, W.shape[0]), np.float64)
    return out


def _spread(W: csr_array, scores: FloatArray) -> FloatArray:
    """The weighted standard deviation of the scores about each row (N,), `SMALLEST_SPREAD` at least."""
    mean = W @ scores
    variance = W @ scores**2 - mean**2
    out: FloatArray = np.sqrt(np.maximum(variance, SMALLEST_SPREAD**2))
    return out


def _goes_with(mean: FloatArray, y: FloatArray, weight: FloatArray) -> bool:
    """Is a base's mean (N,) at rows left out the higher, the higher their targets y (N,) are?

    It is the lower where the base is next to constant: then all that it tells is the target left out.
    """
    centre = weight @ y / weight.sum()
    return bool(weight @ ((y - centre) * (mean - weight @ mean / weight.sum())) > 0.0)


def _like_inputs(X: FloatArray, values: FloatArray) -> FloatArray:
    """Values (N,), averaged over rows with equal inputs X (N, D).

    What is said of a row without it tells its target where others have the same inputs: it is lower the
    higher that is. The average tells nothing but the inputs.
    """
    _, group = np.unique(X, axis=0, return_inverse=True)
    group = group.ravel()
    out: FloatArray = (np.bincount(group, values) / np.bincount(group))[group]
    return out


def _inputs(X: FloatArray, mean: FloatArray, sd: FloatArray, with_base: bool) -> FloatArray:
    """Inputs of the forest that finds alike rows: X (N, D), and beside it the base's mean and sd (N,)."""
    return np.column_stack([X, mean, sd]) if with_base else np.asarray(X)


def _kernels(
    W: csr_array, scores: FloatArray, band: FloatArray, least: FloatArray
) -> GaussianMixtureDistribution:
    """sum_i w_i(x) N(z; z_i, h_i^2) of each row, with its exact moments.

    `band` of each row and `least` of each score: the larger is h_i. E = sum_i w_i z_i and
    Var = sum_i w_i h_i^2 + sum_i w_i (z_i - sum_j w_j z_j)^2.
    """
    middle = W @ scores
    squares = csr_array(
        (np.maximum(np.repeat(band, np.diff(W.indptr)), least[W.indices]) ** 2, W.indices, W.indptr), W.shape
    )
    within = np.where(np.diff(W.indptr) == 0, band**2, W.multiply(squares).sum(axis=1))
    scatter = np.maximum(W @ scores**2 - middle**2, 0.0)
    width = int(np.diff(W.indptr).max(initial=1))

    def components(rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        own = W[rows]
        used = np.arange(width) < np.diff(own.indptr)[:, None]
        shares, centres = np.zeros(used.shape), np.zeros(used.shape)
        sds = np.tile(band[rows, None], used.shape[1])
        shares[np.diff(own.indptr) == 0, 0] = 1.0  # of a row that every tree has drawn nothing is known
        shares[used], centres[used] = own.data, scores[own.indices]
        sds[used] = np.maximum(sds[used], least[own.indices])
        with np.errstate(divide="ignore"):
            logs = np.log(shares / shares.sum(axis=1, keepdims=True))
        return logs, centres[:, :, None], sds[:, :, None]

    return GaussianMixtureDistribution(
        middle[:, None], (within + scatter)[:, None], components, squeeze=True, n_components=width
    )
